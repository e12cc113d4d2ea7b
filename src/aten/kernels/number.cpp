// SPDX-License-Identifier: Apache-2.0
#include "aten/kernels/number.hpp"

#include <algorithm>

#include "aten/kernels/cast.hpp"
#include "aten/kernels/dispatch.hpp"

namespace carina::aten {

Tensor numberTensor(const ir::Attribute& number, DType dtype) {
  if (std::holds_alternative<double>(number)) return castTo(Tensor::scalar(std::get<double>(number)), dtype);
  return castTo(Tensor::scalar(ir::scalarInt(number)), dtype);
}

Tensor filled(const ir::Type& type, const Tensor& value) {
  Tensor result = Tensor::uninitialized(type.dtype, type.shape);
  const Tensor one = castTo(value, type.dtype);
  const Status done = forSize(type.dtype, [&](auto tag) -> Status {
    using T = decltype(tag);
    const auto out = result.mutableAs<T>();
    std::fill(out.begin(), out.end(), one.as<T>()[0]);
    return {};
  });
  CARINA_CHECK(done.ok(), "every element size can be filled");
  return result;
}

}  // namespace carina::aten
