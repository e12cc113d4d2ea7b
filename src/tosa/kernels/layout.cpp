// SPDX-License-Identifier: Apache-2.0
// Operators that move data.
#include <algorithm>
#include <cstring>

#include "tosa/kernels/kernel.hpp"
#include "tosa/node_checker.hpp"

namespace carina::tosa::kernels {
namespace {

template <typename T>
void copyRows(const T* source, T* target, const Shape& shape, const std::vector<int64_t>& strides,
              size_t axis) {
  const int64_t stride = strides[axis];
  if (axis + 1 == shape.size()) {
    if (stride == 1) {
      std::memcpy(target, source, static_cast<size_t>(shape[axis]) * sizeof(T));
    } else if (stride == 0) {
      std::fill_n(target, shape[axis], *source);
    } else {
      for (int64_t i = 0; i < shape[axis]; ++i) target[i] = source[i * stride];
    }
    return;
  }
  int64_t inner = 1;
  for (size_t k = axis + 1; k < shape.size(); ++k) inner *= shape[k];
  for (int64_t i = 0; i < shape[axis]; ++i)
    copyRows(source + i * stride, target + i * inner, shape, strides, axis + 1);
}

template <typename T>
void copyAs(const Tensor& source, int64_t offset, Tensor& target, const std::vector<int64_t>& strides) {
  if (target.numElements() == 0) return;
  const T* from = source.as<T>().data() + offset;
  T* to = target.mutableAs<T>().data();
  if (target.rank() == 0) {
    *to = *from;
  } else {
    copyRows(from, to, target.shape(), strides, 0);
  }
}

std::byte* at(Tensor& tensor, int64_t element) {
  return tensor.mutableBytes().data() + element * dtypeSize(tensor.dtype());
}
const std::byte* at(const Tensor& tensor, int64_t element) {
  return tensor.bytes().data() + element * dtypeSize(tensor.dtype());
}

int64_t product(const Shape& shape, size_t first, size_t last) {
  int64_t count = 1;
  for (size_t i = first; i < last; ++i) count *= shape[i];
  return count;
}

}  // namespace

Tensor stridedCopy(const Tensor& source, int64_t offset, const Shape& shape,
                   const std::vector<int64_t>& strides) {
  Tensor target = Tensor::uninitialized(source.dtype(), shape);
  switch (dtypeSize(source.dtype())) {
    case 1:
      copyAs<uint8_t>(source, offset, target, strides);
      break;
    case 2:
      copyAs<uint16_t>(source, offset, target, strides);
      break;
    case 4:
      copyAs<uint32_t>(source, offset, target, strides);
      break;
    default:
      copyAs<uint64_t>(source, offset, target, strides);
      break;
  }
  return target;
}

Tensor broadcastTo(const Tensor& tensor, const Shape& shape) {
  if (tensor.shape() == shape) return tensor;
  std::vector<int64_t> strides = rowMajorStrides(tensor.shape());
  for (size_t i = 0; i < shape.size(); ++i) {
    if (tensor.shape()[i] == 1) strides[i] = 0;
  }
  return stridedCopy(tensor, 0, shape, strides);
}

Results reshape(const ir::Node& node, Operands operands) {
  return one(operands[0].reshaped(node.result()->shape()));
}

Results transpose(const ir::Node& node, Operands operands) {
  const std::vector<int64_t> inputStrides = rowMajorStrides(operands[0].shape());
  std::vector<int64_t> strides;
  for (int64_t perm : ir::cast<Transpose>(&node).perms())
    strides.push_back(inputStrides[static_cast<size_t>(perm)]);
  return one(stridedCopy(operands[0], 0, node.result()->shape(), strides));
}

Results reverse(const ir::Node& node, Operands operands) {
  const auto axis = static_cast<size_t>(ir::cast<Reverse>(&node).axis());
  std::vector<int64_t> strides = rowMajorStrides(operands[0].shape());
  const int64_t offset = (operands[0].shape()[axis] - 1) * strides[axis];
  strides[axis] = -strides[axis];
  return one(stridedCopy(operands[0], offset, operands[0].shape(), strides));
}

Results slice(const ir::Node& node, Operands operands) {
  const std::vector<int64_t> strides = rowMajorStrides(operands[0].shape());
  const auto start = shapeValues(ir::cast<Slice>(&node).start());
  int64_t offset = 0;
  for (size_t i = 0; i < strides.size(); ++i) offset += start[i] * strides[i];
  return one(stridedCopy(operands[0], offset, node.result()->shape(), strides));
}

Results tile(const ir::Node& node, Operands operands) {
  // Every dimension is viewed as (multiple, size): the first repeats, the second is traversed.
  const auto multiples = shapeValues(ir::cast<Tile>(&node).multiples());
  const std::vector<int64_t> inputStrides = rowMajorStrides(operands[0].shape());
  Shape shape;
  std::vector<int64_t> strides;
  for (size_t i = 0; i < inputStrides.size(); ++i) {
    shape.insert(shape.end(), {multiples[i], operands[0].shape()[i]});
    strides.insert(strides.end(), {0, inputStrides[i]});
  }
  return one(stridedCopy(operands[0], 0, shape, strides).reshaped(node.result()->shape()));
}

Results concat(const ir::Node& node, Operands operands) {
  Tensor out = resultTensor(node);
  const auto axis = static_cast<size_t>(ir::cast<Concat>(&node).axis());
  const int64_t outer = product(out.shape(), 0, axis);
  const int64_t inner = product(out.shape(), axis + 1, out.shape().size());
  int64_t position = 0;
  for (const Tensor& operand : operands) {
    const int64_t run = operand.shape()[axis] * inner;
    for (int64_t i = 0; i < outer; ++i) {
      std::memcpy(at(out, (i * out.shape()[axis] + position) * inner), at(operand, i * run),
                  static_cast<size_t>(run * dtypeSize(out.dtype())));
    }
    position += operand.shape()[axis];
  }
  return one(std::move(out));
}

Results pad(const ir::Node& node, Operands operands) {
  // Filled with the constant by a copy with stride 0, then the input's rows are copied into it.
  const auto padding = shapeValues(ir::cast<Pad>(&node).padding());
  const Shape& shape = node.result()->shape();
  Tensor out = stridedCopy(operands[2], 0, shape, std::vector<int64_t>(shape.size(), 0));
  const Shape& input = operands[0].shape();
  const std::vector<int64_t> strides = rowMajorStrides(shape);
  const size_t last = shape.size() - 1;
  const int64_t rows = product(input, 0, last);
  for (int64_t row = 0; row < rows; ++row) {
    int64_t target = padding[2 * last];
    int64_t rest = row;
    for (size_t i = last; i-- > 0;) {
      target += (rest % input[i] + padding[2 * i]) * strides[i];
      rest /= input[i];
    }
    std::memcpy(at(out, target), at(operands[0], row * input[last]),
                static_cast<size_t>(input[last] * dtypeSize(out.dtype())));
  }
  return one(std::move(out));
}

Results gather(const ir::Node& node, Operands operands) {
  Tensor out = resultTensor(node);
  const Shape& values = operands[0].shape();
  const auto indices = operands[1].as<int32_t>();
  const int64_t rows = out.dim(1), channels = values[2];
  for (int64_t i = 0; i < out.dim(0) * rows; ++i) {
    const int64_t index = indices[static_cast<size_t>(i)];
    if (index < 0 || index >= values[1])
      return unpredictable("index {} is outside 0..{}", index, values[1] - 1);
    std::memcpy(at(out, i * channels), at(operands[0], (i / rows * values[1] + index) * channels),
                static_cast<size_t>(channels * dtypeSize(out.dtype())));
  }
  return one(std::move(out));
}

Results scatter(const ir::Node&, Operands operands) {
  Tensor out = operands[0];
  const int64_t height = out.dim(1), channels = out.dim(2), rows = operands[2].dim(1);
  const auto indices = operands[1].as<int32_t>();
  std::vector<bool> written(static_cast<size_t>(out.dim(0) * height), false);
  for (int64_t i = 0; i < out.dim(0) * rows; ++i) {
    const int64_t index = indices[static_cast<size_t>(i)];
    if (index < 0 || index >= height) return unpredictable("index {} is outside 0..{}", index, height - 1);
    const auto row = static_cast<size_t>(i / rows * height + index);
    if (written[row]) return unpredictable("index {} occurs twice", index);
    written[row] = true;
    std::memcpy(at(out, static_cast<int64_t>(row) * channels), at(operands[2], i * channels),
                static_cast<size_t>(channels * dtypeSize(out.dtype())));
  }
  return one(std::move(out));
}

}  // namespace carina::tosa::kernels
