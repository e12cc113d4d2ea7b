// SPDX-License-Identifier: Apache-2.0
// Passes that change the shape of feature maps: concatenation, split, transpose, 2x upsampling.
#include <algorithm>
#include <numeric>
#include <tuple>

#include "ethosn/compiler/pass_maker.hpp"

namespace carina::ethosn::compiler {
namespace {

int32_t sizeAlong(const FeatureMap& map, uint32_t axis) {
  return axis == 1 ? map.height : axis == 2 ? map.width : map.channels;
}

void setSize(FeatureMap& map, uint32_t axis, int32_t size) {
  (axis == 1 ? map.height : axis == 2 ? map.width : map.channels) = size;
}

/// A row of pixels, channels last, is also a column, which can be cut.
FeatureMap upright(FeatureMap map) {
  if (map.wholeHeight != 1 || map.planar) return map;
  std::swap(map.height, map.width);
  std::swap(map.wholeHeight, map.wholeWidth);
  std::swap(map.atY, map.atX);
  return map;
}

int32_t& placeAlong(FeatureMap& map, uint32_t axis) {
  return axis == 1 ? map.atY : axis == 2 ? map.atX : map.atC;
}

}  // namespace

/// The same map in bricks, so that parts of its channels can be read.
FeatureMap PassMaker::inBricks(const FeatureMap& map, const std::string& name) {
  if (!map.planar && (layoutOf(map) == Layout::Nhwcb || map.wholeWidth == 1)) return map;
  const FeatureMap out = between(map, map.height, map.width, map.channels, name);
  copy(map, out, name);
  return out;
}

/// A 1x1 convolution with one weight per output: some channels of a map, in any order.
void PassMaker::select(const NetworkOperation& operation, const FeatureMap& from,
                       const std::vector<int32_t>& channels, const FeatureMap& to) {
  const Quantization same{from.zeroPoint, {1.0F}, {}};
  Pass pass = identityPass(operation, from, same, same, from.isSigned);
  LayerWeights& layer = pass.weights;
  layer.operation = MceOperation::Convolution;
  layer.inputs = from.channels;
  layer.outputs = static_cast<int32_t>(channels.size());
  layer.weights.assign(static_cast<size_t>(layer.inputs) * channels.size(), 0);
  for (size_t o = 0; o < channels.size(); ++o)
    layer.weights[static_cast<size_t>(channels[o]) * channels.size() + o] = 2;
  layer.biases.assign(channels.size(), 0);
  layer.scales.assign(channels.size(), ofmScale(0.5F, from.zeroPoint));
  pass.mceChannels = layer.outputs;
  pass.output = to;
  list_.passes.push_back(std::move(pass));
}

/// Every input is written to its place in the output, requantized if necessary. Along the channels, places
/// are multiples of 16: other inputs are joined with gaps, which a convolution removes.
void PassMaker::concatenation(const NetworkOperation& operation) {
  const Operation& op = operation.operation;
  const TensorInfo& to = info(operation.outputs[0]);
  const FeatureMap out = newMap(operation.outputs[0], operation.name);
  map(operation.outputs[0]) = out;
  const bool byBricks = op.axis == 3 && out.width != 1;
  std::vector<int32_t> places, channels;
  int32_t at = 0;
  bool gaps = false;
  for (int32_t input : operation.inputs) {
    const int32_t size = sizeAlong(map(input), op.axis), place = byBricks ? roundUp(at, kBrickDepth) : at;
    gaps |= place != at;
    places.push_back(place);
    for (int32_t c = 0; byBricks && c < size; ++c) channels.push_back(place + c);
    at = place + size;
  }
  FeatureMap part = out;
  if (gaps) {
    part = between(out, out.height, out.width, at, operation.name);
  } else {
    // Without bricks, a part can begin at any row, column and channel.
    list_.storages[static_cast<size_t>(out.storage)].layout = byBricks ? Layout::Nhwcb : Layout::Nhwc;
  }
  const FeatureMap joined = part;
  for (size_t i = 0; i < places.size(); ++i) {
    const int32_t input = operation.inputs[i];
    FeatureMap in = map(input);
    part = joined;
    part.height = in.height;
    part.width = in.width;
    part.channels = in.channels;
    placeAlong(part, op.axis) = places[i];
    if (layoutOf(in) == Layout::Nhwc && layoutOf(part) == Layout::Nhwc &&
        in.wholeHeight == joined.wholeHeight) {
      in = upright(in);
      part = upright(part);
    }
    if (info(input).quantization == to.quantization) {
      copy(in, part, operation.name);
    } else {
      Pass pass = identityPass(operation, in, info(input).quantization, to.quantization, part.isSigned);
      pass.output = part;
      list_.passes.push_back(std::move(pass));
    }
  }
  if (gaps) select(operation, joined, channels, out);
}

/// Outputs are views of parts of the input. Parts that begin inside a brick are extracted from it.
void PassMaker::split(const NetworkOperation& operation) {
  const Operation& op = operation.operation;
  FeatureMap whole = map(operation.inputs[0]);
  uint32_t at = 0;
  const bool aligned = std::all_of(op.sizes.begin(), op.sizes.end(), [&](uint32_t size) {
    const bool fits = at % kBrickEdge == 0;
    at += size;
    return fits;
  });
  if (op.axis == 3) {
    whole = inBricks(whole, operation.name);
  } else if (!aligned && layoutOf(whole) == Layout::Nhwcb) {
    whole = channelsLast(whole, operation.name);
  }
  FeatureMap part = whole;
  for (size_t i = 0; i < operation.outputs.size(); ++i) {
    const auto size = static_cast<int32_t>(op.sizes[i]);
    setSize(part, op.axis, size);
    const int32_t inside = op.axis == 3 && whole.wholeWidth != 1 ? part.atC % kBrickDepth : 0;
    if (inside == 0) {
      map(operation.outputs[i]) = part;
    } else if (uses_[static_cast<size_t>(operation.outputs[i])] > 0) {
      FeatureMap from = part;
      from.atC -= inside;
      from.channels += inside;
      std::vector<int32_t> channels(static_cast<size_t>(size));
      std::iota(channels.begin(), channels.end(), inside);
      const FeatureMap out = newMap(operation.outputs[i], operation.name);
      select(operation, from, channels, out);
      map(operation.outputs[i]) = out;
    }
    placeAlong(part, op.axis) += size;
  }
  shareUses(operation);
}

/// Channels first to channels last, (0, 2, 3, 1), only changes how a map is read.
FeatureMap PassMaker::channelsToTheEnd(const FeatureMap& map, const std::string& name) {
  FeatureMap out = channelsLast(map, name);
  std::tie(out.height, out.width, out.channels) = std::tuple(map.width, map.channels, map.height);
  out.wholeHeight = out.height;
  out.wholeWidth = out.width;
  out.wholeChannels = out.channels;
  out.planar = true;
  return out;
}

/// The inverse, (0, 3, 1, 2), only changes how it is written. `to`: in NHWC.
void PassMaker::channelsToTheFront(const FeatureMap& map, const FeatureMap& to, const std::string& name) {
  FeatureMap planar = map;
  planar.storage = to.storage;
  planar.atY = planar.atX = planar.atC = 0;
  planar.wholeHeight = planar.height;
  planar.wholeWidth = planar.width;
  planar.wholeChannels = planar.channels;
  planar.planar = true;
  copy(map, planar, name);
}

/// Swaps rows and columns, (0, 2, 1, 3): the PLE does that on whole planes.
void PassMaker::rowsForColumns(const NetworkOperation& operation, const FeatureMap& map,
                               const FeatureMap& to) {
  const Quantization same{map.zeroPoint, {1.0F}, {}};
  Pass pass = identityPass(operation, map, same, same, map.isSigned);
  pass.kernel = {PleOperation::TransposeXy, PleSignedness::Any, 8, 8, 1, PleAxis::None};
  pass.output = to;
  list_.passes.push_back(std::move(pass));
}

/// All permutations are composed of these three. If there are two ways, the one with the smaller planes is
/// used.
Status PassMaker::transpose(const NetworkOperation& operation) {
  const auto& order = operation.operation.permutation;
  const auto is = [&order](uint32_t y, uint32_t x, uint32_t c) {
    return order == std::array<uint32_t, 4>{0, y, x, c};
  };
  const FeatureMap in = map(operation.inputs[0]);
  const int32_t h = in.height, w = in.width, c = in.channels;
  FeatureMap& out = map(operation.outputs[0]);
  if (is(1, 2, 3) || is(2, 3, 1)) {
    out = is(1, 2, 3) ? in : channelsToTheEnd(in, operation.name);
    shareUses(operation);
    return {};
  }
  const auto rows = [&](int32_t height, int32_t width, int32_t channels) {
    const FeatureMap made = between(in, height, width, channels, operation.name);
    list_.storages.back().layout = Layout::Nhwc;
    return made;
  };
  if (is(3, 2, 1) && int64_t{h} * w <= int64_t{w} * c) {  // (0, 2, 1, 3), then (0, 3, 1, 2)
    const FeatureMap swapped = between(in, w, h, c, operation.name);
    rowsForColumns(operation, in, swapped);
    out = rows(c, w, h);
    channelsToTheFront(swapped, out, operation.name);
    return {};
  }
  if (is(1, 3, 2) && int64_t{h} * w <= int64_t{h} * c) {  // (0, 2, 1, 3), then (0, 2, 3, 1)
    const FeatureMap swapped = rows(w, h, c);
    rowsForColumns(operation, in, swapped);
    out = channelsToTheEnd(swapped, operation.name);
    return {};
  }
  if (is(3, 1, 2)) {
    out = rows(c, h, w);
    channelsToTheFront(in, out, operation.name);
    return {};
  }
  FeatureMap turned = in;
  if (is(1, 3, 2)) {  // (0, 3, 1, 2), then (0, 2, 1, 3)
    turned = rows(c, h, w);
    channelsToTheFront(in, turned, operation.name);
  } else if (is(3, 2, 1)) {  // (0, 2, 3, 1), then (0, 2, 1, 3)
    turned = channelsToTheEnd(in, operation.name);
  }
  out = newMap(operation.outputs[0], operation.name);
  rowsForColumns(operation, turned, out);
  return {};
}

/// Input and outputs share one storage: a reader of one of them is a reader of the others.
void PassMaker::shareUses(const NetworkOperation& operation) {
  const int32_t before = uses_[static_cast<size_t>(operation.inputs[0])];
  for (int32_t output : operation.outputs) {
    int32_t& uses = uses_[static_cast<size_t>(output)];
    uses = std::max({uses, before, static_cast<int32_t>(operation.outputs.size())});
  }
}

/// A convolution over the map at twice its size.
Pass PassMaker::upsampled(const NetworkOperation& operation, const FeatureMap& in, LayerWeights layer,
                          Resampling resampling) {
  Pass pass;
  pass.kind = PassKind::Mce;
  pass.name = operation.name;
  pass.weights = std::move(layer);
  pass.resampling = resampling;
  pass.subTop = {pass.weights.padTop};
  pass.subLeft = {pass.weights.padLeft};
  overMap(pass, operation, in);
  return pass;
}

/// A convolution with the filter rotated by 180 degrees over a map with zeros between its elements. With
/// filters processed in pieces (above 7), the zeros are inserted by a preceding pass.
void PassMaker::transposeConvolution(const NetworkOperation& operation) {
  const Operation& op = operation.operation;
  const Shape& shape = op.weights.shape;
  FeatureMap in = map(operation.inputs[0]);
  LayerWeights layer;
  layer.height = static_cast<int32_t>(shape[0]);
  layer.width = static_cast<int32_t>(shape[1]);
  layer.inputs = in.channels;
  layer.outputs = static_cast<int32_t>(shape[3]);
  layer.padTop = layer.height - 1 - static_cast<int32_t>(op.padding.top);
  layer.padLeft = layer.width - 1 - static_cast<int32_t>(op.padding.left);
  const std::vector<int16_t> weights = weightsLessZeroPoint(operation);
  const size_t taps = size_t{shape[0]} * shape[1], perTap = size_t{shape[2]} * shape[3];
  layer.weights.resize(weights.size());
  for (size_t tap = 0; tap < taps; ++tap) {
    std::copy_n(weights.begin() + static_cast<std::ptrdiff_t>(tap * perTap), perTap,
                layer.weights.begin() + static_cast<std::ptrdiff_t>((taps - 1 - tap) * perTap));
  }
  layer.biases = operation.biases;
  layer.scales = scalesOf(operation, info(operation.inputs[0]).quantization, layer.outputs);
  Resampling resampling = Resampling::Transpose;
  constexpr int32_t kWholeFilter = 7;
  if (std::max(layer.height, layer.width) > kWholeFilter) {
    const Quantization& same = info(operation.inputs[0]).quantization;
    Pass zeros = identityPass(operation, in, same, same, in.isSigned);
    zeros.resampling = Resampling::Transpose;
    zeros.mceHeight = 2 * in.height;
    zeros.mceWidth = 2 * in.width;
    zeros.output = between(in, zeros.mceHeight, zeros.mceWidth, in.channels, operation.name);
    in = zeros.output;
    list_.passes.push_back(std::move(zeros));
    resampling = Resampling::None;
  }
  list_.passes.push_back(upsampled(operation, in, std::move(layer), resampling));
}

/// A transpose convolution in which every weight moves a channel to its place in a 2x2 square.
void PassMaker::depthToSpace(const NetworkOperation& operation) {
  const FeatureMap in = map(operation.inputs[0]);
  LayerWeights layer;
  layer.height = layer.width = 2;
  layer.padTop = layer.padLeft = 1;
  layer.inputs = in.channels;
  layer.outputs = in.channels / 4;
  layer.weights.assign(size_t{4} * static_cast<size_t>(layer.inputs) * static_cast<size_t>(layer.outputs), 0);
  for (int32_t tap = 0; tap < 4; ++tap) {
    for (int32_t o = 0; o < layer.outputs; ++o) {
      const int32_t from = tap * layer.outputs + o, turned = 3 - tap;
      layer.weights[static_cast<size_t>((turned * layer.inputs + from) * layer.outputs + o)] = 2;
    }
  }
  layer.biases.assign(static_cast<size_t>(layer.outputs), 0);
  layer.scales.assign(static_cast<size_t>(layer.outputs), ofmScale(0.5F, in.zeroPoint));
  list_.passes.push_back(upsampled(operation, in, std::move(layer), Resampling::Transpose));
}

/// The hardware treats elements as unsigned when it interpolates.
void PassMaker::resize(const NetworkOperation& operation) {
  FeatureMap in = map(operation.inputs[0]);
  Quantization from = info(operation.inputs[0]).quantization;
  const bool bilinear = operation.operation.resize == ResizeAlgorithm::Bilinear;
  if (bilinear && in.isSigned) {
    Quantization shifted = from;
    shifted.zeroPoint += 128;
    Pass pass = identityPass(operation, in, from, shifted, false);
    pass.output = between(in, in.height, in.width, in.channels, operation.name);
    pass.output.isSigned = false;
    pass.output.zeroPoint = shifted.zeroPoint;
    in = pass.output;
    from = shifted;
    list_.passes.push_back(std::move(pass));
  }
  const TensorInfo& to = info(operation.outputs[0]);
  LayerWeights layer = identityPass(operation, in, from, to.quantization, to.type == DataType::S8).weights;
  list_.passes.push_back(
      upsampled(operation, in, std::move(layer), bilinear ? Resampling::Bilinear : Resampling::Nearest));
}

}  // namespace carina::ethosn::compiler
