// SPDX-License-Identifier: Apache-2.0
// The stream checker (checker.hpp).
#include "npu/model/checker.hpp"

#include <algorithm>
#include <array>

#include "npu/isa/blockconfig.hpp"
#include "npu/model/extent_checks.hpp"
#include "npu/model/operation_fault.hpp"

namespace carina::npu::model {
namespace {

constexpr size_t kMaxFindings = 200;

std::string describe(int32_t space, uint64_t first, uint64_t last) {
  return space == kInternalSpace ? fmt::format("internal memory 0x{:x}..0x{:x}", first, last)
                                 : fmt::format("region {} 0x{:x}..0x{:x}", space, first, last);
}

}  // namespace

void Checker::assumeInitialized(uint8_t region, uint64_t offset, uint64_t length) {
  if (length == 0 || offset > UINT64_MAX - length) return;
  auto& ranges = written_[region];
  uint64_t first = offset, last = offset + length - 1;
  // Merge with every range that touches [first - 1, last + 1].
  auto at = ranges.upper_bound(first);
  if (at != ranges.begin() && std::prev(at)->second + 1 >= first) --at;
  while (at != ranges.end() && at->first <= last + 1) {
    first = std::min(first, at->first);
    last = std::max(last, at->second);
    at = ranges.erase(at);
  }
  ranges[first] = last;
}

void Checker::find(Finding::Kind kind, uint32_t offset, std::string message) {
  if (findings_.size() < kMaxFindings) findings_.push_back({kind, offset, std::move(message)});
}

void Checker::reportConflicts(const std::vector<MemoryUse>& uses, const std::deque<Pending>& pending,
                              uint32_t offset, const char* kind, const char* remedy) {
  for (const Pending& other : pending) {
    for (const MemoryUse& theirs : other.uses) {
      for (const MemoryUse& ours : uses) {
        if (!(theirs.write || ours.write) || theirs.space != ours.space || theirs.first > ours.last ||
            ours.first > theirs.last)
          continue;
        find(Finding::Kind::Hazard, offset,
             fmt::format(
                 "{} of {} conflicts with {} of {} by the unfinished {} at offset 0x{:x}: {}; {}",
                 ours.write ? "write" : "read", ours.what, theirs.write ? "write" : "read", theirs.what, kind,
                 other.offset,
                 describe(ours.space, std::max(ours.first, theirs.first), std::min(ours.last, theirs.last)),
                 remedy));
        return;
      }
    }
  }
}

void Checker::checkAlignment(const KernelOperation& op, uint32_t offset) {
  const auto check = [&](const FeatureMap& map, const char* what) {
    if (!inMemory(map)) return;
    const int64_t bytes = elementBytes(map.type);
    const int64_t unit = map.layout == Layout::NHCWB16 ? 16 : bytes;
    for (size_t t = 0; t < 4; ++t) {
      if (map.base[t] % static_cast<uint64_t>(unit) != 0) {
        find(Finding::Kind::Alignment, offset,
             fmt::format("{} base {} 0x{:x} is not a multiple of {}", what, t, map.base[t], unit));
      }
    }
    if (map.strideY % unit != 0) {
      find(Finding::Kind::Alignment, offset,
           fmt::format("{} stride Y {} is not a multiple of {}", what, map.strideY, unit));
    }
    const int64_t other = map.layout == Layout::NHCWB16 ? map.strideC : map.strideX;
    if (other % unit != 0) {
      find(Finding::Kind::Alignment, offset,
           fmt::format("{} stride {} {} is not a multiple of {}", what,
                       map.layout == Layout::NHCWB16 ? 'C' : 'X', other, unit));
    }
  };
  check(op.ifm, "IFM");
  if (op.ifm2) check(*op.ifm2, "IFM2");
  if (op.accumulatorOutput) check(op.ofm, "OFM");
  if (!op.weights) return;
  const auto stream = [&](const AddressRange& range, const char* what) {
    if (range.length > 0 && (range.address % 16 != 0 || range.length % 16 != 0)) {
      find(Finding::Kind::Alignment, offset,
           fmt::format("{} stream at 0x{:x} of {} bytes: address and size must be multiples of 16", what,
                       range.address, range.length));
    }
  };
  for (const AddressRange& range : op.weights->weights) stream(range, "weight");
  for (const AddressRange& range : op.weights->scales) stream(range, "scale");
}

void Checker::checkAlignment(const DmaOperation& op, uint32_t offset) {
  const auto need = [&](uint64_t value, const char* what) {
    if (value % 16 != 0)
      find(Finding::Kind::Alignment, offset,
           fmt::format("DMA {} 0x{:x} is not a multiple of 16", what, value));
  };
  const Architecture& npu = target_.architecture();
  const auto aligned = [&](const DmaEnd& end) {
    return end.internal ? npu.dmaAlignsInternal : npu.dmaAlignsMemory;
  };
  if (aligned(op.source)) need(op.source.address, "source");
  if (aligned(op.destination)) need(op.destination.address, "destination");
  if (op.destination.internal && npu.dmaAlignsInternal) need(op.length, "length");
}

void Checker::checkBlock(const KernelOperation& op, uint32_t offset) {
  if (target_.architecture().choosesMicroblocks && !microblockAllowed(target_, op, op.microblock)) {
    find(Finding::Kind::BlockConfig, offset,
         fmt::format("microblock {}x{}x{} is not allowed for this operation on {}", op.microblock.h,
                     op.microblock.w, op.microblock.c, target_.name));
  }
  const BlockRules rules(target_, op);
  if (Status status = rules.check(op.block); !status.ok())
    find(Finding::Kind::BlockConfig, offset, status.error().message());
  if (!target_.hasShram()) return;
  // IFM2 may start anywhere: old compilers split the input banks in the middle.
  if (op.ifmBufferEnd % 2 != 0 || op.accumulatorStart % 2 != 0) {
    find(Finding::Kind::BlockConfig, offset, "an SHRAM buffer starts or ends at an odd bank");
  }
  if (op.kind != OperationKind::Elementwise && op.ifmBufferEnd > op.accumulatorStart) {
    find(Finding::Kind::BlockConfig, offset,
         fmt::format("IFM buffers end at bank {}, accumulators start at bank {}", op.ifmBufferEnd,
                     op.accumulatorStart));
  }
}

namespace {

/// A box in a feature map, in its coordinates; empty if nothing is accessed.
struct Box {
  int64_t y0 = 0, y1 = 0, x0 = 0, x1 = 0, c0 = 0, c1 = 0;
  bool empty() const { return y0 >= y1 || x0 >= x1 || c0 >= c1; }
};

int64_t blocksOf(int64_t size, int64_t block) {
  return (size + block - 1) / std::max<int64_t>(block, 1);
}

/// Block `index` of the OFM in execution order: depth fastest, then width, then height.
Box ofmBlock(const KernelOperation& op, int64_t index) {
  const int64_t depths = blocksOf(op.ofm.depth, op.block.c), widths = blocksOf(op.ofm.width, op.block.w);
  const int64_t z = index % depths, x = index / depths % widths, y = index / depths / widths;
  Box box{y * op.block.h,       (y + 1) * op.block.h, x * op.block.w,
          (x + 1) * op.block.w, z * op.block.c,       (z + 1) * op.block.c};
  box.y1 = std::min<int64_t>(box.y1, op.ofm.height);
  box.x1 = std::min<int64_t>(box.x1, op.ofm.width);
  box.c1 = std::min<int64_t>(box.c1, op.ofm.depth);
  return box;
}

/// The part of `map` that job `index` of the operation reads; operations that reduce depth have several jobs
/// per OFM block.
Box inputOfJob(const KernelOperation& op, const FeatureMap& map, int32_t reductionDepth, int64_t index) {
  const int64_t steps = reductionDepth > 0 ? blocksOf(map.depth, reductionDepth) : 1;
  Box box = ofmBlock(op, index / steps);
  if (op.kind != OperationKind::Elementwise && op.kind != OperationKind::Resize) {
    const int64_t up = op.upscale == Upscale::None ? 1 : 2;
    const auto window = [&](int64_t& first, int64_t& last, int64_t stride, int64_t span, int64_t padding) {
      const int64_t begin = first * stride - padding, end = (last - 1) * stride + span - padding;
      first = std::max<int64_t>(begin, 0) / up;
      last = (std::max<int64_t>(end, 0) + up - 1) / up;
    };
    window(box.y0, box.y1, op.kernel.strideY, op.kernel.dilatedHeight(), op.padding.top);
    window(box.x0, box.x1, op.kernel.strideX, op.kernel.dilatedWidth(), op.padding.left);
    if (reductionDepth > 0) {
      box.c0 = index % steps * reductionDepth;
      box.c1 = box.c0 + reductionDepth;
    }
  } else if (op.kind == OperationKind::Resize) {
    // Each output lies between two inputs, clamped to the map.
    const auto taps = [](int64_t& first, int64_t& last, const ResizeAxis& axis, int64_t size) {
      const auto before = [&](int64_t out) {
        const int64_t position = out * axis.denominator + axis.offset;
        const int64_t n = std::max(axis.numerator, 1);
        return std::clamp<int64_t>(position >= 0 ? position / n : -((n - 1 - position) / n), 0, size - 1);
      };
      last = before(last - 1) + 2;
      first = before(first);
    };
    taps(box.y0, box.y1, op.resizeY, map.height);
    taps(box.x0, box.x1, op.resizeX, map.width);
  }
  // Broadcast axes have only index 0.
  if (map.height == 1) box.y0 = 0;
  if (map.width == 1) box.x0 = 0;
  if (map.depth == 1) box.c0 = 0;
  box.y1 = std::min<int64_t>(box.y1, map.height);
  box.x1 = std::min<int64_t>(box.x1, map.width);
  box.c1 = std::min<int64_t>(box.c1, map.depth);
  return box;
}

/// First and last byte of a box (first tile's addresses).
std::pair<int64_t, int64_t> hull(const FeatureMap& map, const Box& box) {
  const int64_t bytes = elementBytes(map.type);
  const auto at = [&](int64_t y, int64_t x, int64_t c) {
    const auto base = static_cast<int64_t>(map.base[0]) + y * map.strideY + x * map.strideX;
    return map.layout == Layout::NHWC ? base + c * bytes : base + c / 16 * map.strideC + c % 16 * bytes;
  };
  int64_t low = at(box.y0, box.x0, box.c0), high = low;
  for (const int64_t y : {box.y0, box.y1 - 1}) {
    for (const int64_t x : {box.x0, box.x1 - 1}) {
      for (const int64_t c : {box.c0, box.c1 - 1}) {
        low = std::min(low, at(y, x, c));
        high = std::max(high, at(y, x, c));
      }
    }
  }
  return {low, high + bytes - 1};
}

/// Whether two boxes share bytes: exact if both maps have the same strides, otherwise by their hulls.
bool boxesMeet(const FeatureMap& a, Box boxA, const FeatureMap& b, Box boxB) {
  if (boxA.empty() || boxB.empty()) return false;
  const int64_t bytes = elementBytes(a.type);
  // The stride of an axis with one element is meaningless: that of the other map applies, or neither does.
  constexpr int64_t kFar = int64_t{1} << 40;
  const auto common = [](int32_t sizeA, int64_t strideA, int32_t sizeB, int64_t strideB, int64_t byNeither) {
    if (sizeA == 1 && sizeB == 1) return byNeither;
    if (sizeA == 1) return strideB;
    return sizeB == 1 || strideA == strideB ? strideA : int64_t{0};
  };
  const bool rows = a.layout == Layout::NHWC;
  const int64_t strideY = common(a.height, a.strideY, b.height, b.strideY, kFar);
  const int64_t strideX = common(a.width, a.strideX, b.width, b.strideX, rows ? strideY : a.strideC);
  const bool sameGrid = a.layout == b.layout && a.type == b.type && strideY > 0 && strideX > 0 &&
                        (rows || (a.strideC == b.strideC && a.strideC > 0));
  if (sameGrid) {
    // Move both into one coordinate system by decomposing the distance of the bases.
    int64_t rest = static_cast<int64_t>(b.base[0]) - static_cast<int64_t>(a.base[0]);
    const bool negative = rest < 0;
    rest = std::abs(rest);
    int64_t dy = rest / strideY, dx, dc;
    rest %= strideY;
    if (rows) {
      dx = rest / strideX;
      dc = rest % strideX / bytes;
    } else {
      dc = rest / a.strideC * 16;
      dx = rest % a.strideC / strideX;
      const int64_t between =
          rest % a.strideC % strideX;  // columns of one map lie between those of the other
      if (between >= 16 * bytes && between <= strideX - 16 * bytes) return false;
    }
    if (negative) dy = -dy, dx = -dx, dc = -dc;
    const auto meet = [](int64_t p0, int64_t p1, int64_t q0, int64_t q1) { return p0 < q1 && q0 < p1; };
    return meet(boxA.y0, boxA.y1, boxB.y0 + dy, boxB.y1 + dy) &&
           meet(boxA.x0, boxA.x1, boxB.x0 + dx, boxB.x1 + dx) &&
           meet(boxA.c0, boxA.c1, boxB.c0 + dc, boxB.c1 + dc);
  }
  const auto [lowA, highA] = hull(a, boxA);
  const auto [lowB, highB] = hull(b, boxB);
  return lowA <= highB && lowB <= highA;
}

/// A box of a map that is split along its height (a rolling buffer that wraps): the part in each tile, as a
/// separate map.
std::vector<std::pair<FeatureMap, Box>> tileParts(const FeatureMap& map, const Box& box) {
  if (map.height0 >= map.height || map.width0 < map.width) return {{map, box}};
  FeatureMap lower = map;
  lower.base[0] = map.base[2];
  Box above = box, below = box;
  above.y1 = std::min<int64_t>(box.y1, map.height0);
  below.y0 = std::max<int64_t>(box.y0 - map.height0, 0);
  below.y1 = box.y1 - map.height0;
  return {{map, above}, {lower, below}};
}

bool partsMeet(const FeatureMap& a, const Box& boxA, const FeatureMap& b, const Box& boxB) {
  for (const auto& [mapA, partA] : tileParts(a, boxA)) {
    for (const auto& [mapB, partB] : tileParts(b, boxB)) {
      if (boxesMeet(mapA, partA, mapB, partB)) return true;
    }
  }
  return false;
}

}  // namespace

/// BLOCKDEP b: job i of this operation may run while job j, counted from the end, of the preceding operation
/// is unfinished if i + j < b, so it must not read what that job writes.
void Checker::checkBlockDependency(const KernelOperation& op, uint32_t offset) {
  if (kernels_.empty() || op.blockDependency == 0) return;
  const Pending& before = kernels_.back();
  const KernelOperation& last = before.operation;
  if (!last.accumulatorOutput || !inMemory(last.ofm)) return;
  const bool permuted = last.transpose != Transpose::HWC || last.reverse != Reverse::None;
  const int64_t lastJobs = blocksOf(last.ofm.height, last.block.h) * blocksOf(last.ofm.width, last.block.w) *
                           blocksOf(last.ofm.depth, last.block.c);
  const int32_t reduction = BlockRules(target_, op).reductionDepth();
  const auto conflicts = [&](const FeatureMap& map, int32_t reductionDepth) {
    if (!inMemory(map) || map.region != last.ofm.region) return false;
    for (int64_t i = 0; i < op.blockDependency; ++i) {
      const Box read = inputOfJob(op, map, reductionDepth, i);
      for (int64_t j = 0; i + j < op.blockDependency && j < lastJobs; ++j) {
        const Box written = permuted ? Box{0, last.ofm.height, 0, last.ofm.width, 0, last.ofm.depth}
                                     : ofmBlock(last, lastJobs - 1 - j);
        if (partsMeet(map, read, last.ofm, written)) return true;
      }
    }
    return false;
  };
  const bool readsIfm = !(op.kind == OperationKind::Pool && op.pool == PoolMode::None);
  const bool binary = op.ifm2 && (op.kind != OperationKind::Elementwise || !isUnary(op.elementwise.mode));
  const char* what = readsIfm && conflicts(op.ifm, reduction) ? "IFM"
                     : binary && conflicts(*op.ifm2, 0)       ? "IFM2"
                                                              : nullptr;
  if (what != nullptr) {
    find(Finding::Kind::Hazard, offset,
         fmt::format(
             "BLOCKDEP {} lets this operation read its {} while the one at offset 0x{:x} still writes it",
             op.blockDependency, what, before.offset));
  }
}

void Checker::checkInitialized(const std::vector<MemoryUse>& uses, uint32_t offset) {
  for (const MemoryUse& use : uses) {
    // Tables are checked by the table tracker.
    if (use.write || use.space == kInternalSpace ||
        initializedRegions_.count(static_cast<uint8_t>(use.space)) != 0)
      continue;
    // Only a range without any write is certain: strided maps leave gaps.
    const auto space = written_.find(use.space);
    bool touched = false;
    if (space != written_.end()) {
      auto at = space->second.upper_bound(use.last);
      touched = at != space->second.begin() && std::prev(at)->second >= use.first;
    }
    if (!touched) {
      find(Finding::Kind::Uninitialized, offset,
           fmt::format("{} reads uninitialized memory: {}", use.what,
                       describe(use.space, use.first, use.last)));
    }
  }
  for (const MemoryUse& use : uses) {
    if (use.write && use.last >= use.first && use.last - use.first < uint64_t{1} << 40) {
      const auto space = static_cast<uint8_t>(use.space);
      assumeInitialized(space, use.first, use.last - use.first + 1);
    }
  }
}

void Checker::checkRegions(const std::vector<MemoryUse>& uses, uint32_t offset) {
  const uint64_t internalBytes = target_.internalBytes();
  for (const MemoryUse& use : uses) {
    const auto known = regions_.find(static_cast<uint8_t>(use.space));
    const bool internal = use.space == kInternalSpace;
    if (!internal && known == regions_.end()) continue;
    const uint64_t bytes = internal ? internalBytes : known->second.bytes;
    if (use.first > use.last || use.last >= bytes) {
      find(Finding::Kind::OutOfRegion, offset,
           fmt::format("{} extends beyond the 0x{:x} bytes available: {}", use.what, bytes,
                       describe(use.space, use.first, use.last)));
    } else if (use.write && !internal && !known->second.writable) {
      find(Finding::Kind::OutOfRegion, offset,
           fmt::format("{} is written to read-only memory: {}", use.what,
                       describe(use.space, use.first, use.last)));
    }
  }
}

void Checker::add(const Operation& operation, uint32_t offset, std::span<const std::string_view> unset) {
  // Operand scales are decoded for every elementwise operation, but on U55/U65 only ADD and SUB use them, and
  // unary operations have no second operand.
  const auto* elementwise = std::get_if<KernelOperation>(&operation);
  const bool noOperandScales = elementwise != nullptr && !target_.architecture().operandScales &&
                               (elementwise->elementwise.mode != ElementwiseMode::Add &&
                                elementwise->elementwise.mode != ElementwiseMode::Sub);
  const bool unary = elementwise != nullptr && !elementwise->ifm2;
  for (const std::string_view name : unset) {
    if (noOperandScales && (name == "NPU_SET_OPA_SCALE" || name == "NPU_SET_OPB_SCALE")) continue;
    if (unary && name == "NPU_SET_IFM2_SCALE") continue;
    find(Finding::Kind::StaleState, offset, fmt::format("{} is used but no command has set it", name));
  }
  const auto keep = [](std::deque<Pending>& queue, int32_t outstanding) {
    while (static_cast<int32_t>(queue.size()) > std::max(outstanding, 0)) queue.pop_front();
  };
  if (const auto* kernel = std::get_if<KernelOperation>(&operation)) {
    const auto uses = memoryUses(target_, *kernel);
    reportConflicts(uses, dmas_, offset, "DMA", "a DMA_WAIT is missing before it");
    checkBlockDependency(*kernel, offset);
    // Weights are read as soon as the operation is issued, regardless of BLOCKDEP.
    std::vector<MemoryUse> streams;
    for (const MemoryUse& use : uses) {
      if (use.what == std::string_view("weights") || use.what == std::string_view("scales"))
        streams.push_back(use);
    }
    reportConflicts(streams, kernels_, offset, "operation", "a KERNEL_WAIT is missing before it");
    checkAlignment(*kernel, offset);
    checkBlock(*kernel, offset);
    checkRegions(uses, offset);
    checkInitialized(uses, offset);
    for (std::string& text : paddingFindings(*kernel)) find(Finding::Kind::Padding, offset, std::move(text));
    for (std::string& text : extentFindings(*kernel)) find(Finding::Kind::Extent, offset, std::move(text));
    tables_.add(*kernel, offset);
    flagKnown_ =
        int64_t{kernel->ofm.height} * kernel->ofm.width * kernel->ofm.depth == 1 && kernel->accumulatorOutput;
    kernels_.push_back({uses, offset, *kernel});
    keep(kernels_, target_.maxOutstandingKernels());
  } else if (const auto* dma = std::get_if<DmaOperation>(&operation)) {
    const auto uses = memoryUses(target_, *dma);
    reportConflicts(uses, kernels_, offset, "operation", "a KERNEL_WAIT is missing before it");
    checkAlignment(*dma, offset);
    checkRegions(uses, offset);
    checkInitialized(uses, offset);
    tables_.add(*dma, offset);
    dmas_.push_back({uses, offset, {}});
    keep(dmas_, target_.architecture().outstandingDmas);
  } else if (const auto* kernelWait = std::get_if<KernelWait>(&operation)) {
    keep(kernels_, kernelWait->outstanding);
  } else if (const auto* dmaWait = std::get_if<DmaWait>(&operation)) {
    keep(dmas_, dmaWait->outstanding);
  } else if (std::holds_alternative<Stop>(operation)) {
    kernels_.clear();
    dmas_.clear();
  } else if (const auto* branch = std::get_if<Branch>(&operation)) {
    if (branch->ifResult) checkFlag(offset);
    tables_.forget();
  }
}

/// Checks a branch that tests the result flag.
void Checker::checkFlag(uint32_t offset) {
  if (!kernels_.empty()) {
    find(Finding::Kind::Hazard, offset,
         fmt::format("the branch tests the result of the operation at 0x{:x}, which may be unfinished: a "
                     "KERNEL_WAIT is missing before it",
                     kernels_.back().offset));
  }
  if (!flagKnown_) {
    find(Finding::Kind::StaleState, offset,
         "the branch tests the result flag, but the latest operation does not write exactly one element");
  }
}

std::vector<Finding> Checker::take() {
  // Some are found only later in the stream.
  std::stable_sort(findings_.begin(), findings_.end(),
                   [](const Finding& a, const Finding& b) { return a.offset < b.offset; });
  return std::move(findings_);
}

}  // namespace carina::npu::model

namespace carina::npu {

const char* findingKindName(Finding::Kind kind) {
  switch (kind) {
    case Finding::Kind::Hazard:
      return "hazard";
    case Finding::Kind::Alignment:
      return "alignment";
    case Finding::Kind::BlockConfig:
      return "block";
    case Finding::Kind::Uninitialized:
      return "uninitialized";
    case Finding::Kind::StaleState:
      return "stale";
    case Finding::Kind::OutOfRegion:
      return "region";
    case Finding::Kind::Table:
      return "table";
    case Finding::Kind::Padding:
      return "padding";
    case Finding::Kind::Extent:
      return "extent";
    case Finding::Kind::Command:
      return "command";
  }
  return "?";
}

}  // namespace carina::npu
