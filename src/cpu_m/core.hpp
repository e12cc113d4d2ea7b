// SPDX-License-Identifier: Apache-2.0
// An Armv8-M core: decodes basic blocks once and executes them by calling one handler per instruction.
#pragma once

#include <array>
#include <memory>
#include <unordered_map>
#include <vector>

#include "cpu_m/encoding.hpp"
#include "cpu_m/memory.hpp"
#include "cpu_m/mpu.hpp"
#include "cpu_m/state.hpp"

namespace carina::cpu_m {

/// Decoded instructions that are executed one after the other; the last one leaves.
struct Block {
  uint64_t key = 0;    // its address, and the context that it was fetched in (Core::keyOf)
  uint32_t count = 0;  // of instructions
  std::vector<Op> ops;
};

class Core final : private MemoryListener, private Protection {
 public:
  explicit Core(uint32_t features) : memory(*this, *this), features_(features) {}

  // What handlers work on.
  State state;
  Memory memory;

  uint32_t features() const { return features_; }
  bool has(uint32_t feature) const { return (features_ & feature) == feature; }

  /// Runs until `budget` instructions are done (a few more: whole basic blocks) or something happens. With
  /// `stopOnMaskChange` also comes back when PRIMASK, BASEPRI or FAULTMASK change.
  Stop run(uint64_t budget, bool stopOnMaskChange = false);
  /// Runs one instruction.
  Stop step();
  /// Instructions executed so far; also valid inside of handlers and device accesses.
  uint64_t instructions() const { return at_ == nullptr ? done_ : done_ - at_->left; }
  const Mpu& mpu() const { return mpu_; }
  /// Changes the memory protection unit; all that was known about permissions is forgotten.
  Mpu& changeMpu() {
    memory.forgetPages();
    codeWritten();
    return mpu_;
  }
  /// Code was changed by other means than this core's stores.
  void codeChanged() { codeWritten(); }
  /// Whether SEV has been executed since the last call.
  bool takeSentEvent() {
    const bool sent = eventSent_;
    eventSent_ = false;
    return sent;
  }
  /// Makes the current run end with Requested at the end of the basic block.
  void requestStop() {
    stopRequested_ = true;
    end_ = 0;
  }

  // --- for handlers

  /// Every handler that may throw, or that asks for instructions(), says first which instruction it is
  /// (straight<> does).
  void at(const Op* op) { at_ = op; }
  /// At the start of every floating-point and MVE instruction: throws NoCoprocessor when the unit is off or
  /// absent, makes the floating-point context active otherwise (CONTROL.FPCA).
  void useFloatingPoint() {
    if (!floatingPointReady_) prepareFloatingPoint();
  }
  /// CPACR, NSACR, CONTROL.FPCA or the lazy state have changed: the next instruction looks again.
  void floatingPointChanged() { floatingPointReady_ = false; }
  void setCoprocessorAccess(uint32_t cpacr) {
    cpacr_ = cpacr;
    floatingPointReady_ = false;
  }
  /// FPDSCR: what FPSCR becomes when a context begins.
  void setDefaultFpscr(uint32_t fpdscr) { fpdscr_ = fpdscr; }
  void setDivideTraps(bool on) { divideTraps_ = on; }
  bool divideTraps() const { return divideTraps_; }
  void sendEvent() { eventSent_ = true; }
  void masksChanged() {
    contextChanged();
    if (stopOnMaskChange_) requestStop();
  }
  /// Privilege or FAULTMASK may have changed: the next block is looked up for how the program runs now.
  void contextChanged() {
    if (contextOf(state) != memory.context()) requestStopQuietly();
  }
  /// The context of the same program without privileges.
  uint32_t unprivilegedContext() const { return contextOf(state) & ~kPrivileged; }
  void clearMonitor() { monitor_ = false; }
  void openMonitor() { monitor_ = true; }
  /// What a store-exclusive asks: whether the monitor is open; closes it.
  bool takeMonitor() {
    const bool open = monitor_;
    monitor_ = false;
    return open;
  }
  /// Throws StackLimit where a new value of the stack pointer is below its limit.
  void checkStack(uint32_t value) {
    if (value < state.stackLimit[state.world][state.activeStack()]) throw Trap{StopReason::StackLimit, value};
  }

  /// Goes on at Op::imm.
  const Op* follow(const Op* op) {
    if (op->link != nullptr && done_ < end_) [[likely]] {
      done_ += op->link->count;
      return op->link->ops.data();
    }
    return followSlowly(op);
  }
  /// Goes on at an even address.
  const Op* branchTo(uint32_t target) {
    const Block* block = recent_[target >> 1 & (kRecent - 1)];
    if (block != nullptr && block->key == keyOf(target) && done_ < end_) [[likely]] {
      done_ += block->count;
      return block->ops.data();
    }
    return branchSlowly(target);
  }
  /// BX, POP {pc} and their like: bit 0 is the instruction set state; EXC_RETURN in handler mode.
  const Op* interwork(const Op* op, uint32_t target) {
    if (target >= kReturnBase && state.handlerMode()) return stop(op, StopReason::ExceptionReturn, target);
    return callTo(target);
  }
  /// BLX: bit 0 is the instruction set state; the address is an ordinary one.
  const Op* callTo(uint32_t target) {
    if ((target & 1) == 0) [[unlikely]] {
      state.thumb = false;  // the run loop refuses to go on
      state.pc = target;
      return nullptr;
    }
    return branchTo(target & ~1u);
  }
  /// Ends the run behind the instruction.
  const Op* stop(const Op* op, StopReason reason, uint32_t value = 0);

 private:
  static constexpr uint32_t kPrivileged = 1, kNegativePriority = 2;  // bits of a context
  static constexpr uint32_t kRecent = 4096;
  static constexpr uint32_t kMaxInstructions = 64;
  static constexpr uint32_t kReturnBase = 0xff000000;
  static constexpr size_t kMaxBlocks = 1u << 17;

  void codeWritten() override {
    flush_ = true;
    requestStopQuietly();
  }
  void deviceWantsStop() override { requestStop(); }
  /// Leaves at the end of the block; run() goes on by itself.
  void requestStopQuietly() { end_ = 0; }

  static uint32_t contextOf(const State& s) {
    const bool negative = s.exception == 2 || s.exception == 3 || s.faultmask[s.world] != 0;
    return (s.privileged() ? kPrivileged : 0) | (negative ? kNegativePriority : 0);
  }
  uint64_t keyOf(uint32_t address) const { return uint64_t{memory.context()} << 32 | address; }
  Permission permission(uint32_t address, uint32_t context) const override;

  const Op* followSlowly(const Op* op);
  const Op* branchSlowly(uint32_t target);
  const Block* lookUp(uint32_t address);
  /// Decodes up to `most` instructions from state.pc on. Throws FetchFault when there is not even one.
  void decode(Block& block, uint32_t address, uint8_t it, uint32_t most, bool cached);
  /// Appends the ops of one instruction; true when the block ends with it.
  bool decodeOne(Block& block, uint32_t address, uint8_t it);
  void executeOne();
  Stop finish(const Trap& trap);
  void flush();
  void prepareFloatingPoint();

  uint32_t features_;
  Mpu mpu_;
  const Op* at_ = nullptr;
  uint64_t done_ = 0;  // with all of the block being executed
  uint64_t end_ = 0;   // execution leaves the blocks when done_ reaches it
  uint64_t budgetEnd_ = 0;
  bool stopRequested_ = false, flush_ = false, stopOnMaskChange_ = false;
  bool stopped_ = false;
  Stop stop_;

  bool eventSent_ = false, monitor_ = false, divideTraps_ = false;
  bool floatingPointReady_ = false;
  uint32_t cpacr_ = 0, fpdscr_ = 0;

  std::array<const Block*, kRecent> recent_{};
  std::unordered_map<uint64_t, std::unique_ptr<Block>> blocks_;
  Block single_;
};

/// A handler from a function that neither branches nor stops.
template <void (*Execute)(Core&, const Op&)>
const Op* straight(Core& core, const Op* op) {
  core.at(op);
  Execute(core, *op);
  return op + 1;
}
/// The same for functions that never throw and touch neither memory nor Core::instructions().
template <void (*Execute)(Core&, const Op&)>
const Op* simple(Core& core, const Op* op) {
  Execute(core, *op);
  return op + 1;
}

}  // namespace carina::cpu_m
