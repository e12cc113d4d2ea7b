// SPDX-License-Identifier: Apache-2.0
// Families of rewrites into kernel form. Each replaces its node by operators that have kernels, or leaves it
// and returns false.
#pragma once

#include <vector>

#include "ir/pass.hpp"

namespace carina::decompose::cpu {

void addPointwiseRewrites(std::vector<ir::Rewrite>& rewrites);  // activations, full reductions, norms
void addMatrixRewrites(std::vector<ir::Rewrite>& rewrites);     // linear, matmul
void addWindowRewrites(std::vector<ir::Rewrite>& rewrites);     // convolutions, pools, resizing
void addGridRewrites(std::vector<ir::Rewrite>& rewrites);       // sampling of volumes
void addMoveRewrites(std::vector<ir::Rewrite>& rewrites);       // padding modes, repetition

}  // namespace carina::decompose::cpu
