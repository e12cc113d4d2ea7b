// SPDX-License-Identifier: Apache-2.0
// RESIZE.
#include "tosa/kernels/kernel.hpp"
#include "tosa/node_checker.hpp"

namespace carina::tosa::kernels {
namespace {

/// Position of an output between two input positions: `low` + fraction / numerator.
struct Sample {
  int64_t low, high;  // clipped to the image
  int64_t fraction;   // 0..numerator - 1
};

std::vector<Sample> samples(int64_t outputs, int64_t inputs, int64_t numerator, int64_t denominator,
                            int64_t offset) {
  std::vector<Sample> list;
  for (int64_t out = 0; out < outputs; ++out) {
    const int64_t position = out * denominator + offset;
    const int64_t index = position >= 0 ? position / numerator : -((-position + numerator - 1) / numerator);
    list.push_back(
        {std::max<int64_t>(index, 0), std::min(index + 1, inputs - 1), position - index * numerator});
  }
  return list;
}

template <typename In, typename Out, typename F>
void forElements(const Tensor& input, Tensor& out, const std::vector<Sample>& rows,
                 const std::vector<Sample>& columns, F f) {
  const In* x = input.as<In>().data();
  Out* y = out.mutableAs<Out>().data();
  const int64_t height = input.dim(1), width = input.dim(2), channels = input.dim(3);
  for (int64_t n = 0; n < input.dim(0); ++n) {
    for (const Sample& row : rows) {
      const In* top = x + (n * height + row.low) * width * channels;
      const In* bottom = x + (n * height + row.high) * width * channels;
      for (const Sample& column : columns) {
        for (int64_t c = 0; c < channels; ++c) {
          *y++ = f(top[column.low * channels + c], top[column.high * channels + c],
                   bottom[column.low * channels + c], bottom[column.high * channels + c], row.fraction,
                   column.fraction);
        }
      }
    }
  }
}

}  // namespace

Results resize(const ir::Node& node, Operands operands) {
  const auto op = ir::cast<Resize>(&node);
  const auto scale = shapeValues(op.scale()), offset = shapeValues(op.offset());
  const int64_t yn = scale[0], xn = scale[2];
  const Shape& shape = node.result()->shape();
  const auto rows = samples(shape[1], operands[0].dim(1), yn, scale[1], offset[0]);
  const auto columns = samples(shape[2], operands[0].dim(2), xn, scale[3], offset[1]);
  const bool nearest = op.mode() == ResizeMode::NEAREST;

  if (isFloat(operands[0].dtype())) {
    const Tensor input = asFloat32(operands[0]);
    Tensor out = Tensor::uninitialized(DType::Float32, shape);
    forElements<float, float>(
        input, out, rows, columns, [=](float v00, float v01, float v10, float v11, int64_t ry, int64_t rx) {
          if (nearest) return 2 * ry >= yn ? (2 * rx >= xn ? v11 : v10) : (2 * rx >= xn ? v01 : v00);
          const double dy = static_cast<double>(ry) / static_cast<double>(yn),
                       dx = static_cast<double>(rx) / static_cast<double>(xn);
          return static_cast<float>(v00 * (1 - dy) * (1 - dx) + v01 * (1 - dy) * dx + v10 * dy * (1 - dx) +
                                    v11 * dy * dx);
        });
    return one(roundedTo(node.result()->dtype(), out));
  }
  Tensor out = resultTensor(node);
  const auto pick = [=](auto v00, auto v01, auto v10, auto v11, int64_t ry, int64_t rx) {
    return 2 * ry >= yn ? (2 * rx >= xn ? v11 : v10) : (2 * rx >= xn ? v01 : v00);
  };
  const auto blend = [=](int64_t v00, int64_t v01, int64_t v10, int64_t v11, int64_t ry, int64_t rx) {
    return v00 * (yn - ry) * (xn - rx) + v01 * (yn - ry) * rx + v10 * ry * (xn - rx) + v11 * ry * rx;
  };
  const bool wide = operands[0].dtype() == DType::Int16;
  if (nearest) {
    if (wide)
      forElements<int16_t, int16_t>(operands[0], out, rows, columns, pick);
    else
      forElements<int8_t, int8_t>(operands[0], out, rows, columns, pick);
  } else {
    if (wide)
      forElements<int16_t, int64_t>(operands[0], out, rows, columns, blend);
    else
      forElements<int8_t, int32_t>(operands[0], out, rows, columns,
                                   [&](auto... v) { return static_cast<int32_t>(blend(v...)); });
  }
  return one(std::move(out));
}

}  // namespace carina::tosa::kernels
