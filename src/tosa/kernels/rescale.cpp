// SPDX-License-Identifier: Apache-2.0
// RESCALE and CAST.
#include <cmath>

#include "base/float16.hpp"
#include "tosa/kernels/kernel.hpp"
#include "tosa/kernels/scale.hpp"

namespace carina::tosa::kernels {
namespace {

/// Extends an element according to the operator's unsigned flags.
template <typename T>
int64_t extended(T value, bool isUnsigned) {
  return isUnsigned ? static_cast<int64_t>(static_cast<std::make_unsigned_t<T>>(value))
                    : static_cast<int64_t>(value);
}

struct Factor {
  int64_t multiplier;
  int shift;
  int64_t low, high;  // range of values that the specification allows for this shift
};

Result<std::vector<Factor>> factors(const Tensor& multiplier, const Tensor& shift, bool scale32) {
  std::vector<Factor> list;
  for (int64_t i = 0; i < multiplier.numElements(); ++i) {
    const int64_t m = multiplier.integerAt(i), s = shift.integerAt(i);
    if (m < 0) return unpredictable("multiplier {} is negative", m);
    if (s < 2 || s > 62) return unpredictable("shift {} is outside 2..62", s);
    const int64_t bound = scale32 ? int64_t{1} << (s - 1) : int64_t{1} << 47;
    list.push_back({m, static_cast<int>(s), -bound, bound - 1});
  }
  return list;
}

/// If the factor is 1, converts elements in a few 32-bit steps: y = x + zero, clipped. Returns whether all of
/// them are in the range that the shift allows. Sums fit int32 because values have fewer bits, or because
/// SCALE32 allows no more than 2^29.
template <typename In, typename Read, typename Out>
bool convertAll(const In* x, int64_t count, Read read, const Factor& one, int64_t inputZero,
                int64_t outputZero, int64_t low, int64_t high, Out* y) {
  const auto plus = [](int32_t a, int64_t b) {
    return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
  };
  const auto least = static_cast<int32_t>(std::max<int64_t>(low, INT32_MIN)),
             most = static_cast<int32_t>(std::min<int64_t>(high, INT32_MAX));
  int32_t lowest = INT32_MAX, highest = INT32_MIN;
  for (int64_t i = 0; i < count; ++i) {
    const int32_t value = plus(read(x[i]), -inputZero), moved = plus(value, outputZero);
    lowest = std::min(lowest, value);
    highest = std::max(highest, value);
    y[i] = static_cast<Out>(std::min(std::max(moved, least), most));
  }
  return count == 0 || (lowest >= one.low && highest <= one.high);
}

template <typename In, typename Out>
Results rescaleAs(const ir::Node& node, Operands operands) {
  const auto op = ir::cast<Rescale>(&node);
  const bool scale32 = op.scale32(), doubleRound = op.roundingMode() == RoundingMode::DOUBLE_ROUND;
  const bool inputUnsigned = op.inputUnsigned(), outputUnsigned = op.outputUnsigned();
  CARINA_TRY(const std::vector<Factor> list, factors(operands[1], operands[2], scale32));
  const int64_t inputZero = extended(operands[3].as<In>()[0], inputUnsigned);
  const int64_t outputZero = extended(operands[4].as<Out>()[0], outputUnsigned);
  const DType outType = operands[4].dtype();
  // An unsigned result is clipped as a signed number: values below zero become 0.
  const int64_t low = outputUnsigned ? 0 : integerMin(outType);
  const int64_t high = outputUnsigned ? 2 * integerMax(outType) + 1 : integerMax(outType);

  Tensor out = resultTensor(node);
  const In* x = operands[0].as<In>().data();
  Out* y = out.mutableAs<Out>().data();
  const auto channels = static_cast<int64_t>(list.size());
  bool inputBad = false, resultBad = false;
  constexpr bool kSmall = sizeof(In) < sizeof(int32_t);
  if (channels == 1 && list[0].shift < 31 && list[0].multiplier == int64_t{1} << list[0].shift &&
      sizeof(In) <= sizeof(int32_t) && (kSmall || (scale32 && inputZero == 0 && !inputUnsigned))) {
    const auto convert = [&](auto read) {
      return convertAll(x, out.numElements(), read, list[0], inputZero, outputZero, low, high, y);
    };
    const bool good = inputUnsigned
                          ? convert([](In v) { return static_cast<int32_t>(std::make_unsigned_t<In>(v)); })
                          : convert([](In v) { return static_cast<int32_t>(v); });
    if (!good) return unpredictable("an input of RESCALE is outside the range that its shift allows");
    return one(std::move(out));
  }
  for (int64_t row = 0; row < out.numElements(); row += channels) {
    for (int64_t c = 0; c < channels; ++c) {
      const Factor& factor = list[static_cast<size_t>(c)];
      const int64_t value = extended(x[row + c], inputUnsigned) - inputZero;
      if (value < factor.low || value > factor.high) {
        inputBad = true;
        continue;
      }
      const int64_t scaled = scale32 ? applyScale32(value, factor.multiplier, factor.shift, doubleRound)
                                     : applyScale16(value, factor.multiplier, factor.shift);
      const int64_t moved = scaled + outputZero;
      resultBad |= scaled < INT32_MIN || scaled > INT32_MAX || moved < INT32_MIN || moved > INT32_MAX;
      y[row + c] = static_cast<Out>(std::min(std::max(moved, low), high));
    }
  }
  if (inputBad) return unpredictable("an input of RESCALE is outside the range that its shift allows");
  if (resultBad) return unpredictable("a scaled value does not fit int32");
  return one(std::move(out));
}

int64_t roundToInteger(double value, DType to) {
  const double rounded = std::nearbyint(value);  // ties to even
  const double low = static_cast<double>(integerMin(to)), high = static_cast<double>(integerMax(to));
  return static_cast<int64_t>(std::min(std::max(rounded, low), high));
}

}  // namespace

Results rescale(const ir::Node& node, Operands operands) {
  return withIntegerType(operands[0].dtype(), [&](auto in) {
    return withIntegerType(operands[4].dtype(),
                           [&](auto out) { return rescaleAs<decltype(in), decltype(out)>(node, operands); });
  });
}

Results cast(const ir::Node& node, Operands operands) {
  const Tensor& input = operands[0];
  Tensor out = resultTensor(node);
  const DType from = input.dtype(), to = out.dtype();
  if (isFloat(to)) {
    // int32 to 16-bit floats must round once: from double, not via float32.
    for (int64_t i = 0; i < out.numElements(); ++i) {
      if (to == DType::Float32) {
        out.mutableAs<float>()[static_cast<size_t>(i)] = static_cast<float>(input.realAt(i));
        continue;
      }
      const double exact = input.realAt(i);
      float value = static_cast<float>(exact);
      // Rounding to odd preserves what float32 lost for the second rounding.
      if (std::isfinite(value) && static_cast<double>(value) != exact &&
          (std::bit_cast<uint32_t>(value) & 1u) == 0) {
        value = std::nextafter(value, exact > static_cast<double>(value) ? INFINITY : -INFINITY);
      }
      out.mutableAs<uint16_t>()[static_cast<size_t>(i)] =
          to == DType::Float16 ? floatToHalf(value) : floatToBfloat16(value);
    }
    return one(std::move(out));
  }
  for (int64_t i = 0; i < out.numElements(); ++i) {
    int64_t value = 0;
    if (isFloat(from)) {
      const double real = input.realAt(i);
      if (std::isnan(real)) return unpredictable("a NaN has no integer value");
      value = roundToInteger(real, to);
    } else {
      value = input.integerAt(i);
    }
    switch (to) {
      case DType::Bool:
        out.mutableAs<uint8_t>()[static_cast<size_t>(i)] = value != 0;
        break;
      case DType::Int8:
        out.mutableAs<int8_t>()[static_cast<size_t>(i)] = static_cast<int8_t>(value);
        break;
      case DType::Int16:
        out.mutableAs<int16_t>()[static_cast<size_t>(i)] = static_cast<int16_t>(value);
        break;
      default:
        out.mutableAs<int32_t>()[static_cast<size_t>(i)] = static_cast<int32_t>(value);
        break;
    }
  }
  return one(std::move(out));
}

}  // namespace carina::tosa::kernels
