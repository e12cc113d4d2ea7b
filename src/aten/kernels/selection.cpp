// SPDX-License-Identifier: Apache-2.0
// Pointwise operators with three operands or bounds: where, masked_fill, clamp, lerp, addcmul, copy, fill.
#include "aten/kernels/broadcast.hpp"
#include "aten/kernels/cast.hpp"
#include "aten/kernels/dispatch.hpp"
#include "aten/kernels/kernel.hpp"
#include "aten/kernels/number.hpp"
#include "aten/kernels/numeric.hpp"

namespace carina::aten {
namespace {

/// out[i] = f(a[i], b[i], c[i]) over broadcast operands.
template <typename A, typename B, typename C, typename R, typename F>
void applyThree(const Tensor& a, const Tensor& b, const Tensor& c, const Shape& shape, R* out, F f) {
  const A* x = a.as<A>().data();
  const B* y = b.as<B>().data();
  const C* z = c.as<C>().data();
  const BroadcastLoop<3> loop(shape, {broadcastStrides(a.shape(), shape), broadcastStrides(b.shape(), shape),
                                      broadcastStrides(c.shape(), shape)});
  loop.run(
      [&](int64_t first, int64_t n, const std::array<int64_t, 3>& at, const std::array<int64_t, 3>& step) {
        for (int64_t i = 0; i < n; ++i) {
          out[first + i] = f(x[at[0] + i * step[0]], y[at[1] + i * step[1]], z[at[2] + i * step[2]]);
        }
      });
}

/// mask ? a : b, dispatched by element size; a and b have the result's type.
Status select(Call& call, const Tensor& mask, const Tensor& a, const Tensor& b) {
  return forSize(call.type().dtype, [&](auto tag) -> Status {
    using T = decltype(tag);
    applyThree<uint8_t, T, T>(mask, a, b, call.type().shape, call.allocate().mutableAs<T>().data(),
                              [](uint8_t m, T x, T y) { return m ? x : y; });
    return {};
  });
}

Result<Kernel> prepareWhere(const ir::Node& node) {
  const Arguments a(node);
  const ir::Attribute &self = a.at("self"), &other = a.at("other");
  return Kernel([=](Call& call) -> Status {
    const DType dtype = call.type().dtype;
    size_t next = 1;
    const auto side = [&](const ir::Attribute& number) {
      return std::holds_alternative<std::monostate>(number) ? castTo(call.operand(next++), dtype)
                                                            : numberTensor(number, dtype);
    };
    const Tensor yes = side(self);
    const Tensor no = side(other);
    return select(call, call.operand(0), yes, no);
  });
}

Result<Kernel> prepareMaskedFill(const ir::Node& node) {
  const ir::Attribute value = Arguments(node).at("value");
  return Kernel([=](Call& call) -> Status {
    const DType dtype = call.type().dtype;
    const Tensor fill = std::holds_alternative<std::monostate>(value) ? castTo(call.operand(2), dtype)
                                                                      : numberTensor(value, dtype);
    return select(call, call.operand(1), fill, call.operand(0));
  });
}

Result<Kernel> prepareFill(const ir::Node& node) {
  const ir::Attribute value = Arguments(node).at("value");
  const bool zero = node.opName() == "aten.zero.default";
  return Kernel([=](Call& call) -> Status {
    const Tensor one = zero ? Tensor::scalar(int64_t{0})
                       : std::holds_alternative<std::monostate>(value)
                           ? call.operand(1)
                           : numberTensor(value, call.type().dtype);
    if (one.numElements() != 1)
      return fail(Code::InvalidOperator, "fill takes one value, got {}", shapeText(one.shape()));
    call.result() = filled(call.type(), one);
    return {};
  });
}

Result<Kernel> prepareCopy(const ir::Node&) {
  return Kernel([](Call& call) -> Status {
    const Tensor source = castTo(call.operand(1), call.type().dtype);
    if (source.shape() == call.type().shape) {
      call.result() = source;
      return {};
    }
    return forSize(call.type().dtype, [&](auto tag) -> Status {
      using T = decltype(tag);
      T* out = call.allocate().mutableAs<T>().data();
      const T* in = source.as<T>().data();
      const BroadcastLoop<1> loop(call.type().shape, {broadcastStrides(source.shape(), call.type().shape)});
      loop.run([&](int64_t first, int64_t n, const std::array<int64_t, 1>& at,
                   const std::array<int64_t, 1>& step) {
        for (int64_t i = 0; i < n; ++i) out[first + i] = in[at[0] + i * step[0]];
      });
      return {};
    });
  });
}

/// Bounds are tensors or numbers, and may be absent.
Result<Kernel> prepareClamp(const ir::Node& node) {
  const Arguments a(node);
  const ir::Attribute &low = a.at("min"), &high = a.at("max");
  const int lowIndex = node.def().operandIndex("min"), highIndex = node.def().operandIndex("max");
  return Kernel([=](Call& call) -> Status {
    const DType dtype = call.type().dtype;
    const Tensor self = castTo(call.operand(0), dtype);
    const auto bound = [&](const ir::Attribute& number, int index) -> std::optional<Tensor> {
      if (!std::holds_alternative<std::monostate>(number)) return numberTensor(number, dtype);
      const Tensor* tensor = index < 0 ? nullptr : call.named(static_cast<size_t>(index));
      return tensor ? std::optional(castTo(*tensor, dtype)) : std::nullopt;
    };
    const auto from = bound(low, lowIndex), to = bound(high, highIndex);
    return forNumber(
        dtype,
        [&](auto tag) -> Status {
          using T = decltype(tag);
          T* out = call.allocate().mutableAs<T>().data();
          const auto atLeast = [](T x, T l) { return isNan(l) || x < l ? l : x; };
          const auto atMost = [](T x, T h) { return isNan(h) || x > h ? h : x; };
          const Tensor& first = from ? *from : *to;
          const Tensor& second = to ? *to : *from;
          applyThree<T, T, T>(self, first, second, call.type().shape, out, [&](T x, T l, T h) {
            if (from) x = atLeast(x, l);
            return to ? atMost(x, h) : x;
          });
          return {};
        },
        true);
  });
}

/// a + value * b * c, or a + value * b / c.
template <bool kDivide>
Result<Kernel> prepareAddc(const ir::Node& node) {
  const ir::Attribute value = Arguments(node).at("value");
  return Kernel([value](Call& call) -> Status {
    const DType dtype = call.type().dtype;
    if (kDivide && !isFloat(dtype)) return fail(Code::WrongElementType, "addcdiv is not defined on integers");
    return forNumber(dtype, [&](auto tag) -> Status {
      using T = decltype(tag);
      const T factor = std::is_floating_point_v<T> ? static_cast<T>(ir::scalarReal(value))
                                                   : static_cast<T>(ir::scalarInt(value));
      applyThree<T, T, T>(
          castTo(call.operand(0), dtype), castTo(call.operand(1), dtype), castTo(call.operand(2), dtype),
          call.type().shape, call.allocate().mutableAs<T>().data(), [factor](T x, T y, T z) {
            if constexpr (kDivide) {
              return z == T{0} && std::is_integral_v<T> ? T{0} : static_cast<T>(x + factor * (y / z));
            } else {
              return wrapAdd(x, wrapMul(wrapMul(factor, y), z));
            }
          });
      return {};
    });
  });
}

Result<Kernel> prepareLerp(const ir::Node& node) {
  const ir::Attribute number = Arguments(node).at("weight");
  return Kernel([number](Call& call) -> Status {
    const DType dtype = call.type().dtype;
    const Tensor weight = std::holds_alternative<std::monostate>(number) ? castTo(call.operand(2), dtype)
                                                                         : numberTensor(number, dtype);
    return forFloat(dtype, [&](auto tag) -> Status {
      using T = decltype(tag);
      applyThree<T, T, T>(castTo(call.operand(0), dtype), castTo(call.operand(1), dtype), weight,
                          call.type().shape, call.allocate().mutableAs<T>().data(), [](T a, T b, T w) {
                            return std::abs(w) < T{0.5} ? a + w * (b - a) : b - (b - a) * (T{1} - w);
                          });
      return {};
    });
  });
}

/// Outside of training: the input and a mask of ones.
Result<Kernel> prepareNativeDropout(const ir::Node&) {
  return Kernel([](Call& call) -> Status {
    call.copyOf(0);
    call.result(1) = filled(call.type(1), Tensor::scalar(int64_t{1}));
    return {};
  });
}

constexpr KernelEntry kSelectionKernels[] = {
    {"aten.native_dropout.default", prepareNativeDropout},
    {"aten.where.self", prepareWhere},
    {"aten.where.ScalarOther", prepareWhere},
    {"aten.where.ScalarSelf", prepareWhere},
    {"aten.where.Scalar", prepareWhere},
    {"aten.masked_fill.Scalar", prepareMaskedFill},
    {"aten.masked_fill.Tensor", prepareMaskedFill},
    {"aten.fill.Scalar", prepareFill},
    {"aten.fill.Tensor", prepareFill},
    {"aten.zero.default", prepareFill},
    {"aten.copy.default", prepareCopy},
    {"aten.clamp.default", prepareClamp},
    {"aten.clamp.Tensor", prepareClamp},
    {"aten.clamp_min.default", prepareClamp},
    {"aten.clamp_min.Tensor", prepareClamp},
    {"aten.clamp_max.default", prepareClamp},
    {"aten.clamp_max.Tensor", prepareClamp},
    {"aten.addcmul.default", prepareAddc<false>},
    {"aten.addcdiv.default", prepareAddc<true>},
    {"aten.lerp.Scalar", prepareLerp},
    {"aten.lerp.Tensor", prepareLerp},
};

}  // namespace

std::span<const KernelEntry> selectionKernels() {
  return kSelectionKernels;
}

}  // namespace carina::aten
