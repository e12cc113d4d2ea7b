// SPDX-License-Identifier: Apache-2.0
// Options of built-in operators as names and values.
#include "tflite/options.hpp"

#include <cstring>

#include "base/pairs.hpp"

namespace carina::tflite {
namespace {

using Named = std::vector<Option>;

template <typename T>
Option number(std::string_view name, T value) {
  return {name, static_cast<double>(value), {}, {}};
}
/// Via memcpy, like the readers of other vectors (reader.cpp).
Option list(std::string_view name, const flatbuffers::Vector<int32_t>* values) {
  std::vector<int32_t> items(values != nullptr ? values->size() : 0);
  if (!items.empty()) std::memcpy(items.data(), values->Data(), items.size() * sizeof(int32_t));
  return {name, 0, {items.begin(), items.end()}, {}};
}
Option words(std::string_view name, const flatbuffers::String* value) {
  return {name, 0, {}, value != nullptr ? value->string_view() : std::string_view()};
}

using ReadOptions = Named (*)(const fb::OperatorEntry&);

/// The reader for one type of options; `Read` converts their table.
template <typename Table, typename Read>
constexpr std::pair<fb::OperatorOptions, ReadOptions> row(Read) {
  return {fb::OperatorOptionsTraits<Table>::enum_value, [](const fb::OperatorEntry& entry) {
            const auto* options = entry.builtin_options_as<Table>();
            return options != nullptr ? Read{}(*options) : Named();
          }};
}

constexpr auto kActivation = [](const auto& o) {
  return Named{number("fused_activation_function", o.fused_activation_function())};
};
constexpr auto kCorners = [](const auto& o) {
  return Named{number("align_corners", o.align_corners()),
               number("half_pixel_centers", o.half_pixel_centers())};
};
constexpr auto kBlockSize = [](const auto& o) { return Named{number("block_size", o.block_size())}; };
constexpr auto kParts = [](const auto& o) { return Named{number("num_splits", o.num_splits())}; };

constexpr std::pair<fb::OperatorOptions, ReadOptions> kReaders[] = {
    row<fb::Conv2DOptions>([](const auto& o) {
      return Named{number("padding", o.padding()),
                   number("stride_w", o.stride_w()),
                   number("stride_h", o.stride_h()),
                   number("fused_activation_function", o.fused_activation_function()),
                   number("dilation_w_factor", o.dilation_w_factor()),
                   number("dilation_h_factor", o.dilation_h_factor())};
    }),
    row<fb::DepthwiseConv2DOptions>([](const auto& o) {
      return Named{number("padding", o.padding()),
                   number("stride_w", o.stride_w()),
                   number("stride_h", o.stride_h()),
                   number("depth_multiplier", o.depth_multiplier()),
                   number("fused_activation_function", o.fused_activation_function()),
                   number("dilation_w_factor", o.dilation_w_factor()),
                   number("dilation_h_factor", o.dilation_h_factor())};
    }),
    row<fb::Pool2DOptions>([](const auto& o) {
      return Named{number("padding", o.padding()),
                   number("stride_w", o.stride_w()),
                   number("stride_h", o.stride_h()),
                   number("filter_width", o.filter_width()),
                   number("filter_height", o.filter_height()),
                   number("fused_activation_function", o.fused_activation_function())};
    }),
    row<fb::FullyConnectedOptions>([](const auto& o) {
      return Named{number("fused_activation_function", o.fused_activation_function()),
                   number("weights_format", o.weights_format()), number("keep_num_dims", o.keep_num_dims())};
    }),
    row<fb::SoftmaxOptions>([](const auto& o) { return Named{number("beta", o.beta())}; }),
    row<fb::ConcatenationOptions>([](const auto& o) {
      return Named{number("axis", o.axis()),
                   number("fused_activation_function", o.fused_activation_function())};
    }),
    row<fb::AddOptions>(kActivation),
    row<fb::ResizeBilinearOptions>(kCorners),
    row<fb::ReshapeOptions>([](const auto& o) { return Named{list("new_shape", o.new_shape())}; }),
    row<fb::SpaceToDepthOptions>(kBlockSize),
    row<fb::MulOptions>(kActivation),
    row<fb::GatherOptions>([](const auto& o) {
      return Named{number("axis", o.axis()), number("batch_dims", o.batch_dims())};
    }),
    row<fb::ReducerOptions>([](const auto& o) { return Named{number("keep_dims", o.keep_dims())}; }),
    row<fb::SvdfOptions>([](const auto& o) {
      return Named{number("rank", o.rank()),
                   number("fused_activation_function", o.fused_activation_function())};
    }),
    row<fb::SubOptions>(kActivation),
    row<fb::DivOptions>(kActivation),
    row<fb::SqueezeOptions>([](const auto& o) { return Named{list("squeeze_dims", o.squeeze_dims())}; }),
    row<fb::StridedSliceOptions>([](const auto& o) {
      return Named{number("begin_mask", o.begin_mask()),
                   number("end_mask", o.end_mask()),
                   number("ellipsis_mask", o.ellipsis_mask()),
                   number("new_axis_mask", o.new_axis_mask()),
                   number("shrink_axis_mask", o.shrink_axis_mask()),
                   number("offset", o.offset())};
    }),
    row<fb::SplitOptions>(kParts),
    row<fb::TransposeConvOptions>([](const auto& o) {
      return Named{number("padding", o.padding()), number("stride_w", o.stride_w()),
                   number("stride_h", o.stride_h()),
                   number("fused_activation_function", o.fused_activation_function())};
    }),
    row<fb::PackOptions>([](const auto& o) {
      return Named{number("values_count", o.values_count()), number("axis", o.axis())};
    }),
    row<fb::UnpackOptions>([](const auto& o) {
      return Named{number("num", o.num()), number("axis", o.axis())};
    }),
    row<fb::UnidirectionalSequenceLstmOptions>([](const auto& o) {
      return Named{number("fused_activation_function", o.fused_activation_function()),
                   number("cell_clip", o.cell_clip()), number("proj_clip", o.proj_clip()),
                   number("time_major", o.time_major())};
    }),
    row<fb::ResizeNearestNeighborOptions>(kCorners),
    row<fb::LeakyReluOptions>([](const auto& o) { return Named{number("alpha", o.alpha())}; }),
    row<fb::MirrorPadOptions>([](const auto& o) { return Named{number("mode", o.mode())}; }),
    row<fb::SplitVOptions>(kParts),
    row<fb::IfOptions>([](const auto& o) {
      return Named{number("then_subgraph_index", o.then_subgraph_index()),
                   number("else_subgraph_index", o.else_subgraph_index())};
    }),
    row<fb::WhileOptions>([](const auto& o) {
      return Named{number("cond_subgraph_index", o.cond_subgraph_index()),
                   number("body_subgraph_index", o.body_subgraph_index())};
    }),
    row<fb::CallOnceOptions>(
        [](const auto& o) { return Named{number("init_subgraph_index", o.init_subgraph_index())}; }),
    row<fb::VarHandleOptions>([](const auto& o) {
      return Named{words("container", o.container()), words("shared_name", o.shared_name())};
    }),
    row<fb::DepthToSpaceOptions>(kBlockSize),
    row<fb::BatchMatMulOptions>([](const auto& o) {
      return Named{number("adj_x", o.adj_x()), number("adj_y", o.adj_y())};
    }),
    row<fb::GeluOptions>([](const auto& o) { return Named{number("approximate", o.approximate())}; })};

}  // namespace

std::vector<Option> optionsOf(const fb::OperatorEntry& entry) {
  const auto read = secondOf(kReaders, entry.builtin_options_type());
  return read ? (*read)(entry) : Named();
}

}  // namespace carina::tflite
