// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>

#include "aten/conv_op.hpp"
#include "aten/ops.hpp"
#include "quantize/affine.hpp"
#include "quantize/annotate.hpp"
#include "quantize/whole_dim.hpp"

namespace carina::quantize {
namespace {

/// How the weight of a layer is laid out: `rows` by `columns` kernels of `taps` elements. A row is an output
/// channel, and its columns are the inputs of its group; in a transposed convolution the other way round.
struct WeightLayout {
  explicit WeightLayout(const WeightedOp& layer) {
    const auto conv = aten::asConvolution(layer.node);
    const Shape& shape = layer.weight->shape();
    transposed = conv && conv->transposed;
    rows = static_cast<size_t>(shape[0]);
    columns = static_cast<size_t>(shape[1]);
    rowsPerGroup = rows / (conv ? static_cast<size_t>(conv->groups) : 1);
    for (size_t d = 2; d < shape.size(); ++d) taps *= static_cast<size_t>(shape[d]);
  }
  size_t outputs() const { return transposed ? columns * (rows / rowsPerGroup) : rows; }

  size_t rows = 0, columns = 0, taps = 1, rowsPerGroup = 1;
  bool transposed = false;
};

/// Whether every result of the layer reads all taps of its kernel: a constant added to its input adds the
/// same to all of them.
bool readsAllTaps(const WeightedOp& layer) {
  const auto conv = aten::asConvolution(layer.node);
  const auto isZero = [](int64_t pad) { return pad == 0; };
  return !conv || (!conv->transposed && std::all_of(conv->padBefore.begin(), conv->padBefore.end(), isZero) &&
                   std::all_of(conv->padAfter.begin(), conv->padAfter.end(), isZero));
}

/// The dimension of the layer's input that holds its channels.
int64_t inputDimOf(const WeightedOp& layer) {
  const auto conv = aten::asConvolution(layer.node);
  return layer.input->rank() - 1 - (conv ? static_cast<int64_t>(conv->spatialRank()) : 0);
}

/// The layers that read a value through movements and concatenations that leave a dimension intact.
class Readers {
 public:
  /// Whether only layers do.
  bool explore(ir::Value* value, int64_t dim) {
    reach(value, dim);
    while (possible_ && !open_.empty()) {
      ir::Value* next = open_.back();
      open_.pop_back();
      possible_ = visit(*next, dims_.at(next));
    }
    return possible_ && std::all_of(joins_.begin(), joins_.end(), [&](const Join& join) {
             const auto operands = join.node->operands();
             return std::all_of(operands.begin(), operands.end(), [&](const ir::Value* operand) {
               const auto known = dims_.find(operand);
               return known != dims_.end() && known->second == join.dim;
             });
           });
  }
  const std::vector<WeightedOp>& layers() const { return layers_; }

 private:
  struct Join {
    const ir::Node* node = nullptr;
    int64_t dim = 0;
  };

  void reach(ir::Value* value, int64_t dim) {
    const auto [known, isNew] = dims_.emplace(value, dim);
    if (isNew) open_.push_back(value);
    possible_ = possible_ && known->second == dim;
  }

  bool visit(const ir::Value& value, int64_t dim) {
    if (value.uses().empty() || value.isGraphOutput()) return false;
    return std::all_of(value.uses().begin(), value.uses().end(),
                       [&](const ir::Use& use) { return visitUse(use, dim); });
  }

  bool visitUse(const ir::Use& use, int64_t dim) {
    ir::Node* node = use.node;
    if (const auto layer = asWeighted(*node)) {
      layers_.push_back(*layer);
      return use.operand == 0 && inputDimOf(*layer) == dim && layer->weight->dtype() == DType::Float32 &&
             layer->weight->hasOneUse() && (!layer->bias || layer->bias->dtype() == DType::Float32);
    }
    if (node->results().size() != 1) return false;
    ir::Value* result = node->result(0);
    if (const auto cat = ir::dynCast<aten::Cat>(node)) {
      if ((cat.dim() < 0 ? cat.dim() + result->rank() : cat.dim()) == dim) return false;
      joins_.push_back({node, dim});
      reach(result, dim);
      return true;
    }
    for (int64_t d = 0; d < result->rank(); ++d) {
      const auto before = wholeDimBefore(*node, d);
      if (!before || before->operand != use.operand || before->dim != dim) continue;
      reach(result, d);
      return true;
    }
    return false;
  }

  std::unordered_map<const ir::Value*, int64_t> dims_;
  std::vector<ir::Value*> open_;
  std::vector<WeightedOp> layers_;
  std::vector<Join> joins_;
  bool possible_ = true;
};

struct Folded {
  Tensor weight, bias;
};

/// The layer's weight and bias with the function in them; empty if rounding the weight would cost more than
/// that. A weight is off by up to half a step of its output channel's codes, which the largest weight of the
/// channel determines. In the sums, this error is multiplied by the inputs: by a mean square of scale^2 +
/// shift^2 as they are, and of one without the function, as norms leave it.
std::optional<Folded> fold(const WeightedOp& layer, const Affine& affine, double mostNoise) {
  const WeightLayout layout(layer);
  Folded folded{Tensor::uninitialized(DType::Float32, layer.weight->shape()),
                Tensor::uninitialized(DType::Float32, Shape{static_cast<int64_t>(layout.outputs())})};
  const float* from = layer.weight->constant().as<float>().data();
  float* to = folded.weight.mutableAs<float>().data();
  struct Channel {
    float largestBefore = 0, largestAfter = 0;
    double inputs = 0, power = 0, shift = 0;
  };
  std::vector<Channel> channels(layout.outputs());
  for (size_t row = 0; row < layout.rows; ++row) {
    for (size_t column = 0; column < layout.columns; ++column) {
      const size_t inGroup = row / layout.rowsPerGroup * layout.columns + column;
      const size_t input = layout.transposed ? row : inGroup;
      const float scale = affine.scale[input], shift = affine.shift[input];
      Channel& channel = channels[layout.transposed ? inGroup : row];
      channel.inputs += static_cast<double>(layout.taps);
      channel.power += static_cast<double>(layout.taps) *
                       (static_cast<double>(scale) * scale + static_cast<double>(shift) * shift);
      for (size_t tap = 0; tap < layout.taps; ++tap, ++from, ++to) {
        *to = *from * scale;
        channel.largestBefore = std::max(channel.largestBefore, std::abs(*from));
        channel.largestAfter = std::max(channel.largestAfter, std::abs(*to));
        channel.shift += static_cast<double>(*from) * shift;
      }
    }
  }
  const auto bias = folded.bias.mutableAs<float>();
  double before = 0, after = 0;
  for (size_t o = 0; o < channels.size(); ++o) {
    const Channel& channel = channels[o];
    before += static_cast<double>(channel.largestBefore) * channel.largestBefore * channel.power;
    after += static_cast<double>(channel.largestAfter) * channel.largestAfter * channel.inputs;
    bias[o] = static_cast<float>((layer.bias ? layer.bias->constant().as<float>()[o] : 0.0f) + channel.shift);
    if (!std::isfinite(channel.largestAfter) || !std::isfinite(bias[o])) return std::nullopt;
  }
  if (after > mostNoise * before) return std::nullopt;
  return folded;
}

}  // namespace

void replaceByValue(ir::Node* node, ir::Value* by) {
  ir::Graph& graph = node->graph();
  if (by->name.empty()) std::swap(by->name, node->result(0)->name);
  graph.replaceAllUses(node->result(0), by);
  graph.erase(node);
}

bool foldIntoReaders(ir::Node* node, ir::Value* input, int64_t dim, const Affine& affine, double mostNoise) {
  Readers readers;
  if (!readers.explore(node->result(0), dim)) return false;
  const bool shifts = std::any_of(affine.shift.begin(), affine.shift.end(), [](float s) { return s != 0; });
  const bool scales = std::any_of(affine.scale.begin(), affine.scale.end(), [](float s) { return s != 1; });
  std::vector<Folded> folded;
  for (const WeightedOp& layer : readers.layers()) {
    if (shifts && !readsAllTaps(layer)) return false;
    auto constants = fold(layer, affine, mostNoise);
    if (!constants) return false;
    folded.push_back(std::move(*constants));
  }
  ir::Graph& graph = node->graph();
  for (size_t i = 0; i < folded.size(); ++i) {
    const WeightedOp& layer = readers.layers()[i];
    if (scales)
      layer.node->setOperandGroup(WeightedOp::kWeightOperand,
                                  std::array{graph.addConstant(std::move(folded[i].weight))});
    if (shifts)
      layer.node->setOperandGroup(WeightedOp::kBiasOperand,
                                  std::array{graph.addConstant(std::move(folded[i].bias))});
  }
  replaceByValue(node, input);
  return true;
}

}  // namespace carina::quantize
