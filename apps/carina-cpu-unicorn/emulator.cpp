// SPDX-License-Identifier: MIT OR Apache-2.0
#include "emulator.hpp"

#include <cstdio>
#include <cstring>

#include "fault_site.hpp"

using namespace carina::cpu_protocol;

namespace {

// Numbers that Unicorn's interrupt hook passes (QEMU's EXCP_*).
enum Interrupt : uint32_t {
  kUndefined = 1,
  kSupervisorCall = 2,
  kPrefetchAbort = 3,
  kDataAbort = 4,
  kBreakpoint = 7,
  kExceptionReturn = 8,
  kNoCoprocessor = 17,
  kInvalidState = 18,
  kStackLimit = 19,
  kUnaligned = 22,
};

/// No instruction lies there: emulation never ends by reaching it.
constexpr uint64_t kNowhere = 0x1'0000'0000;

constexpr uint32_t kExceptionMask = 0x1ff, kThumb = 1u << 24, kItState = 0x0600fc00;
constexpr uint32_t kPageBits = 12;
constexpr uint64_t kPageSize = uint64_t{1} << kPageBits;

// Hint instructions, narrow and the second halfword of wide ones (behind 0xf3af).
constexpr uint16_t kSendEvent = 0xbf40;
enum class Hint { None, Yield, WaitForEvent, WaitForInterrupt };
Hint narrowHint(uint16_t halfword) {
  return halfword == 0xbf10   ? Hint::Yield
         : halfword == 0xbf20 ? Hint::WaitForEvent
         : halfword == 0xbf30 ? Hint::WaitForInterrupt
                              : Hint::None;
}
Hint wideHint(uint16_t halfword) {
  return halfword == 0x8001   ? Hint::Yield
         : halfword == 0x8002 ? Hint::WaitForEvent
         : halfword == 0x8003 ? Hint::WaitForInterrupt
                              : Hint::None;
}

template <typename Callback>
void* hookPointer(Callback callback) {
  void* pointer = nullptr;
  static_assert(sizeof pointer == sizeof callback);
  std::memcpy(&pointer, &callback, sizeof pointer);
  return pointer;
}

}  // namespace

Emulator::~Emulator() {
  if (uc_ != nullptr) uc_close(uc_);
  for (Devices* devices : devices_) delete devices;
}

const char* Emulator::open() {
  if (uc_ != nullptr) return "already open";
  uc_err error = uc_open(UC_ARCH_ARM, static_cast<uc_mode>(UC_MODE_THUMB | UC_MODE_MCLASS), &uc_);
  if (error != UC_ERR_OK) return uc_strerror(error);
  uc_hook hook = 0;
  const auto add = [&](int type, void* callback) {
    // begin > end: everywhere.
    if (error == UC_ERR_OK) error = uc_hook_add(uc_, &hook, type, callback, this, 1, 0);
  };
  add(UC_HOOK_BLOCK, hookPointer(&onBlock));
  add(UC_HOOK_INTR, hookPointer(&onInterrupt));
  add(UC_HOOK_MEM_INVALID, hookPointer(&onInvalidAccess));
  return error == UC_ERR_OK ? nullptr : uc_strerror(error);
}

const char* Emulator::mapRam(uint32_t address, uint64_t size, uint64_t offset) {
  if (uc_ == nullptr || offset < kGuestOffset || offset > size_ || size > size_ - offset)
    return "range outside the shared memory";
  const uc_err error = uc_mem_map_ptr(uc_, address, size, UC_PROT_ALL, base_ + offset);
  if (error != UC_ERR_OK) return uc_strerror(error);
  ram_.push_back({address, size, base_ + offset});
  return nullptr;
}

const char* Emulator::mapDevices(uint32_t address, uint64_t size) {
  if (uc_ == nullptr) return "not open";
  devices_.push_back(new Devices{this, address});
  const uc_err error = uc_mmio_map(uc_, address, size, &onRead, devices_.back(), &onWrite, devices_.back());
  return error == UC_ERR_OK ? nullptr : uc_strerror(error);
}

const char* Emulator::codeChanged(uint32_t address, uint64_t size) {
  if (uc_ == nullptr) return "not open";
  // Page by page: forgetting everything takes Unicorn a tenth of a second.
  uc_err error = UC_ERR_OK;
  for (const uint32_t page : codePages_) {
    const uint64_t begin = uint64_t{page} << kPageBits;
    if (size != 0 && (begin >= uint64_t{address} + size || begin + kPageSize <= address)) continue;
    if (error == UC_ERR_OK) error = uc_ctl_remove_cache(uc_, begin, begin + kPageSize);
  }
  return error == UC_ERR_OK ? nullptr : uc_strerror(error);
}

const char* Emulator::watch(uint32_t address, uint64_t size, uint32_t flags) {
  if (uc_ == nullptr) return "not open";
  if (const char* error = watchInstructions(); error != nullptr) return error;
  // Unicorn compares where accesses begin: those that begin up to seven bytes before may reach in.
  const uint64_t first = address, last = first + size - 1;
  uc_hook hook = 0;
  const int type = ((flags & kWatchWrites) != 0 ? UC_HOOK_MEM_WRITE : 0) |
                   ((flags & kWatchReads) != 0 ? UC_HOOK_MEM_READ : 0);
  const uc_err error =
      uc_hook_add(uc_, &hook, type, hookPointer(&onData), this, first < 7 ? 0 : first - 7, last);
  if (error != UC_ERR_OK) return uc_strerror(error);
  watched_.push_back({first, last, flags, hook});
  return codeChanged(0, 0);  // code translated before does not ask
}

const char* Emulator::unwatch() {
  for (const Watched& watched : watched_) uc_hook_del(uc_, watched.hook);
  const bool any = !watched_.empty();
  watched_.clear();
  return any ? codeChanged(0, 0) : nullptr;
}

void Emulator::onData(uc_engine*, uc_mem_type type, uint64_t address, int size, int64_t, void* self) {
  Emulator& emulator = *static_cast<Emulator*>(self);
  const uint32_t flag = type == UC_MEM_WRITE ? kWatchWrites : kWatchReads;
  for (const Watched& watched : emulator.watched_) {
    if (emulator.hit_ != 0 || (watched.flags & flag) == 0 || address > watched.last ||
        address + static_cast<uint64_t>(size) <= watched.first)
      continue;
    emulator.hit_ = flag;
    emulator.hitAddress_ = static_cast<uint32_t>(address > watched.first ? address : watched.first);
  }
}

// --- registers

uint32_t Emulator::get(int reg) const {
  uint32_t value = 0;
  uc_reg_read(uc_, reg, &value);
  return value;
}

void Emulator::set(int reg, uint32_t value) {
  uc_reg_write(uc_, reg, &value);
}

uint32_t Emulator::masks() const {
  return get(UC_ARM_REG_PRIMASK) | get(UC_ARM_REG_FAULTMASK) << 1 | get(UC_ARM_REG_BASEPRI) << 8;
}

void Emulator::storeRegisters() {
  Registers& to = shared_.registers;
  for (int i = 0; i < 13; ++i) to.r[i] = get(UC_ARM_REG_R0 + i);
  to.r[13] = get(UC_ARM_REG_SP);
  to.r[14] = get(UC_ARM_REG_LR);
  to.r[15] = get(UC_ARM_REG_PC);
  to.xpsr = get(UC_ARM_REG_XPSR);
  to.msp = get(UC_ARM_REG_MSP);
  to.psp = get(UC_ARM_REG_PSP);
  to.control = get(UC_ARM_REG_CONTROL);
  to.primask = get(UC_ARM_REG_PRIMASK);
  to.basepri = get(UC_ARM_REG_BASEPRI);
  to.faultmask = get(UC_ARM_REG_FAULTMASK);
  to.fpscr = get(UC_ARM_REG_FPSCR);
  for (int i = 0; i < 32; ++i) to.s[i] = get(UC_ARM_REG_S0 + i);
}

void Emulator::loadRegisters() {
  const Registers& from = shared_.registers;
  // Special registers are written as MSR would, which an unprivileged thread may not: go through handler
  // mode.
  set(UC_ARM_REG_XPSR, (from.xpsr & ~kExceptionMask) | 3);
  set(UC_ARM_REG_CONTROL, from.control);
  set(UC_ARM_REG_MSP, from.msp);
  set(UC_ARM_REG_PSP, from.psp);
  set(UC_ARM_REG_PRIMASK, from.primask);
  set(UC_ARM_REG_BASEPRI, from.basepri);
  set(UC_ARM_REG_FAULTMASK, from.faultmask);
  set(UC_ARM_REG_FPSCR, from.fpscr);
  for (int i = 0; i < 32; ++i) set(UC_ARM_REG_S0 + i, from.s[i]);
  set(UC_ARM_REG_XPSR, from.xpsr);
  for (int i = 0; i < 13; ++i) set(UC_ARM_REG_R0 + i, from.r[i]);
  set(UC_ARM_REG_LR, from.r[14]);
}

// --- guest memory

const uint8_t* Emulator::find(uint32_t address, uint32_t size) {
  for (size_t tries = 0; tries < ram_.size(); ++tries) {
    const Ram& ram = ram_[lastRam_];
    const uint64_t offset = uint64_t{address} - ram.address;
    if (address >= ram.address && offset < ram.size && size <= ram.size - offset) return ram.bytes + offset;
    lastRam_ = (lastRam_ + 1) % ram_.size();
  }
  return nullptr;
}

uint16_t Emulator::halfword(uint32_t address) {
  const uint8_t* bytes = find(address, 2);
  return bytes == nullptr ? uint16_t{0} : static_cast<uint16_t>(bytes[0] | bytes[1] << 8);
}

// --- while guest code runs

void Emulator::stopWith(Reason reason, uint32_t address, uint32_t value) {
  if (stopped_) return;
  stopped_ = true;
  stop_ = {};
  stop_.kind = Kind::Stopped;
  stop_.reason = reason;
  stop_.address = address;
  stop_.value = value;
}

void Emulator::onBlock(uc_engine*, uint64_t address, uint32_t size, void* self) {
  static_cast<Emulator*>(self)->block(static_cast<uint32_t>(address), size);
}

// Only here, before the first instruction of a block, is the program counter exact: all stops are made here;
// but with an instruction hook it is exact only there, which is next.
void Emulator::block(uint32_t address, uint32_t size) {
  if (stopped_) return;
  if (stopSoon_ || ((flags_ & kStopOnMaskChange) != 0 && masks() != masksAtStart_)) {
    stopWith(Reason::Requested);
  } else if ((flags_ & kOneInstruction) != 0 ? groupEnd_ != 0 && !inGroup(address) : counted_ >= end_) {
    stopWith(Reason::Budget);
  }
  if (stopped_) {
    if (!watching_) uc_emu_stop(uc_);
    return;
  }
  blockStart_ = address;
  blockEnd_ = address + size;
  if (address >> kPageBits != lastCodePage_) noteCodePage(address >> kPageBits);
  count(countInstructions(address, size));
}

void Emulator::onInstruction(uc_engine*, uint64_t address, uint32_t, void* self) {
  static_cast<Emulator*>(self)->instruction(static_cast<uint32_t>(address));
}

const char* Emulator::watchInstructions() {
  if (watching_) return nullptr;
  watching_ = true;
  uc_hook hook = 0;
  const uc_err error = uc_hook_add(uc_, &hook, UC_HOOK_CODE, hookPointer(&onInstruction), this, 1, 0);
  return error == UC_ERR_OK ? codeChanged(0, 0) : uc_strerror(error);  // code translated before has no hook
}

// Unicorn keeps no IT state in the middle of a block: a stop there would lose the conditions of the rest.
uint32_t Emulator::itStateAtStart() const {
  const uint32_t xpsr = shared_.registers.xpsr;
  return (xpsr >> 8 & 0xc) | (xpsr >> 25 & 3);
}

uint32_t Emulator::groupEndAt(uint32_t address, uint32_t state) {
  const auto length = [](uint32_t mask) { return 4 - __builtin_ctz(mask); };
  const uint16_t code = halfword(address);
  int left = 1;
  if (state != 0) left = length(state);
  if (state == 0 && (code & 0xff00) == 0xbf00 && (code & 0xf) != 0) left = 1 + length(code & 0xf);
  for (; left > 0; --left) address += isWide(halfword(address)) ? 4 : 2;
  return address;
}

void Emulator::instruction(uint32_t address) {
  if (!stopped_ && (flags_ & kOneInstruction) == 0 && !watched_.empty() && stopsForWatch(address)) {
    count(-countInstructions(address, blockEnd_ - address));
    stopWith(Reason::Watchpoint, hitAddress_, hit_);
  }
  if (stopped_) uc_emu_stop(uc_);
  if (stopped_ || (flags_ & kOneInstruction) == 0) return;
  if (groupEnd_ == 0) {
    groupStart_ = address;
    groupEnd_ = groupEndAt(address, itStateAtStart());
    return;
  }
  if (inGroup(address)) return;
  count(-countInstructions(address, blockEnd_ - address));
  stopWith(Reason::Budget);
  uc_emu_stop(uc_);
}

bool Emulator::stopsForWatch(uint32_t address) {
  // Not within an IT block: what the core would go on with there is not to be had.
  if (groupEnd_ != 0 && inGroup(address)) return false;
  const uint32_t state = groupEnd_ == 0 ? itStateAtStart() : 0;
  groupStart_ = address;
  groupEnd_ = groupEndAt(address, state);
  return hit_ != 0;
}

void Emulator::count(int64_t instructions) {
  counted_ += static_cast<uint64_t>(instructions);
  shared_.instructions.store(counted_, std::memory_order_relaxed);
}

/// Also notices SEV, which Unicorn does not tell of.
int64_t Emulator::countInstructions(uint32_t address, uint32_t size) {
  const uint8_t* bytes = find(address, size);
  if (bytes == nullptr) return 0;
  int64_t count = 0;
  for (uint32_t i = 0; i + 2 <= size; ++count) {
    const uint16_t code = static_cast<uint16_t>(bytes[i] | bytes[i + 1] << 8);
    if (code == kSendEvent) shared_.eventSent.store(1, std::memory_order_relaxed);
    i += isWide(code) ? 4 : 2;
  }
  return count;
}

/// The registers of a failed load or store are right but for the program counter: finds the instruction, and
/// takes back those behind it from the count.
void Emulator::locateFault() {
  Registers& registers = shared_.registers;
  const uint32_t size = blockEnd_ - blockStart_;
  const uint8_t* code = find(blockStart_, size);
  if (code == nullptr) return;
  const auto at =
      findAccess(code, size, blockStart_, stop_.address, stop_.reason == Reason::WriteFault, registers.r);
  if (!at) return;
  registers.r[15] = *at;
  count(-countInstructions(*at, blockEnd_ - *at));
}

void Emulator::noteCodePage(uint32_t page) {
  lastCodePage_ = page;
  if (isCodePage_.empty()) isCodePage_.resize(size_t{1} << (32 - kPageBits));
  if (isCodePage_[page]) return;
  isCodePage_[page] = true;
  codePages_.push_back(page);
}

bool Emulator::onInvalidAccess(uc_engine*, uc_mem_type type, uint64_t address, int, int64_t, void* self) {
  Reason reason = Reason::ReadFault;
  if (type == UC_MEM_WRITE_UNMAPPED || type == UC_MEM_WRITE_PROT) reason = Reason::WriteFault;
  if (type == UC_MEM_FETCH_UNMAPPED || type == UC_MEM_FETCH_PROT) reason = Reason::FetchFault;
  static_cast<Emulator*>(self)->stopWith(reason, static_cast<uint32_t>(address));
  return false;
}

void Emulator::onInterrupt(uc_engine* uc, uint32_t number, void* self) {
  Emulator& emulator = *static_cast<Emulator*>(self);
  const uint32_t pc = emulator.get(UC_ARM_REG_PC);
  switch (number) {
    case kSupervisorCall:
      emulator.stopWith(Reason::SupervisorCall);
      break;
    case kBreakpoint:
      emulator.stopWith(Reason::Breakpoint, 0, emulator.halfword(pc) & 0xffu);
      emulator.count(-1);  // it is not done yet
      break;
    case kExceptionReturn:
      // The exception return lost its lowest bit on the way to the program counter.
      emulator.stopWith(Reason::ExceptionReturn, 0, pc | 1);
      break;
    case kPrefetchAbort:
      emulator.stopWith(Reason::FetchFault, pc);
      break;
    case kDataAbort:
      emulator.stopWith(Reason::ReadFault);
      break;
    case kNoCoprocessor:
      emulator.stopWith(Reason::NoCoprocessor);
      break;
    case kInvalidState:
      emulator.stopWith(Reason::InvalidState);
      break;
    case kStackLimit:
      emulator.stopWith(Reason::StackLimit);
      break;
    case kUnaligned:
      emulator.stopWith(Reason::Unaligned);
      break;
    default:
      emulator.stopWith(Reason::Undefined);
      break;
  }
  uc_emu_stop(uc);
}

uint32_t Emulator::access(Kind kind, uint32_t address, uint32_t size, uint32_t value) {
  Message message{};
  message.kind = kind;
  message.address = address;
  message.size = size;
  message.value = value;
  if (!connected_ || !channel_.send(message) || !channel_.receive(&message) || message.kind != Kind::Value) {
    connected_ = false;
    stopSoon_ = true;
    return 0;
  }
  if ((message.flags & kStopSoon) != 0) stopSoon_ = true;
  return message.value;
}

uint64_t Emulator::onRead(uc_engine*, uint64_t offset, unsigned size, void* devices) {
  const Devices& at = *static_cast<Devices*>(devices);
  return at.emulator->access(Kind::Read, at.address + static_cast<uint32_t>(offset), size, 0);
}

void Emulator::onWrite(uc_engine*, uint64_t offset, unsigned size, uint64_t value, void* devices) {
  const Devices& at = *static_cast<Devices*>(devices);
  at.emulator->access(Kind::Write, at.address + static_cast<uint32_t>(offset), size,
                      static_cast<uint32_t>(value));
}

Message Emulator::classify(uc_err error) {
  const uint32_t pc = get(UC_ARM_REG_PC);
  // WFE and YIELD come back as invalid instructions, WFI as a plain end; the block ends with them.
  if (!stopped_ && pc == blockEnd_) {
    Hint hint = narrowHint(halfword(pc - 2));
    if (pc - blockStart_ >= 4 && halfword(pc - 4) == 0xf3af) hint = wideHint(halfword(pc - 2));
    if (error == UC_ERR_INSN_INVALID && hint == Hint::WaitForEvent) stopWith(Reason::WaitForEvent);
    if (error == UC_ERR_INSN_INVALID && hint == Hint::Yield) stopWith(Reason::Requested);
    if (error == UC_ERR_OK && hint == Hint::WaitForInterrupt) stopWith(Reason::WaitForInterrupt);
  }
  if (!stopped_ && error == UC_ERR_INSN_INVALID)
    stopWith((get(UC_ARM_REG_XPSR) & kThumb) != 0 ? Reason::Undefined : Reason::InvalidState);
  if (stopped_) return stop_;
  Message failed{};
  failed.kind = Kind::Failed;
  std::snprintf(failed.text, sizeof failed.text, "%s at 0x%08x",
                error == UC_ERR_OK ? "unexplained stop" : uc_strerror(error), pc);
  return failed;
}

Message Emulator::run(uint64_t budget, uint32_t flags) {
  Message failed{};
  failed.kind = Kind::Failed;
  if (uc_ == nullptr) return failed;
  if ((flags & kOneInstruction) != 0) {
    if (const char* error = watchInstructions(); error != nullptr) {
      std::snprintf(failed.text, sizeof failed.text, "%s", error);
      return failed;
    }
  }
  loadRegisters();
  end_ = budget > UINT64_MAX - counted_ ? UINT64_MAX : counted_ + budget;
  flags_ = flags;
  masksAtStart_ = masks();
  stopSoon_ = stopped_ = false;
  groupEnd_ = hit_ = 0;
  blockStart_ = blockEnd_ = 0;
  const uc_err error = uc_emu_start(uc_, uint64_t{shared_.registers.r[15] | 1}, kNowhere, 0, 0);
  Message reply = classify(error);
  storeRegisters();
  // What Unicorn shows in the middle of a block is the IT state at its beginning.
  const bool alone = (flags & kOneInstruction) != 0 && reply.reason == Reason::Budget;
  if (reply.kind == Kind::Stopped && (alone || reply.reason == Reason::Watchpoint))
    shared_.registers.xpsr &= ~kItState;
  if (reply.kind == Kind::Stopped && hit_ != 0 &&
      (reply.reason == Reason::Budget || reply.reason == Reason::Requested)) {
    stopWith(Reason::Watchpoint, hitAddress_, hit_);
    reply = stop_;
  }
  if (reply.reason == Reason::ReadFault || reply.reason == Reason::WriteFault) locateFault();
  return reply;
}
