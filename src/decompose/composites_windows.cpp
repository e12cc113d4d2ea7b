// SPDX-License-Identifier: Apache-2.0
// Pooling of lines and volumes with indices, unpooling, affine grids and samplers of volumes.
#include <algorithm>
#include <array>
#include <cmath>

#include "aten/geometry.hpp"
#include "aten/sampling.hpp"
#include "decompose/composite.hpp"

namespace carina::decompose::composite {

using namespace aten;
namespace {

// The longest strides of kernels and of the NPU's windows.
constexpr int64_t kMostStride = 1 << 16;
// Grids with more positions than this are kept.
constexpr int64_t kMaxPositions = int64_t{1} << 24;

/// theta [N, D, D + 1] times the base grid [positions, D + 1].
Result<Results> affineGrid(Composite& c) {
  Value* theta = c.operand("theta");
  const Ints size = c.arguments().ints("size");
  if (size.size() != 4 && size.size() != 5) return none();
  const auto dims = static_cast<int64_t>(size.size()) - 2;
  const Shape spatial(size.begin() + 2, size.end());
  const auto positions = checkedNumElements(spatial);
  if (theta->type != ir::Type{DType::Float32, {size[0], dims, dims + 1}} || !positions || *positions <= 0 ||
      *positions > kMaxPositions)
    return none();
  Value* base = c.b().constant(
      Tensor::from({*positions, dims + 1}, affineBase(spatial, c.arguments().boolean("align_corners"))));
  Value* grid =
      TransposeInt::create(c.b(), Linear::create(c.b(), theta, base, nullptr), int64_t{1}, int64_t{2});
  Ints shape{size[0]};
  shape.insert(shape.end(), spatial.begin(), spatial.end());
  shape.push_back(dims);
  return Results{c.reshape(grid, shape)};
}

/// Uses the operator that also samples planes.
Result<Results> volumeSampler(Composite& c) {
  Value *input = c.operand("input"), *grid = c.operand("grid");
  CARINA_TRY(const GridSampling sampling, gridSampling(c.node()));
  if (input->rank() != 5 || grid->rank() != 5 || grid->dim(4) != 3 || grid->dim(0) != input->dim(0))
    return none();
  return Results{GridSampler::create(c.b(), input, grid, sampling.interpolation, sampling.padding,
                                     sampling.alignCorners)};
}

/// The results of a convolution that read the input along one dimension: the windows [first, first + count),
/// and the padding that they need.
struct Seen {
  int64_t first = 0, count = 0, before = 0, after = 0, stride = 1;

  Seen(const ConvGeometry& g, size_t axis, int64_t size, int64_t results) : stride(g.stride[axis]) {
    const int64_t pad = g.padBefore[axis], extent = (g.kernel[axis] - 1) * g.dilation[axis] + 1;
    first = std::max<int64_t>(0, ceilDiv(std::max<int64_t>(pad - extent + 1, 0), stride));
    const int64_t last = std::min(results - 1, (size - 1 + pad) / stride);
    count = std::max<int64_t>(last - first + 1, 0);
    before = pad - first * stride;
    after = std::max<int64_t>((count - 1) * stride + extent - size - before, 0);
    if (count == 1)
      stride = std::min(stride, size + before + after - extent + 1);  // to the start of a second window
  }
};

/// A convolution most of whose windows are entirely in the padding, where the result is the bias: the windows
/// that read the input are computed and padded with zeros, and the bias is added. Strides that lead far
/// beyond the input are shortened.
Result<Results> paddedConvolution(Composite& c) {
  Value *x = c.operand("input"), *weight = c.operand("weight"), *bias = c.operand("bias");
  CARINA_TRY(const ConvGeometry g, convGeometry(c.node()));
  if (g.transposed || x->numElements() == 0 || weight->numElements() == 0) return none();
  Ints stride, inner, outer;  // paddings from the last dimension to the first, as pad expects them
  int64_t computed = 1, results = 1;
  bool far = false;
  for (size_t i = 0; i < g.spatial; ++i) {
    const size_t fromEnd = g.spatial - i;
    const int64_t out = g.output[g.output.size() - fromEnd];
    const Seen seen(g, i, x->shape()[x->shape().size() - fromEnd], out);
    stride.push_back(seen.stride);
    far |= g.stride[i] > kMostStride;
    inner.insert(inner.begin(), {seen.before, seen.after});
    outer.insert(outer.begin(), {seen.first, out - seen.first - seen.count});
    computed *= seen.count;
    results *= out;
  }
  if (results / 4 <= computed && !far) return none();
  const ir::Type type = c.node().result()->type;
  Value* sum = nullptr;
  if (computed == 0) {
    sum = c.b().constant(Tensor::zeros(type.dtype, type.shape));
  } else {
    sum = Convolution::create(c.b(), c.padded(x, inner), weight, nullptr, stride, Ints(g.spatial, 0),
                              g.dilation, false, Ints(g.spatial, 0), g.groups);
    sum = c.padded(sum, outer);
  }
  if (!bias) return Results{sum};
  Ints shape(g.spatial + 1, 1);
  shape[0] = g.outChannels;
  return Results{c.add(sum, c.reshape(bias, shape))};
}

/// Resizing as decompositions leave it: sizes, and possibly the factors that led to them.
Result<Results> resized(Composite& c) {
  const ir::OpDef* vec =
      findOperator(std::string(c.node().opName().substr(0, c.node().opName().rfind('.'))) + ".vec");
  const Ints size = c.arguments().ints("output_size");
  Value* x = c.node().operands()[0];
  if (!vec || size.size() > 3 || x->rank() != static_cast<int64_t>(size.size()) + 2) return none();
  static constexpr std::array<std::string_view, 3> kScales{"scales_d", "scales_h", "scales_w"};
  ir::Reals factors;
  for (size_t i = 0; i < size.size(); ++i) {
    const std::string_view name = size.size() == 1 ? "scales" : kScales[i + 3 - size.size()];
    const double factor = c.arguments().given(name) ? c.arguments().real(name) : 0;
    const auto rows = static_cast<double>(x->dim(static_cast<int64_t>(i) + 2));
    if (std::floor(rows * factor) == static_cast<double>(size[i])) factors.push_back(factor);
  }
  const bool byFactors = factors.size() == size.size();
  ir::NodeSpec spec;
  spec.def = vec;
  spec.operands = {{x}};
  for (const ir::AttributeDef& attribute : vec->attributes) {
    if (attribute.name == "align_corners")
      spec.attributes.emplace_back(c.arguments().boolean("align_corners"));
    else if (attribute.name == "scale_factors")
      spec.attributes.push_back(byFactors ? ir::Attribute(factors) : ir::Attribute());
    else
      spec.attributes.push_back(byFactors ? ir::Attribute() : ir::Attribute(size));
  }
  spec.types = {c.node().result()->type};
  return Results{c.b().create(std::move(spec))->result()};
}

/// A line is an image one row high, in which elements have the same indices.
Result<Results> maxPoolLine(Composite& c) {
  CARINA_TRY(const PoolGeometry g, poolGeometry(c.node()));
  Value* x = c.operand("self");
  Ints image(x->shape().begin(), x->shape().end());
  if (image.size() == 2) image.insert(image.begin(), 1);
  image.insert(image.end() - 1, 1);
  const MaxPool2dWithIndices pool =
      MaxPool2dWithIndices::create(c.b(), c.reshape(x, image), Ints{1, g.kernel[0]}, Ints{1, g.stride[0]},
                                   Ints{0, g.padding[0]}, Ints{1, g.dilation[0]}, g.ceilMode);
  return Results{c.reshape(pool.node()->result(0), g.output), c.reshape(pool.node()->result(1), g.output)};
}

/// Pools the planes, then their results along the depth. Indices count the elements of the volume; both pools
/// select the first of equal elements.
Result<Results> maxPoolVolume(Composite& c) {
  if (c.node().result(1)->unused()) return none();
  CARINA_TRY(const PoolGeometry g, poolGeometry(c.node()));
  Value* x = c.operand("self");
  const Shape spatial(x->shape().end() - 3, x->shape().end()), pooled(g.output.end() - 3, g.output.end());
  const int64_t depth = spatial[0], plane = spatial[1] * spatial[2], places = pooled[1] * pooled[2];
  if (depth * plane == 0 || g.output.empty()) return none();
  const int64_t maps = x->numElements() / (depth * plane);
  const auto pool = [&](Value* image, size_t at, bool alongDepth) {
    const auto two = [&](const Ints& of, int64_t other) {
      return alongDepth ? Ints{of[at], other} : Ints{of[at], of[at + 1]};
    };
    return MaxPool2dWithIndices::create(c.b(), image, two(g.kernel, 1), two(g.stride, 1), two(g.padding, 0),
                                        two(g.dilation, 1), g.ceilMode)
        .node();
  };
  const ir::Node* planes = pool(c.reshape(x, {maps, depth, spatial[1], spatial[2]}), 1, false);
  const ir::Node* volume = pool(c.reshape(planes->result(0), {maps, 1, depth, places}), 0, true);
  // An index of the second pool is depth * places + place.
  Value* which = c.reshape(volume->result(1), {maps, pooled[0] * places});
  Value* within =
      Gather::create(c.b(), c.reshape(planes->result(1), {maps, depth * places}), which, int64_t{1});
  const auto number = [&](int64_t n) { return c.number(static_cast<double>(n), DType::Int64); };
  Value* before = DivTensorMode::create(c.b(), which, number(places), "floor");
  Value* indices = c.add(c.mul(before, number(plane)), within);
  return Results{c.reshape(volume->result(0), g.output), c.reshape(indices, g.output)};
}

/// Zeros, with the values written at their element indices in a plane or volume.
Result<Results> maxUnpool(Composite& c) {
  Value *values = c.operand("self"), *indices = c.operand("indices");
  const Ints size = c.arguments().ints("output_size");
  if (values->rank() <= static_cast<int64_t>(size.size()) || indices->shape() != values->shape() ||
      indices->dtype() != DType::Int64)
    return none();
  const auto kept = values->shape().end() - static_cast<std::ptrdiff_t>(size.size());
  const Shape outer(values->shape().begin(), kept);
  const auto flat = [&](const Shape& spatial) {
    Ints shape = outer;
    shape.push_back(numElements(spatial));
    return shape;
  };
  Ints shape = outer;
  shape.insert(shape.end(), size.begin(), size.end());
  if (c.node().result()->shape() != shape) return none();
  const Ints from = flat(Shape(kept, values->shape().end()));
  Value* zeros = c.b().constant(Tensor::zeros(values->dtype(), flat(size)));
  Value* put =
      ScatterSrc::create(c.b(), zeros, c.reshape(indices, from), c.reshape(values, from), int64_t{-1});
  return Results{c.reshape(put, shape)};
}

}  // namespace

const std::map<std::string_view, Composition>& windowComposites() {
  static const std::map<std::string_view, Composition> table{
      {"aten._upsample_bicubic2d_aa.default", resized},
      {"aten._upsample_bilinear2d_aa.default", resized},
      {"aten._upsample_nearest_exact1d.default", resized},
      {"aten._upsample_nearest_exact2d.default", resized},
      {"aten._upsample_nearest_exact3d.default", resized},
      {"aten.affine_grid_generator.default", affineGrid},
      {"aten.conv1d.default", paddedConvolution},
      {"aten.conv2d.default", paddedConvolution},
      {"aten.conv3d.default", paddedConvolution},
      {"aten.convolution.default", paddedConvolution},
      {"aten.grid_sampler_3d.default", volumeSampler},
      {"aten.max_pool1d_with_indices.default", maxPoolLine},
      {"aten.max_pool3d_with_indices.default", maxPoolVolume},
      {"aten.max_unpool2d.default", maxUnpool},
      {"aten.max_unpool3d.default", maxUnpool},
      {"aten.upsample_bicubic2d.default", resized},
      {"aten.upsample_bilinear2d.default", resized},
      {"aten.upsample_linear1d.default", resized},
      {"aten.upsample_nearest1d.default", resized},
      {"aten.upsample_nearest2d.default", resized},
      {"aten.upsample_nearest3d.default", resized},
      {"aten.upsample_trilinear3d.default", resized},
  };
  return table;
}

}  // namespace carina::decompose::composite
