// SPDX-License-Identifier: Apache-2.0
#include "quantize/settings.hpp"

#include "base/check.hpp"

namespace carina::quantize {

std::string_view precisionName(Precision precision) {
  switch (precision) {
    case Precision::Int8:
      return "int8";
    case Precision::Int16x8:
      return "int16x8";
    case Precision::Float:
      return "none";
  }
  CARINA_UNREACHABLE("precision");
}

void Overrides::apply(Settings& settings) const {
  if (precision) settings.precision = *precision;
  if (perChannelWeights) settings.perChannelWeights = *perChannelWeights;
  if (weightBits) settings.weightBits = *weightBits;
  if (observer) settings.observer = *observer;
  if (scheme) settings.scheme = *scheme;
}

CodeRange weightRange(int bits) {
  CARINA_CHECK(bits >= kMinWeightBits && bits <= kMaxWeightBits, "weights have codes of 2 to 8 bits");
  const int64_t most = (int64_t{1} << (bits - 1)) - 1;
  return {DType::Int8, -most, most};
}

CodeRange activationCodes(Precision precision) {
  CARINA_CHECK(precision != Precision::Float, "float activations have no codes");
  return precision == Precision::Int8 ? kInt8Activation : kInt16Activation;
}

QParams activationParams(const Range& range, Precision precision, Scheme scheme) {
  const CodeRange codes = activationCodes(precision);
  const bool wide = precision == Precision::Int16x8;
  const bool zeros = range.min == 0 && range.max == 0;
  const float eps = !zeros ? kEpsTiny : wide ? kEpsInt16 : kEpsInt8;
  if (wide) return symmetricQParams(range.min, range.max, codes, eps);
  if (scheme == Scheme::Affine) return affineQParams(range.min, range.max, codes, eps);
  return symmetricQParams(range.min, range.max, CodeRange{codes.dtype, -codes.max, codes.max}, eps);
}

}  // namespace carina::quantize
