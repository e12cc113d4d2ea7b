// SPDX-License-Identifier: Apache-2.0
#include "compiler/schedule/known_weights.hpp"

#include <algorithm>

#include "compiler/dialect/npu_ir.hpp"
#include "compiler/schedule/constant_pool.hpp"

namespace carina::compiler {
namespace {

/// Different weights have different hashes except by accident. A collision only costs a block that was chosen
/// in vain: whether bytes are stored once is decided by comparing the bytes themselves.
uint64_t contentOf(const ir::Node* node) {
  const ir::Value* weights = node->operand(1);
  uint64_t hash = ConstantPool::hashOf(weights->constant().bytes());
  const auto add = [&hash](uint64_t value) {
    hash = (hash ^ value) * uint64_t{0x9e3779b97f4a7c15};
    hash ^= hash >> 32;
  };
  add(ir::isa<npu_ir::Depthwise>(node) ? 1 : 0);
  add(static_cast<uint64_t>(weights->dtype()));
  for (const int64_t dim : weights->shape()) add(static_cast<uint64_t>(dim));
  for (const int64_t zero : node->attributeAs<ir::Ints>(node->def().attributes.size() - 1))
    add(static_cast<uint64_t>(zero));
  return hash;
}

uint64_t hashOf(const WeightSlice& slice, Schedule& schedule) {
  const auto at = static_cast<size_t>(slice.constantAt(0)), bytes = static_cast<size_t>(slice.bytes);
  return slice.pieces.size() > 1
             ? 0
             : ConstantPool::hashOf(ByteSpan(schedule.constants.bytes()).subspan(at, bytes));
}

}  // namespace

std::span<const WeightForm> KnownWeights::formsOf(const ir::Node* node) const {
  const auto known = forms_.find(contentOf(node));
  return known == forms_.end() ? std::span<const WeightForm>() : known->second;
}

bool KnownWeights::holdAll(Schedule& schedule) const {
  for (const Pass& pass : schedule.passes) {
    for (const WeightSlice& slice : pass.slices) {
      if (!slices_.contains(hashOf(slice, schedule))) return false;
    }
  }
  return true;
}

void KnownWeights::add(Schedule& schedule) {
  arenaBytes_ = std::max(arenaBytes_, schedule.arenaBytes);
  for (const Pass& pass : schedule.passes) {
    for (const WeightSlice& slice : pass.slices) slices_.insert(hashOf(slice, schedule));
    if (pass.isDma || !pass.operation.weights || pass.slices.empty() || ir::isa<npu_ir::CodedConv>(pass.node))
      continue;
    const WeightForm form{npu::weightOrder(*schedule.machine.target, pass.operation),
                          pass.slices.front().channels.depth};
    std::vector<WeightForm>& forms = forms_[contentOf(pass.node)];
    if (std::find(forms.begin(), forms.end(), form) == forms.end()) forms.push_back(form);
  }
}

}  // namespace carina::compiler
