// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cases.hpp"

namespace carina::rt::test {
namespace {

using aten::test::Attributes;
using aten::test::Groups;

std::string boolText(bool value) {
  return value ? "True" : "False";
}
/// A list for `spatial` dimensions, sometimes one number for all.
std::string list(Random& random, int64_t spatial, int64_t low, int64_t high) {
  std::vector<int64_t> numbers(static_cast<size_t>(random.coin(3) ? 1 : spatial));
  for (int64_t& number : numbers) number = random.range(low, high);
  return textOf(numbers);
}
std::optional<carina::Tensor> maybe(Random& random, carina::Tensor tensor) {
  return random.coin(3) ? std::nullopt : std::optional(std::move(tensor));
}

KernelCase convolutionCase(const std::string& kernel, Random& random) {
  const int64_t spatial = random.range(1, 3), groups = random.pick(std::vector<int64_t>{1, 1, 2, 3});
  const bool transposed = random.coin(3);
  const int64_t in = groups * random.range(1, 3), out = groups * random.range(1, 3);
  Shape input = {random.range(1, 2), in},
        weight = transposed ? Shape{in, out / groups} : Shape{out, in / groups};
  std::vector<int64_t> stride, padding, dilation, extra;
  for (int64_t i = 0; i < spatial; ++i) {
    const int64_t size = random.range(1, 3);
    weight.push_back(size);
    stride.push_back(random.range(1, 3));
    dilation.push_back(random.range(1, 2));
    const int64_t extent = (size - 1) * dilation.back() + 1;
    padding.push_back(random.range(0, transposed ? (extent - 1) / 2 : 2));
    input.push_back(random.range(std::max<int64_t>(extent - 2 * padding.back(), 1), 8));
    extra.push_back(transposed ? random.range(0, std::max(stride.back(), dilation.back()) - 1) : 0);
  }
  Groups operands = {{random.tensor(DType::Float32, input)}, {random.tensor(DType::Float32, weight)}, {}};
  if (const auto bias = maybe(random, random.tensor(DType::Float32, {out}))) operands[2].push_back(bias);
  return fromAten(kernel, operands,
                  {{"stride", textOf(stride)},
                   {"padding", textOf(padding)},
                   {"dilation", textOf(dilation)},
                   {"transposed", boolText(transposed)},
                   {"output_padding", textOf(extra)},
                   {"groups", std::to_string(groups)}},
                  random.layouts());
}

Generator pool(bool largest) {
  return [=](const std::string& kernel, Random& random) {
    const int64_t size = random.range(1, 4);
    Shape shape = {random.range(1, 2), random.range(1, 3), random.range(8, 11), random.range(8, 11)};
    if (random.coin(3)) shape.erase(shape.begin());
    Attributes attributes = {{"kernel_size", textOf({size, random.range(std::max<int64_t>(size - 1, 1), 4)})},
                             {"padding", list(random, 2, 0, std::max<int64_t>(size - 1, 1) / 2)},
                             {"ceil_mode", boolText(random.coin())}};
    if (random.coin()) attributes.emplace_back("stride", list(random, 2, 1, 3));
    if (largest) {
      attributes.emplace_back("dilation", list(random, 2, 1, 2));
    } else {
      attributes.emplace_back("count_include_pad", boolText(random.coin()));
      if (random.coin(4)) attributes.emplace_back("divisor_override", "7");
    }
    const DType dtype = largest ? random.pick(kNumbers) : DType::Float32;
    return fromAten(kernel, {{random.tensor(dtype, shape, -99, 99)}}, attributes, random.layouts());
  };
}

KernelCase adaptiveCase(const std::string& kernel, Random& random) {
  return fromAten(kernel, {{random.tensor(DType::Float32, {2, 3, random.range(1, 9), random.range(1, 9)})}},
                  {{"output_size", textOf({random.range(1, 5), random.range(1, 5)})}}, random.layouts());
}

KernelCase layerNormCase(const std::string& kernel, Random& random) {
  Shape shape = random.shape(1, 4, 5, false);
  shape.back() = std::max<int64_t>(shape.back(), 2);  // normalizing one value leaves only rounding errors
  const Shape inner(shape.begin() + random.range(0, static_cast<int64_t>(shape.size()) - 1), shape.end());
  Groups operands = {{random.tensor(DType::Float32, shape)}, {}, {}};
  if (const auto weight = maybe(random, random.tensor(DType::Float32, inner))) operands[1].push_back(weight);
  if (const auto bias = maybe(random, random.tensor(DType::Float32, inner))) operands[2].push_back(bias);
  return fromAten(kernel, operands, {{"normalized_shape", textOf(inner)}, {"eps", "0.001"}});
}

KernelCase groupNormCase(const std::string& kernel, Random& random) {
  const int64_t groups = random.range(1, 3), channels = groups * random.range(1, 3);
  Shape shape = {random.range(1, 3), channels};
  int64_t plane = 1;
  for (int64_t i = random.range(1, 3); i > 0; --i) {
    shape.push_back(random.range(2, 5));
    plane *= shape.back();
  }
  Groups operands = {{random.tensor(DType::Float32, shape)}, {}, {}};
  if (const auto weight = maybe(random, random.tensor(DType::Float32, {channels})))
    operands[1].push_back(weight);
  if (const auto bias = maybe(random, random.tensor(DType::Float32, {channels}))) operands[2].push_back(bias);
  return fromAten(kernel, operands,
                  {{"N", std::to_string(shape[0])},
                   {"C", std::to_string(channels)},
                   {"HxW", std::to_string(plane)},
                   {"group", std::to_string(groups)},
                   {"eps", "0.001"}});
}

KernelCase batchNormCase(const std::string& kernel, Random& random) {
  Shape shape = random.shape(2, 4);
  const Shape channels = {shape[1]};
  Groups operands = {{random.tensor(DType::Float32, shape)},
                     {},
                     {},
                     {random.tensor(DType::Float32, channels)},
                     {random.tensor(DType::Float32, channels, 0.1, 2)}};
  if (const auto weight = maybe(random, random.tensor(DType::Float32, channels)))
    operands[1].push_back(weight);
  if (const auto bias = maybe(random, random.tensor(DType::Float32, channels))) operands[2].push_back(bias);
  return fromAten(kernel, operands, {{"momentum", "0.1"}, {"eps", "0.001"}}, random.layouts());
}

Generator resized(bool linear) {
  return [=](const std::string& kernel, Random& random) {
    const Shape shape = {random.range(1, 2), random.range(1, 3), random.range(1, 7), random.range(1, 7)};
    Attributes attributes;
    if (linear) attributes.emplace_back("align_corners", boolText(random.coin()));
    if (random.coin()) {
      attributes.emplace_back("output_size", textOf({random.range(1, 11), random.range(1, 11)}));
      attributes.emplace_back("scale_factors", "None");
    } else {
      attributes.emplace_back("output_size", "None");
      attributes.emplace_back(
          "scale_factors", random.pick(std::vector<std::string>{"[2.0, 2.0]", "[1.7, 2.3]", "[1.0, 3.5]"}));
    }
    return fromAten(kernel, {{random.tensor(DType::Float32, shape)}}, attributes, random.layouts());
  };
}

carina::Tensor indicesTo(Random& random, const Shape& shape, int64_t size, bool negative) {
  return random.tensor(negative || random.coin() ? DType::Int64 : DType::Int32, shape,
                       static_cast<double>(negative ? -size : 0), static_cast<double>(size - 1));
}

KernelCase embeddingCase(const std::string& kernel, Random& random) {
  const int64_t rows = random.range(1, 9);
  return fromAten(kernel, {{random.tensor(random.pick(kAll), {rows, random.range(1, 6)})},
                           {indicesTo(random, random.shape(0, 3), rows, false)}});
}

KernelCase indexSelectCase(const std::string& kernel, Random& random) {
  const Shape shape = random.shape(1, 4, 5, false);
  const int64_t dim = random.range(0, static_cast<int64_t>(shape.size()) - 1);
  return fromAten(kernel,
                  {{random.tensor(random.pick(kAll), shape)},
                   {indicesTo(random, {random.range(0, 7)}, shape[static_cast<size_t>(dim)], false)}},
                  {{"dim", std::to_string(dim)}}, random.layouts());
}

/// Grids that reach beyond the edges, in every mode. Nearest-mode samples are a third of the way between
/// elements, as at halves the last bit of a coordinate would decide.
KernelCase gridCase(const std::string& kernel, Random& random) {
  const int64_t batch = random.range(1, 2), height = random.range(1, 5), width = random.range(1, 5);
  const int64_t mode = random.range(0, 2);
  const bool nearest = mode == 1, align = random.coin();
  const Shape shape = {batch, random.range(1, 3), height, width};
  carina::Tensor grid =
      random.tensor(DType::Float32, {batch, random.range(1, 4), random.range(1, 4), 2}, -2, 2);
  if (nearest) {
    const auto values = grid.mutableAs<float>();
    for (size_t i = 0; i < values.size(); ++i) {
      const auto size = static_cast<float>(i % 2 == 0 ? width : height);
      const float at = static_cast<float>(random.range(-1, 5)) + 1.0f / 3;
      const float last = std::max(size - 1, 1.0f);
      values[i] = align ? at * 2 / last - 1 : (at * 2 + 1) / size - 1;
    }
  }
  return fromAten(kernel, {{random.tensor(DType::Float32, shape)}, {grid}},
                  {{"interpolation_mode", std::to_string(mode)},
                   {"padding_mode", std::to_string(random.range(0, 2))},
                   {"align_corners", boolText(align)}},
                  random.layouts());
}

/// gather and scatter: the sizes of the index tensor are at most the tensor's.
Generator elementwise(bool writes, bool value) {
  return [=](const std::string& kernel, Random& random) {
    const Shape shape = random.shape(1, 3, 5, false);
    const auto dim = static_cast<size_t>(random.range(0, static_cast<int64_t>(shape.size()) - 1));
    Shape part = shape;
    for (size_t d = 0; d < part.size(); ++d) part[d] = random.range(1, part[d]);
    // The order of several writes to an element is unspecified, so indices along the dimension are distinct.
    const bool distinct = writes && kernel.find("add") == std::string::npos;
    carina::Tensor index = carina::Tensor::zeros(DType::Int64, part);
    int64_t inner = 1;
    for (size_t d = dim + 1; d < part.size(); ++d) inner *= part[d];
    const int64_t shift = random.range(0, shape[dim] - 1);
    for (int64_t i = 0; i < index.numElements(); ++i)
      index.setIntegerAt(
          i, distinct ? (i / inner % part[dim] + shift) % shape[dim] : random.range(0, shape[dim] - 1));
    const DType dtype = random.pick(kNumbers);
    Groups operands = {{random.tensor(dtype, shape)}, {index}};
    Attributes attributes = {{"dim", std::to_string(dim)}};
    if (value) attributes.emplace_back("value", "3");
    if (writes && !value) operands.push_back({random.tensor(dtype, part)});
    return fromAten(kernel, operands, attributes, random.layouts());
  };
}

KernelCase indexCase(const std::string& kernel, Random& random) {
  const bool puts = kernel == "aten::index_put.out";
  const Shape shape = random.shape(1, 4, 5, false);
  const Shape broadcast = random.shape(0, 2, 3, false);
  const DType dtype = random.pick(kNumbers);
  const bool adds = puts && random.coin();
  Groups operands = {{random.tensor(dtype, shape)}, {}};
  bool any = false;
  for (size_t d = 0; d < shape.size(); ++d) {
    const bool last = d + 1 == shape.size();
    if (random.coin() || (last && !any)) {
      operands[1].emplace_back(indicesTo(random, random.narrower(broadcast), shape[d], true));
      any = true;
    } else if (!last) {
      operands[1].emplace_back(std::nullopt);
    }
  }
  if (!puts) return fromAten(kernel, operands);
  // A single value: which of several writes to an element wins is unspecified.
  operands.push_back({random.tensor(dtype, {})});
  return fromAten(kernel, operands, {{"accumulate", boolText(adds)}});
}

}  // namespace

void addWindow(Generators& g) {
  g["aten::convolution.out"] = convolutionCase;
  g["aten::max_pool2d_with_indices.out"] = pool(true);
  g["aten::avg_pool2d.out"] = pool(false);
  g["aten::_adaptive_avg_pool2d.out"] = adaptiveCase;
  g["aten::native_layer_norm.out"] = layerNormCase;
  g["aten::native_group_norm.out"] = groupNormCase;
  g["aten::_native_batch_norm_legit_no_training.out"] = batchNormCase;
  g["aten::grid_sampler_2d.out"] = gridCase;
  g["aten::upsample_nearest2d.vec_out"] = resized(false);
  g["aten::upsample_bilinear2d.vec_out"] = resized(true);
  g["aten::embedding.out"] = embeddingCase;
  g["aten::index_select.out"] = indexSelectCase;
  g["aten::gather.out"] = elementwise(false, false);
  g["aten::scatter.src_out"] = g["aten::scatter_add.out"] = elementwise(true, false);
  g["aten::scatter.value_out"] = elementwise(true, true);
  g["aten::index.Tensor_out"] = g["aten::index_put.out"] = indexCase;
}

}  // namespace carina::rt::test
