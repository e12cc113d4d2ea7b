// SPDX-License-Identifier: Apache-2.0
#include "cpu/kernel_form.hpp"

#include <algorithm>

#include "aten/ops.hpp"
#include "cpu/kernel_schema.hpp"
#include "decompose/decompose.hpp"

namespace carina::cpu {
namespace {

/// Whether a kernel computes the node as it is. The kernel of index_put accepts indices, but no masks.
bool hasKernel(const ir::Node& node) {
  const auto put = ir::dynCast<aten::IndexPut>(&node);
  const auto isMask = [](const ir::Value* index) {
    return index && (index->dtype() == DType::Bool || index->dtype() == DType::UInt8);
  };
  if (put && std::any_of(put.indices().begin(), put.indices().end(), isMask)) return false;
  return findKernelFor(node.opName()) != nullptr;
}

}  // namespace

Status toKernelForm(ir::Graph& graph) {
  return decompose::forKernels(graph, hasKernel);
}

}  // namespace carina::cpu
