// SPDX-License-Identifier: Apache-2.0
#include "platform/gdb_packets.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

namespace carina::platform {
namespace {

constexpr const char* kOk = "OK";
constexpr const char* kBadPacket = "E01";
constexpr const char* kBadAddress = "E14";  // EFAULT
/// Most bytes of memory that one packet can request.
constexpr uint32_t kMaxBytes = 0x1000;

constexpr char kEscape = '}';
constexpr char kEscapeMask = 0x20;

int digitOf(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// Consumes a hexadecimal number at the front.
std::optional<uint32_t> takeNumber(std::string_view* text) {
  uint64_t value = 0;
  size_t length = 0;
  for (; length < text->size() && digitOf((*text)[length]) >= 0; ++length) {
    value = value << 4 | static_cast<unsigned>(digitOf((*text)[length]));
    if (value > 0xffffffff) return std::nullopt;
  }
  if (length == 0) return std::nullopt;
  text->remove_prefix(length);
  return static_cast<uint32_t>(value);
}

bool takeChar(std::string_view* text, char c) {
  if (text->empty() || text->front() != c) return false;
  text->remove_prefix(1);
  return true;
}

std::string hexOf(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  return text;
}

std::optional<std::vector<std::byte>> bytesOf(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  std::vector<std::byte> bytes;
  for (size_t i = 0; i < text.size(); i += 2) {
    const int high = digitOf(text[i]), low = digitOf(text[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes.push_back(static_cast<std::byte>(high << 4 | low));
  }
  return bytes;
}

// --- registers, numbered as the target description lists them

constexpr uint32_t kFirstDouble = 23, kDoubles = 16, kFpscr = kFirstDouble + kDoubles, kVpr = kFpscr + 1,
                   kFirstBanked = kVpr + 1, kFirstOfWorld = kFirstBanked + 4;
constexpr uint32_t kProgramCounter = 15;

/// The banked registers of each world, except its stack pointers.
enum class OfWorld : uint8_t { MainLimit, ProcessLimit, Primask, Basepri, Faultmask, Control };
struct BankedRegister {
  std::string_view name;
  OfWorld which;
  World world;
};
constexpr std::array<BankedRegister, 12> kOfWorlds = {{{"msplim_s", OfWorld::MainLimit, kSecure},
                                                       {"psplim_s", OfWorld::ProcessLimit, kSecure},
                                                       {"primask_s", OfWorld::Primask, kSecure},
                                                       {"basepri_s", OfWorld::Basepri, kSecure},
                                                       {"faultmask_s", OfWorld::Faultmask, kSecure},
                                                       {"control_s", OfWorld::Control, kSecure},
                                                       {"msplim_ns", OfWorld::MainLimit, kNonSecure},
                                                       {"psplim_ns", OfWorld::ProcessLimit, kNonSecure},
                                                       {"primask_ns", OfWorld::Primask, kNonSecure},
                                                       {"basepri_ns", OfWorld::Basepri, kNonSecure},
                                                       {"faultmask_ns", OfWorld::Faultmask, kNonSecure},
                                                       {"control_ns", OfWorld::Control, kNonSecure}}};
constexpr uint32_t kRegisters = kFirstOfWorld + kOfWorlds.size();

constexpr std::string_view kDescription = R"(<?xml version="1.0"?><!DOCTYPE target SYSTEM "gdb-target.dtd">
<target version="1.0"><architecture>arm</architecture>
<feature name="org.gnu.gdb.arm.m-profile">
<reg name="r0" bitsize="32"/><reg name="r1" bitsize="32"/><reg name="r2" bitsize="32"/><reg name="r3" bitsize="32"/>
<reg name="r4" bitsize="32"/><reg name="r5" bitsize="32"/><reg name="r6" bitsize="32"/><reg name="r7" bitsize="32"/>
<reg name="r8" bitsize="32"/><reg name="r9" bitsize="32"/><reg name="r10" bitsize="32"/><reg name="r11" bitsize="32"/>
<reg name="r12" bitsize="32"/><reg name="sp" bitsize="32" type="data_ptr"/><reg name="lr" bitsize="32"/>
<reg name="pc" bitsize="32" type="code_ptr"/><reg name="xpsr" bitsize="32"/>
</feature>
<feature name="org.gnu.gdb.arm.m-system">
<reg name="msp" bitsize="32" type="data_ptr"/><reg name="psp" bitsize="32" type="data_ptr"/>
<reg name="control" bitsize="32"/><reg name="faultmask" bitsize="32"/><reg name="basepri" bitsize="32"/>
<reg name="primask" bitsize="32"/>
</feature>
<feature name="org.gnu.gdb.arm.vfp">
<reg name="d0" bitsize="64" type="ieee_double"/><reg name="d1" bitsize="64" type="ieee_double"/>
<reg name="d2" bitsize="64" type="ieee_double"/><reg name="d3" bitsize="64" type="ieee_double"/>
<reg name="d4" bitsize="64" type="ieee_double"/><reg name="d5" bitsize="64" type="ieee_double"/>
<reg name="d6" bitsize="64" type="ieee_double"/><reg name="d7" bitsize="64" type="ieee_double"/>
<reg name="d8" bitsize="64" type="ieee_double"/><reg name="d9" bitsize="64" type="ieee_double"/>
<reg name="d10" bitsize="64" type="ieee_double"/><reg name="d11" bitsize="64" type="ieee_double"/>
<reg name="d12" bitsize="64" type="ieee_double"/><reg name="d13" bitsize="64" type="ieee_double"/>
<reg name="d14" bitsize="64" type="ieee_double"/><reg name="d15" bitsize="64" type="ieee_double"/>
<reg name="fpscr" bitsize="32"/>
</feature>
<feature name="org.gnu.gdb.arm.m-profile-mve"><reg name="vpr" bitsize="32"/></feature>
<feature name="org.gnu.gdb.arm.secext">
<reg name="msp_ns" bitsize="32" type="data_ptr"/><reg name="psp_ns" bitsize="32" type="data_ptr"/>
<reg name="msp_s" bitsize="32" type="data_ptr"/><reg name="psp_s" bitsize="32" type="data_ptr"/>
</feature>
)";

/// The whole target description. Debuggers also show registers of features that they do not know.
std::string description() {
  std::string text(kDescription);
  text += "<feature name=\"org.carina.banked\">\n";
  for (const BankedRegister& banked : kOfWorlds)
    text += fmt::format("<reg name=\"{}\" bitsize=\"32\" group=\"system\"/>\n", banked.name);
  return text + "</feature>\n</target>\n";
}

/// The banked register of a world in the core's state.
template <typename AnyState>
auto& ofWorlds(AnyState& s, uint32_t number) {
  const auto& [name, which, world] = kOfWorlds[number - kFirstOfWorld];
  switch (which) {
    case OfWorld::MainLimit:
      return s.stackLimit[world][0];
    case OfWorld::ProcessLimit:
      return s.stackLimit[world][1];
    case OfWorld::Primask:
      return s.primask[world];
    case OfWorld::Basepri:
      return s.basepri[world];
    case OfWorld::Faultmask:
      return s.faultmask[world];
    default:
      return s.control[world];
  }
}

constexpr size_t sizeOf(uint32_t number) {
  return number >= kFirstDouble && number < kFpscr ? 8 : 4;
}

/// The world of MSP_NS, PSP_NS, MSP_S and PSP_S.
constexpr World bankedWorld(uint32_t number) {
  return number - kFirstBanked < 2 ? kNonSecure : kSecure;
}

uint64_t readValue(const State& s, uint32_t number) {
  if (number < kProgramCounter) return s.r[number];
  if (number >= kFirstDouble && number < kFpscr) return s.element<uint64_t>(number - kFirstDouble);
  if (number >= kFirstOfWorld) return ofWorlds(s, number);
  if (number >= kFirstBanked) return s.stackPointer(bankedWorld(number), (number - kFirstBanked) % 2);
  switch (number) {
    case kProgramCounter:
      return s.pc;
    case 16:
      return s.xpsr();
    case 17:
      return s.stackPointer(s.world, 0);
    case 18:
      return s.stackPointer(s.world, 1);
    case 19:
      return s.control[s.world];
    case 20:
      return s.faultmask[s.world];
    case 21:
      return s.basepri[s.world];
    case 22:
      return s.primask[s.world];
    case kVpr:
      return s.vpr;
    default:
      return s.fpscrWord();
  }
}

void writeValue(State& s, uint32_t number, uint64_t value) {
  const auto word = static_cast<uint32_t>(value);
  if (number < kProgramCounter) {
    s.r[number] = word;
    return;
  }
  if (number >= kFirstDouble && number < kFpscr) {
    s.setElement<uint64_t>(number - kFirstDouble, value);
    return;
  }
  if (number >= kFirstOfWorld) {
    s.putStack();  // CONTROL may change which one is the active stack pointer
    ofWorlds(s, number) = word;
    s.takeStack();
    return;
  }
  if (number >= kFirstBanked) {
    s.setStackPointer(bankedWorld(number), (number - kFirstBanked) % 2, word);
    return;
  }
  switch (number) {
    case kProgramCounter:
      s.pc = word & ~1u;
      break;
    case 16:  // may change the active stack pointer, as CONTROL may
      s.putStack();
      s.setXpsr(word);
      s.takeStack();
      break;
    case 17:
      s.setStackPointer(s.world, 0, word);
      break;
    case 18:
      s.setStackPointer(s.world, 1, word);
      break;
    case 19:
      s.putStack();
      s.control[s.world] = word;
      s.takeStack();
      break;
    case 20:
      s.faultmask[s.world] = word & 1;
      break;
    case 21:
      s.basepri[s.world] = word;
      break;
    case 22:
      s.primask[s.world] = word & 1;
      break;
    case kVpr:
      s.vpr = word & 0x00ffffff;
      break;
    default:
      s.setFpscrWord(word);
      break;
  }
}

std::string registerText(const State& s, uint32_t number) {
  const uint64_t value = readValue(s, number);
  return hexOf(std::as_bytes(std::span(&value, 1)).first(sizeOf(number)));
}

void setRegister(State& s, uint32_t number, const std::byte* bytes) {
  uint64_t value = 0;
  std::memcpy(&value, bytes, sizeOf(number));
  writeValue(s, number, value);
}

std::string readRegisters(const State& registers) {
  std::string text;
  for (uint32_t i = 0; i < kRegisters; ++i) text += registerText(registers, i);
  return text;
}

std::string writeRegisters(State& registers, std::string_view values) {
  const auto bytes = bytesOf(values);
  if (!bytes) return kBadPacket;
  size_t at = 0;
  State changed = registers;
  for (uint32_t i = 0; i < kRegisters; ++i) {
    // Both sp and the stack pointer that it aliases are sent: the latter takes effect.
    if (bytes->size() - at < sizeOf(i)) return kBadPacket;
    // The same applies to banked registers and their usual names: an unchanged one has no effect.
    const std::string old = registerText(registers, i);
    if (i < kFirstOfWorld || hexOf(std::span(*bytes).subspan(at, sizeOf(i))) != old)
      setRegister(changed, i, &(*bytes)[at]);
    at += sizeOf(i);
  }
  registers = changed;
  return kOk;
}

std::string readRegister(const State& registers, std::string_view text) {
  const auto number = takeNumber(&text);
  if (!number || *number >= kRegisters || !text.empty()) return kBadPacket;
  return registerText(registers, *number);
}

std::string writeRegister(State& registers, std::string_view text) {
  const auto number = takeNumber(&text);
  if (!number || *number >= kRegisters || !takeChar(&text, '=')) return kBadPacket;
  const auto bytes = bytesOf(text);
  if (!bytes || bytes->size() != sizeOf(*number)) return kBadPacket;
  setRegister(registers, *number, bytes->data());
  return kOk;
}

// --- memory and breakpoints

struct Range {
  uint32_t address, length;
};
std::optional<Range> takeRange(std::string_view* text) {
  const auto address = takeNumber(text);
  if (!address || !takeChar(text, ',')) return std::nullopt;
  const auto length = takeNumber(text);
  if (!length) return std::nullopt;
  return Range{*address, *length};
}

std::string readMemory(std::string_view text, DebugTarget& target) {
  const auto range = takeRange(&text);
  if (!range || !text.empty() || range->length > kMaxBytes) return kBadPacket;
  std::vector<std::byte> bytes(range->length);
  return target.read(range->address, bytes) ? hexOf(bytes) : kBadAddress;
}

std::string writeMemory(std::string_view text, bool binary, DebugTarget& target) {
  const auto range = takeRange(&text);
  if (!range || !takeChar(&text, ':')) return kBadPacket;
  std::optional<std::vector<std::byte>> bytes;
  if (binary) {
    const auto raw = std::as_bytes(std::span(text));
    bytes.emplace(raw.begin(), raw.end());
  } else {
    bytes = bytesOf(text);
  }
  if (!bytes || bytes->size() != range->length) return kBadPacket;
  return target.write(range->address, *bytes) ? kOk : kBadAddress;
}

/// "Zn,address,kind": a software (0) or hardware (1) breakpoint, which are the same here; a watchpoint of
/// `kind` bytes for writes (2), reads (3) or both (4).
std::string stopPoint(std::string_view text, bool set, DebugTarget& target) {
  const char type = text[0];
  if (type < '0' || type > '4') return {};
  text.remove_prefix(1);
  if (!takeChar(&text, ',')) return kBadPacket;
  const auto at = takeRange(&text);
  if (!at) return kBadPacket;
  if (type >= '2') {
    const WatchedRange range{at->address, at->length, type != '2', type != '3'};
    if (set) return target.setWatchpoint(range) ? kOk : kBadAddress;
    target.clearWatchpoint(range);
    return kOk;
  }
  if (set) return target.setBreakpoint(at->address) ? kOk : kBadAddress;
  target.clearBreakpoint(at->address);
  return kOk;
}

// --- queries

std::string description(std::string_view text) {
  auto range = takeRange(&text);
  if (!range || !text.empty()) return kBadPacket;
  const std::string all = description();
  if (range->address >= all.size()) return "l";
  const std::string part = all.substr(range->address, std::min(range->length, kMaxBytes));
  return (range->address + part.size() == all.size() ? "l" : "m") + part;
}

PacketAnswer question(std::string_view packet) {
  constexpr std::string_view kFeatures = "qXfer:features:read:target.xml:";
  if (packet.starts_with("qSupported"))
    return {fmt::format(
        "PacketSize={:x};qXfer:features:read+;QStartNoAckMode+;vContSupported+;ReverseStep+;ReverseContinue+",
        PacketReader::kMaxPacket)};
  if (packet.starts_with(kFeatures)) return {description(packet.substr(kFeatures.size()))};
  if (packet == "QStartNoAckMode") return {kOk, {}, false, true};
  if (packet == "qAttached") return {"1"};
  if (packet == "qC") return {"QC1"};
  if (packet == "qfThreadInfo") return {"m1"};
  if (packet == "qsThreadInfo") return {"l"};
  return {};
}

PacketAnswer goOn(Debugger::Next next) {
  PacketAnswer answer;
  answer.next = next;
  answer.silent = next != Debugger::Next::Detach;
  if (next == Debugger::Next::Detach) answer.text = kOk;
  return answer;
}

/// "c" and "s" may give an address to resume from, "C" and "S" a signal, which is ignored.
PacketAnswer resume(std::string_view packet, Debugger::Next next, State& registers) {
  std::string_view rest = packet.substr(1);
  if (packet[0] == 'C' || packet[0] == 'S') {
    (void)takeNumber(&rest);
    (void)takeChar(&rest, ';');
  }
  if (!rest.empty()) {
    const auto address = takeNumber(&rest);
    if (!address) return {kBadPacket};
    registers.pc = *address & ~1u;
  }
  return goOn(next);
}

}  // namespace

std::string framePacket(std::string_view payload) {
  std::string escaped;
  for (const char c : payload) {
    if (c == '$' || c == '#' || c == '*' || c == kEscape) {
      escaped += kEscape;
      escaped += static_cast<char>(c ^ kEscapeMask);
    } else {
      escaped += c;
    }
  }
  unsigned sum = 0;
  for (const char c : escaped) sum += static_cast<unsigned char>(c);
  return fmt::format("${}#{:02x}", escaped, sum & 0xff);
}

std::optional<PacketReader::Item> PacketReader::feed(char byte) {
  constexpr char kInterruptByte = 3;
  switch (state_) {
    case State::Between:
      if (byte == kInterruptByte) return Item{Kind::Interrupt, {}};
      if (byte != '$') return std::nullopt;  // acknowledgements
      state_ = State::Payload;
      payload_.clear();
      sum_ = 0;
      escaped_ = false;
      return std::nullopt;
    case State::Payload:
      if (byte == '#') {
        state_ = State::FirstDigit;
        return std::nullopt;
      }
      sum_ += static_cast<unsigned char>(byte);
      if (!escaped_ && byte == kEscape) {
        escaped_ = true;
        return std::nullopt;
      }
      if (payload_.size() > kMaxPacket) {
        state_ = State::Between;
        return Item{Kind::Damaged, {}};
      }
      payload_ += escaped_ ? static_cast<char>(byte ^ kEscapeMask) : byte;
      escaped_ = false;
      return std::nullopt;
    case State::FirstDigit:
      given_ = static_cast<unsigned>(digitOf(byte)) << 4;
      state_ = State::SecondDigit;
      return std::nullopt;
    default:
      state_ = State::Between;
      given_ |= static_cast<unsigned>(digitOf(byte));
      return Item{given_ == (sum_ & 0xff) ? Kind::Packet : Kind::Damaged, std::move(payload_)};
  }
}

std::string stopReply(DebugEvent event, const DebugTarget& target) {
  unsigned signal = 5;  // SIGTRAP
  if (event == DebugEvent::Interrupted) signal = 2;
  if (event == DebugEvent::UndefinedInstruction) signal = 4;
  if (event == DebugEvent::Ending) signal = 6;  // SIGABRT
  if (event == DebugEvent::Fault) signal = 11;
  if (event == DebugEvent::Watchpoint) {
    const WatchedRange at = target.accessed();
    return fmt::format("T{:02x}{}:{:x};thread:1;", signal,
                       at.reads && at.writes ? "awatch"
                       : at.writes           ? "watch"
                                             : "rwatch",
                       at.address);
  }
  if (event == DebugEvent::Beginning) return fmt::format("T{:02x}replaylog:begin;thread:1;", signal);
  return fmt::format("T{:02x}thread:1;", signal);
}

std::string consolePacket(std::string_view line) {
  return "O" + hexOf(std::as_bytes(std::span(line))) + "0a";
}

PacketAnswer answerPacket(std::string_view packet, DebugEvent event, DebugTarget& target) {
  if (packet.empty()) return {};
  const std::string_view rest = packet.substr(1);
  switch (packet[0]) {
    case '?':
      return {stopReply(event, target)};
    case 'g':
      return {readRegisters(target.registers())};
    case 'G':
      return {writeRegisters(target.registers(), rest)};
    case 'p':
      return {readRegister(target.registers(), rest)};
    case 'P':
      return {writeRegister(target.registers(), rest)};
    case 'm':
      return {readMemory(rest, target)};
    case 'M':
    case 'X':
      return {writeMemory(rest, packet[0] == 'X', target)};
    case 'Z':
    case 'z':
      return rest.empty() ? PacketAnswer{kBadPacket}
                          : PacketAnswer{stopPoint(rest, packet[0] == 'Z', target)};
    case 'c':
    case 'C':
      return resume(packet, Debugger::Next::Continue, target.registers());
    case 's':
    case 'S':
      return resume(packet, Debugger::Next::Step, target.registers());
    case 'v':
      if (packet == "vCont?") return {"vCont;c;C;s;S"};
      if (packet.starts_with("vCont;c") || packet.starts_with("vCont;C"))
        return goOn(Debugger::Next::Continue);
      if (packet.starts_with("vCont;s") || packet.starts_with("vCont;S")) return goOn(Debugger::Next::Step);
      if (packet.starts_with("vKill")) {
        PacketAnswer answer = goOn(Debugger::Next::Kill);
        answer.text = kOk;
        answer.silent = false;
        return answer;
      }
      return {};
    case 'b':
      return packet == "bs"   ? goOn(Debugger::Next::StepBack)
             : packet == "bc" ? goOn(Debugger::Next::ContinueBack)
                              : PacketAnswer{};
    case 'D':
      return goOn(Debugger::Next::Detach);
    case 'k':
      return goOn(Debugger::Next::Kill);
    case 'H':
    case 'T':
      return {kOk};  // there is one thread
    case 'q':
    case 'Q':
      return question(packet);
    default:
      return {};
  }
}

}  // namespace carina::platform
