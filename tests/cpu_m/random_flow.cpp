// SPDX-License-Identifier: Apache-2.0
#include "random_flow.hpp"

#include <array>
#include <bit>
#include <optional>
#include <stdexcept>
#include <string_view>

namespace carina::cpu_m {
namespace {

constexpr uint32_t kStack = 0x30040000;  // where the stack pointer is between the cases
constexpr uint32_t kIcsr = 0xe000ed04, kPendSvSet = 1u << 28, kPendSvClear = 1u << 27;
constexpr uint32_t kTrampolines = 8, kTrampolineBytes = 8;
constexpr uint32_t kNop = 0xbf00;

constexpr uint32_t trampoline(uint32_t i) {
  return RandomImage::kBase + 0x100 + i * kTrampolineBytes;
}

class FlowWriter {
 public:
  FlowWriter(const Flow& flow, const CompiledEncoding& row) : flow_(flow), out_(flow.out), row_(row) {}

  void direct();
  void compareBranch();
  void throughRegister();
  void table();
  void intoPc();
  void loopForever();
  void loop();
  void leaveTail();
  void plain();
  void sendAndWait();
  void waitForInterrupt();
  void supervisorCall();
  void breakpoint();
  void undefined();
  void changeMasks();
  void readSpecial();
  void writeSpecial();
  void testTarget();
  void exclusive();
  void onStack();
  void lazyContext();
  void securePayload();
  void clearFloats();

 private:
  uint32_t low() { return out_.pick(8); }
  uint32_t any() { return out_.pick(13); }
  uint32_t anyBut(uint32_t other) {
    const uint32_t reg = out_.pick(12);
    return reg + (reg >= other ? 1 : 0);
  }
  void filler(uint32_t most = 2) {
    for (uint32_t i = out_.pick(most + 1); i > 0; --i) flow_.filler();
  }
  /// The instruction under test.
  void emit(uint32_t code) {
    out_.put(code, row_.wide);
    ++out_.image.flowInstructions;
    ++out_.image.instructions;
  }
  /// The row's bits with random other bits that the decoder accepts here; with `it`, as the last of an IT
  /// block.
  std::optional<Op> randomCode(bool it = false);
  /// The decoded instruction at an address; nullopt if the decoder rejects it.
  std::optional<Op> decoded(uint32_t code, uint32_t address, bool it = false) const;
  /// Sometimes writes an IT whose block ends with the next instruction; returns whether it did.
  bool maybeIt(uint32_t code);
  uint32_t branchCode(uint32_t bits, uint32_t from, uint32_t to) const;
  /// MOV reg, SP and MOV SP, reg.
  void fromSp(uint32_t reg) { out_.half(0x4668 | reg); }
  void toSp(uint32_t reg) { out_.half(0x4685 | reg << 3); }
  void keepLr() {
    if (out_.pick(2) != 0) out_.half(0x4670 | low());  // mov reg, lr
  }
  void setSp(uint32_t value) {
    const uint32_t reg = any();
    out_.constant(reg, value);
    toSp(reg);
  }
  void restoreSp() {
    fromSp(low());
    const uint32_t reg = 8 + out_.pick(5);
    out_.constant(reg, kStack);
    toSp(reg);
  }
  /// Writes a word of memory.
  void storeWord(uint32_t address, uint32_t value) {
    const uint32_t reg = low(), base = (reg + 1) % 8;
    out_.constant(reg, value);
    out_.constant(base, address);
    out_.half(0x6000 | base << 3 | reg);  // str reg, [base]
  }
  uint32_t middle() const { return flow_.scratch + RandomImage::kScratch / 2; }
  std::string_view text() const { return row_.row->text; }

  void msr(uint32_t number, uint32_t mask, uint32_t reg) {
    out_.wide(0xf3808000 | reg << 16 | mask << 10 | number);
  }
  void mrs(uint32_t reg, uint32_t number) { out_.wide(0xf3ef8000 | reg << 8 | number); }

  const Flow& flow_;
  CodeWriter& out_;
  const CompiledEncoding& row_;
};

// --- how the rows are used

struct Kind {
  std::string_view name;  // up to the first space of a row's text, or all of it
  void (FlowWriter::*write)();
};
constexpr Kind kKinds[] = {
    {"b{c}", &FlowWriter::direct},
    {"b{c}.w", &FlowWriter::direct},
    {"b", &FlowWriter::direct},
    {"b.w", &FlowWriter::direct},
    {"bl", &FlowWriter::direct},
    {"cbz", &FlowWriter::compareBranch},
    {"cbnz", &FlowWriter::compareBranch},
    {"bx", &FlowWriter::throughRegister},
    {"blx", &FlowWriter::throughRegister},
    {"bxns", &FlowWriter::throughRegister},
    {"blxns", &FlowWriter::throughRegister},
    {"tbb", &FlowWriter::table},
    {"tbh", &FlowWriter::table},
    {"le {label}", &FlowWriter::loopForever},
    {"le lr, {label}", &FlowWriter::loop},
    {"letp", &FlowWriter::loop},
    {"dls", &FlowWriter::loop},
    {"dlstp", &FlowWriter::loop},
    {"wls", &FlowWriter::loop},
    {"wlstp", &FlowWriter::loop},
    {"lctp", &FlowWriter::leaveTail},
    {"yield", &FlowWriter::plain},
    {"nop", &FlowWriter::plain},
    {"hint.w", &FlowWriter::plain},
    {"dsb", &FlowWriter::plain},
    {"dmb", &FlowWriter::plain},
    {"isb", &FlowWriter::plain},
    {"sev", &FlowWriter::plain},
    {"sev.w", &FlowWriter::plain},
    {"clrex", &FlowWriter::plain},
    {"bf", &FlowWriter::plain},
    {"bfcsel", &FlowWriter::plain},
    {"bfx", &FlowWriter::plain},
    {"bfl", &FlowWriter::plain},
    {"sg", &FlowWriter::plain},
    {"wfe", &FlowWriter::sendAndWait},
    {"wfe.w", &FlowWriter::sendAndWait},
    {"wfi", &FlowWriter::waitForInterrupt},
    {"wfi.w", &FlowWriter::waitForInterrupt},
    {"svc", &FlowWriter::supervisorCall},
    {"bkpt", &FlowWriter::breakpoint},
    {"udf {#i}", &FlowWriter::undefined},
    {"udf.w", &FlowWriter::undefined},
    {"cps", &FlowWriter::changeMasks},
    {"mrs", &FlowWriter::readSpecial},
    {"msr", &FlowWriter::writeSpecial},
    {"tt", &FlowWriter::testTarget},
    {"strex", &FlowWriter::exclusive},
    {"strexb", &FlowWriter::exclusive},
    {"strexh", &FlowWriter::exclusive},
    {"stlex", &FlowWriter::exclusive},
    {"stlexb", &FlowWriter::exclusive},
    {"stlexh", &FlowWriter::exclusive},
    {"push", &FlowWriter::onStack},
    {"pop", &FlowWriter::onStack},
    {"str {Rd}, [sp, {#i}]", &FlowWriter::onStack},
    {"ldr {Rd}, [sp, {#i}]", &FlowWriter::onStack},
    {"add {Rd}, sp, {#i}", &FlowWriter::onStack},
    {"add sp, {#i}", &FlowWriter::onStack},
    {"sub sp, {#i}", &FlowWriter::onStack},
    {"vlstm", &FlowWriter::lazyContext},
    {"vlldm", &FlowWriter::lazyContext},
    {"vldr fpcxtns, {mem}", &FlowWriter::securePayload},
    {"vstr fpcxtns, {mem}", &FlowWriter::securePayload},
    {"vldr fpcxts, {mem}", &FlowWriter::securePayload},
    {"vstr fpcxts, {mem}", &FlowWriter::securePayload},
    {"vscclrm", &FlowWriter::clearFloats},
};
/// Stores relative to the program counter, which do not exist; their rows have no operands.
constexpr std::string_view kUndefinedStores[] = {"strb", "strh", "str"};

void (FlowWriter::*kindOf(const CompiledEncoding& row))() {
  const std::string_view text = row.row->text, name = text.substr(0, text.find(' '));
  for (const std::string_view store : kUndefinedStores) {
    if (text == store) return &FlowWriter::undefined;
  }
  for (const Kind& kind : kKinds) {
    if (kind.name == text || kind.name == name) return kind.write;
  }
  return nullptr;
}

// --- codes

std::optional<Op> FlowWriter::decoded(uint32_t code, uint32_t address, bool it) const {
  const bool wide = row_.wide;
  const CompiledEncoding* row = findEncoding(code, wide, flow_.features);
  if (row == nullptr) return std::nullopt;
  Op op;
  op.code = code;
  op.address = address;
  op.size = wide ? 4 : 2;
  DecodeContext context;
  context.features = flow_.features;
  context.inIt = context.lastInIt = it;
  if (decodeInto(op, *row, context) != Decoded::Ok) return std::nullopt;
  return op;
}

std::optional<Op> FlowWriter::randomCode(bool it) {
  for (int tries = 0; tries < 500; ++tries) {
    const uint32_t code = ((out_.word() & ~row_.mask) | row_.value) & (row_.wide ? ~0u : 0xffffu);
    if (findEncoding(code, row_.wide, flow_.features) != &row_) continue;
    if (auto op = decoded(code, out_.here(), it)) return op;
  }
  return std::nullopt;
}

bool FlowWriter::maybeIt(uint32_t code) {
  if (out_.pick(3) != 0 || !decoded(code, out_.here() + 2, true)) return false;
  out_.half(0xbf08 | out_.pick(14) << 4);
  ++out_.image.instructions;
  return true;
}

/// The code of a branch of this row; `bits` are those that encode neither its target nor the row.
uint32_t FlowWriter::branchCode(uint32_t bits, uint32_t from, uint32_t to) const {
  const uint32_t offset = to - from - 4, half = offset >> 1;
  const auto bit = [offset](uint32_t i) { return offset >> i & 1; };
  uint32_t code = row_.value | bits;
  const std::string_view name = text().substr(0, text().find(' '));
  if (name == "b{c}") code |= half & 0xff;
  if (name == "b") code |= half & 0x7ff;
  if (name == "cbz" || name == "cbnz") code |= bit(6) << 9 | (half & 31) << 3;
  if (name == "b{c}.w")
    code |= bit(20) << 26 | bit(19) << 11 | bit(18) << 13 | (offset >> 12 & 63) << 16 | (half & 0x7ff);
  if (name == "b.w" || name == "bl") {
    const uint32_t s = bit(24);
    code |= s << 26 | (1 ^ bit(23) ^ s) << 13 | (1 ^ bit(22) ^ s) << 11 | (offset >> 12 & 0x3ff) << 16 |
            (half & 0x7ff);
  }
  if (name == "le" || name == "letp" || name.starts_with("wls")) {
    const uint32_t distance = name.starts_with("wls") ? offset : 0 - offset;
    code |= (distance >> 1 & 1) << 11 | (distance >> 2 & 0x3ff) << 1;
  }
  const auto op = decoded(code, from);
  if (!op || op->imm != to)
    throw std::logic_error("a branch does not lead where it should: " + std::string(text()));
  return code;
}

// --- branches

void FlowWriter::direct() {
  const bool conditional = text().starts_with("b{c}");
  const uint32_t condition = out_.pick(14);
  const uint32_t bits = conditional ? condition << (row_.wide ? 22 : 8) : 0;
  const uint32_t bytes = row_.wide ? 4 : 2;
  const auto far = trampoline(out_.pick(kTrampolines));
  const bool reaches =
      row_.wide && (!conditional || out_.here() + 64 - far < 1u << 20) && out_.here() - far < 15u << 20;
  const uint32_t kind = out_.pick(reaches ? 3 : 2);
  if (kind == 2) {  // to a function, which returns to LR
    const bool it = maybeIt(row_.value | bits);
    const uint32_t at = out_.here() + (text().starts_with("bl") ? 0 : 8);
    if (!text().starts_with("bl")) {
      if (it) out_.image.code.resize(out_.image.code.size() - 2);
      const uint32_t from = out_.here() + 8;
      out_.constant(kLr, (from + bytes) | 1);
      emit(branchCode(bits, from, far));
      return;
    }
    emit(branchCode(bits, at, far));
    keepLr();
    return;
  }
  if (kind == 1) {  // backward: over the target, then back to it
    const uint32_t over = out_.here();
    out_.half(0);
    const uint32_t back = out_.here();
    filler();
    const uint32_t leave = out_.here();
    out_.wide(0);
    out_.patch(over, 0xe000 | ((out_.here() - over - 4) >> 1 & 0x7ff), false);
    maybeIt(row_.value | bits);
    emit(branchCode(bits, out_.here(), back));
    filler();
    out_.half(kNop);
    out_.patch(leave, 0xf000b800 | ((out_.here() - leave - 4) >> 1 & 0x7ff), true);
    keepLr();
    return;
  }
  maybeIt(row_.value | bits);
  const uint32_t at = out_.here();
  emit(row_.value);
  filler();
  out_.half(kNop);
  out_.patch(at, branchCode(bits, at, out_.here()), row_.wide);
  keepLr();
}

void FlowWriter::compareBranch() {
  const uint32_t reg = low();
  if (out_.pick(2) != 0) out_.half(0x2000 | reg << 8 | out_.pick(2));  // movs reg, #0 or #1
  const uint32_t at = out_.here();
  emit(row_.value);
  filler();
  out_.half(kNop);
  out_.patch(at, branchCode(reg, at, out_.here()), false);
}

/// The world does not change: bit 0 of the address is 1.
void FlowWriter::throughRegister() {
  const bool links = text().starts_with("blx");
  const uint32_t reg = any(), code = row_.value | reg << 3;
  const bool function = links && out_.pick(2) != 0;
  const uint32_t value = out_.here();
  out_.constant(reg, function ? trampoline(out_.pick(kTrampolines)) | 1 : 0);
  maybeIt(code);
  emit(code);
  if (!function) {
    filler();
    out_.half(kNop);
    out_.patchConstant(value, reg, out_.here() | 1);
  }
  keepLr();
  if (out_.pick(3) == 0) intoPc();
}

void FlowWriter::table() {
  const bool halves = text().starts_with("tbh");
  const uint32_t index = any(), entries = 1 + out_.pick(4), choice = out_.pick(entries);
  const bool relative = out_.pick(2) != 0;
  const uint32_t base = relative ? kPc : anyBut(index);
  out_.movHalf(0xf2400000, index, choice);
  const uint32_t setBase = out_.here();
  if (!relative) out_.constant(base, 0);
  const uint32_t at = out_.here();
  emit(row_.value | base << 16 | index);
  const uint32_t start = out_.here(), bytes = (halves ? 2 * entries : entries + 1) & ~1u;
  for (uint32_t i = 0; i < bytes; i += 2) out_.half(0);
  out_.image.data.push_back({start, start + bytes});
  std::vector<uint32_t> leave;
  for (uint32_t i = 0; i < entries; ++i) {
    const uint32_t offset = (out_.here() - at - 4) / 2;
    const size_t place = start - RandomImage::kBase + (halves ? 2 * i : i);
    out_.image.code[place] = static_cast<uint8_t>(offset);
    if (halves) out_.image.code[place + 1] = static_cast<uint8_t>(offset >> 8);
    filler(1);
    leave.push_back(out_.here());
    out_.wide(0);
  }
  for (const uint32_t from : leave)
    out_.patch(from, 0xf000b800 | ((out_.here() - from - 4) >> 1 & 0x7ff), true);
  if (!relative) out_.patchConstant(setBase, base, start);
}

/// Moves, additions and loads whose result is the program counter.
void FlowWriter::intoPc() {
  enum Way : uint32_t { kMove, kAdd, kLoad, kLoadBefore, kMultiple, kMultipleBefore, kPop, kWays };
  const uint32_t way = out_.pick(kWays), reg = 8 + out_.pick(5), offset = out_.pick(128);
  // Lists of one register are UNPREDICTABLE except for POP.
  const uint32_t list = (out_.word() & 0xff) | (way == kPop ? 0 : 1);
  const uint32_t before = 4 * static_cast<uint32_t>(std::popcount(list));
  const bool multiple = way >= kMultiple;
  // First the value to move or store: MOVW and MOVT, filled in below.
  const uint32_t value = out_.here();
  if (way <= kAdd) out_.constant(reg, 0);
  if (way > kAdd) storeWord(multiple ? middle() + before : middle(), 0);
  uint32_t code = 0x4687 | reg << 3;
  if (way == kAdd) code = 0x4487 | reg << 3;
  if (way == kLoad) code = 0xf8d0f000 | reg << 16 | offset;
  if (way == kLoadBefore) code = 0xf850fd00 | reg << 16 | offset;
  if (way == kMultiple) code = 0xe8b08000 | reg << 16 | list;
  if (way == kMultipleBefore) code = 0xe9108000 | reg << 16 | list;
  if (way == kPop) code = 0xbd00 | list;
  if (way == kLoad) out_.constant(reg, middle() - offset);
  if (way == kLoadBefore) out_.constant(reg, middle() + offset);
  if (way == kMultiple) out_.constant(reg, middle());
  if (way == kMultipleBefore) out_.constant(reg, middle() + before + 4);
  if (way == kPop) setSp(middle());
  const uint32_t at = out_.here();
  out_.put(code, code > 0xffff);
  ++out_.image.instructions;
  ++out_.image.flowInstructions;
  filler();
  out_.half(kNop);
  const uint32_t target = out_.here();
  const uint32_t into = out_.image.code[value - RandomImage::kBase + 3] & 15;
  out_.patchConstant(value, into, way == kMove ? target : way == kAdd ? target - at - 4 : target | 1);
  if (way == kPop) restoreSp();
}

/// LE without a count, with a counter of its own.
void FlowWriter::loopForever() {
  const uint32_t count = low(), other = (count + 1 + out_.pick(7)) % 8;
  out_.half(0x2001 | count << 8 | out_.pick(4));  // movs count, #n
  const uint32_t back = out_.here();
  out_.half(0x3000 | other << 8 | out_.pick(256));  // adds other, #n
  out_.half(0x3801 | count << 8);                   // subs count, #1
  out_.half(0xd001);                                // beq to after LE
  emit(branchCode(0, out_.here(), back));
}

void FlowWriter::loop() {
  const bool ends = text().starts_with("le"), tail = text().find("tp") != std::string_view::npos;
  const uint32_t reg = any(), other = low(), size = out_.pick(4);
  out_.movHalf(0xf2400000, reg, out_.pick(tail ? 40 : 5));
  const uint32_t start = out_.here();
  const bool whiles = text().starts_with("wls");
  if (ends) {
    out_.wide((tail ? 0xf000e001 | size << 20 : 0xf040e001) | reg << 16);
  } else {
    emit(row_.value | (tail ? size << 20 : 0) | reg << 16);
  }
  const uint32_t back = out_.here();
  out_.half(0x3000 | other << 8 | out_.pick(256));
  const uint32_t end = out_.here();
  if (ends) {
    emit(branchCode(0, end, back));
  } else {
    const uint32_t distance = end + 4 - back;
    out_.wide((tail ? 0xf01fc001 : 0xf00fc001) | (distance >> 1 & 1) << 11 | distance >> 2 << 1);
  }
  if (whiles) out_.patch(start, branchCode((tail ? size << 20 : 0) | reg << 16, start, out_.here()), true);
  out_.half(0x4670 | low());
  // A loop that is not entered leaves LTPSIZE unchanged; nothing after it depends on the size.
}

void FlowWriter::leaveTail() {
  const uint32_t reg = any();
  out_.wide(0xf000e001 | out_.pick(4) << 20 | reg << 16);  // dlstp lr, reg
  emit(row_.value);
}

// --- stops and hints

void FlowWriter::plain() {
  if (const auto op = randomCode()) emit(op->code);
}
/// The event is already registered, so waiting ends at once.
void FlowWriter::sendAndWait() {
  out_.half(0xbf40);
  emit(row_.value);
}
/// Likewise with a pending interrupt that PRIMASK masks.
void FlowWriter::waitForInterrupt() {
  out_.half(0xb672);  // cpsid i
  storeWord(kIcsr, kPendSvSet);
  emit(row_.value);
  storeWord(kIcsr, kPendSvClear);
  out_.half(0xb662);
}
void FlowWriter::supervisorCall() {
  emit(row_.value | out_.pick(255));
}
void FlowWriter::breakpoint() {
  constexpr uint32_t kSemihosting = 0xab;
  const uint32_t number = out_.pick(255);
  emit(row_.value | (number + (number >= kSemihosting ? 1 : 0)));
}
void FlowWriter::undefined() {
  for (;;) {
    const uint32_t code = ((out_.word() & ~row_.mask) | row_.value) & (row_.wide ? ~0u : 0xffffu);
    if (findEncoding(code, row_.wide, flow_.features) != &row_) continue;
    emit(code);
    return;
  }
}

// --- special registers

struct SpecialRegister {
  uint32_t number;
  uint32_t bits;   // that are written here
  uint32_t value;  // between the cases
};
/// MSP, PSP, their limits, masks and CONTROL, of both worlds. Of BASEPRI and FAULTMASK only the bits that
/// every core has; nPRIV of CONTROL separately (below); FPCA of a world without the unit is not written.
constexpr SpecialRegister kSpecials[] = {
    {8, ~0u, kStack}, {9, ~0u, 0},  {10, 0xfff8, 0}, {11, ~0u, 0},   {16, 1, 0},     {17, 0xe0, 0},
    {18, 0xe0, 0},    {19, 1, 0},   {20, 0xe, 12},   {0x88, ~0u, 0}, {0x89, ~0u, 0}, {0x8a, ~0u, 0},
    {0x8b, ~0u, 0},   {0x90, 1, 0}, {0x91, 0xe0, 0}, {0x93, 1, 0},   {0x94, 3, 0},
};
constexpr uint32_t kControl = 20, kBasepri = 17, kBasepriMax = 18, kStackOfNonSecure = 0x98;

void FlowWriter::changeMasks() {
  const auto op = randomCode();
  if (!op) return;
  emit(op->code);
  mrs(any(), 16);
  mrs(any(), 19);
  out_.half(0xb663);  // cpsie if
}

void FlowWriter::readSpecial() {
  constexpr uint32_t kStatus[] = {0, 1, 2, 3, 5, 6, 7};
  const uint32_t kind = out_.pick(3);
  const uint32_t number = kind == 0   ? kStatus[out_.pick(std::size(kStatus))]
                          : kind == 1 ? kSpecials[out_.pick(std::size(kSpecials))].number
                                      : kStackOfNonSecure;
  emit(row_.value | any() << 8 | number);
}

void FlowWriter::writeSpecial() {
  const uint32_t reg = any();
  const uint32_t kind = out_.pick(4);
  if (kind == 0) {  // flags
    emit(row_.value | reg << 16 | (1 + out_.pick(3)) << 10 | out_.pick(4));
    return;
  }
  if (kind == 1) {  // what an unprivileged program reads and writes
    out_.constant(reg, 13);
    msr(kControl, 2, reg);
    const SpecialRegister& other = kSpecials[out_.pick(std::size(kSpecials))];
    emit(row_.value | any() << 16 | 2 << 10 | other.number);
    mrs(any(), other.number);
    mrs(any(), kControl);
    out_.half(0xb600 | 0x62 | out_.pick(2) << 4);  // cps
    mrs(any(), 16);
    out_.half(0xdf00 | kPrivilegedCall);
    return;
  }
  const SpecialRegister& special = kSpecials[out_.pick(std::size(kSpecials))];
  out_.constant(reg, out_.word() & special.bits);
  if (special.number == kBasepriMax) {  // can only make it stricter
    const uint32_t other = anyBut(reg);
    out_.constant(other, out_.word() & special.bits);
    msr(kBasepri, 2, other);
  }
  emit(row_.value | reg << 16 | 2 << 10 | special.number);
  mrs(any(), special.number);
  if (special.number == kControl || special.number == 8 || special.number == 9) fromSp(low());
  if (special.number == 0x94 || special.number == 0x88 || special.number == 0x89)
    mrs(any(), kStackOfNonSecure);
  const uint32_t back = any();
  out_.constant(back, special.value);
  msr(special.number == kBasepriMax ? kBasepri : special.number, 2, back);
}

void FlowWriter::testTarget() {
  constexpr uint32_t kPlaces[] = {0, 0x10000000, 0x20000000, 0x30000000, 0x40000000, 0x60000000, 0xe000e000};
  const uint32_t reg = any();
  out_.constant(reg, kPlaces[out_.pick(std::size(kPlaces))] + out_.pick(4096));
  emit(row_.value | reg << 16 | any() << 8 | (out_.word() & 0xc0));
}

void FlowWriter::exclusive() {
  for (int tries = 0; tries < 100; ++tries) {
    const auto op = randomCode();
    if (!op) return;
    const bool different = op->d != op->n && op->d != op->a && op->a != op->n;
    if (!different || op->d >= kSp || op->n >= kSp || op->a >= kSp) continue;
    out_.constant(op->n, middle() - op->imm);
    if (out_.pick(3) == 0) {
      out_.wide(0xf3bf8f2f);  // clrex
    } else {
      // LDREX, LDREXB or LDREXH of the same address, into a register that is not the base.
      const uint32_t into = anyBut(op->n), base = uint32_t{op->n} << 16;
      const bool byte = text()[5] == 'b', halfword = text()[5] == 'h';
      const uint32_t plain = row_.mask & 0xf0 ? 0xe8d00f6f : 0xe8500f00 | op->imm >> 2;
      if (byte || halfword) {
        out_.wide((byte ? 0xe8d00f4f : 0xe8d00f5f) | base | into << 12);
      } else {
        out_.wide((text().starts_with("stlex") ? 0xe8d00fef : plain) | base | into << 12);
      }
      filler(1);
      out_.constant(op->n, middle() - op->imm);
    }
    emit(op->code);
    return;
  }
}

// --- the stack

void FlowWriter::onStack() {
  const auto op = randomCode();
  if (!op) return;
  const bool pops = text().starts_with("pop"), list = pops || text().starts_with("push");
  if (pops && (op->imm >> kPc & 1) != 0) {
    intoPc();
    return;
  }
  setSp(list ? middle() : middle() - (text().find('[') == std::string_view::npos ? 0 : op->imm));
  emit(op->code);
  restoreSp();
}

// --- what Secure programs do with floating-point state

/// VLSTM defers storing the state or stores it, VLLDM restores it.
void FlowWriter::lazyContext() {
  const uint32_t reg = any();
  const uint32_t area = (flow_.scratch + 7) & ~7u;
  const bool stores = text().starts_with("vlstm");
  constexpr uint32_t kFpscr = 64, kVpr = 68;  // in the area; without a context VLLDM loads what is there
  storeWord(area + kFpscr, (out_.word() & 0xf0000000) | 0x00040000);
  storeWord(area + kVpr, out_.word() & 0x00ffffff);
  out_.constant(reg, area);
  if (stores) {
    emit(row_.value | reg << 16);
  } else {
    out_.wide(0xec200a00 | reg << 16);
  }
  if (out_.pick(2) != 0) out_.wide(0xeeb00a40);  // vmov s0, s0: triggers the deferred store
  out_.constant(reg, area);
  if (stores) {
    out_.wide(0xec300a00 | reg << 16);
  } else {
    emit(row_.value | reg << 16);
  }
}

void FlowWriter::securePayload() {
  for (int tries = 0; tries < 100; ++tries) {
    const auto op = randomCode();
    if (!op) return;
    if (op->n >= kSp) continue;
    // For loads: a word as a store would have written it.
    storeWord(middle(), (out_.word() & 0x87f80000) | 0x00040000);  // without a loop's tail
    out_.constant(op->n, op->x != 0 ? middle() - op->imm : middle());
    emit(op->code);
    return;
  }
}

/// After a VSCCLRM without a context to clear, QEMU assumes that there is one up to the end of its
/// translation block: an ISB ends the block.
void FlowWriter::clearFloats() {
  const auto op = randomCode();
  if (!op) return;
  emit(op->code);
  out_.wide(0xf3bf8f6f);
}

}  // namespace

bool isFlow(const CompiledEncoding& row) {
  return kindOf(row) != nullptr;
}

void writeFlow(const Flow& flow, const CompiledEncoding& row) {
  FlowWriter writer(flow, row);
  (writer.*kindOf(row))();
}

void writeFlowHandlers(RandomImage& image) {
  // ldr r0, [sp, #24]; ldrb r0, [r0, #-2]; str r0, [sp, #16]; cmp r0, #255; bne .+6; movs r0, #0; msr
  // control, r0; bx lr
  constexpr uint16_t kSvc[] = {0x9806, 0xf810, 0x0c02, 0x9004, 0x28ff,
                               0xd102, 0x2000, 0xf380, 0x8814, 0x4770};
  // ldr r0, [sp, #24]; ldrh r1, [r0]; lsrs r2, r1, #8; cmp r2, #0xbe; bne exit; adds r0, #2; str r0, [sp,
  // #24]; str r1, [sp, #16]; bx lr; exit: movs r0, #SYS_EXIT; movs r1, #0; bkpt 0xab
  constexpr uint16_t kHardFault[] = {0x9806, 0x8801, 0x0a0a, 0x2abe, 0xd103, 0x3002,
                                     0x9006, 0x9104, 0x4770, 0x2018, 0x2100, 0xbeab};
  // ldr r0, [sp, #24]; ldrh r1, [r0]; adds r0, #2; lsrs r1, r1, #11; cmp r1, #0x1d; blo .+2; adds r0, #2;
  // str r0, [sp, #24]; ldr r0, =CFSR; ldr r1, [r0]; str r1, [r0]; str r1, [sp, #16]; bx lr
  constexpr uint16_t kUsageFault[] = {0x9806, 0x8801, 0x3002, 0x0ac9, 0x291d, 0xd300, 0x3002, 0x9006,
                                      0x4802, 0x6801, 0x6001, 0x9104, 0x4770, 0x0000, 0xed28, 0xe000};
  uint32_t at = 0x90;
  image.vectors.resize(0x100);
  const auto handler = [&](uint32_t exception, std::span<const uint16_t> code) {
    const uint32_t entry = (RandomImage::kVectors + at) | 1;
    std::memcpy(&image.vectors[4 * exception], &entry, 4);
    std::memcpy(&image.vectors[at], code.data(), code.size_bytes());
    at += (static_cast<uint32_t>(code.size_bytes()) + 3) & ~3u;
  };
  handler(11, kSvc);
  handler(3, kHardFault);
  handler(6, kUsageFault);
}

void writeTrampolines(CodeWriter& out) {
  for (uint32_t i = 0; i < kTrampolines; ++i) {
    out.patch(trampoline(i), 0x3001 | i << 8 | 16 * i, false);  // adds ri, #16 i + 1
    out.patch(trampoline(i) + 2, 0x4770, false);                // bx lr
  }
}

}  // namespace carina::cpu_m
