// SPDX-License-Identifier: Apache-2.0
// The run loop and the cache of decoded blocks.
#include "cpu_m/core.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace carina::cpu_m {
namespace {

/// The end of a cached block, outside of IT blocks: continues at Op::imm.
const Op* fallThrough(Core& core, const Op* op) {
  return core.follow(op);
}

/// The end of a block that is executed only once; continues at Op::imm, in IT state Op::it.
const Op* leave(Core& core, const Op* op) {
  core.state.pc = op->imm;
  core.state.it = op->it;
  return nullptr;
}

/// At the start of a block whose executions are counted.
const Op* countBlock(Core&, const Op* op) {
  ++op->link->entered;
  return op + 1;
}

/// At the start of a block whose instruction fetches may wait: those from Op::address to Op::imm.
const Op* fetchBlock(Core& core, const Op* op) {
  core.pass(core.waitStates()->fetch(op->address, op->imm, core.state.world));
  return op + 1;
}

/// Before an observed instruction.
const Op* announce(Core& core, const Op* op) {
  core.at(op);
  core.observer()->comes(op->address, op->it);
  return op + 1;
}

/// Sets r[15] to what the next instruction reads.
const Op* providePc(Core& core, const Op* op) {
  core.state.r[15] = op->imm;
  return op + 1;
}

/// Before an indirect branch whose target is checked.
const Op* expectLanding(Core& core, const Op* op) {
  core.branchToLanding();
  return op + 1;
}

/// Skips Op::imm ops unless the condition holds.
template <uint32_t Condition>
const Op* skipUnless(Core& core, const Op* op) {
  return op + (conditionHolds(core.state, Condition) ? 1 : 1 + op->imm);
}

template <size_t... Conditions>
constexpr std::array<Run, sizeof...(Conditions)> skipTable(std::index_sequence<Conditions...>) {
  return {&skipUnless<Conditions>...};
}
constexpr auto kSkipUnless = skipTable(std::make_index_sequence<14>());

const Op* undefined(Core& core, const Op* op) {
  core.at(op);
  throw Trap{StopReason::Undefined, op->address, op->code};
}

/// An instruction of an absent coprocessor.
const Op* noCoprocessor(Core& core, const Op* op) {
  core.at(op);
  throw Trap{StopReason::NoCoprocessor, op->address, op->code};
}

/// An undefined instruction in the floating-point encoding space: NOCP takes precedence.
const Op* undefinedFloatingPoint(Core& core, const Op* op) {
  core.at(op);
  core.useFloatingPoint();
  throw Trap{StopReason::Undefined, op->address, op->code};
}

/// The handler of an instruction that cannot be decoded.
Run refusal(uint32_t code, bool wide, uint32_t features) {
  const bool coprocessor = wide && (code >> 26 & 3) == 3;
  if (!coprocessor) return undefined;
  if (bits(code, 24, 4) == 15 && (features & kV81) != 0) return undefinedFloatingPoint;
  const uint32_t number = bits(code, 8, 4);
  const bool v81Space = (features & kV81) != 0 && (number == 8 || number == 9 || number >= 14);
  return number == 10 || number == 11 || v81Space ? undefinedFloatingPoint : noCoprocessor;
}

/// Values of ECI: completed beats of an instruction (A) and of the one after it (B).
enum Eci : uint8_t { kA0 = 1, kA0A1 = 2, kA0A1A2 = 4, kA0A1A2B0 = 5 };

constexpr uint8_t advanceIt(uint8_t it) {
  return (it & 7) == 0 ? uint8_t{0} : static_cast<uint8_t>((it & 0xe0) | (it << 1 & 0x1f));
}

constexpr uint32_t kStackedSfpa = 1u << 20;

/// SG, executed by Non-secure code: enters Secure state.
const Op* enterGateway(Core& core, const Op* op) {
  State& s = core.state;
  core.enterWorld(kSecure);
  s.control[kSecure] &= ~kControlSecureFpActive;
  s.r[14] &= ~1u;
  s.landing = false;
  s.pc = op->address + op->size;
  s.it = 0;
  return nullptr;
}

}  // namespace

// --- running

Stop Core::run(uint64_t budget, bool stopOnMaskChange) {
  budgetEnd_ = budget > UINT64_MAX - done_ ? UINT64_MAX : done_ + budget;
  stopRequested_ = stopped_ = false;
  stopOnMaskChange_ = stopOnMaskChange;
  try {
    for (;;) {
      if (flush_) flush();
      if (stopped_) return stop_;
      if (Stop hit; memory.watching() && memory.takeWatchHit(&hit)) return hit;
      if (stopRequested_) return {StopReason::Requested};
      if (done_ >= budgetEnd_) return {StopReason::Budget};
      memory.select(contextOf(state));
      if (state.it != 0 || state.landing || memory.watching()) {
        executeOne();
      } else {
        end_ = budgetEnd_;
        const Op* op = branchSlowly(state.pc);
        while (op != nullptr) op = op->run(*this, op);
      }
      at_ = nullptr;
    }
  } catch (const Trap& trap) {
    return finish(trap);
  }
}

Stop Core::runAtMost(uint64_t most, uint64_t budget, bool stopOnMaskChange) {
  constexpr uint64_t kNear = 4 * kMaxInstructions;
  // No pipeline executes more than two instructions and a loop end per cycle, and the last block always
  // completes.
  if (most > kNear) return run(std::min(budget, (most - kMaxInstructions) / 3), stopOnMaskChange);
  if (most >= kMaxInstructions) return run(1, stopOnMaskChange);
  if (flush_) flush();
  bool whole = state.it != 0 || state.landing;
  if (!whole && state.thumb) {
    memory.select(contextOf(state));
    try {
      const Block* next = lookUp(state.pc);
      whole = next != nullptr && next->count <= most;
    } catch (const Trap&) {
      whole = true;
    }
  }
  return whole ? run(1, stopOnMaskChange) : step(static_cast<uint32_t>(most));
}

std::optional<uint32_t> Core::distanceTo(uint32_t address) {
  if (flush_) flush();
  if (state.it != 0 || !state.thumb || address < state.pc) return std::nullopt;
  memory.select(contextOf(state));
  try {
    const Block* next = lookUp(state.pc);
    if (next == nullptr || address >= next->ops.back().imm) return std::nullopt;
    uint32_t instructions = 0;
    for (uint32_t at = state.pc; at <= address; ++instructions) {
      if (at == address) return instructions;
      std::array<uint8_t, 2> code{};
      memory.peek(at, code);
      at += isWide(static_cast<uint16_t>(code[0] | code[1] << 8)) ? 4 : 2;
    }
  } catch (const Trap&) {  // raised again when it is executed
  }
  return std::nullopt;
}

Stop Core::step(uint32_t most) {
  if (flush_) flush();
  stopRequested_ = stopped_ = stopOnMaskChange_ = false;
  try {
    executeOne(most);
  } catch (const Trap& trap) {
    return finish(trap);
  }
  at_ = nullptr;
  if (stopped_) return stop_;
  if (Stop hit; memory.watching() && memory.takeWatchHit(&hit)) return hit;
  return {StopReason::Budget};
}

void Core::executeOne(uint32_t most) {
  if (!state.thumb) throw Trap{StopReason::InvalidState, state.pc};
  memory.select(contextOf(state));
  if (state.landing) land();
  single_.ops.clear();
  single_.count = 0;
  const auto it = static_cast<uint8_t>(state.it);
  const bool resumed = it != 0 && (it & 15) == 0;
  bool beats = false;
  const uint8_t behind = resumed ? resume(&beats) : advanceIt(it);
  decode(single_, state.pc, resumed ? 0 : it, it != 0 ? 1 : most, false);
  for (Op& op : single_.ops) {
    if (resumed) op.it = it;
  }
  if (beats) state.vpr |= uint32_t{it} << 20;
  // The IT state after a branch; the op at the end overwrites it.
  state.it = behind;
  end_ = 0;
  if (counting_) countRange(state.pc, single_.ops.back().imm, 1);
  const Op* op = begin(single_);
  try {
    while (op != nullptr) op = op->run(*this, op);
  } catch (const Trap&) {
    state.vpr &= kVprBits;
    throw;
  }
  if (resumed) state.it = behind;
  state.vpr &= kVprBits;
}

uint8_t Core::resume(bool* beats) const {
  const auto eci = static_cast<uint8_t>(state.it >> 4);
  std::array<uint8_t, 4> code{};
  const CompiledEncoding* row = nullptr;
  if (memory.peek(state.pc, std::span(code).first(2))) {
    const auto first = static_cast<uint16_t>(code[0] | code[1] << 8);
    const bool wide = isWide(first) && memory.peek(state.pc, code);
    const uint32_t second = code[2] | uint32_t{code[3]} << 8;
    row = findEncoding(wide ? uint32_t{first} << 16 | second : first, wide, features_);
  }
  if (row != nullptr && row->restarts) return 0;
  const bool known = eci == kA0 || eci == kA0A1 || eci == kA0A1A2 || eci == kA0A1A2B0;
  const bool resumes = row != nullptr && has(kMve) && (row->beats || row->passes);
  if (!known || !resumes) throw Trap{StopReason::InvalidState, state.pc};
  *beats = row->beats;
  if (row->passes) return static_cast<uint8_t>(state.it);
  return eci == kA0A1A2B0 ? uint8_t{kA0 << 4} : uint8_t{0};
}

Stop Core::finish(const Trap& trap) {
  if (at_ != nullptr) {
    state.pc = at_->address;
    state.it = at_->it;
    state.landing = false;  // the branch did not complete
    retired_ -= at_->left;
    done_ -= at_->after;
    if (counting_ && at_->left > 1) {  // the rest of the block was already counted
      const Op* last = at_;
      while (last->run != fallThrough && last->run != leave) ++last;
      countRange(at_->address + at_->size, last->imm, -1);
    }
    at_ = nullptr;
  }
  if (flush_) flush();
  return {trap.reason, trap.address, trap.value};
}

const Op* Core::stop(const Op* op, StopReason reason, uint32_t value) {
  state.pc = op->address + op->size;
  state.it = advanceIt(op->it);
  retired_ -= op->left - 1u;
  if (op->left > 1) done_ -= op[1].after;
  stopped_ = true;
  state.landing = false;  // EXC_RETURN is not a branch target
  stop_ = {reason, op->address, value};
  return nullptr;
}

// --- blocks

const Op* Core::followSlowly(const Op* op) {
  state.pc = op->imm;
  state.it = 0;
  if (done_ >= end_) return nullptr;
  at_ = nullptr;
  op->link = lookUp(op->imm);
  return op->link == nullptr ? nullptr : begin(*op->link);
}

const Op* Core::branchSlowly(uint32_t target) {
  state.pc = target;
  if (done_ >= end_) return nullptr;
  at_ = nullptr;
  if (!state.thumb) throw Trap{StopReason::InvalidState, target};
  const Block* block = lookUp(target);
  if (block == nullptr) return nullptr;
  recent_[target >> 1 & (kRecent - 1)] = block;
  return begin(*block);
}

const Block* Core::lookUp(uint32_t address) {
  if (const auto known = blocks_.find(keyOf(address)); known != blocks_.end()) return known->second.get();
  if (blocks_.size() >= kMaxBlocks) {
    codeWritten();
    return nullptr;
  }
  auto block = std::make_unique<Block>();
  decode(*block, address, 0, kMaxInstructions, true);
  return (blocks_[keyOf(address)] = std::move(block)).get();
}

void Core::collectExecutions() {
  for (const auto& [key, block] : blocks_) {
    if (block->entered == 0) continue;
    countRange(static_cast<uint32_t>(key), block->ops.back().imm, static_cast<int64_t>(block->entered));
    block->entered = 0;
  }
}

std::vector<Core::Executions> Core::executions() {
  collectExecutions();
  std::vector<Executions> result;
  int64_t count = 0;
  uint32_t begin = 0;
  for (const auto& [address, change] : executed_) {
    if (change == 0) continue;
    if (count > 0) result.push_back({begin, address, static_cast<uint64_t>(count)});
    count += change;
    begin = address;
  }
  return result;
}

void Core::flush() {
  flush_ = false;
  if (counting_) collectExecutions();
  recent_.fill(nullptr);
  blocks_.clear();
  memory.forgetCode();
}

void Core::decode(Block& block, uint32_t address, uint8_t it, uint32_t most, bool cached) {
  block.key = keyOf(address);
  uint32_t at = address;
  bool ended = false;
  std::vector<Op>& ops = block.ops;
  if (cached && counting_) {
    Op count;
    count.run = countBlock;
    count.link = &block;
    ops.push_back(count);
  }
  const bool waits = waits_ != nullptr && waits_->concerns(address);
  if (waits) {
    Op fetch;
    fetch.run = fetchBlock;
    fetch.address = address;
    ops.push_back(fetch);
  }
  const size_t fetched = ops.size();
  IssueModel issue(pipeline_);
  while (!ended && block.count < most && issue.cycles() < kMaxCycles) {
    const size_t before = ops.size();
    try {
      ended = decodeOne(block, at, it, issue);
    } catch (const Trap&) {
      if (block.count == 0) throw;
      ops.resize(before);
      break;  // the fault belongs to the block that begins there
    }
    std::array<uint8_t, 2> bytes{};
    memory.peek(at, bytes);
    const auto first = static_cast<uint16_t>(bytes[0] | bytes[1] << 8);
    at += isWide(first) ? 4 : 2;
    const uint32_t begins = (first & 0xff00) == 0xbf00 && (first & 15) != 0 ? first & 0xffu : 0;
    it = begins != 0 ? static_cast<uint8_t>(begins) : advanceIt(it);
  }
  if (waits) ops[fetched - 1].imm = at;
  Op last;
  // Only outside of IT blocks can a cached block be followed by another.
  last.run = cached && it == 0 ? fallThrough : leave;
  last.address = last.imm = at;
  last.it = it;
  last.left = block.count & 0x7f;
  block.cycles = issue.cycles();
  last.after = static_cast<uint8_t>(std::min<uint32_t>(block.cycles, 255));
  if (!ops.empty() && ops.back().cost == Op::kPredictedTaken) last.cost = Op::kPredictedPassed;
  ops.push_back(last);
  // So far, `left` and `after` count the instructions and cycles before the op.
  for (Op& op : ops) {
    op.left = (block.count - op.left) & 0x7f;
    op.after = static_cast<uint8_t>(std::min<uint32_t>(block.cycles, 255) -
                                    std::min<uint32_t>(op.after, block.cycles));
  }
}

void Core::chargeBranch(Op& op, const CompiledEncoding* encoding, bool conditional, IssueModel& issue) const {
  switch (branchKind(encoding)) {
    case BranchKind::None:
      return;
    case BranchKind::Loop:
      op.cost = costs_.loop & 0xf;
      return;
    case BranchKind::Conditional:
      op.cost = costs_.mispredicted != 0 ? Op::kPredictedTaken : costs_.taken & 0xf;
      if (op.imm <= op.address) op.history = 2;  // a loop, until its history is known
      return;
    case BranchKind::Fixed:
      if (conditional) {
        op.cost = costs_.taken & 0xf;
        return;
      }
      break;
    case BranchKind::Computed:
      break;
  }
  issue.pass(costs_.taken);
}

void Core::appendAnnouncement(Block& block, const Op& op) const {
  if (observer_ == nullptr) return;
  Op announcement;
  announcement.run = announce;
  announcement.address = op.address;
  announcement.it = op.it;
  announcement.left = op.left;
  announcement.after = op.after;
  block.ops.push_back(announcement);
}

bool Core::decodeOne(Block& block, uint32_t address, uint8_t it, IssueModel& issue) {
  Op op;
  op.address = address;
  op.it = it;
  op.left = block.count & 0x7f;
  if (state.world == kNonSecure && isGateway(address)) {
    const uint32_t context = memory.context();
    memory.select(context | kSecureWorld);
    for (const uint32_t at : {address, address + 2}) (void)memory.fetch(at);  // to notice writes
    memory.select(context);
    op.run = enterGateway;
    op.size = 4;
    op.after = static_cast<uint8_t>(issue.add(nullptr, op));
    ++block.count;
    appendAnnouncement(block, op);
    block.ops.push_back(op);
    return true;
  }
  const uint16_t first = memory.fetch(address);
  const bool wide = isWide(first);
  op.code = wide ? uint32_t{first} << 16 | memory.fetch(address + 2) : first;
  op.size = wide ? 4 : 2;

  DecodeContext context;
  context.features = features_;
  context.inIt = it != 0;
  context.lastInIt = (it & 15) == 8;
  const CompiledEncoding* encoding = findEncoding(op.code, wide, features_);
  if (encoding == nullptr || decodeInto(op, *encoding, context) != Decoded::Ok ||
      (context.branches && context.inIt && !context.lastInIt) || (context.startsIt != 0 && context.inIt)) {
    op.run = refusal(op.code, wide, features_);
    context = {};
    context.branches = true;
    encoding = nullptr;
  }
  ++block.count;
  op.after = static_cast<uint8_t>(issue.add(encoding, op));
  if (context.branches) chargeBranch(op, encoding, it != 0, issue);
  appendAnnouncement(block, op);
  if (context.idle || context.startsIt != 0) return context.endsBlock;

  const uint32_t condition = it >> 4;
  const bool conditional = it != 0 && condition < 14 && !context.unconditional;
  const bool lands = context.targetMustBeLandingPad && branchesNeedLandings();
  if (conditional) {
    Op skip = op;
    skip.run = kSkipUnless[condition];
    skip.imm = 1u + (context.readsPc ? 1 : 0) + (lands ? 1 : 0);
    block.ops.push_back(skip);
  }
  if (context.readsPc) {
    Op pc = op;
    pc.run = providePc;
    pc.imm = address + 4;
    block.ops.push_back(pc);
  }
  if (lands) {
    Op expect = op;
    expect.run = expectLanding;
    block.ops.push_back(expect);
  }
  block.ops.push_back(op);
  return context.branches || context.endsBlock;
}

// --- protection

Permission Core::permission(uint32_t address, uint32_t context, bool instruction) const {
  const World world = (context & kSecureWorld) != 0 ? kSecure : kNonSecure;
  Permission result =
      mpu_[world].permission(address, (context & kPrivileged) != 0, (context & kNegativePriority) != 0);
  if (!has(kSecurity)) return result;
  const Sau::Attribution attribution = sau_.attribution(address);
  if (attribution.exempt) return result;
  result.secure = attribution.secure;
  result.gated = gates_ != nullptr && !gates_->open(address, attribution.secure);
  // Secure code can access all memory, but can execute only Secure memory.
  result.foreign = attribution.secure != (world == kSecure) && (instruction || attribution.secure);
  result.wholePage = result.wholePage && attribution.wholePage;
  return result;
}

bool Core::stackLimitHolds(World world) const {
  const bool urgent =
      state.faultmask[world] != 0 || (priorities_ != nullptr && priorities_->handlesUrgent(world));
  return !(urgentStackFree_[world] && urgent);
}

void Core::setArithmeticTraps(World world, bool divide, bool unaligned) {
  divideTraps_[world] = divide;
  for (uint32_t context = 0; context < Memory::kContexts; ++context) {
    if (((context & kSecureWorld) != 0) == (world == kSecure)) memory.setUnalignedTraps(context, unaligned);
  }
}

// --- Security state transitions

bool Core::isGateway(uint32_t address) const {
  constexpr uint8_t kGateway[] = {0x7f, 0xe9, 0x7f, 0xe9};
  std::array<uint8_t, 4> code{};
  const Sau::Attribution at = sau_.attribution(address);
  return at.secure && at.callable && !at.exempt && memory.peek(address, code) &&
         std::equal(code.begin(), code.end(), kGateway);
}

const Op* Core::returnToSecure(const Op* op) {
  at_ = op;
  const State before = state;
  enterWorld(kSecure);
  memory.select(contextOf(state));
  const uint32_t stack = state.r[13];
  uint32_t target = 0, saved = 0;
  try {
    target = memory.loadAligned<uint32_t>(stack);
    saved = memory.loadAligned<uint32_t>(stack + 4);
  } catch (const Trap&) {
    state = before;
    throw;
  }
  // The caller was in Thread mode, or in Handler mode, in which case IPSR is 1 here.
  const uint32_t caller = saved & kXpsrException;
  if ((caller == 0) != !before.handlerMode() || (caller != 0 && before.exception != 1))
    throw Trap{StopReason::InvalidReturn, op->address};
  state.r[13] = stack + 8;
  state.putStack();
  state.exception = caller;
  state.takeStack();
  uint32_t& control = state.control[kSecure];
  control = (control & ~kControlSecureFpActive) | ((saved & kStackedSfpa) != 0 ? kControlSecureFpActive : 0);
  state.thumb = (target & 1) != 0;
  state.landing = false;
  state.pc = target & ~1u;
  requestStopQuietly();
  return nullptr;
}

}  // namespace carina::cpu_m
