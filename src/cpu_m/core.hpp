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

/// Decoded instructions that are executed one after the other; the last one leaves.
struct Block {
  uint64_t key = 0;                // its address, and the context that it was fetched in (Core::keyOf)
  uint32_t count = 0, cycles = 0;  // of instructions; that they take
  std::vector<Op> ops;
  mutable uint64_t entered = 0;  // how often, when executions are counted
};

/// Hears of every instruction.
class InstructionObserver {
 public:
  /// It comes next, in the IT state `it`: Core::instructions() and cycles() are those before it.
  virtual void comes(uint32_t address, uint8_t it) = 0;

 protected:
  ~InstructionObserver() = default;
};

class Core final : private MemoryListener, private Protection {
 public:
  explicit Core(uint32_t features, Pipeline pipeline = Pipeline::None)
      : memory(*this, *this), features_(features), pipeline_(pipeline), costs_(branchCosts(pipeline)) {}

  // What handlers work on.
  State state;
  Memory memory;
  FpContextControl fp;
  /// PAC_KEY_P and PAC_KEY_U of both worlds: [world][0 privileged, 1 not].
  PacKey pacKeys[2][2] = {};

  uint32_t features() const { return features_; }
  bool has(uint32_t feature) const { return (features_ & feature) == feature; }

  /// Runs until `budget` cycles have passed (a few more: whole basic blocks) or something happens. With
  /// `stopOnMaskChange` also comes back when PRIMASK, BASEPRI or FAULTMASK change.
  Stop run(uint64_t budget, bool stopOnMaskChange = false);
  /// Runs one instruction.
  Stop step() { return step(1); }
  /// Instructions of the basic block that comes next before the one at `address`; nothing when that is not
  /// one of them.
  std::optional<uint32_t> distanceTo(uint32_t address);
  /// As run(), but never executes more than `most` instructions (at least one): whole blocks, then the
  /// beginning of one.
  Stop runAtMost(uint64_t most, uint64_t budget, bool stopOnMaskChange);
  /// Instructions executed so far; also valid inside of handlers and device accesses.
  uint64_t instructions() const { return at_ == nullptr ? retired_ : retired_ - at_->left; }
  /// Cycles that they took, likewise.
  uint64_t cycles() const { return at_ == nullptr ? done_ : done_ - at_->after; }
  Pipeline pipeline() const { return pipeline_; }
  /// From now on counts how often each instruction is executed.
  void countExecutions() {
    counting_ = true;
    codeWritten();
  }
  /// Addresses [begin, end) that were executed `count` times; by address, only what was executed. An
  /// instruction that its condition skipped counts.
  struct Executions {
    uint32_t begin, end;
    uint64_t count;
  };
  std::vector<Executions> executions();
  /// From now on `observer` hears of every instruction; null: nobody does. What runs and the cycles are the
  /// same.
  void observe(InstructionObserver* observer) {
    observer_ = observer;
    codeWritten();
  }
  InstructionObserver* observer() const { return observer_; }
  /// From now on instructions and data of some memories wait; null: of none.
  void setWaitStates(WaitStates* waits) {
    waits_ = waits;
    memory.setWaiting(waits);
    codeWritten();
  }
  WaitStates* waitStates() const { return waits_; }
  /// Passes cycles in which no instruction is issued.
  void pass(uint32_t cycles) { done_ += cycles; }
  const Mpu& mpu(World world) const { return mpu_[world]; }
  const Sau& sau() const { return sau_; }
  /// To change a protection unit: all that was known about permissions is forgotten.
  Mpu& changeMpu(World world) {
    forgetPermissions();
    return mpu_[world];
  }
  Sau& changeSau() {
    forgetPermissions();
    return sau_;
  }
  /// From now on transactions pass `gates`; they have changed.
  void setGates(Gates* gates) {
    gates_ = gates;
    memory.setGates(gates);
    forgetPermissions();
  }
  void gatesChanged() { forgetPermissions(); }
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
  /// Where the instruction is whose access reaches a device now.
  uint32_t accessingAddress() const { return at_ == nullptr ? state.pc : at_->address; }
  /// At the start of every floating-point and MVE instruction: throws NoCoprocessor when the unit is off or
  /// absent, makes the floating-point context active otherwise (CONTROL.FPCA).
  void useFloatingPoint() {
    if (!floatingPointReady_) prepareFloatingPoint();
  }
  /// The same without making a context active.
  void requireFloatingPoint() const;
  /// CPACR, NSACR, CONTROL.FPCA or the lazy state have changed: the next instruction looks again.
  void floatingPointChanged() { floatingPointReady_ = false; }
  /// CPACR of both worlds, or of one.
  void setCoprocessorAccess(uint32_t cpacr) {
    for (const World world : {kNonSecure, kSecure}) setCoprocessorAccess(world, cpacr);
  }
  void setCoprocessorAccess(World world, uint32_t cpacr) {
    cpacr_[world] = cpacr;
    floatingPointReady_ = false;
  }
  /// NSACR.CP10: whether Non-secure programs may use the floating-point unit.
  void setNonSecureFloatingPoint(bool on) {
    nonSecureFp_ = on;
    floatingPointReady_ = false;
  }
  bool nonSecureFloatingPoint() const { return nonSecureFp_; }
  void setDefaultFpscr(uint32_t fpdscr) {
    for (const World world : {kNonSecure, kSecure}) fp.setDefaultFpscr(world, fpdscr);
  }
  /// The bits of FPSCR that exist; FPSCR as programs write it.
  uint32_t fpscrBits() const;
  void setFpscr(uint32_t value);
  /// Whether CPACR and NSACR let such a program use the floating-point unit.
  bool floatingPointGranted(World world, bool privileged) const;
  /// Who knows which faults could be taken; null: all of them.
  void setFaultPriorities(const FaultPriorities* priorities) { priorities_ = priorities; }
  /// Leaves the floating-point context for later, for `address`; it is not active any more.
  void deferContext(uint32_t address, bool limitViolated) {
    fp.defer(state, address, limitViolated, priorities_);
    floatingPointChanged();
  }
  /// Stores the pending context, if there is one. Throws LazyStacking with the reason why that cannot be
  /// done.
  void storePendingContext();
  /// The pending context counts as stored, though it is lost.
  void dropPendingContext();
  /// A context in memory: S0 to S15, FPSCR, VPR and, where FPCCR.TS says so for a Secure one, S16 to S31.
  /// Accesses are those of the context that the memory has; they may throw.
  void storeContextAt(uint32_t address, World owner);
  void loadContextAt(uint32_t address, World owner);
  /// What nobody else may see of a Secure context becomes 0.
  void hideContext(World owner);
  /// CCR.DIV_0_TRP and UNALIGN_TRP.
  void setArithmeticTraps(World world, bool divide, bool unaligned);
  bool divideTraps() const { return divideTraps_[state.world]; }
  /// CCR.STKOFHFNMIGN: the limits of stacks do not hold in handlers of hard faults and NMI, nor with
  /// FAULTMASK.
  void setUrgentStackFree(World world, bool on) { urgentStackFree_[world] = on; }
  /// The limit of a stack, main (0) or process (1); 0 where it does not hold now.
  uint32_t stackLimit(World world, uint32_t which) const {
    return stackLimitHolds(world) ? state.stackLimit[world][which] : 0;
  }
  /// Changes between Secure and Non-secure state; the stack pointer and the permissions are the other ones
  /// then.
  void enterWorld(World world) {
    state.putStack();
    state.world = world;
    state.takeStack();
    floatingPointChanged();
    contextChanged();
  }
  /// Whether the program that runs checks authentication codes (CONTROL.PAC_EN, UPAC_EN), and the code of a
  /// value with its key.
  bool authenticates() const;
  uint32_t authenticationCode(uint32_t value, uint32_t modifier) const;
  /// The branch that comes next is an indirect one; its target must be a landing.
  void branchToLanding() {
    state.landing = true;
    requestStopQuietly();
  }
  void sendEvent() { eventSent_ = true; }
  void masksChanged() {
    contextChanged();
    if (stopOnMaskChange_) requestStop();
  }
  /// Privilege or FAULTMASK may have changed: the next block is looked up for how the program runs now.
  void contextChanged() {
    if (contextOf(state) != memory.context()) requestStopQuietly();
  }
  /// A context of Memory: how a program accesses it. `negative`: at a priority of HardFault or above.
  static uint32_t contextFor(World world, bool privileged, bool negative) {
    return (privileged ? kPrivileged : 0) | (negative ? kNegativePriority : 0) |
           (world == kSecure ? kSecureWorld : 0);
  }
  /// That of the program that runs.
  static uint32_t contextOf(const State& s) {
    return contextFor(s.world, s.privileged(),
                      s.exception == 2 || s.exception == 3 || s.faultmask[s.world] != 0);
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
    if (value < state.stackLimit[state.world][state.activeStack()] && stackLimitHolds(state.world))
      throw Trap{StopReason::StackLimit, value};
  }

  /// Goes on at Op::imm. Inlined into every branch, however many files are compiled together.
  [[gnu::always_inline]] const Op* follow(const Op* op) {
    if (op->cost != 0) payBranch(op);
    if (op->link != nullptr && done_ < end_) [[likely]]
      return begin(*op->link);
    return followSlowly(op);
  }
  /// Goes on at an even address.
  const Op* branchTo(uint32_t target) {
    const Block* block = recent_[target >> 1 & (kRecent - 1)];
    if (block != nullptr && block->key == keyOf(target) && done_ < end_) [[likely]]
      return begin(*block);
    return branchSlowly(target);
  }
  /// BX, POP {pc} and their like: bit 0 is the instruction set state; EXC_RETURN in handler mode.
  [[gnu::always_inline]] const Op* interwork(const Op* op, uint32_t target) {
    if (target >= kFunctionReturn) [[unlikely]] {
      if (target >= kReturnBase && state.handlerMode()) return stop(op, StopReason::ExceptionReturn, target);
      if ((target | 1) == (kFunctionReturn | 1) && state.world == kNonSecure) return returnToSecure(op);
    }
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
  static constexpr uint32_t kPrivileged = 1, kNegativePriority = 2, kSecureWorld = 4;  // bits of a context
  static constexpr uint32_t kFunctionReturn = 0xfefffffe;
  static constexpr uint32_t kRecent = 4096;
  static constexpr uint32_t kMaxInstructions = 64,
                            kMaxCycles = 128;  // of a block; the last instruction may pass it
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
  /// Leaves at the end of the block; run() goes on by itself.
  void requestStopQuietly() { end_ = 0; }

  uint64_t keyOf(uint32_t address) const { return uint64_t{memory.context()} << 32 | address; }
  Permission permission(uint32_t address, uint32_t context, bool instruction) const override;
  void forgetPermissions() {
    memory.forgetPages();
    codeWritten();
  }
  /// FNC_RETURN: a Non-secure function comes back to its Secure caller.
  const Op* returnToSecure(const Op* op);
  /// Whether a Secure gateway that Non-secure programs may call is at the address.
  bool isGateway(uint32_t address) const;

  const Op* followSlowly(const Op* op);
  const Op* branchSlowly(uint32_t target);
  const Block* lookUp(uint32_t address);
  /// Decodes up to `most` instructions from state.pc on. Throws FetchFault when there is not even one.
  void decode(Block& block, uint32_t address, uint8_t it, uint32_t most, bool cached);
  /// Appends the ops of one instruction; true when the block ends with it.
  bool decodeOne(Block& block, uint32_t address, uint8_t it, IssueModel& issue);
  /// Puts what tells the observer, if there is one, in front of an instruction.
  void appendAnnouncement(Block& block, const Op& op) const;
  /// What leaving a block through `op`, its last instruction, costs.
  void chargeBranch(Op& op, const CompiledEncoding* encoding, bool conditional, IssueModel& issue) const;
  /// The instruction that comes next, or up to `most` of its basic block.
  void executeOne(uint32_t most = 1);
  /// What the next instruction makes of EPSR.ECI (ICI), which is `state.it`: ECI behind it. Throws
  /// InvalidState where there is nothing to resume. `beats`: whether it is a vector instruction.
  uint8_t resume(bool* beats) const;
  /// Whether indirect branches of the program that runs may only go to landings (CONTROL.BTI_EN, UBTI_EN).
  bool branchesNeedLandings() const;
  /// Behind such a branch: throws NoLanding unless it led to one.
  void land();
  Stop finish(const Trap& trap);
  void flush();
  /// Adds what the blocks have counted to executed_.
  void collectExecutions();
  /// `times` more (or fewer) executions of [begin, end).
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
  uint64_t done_ = 0, retired_ = 0;  // cycles and instructions, with all of the block being executed
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
  std::map<uint32_t, int64_t> executed_;  // how the count changes at an address
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
