// SPDX-License-Identifier: Apache-2.0
#include "lower_tfl/signed_codes.hpp"

#include <algorithm>

#include "tfl/ops.hpp"

namespace carina::lower_tfl {
namespace {

bool isUnsignedCode(const ir::Value& value) {
  return value.dtype() == DType::UInt8 && value.quantization.has_value();
}

Tensor signedTensor(const Tensor& tensor) {
  Tensor result = Tensor::uninitialized(DType::Int8, tensor.shape());
  const auto from = tensor.as<uint8_t>();
  std::transform(from.begin(), from.end(), result.mutableAs<int8_t>().begin(),
                 [](uint8_t code) { return static_cast<int8_t>(code - kSignedOffset); });
  return result;
}

}  // namespace

std::optional<SignedNetwork> signedCodes(const ir::Graph& network) {
  std::optional<SignedNetwork> result;
  std::unordered_map<const ir::Value*, ir::Value*> copies;
  const auto change = [&](const ir::Value* value) {
    if (!value || !isUnsignedCode(*value)) return;
    if (!result) result.emplace(SignedNetwork{network.clone(&copies), {}});
    ir::Value* copy = copies.at(value);
    if (!result->bytes.insert(copy).second) return;
    for (int64_t& zero : copy->quantization->zeroPoints) zero -= kSignedOffset;
    if (copy->isConstant()) {
      copy->setConstant(signedTensor(copy->constant()));
    } else {
      copy->type.dtype = DType::Int8;
    }
  };
  for (const ir::Value* input : network.inputs()) change(input);
  for (const ir::Node* node : network.nodes()) {
    for (const ir::Value* operand : node->operands()) change(operand);
    for (const ir::Value* value : node->results()) change(value);
  }
  return result;
}

bool takesUnsigned(const ir::OpDef& def) {
  static const std::unordered_set<const ir::OpDef*> taken{
      &tfl::Conv2d::def(),
      &tfl::DepthwiseConv2d::def(),
      &tfl::TransposeConv::def(),
      &tfl::FullyConnected::def(),
      &tfl::AveragePool2d::def(),
      &tfl::MaxPool2d::def(),
      &tfl::Add::def(),
      &tfl::Sub::def(),
      &tfl::Mul::def(),
      &tfl::Minimum::def(),
      &tfl::Maximum::def(),
      &tfl::Prelu::def(),
      &tfl::Equal::def(),
      &tfl::NotEqual::def(),
      &tfl::Less::def(),
      &tfl::LessEqual::def(),
      &tfl::Greater::def(),
      &tfl::GreaterEqual::def(),
      &tfl::Select::def(),
      &tfl::SelectV2::def(),
      &tfl::Relu::def(),
      &tfl::Relu6::def(),
      &tfl::ReluN1To1::def(),
      &tfl::Logistic::def(),
      &tfl::Tanh::def(),
      &tfl::HardSwish::def(),
      &tfl::LeakyRelu::def(),
      &tfl::Softmax::def(),
      &tfl::Quantize::def(),
      &tfl::Dequantize::def(),
      &tfl::Mean::def(),
      &tfl::Sum::def(),
      &tfl::ReduceMax::def(),
      &tfl::ReduceMin::def(),
      &tfl::ArgMax::def(),
      &tfl::Reshape::def(),
      &tfl::Squeeze::def(),
      &tfl::ExpandDims::def(),
      &tfl::Concatenation::def(),
      &tfl::Pack::def(),
      &tfl::Unpack::def(),
      &tfl::Split::def(),
      &tfl::SplitV::def(),
      &tfl::Slice::def(),
      &tfl::StridedSlice::def(),
      &tfl::Pad::def(),
      &tfl::Padv2::def(),
      &tfl::MirrorPad::def(),
      &tfl::Transpose::def(),
      &tfl::ReverseV2::def(),
      &tfl::Tile::def(),
      &tfl::BroadcastTo::def(),
      &tfl::Gather::def(),
      &tfl::DepthToSpace::def(),
      &tfl::SpaceToDepth::def(),
      &tfl::BatchToSpaceNd::def(),
      &tfl::SpaceToBatchNd::def(),
      &tfl::ResizeNearestNeighbor::def(),
      &tfl::ResizeBilinear::def(),
  };
  return taken.contains(&def);
}

}  // namespace carina::lower_tfl
