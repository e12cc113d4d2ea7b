// SPDX-License-Identifier: Apache-2.0
// Convolutions: oneDNN on plain layouts, except 2-D depthwise ones, which have a kernel of their own
// (depthwise.cpp).
#include <array>
#include <dnnl.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "aten/geometry.hpp"
#include "aten/kernels/conv_transpose.hpp"
#include "aten/kernels/depthwise.hpp"
#include "aten/kernels/kernel.hpp"
#include "onednn/engine.hpp"

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

/// Shapes as oneDNN expects them: batched, and weights with a group dimension if there are several groups.
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

/// The arguments of one execution of a primitive. Creating oneDNN memory objects takes longer than a small
/// convolution, so they are created once and redirected to other data.
struct MemoryArguments {
  std::unordered_map<int, memory> list;

  void set(int argument, const void* data) { list.at(argument).set_data_handle(const_cast<void*>(data)); }
};

/// A convolution primitive with everything it needs to run. Any number of threads may run it at the same
/// time.
class Prepared {
 public:
  Prepared(const ConvGeometry& g, const ConvShapes& shapes, bool withBias) {
    const memory::desc input = plain(shapes.input), weight = plain(shapes.weight),
                       output = plain(shapes.output);
    const memory::desc bias = withBias ? plain({g.outChannels}) : memory::desc();
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::convolution_forward::primitive_desc primitive(
        {dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, input, weight, bias, output,
         list(g.stride), list(g.dilation, 1), list(g.padBefore), list(g.padAfter)},
        attributes, onednn::engine());
    primitive_ = dnnl::convolution_forward(primitive);
    descriptions_ = {{DNNL_ARG_SRC, input},
                     {DNNL_ARG_WEIGHTS, weight},
                     {DNNL_ARG_DST, output},
                     {DNNL_ARG_SCRATCHPAD, primitive.scratchpad_desc()}};
    if (withBias) descriptions_.emplace_back(DNNL_ARG_BIAS, bias);
  }

  int64_t scratchBytes() const { return static_cast<int64_t>(descriptions_[3].second.get_size()); }

  Status run(const void* input, const void* weight, const void* bias, void* scratch, void* output) const {
    return onednn::run([&](dnnl::stream& stream) {
      auto arguments = take();
      arguments->set(DNNL_ARG_SRC, input);
      arguments->set(DNNL_ARG_WEIGHTS, weight);
      arguments->set(DNNL_ARG_DST, output);
      arguments->set(DNNL_ARG_SCRATCHPAD, scratch);
      if (bias) arguments->set(DNNL_ARG_BIAS, bias);
      primitive_.execute(stream, arguments->list);
      const std::lock_guard lock(mutex_);
      unused_.push_back(std::move(arguments));
    });
  }

 private:
  std::unique_ptr<MemoryArguments> take() const {
    {
      const std::lock_guard lock(mutex_);
      if (!unused_.empty()) {
        auto arguments = std::move(unused_.back());
        unused_.pop_back();
        return arguments;
      }
    }
    auto arguments = std::make_unique<MemoryArguments>();
    for (const auto& [argument, description] : descriptions_)
      arguments->list.emplace(argument, memory(description, onednn::engine(), nullptr));
    return arguments;
  }

  dnnl::primitive primitive_;
  std::vector<std::pair<int, memory::desc>> descriptions_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<MemoryArguments>> unused_;
};

/// Primitives in use, by what they compute: networks repeat their layers, and creating a primitive takes
/// longer than running a small one.
class Primitives {
 public:
  Result<std::shared_ptr<const Prepared>> get(const ConvGeometry& g, const ConvShapes& shapes,
                                              bool withBias) {
    const Key key{shapes.input, shapes.weight, shapes.output, g.stride,
                  g.dilation,   g.padBefore,   g.padAfter,    {withBias ? g.outChannels : -1}};
    const std::lock_guard lock(mutex_);
    std::weak_ptr<const Prepared>& known = known_[key];
    if (auto prepared = known.lock()) return prepared;
    std::shared_ptr<const Prepared> made;
    CARINA_RETURN_IF_ERROR(onednn::guarded([&] { made = std::make_shared<Prepared>(g, shapes, withBias); }));
    known = made;
    if (known_.size() > most_) {
      std::erase_if(known_, [](const auto& entry) { return entry.second.expired(); });
      most_ = std::max<size_t>(kFew, 2 * known_.size());
    }
    return made;
  }

 private:
  using Key = std::array<std::vector<int64_t>, 8>;
  static constexpr size_t kFew = 64;

  std::mutex mutex_;
  std::map<Key, std::weak_ptr<const Prepared>> known_;
  size_t most_ = kFew;  // number of entries that triggers the removal of expired ones
};

Kernel onednnConvolution(std::shared_ptr<const Prepared> prepared) {
  return [prepared = std::move(prepared)](Call& call) -> Status {
    for (size_t i = 0; i < call.numOperands(); ++i) {
      if (call.operand(i).dtype() != DType::Float32)
        return fail(Code::WrongElementType, "convolutions of type {} are not supported",
                    dtypeName(call.operand(i).dtype()));
    }
    Tensor scratch = Tensor::uninitialized(DType::Int8, {prepared->scratchBytes()});
    const Tensor* bias = call.named(2);
    float* out = call.allocate().mutableAs<float>().data();
    return prepared->run(call.operand(0).bytes().data(), call.operand(1).bytes().data(),
                         bias ? bias->bytes().data() : nullptr, scratch.mutableBytes().data(), out);
  };
}

Result<Kernel> prepareConvolution(const ir::Node& node) {
  CARINA_TRY(const ConvGeometry geometry, convGeometry(node));
  if (geometry.transposed) return transposedKernel(geometry, node.operand(0)->shape());
  if (isDepthwise(geometry)) return depthwiseKernel(geometry, node.operand(0)->shape());
  static Primitives primitives;
  CARINA_TRY(auto prepared, primitives.get(geometry, convShapes(node, geometry), node.operand(2) != nullptr));
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
