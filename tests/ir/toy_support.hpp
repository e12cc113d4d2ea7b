// SPDX-License-Identifier: Apache-2.0
// Inference and verification for the toy dialect, with which these tests build graphs.
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
