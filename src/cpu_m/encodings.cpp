// SPDX-License-Identifier: Apache-2.0
// The list of all rows, and the tables that find one.
#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "base/check.hpp"
#include "cpu_m/encoding.hpp"

namespace carina::cpu_m {
namespace {

/// In the order in which they are tried.
using Group = std::span<const Encoding> (*)();
constexpr Group kGroups[] = {
    thumb16Encodings,
    mvePredicateEncodings,  // VCTP is encoded among the low-overhead loops
    pacBtiEncodings,        // some are in the hint space: NOPs without the extension
    branchSystemEncodings, loadStoreEncodings,     dataProcessingEncodings,
    multiplyDspEncodings,  floatingPointEncodings, floatingPointTransferEncodings,
    mveIntegerEncodings,   mveShiftEncodings,      mveMoveEncodings,
    mveMemoryEncodings,    mveFloatEncodings,
    mveReduceEncodings,  // its patterns include encodings of earlier groups
};

CompiledEncoding compile(const Encoding& row) {
  CompiledEncoding result{&row, 0, 0, false};
  int count = 0;
  for (const char* c = row.pattern; *c != '\0'; ++c) {
    if (*c == ' ') continue;
    result.value = result.value << 1 | (*c == '1' ? 1 : 0);
    result.mask = result.mask << 1 | (*c == '0' || *c == '1' ? 1 : 0);
    ++count;
  }
  CARINA_CHECK(count == 16 || count == 32, "an instruction has 16 or 32 bits");
  result.wide = count == 32;
  const std::string_view text = row.text;
  const auto begins = [text](std::initializer_list<std::string_view> names) {
    return std::any_of(names.begin(), names.end(),
                       [text](std::string_view name) { return text.substr(0, name.size()) == name; });
  };
  const bool vector = (row.features & (kMve | kMveFloat)) != 0 && text.front() == 'v';
  result.beats = (vector && !begins({"vmrs", "vmsr", "vldr vpr", "vldr p0", "vstr vpr", "vstr p0"})) ||
                 (begins({"vmov"}) && text.find("[{x}]") != std::string_view::npos);
  result.restarts = begins({"ldm", "stm", "push", "pop", "clrm", "vldm", "vstm", "vscclrm"});
  result.passes = begins({"le ", "letp", "bkpt"});
  return result;
}

/// 32-bit instructions are looked up by bits 28:20 first, then row by row.
constexpr uint32_t kBucketShift = 20, kBuckets = 512;

struct Tables {
  std::vector<CompiledEncoding> rows;
  std::vector<uint16_t> narrow;  // by code; 0 = none, else 1 + index
  std::array<std::vector<uint16_t>, kBuckets> wide;

  Tables() : narrow(0x10000) {
    for (const Group group : kGroups) {
      for (const Encoding& row : group()) rows.push_back(compile(row));
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      rows[i].wide ? addWide(i) : addNarrow(i);
    }
  }

  void addNarrow(size_t i) {
    const uint32_t open = ~rows[i].mask & 0xffff;
    uint32_t rest = 0;
    do {  // all values of the don't-care bits
      uint16_t& entry = narrow[rows[i].value | rest];
      if (entry == 0) entry = static_cast<uint16_t>(i + 1);
      rest = (rest - open) & open;
    } while (rest != 0);
  }
  void addWide(size_t i) {
    const uint32_t open = ~rows[i].mask >> kBucketShift & (kBuckets - 1);
    const uint32_t fixed = rows[i].value >> kBucketShift & (kBuckets - 1);
    uint32_t rest = 0;
    do {
      wide[fixed | rest].push_back(static_cast<uint16_t>(i));
      rest = (rest - open) & open;
    } while (rest != 0);
  }
};

const Tables& tables() {
  static const Tables instance;
  return instance;
}

}  // namespace

std::span<const CompiledEncoding> allEncodings() {
  return tables().rows;
}

const CompiledEncoding* findEncoding(uint32_t code, bool wide, uint32_t features) {
  const Tables& all = tables();
  if (!wide) {
    const uint16_t entry = all.narrow[code & 0xffff];
    if (entry == 0) return nullptr;
    const CompiledEncoding& row = all.rows[entry - 1u];
    return (row.row->features & ~features) == 0 ? &row : nullptr;
  }
  for (const uint16_t i : all.wide[code >> kBucketShift & (kBuckets - 1)]) {
    const CompiledEncoding& row = all.rows[i];
    if ((code & row.mask) == row.value && (row.row->features & ~features) == 0) return &row;
  }
  return nullptr;
}

Decoded decodeInto(Op& op, const CompiledEncoding& encoding, DecodeContext& context) {
  uint32_t bit = encoding.wide ? 32 : 16;
  for (const char* c = encoding.row->pattern; *c != '\0'; ++c) {
    if (*c == ' ') continue;
    const uint32_t value = op.code >> --bit & 1;
    const auto gather = [&](uint8_t& field) { field = static_cast<uint8_t>(field << 1 | value); };
    switch (*c) {
      case 'd':
        gather(op.d);
        break;
      case 'n':
        gather(op.n);
        break;
      case 'm':
        gather(op.m);
        break;
      case 'a':
        gather(op.a);
        break;
      case 'x':
        gather(op.x);
        break;
      case 'y':
        gather(op.y);
        break;
      case 'z':
        gather(op.z);
        break;
      case 'w':
        gather(op.w);
        break;
      case 'i':
        op.imm = op.imm << 1 | value;
        break;
      default:
        break;
    }
  }
  op.run = context.inIt && encoding.row->inIt != nullptr ? encoding.row->inIt : encoding.row->run;
  return encoding.row->prepare == nullptr ? Decoded::Ok : encoding.row->prepare(op, context);
}

}  // namespace carina::cpu_m
