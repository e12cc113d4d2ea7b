// SPDX-License-Identifier: Apache-2.0
#include "quantize/group_params.hpp"

#include <cmath>

#include "aten/ops.hpp"
#include "quantize/settings.hpp"

namespace carina::quantize {
namespace {

std::vector<QParams> paramsOf(const Annotation& annotation, const std::vector<Range>& ranges) {
  std::vector<QParams> params;
  for (size_t g = 0; g < ranges.size(); ++g) {
    const Group& group = annotation.groups[g];
    params.push_back(activationParams(ranges[g], group.precision, group.scheme));
    if (group.carriedScale) params.back().scale = *group.carriedScale;
  }
  // |code - zero point| of int8 is at most 255, and 255 * 2^7 fits 16 bits.
  for (size_t g = 0; g < ranges.size(); ++g) {
    if (const auto from = annotation.groups[g].widened) params[g].scale = params[*from].scale * 0x1p-7;
  }
  return params;
}

/// asin, acos and atanh take [-1, 1]. Where rounding carries the outermost codes past it, whose function is
/// NaN, the codes get a power of two as scale: -1 then is a code of its own, and the last one stays below 1.
void keepToDomains(const ir::Graph& graph, const Annotation& annotation, std::vector<QParams>& params) {
  for (const ir::Node* node : graph.nodes()) {
    if (!ir::isa<aten::Asin>(node) && !ir::isa<aten::Acos>(node) && !ir::isa<aten::Atanh>(node)) continue;
    const auto group = annotation.groupOfOperand(*node, 0);
    if (!group || annotation.groups[*group].widened || annotation.groups[*group].carriedScale) continue;
    QParams& q = params[*group];
    const double low = static_cast<double>(q.codes.min - q.zeroPoint) * q.scale;
    const double high = static_cast<double>(q.codes.max - q.zeroPoint) * q.scale;
    const bool past = low < -1 || high > 1;
    if (!past || low < -1 - q.scale || high > 1 + q.scale) continue;
    if (q.codes.dtype != DType::Int8) {
      q.scale = 0x1p-15;
    } else if (q.zeroPoint == q.codes.min || q.zeroPoint == q.codes.max) {
      q.scale = 0x1p-8;
    } else {
      q.scale = 0x1p-7;
      q.zeroPoint = 0;
    }
  }
}

/// Scale of the codes that a product reads: of the value, or of what is only scaled to make it.
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

/// Raises the scales of 16-bit products by up to 2^-14 of themselves so that input scales / output scale is a
/// number of 15 bits: the 48-bit sums are rescaled by no finer one. (Layers do this with their weights'
/// scales.)
void shortenProducts(const ir::Graph& graph, const Annotation& annotation, std::vector<QParams>& params) {
  for (const ir::Node* node : graph.nodes()) {
    if (!isProduct(*node)) continue;
    const auto made = annotation.madeIn.find(node->result());
    if (made == annotation.madeIn.end()) continue;
    QParams& q = params[made->second];
    const Group& group = annotation.groups[made->second];
    if (group.precision != Precision::Int16x8 || group.widened || group.carriedScale) continue;
    const auto a = scaleRead(node->operands()[0], annotation, params);
    const auto b = scaleRead(node->operands()[1], annotation, params);
    if (!a || !b) continue;
    int exponent = 0;
    const double mantissa = std::frexp(*a * *b / q.scale, &exponent);
    const double product = std::ldexp(std::floor(std::ldexp(mantissa, 15) + 0x1p-6), exponent - 15);
    q.scale = static_cast<double>(static_cast<float>(*a * *b / product));
  }
}

}  // namespace

std::vector<QParams> groupParams(const ir::Graph& graph, const Annotation& annotation,
                                 const std::vector<Range>& ranges) {
  std::vector<QParams> params = paramsOf(annotation, ranges);
  shortenProducts(graph, annotation, params);
  keepToDomains(graph, annotation, params);
  return params;
}

}  // namespace carina::quantize
