// SPDX-License-Identifier: Apache-2.0
#include "compiler/schedule/split_weights.hpp"

#include <cstring>

#include "compiler/schedule/weight_streams.hpp"

namespace carina::compiler {
namespace {

constexpr int64_t kChannels = 16;  // number that the hardware computes and stores together

/// Rows [first, first + count) of the outermost dimension.
Tensor rows(const Tensor& tensor, int64_t first, int64_t count) {
  Shape shape = tensor.shape();
  const int64_t row = tensor.numBytes() / shape[0];
  shape[0] = count;
  Tensor part = Tensor::uninitialized(tensor.dtype(), shape);
  std::memcpy(part.mutableBytes().data(), tensor.bytes().data() + first * row,
              static_cast<size_t>(count * row));
  return part;
}

/// The values of output channels [first, first + count) if there is one per channel.
ir::Ints channels(const ir::Ints& values, int64_t first, int64_t count) {
  if (values.size() == 1) return values;
  return {values.begin() + first, values.begin() + first + count};
}

void split(ir::Node* node, int64_t step) {
  auto builder = ir::Builder::beforeNode(node);
  const npu_ir::Conv conv(node);
  ir::Value* whole = node->result();
  const int64_t depth = whole->shape().back();
  std::vector<npu_ir::Piece> pieces;
  for (int64_t c = 0; c < depth; c += step) {
    const int64_t count = std::min(step, depth - c);
    npu_ir::OutputStage stage = npu_ir::outputStage(node);
    stage.multipliers = channels(stage.multipliers, c, count);
    stage.shifts = channels(stage.shifts, c, count);
    ir::Value* part =
        npu_ir::createConv(builder, conv.ifm(), builder.constant(rows(conv.weight()->constant(), c, count)),
                           builder.constant(rows(conv.bias()->constant(), c, count)), npu_ir::window(node),
                           channels(conv.weightZp(), c, count), stage, whole->dtype());
    Shape box = whole->shape();
    box.back() = count;
    pieces.push_back({part, c, {whole->shape()[1] * depth, depth, 1}});
  }
  ir::Value* joined = npu_ir::createJoin(builder, pieces, whole->type);
  joined->quantization = whole->quantization;
  std::swap(joined->name, whole->name);
  node->graph().replaceAllUses(whole, joined);
  node->graph().erase(node);
}

}  // namespace

void splitWeights(ir::Graph& graph) {
  std::vector<std::pair<ir::Node*, int64_t>> large;
  for (ir::Node* node : graph.nodes()) {
    if (!ir::isa<npu_ir::Conv>(node)) continue;
    const int64_t depth = node->result()->shape().back();
    const int64_t parts = ceilDiv(estimateEncodedBytes(node), kPartBytes);
    const int64_t step = roundUp(ceilDiv(depth, parts), kChannels);
    if (parts <= kMaxParts && step < depth) large.emplace_back(node, step);
  }
  for (const auto& [node, step] : large) split(node, step);
  graph.eraseDeadNodes();
}

}  // namespace carina::compiler
