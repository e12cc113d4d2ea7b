// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target's entry point on files and folders of inputs without libFuzzer, so that every committed
// corpus is a test. usage: NAME_replay PATH...   The exit status is 1 if a path cannot be read or no input
// was found. A fault of the target ends the program; the last line on stderr names the input.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> inputsOf(const fs::path& path) {
  if (!fs::is_directory(path)) return {path};
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

bool replay(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "%s: cannot be read\n", path.c_str());
    return false;
  }
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  std::fprintf(stderr, "%s\n", path.c_str());
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  size_t count = 0;
  bool good = true;
  for (int i = 1; i < argc; ++i) {
    for (const fs::path& path : inputsOf(argv[i])) {
      good = replay(path) && good;
      ++count;
    }
  }
  // The empty input is part of every corpus.
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(""), 0);
  std::fprintf(stderr, "%zu inputs\n", count);
  return good && count > 0 ? 0 : 1;
}
