// SPDX-License-Identifier: Apache-2.0
// An Armv8-M core: decodes basic blocks once and executes them by calling one handler per instruction.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "cpu_m/encoding.hpp"
#include "cpu_m/fp_context.hpp"
#include "cpu_m/memory.hpp"
#include "cpu_m/mpu.hpp"
#include "cpu_m/pac.hpp"
#include "cpu_m/pipeline.hpp"
#include "cpu_m/sau.hpp"
#include "cpu_m/state.hpp"

namespace carina::cpu_m {

/// Decoded instructions that are executed in sequence; the last one leaves the block.
struct Block {
  uint64_t key = 0;                // address and fetch context (Core::keyOf)
  uint32_t count = 0, cycles = 0;  // number of instructions; cycles they take
  std::vector<Op> ops;
  mutable uint64_t entered = 0;  // number of executions, if they are counted
};

/// Notified of every instruction.
class InstructionObserver {
 public:
  /// The instruction at `address` is next, in IT state `it`; Core::instructions() and cycles() exclude it.
  virtual void comes(uint32_t address, uint8_t it) = 0;

 protected:
  ~InstructionObserver() = default;
};

class Core final : private MemoryListener, private Protection {
 public:
  explicit Core(uint32_t features, Pipeline pipeline = Pipeline::None)
      : memory(*this, *this), features_(features), pipeline_(pipeline), costs_(branchCosts(pipeline)) {}

  // The state that handlers operate on.
  State state;
  Memory memory;
  FpContextControl fp;
  /// PAC_KEY_P and PAC_KEY_U of both worlds: [world][0 privileged, 1 unprivileged].
  PacKey pacKeys[2][2] = {};

  uint32_t features() const { return features_; }
  bool has(uint32_t feature) const { return (features_ & feature) == feature; }

  /// Runs until `budget` cycles have passed (or slightly more, as basic blocks complete) or another stop
  /// reason occurs. With `stopOnMaskChange`, also returns when PRIMASK, BASEPRI or FAULTMASK changes.
  Stop run(uint64_t budget, bool stopOnMaskChange = false);
  /// Runs one instruction.
  Stop step() { return step(1); }
  /// Number of instructions of the next basic block that precede the one at `address`; nullopt if the block
  /// has no instruction there.
  std::optional<uint32_t> distanceTo(uint32_t address);
  /// Like run(), but never executes more than `most` instructions (at least 1): whole blocks, then the start
  /// of one.
  Stop runAtMost(uint64_t most, uint64_t budget, bool stopOnMaskChange);
  /// Instructions executed so far; also valid in handlers and during device accesses.
  uint64_t instructions() const { return at_ == nullptr ? retired_ : retired_ - at_->left; }
  /// Cycles that they took; also valid there.
  uint64_t cycles() const { return at_ == nullptr ? done_ : done_ - at_->after; }
  Pipeline pipeline() const { return pipeline_; }
  /// Starts counting how often each instruction is executed.
  void countExecutions() {
    counting_ = true;
    codeWritten();
  }
  /// Addresses [begin, end) that were executed `count` times, in address order, without code that never ran.
  /// Instructions skipped by their condition count as executed.
  struct Executions {
    uint32_t begin, end;
    uint64_t count;
  };
  std::vector<Executions> executions();
  /// Starts notifying `observer` of every instruction; null stops it. Execution and cycle counts are
  /// unaffected.
  void observe(InstructionObserver* observer) {
    observer_ = observer;
    codeWritten();
  }
  InstructionObserver* observer() const { return observer_; }
  /// Sets the wait states of instruction fetches and data accesses; null: none.
  void setWaitStates(WaitStates* waits) {
    waits_ = waits;
    memory.setWaiting(waits);
    codeWritten();
  }
  WaitStates* waitStates() const { return waits_; }
  /// Adds cycles in which no instruction is issued.
  void pass(uint32_t cycles) { done_ += cycles; }
  const Mpu& mpu(World world) const { return mpu_[world]; }
  const Sau& sau() const { return sau_; }
  /// Gives write access to a protection unit; cached permissions are discarded.
  Mpu& changeMpu(World world) {
    forgetPermissions();
    return mpu_[world];
  }
  Sau& changeSau() {
    forgetPermissions();
    return sau_;
  }
  /// Sets the gates that transactions pass through. gatesChanged: their settings have changed.
  void setGates(Gates* gates) {
    gates_ = gates;
    memory.setGates(gates);
    forgetPermissions();
  }
  void gatesChanged() { forgetPermissions(); }
  /// To be called when code was changed other than by stores of this core.
  void codeChanged() { codeWritten(); }
  /// Whether SEV has been executed since the last call.
  bool takeSentEvent() {
    const bool sent = eventSent_;
    eventSent_ = false;
    return sent;
  }
  /// Ends the current run with Requested at the end of the basic block.
  void requestStop() {
    stopRequested_ = true;
    end_ = 0;
  }

  // --- for handlers

  /// Records the current instruction. Handlers that may throw or use instructions() must call it first
  /// (straight<> does).
  void at(const Op* op) { at_ = op; }
  /// Address of the instruction whose access is reaching a device.
  uint32_t accessingAddress() const { return at_ == nullptr ? state.pc : at_->address; }
  /// Called first by every floating-point and MVE instruction: throws NoCoprocessor if the unit is disabled
  /// or absent, otherwise makes the floating-point context active (CONTROL.FPCA).
  void useFloatingPoint() {
    if (!floatingPointReady_) prepareFloatingPoint();
  }
  /// The same, without making a context active.
  void requireFloatingPoint() const;
  /// CPACR, NSACR, CONTROL.FPCA or the lazy state has changed: the next instruction checks again.
  void floatingPointChanged() { floatingPointReady_ = false; }
  /// Sets CPACR of both worlds, or of one.
  void setCoprocessorAccess(uint32_t cpacr) {
    for (const World world : {kNonSecure, kSecure}) setCoprocessorAccess(world, cpacr);
  }
  void setCoprocessorAccess(World world, uint32_t cpacr) {
    cpacr_[world] = cpacr;
    floatingPointReady_ = false;
  }
  /// NSACR.CP10: whether Non-secure code may use the floating-point unit.
  void setNonSecureFloatingPoint(bool on) {
    nonSecureFp_ = on;
    floatingPointReady_ = false;
  }
  bool nonSecureFloatingPoint() const { return nonSecureFp_; }
  void setDefaultFpscr(uint32_t fpdscr) {
    for (const World world : {kNonSecure, kSecure}) fp.setDefaultFpscr(world, fpdscr);
  }
  /// The implemented bits of FPSCR; a write of FPSCR by software.
  uint32_t fpscrBits() const;
  void setFpscr(uint32_t value);
  /// Whether CPACR and NSACR allow code in this state to use the floating-point unit.
  bool floatingPointGranted(World world, bool privileged) const;
  /// Sets the source of which faults could be taken; null: all of them.
  void setFaultPriorities(const FaultPriorities* priorities) { priorities_ = priorities; }
  /// Defers storing the floating-point context at `address` (lazy stacking).
  void deferContext(uint32_t address, bool limitViolated) {
    fp.defer(state, address, limitViolated, priorities_);
    floatingPointChanged();
  }
  /// Stores the pending context, if any. Throws LazyStacking with the reason if it cannot be stored.
  void storePendingContext();
  /// Marks the pending context as stored, without storing it.
  void dropPendingContext();
  /// Stores or loads a context: S0 to S15, FPSCR, VPR and, for a Secure context if FPCCR.TS is set, S16 to
  /// S31. The accesses use the memory's current context and may throw.
  void storeContextAt(uint32_t address, World owner);
  void loadContextAt(uint32_t address, World owner);
  /// Clears the registers of a Secure context that others must not see.
  void hideContext(World owner);
  /// CCR.DIV_0_TRP and UNALIGN_TRP.
  void setArithmeticTraps(World world, bool divide, bool unaligned);
  bool divideTraps() const { return divideTraps_[state.world]; }
  /// CCR.STKOFHFNMIGN: stack limits are ignored in HardFault and NMI handlers and while FAULTMASK is set.
  void setUrgentStackFree(World world, bool on) { urgentStackFree_[world] = on; }
  /// The limit of a stack, main (0) or process (1); 0 while it is not enforced.
  uint32_t stackLimit(World world, uint32_t which) const {
    return stackLimitHolds(world) ? state.stackLimit[world][which] : 0;
  }
  /// Switches between Secure and Non-secure state, including the stack pointer and permissions.
  void enterWorld(World world) {
    state.putStack();
    state.world = world;
    state.takeStack();
    floatingPointChanged();
    contextChanged();
  }
  /// Whether the running code authenticates pointers (CONTROL.PAC_EN, UPAC_EN), and the authentication code
  /// of a value under its key.
  bool authenticates() const;
  uint32_t authenticationCode(uint32_t value, uint32_t modifier) const;
  /// The next branch is indirect and its target must be a BTI landing pad.
  void branchToLanding() {
    state.landing = true;
    requestStopQuietly();
  }
  void sendEvent() { eventSent_ = true; }
  void masksChanged() {
    contextChanged();
    if (stopOnMaskChange_) requestStop();
  }
  /// Privilege or FAULTMASK may have changed: the next block is looked up in the new context.
  void contextChanged() {
    if (contextOf(state) != memory.context()) requestStopQuietly();
  }
  /// A context of Memory: the attributes of its accesses. `negative`: at a priority of HardFault or above.
  static uint32_t contextFor(World world, bool privileged, bool negative) {
    return (privileged ? kPrivileged : 0) | (negative ? kNegativePriority : 0) |
           (world == kSecure ? kSecureWorld : 0);
  }
  /// The context of the running code.
  static uint32_t contextOf(const State& s) {
    return contextFor(s.world, s.privileged(),
                      s.exception == 2 || s.exception == 3 || s.faultmask[s.world] != 0);
  }
  /// The same context, but unprivileged.
  uint32_t unprivilegedContext() const { return contextOf(state) & ~kPrivileged; }
  void clearExclusiveMonitor() { monitor_ = false; }
  void setExclusiveMonitor() { monitor_ = true; }
  /// For store-exclusive: whether the exclusive monitor is set; clears it.
  bool testAndClearExclusiveMonitor() {
    const bool open = monitor_;
    monitor_ = false;
    return open;
  }
  /// Throws StackLimit if a new value of the stack pointer is below its limit.
  void checkStack(uint32_t value) {
    if (value < state.stackLimit[state.world][state.activeStack()] && stackLimitHolds(state.world))
      throw Trap{StopReason::StackLimit, value};
  }

  /// Continues at Op::imm. Inlined into every branch, even in unity builds.
  [[gnu::always_inline]] const Op* follow(const Op* op) {
    if (op->cost != 0) payBranch(op);
    if (op->link != nullptr && done_ < end_) [[likely]]
      return begin(*op->link);
    return followSlowly(op);
  }
  /// Continues at an even address.
  const Op* branchTo(uint32_t target) {
    const Block* block = recent_[target >> 1 & (kRecent - 1)];
    if (block != nullptr && block->key == keyOf(target) && done_ < end_) [[likely]]
      return begin(*block);
    return branchSlowly(target);
  }
  /// BX, POP {pc} and similar: bit 0 is the instruction set state; handles FNC_RETURN and, in Handler mode,
  /// EXC_RETURN.
  [[gnu::always_inline]] const Op* interwork(const Op* op, uint32_t target) {
    if (target >= kFunctionReturn) [[unlikely]] {
      if (target >= kReturnBase && state.handlerMode()) return stop(op, StopReason::ExceptionReturn, target);
      if ((target | 1) == (kFunctionReturn | 1) && state.world == kNonSecure) return returnToSecure(op);
    }
    return callTo(target);
  }
  /// BLX: bit 0 is the instruction set state; EXC_RETURN and FNC_RETURN are not special.
  const Op* callTo(uint32_t target) {
    if ((target & 1) == 0) [[unlikely]] {
      state.thumb = false;  // the run loop then raises InvalidState
      state.pc = target;
      return nullptr;
    }
    return branchTo(target & ~1u);
  }
  /// Ends the run after the instruction.
  const Op* stop(const Op* op, StopReason reason, uint32_t value = 0);

 private:
  static constexpr uint32_t kPrivileged = 1, kNegativePriority = 2, kSecureWorld = 4;  // bits of a context
  static constexpr uint32_t kFunctionReturn = 0xfefffffe;
  static constexpr uint32_t kRecent = 4096;
  static constexpr uint32_t kMaxInstructions = 64,
                            kMaxCycles = 128;  // per block; the last instruction may exceed it
  static constexpr uint32_t kReturnBase = 0xff000000;
  static constexpr size_t kMaxBlocks = 1u << 17;

  const Op* begin(const Block& block) {
    retired_ += block.count;
    done_ += block.cycles;
    return block.ops.data();
  }
  void payBranch(const Op* op) {
    if (op->cost < Op::kPredictedTaken) {
      done_ += op->cost;
      return;
    }
    const bool taken = op->cost == Op::kPredictedTaken;
    const Op& branch = taken ? *op : op[-1];
    if (taken != (branch.history >= 2)) done_ += costs_.mispredicted;
    branch.history = static_cast<uint16_t>(taken ? branch.history + (branch.history < 3 ? 1u : 0u)
                                                 : branch.history - (branch.history > 0 ? 1u : 0u)) &
                     3u;
  }
  void codeWritten() override {
    flush_ = true;
    requestStopQuietly();
  }
  void deviceWantsStop() override { requestStop(); }
  void accessWaits(uint32_t address, bool write) override {
    if (write) {
      waits_->store(address, state.world);
    } else {
      done_ += waits_->load(address, state.world);
    }
  }
  /// Leaves at the end of the block; run() then continues.
  void requestStopQuietly() { end_ = 0; }

  uint64_t keyOf(uint32_t address) const { return uint64_t{memory.context()} << 32 | address; }
  Permission permission(uint32_t address, uint32_t context, bool instruction) const override;
  void forgetPermissions() {
    memory.forgetPages();
    codeWritten();
  }
  /// FNC_RETURN: a Non-secure function returns to its Secure caller.
  const Op* returnToSecure(const Op* op);
  /// Whether the address holds a Secure gateway that Non-secure code may call.
  bool isGateway(uint32_t address) const;

  const Op* followSlowly(const Op* op);
  const Op* branchSlowly(uint32_t target);
  const Block* lookUp(uint32_t address);
  /// Decodes up to `most` instructions from `address` on. Throws the fault of the first one if it cannot be
  /// fetched.
  void decode(Block& block, uint32_t address, uint8_t it, uint32_t most, bool cached);
  /// Appends the ops of one instruction; returns true if it ends the block.
  bool decodeOne(Block& block, uint32_t address, uint8_t it, IssueModel& issue);
  /// Inserts the notification of the observer, if there is one, before an instruction.
  void appendAnnouncement(Block& block, const Op& op) const;
  /// Sets the cost of leaving a block through `op`, its last instruction.
  void chargeBranch(Op& op, const CompiledEncoding* encoding, bool conditional, IssueModel& issue) const;
  /// Executes the next instruction, or up to `most` instructions of its basic block.
  void executeOne(uint32_t most = 1);
  /// Interprets EPSR.ECI (ICI), held in `state.it`, for the next instruction; returns ECI after it. Throws
  /// InvalidState if there is nothing to resume. `beats`: whether it is a vector instruction.
  uint8_t resume(bool* beats) const;
  /// Whether indirect branches of the running code must go to landing pads (CONTROL.BTI_EN, UBTI_EN).
  bool branchesNeedLandings() const;
  /// After such a branch: throws NoLanding unless its target is a landing pad.
  void land();
  Stop finish(const Trap& trap);
  void flush();
  /// Adds the counts of the blocks to executed_.
  void collectExecutions();
  /// Adds `times` (may be negative) executions of [begin, end).
  void countRange(uint32_t begin, uint32_t end, int64_t times) {
    executed_[begin] += times;
    executed_[end] -= times;
  }
  void prepareFloatingPoint();
  bool stackLimitHolds(World world) const;
  Stop step(uint32_t most);

  uint32_t features_;
  Pipeline pipeline_;
  BranchCosts costs_;
  Mpu mpu_[2];
  Sau sau_;
  Gates* gates_ = nullptr;
  WaitStates* waits_ = nullptr;
  InstructionObserver* observer_ = nullptr;
  const Op* at_ = nullptr;
  uint64_t done_ = 0, retired_ = 0;  // cycles and instructions, including the whole current block
  uint64_t end_ = 0;                 // execution leaves the blocks when done_ reaches it
  uint64_t budgetEnd_ = 0;
  bool stopRequested_ = false, flush_ = false, stopOnMaskChange_ = false;
  bool stopped_ = false;
  Stop stop_;

  bool eventSent_ = false, monitor_ = false, divideTraps_[2] = {}, urgentStackFree_[2] = {};
  bool floatingPointReady_ = false;
  bool nonSecureFp_ = false;
  uint32_t cpacr_[2] = {};
  const FaultPriorities* priorities_ = nullptr;

  std::array<const Block*, kRecent> recent_{};
  std::unordered_map<uint64_t, std::unique_ptr<Block>> blocks_;
  Block single_;
  bool counting_ = false;
  std::map<uint32_t, int64_t> executed_;  // change of the execution count at each address
};

/// Turns a function that neither branches nor stops into a handler.
template <void (*Execute)(Core&, const Op&)>
const Op* straight(Core& core, const Op* op) {
  core.at(op);
  Execute(core, *op);
  return op + 1;
}
/// The same for functions that never throw and use neither memory nor Core::instructions().
template <void (*Execute)(Core&, const Op&)>
const Op* simple(Core& core, const Op* op) {
  Execute(core, *op);
  return op + 1;
}

}  // namespace carina::cpu_m
