// SPDX-License-Identifier: Apache-2.0
// Vector loads and stores: contiguous, widening and narrowing, gathering and scattering, interleaving. Each
// element in memory must be aligned to its size. Inactive elements are not accessed; loads set them to 0.
#include "cpu_m/mve.hpp"

namespace carina::cpu_m {
namespace mve {
namespace {

/// The address of a contiguous access, and the new base. Op::x: pre-indexed or offset; Op::w: write-back;
/// Op::imm: signed offset.
struct Place {
  u32 address, moved;
};
Place place(Core& core, const Op& op) {
  const u32 base = core.state.r[op.n], moved = base + op.imm;
  if (op.w != 0 && op.n == 13) core.checkStack(moved);
  return {op.x != 0 ? moved : base, moved};
}

/// Elements of type Memory, each in a lane of type T.
template <class Memory, class T>
void load(Core& core, const Op& op) {
  const Predicate where = begin(core);
  State& s = core.state;
  const Place at = place(core, op);
  Vector<T> r;
  constexpr u32 kBytes = kLanes<T> * sizeof(Memory);
  const u8* host =
      where.all() && at.address % sizeof(Memory) == 0 ? core.memory.readable(at.address, kBytes) : nullptr;
  if (host != nullptr) {
    Memory elements[kLanes<T>];
    std::memcpy(elements, host, kBytes);
    for (u32 i = 0; i < kLanes<T>; ++i) r[i] = static_cast<T>(elements[i]);
  } else {
    for (u32 i = 0; i < kLanes<T>; ++i) {
      r[i] = 0;
      if (where.lane<T>(i))
        r[i] = static_cast<T>(core.memory.loadAligned<Memory>(at.address + i * sizeof(Memory)));
    }
  }
  writeQ(s, op.d, r, where.all() ? where : executed(s));
  if (op.w != 0) s.r[op.n] = at.moved;
  advance(s);
}

template <class Memory, class T>
void store(Core& core, const Op& op) {
  const Predicate where = begin(core);
  State& s = core.state;
  const Place at = place(core, op);
  const Vector<T> d = readQ<T>(s, op.d);
  constexpr u32 kBytes = kLanes<T> * sizeof(Memory);
  u8* host =
      where.all() && at.address % sizeof(Memory) == 0 ? core.memory.writable(at.address, kBytes) : nullptr;
  if (host != nullptr) {
    Memory elements[kLanes<T>];
    for (u32 i = 0; i < kLanes<T>; ++i) elements[i] = static_cast<Memory>(d[i]);
    std::memcpy(host, elements, kBytes);
  } else {
    for (u32 i = 0; i < kLanes<T>; ++i) {
      if (where.lane<T>(i)) {
        core.memory.storeAligned<Memory>(at.address + i * static_cast<u32>(sizeof(Memory)),
                                         static_cast<Memory>(d[i]));
      }
    }
  }
  if (op.w != 0) s.r[op.n] = at.moved;
  advance(s);
}

/// imm7 in units of the elements in memory; fields: y adds, x pre-indexes, w writes back.
template <class Memory>
Decoded contiguous(Op& op, DecodeContext&) {
  op.imm *= sizeof(Memory);
  if (op.y == 0) op.imm = 0u - op.imm;
  if (op.x == 0 && op.w == 0) return Decoded::Undefined;  // encodes other instructions
  return op.n == 15 ? Decoded::Unpredictable : Decoded::Ok;
}

// --- gather and scatter

/// [Rn, Qm], offsets shifted by Op::x.
template <class Memory, class T>
void gather(Core& core, const Op& op) {
  using Offset = std::make_unsigned_t<T>;
  const Predicate where = begin(core);
  State& s = core.state;
  const u32 base = s.r[op.n];
  const Vector<Offset> m = readQ<Offset>(s, op.m);
  Vector<T> r;
  for (u32 i = 0; i < kLanes<T>; ++i) {
    r[i] = 0;
    if (where.lane<T>(i)) r[i] = static_cast<T>(core.memory.loadAligned<Memory>(base + (u32{m[i]} << op.x)));
  }
  writeQ(s, op.d, r, executed(s));
  advance(s);
}

template <class Memory, class T>
void scatter(Core& core, const Op& op) {
  using Offset = std::make_unsigned_t<T>;
  const Predicate where = begin(core);
  State& s = core.state;
  const u32 base = s.r[op.n];
  const Vector<Offset> m = readQ<Offset>(s, op.m);
  const Vector<T> d = readQ<T>(s, op.d);
  for (u32 i = 0; i < kLanes<T>; ++i) {
    if (where.lane<T>(i))
      core.memory.storeAligned<Memory>(base + (u32{m[i]} << op.x), static_cast<Memory>(d[i]));
  }
  advance(s);
}

/// Doublewords, as two words each; the offset is the lower word of the lane.
void gatherDouble(Core& core, const Op& op) {
  const Predicate where = begin(core);
  State& s = core.state;
  const Vector<u32> m = readQ<u32>(s, op.m);
  Vector<u32> r{};
  for (u32 i = 0; i < 4; ++i) {
    const u32 address = s.r[op.n] + (m[i & 2] << op.x) + 4 * (i & 1);
    if (where.lane<u32>(i)) r[i] = core.memory.loadAligned<u32>(address);
  }
  writeQ(s, op.d, r, executed(s));
  advance(s);
}
void scatterDouble(Core& core, const Op& op) {
  const Predicate where = begin(core);
  State& s = core.state;
  const Vector<u32> m = readQ<u32>(s, op.m), d = readQ<u32>(s, op.d);
  for (u32 i = 0; i < 4; ++i) {
    const u32 address = s.r[op.n] + (m[i & 2] << op.x) + 4 * (i & 1);
    if (where.lane<u32>(i)) core.memory.storeAligned<u32>(address, d[i]);
  }
  advance(s);
}

/// [Qn, #Op::imm]: addresses in a vector, which Op::w updates. `Double`: as above.
template <bool Double, bool Store>
void byAddresses(Core& core, const Op& op) {
  const Predicate where = begin(core);
  State& s = core.state;
  Vector<u32> addresses = readQ<u32>(s, op.n);
  Vector<u32> data{};
  if (Store) data = readQ<u32>(s, op.d);
  for (u32 i = 0; i < 4; ++i) {
    const u32 address = addresses[Double ? i & 2 : i] + op.imm + (Double ? 4 * (i & 1) : 0);
    if (!where.lane<u32>(i)) continue;
    if (Store) {
      core.memory.storeAligned<u32>(address, data[i]);
    } else {
      data[i] = core.memory.loadAligned<u32>(address);
    }
  }
  if (!Store) writeQ(s, op.d, data, executed(s));
  if (op.w != 0) {
    for (u32 i = 0; i < 4; i += Double ? 2 : 1) addresses[i] += op.imm;
    // The address of a doubleword advances with its second beat.
    Predicate beats = executed(s);
    if (Double) beats.bytes = (beats.bytes & 0x00f0) != 0 ? 0xffff : 0xff00;
    writeQ(s, op.n, addresses, beats);
  }
  advance(s);
}

/// Field x: whether offsets are scaled.
template <u32 Scale>
Decoded scaled(Op& op, DecodeContext&) {
  if (op.x != 0) op.x = Scale;
  return op.n == 15 ? Decoded::Unpredictable : Decoded::Ok;
}
template <u32 Scale>
Decoded scaledLoad(Op& op, DecodeContext& context) {
  return op.d == op.m ? Decoded::Unpredictable : scaled<Scale>(op, context);
}
template <bool Double, bool Store>
Decoded vectorBase(Op& op, DecodeContext&) {
  op.imm *= Double ? 8 : 4;
  if (op.y == 0) op.imm = 0u - op.imm;
  return !Store && op.d == op.n ? Decoded::Unpredictable : Decoded::Ok;
}

// --- interleaving

/// VLD2x, VLD4x and their stores: `Registers` consecutive vectors from Op::d on are interleaved in memory
/// element by element. Each instruction moves four of these words, selected by pattern Op::x.
template <u32 Registers>
constexpr u8 kWords[Registers][4] = {};
template <>
constexpr u8 kWords<2>[2][4] = {{0, 1, 6, 7}, {2, 3, 4, 5}};
template <>
constexpr u8 kWords<4>[4][4] = {{0, 1, 10, 11}, {2, 3, 12, 13}, {4, 5, 14, 15}, {6, 7, 8, 9}};

template <u32 Registers, bool Store, class T>
void interleaved(Core& core, const Op& op) {
  core.useFloatingPoint();  // not predicated
  State& s = core.state;
  constexpr u32 kBytes = 16 * Registers, kPerWord = 4 / sizeof(T);
  const u32 base = s.r[op.n];
  if (op.w != 0 && op.n == 13) core.checkStack(base + kBytes);
  const Predicate beats = executed(s);
  const auto each = [&](auto access) {
    for (u32 beat = 0; beat < 4; ++beat) {
      if (!beats.lane<u32>(beat)) continue;
      for (u32 j = 0; j < kPerWord; ++j) {
        const u32 element = kWords<Registers>[op.x][beat] * kPerWord + j;
        access(beat * kPerWord + j, element * static_cast<u32>(sizeof(T)),
               (op.d + element % Registers) * kLanes<T> + element / Registers);
      }
    }
  };
  const bool aligned = base % sizeof(T) == 0;
  if (Store) {
    u8* host = aligned ? core.memory.writable(base, kBytes) : nullptr;
    each([&](u32, u32 offset, u32 lane) {
      const T value = s.element<T>(lane);
      if (host != nullptr) {
        std::memcpy(host + offset, &value, sizeof(T));
      } else {
        core.memory.storeAligned<T>(base + offset, value);
      }
    });
  } else if (const u8* host = aligned ? core.memory.readable(base, kBytes) : nullptr; host != nullptr) {
    each([&](u32, u32 offset, u32 lane) {
      T value;
      std::memcpy(&value, host + offset, sizeof(T));
      s.setElement<T>(lane, value);
    });
  } else {
    T elements[16 / sizeof(T)];  // a fault leaves the vectors unchanged
    each([&](u32 i, u32 offset, u32) { elements[i] = core.memory.loadAligned<T>(base + offset); });
    each([&](u32 i, u32, u32 lane) { s.setElement<T>(lane, elements[i]); });
  }
  if (op.w != 0) s.r[op.n] = base + kBytes;
}

template <u32 Registers>
Decoded lastRegister(Op& op, DecodeContext&) {
  return op.n == 15 || op.d + Registers > 8 || (op.n == 13 && op.w != 0) ? Decoded::Unpredictable
                                                                         : Decoded::Ok;
}

// --- rows

// Bits 8:7 of the second halfword are the size of the lanes.
#define CONTIGUOUS(hi, lo, type, T)                                                        \
  {"1110 110x y0w1 nnnn ddd1 111" hi " " lo "iii iiii", "vldr" type " q{d}, {mem}", kMve,  \
   straight<load<T, T>>, contiguous<T>},                                                   \
  {                                                                                        \
    "1110 110x y0w0 nnnn ddd1 111" hi " " lo "iii iiii", "vstr" type " q{d}, {mem}", kMve, \
        straight<store<T, T>>, contiguous<T>                                               \
  }
#define WIDENING(u, m, hi, lo, type, M, T)                                                         \
  {                                                                                                \
    "111" u " 110x y0w1 " m "nnn ddd0 111" hi " " lo "iii iiii", "vldr" type " q{d}, {mem}", kMve, \
        straight<load<M, T>>, contiguous<M>                                                        \
  }
#define NARROWING(m, hi, lo, type, M, T)                                                       \
  {                                                                                            \
    "1110 110x y0w0 " m "nnn ddd0 111" hi " " lo "iii iiii", "vstr" type " q{d}, {mem}", kMve, \
        straight<store<M, T>>, contiguous<M>                                                   \
  }
// Bits 6 and 4 are the size in memory, bit 0 selects scaled offsets.
#define GATHER(u, hi, lo, m1, m0, os, type, M, T, scale)                                              \
  {                                                                                                   \
    "111" u " 1100 1001 nnnn ddd0 111" hi " " lo m1 "0" m0 " mmm" os,                                 \
        "vldr" type " q{d}, [{Rn}, q{m}, uxtw #{x}]", kMve, straight<gather<M, T>>, scaledLoad<scale> \
  }
#define SCATTER(hi, lo, m1, m0, os, type, M, T, scale)                                             \
  {                                                                                                \
    "1110 1100 1000 nnnn ddd0 111" hi " " lo m1 "0" m0 " mmm" os,                                  \
        "vstr" type " q{d}, [{Rn}, q{m}, uxtw #{x}]", kMve, straight<scatter<M, T>>, scaled<scale> \
  }
#define ADDRESSES(l, b8, type, Double, Store)                                                \
  {                                                                                          \
    "1111 1101 y0w" l " nnn0 ddd1 111" b8 " 0iii iiii", type " q{d}, [q{n}, {#i}]{!}", kMve, \
        straight<byAddresses<Double, Store>>, vectorBase<Double, Store>                      \
  }
#define INTERLEAVED(l, hi, lo, xs, f, name, type, Registers, Store, T)                                    \
  {                                                                                                       \
    "1111 1100 10w" l " nnnn ddd1 111" hi " " lo xs "0 000" f, name "{x}." type " q{d}, [{Rn}]{!}", kMve, \
        straight<interleaved<Registers, Store, T>>, lastRegister<Registers>                               \
  }
#define INTERLEAVED_ALL(hi, lo, type, T)                              \
  INTERLEAVED("1", hi, lo, "0x", "0", "vld2", type, 2, false, T),     \
      INTERLEAVED("1", hi, lo, "xx", "1", "vld4", type, 4, false, T), \
      INTERLEAVED("0", hi, lo, "0x", "0", "vst2", type, 2, true, T),  \
      INTERLEAVED("0", hi, lo, "xx", "1", "vst4", type, 4, true, T)

const Encoding kMemoryRows[] = {
    // Before the widening forms: these are their encodings without index and write-back.
    GATHER("1", "0", "0", "0", "0", "0", "b.u8", u8, u8, 0),
    GATHER("0", "0", "1", "0", "0", "0", "b.s16", s8, s16, 0),
    GATHER("1", "0", "1", "0", "0", "0", "b.u16", u8, u16, 0),
    GATHER("0", "1", "0", "0", "0", "0", "b.s32", s8, s32, 0),
    GATHER("1", "1", "0", "0", "0", "0", "b.u32", u8, u32, 0),
    GATHER("1", "0", "1", "0", "1", "x", "h.u16", u16, u16, 1),
    GATHER("0", "1", "0", "0", "1", "x", "h.s32", s16, s32, 1),
    GATHER("1", "1", "0", "0", "1", "x", "h.u32", u16, u32, 1),
    GATHER("1", "1", "0", "1", "0", "x", "w.u32", u32, u32, 2),
    {"1111 1100 1001 nnnn ddd0 1111 1101 mmmx", "vldrd.u64 q{d}, [{Rn}, q{m}, uxtw #{x}]", kMve,
     straight<gatherDouble>, scaledLoad<3>},
    SCATTER("0", "0", "0", "0", "0", "b.8", u8, u8, 0),
    SCATTER("0", "1", "0", "0", "0", "b.16", u8, u16, 0),
    SCATTER("1", "0", "0", "0", "0", "b.32", u8, u32, 0),
    SCATTER("0", "1", "0", "1", "x", "h.16", u16, u16, 1),
    SCATTER("1", "0", "0", "1", "x", "h.32", u16, u32, 1),
    SCATTER("1", "0", "1", "0", "x", "w.32", u32, u32, 2),
    {"1110 1100 1000 nnnn ddd0 1111 1101 mmmx", "vstrd.64 q{d}, [{Rn}, q{m}, uxtw #{x}]", kMve,
     straight<scatterDouble>, scaled<3>},
    ADDRESSES("1", "0", "vldrw.u32", false, false),
    ADDRESSES("1", "1", "vldrd.u64", true, false),
    ADDRESSES("0", "0", "vstrw.32", false, true),
    ADDRESSES("0", "1", "vstrd.64", true, true),

    CONTIGUOUS("0", "0", "b.8", u8),
    CONTIGUOUS("0", "1", "h.16", u16),
    CONTIGUOUS("1", "0", "w.32", u32),
    WIDENING("0", "0", "0", "1", "b.s16", s8, s16),
    WIDENING("1", "0", "0", "1", "b.u16", u8, u16),
    WIDENING("0", "0", "1", "0", "b.s32", s8, s32),
    WIDENING("1", "0", "1", "0", "b.u32", u8, u32),
    WIDENING("0", "1", "1", "0", "h.s32", s16, s32),
    WIDENING("1", "1", "1", "0", "h.u32", u16, u32),
    NARROWING("0", "0", "1", "b.16", u8, u16),
    NARROWING("0", "1", "0", "b.32", u8, u32),
    NARROWING("1", "1", "0", "h.32", u16, u32),
    INTERLEAVED_ALL("0", "0", "8", u8),
    INTERLEAVED_ALL("0", "1", "16", u16),
    INTERLEAVED_ALL("1", "0", "32", u32),
};

}  // namespace
}  // namespace mve

std::span<const Encoding> mveMemoryEncodings() {
  return mve::kMemoryRows;
}

}  // namespace carina::cpu_m
