// SPDX-License-Identifier: Apache-2.0
// The kernels of the reference interpreter: one function per group of operators, from operand tensors to
// result tensors. Shapes and types were verified; results that the specification calls unpredictable are
// errors.
#pragma once

#include <span>
#include <vector>

#include "ir/graph.hpp"
#include "tosa/tosa.hpp"

namespace carina::tosa::kernels {

using Operands = std::span<const Tensor>;
using Results = Result<std::vector<Tensor>>;

Results convolution(const ir::Node& node,
                    Operands operands);  // CONV2D, CONV3D, DEPTHWISE_CONV2D, TRANSPOSE_CONV2D
Results averagePool(const ir::Node& node, Operands operands);
Results maxPool(const ir::Node& node, Operands operands);
Results matmul(const ir::Node& node, Operands operands);
Results fft(const ir::Node& node, Operands operands);  // FFT2D, RFFT2D
Results argmax(const ir::Node& node, Operands operands);
Results reduce(const ir::Node& node, Operands operands);

Results binary(const ir::Node& node, Operands operands);
Results compare(const ir::Node& node, Operands operands);
Results logical(const ir::Node& node, Operands operands);  // on bool, including LOGICAL_NOT
Results select(const ir::Node& node, Operands operands);
Results unary(const ir::Node& node, Operands operands);
Results clamp(const ir::Node& node, Operands operands);
Results negate(const ir::Node& node, Operands operands);
Results table(const ir::Node& node, Operands operands);
Results cast(const ir::Node& node, Operands operands);
Results rescale(const ir::Node& node, Operands operands);

Results concat(const ir::Node& node, Operands operands);
Results pad(const ir::Node& node, Operands operands);
Results reshape(const ir::Node& node, Operands operands);
Results reverse(const ir::Node& node, Operands operands);
Results slice(const ir::Node& node, Operands operands);
Results tile(const ir::Node& node, Operands operands);
Results transpose(const ir::Node& node, Operands operands);
Results gather(const ir::Node& node, Operands operands);
Results scatter(const ir::Node& node, Operands operands);
Results resize(const ir::Node& node, Operands operands);

// Shared by the kernels
// ------------------------------------------------------------------------------------------

/// The node's result of this index, to be filled.
inline Tensor resultTensor(const ir::Node& node, size_t i = 0) {
  return Tensor::uninitialized(node.result(i)->dtype(), node.result(i)->shape());
}
inline Results one(Tensor tensor) {
  return std::vector<Tensor>{std::move(tensor)};
}
inline Results identity(const ir::Node&, Operands operands) {
  return one(operands[0]);
}

/// The error for a graph whose result the specification leaves undefined.
template <typename... Args>
Error unpredictable(fmt::format_string<Args...> format, Args&&... args) {
  return fail(Code::NoResult, "the result is unpredictable: {}",
              fmt::format(format, std::forward<Args>(args)...));
}

/// Any floating point type as float32, exactly.
inline Tensor asFloat32(const Tensor& tensor) {
  return tensor.dtype() == DType::Float32 ? tensor : convert(tensor, DType::Float32);
}
/// float32 rounded to the node's result type.
inline Tensor roundedTo(DType dtype, const Tensor& tensor) {
  return dtype == DType::Float32 ? tensor : convert(tensor, dtype);
}

/// Repeats dimensions of size 1 up to `shape` (equal ranks).
Tensor broadcastTo(const Tensor& tensor, const Shape& shape);

/// out(i0, i1, ..) = bytes of `source` at element offset + sum of i * stride; strides may be 0 or negative.
Tensor stridedCopy(const Tensor& source, int64_t offset, const Shape& shape,
                   const std::vector<int64_t>& strides);

/// Calls f(T{}) with the C++ type of the elements: int8_t, int16_t, int32_t or int64_t (Int48).
template <typename F>
auto withIntegerType(DType dtype, F f) {
  switch (dtype) {
    case DType::Int16:
      return f(int16_t{});
    case DType::Int32:
      return f(int32_t{});
    case DType::Int48:
    case DType::Int64:
      return f(int64_t{});
    default:
      return f(int8_t{});
  }
}

}  // namespace carina::tosa::kernels
