// SPDX-License-Identifier: Apache-2.0
// ARGMAX and the reductions: operands viewed as [outer, axis, inner].
#include <cmath>
#include <limits>

#include "tosa/kernels/kernel.hpp"

namespace carina::tosa::kernels {
namespace {

struct View {
  int64_t outer = 1, axis = 1, inner = 1;
};

View viewOf(const Shape& shape, int64_t axis) {
  View view;
  for (int64_t i = 0; i < static_cast<int64_t>(shape.size()); ++i) {
    (i < axis ? view.outer : i == axis ? view.axis : view.inner) *= shape[static_cast<size_t>(i)];
  }
  return view;
}

/// out(o, i) = f folded over k of in(o, k, i), starting from `start`.
template <typename T, typename Acc, typename R, typename F>
void fold(const Tensor& input, Tensor& out, const View& view, Acc start, F f) {
  const T* x = input.as<T>().data();
  R* y = out.mutableAs<R>().data();
  for (int64_t o = 0; o < view.outer; ++o) {
    for (int64_t i = 0; i < view.inner; ++i) {
      Acc value = start;
      for (int64_t k = 0; k < view.axis; ++k) value = f(value, x[(o * view.axis + k) * view.inner + i]);
      y[o * view.inner + i] = static_cast<R>(value);
    }
  }
}

NanMode nanModeOf(const ir::Node& node) {
  const int index = node.def().attributeIndex("nan_mode");
  return index < 0 ? NanMode::PROPAGATE
                   : static_cast<NanMode>(node.attributeAs<int64_t>(static_cast<size_t>(index)));
}

Results reduceFloat(const ir::Node& node, const Tensor& operand, const View& view) {
  const Tensor input = asFloat32(operand);
  Tensor out = Tensor::uninitialized(DType::Float32, node.result()->shape());
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const bool ignore = nanModeOf(node) == NanMode::IGNORE;
  const auto extremum = [&](bool maximum) {
    const float start = ignore ? std::numeric_limits<float>::quiet_NaN() : maximum ? -kInfinity : kInfinity;
    fold<float, float, float>(input, out, view, start, [=](float a, float b) {
      if (std::isnan(a)) return ignore ? b : a;
      if (std::isnan(b)) return ignore ? a : b;
      return maximum ? std::max(a, b) : std::min(a, b);
    });
  };
  switch (opId(&node)) {
    case OpId::ReduceMax:
      extremum(true);
      break;
    case OpId::ReduceMin:
      extremum(false);
      break;
    case OpId::ReduceProduct:
      fold<float, double, float>(input, out, view, 1.0, [](double a, double b) { return a * b; });
      break;
    default:
      fold<float, double, float>(input, out, view, 0.0, [](double a, double b) { return a + b; });
      break;
  }
  return one(roundedTo(node.result()->dtype(), out));
}

}  // namespace

Results reduce(const ir::Node& node, Operands operands) {
  const Tensor& input = operands[0];
  const View view = viewOf(input.shape(), node.attributeAs<int64_t>(0));
  if (isFloat(input.dtype())) return reduceFloat(node, input, view);
  Tensor out = resultTensor(node);
  switch (opId(&node)) {
    case OpId::ReduceAll:
      fold<uint8_t, bool, uint8_t>(input, out, view, true, [](bool a, uint8_t b) { return a && b; });
      break;
    case OpId::ReduceAny:
      fold<uint8_t, bool, uint8_t>(input, out, view, false, [](bool a, uint8_t b) { return a || b; });
      break;
    case OpId::ReduceSum: {
      bool bad = false;
      fold<int32_t, int64_t, int32_t>(input, out, view, 0, [&bad](int64_t a, int64_t b) {
        bad |= a + b < INT32_MIN || a + b > INT32_MAX;
        return a + b;
      });
      if (bad) return unpredictable("a sum overflows int32");
      break;
    }
    default:
      withIntegerType(input.dtype(), [&](auto zero) {
        using T = decltype(zero);
        const bool maximum = ir::isa<ReduceMax>(&node);
        const T start = maximum ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
        fold<T, T, T>(input, out, view, start,
                      [=](T a, T b) { return maximum ? std::max(a, b) : std::min(a, b); });
      });
  }
  return one(std::move(out));
}

Results argmax(const ir::Node& node, Operands operands) {
  const auto op = ir::cast<Argmax>(&node);
  const bool ignore = op.nanMode() == NanMode::IGNORE;
  const View view = viewOf(operands[0].shape(), op.axis());
  Tensor out = resultTensor(node);
  const auto find = [&](const auto* x) {
    int32_t* y = out.mutableAs<int32_t>().data();
    for (int64_t o = 0; o < view.outer; ++o) {
      for (int64_t i = 0; i < view.inner; ++i) {
        const auto at = [&](int64_t k) { return x[(o * view.axis + k) * view.inner + i]; };
        int64_t best = 0;
        for (int64_t k = 1; k < view.axis; ++k) {
          // The first NaN wins; if NaNs are ignored, they lose to every number.
          const bool bestIsNan = std::isnan(at(best)), isNan = std::isnan(at(k));
          const bool better =
              ignore ? !isNan && (bestIsNan || at(k) > at(best)) : !bestIsNan && (isNan || at(k) > at(best));
          if (better) best = k;
        }
        y[o * view.inner + i] = static_cast<int32_t>(best);
      }
    }
  };
  if (isFloat(operands[0].dtype())) {
    const Tensor floats = asFloat32(operands[0]);
    find(floats.as<float>().data());
  } else {
    withIntegerType(operands[0].dtype(), [&](auto zero) { find(operands[0].as<decltype(zero)>().data()); });
  }
  return one(std::move(out));
}

}  // namespace carina::tosa::kernels
