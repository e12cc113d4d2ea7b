// SPDX-License-Identifier: Apache-2.0
// A support rule: the condition, the level of an operation that violates it, and the text. The rules of an
// operator are an ordered list; the functions below create shared rules.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "ethosn/support/support.hpp"

namespace carina::ethosn::support {

constexpr auto kUnsupported = SupportLevel::Unsupported;
constexpr auto kEstimate = SupportLevel::EstimateOnly;

/// What rules examine. A rule that fails may store values for its text.
struct Context {
  Context(const Target& onTarget, const SupportQuery& asked) : target(onTarget), query(asked) {}

  const Target& target;
  const SupportQuery& query;
  size_t index = 0;  // of the input (PerInput) or output (PerOutput) under test
  std::array<uint64_t, 3> numbers{};

  const Operation& operation() const { return query.operation; }
  const TensorInfo& input(size_t i = 0) const { return query.inputs[i]; }
  const TensorInfo& eachInput() const { return query.inputs[index]; }
  /// Computed on the first call: the preceding rules have validated the parameters.
  const std::vector<TensorInfo>& outputs();

  bool says(uint64_t a, uint64_t b = 0, uint64_t c = 0) {
    numbers = {a, b, c};
    return false;
  }

 private:
  std::optional<std::vector<TensorInfo>> outputs_;
};

/// Consecutive rules of scope PerInput (PerOutput) are tried together, for one input (output) after the
/// other.
enum class Scope : uint8_t { Once, PerInput, PerOutput };

struct Rule {
  SupportLevel level = SupportLevel::Unsupported;
  bool (*holds)(Context&) = nullptr;
  std::string text;  // format string for Context::numbers
  Scope scope = Scope::Once;
};

using Rules = std::vector<Rule>;

/// Concatenates the lists in order.
Rules join(std::initializer_list<Rules> parts);

// Shared rules. `what` begins the text.
Rules batchIsOne();
Rules depthFits(const std::string& what, size_t input = 0);  // of an input
Rules outputDepthFits(const std::string& what);              // of the first output
Rules eightBits(const std::string& what, size_t input = 0);
Rules channelsLast(const std::string& text);  // format of the first input: NHWC or NHWCB
Rules oneInputScale(const std::string& what, SupportLevel level = SupportLevel::Unsupported);
Rules oneOutputScale(const std::string& what);
Rules biasScalesMatch(const std::string& what);  // along the right dimension, one per element
Rules weightScalesMatch(const std::string& what);
Rules inputZeroPointFits(const std::string& text = "Zero point out of range for input info",
                         size_t input = 0);
Rules outputZeroPointFits(const std::string& text);  // checked against the type of the first input
Rules weightZeroPointFits(SupportLevel level);
Rules outputIsExpected();
Rules overallScaleFits(const std::string& what);  // input * weights / output
Rules paddingFits(bool ofOutput);  // within what the MCE can pad; ofOutput: transpose convolution

bool isChannelsLast(const TensorInfo& info);
bool isEightBits(DataType type);
bool zeroPointFits(DataType type, const Quantization& quantization);
/// Whether an identity convolution with weights of scale 1/128 can requantize.
bool canRequantize(float inputScale, float outputScale);
/// Input scales x weight scales; a single scale is repeated if the other operand has several.
std::vector<float> productScales(const TensorInfo& input, const TensorInfo& weights);

/// The rules of an operator.
const Rules& rulesOf(Operator op);

// By kind of operator: convolutions.cpp, elementwise.cpp, pooling.cpp, shapes.cpp.
Rules convolutionRules(Operator op);
Rules fullyConnectedRules();
Rules elementwiseRules(Operator op);
Rules poolingRules();
Rules shapeRules(Operator op);

}  // namespace carina::ethosn::support
