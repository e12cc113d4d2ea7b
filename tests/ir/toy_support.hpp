// SPDX-License-Identifier: Apache-2.0
// Inference and verification of the toy dialect that these tests build graphs with.
#pragma once

#include "ir/graph.hpp"

namespace carina::toy {
namespace infer {
Result<std::vector<ir::Type>> same(const ir::Node& node);
}
namespace check {
Status sameShapes(const ir::Node& node);
}
}  // namespace carina::toy
