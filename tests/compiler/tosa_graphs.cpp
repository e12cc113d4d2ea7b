// SPDX-License-Identifier: Apache-2.0
#include "compiler/tosa_graphs.hpp"

#include "compiler/dialect/npu_ir.hpp"
#include "compiler/legalize/legalize.hpp"
#include "compiler/program_runner.hpp"

namespace carina::test {

ir::Value* TosaBuilder::scalar(DType dtype, int64_t value) {
  Tensor tensor = Tensor::zeros(dtype, {1});
  tensor.setIntegerAt(0, value);
  return graph_.addConstant(std::move(tensor));
}

ir::Value* TosaBuilder::shapeValue(const ir::Ints& values) {
  Tensor tensor = Tensor::zeros(DType::Shape, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) tensor.setIntegerAt(static_cast<int64_t>(i), values[i]);
  return graph_.addConstant(std::move(tensor));
}

ir::Value* TosaBuilder::random(DType dtype, const Shape& shape) {
  return graph_.addConstant(randomTensor(dtype, shape, seed_++));
}

namespace {

DType accumulator(const ir::Value* input) {
  return input->dtype() == DType::Int16 ? DType::Int48 : DType::Int32;
}

}  // namespace

ir::Value* TosaBuilder::conv(ir::Value* input, int64_t channels, ir::Ints kernel, ir::Ints stride,
                             ir::Ints pad, int64_t inputZero, ir::Ints dilation) {
  const DType acc = accumulator(input);
  ir::Value* weight = random(DType::Int8, {channels, kernel[0], kernel[1], input->dim(3)});
  ir::Value* bias = random(acc, {channels});
  return make<tosa::Conv2d>(input, weight, bias, scalar(input->dtype(), inputZero), scalar(DType::Int8, 0),
                            std::move(pad), std::move(stride), std::move(dilation), false, acc);
}

ir::Value* TosaBuilder::depthwise(ir::Value* input, ir::Ints kernel, ir::Ints stride, ir::Ints pad,
                                  int64_t inputZero, int64_t multiple, ir::Ints dilation) {
  const DType acc = accumulator(input);
  ir::Value* weight = random(DType::Int8, {kernel[0], kernel[1], input->dim(3), multiple});
  ir::Value* bias = random(acc, {input->dim(3) * multiple});
  return make<tosa::DepthwiseConv2d>(input, weight, bias, scalar(input->dtype(), inputZero),
                                     scalar(DType::Int8, 0), std::move(pad), std::move(stride),
                                     std::move(dilation), false, acc);
}

ir::Value* TosaBuilder::sums(ir::Value* input, const ir::Ints& kernel, ir::Ints stride, int64_t inputZero) {
  Tensor ones = Tensor::zeros(DType::Int8, {kernel[0], kernel[1], input->dim(3), 1});
  for (int64_t i = 0; i < ones.numElements(); ++i) ones.setIntegerAt(i, 1);
  return make<tosa::DepthwiseConv2d>(
      input, constant(std::move(ones)), constant(Tensor::zeros(DType::Int32, {input->dim(3)})),
      scalar(DType::Int8, inputZero), scalar(DType::Int8, 0), ir::Ints{0, 0, 0, 0}, std::move(stride),
      ir::Ints{1, 1}, false, DType::Int32);
}

ir::Value* TosaBuilder::rescale(ir::Value* input, DType type, int64_t multiplier, int64_t shift,
                                int64_t inputZero, int64_t outputZero, bool doubleRound) {
  Tensor multipliers = Tensor::zeros(DType::Int32, {1}), shifts = Tensor::zeros(DType::Int8, {1});
  multipliers.setIntegerAt(0, multiplier);
  shifts.setIntegerAt(0, shift);
  return tosa::Rescale::create(
             builder_, input, constant(std::move(multipliers)), constant(std::move(shifts)),
             scalar(input->dtype(), inputZero), scalar(type, outputZero), true,
             doubleRound ? tosa::RoundingMode::DOUBLE_ROUND : tosa::RoundingMode::SINGLE_ROUND, false, false,
             false, {{type, input->shape()}})
      .output();
}

ir::Value* TosaBuilder::rescalePerChannel(ir::Value* input, DType type, int64_t shift, int64_t outputZero) {
  const int64_t channels = input->shape().back();
  Tensor multipliers = Tensor::zeros(DType::Int32, {channels}),
         shifts = Tensor::zeros(DType::Int8, {channels});
  const Tensor noise = randomTensor(DType::Int16, {channels}, seed_++);
  for (int64_t c = 0; c < channels; ++c) {
    multipliers.setIntegerAt(c, (int64_t{1} << 30) + (noise.integerAt(c) + 32768) * 16000);
    shifts.setIntegerAt(c, shift + c % 3);
  }
  return tosa::Rescale::create(builder_, input, constant(std::move(multipliers)), constant(std::move(shifts)),
                               scalar(input->dtype(), 0), scalar(type, outputZero), true,
                               tosa::RoundingMode::SINGLE_ROUND, true, false, false, {{type, input->shape()}})
      .output();
}

ir::Value* TosaBuilder::rescale48(ir::Value* input, DType type, int64_t multiplier, int64_t shift) {
  Tensor multipliers = Tensor::zeros(DType::Int16, {1}), shifts = Tensor::zeros(DType::Int8, {1});
  multipliers.setIntegerAt(0, multiplier);
  shifts.setIntegerAt(0, shift);
  return tosa::Rescale::create(builder_, input, constant(std::move(multipliers)), constant(std::move(shifts)),
                               scalar(input->dtype(), 0), scalar(type, 0), false,
                               tosa::RoundingMode::SINGLE_ROUND, false, false, false,
                               {{type, input->shape()}})
      .output();
}

ir::Value* TosaBuilder::clamp(ir::Value* input, int64_t low, int64_t high) {
  return make<tosa::Clamp>(input, ir::Attribute(low), ir::Attribute(high), tosa::NanMode::PROPAGATE);
}

ir::Value* TosaBuilder::table(ir::Value* input) {
  if (input->dtype() == DType::Int8) return make<tosa::Table>(input, random(DType::Int8, {256}));
  Tensor entries = Tensor::zeros(DType::Int16, {513});
  const Tensor noise = randomTensor(DType::Int8, {513}, seed_++);
  int64_t value = -16000;
  for (int64_t i = 0; i < 513; ++i) {
    value = std::min<int64_t>(std::max<int64_t>(value + 64 + noise.integerAt(i), -32768), 32767);
    entries.setIntegerAt(i, value);
  }
  return make<tosa::Table>(input, constant(std::move(entries)));
}

ir::Value* TosaBuilder::averagePool(ir::Value* input, ir::Ints kernel, ir::Ints stride, ir::Ints pad,
                                    int64_t zero) {
  return make<tosa::AvgPool2d>(input, scalar(input->dtype(), zero), scalar(input->dtype(), zero),
                               std::move(kernel), std::move(stride), std::move(pad), DType::Int32);
}

ir::Value* TosaBuilder::maxPool(ir::Value* input, ir::Ints kernel, ir::Ints stride, ir::Ints pad) {
  return make<tosa::MaxPool2d>(input, std::move(kernel), std::move(stride), std::move(pad),
                               tosa::NanMode::PROPAGATE);
}

ir::Value* TosaBuilder::mul(ir::Value* a, ir::Value* b, int64_t shift) {
  return make<tosa::Mul>(a, b, scalar(DType::Int8, shift));
}

ir::Value* TosaBuilder::reshape(ir::Value* input, const Shape& shape) {
  return make<tosa::Reshape>(input, shapeValue(shape));
}

ir::Value* TosaBuilder::slice(ir::Value* input, const Shape& start, const Shape& size) {
  return make<tosa::Slice>(input, shapeValue(start), shapeValue(size));
}

ir::Value* TosaBuilder::transpose(ir::Value* input, ir::Ints perms) {
  return make<tosa::Transpose>(input, std::move(perms));
}

ir::Value* TosaBuilder::concat(std::vector<ir::Value*> inputs, int64_t axis) {
  return make<tosa::Concat>(std::move(inputs), axis);
}

ir::Value* TosaBuilder::pad(ir::Value* input, const ir::Ints& padding, int64_t value) {
  return make<tosa::Pad>(input, shapeValue(padding), scalar(input->dtype(), value));
}

ir::Value* TosaBuilder::tile(ir::Value* input, const ir::Ints& multiples) {
  return make<tosa::Tile>(input, shapeValue(multiples));
}

ir::Graph TosaBuilder::finish(std::vector<ir::Value*> outputs) {
  graph_.setOutputs(std::move(outputs));
  return std::move(graph_);
}

std::vector<std::string> operations(const ir::Graph& tosa, const char* target) {
  const auto machine = npu::makeMachine(target, "", "");
  if (!machine.ok()) return {machine.error().str()};
  const auto graph = compiler::legalize(tosa, *machine->target);
  if (!graph.ok()) return {graph.error().str()};
  std::vector<std::string> names;
  for (const ir::Node* node : graph->nodes()) {
    if (npu_ir::hasOutputStage(node)) names.emplace_back(node->opName());
  }
  return names;
}

}  // namespace carina::test
