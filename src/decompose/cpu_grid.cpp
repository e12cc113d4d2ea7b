// SPDX-License-Identifier: Apache-2.0
// Sampling of volumes, for which ExecuTorch has no kernel.
#include "aten/ops.hpp"
#include "decompose/cpu_rewrites.hpp"
#include "decompose/rewrites.hpp"

namespace carina::decompose::cpu {
namespace {

Result<ir::Value*> rewriteGridSampler3d(ir::Builder& b, ir::Node* node) {
  if (!ir::isa<aten::GridSampler>(node) || node->operands()[0]->rank() != 5) return nullptr;
  return sampleByGathers(b, node);
}

}  // namespace

void addGridRewrites(std::vector<ir::Rewrite>& rewrites) {
  addRewrites(rewrites, rewriteGridSampler3d);
}

}  // namespace carina::decompose::cpu
