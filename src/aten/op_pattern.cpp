// SPDX-License-Identifier: Apache-2.0
#include "aten/op_pattern.hpp"

#include <fnmatch.h>

namespace carina::aten {

bool matchesGlob(const std::string& pattern, const std::string& text) {
  return fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

bool matchesOperator(const std::string& pattern, std::string_view opName) {
  const std::string full = pattern.find('.') == std::string::npos ? "aten." + pattern : pattern;
  const std::string name(opName);
  if (matchesGlob(full, name)) return true;
  const size_t overload = name.rfind('.');
  return overload != std::string::npos && matchesGlob(full, name.substr(0, overload));
}

bool matchesModule(const std::string& pattern, const std::string& path) {
  if (path.empty()) return false;
  for (size_t end = path.find('.'); end != std::string::npos; end = path.find('.', end + 1)) {
    if (matchesGlob(pattern, path.substr(0, end))) return true;
  }
  return matchesGlob(pattern, path);
}

bool matchesClass(const std::string& pattern, const std::string& type) {
  if (matchesGlob(pattern, type)) return true;
  const std::string name = type.substr(type.rfind('.') + 1);
  if (pattern.find('.') == std::string::npos) return matchesGlob(pattern, name);
  return type.starts_with("torch.nn.modules.") && matchesGlob(pattern, "torch.nn." + name);
}

}  // namespace carina::aten
