// SPDX-License-Identifier: Apache-2.0
// Traverses a weight volume in the order of a hardware stream. One traversal (walkStream) serves both
// directions: it reports runs of weights that are contiguous in the stream, and runs of padding zeros.
#include "npu/weights/weight_order.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

namespace carina::npu {
namespace {

constexpr int32_t kIfmUblockDepth = 8;  // U55 and U65

constexpr int32_t ceilDiv(int32_t a, int32_t b) {
  return (a + b - 1) / b;
}
constexpr int32_t roundUp(int32_t a, int32_t b) {
  return ceilDiv(a, b) * b;
}

bool isDepthwise(const WeightOrder& order) {
  return order.traversal == WeightTraversal::Depthwise;
}
bool isPartKernel(const WeightOrder& order) {
  return order.traversal == WeightTraversal::PartKernelFirst;
}

/// A run in the stream: `count` weights, of which the first `valid` exist and the rest are zeros. They start
/// at (o, y, x, i) and step along i, or along o by the sink's channel step when depthwise.
struct Run {
  int32_t o, y, x, i;
  int32_t valid, count;
};

/// U55/U65. `shape` is the core's own: its channels only.
template <typename Sink>
void walkU55(const WeightShape& shape, const WeightOrder& order, int32_t blockDepth, Sink& sink) {
  const bool depthwise = isDepthwise(order), partKernel = isPartKernel(order);
  const int32_t ou = order.ofmUblockDepth, ibd = ifmBlockDepth(order);
  const int32_t stepY = order.subKernel / order.dilationY, stepX = order.subKernel / order.dilationX;
  const int32_t tapRound = depthwise || (partKernel && order.ifmBits != 16) ? 4 : partKernel ? 2 : 1;
  for (int32_t ob = 0; ob < shape.ofmDepth; ob += blockDepth) {
    const int32_t cob = std::min(blockDepth, shape.ofmDepth - ob);
    for (int32_t ib = 0; ib < (depthwise ? 1 : shape.ifmDepth); ib += ibd) {
      const int32_t cib = depthwise ? kIfmUblockDepth : partKernel ? std::min(ibd, shape.ifmDepth - ib) : ibd;
      const int32_t outer = partKernel ? cib : 1, inner = partKernel || depthwise ? 1 : cib;
      for (int32_t sy = 0; sy < shape.height; sy += stepY) {
        for (int32_t sx = 0; sx < shape.width; sx += stepX) {
          const int32_t sh = std::min(shape.height - sy, stepY), sw = std::min(shape.width - sx, stepX);
          const int32_t taps = roundUp(sh * sw, tapRound);
          for (int32_t iuOut = 0; iuOut < outer; iuOut += kIfmUblockDepth) {
            for (int32_t o = ob; o < ob + cob; o += ou) {
              for (int32_t tap = 0; tap < taps; ++tap) {
                const int32_t ky = tap / sw, kx = tap % sw;
                if (depthwise) {
                  const int32_t valid = ky < sh ? std::clamp(shape.ofmDepth - o, 0, ou) : 0;
                  sink.run({o, sy + ky, sx + kx, 0, valid, ou});
                  continue;
                }
                for (int32_t iuIn = 0; iuIn < inner; iuIn += kIfmUblockDepth) {
                  const int32_t i = ib + iuOut + iuIn;
                  const int32_t valid = ky < sh ? std::clamp(shape.ifmDepth - i, 0, kIfmUblockDepth) : 0;
                  for (int32_t oz = 0; oz < ou; ++oz) {
                    sink.run(
                        {o + oz, sy + ky, sx + kx, i, o + oz < shape.ofmDepth ? valid : 0, kIfmUblockDepth});
                  }
                }
              }
            }
          }
        }
      }
    }
  }
}

struct U85Parameters {
  int32_t tapRound, iub, step, strideX, strideY, depthwisePad;
};

U85Parameters u85Parameters(const WeightOrder& order) {
  const bool depthwise = isDepthwise(order), partKernel = isPartKernel(order);
  U85Parameters p{};
  p.step = depthwise ? 1 : order.sparse ? 16 : 8;
  p.strideX = depthwise || partKernel ? order.strideX : 1;
  p.strideY = depthwise || partKernel ? order.strideY : 1;
  if (depthwise) {
    p.tapRound = 10;
    p.iub = 1;
    p.depthwisePad = order.ifmBits == 8 && order.macs <= 256 ? 0 : order.macs <= 512 ? 2 : 6;
  } else if (partKernel) {
    p.tapRound = order.ifmBits == 16 || order.sparse ? 10 : 5;
    p.iub = order.ifmBits == 16 && !order.sparse ? 8 : ifmBlockDepth(order);
  } else {
    p.tapRound = 1;
    p.iub = ifmBlockDepth(order);
  }
  return p;
}

/// The weights of one tap, for decoder `stream`.
template <typename Sink>
void walkU85Tap(const WeightShape& shape, const WeightOrder& order, const U85Parameters& p, int stream,
                int32_t o, int32_t y, int32_t x, int32_t i0, Sink& sink) {
  const int32_t ou = order.ofmUblockDepth, groupStep = 4 * order.streams;
  if (isDepthwise(order)) {
    if (order.streams == 1) {
      sink.run({o, y, x, 0, std::clamp(shape.ofmDepth - o, 0, ou), ou});
      return;
    }
    for (int32_t oz = 4 * stream; oz < ou; oz += groupStep) {
      sink.run({o + oz, y, x, 0, std::clamp(shape.ofmDepth - o - oz, 0, 4), 4});
    }
    return;
  }
  for (int32_t iuIn = 0; iuIn < p.iub; iuIn += p.step) {
    const int32_t i = i0 + iuIn;
    const int32_t valid = std::clamp(shape.ifmDepth - i, 0, p.step);
    for (int32_t oz = 4 * stream; oz < ou; oz += groupStep) {
      for (int32_t oi = o + oz; oi < o + oz + 4; ++oi) {
        sink.run({oi, y, x, i, oi < shape.ofmDepth ? valid : 0, p.step});
      }
    }
  }
}

/// All taps of one sub-kernel for one OFM microblock, one stride phase after another.
template <typename Sink>
void walkU85SubKernel(const WeightShape& shape, const WeightOrder& order, const U85Parameters& p, int stream,
                      int32_t o, int32_t sy, int32_t sx, int32_t sh, int32_t sw, int32_t i0, Sink& sink) {
  const bool depthwise = isDepthwise(order);
  const int64_t perTap = int64_t{p.iub} * order.ofmUblockDepth / order.streams;
  int32_t left = roundUp(sw * sh, p.tapRound);
  for (int32_t py = 0; py < std::min(p.strideY, sh); ++py) {
    const int32_t rows = ceilDiv(sh - py, p.strideY);
    for (int32_t px = 0; px < std::min(p.strideX, sw); ++px) {
      const int32_t columns = ceilDiv(sw - px, p.strideX);
      for (int32_t y = 0; y < rows; ++y) {
        for (int32_t n = 0; n < columns; ++n) {
          const int32_t x = (y & 1) != 0 ? columns - 1 - n : n;
          --left;
          walkU85Tap(shape, order, p, stream, o, sy + py + y * p.strideY, sx + px + x * p.strideX, i0, sink);
          if (depthwise && left % 10 == 0) sink.zeros(p.depthwisePad * perTap);
        }
      }
    }
  }
  if (left > 0) sink.zeros((left + (depthwise ? p.depthwisePad : 0)) * perTap);
}

template <typename Sink>
void walkU85(const WeightShape& shape, const WeightOrder& order, int stream, Sink& sink) {
  const U85Parameters p = u85Parameters(order);
  const bool depthwise = isDepthwise(order);
  const int32_t ibd = depthwise ? 1 : ifmBlockDepth(order);
  const int32_t ifmDepth = depthwise ? 1 : shape.ifmDepth;
  const int32_t ifmBlocks = ceilDiv(ifmDepth, ibd);
  const int32_t stepY = order.subKernel / order.dilationY, stepX = order.subKernel / order.dilationX;
  bool ascending = false;
  for (int32_t ob = 0; ob < shape.ofmDepth; ob += order.ofmBlockDepth) {
    ascending = !ascending;
    const int32_t cob = std::min(order.ofmBlockDepth, shape.ofmDepth - ob);
    for (int32_t block = 0; block < ifmBlocks; ++block) {
      const int32_t ib = (ascending ? block : ifmBlocks - 1 - block) * ibd;
      const int32_t cib = std::min(ibd, ifmDepth - ib);
      for (int32_t sx = 0; sx < shape.width; sx += stepX) {
        for (int32_t sy = 0; sy < shape.height; sy += stepY) {
          const int32_t sh = std::min(shape.height - sy, stepY), sw = std::min(shape.width - sx, stepX);
          for (int32_t iuOut = 0; iuOut < cib; iuOut += p.iub) {
            for (int32_t o = ob; o < ob + cob; o += order.ofmUblockDepth) {
              walkU85SubKernel(shape, order, p, stream, o, sy, sx, sh, sw, ib + iuOut, sink);
            }
          }
        }
      }
    }
  }
}

/// Channel of the slice that corresponds to core-local channel 0 of `stream`, and the step to the next one.
struct ChannelMap {
  int32_t first = 0, step = 1;
};
ChannelMap channelMap(const WeightOrder& order, int stream) {
  return order.ethosU85 ? ChannelMap{} : ChannelMap{stream, order.streams};
}
WeightShape coreShape(const WeightShape& shape, const WeightOrder& order, int stream) {
  WeightShape core = shape;
  if (!order.ethosU85) core.ofmDepth = std::max(0, ceilDiv(shape.ofmDepth - stream, order.streams));
  return core;
}

template <typename Sink>
void walkStream(const WeightShape& shape, const WeightOrder& order, int stream, Sink& sink) {
  if (order.ethosU85) {
    walkU85(shape, order, stream, sink);
  } else {
    const int32_t blockDepth = (order.ofmBlockDepth + order.streams - 1 - stream) / order.streams;
    if (blockDepth > 0) walkU55(coreShape(shape, order, stream), order, blockDepth, sink);
  }
}

/// Copies weights of the view into the stream, minus the zero point.
template <typename T>
class GatherSink {
 public:
  GatherSink(const WeightView& view, const WeightOrder& order, DepthSlice slice, int stream, int16_t* out)
      : view_(view), out_(out), data_(static_cast<const T*>(view.data)) {
    const ChannelMap map = channelMap(order, stream);
    firstChannel_ = slice.offset + map.first;
    channelStep_ = map.step;
    runStride_ = isDepthwise(order) ? view.strideO * map.step : view.strideI;
    depthwise_ = isDepthwise(order);
    perChannelZero_ = view.zeroPoints.size() > 1;
    zero_ = view.zeroPoints.size() == 1 ? view.zeroPoints[0] : 0;
  }

  void run(const Run& run) {
    if (run.valid > 0) {
      const int64_t channel = firstChannel_ + int64_t{run.o} * channelStep_;
      const T* from = data_ + channel * view_.strideO + run.y * view_.strideY + run.x * view_.strideX +
                      run.i * view_.strideI;
      if (perChannelZero_) {
        for (int32_t n = 0; n < run.valid; ++n) {
          const int64_t c = depthwise_ ? channel + int64_t{n} * channelStep_ : channel;
          put(n, from[n * runStride_] - view_.zeroPoints[static_cast<size_t>(c)]);
        }
      } else if (runStride_ == 1 && run.valid == 8) {
        for (int32_t n = 0; n < 8; ++n) put(n, from[n] - zero_);
      } else {
        for (int32_t n = 0; n < run.valid; ++n) put(n, from[n * runStride_] - zero_);
      }
    }
    for (int32_t n = run.valid; n < run.count; ++n) out_[n] = 0;
    out_ += run.count;
  }
  void zeros(int64_t count) {
    std::fill_n(out_, count, int16_t{0});
    out_ += count;
  }
  const int16_t* end() const { return out_; }

 private:
  void put(int32_t n, int32_t value) { out_[n] = static_cast<int16_t>(std::clamp(value, -32768, 32767)); }

  const WeightView& view_;
  int16_t* out_;
  const T* data_;
  int64_t firstChannel_ = 0, channelStep_ = 1, runStride_ = 1;
  int32_t zero_ = 0;
  bool depthwise_ = false, perChannelZero_ = false;
};

class CountSink {
 public:
  void run(const Run& run) { count_ += run.count; }
  void zeros(int64_t count) { count_ += count; }
  int64_t count() const { return count_; }

 private:
  int64_t count_ = 0;
};

/// Places stream weights into a dense volume.
class ScatterSink {
 public:
  ScatterSink(const WeightShape& shape, const WeightOrder& order, int stream, const int16_t* in,
              int16_t* volume)
      : in_(in), volume_(volume) {
    const ChannelMap map = channelMap(order, stream);
    first_ = map.first;
    step_ = map.step;
    if (isDepthwise(order)) {
      strideO_ = 1;
      strideX_ = shape.ofmDepth;
      strideY_ = int64_t{shape.width} * shape.ofmDepth;
      strideI_ = 0;
      runStride_ = map.step;
    } else {
      strideI_ = 1;
      strideX_ = shape.ifmDepth;
      strideY_ = int64_t{shape.width} * shape.ifmDepth;
      strideO_ = shape.height * strideY_;
    }
  }
  void run(const Run& run) {
    int16_t* to = volume_ + (first_ + run.o * step_) * strideO_ + run.y * strideY_ + run.x * strideX_ +
                  run.i * strideI_;
    if (runStride_ == 1 && run.valid == 8) {
      std::memcpy(to, in_, 8 * sizeof(int16_t));
    } else {
      for (int32_t n = 0; n < run.valid; ++n) to[n * runStride_] = in_[n];
    }
    in_ += run.count;
  }
  void zeros(int64_t count) { in_ += count; }

 private:
  const int16_t* in_;
  int16_t* volume_;
  int64_t first_ = 0, step_ = 1, strideO_ = 0, strideY_ = 0, strideX_ = 0, strideI_ = 0, runStride_ = 1;
};

/// Follows the taps of a stream to check groups of four.
class SparseSink {
 public:
  explicit SparseSink(const int16_t* in) : in_(in) {}
  void run(const Run& run) {
    if (run.y != y_ || run.x != x_) inGroup_ = nonZero_ = 0;
    y_ = run.y;
    x_ = run.x;
    for (int32_t n = 0; n < run.count; ++n) {
      const int32_t w = in_[n];
      nonZero_ += w != 0;
      legal_ = legal_ && std::abs(w) <= 127;
      if (++inGroup_ == 4) {
        legal_ = legal_ && nonZero_ <= 2;
        inGroup_ = nonZero_ = 0;
      }
    }
    in_ += run.count;
  }
  void zeros(int64_t count) { in_ += count; }
  bool legal() const { return legal_; }

 private:
  const int16_t* in_;
  int32_t y_ = -1, x_ = -1, inGroup_ = 0, nonZero_ = 0;
  bool legal_ = true;
};

template <typename T>
std::vector<int16_t> gather(const WeightView& view, const WeightShape& shape, const WeightOrder& order,
                            DepthSlice slice, int stream) {
  std::vector<int16_t> out(static_cast<size_t>(streamWeightCount(shape, order, stream)));
  GatherSink<T> sink(view, order, slice, stream, out.data());
  walkStream(shape, order, stream, sink);
  CARINA_CHECK(sink.end() == out.data() + out.size(), "weight order emits as many weights as it counts");
  return out;
}

}  // namespace

WeightView WeightView::ohwi(const void* data, DType dtype, const WeightShape& shape,
                            std::span<const int32_t> zeroPoints) {
  WeightView view{data, dtype, shape, 0, 0, 0, 1, zeroPoints};
  view.strideX = shape.ifmDepth;
  view.strideY = shape.width * view.strideX;
  view.strideO = shape.height * view.strideY;
  return view;
}

WeightView WeightView::hwc(const void* data, DType dtype, const WeightShape& shape,
                           std::span<const int32_t> zeroPoints) {
  WeightView view{data, dtype, shape, 1, 0, 0, 0, zeroPoints};
  view.strideX = shape.ofmDepth;
  view.strideY = shape.width * view.strideX;
  return view;
}

WeightOrder weightOrder(const Target& target, const KernelOperation& operation) {
  WeightOrder order;
  order.ethosU85 = target.isU85();
  order.macs = target.macs;
  order.streams = target.weightStreams;
  order.ofmUblockDepth = operation.microblock.c;
  order.ofmBlockDepth = operation.block.c;
  const bool partKernel = operation.weights && operation.weights->traversal == Traversal::PartKernelFirst;
  order.traversal = operation.kind == OperationKind::Depthwise ? WeightTraversal::Depthwise
                    : partKernel                               ? WeightTraversal::PartKernelFirst
                                                               : WeightTraversal::DepthFirst;
  order.ifmBits = elementBytes(operation.ifm.type) * 8;
  order.strideX = operation.kernel.strideX;
  order.strideY = operation.kernel.strideY;
  order.dilationX = operation.kernel.dilationX;
  order.dilationY = operation.kernel.dilationY;
  order.subKernel = operation.kernel.subKernel;
  order.sparse = operation.weights && operation.weights->sparse;
  return order;
}

WeightShape weightShape(const KernelOperation& operation) {
  const bool depthwise = operation.kind == OperationKind::Depthwise;
  return {operation.ofm.depth, operation.kernel.height, operation.kernel.width,
          depthwise ? 1 : operation.ifm.depth};
}

Status checkWeightOrder(const WeightShape& shape, const WeightOrder& order) {
  constexpr int32_t kMaxAxis = 65536;
  const auto axis = [](int32_t size) { return size >= 1 && size <= kMaxAxis; };
  if (!axis(shape.ofmDepth) || !axis(shape.ifmDepth) || !axis(shape.height) || !axis(shape.width)) {
    return fail(Code::InvalidWeights, "weight volume {}x{}x{}x{} (OHWI) has an axis outside 1..{}",
                shape.ofmDepth, shape.height, shape.width, shape.ifmDepth, kMaxAxis);
  }
  // 2^40 weights is far beyond any stream; the bound keeps counts and strides clear of overflow.
  if (int64_t{shape.ofmDepth} * shape.ifmDepth > (int64_t{1} << 40) / (int64_t{shape.height} * shape.width)) {
    return fail(Code::InvalidWeights, "weight volume {}x{}x{}x{} (OHWI) is too large", shape.ofmDepth,
                shape.height, shape.width, shape.ifmDepth);
  }
  if (isDepthwise(order) && shape.ifmDepth != 1) {
    return fail(Code::InvalidWeights, "depthwise weights have one input channel per output channel, not {}",
                shape.ifmDepth);
  }
  const auto oneOf = [](int32_t value, std::initializer_list<int32_t> allowed) {
    return std::find(allowed.begin(), allowed.end(), value) != allowed.end();
  };
  const bool streamsFit = order.ethosU85 ? oneOf(order.streams, {1, 2, 4}) : oneOf(order.streams, {1, 2});
  const bool ublockFits =
      order.ethosU85 ? oneOf(order.ofmUblockDepth, {8, 16, 32, 64}) : oneOf(order.ofmUblockDepth, {4, 8});
  if (!streamsFit || !ublockFits || (order.ethosU85 && order.ofmUblockDepth < 4 * order.streams)) {
    return fail(Code::InvalidWeights, "{} weight streams with an OFM microblock depth of {} do not exist",
                order.streams, order.ofmUblockDepth);
  }
  if (order.ofmBlockDepth < 1 || order.ofmBlockDepth > 1024) {
    return fail(Code::InvalidWeights, "OFM block depth {} is outside 1..1024", order.ofmBlockDepth);
  }
  if (!oneOf(order.ifmBits, {8, 16, 32}))
    return fail(Code::InvalidWeights, "there is no weight order for an IFM of {} bits", order.ifmBits);
  if (!oneOf(order.dilationX, {1, 2}) || !oneOf(order.dilationY, {1, 2})) {
    return fail(Code::InvalidWeights, "dilation {}x{} (HxW) is outside 1..2", order.dilationY,
                order.dilationX);
  }
  if (!oneOf(order.subKernel, {4, 8}))
    return fail(Code::InvalidWeights, "sub-kernels of {} taps do not exist", order.subKernel);
  if (order.strideX < 1 || order.strideX > 4 || order.strideY < 1 || order.strideY > 4) {
    return fail(Code::InvalidWeights, "stride {}x{} (HxW) is outside 1..4", order.strideY, order.strideX);
  }
  if (order.sparse && (!order.ethosU85 || isDepthwise(order))) {
    return fail(Code::InvalidWeights, "2:4 sparse weights exist only for convolutions on Ethos-U85");
  }
  return {};
}

int32_t ifmBlockDepth(const WeightOrder& order) {
  if (!order.ethosU85) return isPartKernel(order) || order.ifmBits == 16 ? 16 : 32;
  if (isPartKernel(order)) return 16;
  if (order.sparse && order.ifmBits == 8) return 128;
  if (order.ifmBits == 32) return 32;
  if (order.macs <= 256 && order.ofmUblockDepth == 16 && !order.sparse) return 32;
  return 64;
}

int activeStreams(const WeightShape& shape, const WeightOrder& order) {
  return order.ethosU85 ? order.streams : std::min(order.streams, shape.ofmDepth);
}

int64_t streamWeightCount(const WeightShape& shape, const WeightOrder& order, int stream) {
  if (!order.ethosU85 && stream >= activeStreams(shape, order)) return 0;
  // Only the sizes matter, and they repeat: one OFM block of full depth and the last one suffice.
  const WeightShape core = coreShape(shape, order, stream);
  const int32_t blockDepth = order.ethosU85
                                 ? order.ofmBlockDepth
                                 : (order.ofmBlockDepth + order.streams - 1 - stream) / order.streams;
  if (blockDepth <= 0) return 0;
  const auto countBlock = [&](int32_t depth) {
    WeightShape block = core;
    block.ofmDepth = depth;
    // IFM blocks repeat as well.
    const int32_t ibd = isDepthwise(order) ? 1 : ifmBlockDepth(order);
    const int32_t fullBlocks = block.ifmDepth / ibd, rest = block.ifmDepth % ibd;
    int64_t count = 0;
    const auto countIfm = [&](int32_t ifmDepth) {
      WeightShape part = block;
      part.ifmDepth = ifmDepth;
      CountSink counter;
      if (order.ethosU85)
        walkU85(part, order, stream, counter);
      else
        walkU55(part, order, blockDepth, counter);
      return counter.count();
    };
    if (fullBlocks > 0) count += fullBlocks * countIfm(ibd);
    if (rest > 0) count += countIfm(rest);
    return count;
  };
  const int32_t full = core.ofmDepth / blockDepth, rest = core.ofmDepth % blockDepth;
  int64_t count = 0;
  if (full > 0) count += full * countBlock(blockDepth);
  if (rest > 0) count += countBlock(rest);
  return count;
}

Result<std::vector<int16_t>> orderWeights(const WeightView& view, const WeightOrder& order, DepthSlice slice,
                                          int stream) {
  if (slice.offset < 0 || slice.depth < 1 || slice.offset > view.shape.ofmDepth - slice.depth) {
    return fail(Code::InvalidWeights, "OFM depth slice {}+{} lies outside the weights' {} channels",
                slice.offset, slice.depth, view.shape.ofmDepth);
  }
  WeightShape shape = view.shape;
  shape.ofmDepth = slice.depth;
  CARINA_RETURN_IF_ERROR(checkWeightOrder(shape, order));
  if (stream < 0 || stream >= order.streams)
    return fail(Code::InvalidWeights, "weight stream {} of {} does not exist", stream, order.streams);
  if (view.zeroPoints.size() > 1 && view.zeroPoints.size() != static_cast<size_t>(view.shape.ofmDepth)) {
    return fail(Code::InvalidWeights, "{} weight zero points for {} output channels", view.zeroPoints.size(),
                view.shape.ofmDepth);
  }
  std::vector<int16_t> out;
  switch (view.dtype) {
    case DType::Int8:
    case DType::Int4:
      out = gather<int8_t>(view, shape, order, slice, stream);
      break;
    case DType::UInt8:
      out = gather<uint8_t>(view, shape, order, slice, stream);
      break;
    case DType::Int16:
      out = gather<int16_t>(view, shape, order, slice, stream);
      break;
    default:
      return fail(Code::InvalidWeights,
                  "weights of type {} cannot be encoded: they must be 4- or 8-bit integers",
                  dtypeName(view.dtype));
  }
  int16_t low = 0, high = 0;
  for (const int16_t w : out) {
    low = std::min(low, w);
    high = std::max(high, w);
  }
  if (low < -255 || high > 255) {
    return fail(Code::InvalidWeights,
                "weights minus zero point reach {}..{}, but the hardware supports -255..255", low, high);
  }
  return out;
}

Result<std::vector<int16_t>> restoreWeights(std::span<const std::vector<int16_t>> streams,
                                            const WeightShape& shape, const WeightOrder& order) {
  CARINA_RETURN_IF_ERROR(checkWeightOrder(shape, order));
  const int active = activeStreams(shape, order);
  if (streams.size() < static_cast<size_t>(active)) {
    return fail(Code::InvalidWeights, "{} weight streams given, the operation has {}", streams.size(),
                active);
  }
  std::vector<int16_t> volume(static_cast<size_t>(shape.elements()));
  for (int stream = 0; stream < active; ++stream) {
    const std::vector<int16_t>& in = streams[static_cast<size_t>(stream)];
    const int64_t needed = streamWeightCount(shape, order, stream);
    if (static_cast<int64_t>(in.size()) < needed) {
      return fail(Code::InvalidWeights, "weight stream {} holds {} weights, the operation consumes {}",
                  stream, in.size(), needed);
    }
    ScatterSink sink(shape, order, stream, in.data(), volume.data());
    walkStream(shape, order, stream, sink);
  }
  return volume;
}

Status checkSparseWeights(const WeightView& view, const WeightOrder& order, DepthSlice slice) {
  WeightOrder sparse = order;
  sparse.sparse = true;
  for (int stream = 0; stream < order.streams; ++stream) {
    CARINA_TRY(const std::vector<int16_t> ordered, orderWeights(view, sparse, slice, stream));
    WeightShape shape = view.shape;
    shape.ofmDepth = slice.depth;
    SparseSink sink(ordered.data());
    walkStream(shape, sparse, stream, sink);
    if (!sink.legal()) {
      return fail(Code::InvalidWeights,
                  "weights are not 2:4 sparse: a group of four input channels holds more than two non-zero "
                  "weights, or one outside -127..127");
    }
  }
  return {};
}

}  // namespace carina::npu
