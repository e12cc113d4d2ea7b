// SPDX-License-Identifier: Apache-2.0
#include "quantize/group_params.hpp"

#include <algorithm>
#include <cmath>

#include "aten/ops.hpp"
#include "quantize/loops.hpp"
#include "quantize/settings.hpp"
#include "quantize/whole_values.hpp"

namespace carina::quantize {
namespace {

/// A power of two as scale, and codes limited to the range.
QParams wideParams(const Range& range) {
  constexpr int kBits = 28;  // of 31: the rest is headroom for sums
  constexpr int kLeastExponent = -100;
  const CodeRange all{DType::Int32, -(int64_t{1} << kBits), int64_t{1} << kBits};
  const double low = static_cast<double>(range.min), high = static_cast<double>(range.max);
  const double largest = std::max(std::abs(low), std::abs(high));
  if (!(largest > 0) || !std::isfinite(largest)) return {std::ldexp(1.0, -kBits), 0, all};
  int exponent = 0;
  std::frexp(largest, &exponent);
  const double scale = std::ldexp(1.0, std::max(exponent - kBits, kLeastExponent));
  return {scale,
          0,
          {DType::Int32, static_cast<int64_t>(std::floor(low / scale)),
           static_cast<int64_t>(std::ceil(high / scale))}};
}

std::vector<QParams> paramsOf(const Annotation& annotation, const std::vector<Range>& ranges) {
  std::vector<QParams> params;
  for (size_t g = 0; g < ranges.size(); ++g) {
    const Group& group = annotation.groups[g];
    params.push_back(group.wide ? wideParams(ranges[g])
                                : activationParams(ranges[g], group.precision, group.scheme));
    if (group.prequantizedScale) params.back().scale = *group.prequantizedScale;
  }
  // |code - zero point| of int8 is at most 255, and 255 * 2^7 fits in 16 bits.
  for (size_t g = 0; g < ranges.size(); ++g) {
    if (const auto from = annotation.groups[g].widened) params[g].scale = params[*from].scale * 0x1p-7;
  }
  return params;
}

/// The largest float32 number that times `count` is at most 1.
double fractionOfOne(int64_t count) {
  const double exact = 1.0 / static_cast<double>(count);
  const auto rounded = static_cast<float>(exact);
  return static_cast<double>(static_cast<double>(rounded) > exact ? std::nextafter(rounded, 0.0f) : rounded);
}

/// asin, acos and atanh are defined on [-1, 1]. If rounding pushes the outermost codes past these ends, where
/// the function is NaN, they become -1 and 1: the slope there is unbounded, and both values are frequent.
/// Only atanh is infinite there: its codes get a power-of-two scale, with a code for -1, and the last one
/// stays below 1. So do 16-bit codes, whose tables have entries at -1 and 1.
void keepToDomains(const ir::Graph& graph, const Annotation& annotation, std::vector<QParams>& params) {
  for (const ir::Node* node : nodesWithLoops(graph)) {
    if (!ir::isa<aten::Asin>(node) && !ir::isa<aten::Acos>(node) && !ir::isa<aten::Atanh>(node)) continue;
    const auto group = annotation.groupOfOperand(*node, 0);
    if (!group || annotation.groups[*group].widened || annotation.groups[*group].prequantizedScale) continue;
    QParams& q = params[*group];
    const double low = static_cast<double>(q.codes.min - q.zeroPoint) * q.scale;
    const double high = static_cast<double>(q.codes.max - q.zeroPoint) * q.scale;
    // The zero point is rounded, and an observer may have cut off part of a code.
    const bool snaps = q.codes.dtype == DType::Int8 && !ir::isa<aten::Atanh>(node);
    const double slack = snaps ? q.scale : 0;
    const bool pastLow = low<-1 + slack, pastHigh = high> 1 - slack;
    if ((!pastLow && !pastHigh) || low < -1 - q.scale || high > 1 + q.scale) continue;
    const bool oneSided = q.zeroPoint == q.codes.min || q.zeroPoint == q.codes.max;
    if (q.codes.dtype != DType::Int8) {
      q.scale = 0x1p-15;
    } else if (!snaps) {
      q.scale = oneSided ? 0x1p-8 : 0x1p-7;
      if (!oneSided) q.zeroPoint = 0;
    } else if (!pastLow) {
      q.scale = fractionOfOne(q.codes.max - q.zeroPoint);
    } else if (!pastHigh) {
      q.scale = fractionOfOne(q.zeroPoint - q.codes.min);
    } else {
      q.zeroPoint = 0;
      q.codes.min = -q.codes.max;
      q.scale = fractionOfOne(q.codes.max);
    }
  }
}

/// The least scale from `scale` on, up to 1, with which float32 gives every integer that has a code exactly:
/// one over an integer. Unchanged if codes only reach fractions.
double scaleOfIntegers(double scale, const CodeRange& codes) {
  const int64_t most = codes.max - codes.min;
  if (scale * static_cast<double>(most) < 1) return scale;
  for (auto steps = static_cast<int64_t>(1 / scale); steps > 1; --steps) {
    const auto step = 1.0f / static_cast<float>(steps);
    int64_t number = most / steps;
    while (number > 0 && static_cast<float>(number * steps) * step == static_cast<float>(number)) --number;
    if (number == 0) return static_cast<double>(step);
  }
  return 1;
}

/// Whether the scale of a group's codes can be chosen freely.
bool hasFreeScale(const Group& group) {
  if (group.wide || group.widened || group.prequantizedScale) return false;
  // Products of 16-bit codes have scales to which their sums can be shifted.
  return group.precision != Precision::Int16x8 ||
         std::none_of(group.forms.begin(), group.forms.end(), [](const Form& form) {
           return form.made && form.value->producer() && isProduct(*form.value->producer());
         });
}

/// Gives integers codes of their own: where steps are taken at them, and where their results are integers.
/// floor(2) is 2, which 1.99 in place of 2 would not give.
void giveIntegersCodes(QParams& q) {
  const double scale = scaleOfIntegers(q.scale, q.codes);
  const double low = static_cast<double>(q.codes.min - q.zeroPoint) * q.scale;
  if (q.codes.min != -q.codes.max)
    q.zeroPoint = std::clamp(q.codes.min - int64_t{std::lround(low / scale)}, q.codes.min, q.codes.max);
  q.scale = scale;
}

/// Removes the codes to which the ends of the range are rounded if an integer lies between: x.clamp(0, 8.99)
/// has a floor below 9, and may be an index.
void keepBelowIntegers(QParams& q, const Range& range) {
  const double high = static_cast<double>(range.max) / q.scale,
               low = static_cast<double>(range.min) / q.scale;
  if (std::floor(std::nearbyint(high) * q.scale) > std::floor(static_cast<double>(range.max)))
    q.codes.max = std::min(q.codes.max, q.zeroPoint + static_cast<int64_t>(std::floor(high)));
  if (std::ceil(std::nearbyint(low) * q.scale) < std::ceil(static_cast<double>(range.min)))
    q.codes.min = std::max(q.codes.min, q.zeroPoint + static_cast<int64_t>(std::ceil(low)));
}

/// The part of the range that the limits of a clamp leave: margins reach beyond.
Range within(Range range, const ir::Value* clamped) {
  const auto clamp = ir::dynCast<aten::Clamp>(clamped->producer());
  if (!clamp) return range;
  const auto limit = [](const ir::Attribute& number, float otherwise) {
    return std::holds_alternative<std::monostate>(number) ? otherwise
                                                          : static_cast<float>(ir::scalarReal(number));
  };
  return {std::max(range.min, limit(clamp.min(), range.min)),
          std::min(range.max, limit(clamp.max(), range.max))};
}

/// The ranges, of which those of integers end at integers: an observer may have cut off part of the last one.
std::vector<Range> rangesOfWhole(const Annotation& annotation,
                                 const std::unordered_set<const ir::Value*>& whole,
                                 std::vector<Range> ranges) {
  for (const ir::Value* value : whole) {
    const auto made = annotation.producedIn.find(value);
    if (made == annotation.producedIn.end() || !hasFreeScale(annotation.groups[made->second])) continue;
    Range& range = ranges[made->second];
    if (!range.empty()) range = {std::floor(range.min), std::ceil(range.max)};
  }
  return ranges;
}

/// Operands of steps, which are roundings to integers and conversions to them, and values that are integers.
void prepareSteps(const ir::Graph& graph, const Annotation& annotation, const std::vector<Range>& ranges,
                  const std::unordered_set<const ir::Value*>& whole, std::vector<QParams>& params) {
  const std::vector<ir::Node*> nodes = nodesWithLoops(graph);
  std::vector<bool> prepared(params.size());
  const auto prepare = [&](size_t g) {
    if (!prepared[g] && hasFreeScale(annotation.groups[g]) && params[g].scale < 1) {
      giveIntegersCodes(params[g]);
      prepared[g] = true;
    }
  };
  const auto operandOf = [&](const ir::Node& node) {
    return isRoundingFunction(node) || isTruncation(node) ? annotation.groupOfOperand(node, 0) : std::nullopt;
  };
  for (const ir::Node* node : nodes) {
    if (const auto read = operandOf(*node)) prepare(*read);
    for (const ir::Value* result : node->results()) {
      const auto made = annotation.producedIn.find(result);
      if (made != annotation.producedIn.end() && whole.count(result) != 0) prepare(made->second);
    }
  }
  for (const ir::Node* node : nodes) {
    const auto read = operandOf(*node);
    if (read && prepared[*read]) keepBelowIntegers(params[*read], within(ranges[*read], node->operand(0)));
  }
}

/// The scale of the codes that a product reads: those of the value, or of the source from which it is only
/// scaled.
std::optional<double> scaleRead(const ir::Value* value, const Annotation& annotation,
                                const std::vector<QParams>& params) {
  double factor = 1;
  while (value) {
    if (const auto group = annotation.groupOf(value)) return params[*group].scale * factor;
    const auto scaling = value->producer() ? scalingOf(*value->producer()) : std::nullopt;
    if (!scaling) return std::nullopt;
    factor *= *scaling;
    value = value->producer()->operands()[0];
  }
  return std::nullopt;
}

/// Raises the scale of a 16-bit product to less than twice itself so that input scales / output scale is a
/// power of two. No 48-bit sum can be rescaled by a factor of more than 15 bits, and Ethos-U55 and U65, which
/// compose products of bytes, only shift their sums then. (Layers adjust their weight scales instead.)
void scaleByPowerOfTwo(const ir::Node& node, const Annotation& annotation, std::vector<QParams>& params) {
  const auto made = annotation.producedIn.find(node.result());
  if (made == annotation.producedIn.end()) return;
  QParams& q = params[made->second];
  const Group& group = annotation.groups[made->second];
  if (group.precision != Precision::Int16x8 || group.widened || group.wide || group.prequantizedScale) return;
  const auto a = scaleRead(node.operands()[0], annotation, params);
  const auto b = scaleRead(node.operands()[1], annotation, params);
  if (!a || !b) return;
  const int exponent = static_cast<int>(std::floor(std::log2(*a * *b / q.scale) + 0x1p-20));
  q.scale = static_cast<double>(static_cast<float>(std::ldexp(*a * *b, -exponent)));
}

/// A value that is only scaled has the codes of its operand: nothing is rounded or computed.
void keepCodes(const ir::Node& node, double factor, const Annotation& annotation,
               std::vector<QParams>& params) {
  const auto made = annotation.producedIn.find(node.result());
  const auto read = annotation.groupOfOperand(node, 0);
  if (made == annotation.producedIn.end() || !read) return;
  const Group &result = annotation.groups[made->second], &source = annotation.groups[*read];
  if (result.forms.size() != 1 || result.prequantizedScale || result.precision != source.precision ||
      result.wide != source.wide || result.scheme != source.scheme)
    return;
  const double scale = static_cast<double>(static_cast<float>(params[*read].scale * factor));
  if (scale < static_cast<double>(kEpsTiny)) return;
  params[made->second] = params[*read];
  params[made->second].scale = scale;
}

}  // namespace

std::vector<QParams> groupParams(const ir::Graph& graph, const Annotation& annotation,
                                 const std::vector<Range>& observed) {
  const std::unordered_set<const ir::Value*> whole = wholeValues(graph);
  const std::vector<Range> ranges = rangesOfWhole(annotation, whole, observed);
  std::vector<QParams> params = paramsOf(annotation, ranges);
  prepareSteps(graph, annotation, ranges, whole, params);
  for (const ir::Node* node : nodesWithLoops(graph)) {
    if (isProduct(*node)) scaleByPowerOfTwo(*node, annotation, params);
    if (const auto factor = scalingOf(*node)) keepCodes(*node, *factor, annotation, params);
  }
  keepToDomains(graph, annotation, params);
  return params;
}

void giveWideCodesRoom(const Annotation& annotation, std::vector<Range>& ranges) {
  constexpr float kMargin = 1.5f;
  for (size_t g = 0; g < ranges.size(); ++g) {
    if (!annotation.groups[g].wide) continue;
    Range& range = ranges[g];
    range.min = range.min < 0 ? range.min * kMargin : range.min / kMargin;
    range.max = range.max > 0 ? range.max * kMargin : range.max / kMargin;
  }
}

}  // namespace carina::quantize
