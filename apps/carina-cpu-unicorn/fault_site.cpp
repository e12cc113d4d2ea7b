// SPDX-License-Identifier: MIT OR Apache-2.0
// Encodings: Armv8-M Architecture Reference Manual, C2.2 (T16) and C2.3 (T32).
#include "fault_site.hpp"

namespace {

uint32_t ones(uint32_t bits) {
  return static_cast<uint32_t>(__builtin_popcount(bits));
}
uint32_t field(uint32_t word, int lowest, int width) {
  return word >> lowest & ((1u << width) - 1);
}
uint32_t literalBase(uint32_t pc) {
  return (pc + 4) & ~3u;
}

std::optional<Access> narrow(uint32_t code, uint32_t pc, const uint32_t* r) {
  const uint32_t imm5 = field(code, 6, 5), imm8 = field(code, 0, 8);
  const uint32_t low = r[field(code, 3, 3)];
  const bool load = field(code, 11, 1) != 0;
  switch (code >> 12) {
    case 0x4:  // LDR literal
      if (field(code, 11, 1) == 0) return std::nullopt;
      return Access{literalBase(pc) + 4 * imm8, 4, false};
    case 0x5: {  // register offset: STR STRH STRB LDRSB LDR LDRH LDRB LDRSH
      constexpr uint8_t kSizes[8] = {4, 2, 1, 1, 4, 2, 1, 2};
      const uint32_t operation = field(code, 9, 3);
      return Access{low + r[field(code, 6, 3)], kSizes[operation], operation < 3};
    }
    case 0x6:
      return Access{low + 4 * imm5, 4, !load};
    case 0x7:
      return Access{low + imm5, 1, !load};
    case 0x8:
      return Access{low + 2 * imm5, 2, !load};
    case 0x9:
      return Access{r[13] + 4 * imm8, 4, !load};
    case 0xb:
      if (field(code, 9, 3) == 2) {  // PUSH
        const uint32_t bytes = 4 * ones(field(code, 0, 9));
        return Access{r[13] - bytes, bytes, true};
      }
      if (field(code, 9, 3) == 6) return Access{r[13], 4 * ones(field(code, 0, 9)), false};  // POP
      return std::nullopt;
    case 0xc:  // STM, LDM
      return Access{r[field(code, 8, 3)], 4 * ones(imm8), !load};
    default:
      return std::nullopt;
  }
}

/// Base register plus or minus an offset; the old base when post-indexed.
uint32_t indexed(uint32_t base, uint32_t offset, bool before, bool up) {
  return before ? (up ? base + offset : base - offset) : base;
}

std::optional<Access> wide(uint32_t first, uint32_t second, uint32_t pc, const uint32_t* r) {
  const uint32_t n = field(first, 0, 4);
  const uint32_t base = n == 15 ? literalBase(pc) : r[n];
  const bool before = field(first, 8, 1) != 0, up = field(first, 7, 1) != 0,
             writeBack = field(first, 5, 1) != 0;
  const bool store = field(first, 4, 1) == 0;
  const uint32_t imm8 = field(second, 0, 8);
  if ((first & 0xfe40) == 0xe800) {  // LDM, STM
    const uint32_t bytes = 4 * ones(second);
    return Access{before ? base - bytes : base, bytes, store};
  }
  if ((first & 0xfe40) == 0xe840) {
    if (before || writeBack) return Access{indexed(base, 4 * imm8, before, up), 8, store};  // LDRD, STRD
    if (!up) return Access{base + 4 * imm8, 4, store};                                      // LDREX, STREX
    if (field(second, 4, 4) < 2 && !store) {  // TBB, TBH: a halfword has twice the index
      const uint32_t size = 1 + field(second, 4, 1);
      return Access{(n == 15 ? pc + 4 : base) + size * r[field(second, 0, 4)], size, false};
    }
    return Access{base, 4, store};  // acquire, release, narrow exclusives
  }
  if ((first & 0xfe00) == 0xf800) {  // one register
    const uint32_t size = 1u << field(first, 5, 2);
    if (n == 15) return Access{up ? base + field(second, 0, 12) : base - field(second, 0, 12), size, store};
    if (up) return Access{base + field(second, 0, 12), size, store};
    if (field(second, 11, 1) == 0)
      return Access{base + (r[field(second, 0, 4)] << field(second, 4, 2)), size, store};
    return Access{indexed(base, imm8, field(second, 10, 1) != 0, field(second, 9, 1) != 0), size, store};
  }
  if ((first & 0xfe00) == 0xec00 && field(second, 9, 3) == 5) {  // floating point
    if (before && !writeBack)                                    // VLDR, VSTR
      return Access{indexed(base, 4 * imm8, true, up), field(second, 8, 1) != 0 ? 8u : 4u, store};
    return Access{up ? base : base - 4 * imm8, 4 * imm8, store};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Access> accessOf(uint16_t first, uint16_t second, uint32_t pc, const uint32_t registers[16]) {
  return isWide(first) ? wide(first, second, pc, registers) : narrow(first, pc, registers);
}

std::optional<uint32_t> findAccess(const uint8_t* code, uint32_t size, uint32_t start, uint32_t address,
                                   bool store, const uint32_t registers[16]) {
  const auto halfword = [&](uint32_t at) {
    return at + 2 <= size ? static_cast<uint16_t>(code[at] | code[at + 1] << 8) : uint16_t{0};
  };
  for (uint32_t at = 0; at + 2 <= size; at += isWide(halfword(at)) ? 4 : 2) {
    const auto access = accessOf(halfword(at), halfword(at + 2), start + at, registers);
    // An access over the end of memory is reported by the part that is missing.
    if (access && access->store == store && address - access->address < access->size) return start + at;
  }
  return std::nullopt;
}
