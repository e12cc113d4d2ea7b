// SPDX-License-Identifier: Apache-2.0
// UNIDIRECTIONAL_SEQUENCE_LSTM, unrolled over its time steps, with the integer arithmetic of TFLite's kernel:
// gates in int16 with 12 fraction bits before their functions and 15 behind, a cell of int16.
#include <algorithm>
#include <cmath>

#include "lower_tfl/lowering.hpp"
#include "lower_tfl/tables.hpp"

namespace carina::lower_tfl {
namespace {

constexpr double kGateScale = 0x1p-12, kFunctionScale = 0x1p-15;
constexpr int64_t kMostSteps = 256;

/// What one gate multiplies by: the filter of the input, its bias, and the filter of the state before.
struct GateWeights {
  const ir::Value *input, *bias, *recurrent;
};

class Lstm {
 public:
  Lstm(Lowering& lowering, const tfl::UnidirectionalSequenceLstm& op)
      : lowering_(lowering),
        emit_(lowering.emit()),
        op_(op),
        steps_(op.input()->dim(op.timeMajor() ? 0 : 1)),
        batch_(op.input()->dim(op.timeMajor() ? 1 : 0)),
        units_(op.output()->dim(2)) {}

  Status run() {
    CARINA_RETURN_IF_ERROR(prepare());
    // What the input brings to each gate, for all steps at once: [steps, batch, units].
    std::vector<ir::Value*> brought;
    for (const GateWeights& gate : gates()) {
      CARINA_TRY(ir::Value * all, product(sequence_, steps_ * batch_, gate.input, gate.bias, x_));
      brought.push_back(emit_.reshape(all, {steps_, batch_, units_}));
    }
    ir::Value* hidden = emit_.constant(filled(DType::Int8, hidden_.zero));
    ir::Value* cell = emit_.constant(filled(DType::Int16, 0));
    std::vector<ir::Value*> outputs;
    for (int64_t step = 0; step < steps_; ++step) {
      std::array<ir::Value*, 4> gate{};
      for (size_t g = 0; g < 4; ++g) {
        ir::Value* part = emit_.reshape(emit_.sliceAxis(brought[g], 0, step, 1), {batch_, units_});
        CARINA_TRY(gate[g], gateOf(part, hidden, gates()[g].recurrent, g == kCell));
      }
      CARINA_TRY(cell, nextCell(cell, gate));
      ir::Value* squashed = wideSigmoid(lowering_, cell, cellInput_, true);
      CARINA_TRY(hidden, scaledProduct(squashed, gate[kOutput], DType::Int8,
                                       kFunctionScale * kFunctionScale / hidden_.scale, hidden_.zero));
      outputs.push_back(emit_.reshape(hidden, {1, batch_, units_}));
    }
    ir::Value* all = joined(outputs);
    if (!op_.timeMajor()) all = emit_.transpose(all, {1, 0, 2});
    lowering_.define(op_.output(), all);
    return {};
  }

 private:
  enum Gate : size_t { kInput, kForget, kCell, kOutput };

  std::array<GateWeights, 4> gates() const {
    return {{{op_.inputToInputWeights(), op_.inputGateBias(), op_.recurrentToInputWeights()},
             {op_.inputToForgetWeights(), op_.forgetGateBias(), op_.recurrentToForgetWeights()},
             {op_.inputToCellWeights(), op_.cellBias(), op_.recurrentToCellWeights()},
             {op_.inputToOutputWeights(), op_.outputGateBias(), op_.recurrentToOutputWeights()}}};
  }

  Status prepare() {
    if (op_.fusedActivationFunction() != tfl::Activation::TANH)
      return fail(Code::NoIntegerForm, "its activation is not TANH").withRemedy("use the standard LSTM");
    if (steps_ > kMostSteps)
      return fail(Code::NoIntegerForm, "it has {} time steps, more than the {} that can be unrolled", steps_,
                  kMostSteps)
          .withRemedy("run shorter sequences");
    CARINA_TRY(x_, lowering_.bytesOf(op_.input(), "input"));
    CARINA_TRY(hidden_, lowering_.bytesOf(op_.outputState(), "hidden state"));
    CARINA_TRY(cell_, lowering_.codesOf(op_.cellState(), "cell state"));
    if (op_.cellState()->dtype() != DType::Int16 || op_.output()->dtype() != DType::Int8)
      return fail(Code::NoIntegerForm, "its cell state is {}, its result {}",
                  ir::typeText(op_.cellState()->type), ir::typeText(op_.output()->type))
          .withRemedy("convert the network with int8 activations and an int16 cell");
    int exponent = 0;
    if (std::frexp(cell_.scale, &exponent) != 0.5 || exponent > -4 || exponent < -15)
      return fail(Code::UnusableQuantization,
                  "its cell state has scale {}, not a power of two from 2^-16 to 2^-5", cell_.scale);
    const int left = exponent - 1 + 12;
    cellInput_ = left >= 0 ? WideInput{int64_t{3} << left, 0} : WideInput{3, -left};
    for (const GateWeights& gate : gates()) {
      CARINA_RETURN_IF_ERROR(checkFilter(gate.input, op_.input()->dim(2)));
      CARINA_RETURN_IF_ERROR(checkFilter(gate.recurrent, units_));
      if (!gate.bias->isConstant() || gate.bias->dtype() != DType::Int32 ||
          gate.bias->numElements() != units_)
        return fail(Code::NoIntegerForm, "bias '{}' is {}", gate.bias->name, ir::typeText(gate.bias->type));
    }
    sequence_ = lowering_.get(op_.input());
    if (!op_.timeMajor()) sequence_ = emit_.transpose(sequence_, {1, 0, 2});
    return {};
  }

  Status checkFilter(const ir::Value* filter, int64_t depth) const {
    if (!filter->isConstant() || filter->dtype() != DType::Int8 || filter->shape() != Shape{units_, depth})
      return fail(Code::NoIntegerForm, "filter '{}' is {}, not a constant of int8 [{},{}]", filter->name,
                  ir::typeText(filter->type), units_, depth);
    CARINA_TRY(const Quantum quantum, lowering_.quantumOf(filter));
    if (quantum.zero != 0)
      return fail(Code::UnusableQuantization, "filter '{}' has zero point {}", filter->name, quantum.zero);
    return {};
  }

  Tensor filled(DType type, int64_t value) const {
    Tensor tensor = Tensor::uninitialized(type, {batch_, units_});
    for (int64_t i = 0; i < tensor.numElements(); ++i) tensor.setIntegerAt(i, value);
    return tensor;
  }

  /// rows * filter (+ bias) as int16 with kGateScale.
  Result<ir::Value*> product(ir::Value* rows, int64_t count, const ir::Value* filter, const ir::Value* bias,
                             const Quantum& from) {
    CARINA_TRY(const Quantum weights, lowering_.quantumOf(filter));
    const int64_t depth = filter->dim(1);
    ir::Value* weight = emit_.constant(filter->constant().reshaped({units_, 1, 1, depth}));
    ir::Value* offset =
        emit_.constant(bias ? bias->constant().reshaped({units_}) : Tensor::zeros(DType::Int32, {units_}));
    ir::Value* sums = emit_.conv2d(emit_.reshape(rows, {1, count, 1, depth}), weight, offset, from.zero, 0,
                                   {{1, 1}, {1, 1}, {0, 0, 0, 0}});
    const double factor = static_cast<double>(from.single() * weights.single()) / kGateScale;
    return lowering_.rescale(sums, DType::Int16, 0, 0, quantizeMultiplier(factor));
  }

  /// a + b, saturated to int16.
  ir::Value* sum(ir::Value* a, ir::Value* b) {
    return lowering_.narrowed(emit_.binary(Binary::Add, lowering_.widened(a, 0), lowering_.widened(b, 0)),
                              DType::Int16, 0);
  }

  Result<ir::Value*> gateOf(ir::Value* brought, ir::Value* hidden, const ir::Value* recurrent, bool tanh) {
    CARINA_TRY(ir::Value * kept, product(hidden, batch_, recurrent, nullptr, hidden_));
    return wideSigmoid(lowering_, sum(brought, emit_.reshape(kept, {batch_, units_})), WideInput(), tanh);
  }

  Result<ir::Value*> scaledProduct(ir::Value* a, ir::Value* b, DType to, double factor, int64_t zero) {
    ir::Value* product = emit_.binary(Binary::Mul, lowering_.widened(a, 0), lowering_.widened(b, 0));
    return lowering_.rescale(product, to, 0, zero, quantizeMultiplier(factor));
  }

  Result<ir::Value*> nextCell(ir::Value* cell, const std::array<ir::Value*, 4>& gate) {
    CARINA_TRY(ir::Value * kept, scaledProduct(gate[kForget], cell, DType::Int16, kFunctionScale, 0));
    CARINA_TRY(ir::Value * added, scaledProduct(gate[kInput], gate[kCell], DType::Int16,
                                                kFunctionScale * kFunctionScale / cell_.scale, 0));
    ir::Value* next = sum(kept, added);
    if (op_.cellClip() <= 0) return next;
    const double clip =
        std::min(static_cast<double>(static_cast<float>(op_.cellClip())) / cell_.scale, 32767.0);
    return lowering_.clamped(next, {-static_cast<int64_t>(clip), static_cast<int64_t>(clip)});
  }

  /// TOSA joins at most 64 values at a time.
  ir::Value* joined(std::vector<ir::Value*> parts) {
    while (parts.size() > 1) {
      std::vector<ir::Value*> next;
      for (size_t i = 0; i < parts.size(); i += 64) {
        const size_t end = std::min(parts.size(), i + 64);
        next.push_back(emit_.concat({parts.begin() + static_cast<std::ptrdiff_t>(i),
                                     parts.begin() + static_cast<std::ptrdiff_t>(end)},
                                    0));
      }
      parts = std::move(next);
    }
    return parts[0];
  }

  Lowering& lowering_;
  Emitter& emit_;
  const tfl::UnidirectionalSequenceLstm op_;
  const int64_t steps_, batch_, units_;
  Quantum x_, hidden_, cell_;
  WideInput cellInput_;
  ir::Value* sequence_ = nullptr;  // [steps, batch, depth]
};

Status lowerLstm(Lowering& lowering, const ir::Node& node) {
  return Lstm(lowering, ir::dynCast<tfl::UnidirectionalSequenceLstm>(&node)).run();
}

}  // namespace

void addRecurrentRules(Rules& rules) {
  rules[&tfl::UnidirectionalSequenceLstm::def()] = lowerLstm;
}

}  // namespace carina::lower_tfl
