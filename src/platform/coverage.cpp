// SPDX-License-Identifier: Apache-2.0
#include "platform/coverage.hpp"

#include <algorithm>
#include <map>
#include <vector>

namespace carina::platform {
namespace {

/// Coverage of a source file.
struct FileCoverage {
  std::map<uint32_t, uint64_t> lines;
  struct Function {
    uint32_t line;
    uint64_t count;
  };
  std::map<std::string_view, Function> functions;
};

ByteSpan contentsOf(const ElfImage& image, ByteSpan file, std::string_view name) {
  for (const ElfImage::Section& section : image.sections) {
    if (section.name != name || section.offset > file.size() || section.size > file.size() - section.offset)
      continue;
    return file.subspan(section.offset, section.size);
  }
  return {};
}

/// The function that an address belongs to; null: none. Code that the linker removed remains in the line
/// tables, at addresses without a function.
const ElfImage::Symbol* functionAt(const ElfImage& image, uint32_t address) {
  auto at = std::upper_bound(image.functions.begin(), image.functions.end(), address,
                             [](uint32_t a, const ElfImage::Symbol& symbol) { return a < symbol.address; });
  if (at == image.functions.begin()) return nullptr;
  --at;
  return at->size == 0 || address - at->address < at->size ? &*at : nullptr;
}

}  // namespace

Result<LineTable> lineTableOf(const ElfImage& image, ByteSpan file) {
  const LineSections sections{contentsOf(image, file, ".debug_line"),
                              contentsOf(image, file, ".debug_line_str"),
                              contentsOf(image, file, ".debug_str")};
  if (sections.lines.empty())
    return fail(Code::InvalidImage, "the image has no line table")
        .withRemedy("build it with -g, and do not strip it");
  return readLineTable(sections);
}

std::string lcovText(const ElfImage& image, const LineTable& table,
                     std::span<const Core::Executions> executions) {
  const auto countIn = [&](uint32_t begin, uint32_t end) {
    auto at = std::upper_bound(executions.begin(), executions.end(), begin,
                               [](uint32_t address, const auto& run) { return address < run.end; });
    uint64_t most = 0;
    for (; at != executions.end() && at->begin < end; ++at) most = std::max(most, at->count);
    return most;
  };
  std::vector<FileCoverage> files(table.files.size());
  for (const SourceRange& range : table.ranges) {
    const ElfImage::Symbol* function = functionAt(image, range.begin);
    if (function == nullptr || range.line == 0) continue;
    FileCoverage& file = files[range.file];
    uint64_t& line = file.lines[range.line];
    line = std::max(line, countIn(range.begin, range.end));
    if (function->address == range.begin)
      file.functions.try_emplace(function->name,
                                 FileCoverage::Function{range.line, countIn(range.begin, range.begin + 2)});
  }

  std::string text;
  const auto append = [&text](const std::string& part) { text += part; };
  for (size_t i = 0; i < files.size(); ++i) {
    const FileCoverage& file = files[i];
    if (file.lines.empty()) continue;
    append(fmt::format("TN:\nSF:{}\n", table.files[i]));
    for (const auto& [name, function] : file.functions)
      append(fmt::format("FN:{},{}\n", function.line, name));
    size_t entered = 0, hit = 0;
    for (const auto& [name, function] : file.functions) {
      append(fmt::format("FNDA:{},{}\n", function.count, name));
      entered += function.count != 0 ? 1 : 0;
    }
    append(fmt::format("FNF:{}\nFNH:{}\n", file.functions.size(), entered));
    for (const auto& [line, count] : file.lines) {
      append(fmt::format("DA:{},{}\n", line, count));
      hit += count != 0 ? 1 : 0;
    }
    append(fmt::format("LF:{}\nLH:{}\nend_of_record\n", file.lines.size(), hit));
  }
  return text;
}

}  // namespace carina::platform
