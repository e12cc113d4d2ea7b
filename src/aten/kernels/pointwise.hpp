// SPDX-License-Identifier: Apache-2.0
// Kernels that compute a function of each element of one operand.
#pragma once

#include "aten/kernels/cast.hpp"
#include "aten/kernels/dispatch.hpp"
#include "aten/kernels/kernel.hpp"
#include "aten/kernels/numeric.hpp"

namespace carina::aten {

/// out[i] = f(in[i]) in the operand's type; the result has the same type, or Bool.
template <typename T, typename F>
void mapElements(Call& call, F f) {
  const T* in = call.operand(0).as<T>().data();
  const int64_t n = call.operand(0).numElements();
  if (call.type().dtype == DType::Bool) {
    uint8_t* out = call.allocate().mutableAs<uint8_t>().data();
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<uint8_t>(f(in[i]) != 0);
  } else {
    T* out = call.reuseOrAllocate(0).mutableAs<T>().data();
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(f(in[i]));
  }
}

/// f for every number type; the result has the operand's type.
template <typename F>
Kernel numberKernel(F f) {
  return [f](Call& call) -> Status {
    return forNumber(
        call.operand(0).dtype(),
        [&](auto tag) -> Status {
          mapElements<decltype(tag)>(call, f);
          return {};
        },
        true);
  };
}

/// f for float32 and float64; integers are converted to the (float) result type first.
template <typename F>
Kernel floatKernel(F f) {
  return [f](Call& call) -> Status {
    Tensor converted;
    if (!isFloat(call.operand(0).dtype())) {
      converted = castTo(call.operand(0), isFloat(call.type().dtype) ? call.type().dtype : DType::Float32);
      Call::Operand operand{&converted, true};
      const ir::Type type = call.type();
      Call inner(call.node(), {&operand, 1}, {&type, 1}, {&call.result(), 1});
      return forFloat(converted.dtype(), [&](auto tag) -> Status {
        mapElements<decltype(tag)>(inner, f);
        return {};
      });
    }
    return forFloat(call.operand(0).dtype(), [&](auto tag) -> Status {
      mapElements<decltype(tag)>(call, f);
      return {};
    });
  };
}

}  // namespace carina::aten
