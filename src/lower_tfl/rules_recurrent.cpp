// SPDX-License-Identifier: Apache-2.0
// UNIDIRECTIONAL_SEQUENCE_LSTM, unrolled over its time steps or, if there are many, as a loop over chunks of
// them, with the integer arithmetic of TFLite's kernel: gates are int16 with 12 fraction bits before their
// functions and 15 after them, the cell is int16. The four gates are adjacent channels: one convolution with
// a scale per channel, one sum, and one function for the three gates that share it.
#include <algorithm>
#include <cmath>

#include "lower_tfl/lowering.hpp"
#include "lower_tfl/tables.hpp"
#include "tosa/tosa.hpp"

namespace carina::lower_tfl {
namespace {

constexpr double kGateScale = 0x1p-12, kFunctionScale = 0x1p-15;
constexpr int64_t kMaxUnrolled = 256;
constexpr int64_t kMinChunk = 16, kMostChunk = 48, kChunk = 25;  // steps per loop iteration

/// Steps per iteration: the divisor of `steps` within the limits that is nearest to kChunk; if there is none,
/// kChunk, and the remaining steps follow the loop.
int64_t chunkOf(int64_t steps) {
  int64_t best = 0;
  for (int64_t chunk = kMinChunk; chunk <= kMostChunk; ++chunk) {
    if (steps % chunk == 0 && (best == 0 || std::abs(chunk - kChunk) < std::abs(best - kChunk))) best = chunk;
  }
  return best == 0 ? kChunk : best;
}

/// The weights of one gate: the filter of the input, its bias, and the filter of the previous state.
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
    State state{emit_.constant(filled(DType::Int8, hidden_.zero)), emit_.constant(filled(DType::Int16, 0))};
    int64_t done = 0;
    std::vector<ir::Value*> parts;
    if (steps_ > kMaxUnrolled) {
      const int64_t chunk = chunkOf(steps_);
      CARINA_TRY(ir::Value * looped, loop(steps_ / chunk, chunk, state));
      done = steps_ / chunk * chunk;
      parts.push_back(looped);
    }
    if (done < steps_) {
      ir::Value* rest = done == 0 ? sequence_ : emit_.sliceAxis(sequence_, 0, done, steps_ - done);
      CARINA_TRY(ir::Value * stepped, unrolled(rest, steps_ - done, state));
      parts.push_back(stepped);
    }
    ir::Value* all = joined(parts);
    if (!op_.timeMajor()) all = emit_.transpose(all, {1, 0, 2});
    lowering_.define(op_.output(), all);
    return {};
  }

 private:
  /// In channel order: those with a logistic function first.
  enum Gate : size_t { kInput, kForget, kOutput, kCell };
  static constexpr int64_t kGates = 4;
  using Gates = std::array<ir::Value*, kGates>;

  std::array<GateWeights, kGates> gates() const {
    return {{{op_.inputToInputWeights(), op_.inputGateBias(), op_.recurrentToInputWeights()},
             {op_.inputToForgetWeights(), op_.forgetGateBias(), op_.recurrentToForgetWeights()},
             {op_.inputToOutputWeights(), op_.outputGateBias(), op_.recurrentToOutputWeights()},
             {op_.inputToCellWeights(), op_.cellBias(), op_.recurrentToCellWeights()}}};
  }

  struct State {
    ir::Value *hidden, *cell;  // [batch, units]
  };

  /// The weights of all gates, concatenated, and the factors that convert their sums to int16 with
  /// kGateScale.
  struct Filters {
    int64_t depth = 0;
    Tensor weights, biases;
    std::vector<Multiplier> factors;
  };

  /// The results of `count` steps, [count, batch, units], from inputs of [count, batch, depth].
  Result<ir::Value*> unrolled(ir::Value* sequence, int64_t count, State& state) {
    // The input's contribution to the gates, for all steps at once: [count, batch, 4 * units].
    CARINA_TRY(ir::Value * products, product(sequence, count * batch_, input_, x_));
    ir::Value* brought = emit_.reshape(products, {count, batch_, kGates * units_});
    std::vector<ir::Value*> outputs;
    for (int64_t step = 0; step < count; ++step) {
      ir::Value* part = emit_.reshape(emit_.sliceAxis(brought, 0, step, 1), {batch_, kGates * units_});
      CARINA_TRY(const auto gate, gatesOf(part, state.hidden));
      CARINA_TRY(state.cell, nextCell(state.cell, gate));
      ir::Value* squashed = wideSigmoid(lowering_, state.cell, cellInput_, true);
      CARINA_TRY(state.hidden, scaledProduct(squashed, gate[kOutput], DType::Int8,
                                             kFunctionScale * kFunctionScale / hidden_.scale, hidden_.zero));
      outputs.push_back(emit_.reshape(state.hidden, {1, batch_, units_}));
    }
    return joined(outputs);
  }

  /// The same for the first `turns` * `chunk` steps, as a counting loop: inputs and results are stored as
  /// rows, one per iteration, which GATHER reads and SCATTER writes.
  Result<ir::Value*> loop(int64_t turns, int64_t chunk, State& state) {
    const int64_t depth = op_.input()->dim(2), results = chunk * batch_ * units_;
    ir::Value* used = turns * chunk == steps_ ? sequence_ : emit_.sliceAxis(sequence_, 0, 0, turns * chunk);
    std::vector<ir::Value*> carried{emit_.constant(Tensor::zeros(DType::Int32, {1, 1})), state.hidden,
                                    state.cell, emit_.reshape(used, {1, turns, chunk * batch_ * depth}),
                                    emit_.constant(Tensor::zeros(DType::Int8, {1, turns, results}))};
    ir::Graph test("turns"), body("steps");
    for (const ir::Value* value : carried) {
      test.addInput(value->type);
      body.addInput(value->type);
    }
    test.setOutputs({lowering_.in(test, [&] {
      ir::Value* counter = test.inputs()[0];
      return emit_.binary(Binary::Greater, emit_.number(turns, counter), counter);
    })});
    CARINA_RETURN_IF_ERROR(lowering_.in(body, [&]() -> Status {
      const std::vector<ir::Value*> in = body.inputs();
      State inner{in[1], in[2]};
      ir::Value* slice = emit_.reshape(emit_.gather(in[3], in[0]), {chunk, batch_, depth});
      CARINA_TRY(ir::Value * made, unrolled(slice, chunk, inner));
      body.setOutputs({emit_.binary(Binary::Add, in[0], emit_.number(1, in[0])), inner.hidden, inner.cell,
                       in[3], emit_.scatter(in[4], in[0], emit_.reshape(made, {1, 1, results}))});
      return {};
    }));
    const auto after =
        emit_.controlFlow(tosa::WhileLoop::def(), {std::move(carried)}, std::move(test), std::move(body));
    state = {after[1], after[2]};
    return emit_.reshape(after[4], {turns * chunk, batch_, units_});
  }

  Status prepare() {
    if (op_.fusedActivationFunction() != tfl::Activation::TANH)
      return fail(Code::NoIntegerForm, "its activation is not TANH").withRemedy("use the standard LSTM");
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
    CARINA_TRY(input_, filters(&GateWeights::input, true, x_));
    CARINA_TRY(recurrent_, filters(&GateWeights::recurrent, false, hidden_));
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

  Result<Filters> filters(const ir::Value* GateWeights::*filter, bool withBias, const Quantum& from) const {
    Filters all;
    all.depth = (gates()[0].*filter)->dim(1);
    all.weights = Tensor::uninitialized(DType::Int8, {kGates * units_, 1, 1, all.depth});
    all.biases = Tensor::zeros(DType::Int32, {kGates * units_});
    auto weights = all.weights.mutableAs<int8_t>().begin();
    auto biases = all.biases.mutableAs<int32_t>().begin();
    for (const GateWeights& gate : gates()) {
      CARINA_TRY(const Quantum scale, lowering_.quantumOf(gate.*filter));
      weights = std::ranges::copy((gate.*filter)->constant().as<int8_t>(), weights).out;
      if (withBias) biases = std::ranges::copy(gate.bias->constant().as<int32_t>(), biases).out;
      const double factor = static_cast<double>(from.single() * scale.single()) / kGateScale;
      all.factors.insert(all.factors.end(), static_cast<size_t>(units_), quantizeMultiplier(factor));
    }
    return all;
  }

  /// rows * filters of all gates (+ biases) as int16 with kGateScale: [1, count, 1, 4 * units].
  Result<ir::Value*> product(ir::Value* rows, int64_t count, const Filters& by, const Quantum& from) {
    ir::Value* sums = emit_.conv2d(emit_.reshape(rows, {1, count, 1, by.depth}), emit_.constant(by.weights),
                                   emit_.constant(by.biases), from.zero, 0, {{1, 1}, {1, 1}, {0, 0, 0, 0}});
    return lowering_.rescale(sums, DType::Int16, 0, 0, by.factors);
  }

  /// a + b, saturated to int16.
  ir::Value* sum(ir::Value* a, ir::Value* b) {
    return lowering_.narrowed(emit_.binary(Binary::Add, lowering_.widened(a, 0), lowering_.widened(b, 0)),
                              DType::Int16, 0);
  }

  /// `brought`: [batch, 4 * units].
  Result<Gates> gatesOf(ir::Value* brought, ir::Value* hidden) {
    CARINA_TRY(ir::Value * kept, product(hidden, batch_, recurrent_, hidden_));
    ir::Value* all = sum(brought, emit_.reshape(kept, {batch_, kGates * units_}));
    const auto part = [&](ir::Value* of, int64_t gate, int64_t count) {
      return emit_.sliceAxis(of, 1, gate * units_, count * units_);
    };
    ir::Value* open = wideSigmoid(lowering_, part(all, 0, kCell), WideInput(), false);
    return Gates{part(open, kInput, 1), part(open, kForget, 1), part(open, kOutput, 1),
                 wideSigmoid(lowering_, part(all, kCell, 1), WideInput(), true)};
  }

  Result<ir::Value*> scaledProduct(ir::Value* a, ir::Value* b, DType to, double factor, int64_t zero) {
    ir::Value* product = emit_.binary(Binary::Mul, lowering_.widened(a, 0), lowering_.widened(b, 0));
    return lowering_.rescale(product, to, 0, zero, quantizeMultiplier(factor));
  }

  Result<ir::Value*> nextCell(ir::Value* cell, const Gates& gate) {
    CARINA_TRY(ir::Value * kept, scaledProduct(gate[kForget], cell, DType::Int16, kFunctionScale, 0));
    CARINA_TRY(ir::Value * added, scaledProduct(gate[kInput], gate[kCell], DType::Int16,
                                                kFunctionScale * kFunctionScale / cell_.scale, 0));
    ir::Value* next = sum(kept, added);
    if (op_.cellClip() <= 0) return next;
    const double clip =
        std::min(static_cast<double>(static_cast<float>(op_.cellClip())) / cell_.scale, 32767.0);
    return lowering_.clamped(next, {-static_cast<int64_t>(clip), static_cast<int64_t>(clip)});
  }

  /// TOSA concatenates at most 64 values at a time.
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
  Filters input_, recurrent_;
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
