// SPDX-License-Identifier: Apache-2.0
// The instruction set as data: one row per encoding. The decoder, the disassembler, coverage and the random
// instruction generator of the tests are all derived from these rows.
//
// To add a group of instructions: write a file with the handlers and
//
//   namespace carina::cpu_m {
//   namespace {
//   void vadd(Core& core, const Op& op) { ... }         // one instruction; may throw Trap
//   const Encoding kIntegerRows[] = {
//       {"1110 1111 0-zz nnn0 ddd0 1000 -1-0 mmm0", "vadd.i{z} q{d}, q{n}, q{m}", kMve, straight<vadd>},
//   };
//   }  // namespace
//   std::span<const Encoding> mveIntegerEncodings() { return kIntegerRows; }
//   }  // namespace carina::cpu_m
//
// then declare the function at the end of this header and add it to the list in encodings.cpp. Rows are tried
// in order within a group: more specific rows come first.
//
// A pattern has 16 or 32 characters, not counting spaces, most significant bit first (for a 32-bit
// instruction, the first halfword is the upper half): '0' and '1' must match; '-' matches both; each letter
// collects its bits, from left to right, into a field: d n m a x y z w (8 bits each) are Op::d ... Op::w, i
// is Op::imm (32 bits), other letters are not collected. `prepare` then completes the Op, once per decoded
// instruction: it converts fields to what the handler expects (register numbers, sign-extended offsets),
// selects a faster handler, and rejects UNDEFINED and UNPREDICTABLE encodings. Op::code keeps the original
// bits.
//
// The text of the disassembly names fields in braces: {d} {n} {m} {a} {x} {y} {z} {w} {i} decimal, {Rd} ..
// {Rw} a core register, {#i} "#5", {label} Op::imm as an address, {list} Op::imm as a register list, {c} the
// condition in Op::x, {vpt} the letters of a VPT block from the mask in Op::x, {slist} {dlist} Op::a words
// from single register Op::d on, {mem} base Op::n with offset Op::imm (Op::x: before the access, Op::w:
// written back), {!} "!" if Op::w is set. Suffix letters of the IT state are added by the disassembler.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace carina::cpu_m {

class Core;
struct Op;
struct Block;

/// Executes an instruction and returns the next one; null leaves the block (see the helpers of Core).
using Run = const Op* (*)(Core& core, const Op* op);

/// A decoded instruction.
struct Op {
  Run run = nullptr;
  uint32_t address = 0;
  uint32_t code = 0;  // 16-bit encodings in bits 15:0; for 32-bit ones, the first halfword in bits 31:16
  uint32_t imm = 0;
  uint8_t d = 0, n = 0, m = 0, a = 0, x = 0, y = 0, z = 0, w = 0;
  uint8_t it = 0;                       // ITSTATE at this instruction
  uint8_t after = 0;                    // cycles from the start of this instruction to the end of the block
  uint16_t size : 3 = 0;                // in bytes: 2, 4; 0 for ops that the decoder adds
  uint16_t left : 7 = 0;                // instructions from this one to the end of the block
  uint16_t cost : 4 = 0;                // of leaving the block here: cycles, or one of the two below
  mutable uint16_t history : 2 = 1;     // of a predicted branch: 2 and 3 predict it taken
  mutable const Block* link = nullptr;  // target of a branch to a fixed address, once known

  /// Values of `cost`: a predicted branch, when taken; the op after it, when not taken.
  static constexpr uint16_t kPredictedTaken = 14, kPredictedPassed = 15;
};

/// Features of a core; also those that an encoding requires (all of its bits).
enum Feature : uint32_t {
  kBase = 0,
  kDsp = 1u << 0,
  kFloat = 1u << 1,     // FPv5, single precision
  kDouble = 1u << 2,    // double precision
  kHalf = 1u << 3,      // half precision (Armv8.1-M)
  kV81 = 1u << 4,       // Armv8.1-M: low-overhead loops, conditional select, CLRM, ...
  kMve = 1u << 5,       // MVE, integer
  kMveFloat = 1u << 6,  // MVE, floating point
  kSecurity = 1u << 7,  // Security Extension
  kPacBti = 1u << 8,
};

enum class Decoded : uint8_t { Ok, Undefined, Unpredictable };

/// Context that the decoder passes to `prepare`, and what `prepare` returns to it.
struct DecodeContext {
  uint32_t features = 0;
  bool inIt = false;      // governed by an IT instruction
  bool lastInIt = false;  // and the last of its IT block
  // Set by prepare:
  bool readsPc = false;        // r[15] must be valid (the instruction's address + 4)
  bool branches = false;       // ends the block: the handler leaves it, or returns only if not taken
  bool endsBlock = false;      // ends the block; execution continues after the instruction
  bool unconditional = false;  // executes in an IT block regardless of the condition
  bool targetMustBeLandingPad =
      false;             // an indirect branch whose target must be a landing pad if BTI is enabled
  bool idle = false;     // has no effect: no handler is called
  uint8_t startsIt = 0;  // the ITSTATE after the instruction
};
using Prepare = Decoded (*)(Op& op, DecodeContext& context);

struct Encoding {
  const char* pattern;
  const char* text;
  uint32_t features;
  Run run;
  Prepare prepare = nullptr;
  /// Used instead of `run` in an IT block, for 16-bit instructions that set flags only outside of one.
  Run inIt = nullptr;
};

/// A row with its pattern as bits. 16-bit encodings are in the low half.
struct CompiledEncoding {
  const Encoding* row = nullptr;
  uint32_t value = 0, mask = 0;
  bool wide = false;
  bool beats = false;     // a vector instruction, which can be resumed after its first beats
  bool restarts = false;  // moves several registers, and starts over when it is resumed
  bool passes = false;    // leaves ECI for the next vector instruction unchanged
};

/// All rows, group by group, in the order in which they are tried.
std::span<const CompiledEncoding> allEncodings();
/// General registers with a special role.
constexpr uint8_t kSp = 13, kLr = 14, kPc = 15;
/// Most 32-bit instructions must not use these.
constexpr bool isBad(uint8_t number) {
  return number == kSp || number == kPc;
}
/// Whether a halfword is the first of a 32-bit instruction.
constexpr bool isWide(uint16_t halfword) {
  return halfword >= 0xe800;
}
/// The row of an instruction for a core with these features; null: UNDEFINED.
const CompiledEncoding* findEncoding(uint32_t code, bool wide, uint32_t features);
/// Fills `op` (code and size must be set) from the row's pattern, then calls the row's `prepare`.
Decoded decodeInto(Op& op, const CompiledEncoding& encoding, DecodeContext& context);
/// "adds r0, r1, #4"; "undefined 0xdeff".
std::string disassemble(uint32_t code, bool wide, uint32_t address, uint32_t features, uint8_t it = 0);

/// Bits [low, low + count) of a word.
constexpr uint32_t bits(uint32_t word, uint32_t low, uint32_t count) {
  return word >> low & ((count < 32 ? 1u << count : 0u) - 1);
}
constexpr int32_t signExtend(uint32_t value, uint32_t width) {
  return static_cast<int32_t>(value << (32 - width)) >> (32 - width);
}

// The groups.
std::span<const Encoding> thumb16Encodings();
std::span<const Encoding> dataProcessingEncodings();
std::span<const Encoding> loadStoreEncodings();
std::span<const Encoding> pacBtiEncodings();
std::span<const Encoding> branchSystemEncodings();
std::span<const Encoding> multiplyDspEncodings();
std::span<const Encoding> floatingPointEncodings();
std::span<const Encoding> floatingPointTransferEncodings();
std::span<const Encoding> mvePredicateEncodings();
std::span<const Encoding> mveIntegerEncodings();
std::span<const Encoding> mveShiftEncodings();
std::span<const Encoding> mveMoveEncodings();
std::span<const Encoding> mveReduceEncodings();
std::span<const Encoding> mveMemoryEncodings();
std::span<const Encoding> mveFloatEncodings();

}  // namespace carina::cpu_m
