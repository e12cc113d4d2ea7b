// SPDX-License-Identifier: Apache-2.0
#include "device/tflite_memory.hpp"

#include <algorithm>
#include <cstring>

#include "base/work_budget.hpp"

namespace carina::device {

void TfliteMemory::place(size_t subgraph, int32_t index) {
  if (planned(subgraph, index) || own_.count({subgraph, index}) != 0) return;
  const ByteSpan stored = tensor(subgraph, index).data;
  AlignedBuffer buffer(bytes(subgraph, index));
  if (!stored.empty() && buffer.size() > 0) std::memcpy(buffer.data(), stored.data(), buffer.size());
  own_.emplace(std::pair(subgraph, index), std::move(buffer));
}

rt::Region TfliteMemory::region(size_t subgraph, int32_t index) {
  rt::Region region{nullptr, bytes(subgraph, index), rt::Access::ReadWrite};
  if (planned(subgraph, index)) {
    region.data = arena_.data() + *program_.subgraphs[subgraph].offsets[static_cast<size_t>(index)];
  } else {
    region.data = own_.at({subgraph, index}).data();
    if (!tensor(subgraph, index).data.empty()) region.access = rt::Access::Read;
  }
  return region;
}

void TfliteMemory::copy(size_t fromSubgraph, int32_t from, size_t toSubgraph, int32_t to) {
  const rt::Region source = region(fromSubgraph, from), target = region(toSubgraph, to);
  if (source.bytes > 0) std::memmove(target.data, source.data, source.bytes);
}

int32_t TfliteVariables::handleOf(const std::string& name) {
  const auto [known, isNew] = handles_.emplace(name, static_cast<int32_t>(variables_.size()));
  if (isNew) variables_.emplace_back();
  return known->second;
}

Status TfliteVariables::describe(int32_t handle, size_t bytes, std::byte initial) {
  Variable& variable = variables_[static_cast<size_t>(handle)];
  if (!variable.contents.empty()) return {};
  if (bytes > static_cast<uint64_t>(left_))
    return fail(Code::Excessive, "variables hold more bytes than the limit for a file of this size")
        .withRemedy(kTrustRemedy);
  left_ -= static_cast<int64_t>(bytes);
  variable.initial = initial;
  variable.contents.assign(bytes, initial);
  return {};
}

Status TfliteVariables::check(int32_t handle, size_t bytes) const {
  if (handle < 0 || static_cast<size_t>(handle) >= variables_.size())
    return fail(Code::Damaged, "no VAR_HANDLE created handle {}", handle);
  const size_t held = variables_[static_cast<size_t>(handle)].contents.size();
  if (held == bytes) return {};
  return fail(Code::Damaged, "variable {} holds {} bytes, but the operator expects {}", handle, held, bytes);
}

Status TfliteVariables::assign(int32_t handle, ByteSpan contents) {
  if (handle >= 0 && static_cast<size_t>(handle) < variables_.size())
    CARINA_RETURN_IF_ERROR(describe(handle, contents.size(), std::byte{0}));
  CARINA_RETURN_IF_ERROR(check(handle, contents.size()));
  std::copy(contents.begin(), contents.end(), variables_[static_cast<size_t>(handle)].contents.begin());
  return {};
}

Status TfliteVariables::read(int32_t handle, std::span<std::byte> into) const {
  CARINA_RETURN_IF_ERROR(check(handle, into.size()));
  const auto& contents = variables_[static_cast<size_t>(handle)].contents;
  std::copy(contents.begin(), contents.end(), into.begin());
  return {};
}

void TfliteVariables::reset() {
  for (Variable& variable : variables_)
    std::fill(variable.contents.begin(), variable.contents.end(), variable.initial);
}

}  // namespace carina::device
