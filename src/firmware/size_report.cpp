// SPDX-License-Identifier: Apache-2.0
#include "firmware/size_report.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

namespace carina::firmware {
namespace {

std::vector<std::string_view> wordsOf(std::string_view line) {
  std::vector<std::string_view> words;
  size_t at = 0;
  while ((at = line.find_first_not_of(' ', at)) != std::string_view::npos) {
    const size_t end = std::min(line.find(' ', at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

/// -1 if it is not a hexadecimal number.
int64_t hexNumber(std::string_view text) {
  if (text.substr(0, 2) != "0x") return -1;
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size() || value > INT64_MAX) return -1;
  return static_cast<int64_t>(value);
}

struct Member {
  std::string_view file, component;
};
constexpr Member kMembers[] = {
    {"startup.cpp", "startup and faults"},
    {"console.cpp", "UART and number formatting"},
    {"language.cpp", "text generation: prompts, token loop"},
    {"linked.cpp", "runner and its report"},
    {"semihosted.cpp", "runner and its report"},
    {"semihosting.cpp", "runner and its report"},
    {"session.cpp", "runner and its report"},
    {"npu.cpp", "NPU set-up, interrupt, timing adapters"},
    {"npu_device.cpp", "NPU set-up, interrupt, timing adapters"},
    {"flatbuffer.cpp", "loader and verification"},
    {"program.cpp", "loader and verification"},
    {"plan_reader.cpp", "loader and verification"},
    {"method.cpp", "executor"},
    {"kernel.cpp", "executor"},
    {"status.cpp", "error messages"},
    {"tokenizer.cpp", "tokenizer"},
    {"words.cpp", "tokenizer"},
    {"ethosu_driver.cpp", "Ethos-U driver"},
    {"ethosu_validator.cpp", "command validation"},
    {"ethosu_delegate.cpp", "EthosU delegate"},
};

/// `path` is "folder/libNAME.a(member.cpp.obj)" or an object file.
std::string_view componentOf(std::string_view path) {
  const size_t open = path.rfind('(');
  if (open == std::string_view::npos) return "program's tables";
  const std::string_view archive = path.substr(0, open);
  const std::string_view member = path.substr(open + 1);
  if (archive.find("libcarina_") == std::string_view::npos) return "C library, soft arithmetic";
  for (const Member& known : kMembers) {
    if (member.substr(0, known.file.size() + 1) == std::string(known.file) + ".") return known.component;
  }
  return archive.find("libcarina_runtime") != std::string_view::npos ? "CPU kernels"
                                                                     : "runner and its report";
}

enum class Kind : uint8_t { None, Text, Data, Bss, Stack };
Kind kindOf(std::string_view section) {
  if (section == ".vectors" || section == ".text") return Kind::Text;
  if (section == ".data") return Kind::Data;
  if (section == ".bss") return Kind::Bss;
  return section == ".stack" ? Kind::Stack : Kind::None;
}

class MapReader {
 public:
  Result<SizeReport> read(std::string_view map) {
    const size_t begin = map.find("\nLinker script and memory map\n");
    if (begin == std::string_view::npos) return fail(Code::ToolFailed, "the linker wrote no map");
    map.remove_prefix(begin + 1);
    while (!map.empty()) {
      const size_t end = std::min(map.find('\n'), map.size());
      line(map.substr(0, end));
      map.remove_prefix(std::min(end + 1, map.size()));
    }
    SizeReport report;
    report.stackBytes = stack_;
    report.total.name = "total";
    for (auto& [name, size] : sizes_) {
      size.name = name;
      report.total.text += size.text;
      report.total.data += size.data;
      report.total.bss += size.bss;
      report.components.push_back(size);
    }
    if (report.total.text == 0) return fail(Code::ToolFailed, "the linker's map holds no code");
    std::stable_sort(report.components.begin(), report.components.end(),
                     [](const ComponentSize& a, const ComponentSize& b) { return a.text > b.text; });
    return report;
  }

 private:
  /// Section names that are too long for their column are on a line of their own.
  void line(std::string_view text) {
    if (text.empty()) return;
    std::vector<std::string_view> words = wordsOf(text);
    if (words.empty()) return;
    const bool output = text[0] == '.';
    const bool input = text[0] == ' ' && text.size() > 1 && text[1] != ' ' && words[0].substr(0, 2) != "*(";
    if (output || input) {
      pending_ = {words[0], output};
      words.erase(words.begin());
    } else if (!pending_) {
      return;
    }
    if (words.empty()) return;
    const auto [name, isOutput] = *pending_;
    pending_.reset();
    const int64_t address = hexNumber(words[0]);
    const int64_t bytes = words.size() > 1 ? hexNumber(words[1]) : -1;
    if (isOutput) {
      kind_ = kindOf(name);
      if (kind_ == Kind::Stack && bytes > 0) stack_ = bytes;
      return;
    }
    if (address < 0 || bytes <= 0) return;
    if (name == "*fill*") return add("padding", bytes);
    if (words.size() < 3) return;
    add(componentOf(text.substr(text.find(words[2]))), bytes);
  }

  void add(std::string_view component, int64_t bytes) {
    if (kind_ == Kind::None || kind_ == Kind::Stack) return;
    ComponentSize& size = sizes_[std::string(component)];
    (kind_ == Kind::Text ? size.text : kind_ == Kind::Data ? size.data : size.bss) += bytes;
  }

  std::map<std::string, ComponentSize> sizes_;
  std::optional<std::pair<std::string_view, bool>> pending_;
  Kind kind_ = Kind::None;
  int64_t stack_ = 0;
};

}  // namespace

Result<SizeReport> readMap(std::string_view map) {
  return MapReader().read(map);
}

}  // namespace carina::firmware
