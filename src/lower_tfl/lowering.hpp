// SPDX-License-Identifier: Apache-2.0
// The state of one lowering: the lowered form of each value of the network, and the tools shared by the
// rules. TensorFlow Lite is channel-last like TOSA: values keep their shapes.
#pragma once

#include <array>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ir/graph.hpp"
#include "lower/emitter.hpp"
#include "lower_tfl/fixed_point.hpp"
#include "lower_tfl/lower.hpp"
#include "tfl/ops.hpp"

namespace carina::lower_tfl {

using lower::Binary;
using lower::Emitter;
using lower::Reduce;
using lower::Unary;

/// Scale and zero point of a value with one of each. Scales are float32 in files: kernels differ in which
/// results they round to float32.
struct Quantum {
  double scale = 1;
  int64_t zero = 0;
  float single() const { return static_cast<float>(scale); }
};

/// The codes that an activation permits, first to last.
struct CodeRange {
  int64_t low = 0, high = 0;
};

class Lowering {
 public:
  /// `bytes`: values of `source` that are uint8 in the network (SignedNetwork).
  explicit Lowering(const ir::Graph& source, std::unordered_set<const ir::Value*> bytes = {})
      : source_(source), bytes_(std::move(bytes)), target_(source.name), emitter_(target_) {}
  Lowering(const Lowering&) = delete;
  Lowering& operator=(const Lowering&) = delete;
  Result<Lowered> run();

  // For the rules
  Emitter& emit() { return emitter_; }
  ir::Builder builder() { return ir::Builder(*within_, nullptr, location_); }
  /// Runs `make` with everything emitted into a region of the graph, where values of the network are not
  /// available.
  template <typename Make>
  auto in(ir::Graph& region, const Make& make) {
    ir::Graph* const outerGraph = std::exchange(within_, &region);
    Emitter outer = std::exchange(emitter_, Emitter(region));
    emitter_.setLocation(location_);
    auto made = make();
    emitter_ = std::move(outer);
    within_ = outerGraph;
    return made;
  }

  /// The value in the TOSA graph; constants are added on first use.
  ir::Value* get(const ir::Value* value);
  /// The same with leading dimensions of size 1 up to `rank`.
  ir::Value* ranked(const ir::Value* value, int64_t rank);
  void define(const ir::Value* value, ir::Value* tosa) { values_[value] = tosa; }

  /// Whether the value is uint8 in the network; here it is int8, with codes and zero points lower by 128.
  bool isUnsigned(const ir::Value* value) const { return bytes_.contains(value); }

  /// Fails if the value has no quantization (a float network, or plain integers), a scale per channel, or a
  /// zero point outside its type.
  Result<Quantum> quantumOf(const ir::Value* value) const;
  /// Requires 8 or 16 bits, quantized. `what` names the value in the message: "input".
  Result<Quantum> codesOf(const ir::Value* value, std::string_view what) const;
  /// Requires int8.
  Result<Quantum> bytesOf(const ir::Value* value, std::string_view what) const;

  /// One factor, or one per index of the last dimension; TFLite's two roundings.
  Result<ir::Value*> rescale(ir::Value* input, DType to, int64_t inputZero, int64_t outputZero,
                             std::span<const Multiplier> factors);
  Result<ir::Value*> rescale(ir::Value* input, DType to, int64_t inputZero, int64_t outputZero,
                             const Multiplier& factor) {
    return rescale(input, to, inputZero, outputZero, std::span(&factor, 1));
  }
  /// 48-bit sums by 16-bit multipliers, rounded once: like TFLite for int16 activations.
  Result<ir::Value*> rescale48(ir::Value* input, DType to, std::span<const Multiplier> factors);
  /// input - zero as int32, times 2^shift.
  ir::Value* widened(ir::Value* input, int64_t zero, int shift = 0);
  ir::Value* shiftedLeft(ir::Value* value, int shift);
  /// Converts integers to a narrower type: + zero, saturated.
  ir::Value* narrowed(ir::Value* input, DType to, int64_t zero);
  /// An int32 number as a constant that broadcasts against `like`.
  ir::Value* number(int64_t value, const ir::Value* like);
  /// round(a * b / 2^31) of int32 values.
  ir::Value* highProduct(ir::Value* a, ir::Value* b, int shift = 31);
  /// round(a / 2^b), half up.
  ir::Value* shiftedRight(ir::Value* a, ir::Value* b);

  /// Limits of a fused activation in the codes of `output`. Fails for activations without limits (TANH,
  /// SIGN_BIT).
  Result<CodeRange> activation(tfl::Activation activation, const ir::Value* output) const;
  ir::Value* clamped(ir::Value* value, const CodeRange& range);

 private:
  Status addInputs();
  Status addInput(const ir::Value* input);
  Status addOutputs();
  Status lowerNode(const ir::Node& node);

  const ir::Graph& source_;
  std::unordered_set<const ir::Value*> bytes_;
  ir::Graph target_;
  ir::Graph* within_ = &target_;  // or a region
  Emitter emitter_;
  ir::LocationRef location_;
  std::unordered_map<const ir::Value*, ir::Value*> values_;
  std::vector<DType> inputTypes_, outputTypes_;
};

/// How one operator is lowered; the node's place is added to errors. Rules define all results.
using Rule = Status (*)(Lowering&, const ir::Node&);
using Rules = std::unordered_map<const ir::OpDef*, Rule>;

void addWindowRules(Rules& rules);
void addArithmeticRules(Rules& rules);
void addFunctionRules(Rules& rules);
void addSoftmaxRules(Rules& rules);
void addRecurrentRules(Rules& rules);
void addReduceRules(Rules& rules);
void addMoveRules(Rules& rules);
void addResizeRules(Rules& rules);
void addLogicRules(Rules& rules);

}  // namespace carina::lower_tfl
