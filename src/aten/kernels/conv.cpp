// SPDX-License-Identifier: Apache-2.0
// Convolutions: oneDNN on plain layouts, except 2-D depthwise ones, which have a kernel of their own
// (depthwise.cpp).
#include <dnnl.hpp>

#include "aten/geometry.hpp"
#include "aten/kernels/conv_transpose.hpp"
#include "aten/kernels/depthwise.hpp"
#include "aten/kernels/kernel.hpp"
#include "aten/kernels/onednn.hpp"

namespace carina::aten {
namespace {

using dnnl::memory;

memory::format_tag plainTag(size_t rank) {
  constexpr memory::format_tag kTags[] = {memory::format_tag::a,     memory::format_tag::ab,
                                          memory::format_tag::abc,   memory::format_tag::abcd,
                                          memory::format_tag::abcde, memory::format_tag::abcdef};
  return kTags[rank - 1];
}
memory::desc plain(const Shape& shape) {
  return {memory::dims(shape.begin(), shape.end()), memory::data_type::f32, plainTag(shape.size())};
}

/// Shapes as oneDNN wants them: batched, weights with a group dimension where there are groups.
struct ConvShapes {
  Shape input, weight, output;
};

ConvShapes convShapes(const ir::Node& node, const ConvGeometry& g) {
  ConvShapes s{node.operand(0)->shape(), node.operand(1)->shape(), g.output};
  if (!g.batched) {
    s.input.insert(s.input.begin(), 1);
    s.output.insert(s.output.begin(), 1);
  }
  if (g.groups > 1) {
    s.weight[0] /= g.groups;
    s.weight.insert(s.weight.begin(), g.groups);
  }
  return s;
}

memory::dims list(const ir::Ints& values, int64_t minus = 0) {
  memory::dims result(values.begin(), values.end());
  for (auto& value : result) value -= minus;
  return result;
}

/// A convolution primitive with what it needs to run.
struct Prepared {
  dnnl::primitive primitive;
  memory::desc input, weight, output, bias, scratch;
};

Prepared build(const ConvGeometry& g, const ConvShapes& shapes, bool withBias) {
  Prepared p;
  p.input = plain(shapes.input);
  p.weight = plain(shapes.weight);
  p.output = plain(shapes.output);
  if (withBias) p.bias = plain({g.outChannels});
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const dnnl::convolution_forward::primitive_desc primitive(
      {dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, p.input, p.weight, p.bias,
       p.output, list(g.stride), list(g.dilation, 1), list(g.padBefore), list(g.padAfter)},
      attributes, onednnEngine());
  p.scratch = primitive.scratchpad_desc();
  p.primitive = dnnl::convolution_forward(primitive);
  return p;
}

memory memoryOf(const memory::desc& desc, const void* data) {
  return {desc, onednnEngine(), const_cast<void*>(data)};
}

Kernel onednnConvolution(Prepared prepared) {
  return [prepared = std::move(prepared)](Call& call) -> Status {
    for (size_t i = 0; i < call.numOperands(); ++i) {
      if (call.operand(i).dtype() != DType::Float32)
        return fail(Code::WrongElementType, "convolutions of type {} are not supported",
                    dtypeName(call.operand(i).dtype()));
    }
    Tensor scratch = Tensor::uninitialized(DType::Int8, {static_cast<int64_t>(prepared.scratch.get_size())});
    const Tensor* bias = call.named(2);
    float* out = call.allocate().mutableAs<float>().data();
    std::unordered_map<int, memory> arguments{
        {DNNL_ARG_SRC, memoryOf(prepared.input, call.operand(0).bytes().data())},
        {DNNL_ARG_WEIGHTS, memoryOf(prepared.weight, call.operand(1).bytes().data())},
        {DNNL_ARG_DST, memoryOf(prepared.output, out)},
        {DNNL_ARG_SCRATCHPAD, memoryOf(prepared.scratch, scratch.mutableBytes().data())}};
    if (bias) arguments.emplace(DNNL_ARG_BIAS, memoryOf(prepared.bias, bias->bytes().data()));
    return runOnednn([&](dnnl::stream& stream) { prepared.primitive.execute(stream, arguments); });
  };
}

Result<Kernel> prepareConvolution(const ir::Node& node) {
  CARINA_TRY(const ConvGeometry geometry, convGeometry(node));
  if (geometry.transposed) return transposedKernel(geometry, node.operand(0)->shape());
  if (isDepthwise(geometry)) return depthwiseKernel(geometry, node.operand(0)->shape());
  const ConvShapes shapes = convShapes(node, geometry);
  Prepared prepared;
  CARINA_RETURN_IF_ERROR(
      guardOnednn([&] { prepared = build(geometry, shapes, node.operand(2) != nullptr); }));
  return onednnConvolution(std::move(prepared));
}

constexpr KernelEntry kConvKernels[] = {
    {"aten.conv1d.default", prepareConvolution},
    {"aten.conv2d.default", prepareConvolution},
    {"aten.conv3d.default", prepareConvolution},
    {"aten.conv1d.padding", prepareConvolution},
    {"aten.conv2d.padding", prepareConvolution},
    {"aten.conv3d.padding", prepareConvolution},
    {"aten.convolution.default", prepareConvolution},
    {"aten.conv_transpose1d.default", prepareConvolution},
    {"aten.conv_transpose2d.input", prepareConvolution},
    {"aten.conv_transpose3d.input", prepareConvolution},
};

}  // namespace

std::span<const KernelEntry> convKernels() {
  return kConvKernels;
}

}  // namespace carina::aten
