// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target on files and folders of inputs without libFuzzer, so that every committed corpus is a
// test.
// usage: PROGRAM TARGET PATH...; without arguments, lists the targets.
// The exit status is 1 if a path cannot be read or no input was found, 2 if there is no such target. A fault
// of the target ends the program; the last line on stderr names the input.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "target.hpp"

namespace {

namespace fs = std::filesystem;
using carina::fuzz::Target;

std::vector<fs::path> inputsOf(const fs::path& path) {
  if (!fs::is_directory(path)) return {path};
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

bool replay(const Target& target, const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "%s: cannot be read\n", path.c_str());
    return false;
  }
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  std::fprintf(stderr, "%s\n", path.c_str());
  target.run(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const Target* target = Target::first();
  while (target != nullptr && (argc < 2 || std::strcmp(target->name, argv[1]) != 0)) {
    if (argc < 2) std::puts(target->name);
    target = target->next;
  }
  if (argc < 2) return 0;
  if (target == nullptr) {
    std::fprintf(stderr, "%s: there is no target '%s'\n", argv[0], argv[1]);
    return 2;
  }
  size_t count = 0;
  bool good = true;
  for (int i = 2; i < argc; ++i) {
    for (const fs::path& path : inputsOf(argv[i])) {
      good = replay(*target, path) && good;
      ++count;
    }
  }
  // The empty input is part of every corpus.
  target->run(reinterpret_cast<const uint8_t*>(""), 0);
  std::fprintf(stderr, "%zu inputs\n", count);
  return good && count > 0 ? 0 : 1;
}
