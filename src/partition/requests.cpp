// SPDX-License-Identifier: Apache-2.0
#include "partition/requests.hpp"

#include "aten/op_pattern.hpp"

namespace carina::partition {

std::vector<const std::string*> Requests::matching(const ir::Node& node) const {
  static const ir::Location kNowhere;
  const ir::Location& location = node.location() ? *node.location() : kNowhere;
  const auto source = sourceOps.find(location.name);
  const std::string_view name = node.opName();
  std::vector<const std::string*> found;
  for (const std::string& op : ops) {
    if (aten::matchesOperator(op, name) ||
        (namesAreGlobs && aten::matchesGlob(op, std::string(name.substr(name.find('.') + 1)))) ||
        (source != sourceOps.end() && aten::matchesOperator(op, source->second)))
      found.push_back(&op);
  }
  for (const std::string& pattern : names) {
    if (aten::matchesGlob(pattern, location.name)) found.push_back(&pattern);
  }
  for (const std::string& pattern : modules) {
    if (aten::matchesGlob(pattern, location.modulePath) ||
        aten::matchesGlob(pattern + ".*", location.modulePath))
      found.push_back(&pattern);
  }
  return found;
}

}  // namespace carina::partition
