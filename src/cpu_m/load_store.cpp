// SPDX-License-Identifier: Apache-2.0
// 32-bit loads and stores, exclusives, table branches and CLRM.
#include "cpu_m/load_store.hpp"

namespace carina::cpu_m {
namespace {

// --- one register

enum class Index : uint8_t { Pre, Post };

/// With write-back: Op::imm is the signed offset.
template <typename T, Index How>
const Op* loadIndexed(Core& core, const Op* op) {
  core.at(op);
  State& s = core.state;
  const uint32_t base = s.r[op->n], moved = base + op->imm;
  checkBase(core, op->n, moved);
  const uint32_t value = loadExtended<T>(core, How == Index::Pre ? moved : base);
  s.r[op->n] = moved;
  s.r[op->d] = value;
  return op + 1;
}
template <typename T, Index How>
const Op* storeIndexed(Core& core, const Op* op) {
  core.at(op);
  State& s = core.state;
  const uint32_t base = s.r[op->n], moved = base + op->imm;
  checkBase(core, op->n, moved);
  core.memory.store<T>(How == Index::Pre ? moved : base, static_cast<T>(s.r[op->d]));
  s.r[op->n] = moved;
  return op + 1;
}

/// Loads of the program counter; those with write-back update the base before they branch.
const Op* loadPcOffset(Core& core, const Op* op) {
  core.at(op);
  return core.interwork(op, core.memory.load<uint32_t>(core.state.r[op->n] + op->imm));
}
const Op* loadPcRegister(Core& core, const Op* op) {
  core.at(op);
  return core.interwork(op, core.memory.load<uint32_t>(core.state.r[op->n] + (core.state.r[op->m] << op->x)));
}
const Op* loadPcLiteral(Core& core, const Op* op) {
  core.at(op);
  return core.interwork(op, core.memory.load<uint32_t>(op->imm));
}
template <Index How>
const Op* loadPcIndexed(Core& core, const Op* op) {
  core.at(op);
  State& s = core.state;
  const uint32_t base = s.r[op->n], moved = base + op->imm;
  checkBase(core, op->n, moved);
  const uint32_t target = core.memory.load<uint32_t>(How == Index::Pre ? moved : base);
  s.r[op->n] = moved;
  return core.interwork(op, target);
}

/// Whether Op::d is not allowed as Rt of a load or store of type T.
template <typename T>
bool badTarget(const Op& op, bool store) {
  if (sizeof(T) == 4) return store && op.d == kPc;
  return isBad(op.d);
}

template <typename T, bool Store>
Decoded prepareOffset(Op& op, DecodeContext& context) {
  if (badTarget<T>(op, Store)) return Decoded::Unpredictable;
  if (op.d == kPc) {
    op.run = loadPcOffset;
    context.branches = true;
    context.targetMustBeLandingPad = op.n != kSp;
  }
  return Decoded::Ok;
}
/// The form with P, U and W in bits 10:8.
template <typename T, bool Store>
Decoded prepareIndexed(Op& op, DecodeContext& context) {
  const bool pre = (op.code & 1u << 10) != 0, up = (op.code & 1u << 9) != 0,
             writeBack = (op.code & 1u << 8) != 0;
  if (!pre && !writeBack) return Decoded::Undefined;
  if (!up) op.imm = 0u - op.imm;
  if (badTarget<T>(op, Store) || (writeBack && op.n == op.d)) return Decoded::Unpredictable;
  const bool jump = op.d == kPc;
  context.branches = jump;
  context.targetMustBeLandingPad = jump && op.n != kSp;
  if (!writeBack) {
    if (jump) op.run = loadPcOffset;
    return Decoded::Ok;
  }
  if constexpr (Store) {
    op.run = pre ? storeIndexed<T, Index::Pre> : storeIndexed<T, Index::Post>;
  } else {
    op.run = pre ? loadIndexed<T, Index::Pre> : loadIndexed<T, Index::Post>;
    if (jump) op.run = pre ? loadPcIndexed<Index::Pre> : loadPcIndexed<Index::Post>;
  }
  return Decoded::Ok;
}
/// LDRT and similar: accesses memory as unprivileged code.
template <Run Execute>
const Op* unprivileged(Core& core, const Op* op) {
  struct Restore {
    Memory& memory;
    uint32_t context;
    ~Restore() { memory.select(context); }
  } restore{core.memory, core.memory.context()};
  core.memory.select(core.unprivilegedContext());
  return Execute(core, op);
}
Decoded prepareUnprivileged(Op& op, DecodeContext&) {
  return isBad(op.d) ? Decoded::Unpredictable : Decoded::Ok;
}
template <typename T, bool Store>
Decoded prepareRegisterOffset(Op& op, DecodeContext& context) {
  if (badTarget<T>(op, Store) || isBad(op.m)) return Decoded::Unpredictable;
  if (op.d == kPc) {
    op.run = loadPcRegister;
    context.branches = true;
    context.targetMustBeLandingPad = op.n != kSp;
  }
  return Decoded::Ok;
}
template <typename T>
Decoded prepareLiteral(Op& op, DecodeContext& context) {
  const uint32_t base = (op.address + 4) & ~3u;
  op.imm = (op.code & 1u << 23) != 0 ? base + op.imm : base - op.imm;
  if (badTarget<T>(op, false)) return Decoded::Unpredictable;
  if (op.d == kPc) {
    op.run = loadPcLiteral;
    context.branches = context.targetMustBeLandingPad = true;
  }
  return Decoded::Ok;
}
Decoded prepareHint(Op&, DecodeContext& context) {
  context.idle = true;
  return Decoded::Ok;
}

// --- two registers: Op::d and Op::a

template <bool Before, bool WriteBack>
const Op* loadDual(Core& core, const Op* op) {
  core.at(op);
  State& s = core.state;
  const uint32_t base = s.r[op->n], moved = base + op->imm, address = Before ? moved : base;
  if constexpr (WriteBack) checkBase(core, op->n, moved);
  const uint32_t first = core.memory.loadAligned<uint32_t>(address);
  const uint32_t second = core.memory.load<uint32_t>(address + 4);
  if constexpr (WriteBack) s.r[op->n] = moved;
  s.r[op->d] = first;
  s.r[op->a] = second;
  return op + 1;
}
template <bool Before, bool WriteBack>
const Op* storeDual(Core& core, const Op* op) {
  core.at(op);
  State& s = core.state;
  const uint32_t base = s.r[op->n], moved = base + op->imm, address = Before ? moved : base;
  if constexpr (WriteBack) checkBase(core, op->n, moved);
  core.memory.storeAligned<uint32_t>(address, s.r[op->d]);
  core.memory.store<uint32_t>(address + 4, s.r[op->a]);
  if constexpr (WriteBack) s.r[op->n] = moved;
  return op + 1;
}
const Op* loadDualLiteral(Core& core, const Op* op) {
  core.at(op);
  const uint32_t first = core.memory.loadAligned<uint32_t>(op->imm);
  core.state.r[op->a] = core.memory.load<uint32_t>(op->imm + 4);
  core.state.r[op->d] = first;
  return op + 1;
}
template <bool Store>
Decoded prepareDual(Op& op, DecodeContext&) {
  const bool pre = (op.code & 1u << 24) != 0, up = (op.code & 1u << 23) != 0,
             writeBack = (op.code & 1u << 21) != 0;
  op.imm = up ? op.imm * 4 : 0u - op.imm * 4;
  if (isBad(op.d) || isBad(op.a) || (writeBack && (op.n == op.d || op.n == op.a)))
    return Decoded::Unpredictable;
  if (op.n == kPc) {
    if (Store || writeBack) return Decoded::Unpredictable;
    op.imm += (op.address + 4) & ~3u;
    op.run = loadDualLiteral;
    return op.d == op.a ? Decoded::Unpredictable : Decoded::Ok;
  }
  if (!Store && op.d == op.a) return Decoded::Unpredictable;
  if constexpr (Store) {
    op.run = !writeBack ? storeDual<true, false> : pre ? storeDual<true, true> : storeDual<false, true>;
  } else {
    op.run = !writeBack ? loadDual<true, false> : pre ? loadDual<true, true> : loadDual<false, true>;
  }
  return Decoded::Ok;
}

// --- several registers

/// LDMDB.
template <bool WriteBack, bool Jumps>
const Op* loadMultipleDown(Core& core, const Op* op) {
  core.at(op);
  State& s = core.state;
  const uint32_t base = s.r[op->n] - 4 * static_cast<uint32_t>(__builtin_popcount(op->imm));
  if constexpr (WriteBack) checkBase(core, op->n, base);
  if ((base & 3) != 0) throw Trap{StopReason::Unaligned, base};
  uint32_t values[16] = {}, count = 0;
  for (uint32_t rest = op->imm; rest != 0; rest &= rest - 1, ++count)
    values[count] = core.memory.load<uint32_t>(base + 4 * count);
  if constexpr (WriteBack) s.r[op->n] = base;
  uint32_t list = Jumps ? op->imm & ~(1u << 15) : op->imm, i = 0;
  for (; list != 0; list &= list - 1) s.r[__builtin_ctz(list)] = values[i++];
  if constexpr (Jumps) return core.interwork(op, values[i]);
  return op + 1;
}

template <bool Down>
Decoded prepareLoadMultiple(Op& op, DecodeContext& context) {
  const bool writeBack = (op.code & 1u << 21) != 0, jumps = (op.imm & 1u << 15) != 0;
  const bool bad = op.n == kPc || (op.imm & 1u << kSp) != 0 || __builtin_popcount(op.imm) < 2 ||
                   (jumps && (op.imm & 1u << 14) != 0) || (writeBack && (op.imm >> op.n & 1) != 0);
  if (bad) return Decoded::Unpredictable;
  context.branches = jumps;
  context.targetMustBeLandingPad = jumps && op.n != kSp;
  if constexpr (Down) {
    op.run = jumps ? (writeBack ? loadMultipleDown<true, true> : loadMultipleDown<false, true>)
                   : (writeBack ? loadMultipleDown<true, false> : loadMultipleDown<false, false>);
  } else {
    op.run = jumps ? (writeBack ? loadMultiple<true, true> : loadMultiple<false, true>)
                   : (writeBack ? loadMultiple<true, false> : loadMultiple<false, false>);
  }
  return Decoded::Ok;
}
template <bool Down>
Decoded prepareStoreMultiple(Op& op, DecodeContext&) {
  const bool writeBack = (op.code & 1u << 21) != 0;
  const bool bad = op.n == kPc || (op.imm & (1u << kSp | 1u << kPc)) != 0 || __builtin_popcount(op.imm) < 2 ||
                   (writeBack && (op.imm >> op.n & 1) != 0);
  if (bad) return Decoded::Unpredictable;
  if constexpr (Down) {
    op.run = writeBack ? storeMultiple<true> : storeMultiple<false>;
  } else {
    op.run = writeBack ? storeMultipleUp<true> : storeMultipleUp<false>;
  }
  return Decoded::Ok;
}

/// Bit 15 of the list is APSR.
const Op* clrm(Core& core, const Op* op) {
  State& s = core.state;
  for (uint32_t list = op->imm & 0x7fff; list != 0; list &= list - 1) s.r[__builtin_ctz(list)] = 0;
  if ((op->imm & 1u << 15) != 0) s.setApsr(0);
  return op + 1;
}
Decoded prepareClrm(Op& op, DecodeContext& context) {
  return op.imm == 0 || (op.imm & 1u << kSp) != 0 || context.inIt ? Decoded::Unpredictable : Decoded::Ok;
}

// --- exclusive, acquire and release

template <typename T>
const Op* loadExclusive(Core& core, const Op* op) {
  core.at(op);
  const T value = core.memory.loadAligned<T>(core.state.r[op->n] + op->imm);
  core.setExclusiveMonitor();
  core.state.r[op->d] = value;
  return op + 1;
}
/// Op::d receives the status, Op::a is stored.
template <typename T>
const Op* storeExclusive(Core& core, const Op* op) {
  core.at(op);
  State& s = core.state;
  const uint32_t address = s.r[op->n] + op->imm;
  if ((address & (sizeof(T) - 1)) != 0) throw Trap{StopReason::Unaligned, address};
  const bool open = core.testAndClearExclusiveMonitor();
  if (open) core.memory.store<T>(address, static_cast<T>(s.r[op->a]));
  s.r[op->d] = open ? 0 : 1;
  return op + 1;
}
template <typename T>
const Op* loadAcquire(Core& core, const Op* op) {
  core.at(op);
  core.state.r[op->d] = core.memory.loadAligned<T>(core.state.r[op->n]);
  return op + 1;
}
template <typename T>
const Op* storeRelease(Core& core, const Op* op) {
  core.at(op);
  core.memory.storeAligned<T>(core.state.r[op->n], static_cast<T>(core.state.r[op->d]));
  return op + 1;
}
Decoded prepareExclusive(Op& op, DecodeContext&) {
  op.imm *= 4;
  return isBad(op.d) || op.n == kPc ? Decoded::Unpredictable : Decoded::Ok;
}
Decoded prepareStoreExclusive(Op& op, DecodeContext&) {
  op.imm *= 4;
  const bool bad = isBad(op.d) || isBad(op.a) || op.n == kPc || op.d == op.n || op.d == op.a;
  return bad ? Decoded::Unpredictable : Decoded::Ok;
}

// --- table branches

template <typename T>
const Op* tableBranch(Core& core, const Op* op) {
  core.at(op);
  State& s = core.state;
  const uint32_t base = op->n == kPc ? op->address + 4 : s.r[op->n];
  const uint32_t offset = core.memory.load<T>(base + s.r[op->m] * static_cast<uint32_t>(sizeof(T)));
  return core.branchTo(op->address + 4 + 2 * offset);
}
Decoded prepareTable(Op& op, DecodeContext& context) {
  context.branches = true;
  return op.n == kSp || isBad(op.m) ? Decoded::Unpredictable : Decoded::Ok;
}

// All addressing forms of one width. `sign` and `size` are bits of the encoding.
#define LOADS(sign, size, name, T)                                                                         \
  {"1111 100" sign " -" size "1 1111 dddd iiii iiii iiii", name ".w {Rd}, {label}", kBase, loadLiteral<T>, \
   prepareLiteral<T>},                                                                                     \
      {"1111 100" sign " 1" size "1 nnnn dddd iiii iiii iiii", name ".w {Rd}, [{Rn}, {#i}]", kBase,        \
       loadOffset<T>, prepareOffset<T, false>},                                                            \
      {"1111 100" sign " 0" size "1 nnnn dddd 0000 00xx mmmm", name ".w {Rd}, [{Rn}, {Rm}, lsl #{x}]",     \
       kBase, loadRegister<T>, prepareRegisterOffset<T, false>},                                           \
      {"1111 100" sign " 0" size "1 nnnn dddd 1110 iiii iiii", name "t {Rd}, [{Rn}, {#i}]", kBase,         \
       unprivileged<loadOffset<T>>, prepareUnprivileged},                                                  \
  {                                                                                                        \
    "1111 100" sign " 0" size "1 nnnn dddd 1--- iiii iiii", name ".w {Rd}, [{Rn}], {#i}, indexed", kBase,  \
        loadOffset<T>, prepareIndexed<T, false>                                                            \
  }
#define STORES(size, name, T)                                                                            \
  {"1111 1000 1" size "0 nnnn dddd iiii iiii iiii", name ".w {Rd}, [{Rn}, {#i}]", kBase, storeOffset<T>, \
   prepareOffset<T, true>},                                                                              \
      {"1111 1000 0" size "0 nnnn dddd 0000 00xx mmmm", name ".w {Rd}, [{Rn}, {Rm}, lsl #{x}]", kBase,   \
       storeRegister<T>, prepareRegisterOffset<T, true>},                                                \
      {"1111 1000 0" size "0 nnnn dddd 1110 iiii iiii", name "t {Rd}, [{Rn}, {#i}]", kBase,              \
       unprivileged<storeOffset<T>>, prepareUnprivileged},                                               \
  {                                                                                                      \
    "1111 1000 0" size "0 nnnn dddd 1--- iiii iiii", name ".w {Rd}, [{Rn}], {#i}, indexed", kBase,       \
        storeOffset<T>, prepareIndexed<T, true>                                                          \
  }
// Preloads, and the loads into r15 that are hints.
#define HINTS(sign, size)                                                                             \
  {"1111 100" sign " -" size "1 1111 1111 ---- ---- ----", "pld", kBase, nullptr, prepareHint},       \
      {"1111 100" sign " 1" size "1 ---- 1111 ---- ---- ----", "pld", kBase, nullptr, prepareHint},   \
      {"1111 100" sign " 0" size "1 ---- 1111 0000 00-- ----", "pld", kBase, nullptr, prepareHint}, { \
    "1111 100" sign " 0" size "1 ---- 1111 1100 ---- ----", "pld", kBase, nullptr, prepareHint        \
  }

const Encoding kLoadStoreRows[] = {
    // clang-format off
    HINTS("0", "00"), HINTS("1", "00"), HINTS("0", "01"), HINTS("1", "01"),
    LOADS("0", "00", "ldrb", uint8_t), LOADS("0", "01", "ldrh", uint16_t), LOADS("0", "10", "ldr", uint32_t),
    LOADS("1", "00", "ldrsb", int8_t), LOADS("1", "01", "ldrsh", int16_t),
    // Stores to r15 + offset are UNDEFINED.
    {"1111 1000 -000 1111 ---- ---- ---- ----", "strb", kBase, nullptr, [](Op&, DecodeContext&) { return Decoded::Undefined; }},
    {"1111 1000 -010 1111 ---- ---- ---- ----", "strh", kBase, nullptr, [](Op&, DecodeContext&) { return Decoded::Undefined; }},
    {"1111 1000 -100 1111 ---- ---- ---- ----", "str", kBase, nullptr, [](Op&, DecodeContext&) { return Decoded::Undefined; }},
    STORES("00", "strb", uint8_t), STORES("01", "strh", uint16_t), STORES("10", "str", uint32_t),

    {"1110 1000 0101 nnnn dddd 1111 iiii iiii", "ldrex {Rd}, [{Rn}, {#i}]", kBase, loadExclusive<uint32_t>, prepareExclusive},
    {"1110 1000 1101 nnnn dddd 1111 0100 1111", "ldrexb {Rd}, [{Rn}]", kBase, loadExclusive<uint8_t>, prepareExclusive},
    {"1110 1000 1101 nnnn dddd 1111 0101 1111", "ldrexh {Rd}, [{Rn}]", kBase, loadExclusive<uint16_t>, prepareExclusive},
    {"1110 1000 1101 nnnn dddd 1111 1100 1111", "ldaexb {Rd}, [{Rn}]", kBase, loadExclusive<uint8_t>, prepareExclusive},
    {"1110 1000 1101 nnnn dddd 1111 1101 1111", "ldaexh {Rd}, [{Rn}]", kBase, loadExclusive<uint16_t>, prepareExclusive},
    {"1110 1000 1101 nnnn dddd 1111 1110 1111", "ldaex {Rd}, [{Rn}]", kBase, loadExclusive<uint32_t>, prepareExclusive},
    {"1110 1000 1101 nnnn dddd 1111 1000 1111", "ldab {Rd}, [{Rn}]", kBase, loadAcquire<uint8_t>, prepareExclusive},
    {"1110 1000 1101 nnnn dddd 1111 1001 1111", "ldah {Rd}, [{Rn}]", kBase, loadAcquire<uint16_t>, prepareExclusive},
    {"1110 1000 1101 nnnn dddd 1111 1010 1111", "lda {Rd}, [{Rn}]", kBase, loadAcquire<uint32_t>, prepareExclusive},
    {"1110 1000 1100 nnnn dddd 1111 1000 1111", "stlb {Rd}, [{Rn}]", kBase, storeRelease<uint8_t>, prepareExclusive},
    {"1110 1000 1100 nnnn dddd 1111 1001 1111", "stlh {Rd}, [{Rn}]", kBase, storeRelease<uint16_t>, prepareExclusive},
    {"1110 1000 1100 nnnn dddd 1111 1010 1111", "stl {Rd}, [{Rn}]", kBase, storeRelease<uint32_t>, prepareExclusive},
    {"1110 1000 1100 nnnn aaaa 1111 0100 dddd", "strexb {Rd}, {Ra}, [{Rn}]", kBase, storeExclusive<uint8_t>, prepareStoreExclusive},
    {"1110 1000 1100 nnnn aaaa 1111 0101 dddd", "strexh {Rd}, {Ra}, [{Rn}]", kBase, storeExclusive<uint16_t>, prepareStoreExclusive},
    {"1110 1000 1100 nnnn aaaa 1111 1100 dddd", "stlexb {Rd}, {Ra}, [{Rn}]", kBase, storeExclusive<uint8_t>, prepareStoreExclusive},
    {"1110 1000 1100 nnnn aaaa 1111 1101 dddd", "stlexh {Rd}, {Ra}, [{Rn}]", kBase, storeExclusive<uint16_t>, prepareStoreExclusive},
    {"1110 1000 1100 nnnn aaaa 1111 1110 dddd", "stlex {Rd}, {Ra}, [{Rn}]", kBase, storeExclusive<uint32_t>, prepareStoreExclusive},
    {"1110 1000 1101 nnnn 1111 0000 0000 mmmm", "tbb [{Rn}, {Rm}]", kBase, tableBranch<uint8_t>, prepareTable},
    {"1110 1000 1101 nnnn 1111 0000 0001 mmmm", "tbh [{Rn}, {Rm}, lsl #1]", kBase, tableBranch<uint16_t>, prepareTable},
    {"1110 1000 1001 1111 iiii iiii iiii iiii", "clrm {list}", kV81, clrm, prepareClrm},
    {"1110 1000 10-1 nnnn iiii iiii iiii iiii", "ldmia.w {Rn}, {list}", kBase, nullptr, prepareLoadMultiple<false>},
    {"1110 1001 00-1 nnnn iiii iiii iiii iiii", "ldmdb {Rn}, {list}", kBase, nullptr, prepareLoadMultiple<true>},
    {"1110 1000 10-0 nnnn iiii iiii iiii iiii", "stmia.w {Rn}, {list}", kBase, nullptr, prepareStoreMultiple<false>},
    {"1110 1001 00-0 nnnn iiii iiii iiii iiii", "stmdb {Rn}, {list}", kBase, nullptr, prepareStoreMultiple<true>},
    // Encodings with P = 0 and W = 0 are the rows above and below.
    {"1110 1001 -1-1 nnnn dddd aaaa iiii iiii", "ldrd {Rd}, {Ra}, [{Rn}, {#i}]", kBase, nullptr, prepareDual<false>},
    {"1110 1000 -111 nnnn dddd aaaa iiii iiii", "ldrd {Rd}, {Ra}, [{Rn}], {#i}", kBase, nullptr, prepareDual<false>},
    {"1110 1001 -1-0 nnnn dddd aaaa iiii iiii", "strd {Rd}, {Ra}, [{Rn}, {#i}]", kBase, nullptr, prepareDual<true>},
    {"1110 1000 -110 nnnn dddd aaaa iiii iiii", "strd {Rd}, {Ra}, [{Rn}], {#i}", kBase, nullptr, prepareDual<true>},
    {"1110 1000 0100 nnnn aaaa dddd iiii iiii", "strex {Rd}, {Ra}, [{Rn}, {#i}]", kBase, storeExclusive<uint32_t>, prepareStoreExclusive},
    // clang-format on
};

}  // namespace

std::span<const Encoding> loadStoreEncodings() {
  return kLoadStoreRows;
}

}  // namespace carina::cpu_m
