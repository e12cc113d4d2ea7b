// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>

#include "cpu_m/encoding.hpp"
#include "machine.hpp"

namespace carina::cpu_m {
namespace {

TEST(Encodings, EveryRowIsFoundByItsBits) {
  std::mt19937 random(1);
  for (const CompiledEncoding& row : allEncodings()) {
    bool found = false;
    for (int i = 0; i < 2000 && !found; ++i) {
      const auto code =
          static_cast<uint32_t>((random() & ~row.mask) | row.value) & (row.wide ? ~0u : 0xffffu);
      found = findEncoding(code, row.wide, Machine::kAllFeatures) == &row;
    }
    EXPECT_TRUE(found) << row.row->pattern << " is hidden by rows before it";
  }
}

TEST(Encodings, RowsAreDifferent) {
  std::set<std::pair<uint32_t, uint32_t>> seen;
  for (const CompiledEncoding& row : allEncodings())
    EXPECT_TRUE(seen.insert({row.mask, row.value}).second) << row.row->pattern;
}

/// Rows are tried in order: an earlier row must not reject codes that belong to a later one.
TEST(Encodings, NoRowIsHiddenByARejectingRow) {
  std::mt19937 random(3);
  const auto decodes = [](const CompiledEncoding& row, uint32_t code) {
    Op op;
    op.code = code;
    op.size = row.wide ? 4 : 2;
    DecodeContext context;
    context.features = Machine::kAllFeatures;
    return decodeInto(op, row, context);
  };
  for (const CompiledEncoding& row : allEncodings()) {
    for (int i = 0; i < 3000; ++i) {
      const auto code =
          static_cast<uint32_t>((random() & ~row.mask) | row.value) & (row.wide ? ~0u : 0xffffu);
      const CompiledEncoding* first = findEncoding(code, row.wide, Machine::kAllFeatures);
      if (first == &row || first == nullptr || decodes(*first, code) != Decoded::Undefined) continue;
      if (std::string_view(first->row->text).find(" {R") == std::string_view::npos)
        continue;  // refuses on purpose
      if (decodes(row, code) != Decoded::Ok) continue;
      ADD_FAILURE() << std::hex << code << ": " << row.row->text << " is refused by " << first->row->text;
      break;
    }
  }
}

TEST(Encodings, WideEncodingsBeginWithWidePrefixes) {
  for (const CompiledEncoding& row : allEncodings()) {
    const bool looksWide = isWide(static_cast<uint16_t>(row.wide ? row.value >> 16 : row.value));
    EXPECT_EQ(looksWide, row.wide) << row.row->pattern;
  }
}

TEST(Encodings, DecodingChoosesTheExecutionFunction) {
  std::mt19937 random(2);
  for (const CompiledEncoding& row : allEncodings()) {
    for (int i = 0; i < 200; ++i) {
      Op op;
      op.code = static_cast<uint32_t>((random() & ~row.mask) | row.value) & (row.wide ? ~0u : 0xffffu);
      op.size = row.wide ? 4 : 2;
      DecodeContext context;
      context.features = Machine::kAllFeatures;
      if (findEncoding(op.code, row.wide, Machine::kAllFeatures) != &row) continue;
      if (decodeInto(op, row, context) != Decoded::Ok) continue;
      EXPECT_TRUE(op.run != nullptr || context.idle || context.startsIt != 0) << row.row->pattern;
    }
  }
}

TEST(Encodings, AreDisassembled) {
  const auto narrow = [](uint16_t code, uint8_t it = 0) {
    return disassemble(code, false, 0x1000, Machine::kAllFeatures, it);
  };
  const auto wide = [](uint32_t code) { return disassemble(code, true, 0x1000, Machine::kAllFeatures); };
  EXPECT_EQ(narrow(0x2105), "movs r1, #5");
  EXPECT_EQ(narrow(0xb510), "push {r4, lr}");
  EXPECT_EQ(narrow(0xd0fe), "beq 0x1000");
  EXPECT_EQ(narrow(0xde00), "undefined 0xde00");
  EXPECT_EQ(narrow(0x4408, 0x08), "addeq r0, r1");
  EXPECT_EQ(wide(0xf7ffffFE), "bl 0x1000");
  EXPECT_EQ(wide(0xfb92f1f3), "sdiv r1, r2, r3");
  EXPECT_EQ(wide(0xffffffff), "undefined 0xffffffff");
  EXPECT_EQ(wide(0xec814fd0), "vstrd.64 q2, [r1, q0, uxtw #0]") << "not VSTR of FPSCR_nzcvqc";
  EXPECT_EQ(wide(0xed812f80), "vstr fpscr, [r1]");
}

}  // namespace
}  // namespace carina::cpu_m
