// SPDX-License-Identifier: Apache-2.0
// The run loop: runs the CPU up to the next event, then handles the event.
#include "platform/platform.hpp"

#include <algorithm>
#include <chrono>
#include <memory>

#include "base/damaged.hpp"
#include "base/file.hpp"
#include "platform/access_gates.hpp"
#include "platform/bus.hpp"
#include "platform/coverage.hpp"
#include "platform/cpu_trace.hpp"
#include "platform/debug_session.hpp"
#include "platform/elf.hpp"
#include "platform/end_of_test.hpp"
#include "platform/exceptions.hpp"
#include "platform/hex_file.hpp"
#include "platform/loader.hpp"
#include "platform/npu_port.hpp"
#include "platform/peripherals.hpp"
#include "platform/semihosting.hpp"
#include "platform/simple_devices.hpp"
#include "platform/system_timers.hpp"
#include "platform/uart.hpp"

namespace carina::platform {
namespace {

using std::chrono::steady_clock;

/// Cycles between checks of the wall clock.
constexpr uint64_t kSlice = 1'000'000;
constexpr uint32_t kAccessesPerLook = 1024;
constexpr uint8_t kSemihostingBreakpoint = 0xab;
constexpr uint16_t kBranchToSelf = 0xe7fe;
/// Bits of DFSR: an instruction stepped, BKPT.
constexpr uint32_t kStepEvent = 1u << 0, kBreakpointEvent = 1u << 1;
constexpr size_t kMaxFaultNotes = 8;
/// Events without effect before a wait is considered endless.
constexpr int kIdleEvents = 1000;
constexpr uint32_t kUartSize = 0x1000, kFpgaIoSize = 0x1000, kSccSize = 0x1000, kNpuSize = 0x2000,
                   kTimingAdapterSize = 0x100;

// Timers of the subsystem, at the same addresses on every board. Counter control and one watchdog are Secure.
constexpr uint32_t kSystemTimerFrames = 0x48000000, kWatchdogFrames = 0x48040000,
                   kCounterControlFrame = 0x48100000, kCounterViewFrame = 0x48101000;
constexpr std::array<uint32_t, 4> kSystemTimerInterrupts = {3, 4, 5, 27};
/// Interrupts of the Non-secure watchdog: its request for a reset, its first time-out.
constexpr uint32_t kWatchdogResetInterrupt = 0, kWatchdogInterrupt = 1;

std::string placeText(uint32_t pc, const std::string& function) {
  return function.empty() ? fmt::format("0x{:08x}", pc) : fmt::format("0x{:08x} ({})", pc, function);
}

class System {
 public:
  System(const Options& options, const ElfImage& image, Bus bus, ConfinedFiles files, DebugHistory& history)
      : options_(options),
        history_(history),
        image_(image),
        bus_(std::move(bus)),
        core_(options.board->features, options.board->pipeline),
        system_(*options.board, clock_, interrupts_, core_),
        peripherals_(system_),
        exceptions_(bus_, system_, interrupts_, core_),
        npu_(options.machine, npuPort_, options.model, clock_, interrupts_, options.board->npuInterrupt),
        fpgaIo_(clock_),
        scc_(options.board->sccId),
        semihosting_(
            bus_, clock_, std::move(files), options.commandLine,
            {[this](char byte) { put(0, byte); }, [this] { return options_.input ? options_.input() : -1; },
             [this](uint32_t, uint32_t) { core_.codeChanged(); }}) {}

  Status start();
  Result<Outcome> run();
  std::vector<Core::Executions> executions() { return core_.executions(); }

 private:
  void addPeripherals();
  void addSystemTimers();
  void put(uint32_t uart, char byte);
  void send(uint32_t uart, char byte);
  void useTimingAdapters(npu::Npu& npu);
  uint64_t nextEvent() const {
    uint64_t next = std::min({system_.nextEvent(), npu_.nextEvent(), uarts_[0]->nextEvent()});
    for (const Timed* timed : timed_) next = std::min(next, timed->nextEvent());
    return next;
  }
  void advance();
  bool stopWanted();

  Status step();
  Status handle(const Stop& stop);
  Status debugEvent(uint32_t kind);
  Status take(uint32_t exception);
  Status leave(uint32_t value);
  /// `late`: the fault is one of lazy stacking.
  Status raise(const CpuFault& fault, bool late = false);
  /// Records a fault for the report and the debugger. `pc` and `world` are those of the faulting code.
  void note(const CpuFault& fault, uint32_t pc, World world);
  void noteStackingFault(uint32_t pc, World world);
  void semihost();
  void wait(bool forEvent);
  bool limitPassed() const;
  bool limitReached();
  bool stuck() const;
  void end(EndReason reason, std::string explanation, int exitCode = 1);
  std::string here() const;
  template <typename... Args>
  void trace(fmt::format_string<Args...> format, Args&&... args) {
    if (options_.trace)
      options_.trace(
          fmt::format("{:>12} {}", clock_.now(), fmt::format(format, std::forward<Args>(args)...)));
  }

  const Options& options_;
  DebugHistory& history_;
  const ElfImage& image_;
  Bus bus_;
  Clock clock_;
  Interrupts interrupts_;
  Core core_;
  std::optional<cpu_m::WaitStates> waits_;
  SystemSpace system_;
  Peripherals peripherals_;
  Exceptions exceptions_;
  NpuPort npuPort_{bus_};
  NpuDevice npu_;
  std::array<TimingAdapter, 2> timingAdapters_;
  FpgaIo fpgaIo_;
  ConfigurationController scc_;
  AccessGates gates_{*options_.board, core_, interrupts_,
                     [this](uint32_t bits) { system_.setCallable(bits); }};
  std::vector<std::unique_ptr<Uart>> uarts_;
  SystemCounter counter_{clock_};
  SystemCounterView counterView_{counter_};
  std::vector<std::unique_ptr<SystemTimer>> systemTimers_;
  Watchdog watchdog_{counter_, [this](bool high) { interrupts_.setLine(kWatchdogInterrupt, high); },
                     [this] { interrupts_.setLine(kWatchdogResetInterrupt, true); }};
  Watchdog secureWatchdog_{counter_,
                           [this](bool high) {
                             if (high) interrupts_.pend(kNmi);
                           },
                           [this] { end(EndReason::Reset, "the watchdog reset the board"); }};
  Media media_{options_.media, *options_.board, clock_, interrupts_, bus_, fpgaIo_};
  std::vector<Timed*> timed_;
  Semihosting semihosting_;
  EndOfTest endOfTest_{options_.stopAtEot, options_.exitTag};
  std::optional<DebugSession> debug_;
  std::optional<CpuTrace> cpuTrace_;
  std::optional<PmuTrace> pmuTrace_;

  steady_clock::time_point started_;
  Outcome outcome_;
  uint32_t accesses_ = 0;
  bool ended_ = false;
  bool event_ = false;  // the event register
  // When the CPU was last run:
  uint64_t deadline_ = kNever;
  std::optional<uint32_t> expected_;  // the exception that was known to be next
};

// --- construction

void System::addPeripherals() {
  const Board& board = *options_.board;
  for (uint32_t i = 0; i < kUarts; ++i) {
    const Uart::Lines lines{i < kUartsWithLines ? kUartInterrupt + 2 * i : Uart::kNoLine,
                            i < kUartsWithLines ? kUartInterrupt + 2 * i + 1 : Uart::kNoLine,
                            kUartCombinedInterrupt + i};
    uarts_.push_back(
        std::make_unique<Uart>(clock_, interrupts_, lines, [this, i](char byte) { send(i, byte); }));
    peripherals_.add(board.uart0 + i * kUartSize, kUartSize, fmt::format("uart{}", i), *uarts_.back());
  }
  if (options_.uartInput) uarts_[0]->setInput(options_.uartInput);
  for (size_t i = 0; i < timingAdapters_.size(); ++i) {
    if (board.timingAdapter[i] != 0)
      peripherals_.add(board.timingAdapter[i], kTimingAdapterSize, fmt::format("ta{}", i),
                       timingAdapters_[i]);
  }
  peripherals_.add(board.fpgaIo, kFpgaIoSize, "fpgaio", fpgaIo_);
  peripherals_.add(board.scc, kSccSize, "scc", scc_);
  addSystemTimers();
  gates_.addTo(peripherals_);
  peripherals_.setGate([this](uint32_t address, bool write) { return gates_.passes(address, write); });
  const bool u85 = options_.machine.target->isU85();
  peripherals_.add(board.npu, u85 ? kNpuSize : kNpuSize / 2, "npu", npu_);
  media_.addTo(peripherals_);
  const std::vector<Timed*> media = media_.timed();
  timed_.insert(timed_.end(), media.begin(), media.end());
  peripherals_.setStopWanted([this] { return stopWanted(); });
  peripherals_.setUnknown([this](uint32_t address, bool write) {
    const uint32_t pc = core_.accessingAddress();
    const std::string_view name =
        address >= kPrivate ? SystemSpace::absentPart(address) : absentDevice(*options_.board, address);
    outcome_.unknownPeripherals.push_back({address, write, pc, image_.nameOf(pc), std::string(name)});
  });
  npu_.setBeforeStart([this](npu::Npu& npu) {
    npuPort_.forget();
    if (options_.timingAdapters) useTimingAdapters(npu);
  });
  if (options_.trace) {
    peripherals_.setWatch([this](const std::string& place, bool write, uint32_t value) {
      trace("{:5} {:<14} 0x{:08x}", write ? "write" : "read", place, value);
    });
  }
}

void System::addSystemTimers() {
  peripherals_.addSecure(kCounterControlFrame, kDeviceFrame, "counter", counter_);
  peripherals_.add(kCounterViewFrame, kDeviceFrame, "counter", counterView_);
  for (uint32_t i = 0; i < kSystemTimerInterrupts.size(); ++i) {
    systemTimers_.push_back(std::make_unique<SystemTimer>(counter_, interrupts_, kSystemTimerInterrupts[i]));
    peripherals_.add(kSystemTimerFrames + i * kDeviceFrame, kDeviceFrame, fmt::format("timer{}", i),
                     *systemTimers_.back());
    timed_.push_back(systemTimers_.back().get());
  }
  peripherals_.addSecure(kWatchdogFrames, 2 * kDeviceFrame, "swatchdog", secureWatchdog_);
  peripherals_.add(kWatchdogFrames, 2 * kDeviceFrame, "watchdog", watchdog_);
  timed_.insert(timed_.end(), {&watchdog_, &secureWatchdog_});
}

Status System::start() {
  addPeripherals();
  CARINA_RETURN_IF_ERROR(loadImage(image_, bus_));
  for (const Options::Data& data : options_.data)
    CARINA_RETURN_IF_ERROR(loadData(data.file, data.address, bus_));
  CARINA_TRY(const uint32_t table, findVectorTable(image_, *options_.board, bus_, options_.vectorTable));
  system_.setVectorTable(table);
  clock_.attach(core_);
  auto* const memory = reinterpret_cast<uint8_t*>(bus_.memory().bytes().data());
  for (const Bus::Mapping& mapping : bus_.mappings()) {
    const RamBlock& block = *mapping.block;
    core_.memory.mapRam(block.address, block.size, memory + mapping.offset);
    if (block.alias != block.address) core_.memory.mapRam(block.alias, block.size, memory + mapping.offset);
  }
  waits_ = waitStatesOf(options_.memoryTiming);
  if (waits_) core_.setWaitStates(&*waits_);
  core_.memory.mapDevices(kPeripherals, kPeripheralsSize);
  core_.memory.mapDevices(kPrivate, kPrivateSize);
  core_.memory.setDevices(&peripherals_);
  if (options_.gating) {
    gates_.close();
    npuPort_.close(gates_, [this] { return npu_.secure(); });
    npu_.setAfterStep([this] { npuPort_.settle(); });
  }
  if (options_.coverage) core_.countExecutions();
  if (options_.cpuTrace) cpuTrace_.emplace(options_.cpuTrace, image_, clock_, core_);
  if (options_.pmuInterval != 0) {
    npu_.keepHistory();
    pmuTrace_.emplace(options_.pmuInterval, clock_, core_, npu_);
  }
  if (options_.debugger != nullptr) debug_.emplace(*options_.debugger, history_, bus_, peripherals_, core_);
  return exceptions_.reset();
}

// --- devices

void System::put(uint32_t uart, char byte) {
  if (options_.output) options_.output(uart, byte);
}

void System::send(uint32_t uart, char byte) {
  if (ended_) return;  // the rest of the basic block that ended the run
  if (uart == 0 && endOfTest_.feed(byte)) {
    end(EndReason::Exit, "", endOfTest_.exitCode());
    return;
  }
  put(uart, byte);
}

void System::useTimingAdapters(npu::Npu& npu) {
  npu::Machine machine = options_.machine;
  for (size_t i = 0; i < timingAdapters_.size(); ++i) {
    const TimingAdapter& adapter = timingAdapters_[i];
    if (!adapter.written()) continue;
    npu::MemoryTiming& port = machine.system.ports[i];
    const auto limit = [](uint32_t value) { return value == 0 ? 64 : static_cast<int32_t>(value); };
    port.maxReads = limit(adapter.maxReads());
    port.maxWrites = limit(adapter.maxWrites());
    port.readLatency = static_cast<int32_t>(adapter.readLatency());
    port.writeLatency = static_cast<int32_t>(adapter.writeLatency());
    const uint32_t period = adapter.pulseOn() + adapter.pulseOff();
    const double peak = static_cast<double>(machine.target->architecture().axiBytes) * port.ports;
    port.clockScale = 1.0;
    if (adapter.words() != 0 && period != 0)
      port.clockScale = std::min(1.0, 8.0 * adapter.words() / period / peak);
  }
  npu.setMachine(machine);
}

void System::advance() {
  const uint64_t now = clock_.now();
  if (pmuTrace_) pmuTrace_->advance(now);
  system_.advance(now);
  npu_.advance(now);
  uarts_[0]->advance(now);
  for (Timed* timed : timed_) timed->advance(now);
}

bool System::stopWanted() {
  // Device accesses are slow compared to instructions: without this check, the limit would be noticed late.
  if (++accesses_ % kAccessesPerLook == 0 && limitPassed()) return true;
  if (ended_ || system_.resetRequested() || system_.codeChanged() || system_.monitorSteps() ||
      nextEvent() < deadline_)
    return true;
  const auto next = interrupts_.first();
  if (!next) return false;
  // A new, masked one: the core must return as soon as the mask changes, and does not know that yet.
  if (next != expected_) return true;
  return interrupts_.groupPriority(*next) < interrupts_.executionPriority(core_.state);
}

// --- ends

std::string System::here() const {
  const uint32_t pc = core_.state.pc;
  return placeText(pc, image_.nameOf(pc));
}

void System::end(EndReason reason, std::string explanation, int exitCode) {
  if (ended_) return;
  ended_ = true;
  outcome_.reason = reason;
  outcome_.explanation = std::move(explanation);
  outcome_.exitCode = exitCode;
}

bool System::limitPassed() const {
  const std::chrono::duration<double> passed = steady_clock::now() - started_;
  return options_.secondsLimit > 0 && passed.count() >= options_.secondsLimit;
}

bool System::limitReached() {
  if (options_.instructionsLimit != 0 && core_.instructions() >= options_.instructionsLimit) {
    end(EndReason::InstructionLimit,
        fmt::format("the limit of {} instructions is reached at {}", options_.instructionsLimit, here()));
  }
  if (options_.cyclesLimit != 0 && clock_.now() >= options_.cyclesLimit)
    end(EndReason::CycleLimit,
        fmt::format("the limit of {} cycles is reached at {}", options_.cyclesLimit, here()));
  if (limitPassed())
    end(EndReason::TimeLimit,
        fmt::format("the time limit of {} s is reached at {}", options_.secondsLimit, here()));
  return ended_;
}

/// Whether the core is at a branch to itself that no interrupt can end.
bool System::stuck() const {
  const State& registers = core_.state;
  const std::byte* code = bus_.find(registers.pc, 2);
  if (code == nullptr) return false;
  const unsigned halfword = std::to_integer<unsigned>(code[0]) | std::to_integer<unsigned>(code[1]) << 8;
  if (halfword != kBranchToSelf) return false;
  return nextEvent() == kNever || interrupts_.executionPriority(registers) <= 0;
}

// --- running

Status System::take(uint32_t exception) {
  trace("take  {} (vector 0x{:08x})", exceptionName(exception),
        bus_.load32(system_.vectorTable(interrupts_.targetOf(exception)) + 4 * numberOf(exception))
            .value_or(0));
  event_ = true;
  if (debug_) debug_->noteEntry();
  const uint32_t pc = core_.state.pc;
  const World world = core_.state.world;
  Status status = exceptions_.enter(exception);
  noteStackingFault(pc, world);
  if (cpuTrace_ && status.ok()) cpuTrace_->exception(exceptionName(exception));
  return status;
}

Status System::leave(uint32_t value) {
  const uint32_t pc = core_.state.pc;
  const World world = core_.state.world;
  // Interrupts are held off while a debugger steps by single instructions.
  Status status = exceptions_.leave(value, !(debug_ && debug_->single()));
  noteStackingFault(pc, world);
  if (const auto chained = exceptions_.takeChained()) {
    if (debug_) debug_->noteEntry();
    trace("chain {} (vector 0x{:08x})", exceptionName(*chained), core_.state.pc | 1);
    if (cpuTrace_ && status.ok()) cpuTrace_->exception(exceptionName(*chained));
  }
  if (status.ok() && !core_.state.handlerMode() && system_.sleepOnExit()) wait(false);
  return status;
}

Status System::raise(const CpuFault& fault, bool late) {
  const uint32_t pc = core_.state.pc;
  if (debug_) debug_->noteEntry();
  trace("fault {} at {}", fault.what, here());
  const World world = core_.state.world;
  Status status = late ? exceptions_.raiseLazyStackingFault(fault) : exceptions_.raise(fault);
  if (cpuTrace_ && status.ok()) cpuTrace_->exception(fault.what);
  note(fault, pc, world);
  noteStackingFault(pc, world);
  return status;
}

void System::note(const CpuFault& fault, uint32_t pc, World world) {
  if (debug_) debug_->noteFault(fault.kind == kUsageFault);
  if (outcome_.faults.size() < kMaxFaultNotes)
    outcome_.faults.push_back(
        {fault.what, pc, image_.nameOf(pc), system_.faults().cfsr[world], system_.faults().hfsr});
}

void System::noteStackingFault(uint32_t pc, World world) {
  if (const auto fault = exceptions_.takeStackingFault()) note(*fault, pc, world);
}

void System::semihost() {
  State& registers = core_.state;
  const uint32_t operation = registers.r[0], argument = registers.r[1];
  registers.r[0] = semihosting_.call(operation, argument);
  registers.pc += 2;
  trace("semihosting {} (0x{:08x}) = 0x{:x}", Semihosting::operationName(operation), argument,
        registers.r[0]);
  if (semihosting_.exitCode()) end(EndReason::Exit, "", *semihosting_.exitCode());
}

/// WFI, or with `forEvent` WFE without an event registered: advances time until something wakes the core.
void System::wait(bool forEvent) {
  for (int events = 0; !limitReached(); ++events) {
    State registers = core_.state;
    if (!forEvent)
      registers.primask[kNonSecure] = registers.primask[kSecure] =
          0;  // masked interrupts wake the core from WFI as well
    const auto pending = interrupts_.first();
    advance();
    if (interrupts_.takeable(registers)) return;
    if (forEvent && system_.sevOnPend() && interrupts_.first() != pending) return;
    const uint64_t next = nextEvent();
    if (next == kNever || events > kIdleEvents) {
      std::string why = fmt::format("the core waits for {} at {}, but none can occur",
                                    forEvent ? "an event" : "an interrupt", here());
      if (const auto masked = interrupts_.first())
        why += fmt::format(" ({} is pending, but masked)", exceptionName(*masked));
      if (!npu_.jobs().empty() && !npu_.jobs().back().fault.empty())
        why += "; the NPU's last job failed: " + npu_.jobs().back().fault;
      end(EndReason::Deadlock, std::move(why));
      return;
    }
    clock_.skipTo(options_.cyclesLimit == 0 ? next : std::min(next, options_.cyclesLimit));
  }
}

Status System::handle(const Stop& stop) {
  switch (stop.reason) {
    case StopReason::Budget:
    case StopReason::Requested:
    case StopReason::Watchpoint:
      if (stuck())
        end(EndReason::EndlessLoop,
            fmt::format("the firmware branches to itself at {}, and no interrupt can occur", here()));
      return {};
    case StopReason::WaitForInterrupt:
      wait(false);
      return {};
    case StopReason::WaitForEvent:
      if (!core_.takeSentEvent() && !event_) wait(true);
      event_ = false;
      return {};
    case StopReason::SupervisorCall: {
      const uint32_t call = ofWorld(kSvcall, core_.state.world);
      if (interrupts_.groupPriority(call) < interrupts_.executionPriority(core_.state)) return take(call);
      return raise({kHardFault, 0, 1u << 30, {}, "SVC at a priority that does not allow it"});
    }
    case StopReason::ExceptionReturn: {
      trace("return 0x{:08x}", stop.value);
      event_ = true;
      return leave(stop.value);
    }
    case StopReason::LazyStacking:
      return raise(*faultOf(stop), true);
    case StopReason::Breakpoint:
      if (stop.value == kSemihostingBreakpoint && options_.semihosting) {
        semihost();
        return {};
      }
      if (system_.monitors()) return debugEvent(kBreakpointEvent);
      break;
    default:
      break;
  }
  const auto fault = faultOf(stop);
  CARINA_CHECK(fault.has_value(), "every stop is handled or a fault");
  return raise(*fault);
}

/// Raises DebugMonitor, for debuggers in the board's own software.
Status System::debugEvent(uint32_t kind) {
  system_.faults().dfsr |= kind;
  return take(kDebugMonitor);
}

Status System::step() {
  if (system_.takeCodeChanged()) core_.codeChanged();
  advance();
  const State& registers = core_.state;
  std::optional<uint64_t> ahead;
  if (debug_) ahead = debug_->ahead();
  const bool single = debug_ && debug_->single();
  // Interrupts are held off while a debugger steps by single instructions.
  if (const auto exception = single ? std::nullopt : interrupts_.takeable(registers)) {
    if (Status status = take(*exception); !status.ok()) end(EndReason::Lockup, status.error().str());
    return {};
  }
  deadline_ = nextEvent();
  expected_ = interrupts_.first();
  const uint64_t now = clock_.now();
  uint64_t budget = kSlice;
  if (pmuTrace_) budget = std::min(budget, pmuTrace_->next() > now ? pmuTrace_->next() - now : 1);
  if (deadline_ != kNever) budget = std::min(budget, deadline_ > now ? deadline_ - now : 1);
  if (options_.cyclesLimit != 0)
    budget = std::min(budget, options_.cyclesLimit - std::min(options_.cyclesLimit - 1, now));
  if (options_.instructionsLimit != 0)
    // No pipeline executes more than two instructions and a loop end per cycle.
    budget = std::min(
        budget,
        (options_.instructionsLimit - std::min(options_.instructionsLimit, core_.instructions()) + 2) / 3);
  const bool monitored = system_.monitorSteps();
  const Stop stop = single || monitored || ahead == 0 ? core_.step()
                    : ahead ? core_.runAtMost(*ahead, budget, interrupts_.maskedOnly(registers))
                            : core_.run(budget, interrupts_.maskedOnly(registers));
  if (cpuTrace_) cpuTrace_->finish();
  if (ended_ || (debug_ && debug_->claims(stop))) return {};
  if (system_.resetRequested())
    end(EndReason::Reset, fmt::format("the firmware requested a reset at {}", here()));
  if (Status status = handle(stop); !status.ok()) end(EndReason::Lockup, status.error().str());
  if (monitored) {
    system_.faults().dfsr |= kStepEvent;
    interrupts_.pend(kDebugMonitor);
  }
  return {};
}

Result<Outcome> System::run() {
  started_ = steady_clock::now();
  while (!ended_ && !limitReached()) {
    if (debug_) {
      CARINA_TRY(const bool goOn, debug_->beforeStep());
      if (!goOn) {
        end(EndReason::Killed, "the debugger ended the run");
        break;
      }
    }
    CARINA_RETURN_IF_ERROR(step());
  }
  if (debug_ && outcome_.reason != EndReason::Killed) {
    const bool itself = outcome_.reason == EndReason::Exit || outcome_.reason == EndReason::Reset;
    CARINA_RETURN_IF_ERROR(debug_->end(itself, outcome_.exitCode, outcome_.explanation));
  }
  outcome_.instructions = core_.instructions();
  outcome_.cycles = clock_.now();
  outcome_.seconds = std::chrono::duration<double>(steady_clock::now() - started_).count();
  if (pmuTrace_) outcome_.pmu = pmuTrace_->finish();
  outcome_.jobs = npu_.jobs();
  outcome_.media = media_.finish(clock_.now());
  outcome_.refusedFile = semihosting_.refusedFile();
  return outcome_;
}

/// Options with which a debugger can restart the board: input is repeated, and output is emitted only once.
struct Recorded {
  explicit Recorded(const Options& original) : options(original) {
    if (original.debugger == nullptr) return;
    options.output = [this, &original](uint32_t uart, char byte) {
      if (++sent_ <= everSent_) return;
      everSent_ = sent_;
      if (original.output) original.output(uart, byte);
    };
    if (original.input) options.input = [this, &original] { return console_.next(original.input); };
    if (original.uartInput) options.uartInput = [this, &original] { return uart_.next(original.uartInput); };
  }
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;
  void restart() {
    sent_ = 0;
    console_.at = uart_.at = 0;
  }

  Options options;

 private:
  struct Input {
    std::vector<int> bytes;
    size_t at = 0;
    int next(const std::function<int()>& source) {
      if (at == bytes.size()) bytes.push_back(source());
      return bytes[at++];
    }
  };
  uint64_t sent_ = 0, everSent_ = 0;
  Input console_, uart_;
};

Result<Outcome> runImage(const ElfImage& image, ByteSpan bytes, const std::string& name,
                         const Options& options) {
  CARINA_TRY(Bus bus, Bus::create(*options.board));
  ConfinedFiles files;
  if (!options.semihostingFolder.empty()) {
    CARINA_TRY(files, ConfinedFiles::open(options.semihostingFolder));
  }
  LineTable lines;
  if (options.coverage) {
    auto table = lineTableOf(image, bytes);
    if (!table.ok()) return std::move(table).error().inFile(name);
    lines = std::move(*table);
  }
  Recorded recorded(options);
  DebugHistory history;
  if (!options.semihostingFolder.empty()) history.impossible = "the firmware may have changed files";
  if (options.trace || options.cpuTrace) history.impossible = "a trace is being written";
  for (;;) {
    System system(recorded.options, image, std::move(bus), std::move(files), history);
    if (Status status = system.start(); !status.ok()) return std::move(status).error().inFile(name);
    CARINA_TRY(Outcome outcome, system.run());
    if (!history.again) {
      if (options.coverage) outcome.lcov = lcovText(image, lines, system.executions());
      return outcome;
    }
    CARINA_TRY(bus, Bus::create(*options.board));
    files = {};
    recorded.restart();
  }
}

}  // namespace

const char* endReasonName(EndReason reason) {
  switch (reason) {
    case EndReason::Exit:
      return "exit";
    case EndReason::Reset:
      return "reset";
    case EndReason::TimeLimit:
      return "time limit";
    case EndReason::CycleLimit:
      return "cycle limit";
    case EndReason::InstructionLimit:
      return "instruction limit";
    case EndReason::Deadlock:
      return "deadlock";
    case EndReason::EndlessLoop:
      return "endless loop";
    case EndReason::Killed:
      return "killed";
    case EndReason::Lockup:
      return "lockup";
  }
  return "?";
}

std::string text(const UnknownAccess& access) {
  const std::string what =
      access.device.empty() ? "where there is no device" : access.device + ", which is not modelled";
  return fmt::format("{} 0x{:08x}, {}, at {}", access.write ? "write to" : "read of", access.address, what,
                     placeText(access.pc, access.function));
}

Result<Outcome> runElf(const std::filesystem::path& file, const Options& options) {
  CARINA_TRY(const auto mapped, MappedFile::open(file));
  return runElf(mapped->bytes(), file.string(), options);
}

Result<Outcome> runElf(ByteSpan bytes, const std::string& name, const Options& options) {
  CARINA_CHECK(options.board != nullptr && options.machine.target != nullptr,
               "a board and an NPU are chosen");
  if (isHexFile(bytes)) {
    auto file = readHexFile(bytes);
    if (!file.ok()) return std::move(file).error().inFile(name);
    return runImage(imageOf(*file), bytes, name, options);
  }
  auto image = readElf(bytes);
  if (!image.ok()) return std::move(image).error().inFile(name).withRemedy(kDamagedRemedy);
  if (Status status = checkForCortexM(image->attributes); !status.ok())
    return std::move(status).error().inFile(name);
  return runImage(*image, bytes, name, options);
}

}  // namespace carina::platform
