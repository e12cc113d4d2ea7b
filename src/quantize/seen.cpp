// SPDX-License-Identifier: Apache-2.0
#include "quantize/seen.hpp"

#include <algorithm>

namespace carina::quantize {
namespace {

/// Whether a value is read only by clamps of the same group, possibly in another shape. What these clip is
/// clipped by their codes as well and need not be in the range: the -1e9 of a mask that is a network input.
bool endsInClamps(const ir::Value& value, size_t group, const Annotation& annotation) {
  if (value.unused() || value.isGraphOutput()) return false;
  const auto& uses = value.uses();
  return std::all_of(uses.begin(), uses.end(), [&](const ir::Use& use) {
    if (use.node->results().size() != 1) return false;
    const ir::Value& result = *use.node->result();
    const auto made = annotation.producedIn.find(&result);
    if (made == annotation.producedIn.end() || made->second != group) return false;
    return isClamp(*use.node) || (use.node->def().has(ir::kView) && endsInClamps(result, group, annotation));
  });
}

}  // namespace

/// The groups that observe a value.
GroupsOf groupsOf(const Annotation& annotation) {
  GroupsOf result;
  for (size_t g = 0; g < annotation.groups.size(); ++g) {
    if (annotation.groups[g].widened) continue;
    for (const Form& form : annotation.groups[g].forms) {
      if (!endsInClamps(*form.value, g, annotation)) result[form.value].push_back(g);
    }
  }
  return result;
}

void Seen::add(const GroupsOf& observing, const LayerInputs& layers, const ir::Value& value,
               const Tensor& tensor) {
  if (layers.wants(value)) inputs[&value].push_back(tensor);
  if (value.isConstant()) return;
  if (const auto norm = rows.find(&value); norm != rows.end()) norm->second.add(tensor.as<float>());
  const auto found = observing.find(&value);
  if (found == observing.end()) return;
  for (const size_t g : found->second) groups[g].add(tensor);
}

}  // namespace carina::quantize
