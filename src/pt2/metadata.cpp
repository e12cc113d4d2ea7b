// SPDX-License-Identifier: Apache-2.0
#include "pt2/metadata.hpp"

#include <algorithm>
#include <charconv>
#include <vector>

namespace carina::pt2 {
namespace {

/// Messages and reports repeat the path for every node of a module, so it is truncated to this length.
constexpr size_t kMaxPath = 1024;

/// Splits at `separator` outside of brackets, parentheses and quotes.
std::vector<std::string_view> splitOutside(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  int depth = 0;
  char quote = '\0';
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '[' || c == '(') {
      ++depth;
    } else if ((c == ']' || c == ')') && depth > 0) {
      --depth;
    } else if (c == separator && depth == 0) {
      parts.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  parts.push_back(text.substr(begin));
  return parts;
}

/// "L['self'].layers['0'].conv[1]" (torch 2.6, strict) to "layers.0.conv.1"; plain paths stay as they are.
std::string plainPath(std::string_view path) {
  if (path.substr(0, 2) == "L[") {
    const size_t end = path.find(']');
    path = end == std::string_view::npos ? std::string_view() : path.substr(end + 1);
  }
  std::string plain;
  for (char c : path) {
    if (c == ']' || c == '\'' || c == '"') continue;
    if (c == '[') c = '.';
    // paths such as x.['0'] leave two dots
    if (c == '.' && (plain.empty() || plain.back() == '.')) continue;
    if (plain.size() == kMaxPath) return plain + "...";
    plain += c;
  }
  return plain;
}

/// An entry that export inserted for a node outside of any module.
bool isMadeUp(std::string_view key) {
  return key.find("_from_metadata_hook") != std::string_view::npos;
}

bool isTorchFile(std::string_view file) {
  return file.find("/torch/") != std::string_view::npos || file.find("\\torch\\") != std::string_view::npos ||
         file.find("/torchvision/") != std::string_view::npos ||
         file.find("/torchao/") != std::string_view::npos;
}

}  // namespace

std::string modulePathOf(std::string_view moduleStack) {
  const auto entries = splitOutside(moduleStack, ';');
  const auto fields = splitOutside(entries.back(), ',');
  if (fields.size() < 2 || isMadeUp(fields[0])) return "";
  return plainPath(fields[1]);
}

std::vector<ModuleClass> moduleClassesOf(std::string_view moduleStack) {
  std::vector<ModuleClass> classes;
  for (std::string_view entry : splitOutside(moduleStack, ';')) {
    const auto fields = splitOutside(entry, ',');
    if (fields.size() < 3 || isMadeUp(fields[0]) || fields[2].empty()) continue;
    classes.push_back({plainPath(fields[1]), std::string(fields[2])});
  }
  return classes;
}

std::vector<ModuleClass> readModuleClasses(std::optional<JsonValue> metadata) {
  simdjson::dom::object object;
  std::string_view text;
  if (!metadata || metadata->get_object().get(object) != simdjson::SUCCESS ||
      object.at_key("nn_module_stack").get_string().get(text) != simdjson::SUCCESS)
    return {};
  return moduleClassesOf(text);
}

std::string sourceLineOf(std::string_view stackTrace) {
  std::string best, fallback;
  constexpr std::string_view kFile = "File \"", kLine = "\", line ";
  while (!stackTrace.empty()) {  // a frame's location is on a line of its own
    const size_t length = std::min(stackTrace.find('\n'), stackTrace.size());
    const std::string_view text = stackTrace.substr(0, length);
    stackTrace.remove_prefix(std::min(length + 1, stackTrace.size()));
    const size_t at = text.find(kFile), quote = text.rfind(kLine);
    if (at == std::string_view::npos || quote == std::string_view::npos || quote < at + kFile.size())
      continue;
    const std::string_view file = text.substr(at + kFile.size(), quote - at - kFile.size());
    int line = 0;
    const char* begin = text.data() + quote + kLine.size();
    const auto [end, error] = std::from_chars(begin, text.data() + text.size(), line);
    if (error != std::errc() || file.size() > kMaxPath) continue;
    (isTorchFile(file) ? fallback : best) = fmt::format("{}:{}", file, line);
  }
  return best.empty() ? fallback : best;
}

ir::LocationRef readLocation(std::string_view nodeName, std::optional<JsonValue> metadata) {
  auto location = std::make_shared<ir::Location>();
  location->name = nodeName;
  simdjson::dom::object object;
  if (metadata && metadata->get_object().get(object) == simdjson::SUCCESS) {
    std::string_view text;
    if (object.at_key("nn_module_stack").get_string().get(text) == simdjson::SUCCESS)
      location->modulePath = modulePathOf(text);
    if (object.at_key("stack_trace").get_string().get(text) == simdjson::SUCCESS)
      location->source = sourceLineOf(text);
  }
  return location;
}

}  // namespace carina::pt2
