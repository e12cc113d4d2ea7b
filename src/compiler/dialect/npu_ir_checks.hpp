// SPDX-License-Identifier: Apache-2.0
// Verifiers of the npu dialect's operators, named by npu_ops.json.
#pragma once

#include "ir/graph.hpp"

namespace carina::npu_ir::check {

Status view(const ir::Node& node);
Status join(const ir::Node& node);
Status conv(const ir::Node& node);
Status depthwise(const ir::Node& node);
Status matmul(const ir::Node& node);
Status codedConv(const ir::Node& node);
Status pool(const ir::Node& node);
Status elementwise(const ir::Node& node);
Status resize(const ir::Node& node);
Status gather(const ir::Node& node);
Status scatter(const ir::Node& node);

}  // namespace carina::npu_ir::check
