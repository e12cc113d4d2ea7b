// SPDX-License-Identifier: Apache-2.0
// Source: the public documentation of Arm Virtual Hardware, "Virtual Streaming Interface" and "Virtual
// Input/Output".
#include "platform/virtual_stream.hpp"

#include <algorithm>

namespace carina::platform {
namespace {

constexpr uint32_t kInterruptEnable = 0x00, kInterruptSet = 0x04, kInterruptClear = 0x08,
                   kInterruptStatus = 0x0c;
constexpr uint32_t kStreamTimerControl = 0x100, kStreamTimerInterval = 0x104, kStreamTimerCount = 0x108;
constexpr uint32_t kDmaControl = 0x200, kDmaAddress = 0x204, kDmaBlockSize = 0x208, kDmaBlocks = 0x20c,
                   kDmaBlock = 0x210;
constexpr uint32_t kPeerRegisters = 0x300, kPeerRegistersEnd = kPeerRegisters + 4 * StreamPeer::kRegisters;

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
  if (offset >= kPeerRegisters && offset < kPeerRegistersEnd)
    return peer_->read((offset - kPeerRegisters) / 4);
  switch (offset) {
    case kInterruptEnable:
      return enabled_;
    case kInterruptStatus:
      return status_;
    case kStreamTimerControl:
      return timer_;
    case kStreamTimerInterval:
      return interval_;
    case kStreamTimerCount:
      return count_;
    case kDmaControl:
      return dma_;
    case kDmaAddress:
      return address_;
    case kDmaBlockSize:
      return blockSize_;
    case kDmaBlocks:
      return blocks_;
    case kDmaBlock:
      return block_;
    default:
      return 0;
  }
}

void VirtualStream::write(uint32_t offset, uint32_t value) {
  advance(clock_.now());
  if (offset >= kPeerRegisters && offset < kPeerRegistersEnd) {
    peer_->write((offset - kPeerRegisters) / 4, value);
    return;
  }
  switch (offset) {
    case kInterruptEnable:
      enabled_ = value;
      break;
    case kInterruptSet:
      status_ |= value;
      break;
    case kInterruptClear:
      status_ &= ~value;
      break;
    case kStreamTimerControl:
      setTimer(value);
      break;
    case kStreamTimerInterval:
      interval_ = value;
      break;
    case kDmaControl:
      dma_ = value & (kDmaOn | kFromMemory);
      block_ = 0;
      break;
    case kDmaAddress:
      address_ = value;
      break;
    case kDmaBlockSize:
      blockSize_ = value & ~3u;
      break;
    case kDmaBlocks:
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
