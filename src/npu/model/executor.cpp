// SPDX-License-Identifier: Apache-2.0
// Common to all operation kinds: geometry, limits, output stage selection, accumulators in and out, the sink.
#include "npu/model/executor.hpp"

#include <algorithm>
#include <cstring>

#include "base/parallel.hpp"

namespace carina::npu::model {
namespace {

/// Memory axes of a transposed OFM: the operation axis (0 h, 1 w, 2 c) at memory row, column and channel.
std::array<int, 3> memoryAxes(Transpose transpose) {
  switch (transpose) {
    case Transpose::HWC:
      return {0, 1, 2};
    case Transpose::WHC:
      return {1, 0, 2};
    case Transpose::HCW:
      return {0, 2, 1};
    case Transpose::WCH:
      return {1, 2, 0};
    case Transpose::CHW:
      return {2, 0, 1};
    case Transpose::CWH:
      return {2, 1, 0};
  }
  return {0, 1, 2};
}

int64_t loadElement(const std::byte* from, ElementType type) {
  uint64_t v = 0;
  std::memcpy(&v, from, static_cast<size_t>(elementBytes(type)));
  return wrapTo(static_cast<int64_t>(v), type);
}

constexpr Scale kIdentity{1, 0, 0, Rounding::Natural};

}  // namespace

bool fitsInt16(const FeatureMap& map) {
  if (elementBytes(map.type) > 2) return false;
  return elementMin(map.type) - map.zeroPoint >= -32768 && elementMax(map.type) - map.zeroPoint <= 32767;
}

int64_t maxMagnitude(const FeatureMap& map) {
  return std::max(std::abs(elementMin(map.type) - map.zeroPoint),
                  std::abs(elementMax(map.type) - map.zeroPoint));
}

Outcome Sink::bind(const KernelOperation& op, AddressMap& memory, std::array<ChainBuffer, 8>& chains) {
  height_ = op.ofm.height;
  width_ = op.ofm.width;
  depth_ = op.ofm.depth;
  type_ = op.ofm.type;
  transpose_ = op.transpose;
  reverse_ = op.reverse;
  chain_ = nullptr;
  flag_ = false;
  if (!op.accumulatorOutput || op.ofm.storage == Storage::None) {
    mode_ = Mode::Discard;
    return std::nullopt;
  }
  if (op.ofm.storage == Storage::Chained) {
    mode_ = Mode::Chain;
    if (op.ofm.region >= chains.size())
      return makeFault(FaultKind::Parse, "chaining buffer {} does not exist", op.ofm.region);
    if (transpose_ != Transpose::HWC || reverse_ != Reverse::None) {
      return makeFault(FaultKind::Parse, "transpose or reverse of an OFM in a chaining buffer");
    }
    chain_ = &chains[op.ofm.region];
    chain_->valid = true;
    chain_->height = height_;
    chain_->width = width_;
    chain_->depth = depth_;
    chain_->values.assign(static_cast<size_t>(height_ * width_ * depth_), 0);
    return std::nullopt;
  }
  if (transpose_ != Transpose::HWC && reverse_ != Reverse::None) {
    return makeFault(FaultKind::Parse, "OFM transpose together with reverse");
  }
  mode_ = transpose_ == Transpose::HWC && reverse_ == Reverse::None ? Mode::Memory : Mode::Permuted;
  const std::array<int64_t, 3> shape{height_, width_, depth_};
  const std::array<int, 3> axes = memoryAxes(transpose_);
  return map_.bind(op.ofm, shape[static_cast<size_t>(axes[0])], shape[static_cast<size_t>(axes[1])],
                   shape[static_cast<size_t>(axes[2])], memory, Access::Write, Channel::Ofm, "OFM");
}

void Sink::store(int64_t first, int64_t count, const std::byte* elements) {
  const int64_t bytes = elementBytes(type_);
  const int64_t pixel = depth_ * bytes;
  if (height_ * width_ * depth_ == 1) flag_ = (static_cast<unsigned>(elements[0]) & 1u) != 0;
  switch (mode_) {
    case Mode::Discard:
      return;
    case Mode::Chain:
      for (int64_t i = 0; i < count * depth_; ++i) {
        chain_->values[static_cast<size_t>(first * depth_ + i)] = loadElement(elements + i * bytes, type_);
      }
      return;
    case Mode::Memory:
      while (count > 0) {
        const int64_t y = first / width_, x = first % width_;
        const int64_t run = std::min(count, width_ - x);
        map_.writeRow(y, x, x + run, elements);
        elements += run * pixel;
        first += run;
        count -= run;
      }
      return;
    case Mode::Permuted: {
      const std::array<int, 3> axes = memoryAxes(transpose_);
      for (int64_t p = first; p < first + count; ++p) {
        int64_t y = p / width_, x = p % width_;
        if (reverse_ == Reverse::H) y = height_ - 1 - y;
        if (reverse_ == Reverse::W) x = width_ - 1 - x;
        for (int64_t c = 0; c < depth_; ++c, elements += bytes) {
          const std::array<int64_t, 3> at{y, x, reverse_ == Reverse::C ? depth_ - 1 - c : c};
          std::byte* to = map_.element(at[static_cast<size_t>(axes[0])], at[static_cast<size_t>(axes[1])],
                                       at[static_cast<size_t>(axes[2])]);
          std::memcpy(to, elements, static_cast<size_t>(bytes));
        }
      }
      return;
    }
  }
}

Executor::Executor(const Target& target, const ModelOptions& options) : target_(target), options_(options) {
  internal_.assign(target.internalBytes(), 0);
}

void Executor::reset() {
  std::fill(internal_.begin(), internal_.end(), uint8_t{0});
  for (ChainBuffer& chain : chains_) chain.valid = false;  // its memory is reused by the next job
  kept_ = {};
  resultFlag_ = false;
}

const uint8_t* Executor::tableMemory() const {
  return internal_.data() + internal_.size() - 2048;
}

void Executor::forRange(int64_t count, int64_t grain,
                        const std::function<void(int64_t, int64_t)>& body) const {
  if (!options_.parallel || count <= grain) {
    if (count > 0) body(0, count);
    return;
  }
  parallelRanges(static_cast<size_t>(count), static_cast<size_t>(grain), [&](size_t begin, size_t end) {
    body(static_cast<int64_t>(begin), static_cast<int64_t>(end));
  });
}

Outcome Executor::checkLimits(int64_t work, int64_t bytes) const {
  if (work > options_.maxOperationWork) {
    return makeFault(FaultKind::Limit, "operation of {} steps is larger than the model's limit of {}", work,
                     options_.maxOperationWork);
  }
  if (bytes > options_.maxOperationBytes) {
    return makeFault(FaultKind::Limit,
                     "operation needs {} bytes of temporary memory, the model's limit is {}", bytes,
                     options_.maxOperationBytes);
  }
  return std::nullopt;
}

Outcome Executor::geometryOf(const KernelOperation& op, Geometry& geometry) const {
  geometry.ofmHeight = op.ofm.height;
  geometry.ofmWidth = op.ofm.width;
  geometry.ofmDepth = op.ofm.depth;
  geometry.ifmDepth = op.ifm.depth;
  const Kernel& k = op.kernel;
  geometry.ifmHeight = (geometry.ofmHeight - 1) * k.strideY + (int64_t{k.height} - 1) * k.dilationY + 1 -
                       op.padding.top - op.padding.bottom;
  geometry.ifmWidth = (geometry.ofmWidth - 1) * k.strideX + (int64_t{k.width} - 1) * k.dilationX + 1 -
                      op.padding.left - op.padding.right;
  if (geometry.ifmHeight < 1 || geometry.ifmWidth < 1) {
    return makeFault(FaultKind::Parse, "padding {},{},{},{} leaves no input ({}x{})", op.padding.top,
                     op.padding.left, op.padding.bottom, op.padding.right, geometry.ifmHeight,
                     geometry.ifmWidth);
  }
  return std::nullopt;
}

Outcome Executor::prepareOutput(const KernelOperation& op, AddressMap& memory) {
  records_.clear();
  Scale scale = op.ofmScale;
  if (!target_.architecture().wideScaling) scale.doubleRound = 0;
  bool perChannel = false;
  switch (op.kind) {
    case OperationKind::Conv:
    case OperationKind::Depthwise:
      perChannel = !op.globalScale;
      break;
    case OperationKind::Pool:
      if (!op.globalScale) {
        // Without a scale stream the value passes through unscaled.
        perChannel = op.weights && op.weights->scales[0].length > 0;
        if (!perChannel) scale = kIdentity;
      }
      // REDUCE_SUM of 32-bit inputs is fully scaled, unlike 32-bit elementwise operations on U55/U65:
      // programs of other compilers have actual multipliers there.
      break;
    case OperationKind::Elementwise: {
      const ElementwiseMode mode = op.elementwise.mode;
      const bool wide = elementBytes(op.ifm.type) == 4;
      if (!target_.architecture().wideScaling) {
        const bool scaled = mode == ElementwiseMode::Add || mode == ElementwiseMode::Sub ||
                            mode == ElementwiseMode::Mul || mode == ElementwiseMode::Abs;
        if (!op.globalScale || !scaled) scale = kIdentity;
        if (wide) scale.multiplier = 1;
      } else {
        const bool shift = mode == ElementwiseMode::Shr;
        if (!op.globalScale || shift) scale = kIdentity;  // SHR uses only the rounding mode
        if (wide && mode == ElementwiseMode::Mul) scale.multiplier = 1;
      }
      break;
    }
    case OperationKind::Resize:
      break;
  }
  if (!op.accumulatorOutput) {
    perChannel = false;
    scale = kIdentity;
  }
  if (perChannel) {
    if (Outcome failed = readScaleRecords(target_, op, op.ofm.depth, memory, records_)) return failed;
  }
  return stage_.prepare(target_, op, records_, scale, op.ofm.depth, tableMemory());
}

Outcome Executor::prepareAccumulators(const KernelOperation& op, AddressMap& memory) {
  initial_.clear();
  const int64_t height = op.ofm.height, width = op.ofm.width, depth = op.ofm.depth;
  if (op.accumulatorInput == AccumulatorInput::Keep) {
    if (!kept_.valid || kept_.height * kept_.width * kept_.depth != height * width * depth) {
      return makeFault(FaultKind::Parse,
                       "accumulators to keep: the preceding operation left {}x{}x{}, this one needs {}x{}x{}",
                       kept_.height, kept_.width, kept_.depth, height, width, depth);
    }
    initial_ = std::move(kept_.values);
  } else if (op.accumulatorInput == AccumulatorInput::Ifm2) {
    if (!op.ifm2) return makeFault(FaultKind::Parse, "accumulators from IFM2 without IFM2");
    const Broadcast& broadcast = op.elementwise.ifm2Broadcast;
    const int64_t rows = broadcast.h ? 1 : height, columns = broadcast.w ? 1 : width,
                  channels = broadcast.c ? 1 : depth;
    BoundMap map;
    if (op.ifm2->storage == Storage::Chained || op.ifm2->storage == Storage::None) {
      return makeFault(FaultKind::Parse, "accumulators from an IFM2 that is not in memory");
    }
    if (Outcome failed =
            map.bind(*op.ifm2, rows, columns, channels, memory, Access::Read, Channel::Ifm, "IFM2")) {
      return failed;
    }
    initial_.resize(static_cast<size_t>(height * width * depth));
    std::vector<int64_t> row(static_cast<size_t>(columns * channels));
    for (int64_t y = 0; y < height; ++y) {
      map.readRow(broadcast.h ? 0 : y, 0, columns, op.ifm2->zeroPoint, row.data());
      int64_t* to = initial_.data() + y * width * depth;
      if (columns == width && channels == depth) {
        std::copy(row.begin(), row.end(), to);
        continue;
      }
      for (int64_t x = 0; x < width; ++x) {
        for (int64_t c = 0; c < depth; ++c) {
          to[x * depth + c] =
              row[static_cast<size_t>((broadcast.w ? 0 : x) * channels + (broadcast.c ? 0 : c))];
        }
      }
    }
  }
  kept_ = {};
  if (!op.accumulatorOutput) {
    kept_.valid = true;
    kept_.height = height;
    kept_.width = width;
    kept_.depth = depth;
    kept_.values.resize(static_cast<size_t>(height * width * depth));
  }
  return std::nullopt;
}

void Executor::emit(const KernelOperation& op, int64_t first, int64_t count, int64_t* acc,
                    std::vector<std::byte>& scratch) {
  const int64_t depth = op.ofm.depth;
  const int64_t n = count * depth;
  if (!initial_.empty()) {
    const int64_t* initial = initial_.data() + first * depth;
    for (int64_t i = 0; i < n; ++i) {
      acc[i] = static_cast<int64_t>(static_cast<uint64_t>(acc[i]) + static_cast<uint64_t>(initial[i]));
    }
  }
  if (!op.accumulatorOutput) {
    std::copy_n(acc, n, kept_.values.begin() + first * depth);
    return;
  }
  scratch.resize(static_cast<size_t>(n * stage_.outBytes()));
  // Accumulators that fit 32 bits, as nearly all do, use the vectorised stage.
  uint64_t bits = 0;
  if (fastEmit_) {
    for (int64_t i = 0; i < n; ++i) bits |= static_cast<uint64_t>(acc[i] ^ (acc[i] >> 63));
  }
  constexpr uint64_t kInt32Limit = 0x7fffffff;
  if (fastEmit_ && bits < kInt32Limit && stage_.canFinishFast(static_cast<int64_t>(bits) + 1)) {
    thread_local AlignedBytes narrowBytes;
    narrowBytes.reserve(static_cast<size_t>(n) * sizeof(int32_t));
    auto* narrow = narrowBytes.as<int32_t>();
    for (int64_t i = 0; i < n; ++i) narrow[i] = static_cast<int32_t>(acc[i]);
    stage_.finishFast(narrow, count, scratch.data());
  } else {
    stage_.finish(acc, count, scratch.data());
  }
  sink_.store(first, count, scratch.data());
}

Outcome Executor::execute(const KernelOperation& op, AddressMap& memory) {
  zeroWeights_ = -1;
  const int64_t elements = int64_t{op.ofm.height} * op.ofm.width * op.ofm.depth;
  if (Outcome failed = checkLimits(elements, op.ofm.storage == Storage::Chained || !op.accumulatorOutput ||
                                                     op.accumulatorInput != AccumulatorInput::Reset
                                                 ? elements * 8
                                                 : 0)) {
    return failed;
  }
  if (Outcome failed = sink_.bind(op, memory, chains_)) return failed;
  if (Outcome failed = prepareOutput(op, memory)) return failed;
  fastEmit_ = stage_.canFinishFast(0);
  if (fastEmit_) stage_.prepareFast(op.ofm.depth);
  if (Outcome failed = prepareAccumulators(op, memory)) return failed;
  Outcome failed;
  switch (op.kind) {
    case OperationKind::Conv:
    case OperationKind::Depthwise:
      failed = convolution(op, memory);
      break;
    case OperationKind::Pool:
      failed = pooling(op, memory);
      break;
    case OperationKind::Elementwise:
      failed = elementwise(op, memory);
      break;
    case OperationKind::Resize:
      failed = resize(op, memory);
      break;
  }
  if (!failed && elements == 1 && op.accumulatorOutput) resultFlag_ = sink_.flag();
  return failed;
}

}  // namespace carina::npu::model
