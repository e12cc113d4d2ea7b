// SPDX-License-Identifier: Apache-2.0
// DMA_START: 1D, 2D and 3D copies, internal memory, gather and scatter (ethosu-command-stream 8).
#include <algorithm>
#include <cstring>

#include "npu/model/executor.hpp"

namespace carina::npu::model {
namespace {

OperationFault outside(const char* side, uint64_t address, uint64_t length, const DmaEnd& end,
                       Channel channel) {
  OperationFault failed =
      end.internal ? makeFault(FaultKind::Bus,
                               "DMA {}: {} bytes at internal address 0x{:x} are outside internal memory",
                               side, length, address)
                   : makeFault(FaultKind::Bus, "DMA {}: {} bytes at offset 0x{:x} are outside region {}",
                               side, length, address, end.region);
  failed.channel = static_cast<uint8_t>(channel);
  return failed;
}

}  // namespace

Outcome Executor::execute(const DmaOperation& op, AddressMap& memory) {
  if (op.length == 0) return std::nullopt;
  const bool indexed = op.source.indexed || op.destination.indexed;
  const Architecture& npu = target_.architecture();
  if (indexed && (!npu.indexedDma || (op.source.indexed && op.destination.indexed))) {
    return makeFault(FaultKind::Parse, "indexed DMA {}", npu.indexedDma ? "on both sides" : "on this NPU");
  }
  const int dimensions = std::max(op.dimensions, op.destinationDimensions);
  if (dimensions > npu.dmaDimensions)
    return makeFault(FaultKind::Parse, "{}D DMA on {}", dimensions, familyName(target_.family));
  const int64_t inner = dimensions >= 2 || indexed ? op.size0 : 1;
  const int64_t outer = dimensions >= 3 ? op.size1 : 1;
  if (inner <= 0 || outer <= 0) return std::nullopt;
  const auto bytes = static_cast<int64_t>(std::min<uint64_t>(op.length, uint64_t{1} << 48));
  if (inner * outer > options_.maxOperationWork / std::max<int64_t>(bytes / 8 + 16, 1)) {
    return checkLimits(std::numeric_limits<int64_t>::max(), 0);
  }

  const auto resolve = [&](const DmaEnd& end, uint64_t address, Access access) -> std::byte* {
    if (!end.internal) return memory.resolve(end.region, address, op.length, access);
    if (address > internal_.size() || op.length > internal_.size() - address) return nullptr;
    return reinterpret_cast<std::byte*>(internal_.data()) + address;
  };
  const bool gapStrides = npu.dmaGapStrides;
  uint64_t sourceGap = op.source.address,
           destinationGap = op.destination.address;  // with gaps: advance run by run
  uint64_t indexAddress = op.indexAddress;
  for (int64_t g = 0; g < outer; ++g) {
    for (int64_t i = 0; i < inner; ++i) {
      int64_t index = 0;
      if (indexed) {
        const std::byte* at = memory.resolve(op.indexRegion, indexAddress, 4, Access::Read);
        if (at == nullptr) {
          OperationFault failed = makeFault(FaultKind::Bus, "DMA index at offset 0x{:x} is outside region {}",
                                            indexAddress, op.indexRegion);
          failed.channel = static_cast<uint8_t>(Channel::DmaRead);
          return failed;
        }
        int32_t word;
        std::memcpy(&word, at, sizeof word);
        index = word;
        indexAddress += 4;
        // Assumption dma-index-range: an index below 0 or above IDX_MAX stops the NPU with a bus fault.
        if (index < 0 || index > op.indexMax) {
          OperationFault failed = makeFault(FaultKind::Bus, "DMA index {} of run {} is outside 0..{}", index,
                                            g * inner + i, op.indexMax);
          failed.channel = static_cast<uint8_t>(Channel::DmaRead);
          return failed;
        }
      }
      const auto place = [&](const DmaEnd& end, uint64_t running) {
        if (gapStrides) return running;
        const int64_t step = end.indexed ? index : i;
        return end.address + static_cast<uint64_t>(g) * static_cast<uint64_t>(end.stride1) +
               static_cast<uint64_t>(step) * static_cast<uint64_t>(end.stride0);
      };
      const uint64_t from = place(op.source, sourceGap), to = place(op.destination, destinationGap);
      const std::byte* source = resolve(op.source, from, Access::Read);
      if (source == nullptr) return outside("source", from, op.length, op.source, Channel::DmaRead);
      std::byte* destination = resolve(op.destination, to, Access::Write);
      if (destination == nullptr)
        return outside("destination", to, op.length, op.destination, Channel::DmaWrite);
      std::memmove(destination, source, op.length);
      if (gapStrides) {
        // A side without strides of its own is contiguous.
        sourceGap += op.length + (op.dimensions >= 2 ? static_cast<uint64_t>(op.source.stride0) : 0);
        destinationGap +=
            op.length + (op.destinationDimensions >= 2 ? static_cast<uint64_t>(op.destination.stride0) : 0);
      }
    }
    if (gapStrides) {
      sourceGap += op.dimensions >= 3 ? static_cast<uint64_t>(op.source.stride1) : 0;
      destinationGap += op.destinationDimensions >= 3 ? static_cast<uint64_t>(op.destination.stride1) : 0;
    }
    indexAddress += static_cast<uint64_t>(op.indexSkip1);
  }
  return std::nullopt;
}

}  // namespace carina::npu::model
