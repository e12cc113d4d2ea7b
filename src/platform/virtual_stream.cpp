// SPDX-License-Identifier: Apache-2.0
// Source: the public documentation of Arm Virtual Hardware, "Virtual Streaming Interface" and "Virtual
// Input/Output".
#include "platform/virtual_stream.hpp"

#include <algorithm>

namespace carina::platform {
namespace {

constexpr uint32_t kEnable = 0x00, kSet = 0x04, kClear = 0x08, kStatus = 0x0c;
constexpr uint32_t kTimerControl = 0x100, kInterval = 0x104, kCount = 0x108;
constexpr uint32_t kDmaControl = 0x200, kAddress = 0x204, kBlockSize = 0x208, kBlocks = 0x20c, kBlock = 0x210;
constexpr uint32_t kRegisters = 0x300, kEnd = kRegisters + 4 * StreamPeer::kRegisters;

constexpr uint32_t kRun = 1, kPeriodic = 2, kInterrupts = 4, kTransfers = 8;
constexpr uint32_t kDmaOn = 1, kFromMemory = 2;
constexpr uint32_t kLargestBlock = 16u << 20;
constexpr uint64_t kMicrosecond = kCoreHz / 1'000'000;

}  // namespace

uint64_t VirtualStream::interval() const {
  return std::max(interval_, 1u) * kMicrosecond;
}

void VirtualStream::setTimer(uint32_t control) {
  const bool runs = (timer_ & kRun) != 0;
  timer_ = control & 0xf;
  if ((control & kRun) == 0) {
    expires_ = kNever;
  } else if (!runs) {
    count_ = 0;
    expires_ = clock_.now() + interval();
  }
}

void VirtualStream::transfer() {
  if ((dma_ & kDmaOn) == 0 || blockSize_ == 0) return;
  const uint64_t at = address_ + uint64_t{block_} * blockSize_;
  auto* const memory =
      blockSize_ > kLargestBlock ? nullptr : reinterpret_cast<uint8_t*>(bus_.find(at, blockSize_));
  if (memory == nullptr) {
    stray_ = address_;
  } else if ((dma_ & kFromMemory) != 0) {
    peer_->take({memory, blockSize_});
  } else {
    std::fill_n(memory, blockSize_, uint8_t{0});
    peer_->deliver({memory, blockSize_});
  }
  block_ = block_ + 1 < blocks_ ? block_ + 1 : 0;
}

void VirtualStream::expire() {
  ++count_;
  if ((timer_ & kPeriodic) != 0) {
    expires_ += interval();
  } else {
    expires_ = kNever;
    timer_ &= ~kRun;
  }
  if ((timer_ & kTransfers) != 0) transfer();
  status_ |= peer_->tick();
  if ((timer_ & kInterrupts) != 0) status_ |= 1;
  update();
}

void VirtualStream::advance(uint64_t now) {
  while (expires_ <= now) expire();
}

uint32_t VirtualStream::read(uint32_t offset) {
  advance(clock_.now());
  if (offset >= kRegisters && offset < kEnd) return peer_->read((offset - kRegisters) / 4);
  switch (offset) {
    case kEnable:
      return enabled_;
    case kStatus:
      return status_;
    case kTimerControl:
      return timer_;
    case kInterval:
      return interval_;
    case kCount:
      return count_;
    case kDmaControl:
      return dma_;
    case kAddress:
      return address_;
    case kBlockSize:
      return blockSize_;
    case kBlocks:
      return blocks_;
    case kBlock:
      return block_;
    default:
      return 0;
  }
}

void VirtualStream::write(uint32_t offset, uint32_t value) {
  advance(clock_.now());
  if (offset >= kRegisters && offset < kEnd) {
    peer_->write((offset - kRegisters) / 4, value);
    return;
  }
  switch (offset) {
    case kEnable:
      enabled_ = value;
      break;
    case kSet:
      status_ |= value;
      break;
    case kClear:
      status_ &= ~value;
      break;
    case kTimerControl:
      setTimer(value);
      break;
    case kInterval:
      interval_ = value;
      break;
    case kDmaControl:
      dma_ = value & (kDmaOn | kFromMemory);
      block_ = 0;
      break;
    case kAddress:
      address_ = value;
      break;
    case kBlockSize:
      blockSize_ = value & ~3u;
      break;
    case kBlocks:
      blocks_ = value;
      break;
    default:
      break;
  }
  update();
}

// --- signals

namespace {
constexpr uint32_t kOutMask = 0x0, kInMask = 0x8, kIn = 0xc, kValues = 0x10;
}

uint32_t VirtualSignals::read(uint32_t offset) {
  if (offset >= kValues && (offset - kValues) / 4 < values_.size()) return values_[(offset - kValues) / 4];
  switch (offset) {
    case kOutMask:
      return outMask_;
    case kInMask:
      return inMask_;
    case kIn:
      return in_ & inMask_;
    default:
      return 0;
  }
}

void VirtualSignals::write(uint32_t offset, uint32_t value) {
  if (offset >= kValues && (offset - kValues) / 4 < values_.size()) values_[(offset - kValues) / 4] = value;
  if (offset == kOutMask) outMask_ = value;
  if (offset == kInMask) inMask_ = value;
}

}  // namespace carina::platform
