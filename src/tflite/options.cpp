// SPDX-License-Identifier: Apache-2.0
// Options of built-in operators as names and values.
#include "tflite/options.hpp"

#include <cstring>

namespace carina::tflite {
namespace {

using Named = std::vector<Option>;

template <typename T>
Option number(std::string_view name, T value) {
  return {name, static_cast<double>(value), {}, {}};
}
/// Through memcpy: see readers of other vectors.
Option list(std::string_view name, const flatbuffers::Vector<int32_t>* values) {
  std::vector<int32_t> items(values != nullptr ? values->size() : 0);
  if (!items.empty()) std::memcpy(items.data(), values->Data(), items.size() * sizeof(int32_t));
  return {name, 0, {items.begin(), items.end()}, {}};
}
Option words(std::string_view name, const flatbuffers::String* value) {
  return {name, 0, {}, value != nullptr ? value->string_view() : std::string_view()};
}

Named read(const fb::Conv2DOptions& o) {
  return {number("padding", o.padding()),
          number("stride_w", o.stride_w()),
          number("stride_h", o.stride_h()),
          number("fused_activation_function", o.fused_activation_function()),
          number("dilation_w_factor", o.dilation_w_factor()),
          number("dilation_h_factor", o.dilation_h_factor())};
}
Named read(const fb::DepthwiseConv2DOptions& o) {
  return {number("padding", o.padding()),
          number("stride_w", o.stride_w()),
          number("stride_h", o.stride_h()),
          number("depth_multiplier", o.depth_multiplier()),
          number("fused_activation_function", o.fused_activation_function()),
          number("dilation_w_factor", o.dilation_w_factor()),
          number("dilation_h_factor", o.dilation_h_factor())};
}
Named read(const fb::Pool2DOptions& o) {
  return {number("padding", o.padding()),
          number("stride_w", o.stride_w()),
          number("stride_h", o.stride_h()),
          number("filter_width", o.filter_width()),
          number("filter_height", o.filter_height()),
          number("fused_activation_function", o.fused_activation_function())};
}
Named read(const fb::FullyConnectedOptions& o) {
  return {number("fused_activation_function", o.fused_activation_function()),
          number("weights_format", o.weights_format()), number("keep_num_dims", o.keep_num_dims())};
}
Named read(const fb::SoftmaxOptions& o) {
  return {number("beta", o.beta())};
}
Named read(const fb::ConcatenationOptions& o) {
  return {number("axis", o.axis()), number("fused_activation_function", o.fused_activation_function())};
}
Named read(const fb::AddOptions& o) {
  return {number("fused_activation_function", o.fused_activation_function())};
}
Named read(const fb::ResizeBilinearOptions& o) {
  return {number("align_corners", o.align_corners()), number("half_pixel_centers", o.half_pixel_centers())};
}
Named read(const fb::ReshapeOptions& o) {
  return {list("new_shape", o.new_shape())};
}
Named read(const fb::SpaceToDepthOptions& o) {
  return {number("block_size", o.block_size())};
}
Named read(const fb::MulOptions& o) {
  return {number("fused_activation_function", o.fused_activation_function())};
}
Named read(const fb::GatherOptions& o) {
  return {number("axis", o.axis()), number("batch_dims", o.batch_dims())};
}
Named read(const fb::ReducerOptions& o) {
  return {number("keep_dims", o.keep_dims())};
}
Named read(const fb::SvdfOptions& o) {
  return {number("rank", o.rank()), number("fused_activation_function", o.fused_activation_function())};
}
Named read(const fb::SubOptions& o) {
  return {number("fused_activation_function", o.fused_activation_function())};
}
Named read(const fb::DivOptions& o) {
  return {number("fused_activation_function", o.fused_activation_function())};
}
Named read(const fb::SqueezeOptions& o) {
  return {list("squeeze_dims", o.squeeze_dims())};
}
Named read(const fb::StridedSliceOptions& o) {
  return {number("begin_mask", o.begin_mask()),
          number("end_mask", o.end_mask()),
          number("ellipsis_mask", o.ellipsis_mask()),
          number("new_axis_mask", o.new_axis_mask()),
          number("shrink_axis_mask", o.shrink_axis_mask()),
          number("offset", o.offset())};
}
Named read(const fb::SplitOptions& o) {
  return {number("num_splits", o.num_splits())};
}
Named read(const fb::TransposeConvOptions& o) {
  return {number("padding", o.padding()), number("stride_w", o.stride_w()), number("stride_h", o.stride_h()),
          number("fused_activation_function", o.fused_activation_function())};
}
Named read(const fb::PackOptions& o) {
  return {number("values_count", o.values_count()), number("axis", o.axis())};
}
Named read(const fb::UnpackOptions& o) {
  return {number("num", o.num()), number("axis", o.axis())};
}
Named read(const fb::UnidirectionalSequenceLstmOptions& o) {
  return {number("fused_activation_function", o.fused_activation_function()),
          number("cell_clip", o.cell_clip()), number("proj_clip", o.proj_clip()),
          number("time_major", o.time_major())};
}
Named read(const fb::ResizeNearestNeighborOptions& o) {
  return {number("align_corners", o.align_corners()), number("half_pixel_centers", o.half_pixel_centers())};
}
Named read(const fb::LeakyReluOptions& o) {
  return {number("alpha", o.alpha())};
}
Named read(const fb::MirrorPadOptions& o) {
  return {number("mode", o.mode())};
}
Named read(const fb::SplitVOptions& o) {
  return {number("num_splits", o.num_splits())};
}
Named read(const fb::IfOptions& o) {
  return {number("then_subgraph_index", o.then_subgraph_index()),
          number("else_subgraph_index", o.else_subgraph_index())};
}
Named read(const fb::WhileOptions& o) {
  return {number("cond_subgraph_index", o.cond_subgraph_index()),
          number("body_subgraph_index", o.body_subgraph_index())};
}
Named read(const fb::CallOnceOptions& o) {
  return {number("init_subgraph_index", o.init_subgraph_index())};
}
Named read(const fb::VarHandleOptions& o) {
  return {words("container", o.container()), words("shared_name", o.shared_name())};
}
Named read(const fb::DepthToSpaceOptions& o) {
  return {number("block_size", o.block_size())};
}
Named read(const fb::BatchMatMulOptions& o) {
  return {number("adj_x", o.adj_x()), number("adj_y", o.adj_y())};
}
Named read(const fb::GeluOptions& o) {
  return {number("approximate", o.approximate())};
}

template <typename T>
Named readOptions(const fb::OperatorEntry& entry) {
  const T* options = entry.builtin_options_as<T>();
  return options != nullptr ? read(*options) : Named();
}

}  // namespace

std::vector<Option> optionsOf(const fb::OperatorEntry& entry) {
  switch (entry.builtin_options_type()) {
    case fb::OperatorOptions::Conv2DOptions:
      return readOptions<fb::Conv2DOptions>(entry);
    case fb::OperatorOptions::DepthwiseConv2DOptions:
      return readOptions<fb::DepthwiseConv2DOptions>(entry);
    case fb::OperatorOptions::Pool2DOptions:
      return readOptions<fb::Pool2DOptions>(entry);
    case fb::OperatorOptions::FullyConnectedOptions:
      return readOptions<fb::FullyConnectedOptions>(entry);
    case fb::OperatorOptions::SoftmaxOptions:
      return readOptions<fb::SoftmaxOptions>(entry);
    case fb::OperatorOptions::ConcatenationOptions:
      return readOptions<fb::ConcatenationOptions>(entry);
    case fb::OperatorOptions::AddOptions:
      return readOptions<fb::AddOptions>(entry);
    case fb::OperatorOptions::ResizeBilinearOptions:
      return readOptions<fb::ResizeBilinearOptions>(entry);
    case fb::OperatorOptions::ReshapeOptions:
      return readOptions<fb::ReshapeOptions>(entry);
    case fb::OperatorOptions::SpaceToDepthOptions:
      return readOptions<fb::SpaceToDepthOptions>(entry);
    case fb::OperatorOptions::MulOptions:
      return readOptions<fb::MulOptions>(entry);
    case fb::OperatorOptions::GatherOptions:
      return readOptions<fb::GatherOptions>(entry);
    case fb::OperatorOptions::ReducerOptions:
      return readOptions<fb::ReducerOptions>(entry);
    case fb::OperatorOptions::DivOptions:
      return readOptions<fb::DivOptions>(entry);
    case fb::OperatorOptions::SvdfOptions:
      return readOptions<fb::SvdfOptions>(entry);
    case fb::OperatorOptions::SubOptions:
      return readOptions<fb::SubOptions>(entry);
    case fb::OperatorOptions::SqueezeOptions:
      return readOptions<fb::SqueezeOptions>(entry);
    case fb::OperatorOptions::StridedSliceOptions:
      return readOptions<fb::StridedSliceOptions>(entry);
    case fb::OperatorOptions::SplitOptions:
      return readOptions<fb::SplitOptions>(entry);
    case fb::OperatorOptions::TransposeConvOptions:
      return readOptions<fb::TransposeConvOptions>(entry);
    case fb::OperatorOptions::PackOptions:
      return readOptions<fb::PackOptions>(entry);
    case fb::OperatorOptions::UnpackOptions:
      return readOptions<fb::UnpackOptions>(entry);
    case fb::OperatorOptions::UnidirectionalSequenceLstmOptions:
      return readOptions<fb::UnidirectionalSequenceLstmOptions>(entry);
    case fb::OperatorOptions::ResizeNearestNeighborOptions:
      return readOptions<fb::ResizeNearestNeighborOptions>(entry);
    case fb::OperatorOptions::LeakyReluOptions:
      return readOptions<fb::LeakyReluOptions>(entry);
    case fb::OperatorOptions::MirrorPadOptions:
      return readOptions<fb::MirrorPadOptions>(entry);
    case fb::OperatorOptions::SplitVOptions:
      return readOptions<fb::SplitVOptions>(entry);
    case fb::OperatorOptions::IfOptions:
      return readOptions<fb::IfOptions>(entry);
    case fb::OperatorOptions::WhileOptions:
      return readOptions<fb::WhileOptions>(entry);
    case fb::OperatorOptions::CallOnceOptions:
      return readOptions<fb::CallOnceOptions>(entry);
    case fb::OperatorOptions::VarHandleOptions:
      return readOptions<fb::VarHandleOptions>(entry);
    case fb::OperatorOptions::DepthToSpaceOptions:
      return readOptions<fb::DepthToSpaceOptions>(entry);
    case fb::OperatorOptions::BatchMatMulOptions:
      return readOptions<fb::BatchMatMulOptions>(entry);
    case fb::OperatorOptions::GeluOptions:
      return readOptions<fb::GeluOptions>(entry);
    default:
      return {};
  }
}

}  // namespace carina::tflite
