// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "cpu_m/encoding.hpp"

namespace carina::cpu_m {
namespace {

constexpr const char* kConditions[] = {"eq", "ne", "cs", "cc", "mi", "pl", "vs", "vc",
                                       "hi", "ls", "ge", "lt", "gt", "le", "",   ""};

std::string registerName(uint32_t number) {
  switch (number) {
    case 13:
      return "sp";
    case 14:
      return "lr";
    case 15:
      return "pc";
    default:
      return fmt::format("r{}", number);
  }
}

std::string registerList(uint32_t list) {
  std::string text;
  for (uint32_t i = 0; i < 16; ++i) {
    if ((list >> i & 1) != 0) text += (text.empty() ? "" : ", ") + registerName(i);
  }
  return "{" + text + "}";
}

uint32_t fieldValue(const Op& op, char name) {
  switch (name) {
    case 'd':
      return op.d;
    case 'n':
      return op.n;
    case 'm':
      return op.m;
    case 'a':
      return op.a;
    case 'x':
      return op.x;
    case 'y':
      return op.y;
    case 'z':
      return op.z;
    case 'w':
      return op.w;
    default:
      return op.imm;
  }
}

/// The T and E letters of a VPT block: each mask bit above the lowest 1 adds a letter; a 1 toggles it.
std::string blockLetters(uint32_t mask) {
  std::string letters = "t";
  for (mask = mask << 1 & 31; (mask & 15) != 0; mask = mask << 1 & 31) {
    const bool toggles = (mask & 16) != 0;
    letters += (letters.back() == 't') != toggles ? 't' : 'e';
  }
  return letters;
}

/// "[r1, #-4]!": Op::x indexes before the access, Op::w writes back.
std::string indexed(const Op& op) {
  const std::string base = registerName(op.n), offset = fmt::format("#{}", static_cast<int32_t>(op.imm));
  if (op.x == 0) return fmt::format("[{}], {}", base, offset);
  if (op.imm == 0 && op.w == 0) return fmt::format("[{}]", base);
  return fmt::format("[{}, {}]{}", base, offset, op.w != 0 ? "!" : "");
}

/// Op::a words from single register Op::d on.
std::string floatList(const Op& op, char letter) {
  const uint32_t words = letter == 'd' ? 2 : 1, first = op.d / words, count = op.a / words;
  return count == 1 ? fmt::format("{{{}{}}}", letter, first)
                    : fmt::format("{{{}{}-{}{}}}", letter, first, letter, first + count - 1);
}

std::string fieldText(const Op& op, std::string_view field) {
  if (field == "vpt") return blockLetters(op.x);
  if (field == "mem") return indexed(op);
  if (field == "!") return op.w != 0 ? "!" : "";
  if (field == "slist") return floatList(op, 's');
  if (field == "dlist") return floatList(op, 'd');
  if (field == "c") return kConditions[op.x & 15];
  if (field == "label") return fmt::format("0x{:x}", op.imm);
  if (field == "list") return registerList(op.imm);
  if (field == "#i") return fmt::format("#{}", static_cast<int32_t>(op.imm));
  if (field.size() == 2 && field[0] == 'R') return registerName(fieldValue(op, field[1]));
  return fmt::format("{}", fieldValue(op, field[0]));
}

}  // namespace

std::string disassemble(uint32_t code, bool wide, uint32_t address, uint32_t features, uint8_t it) {
  std::string undefined =
      wide ? fmt::format("undefined 0x{:08x}", code) : fmt::format("undefined 0x{:04x}", code);
  const CompiledEncoding* encoding = findEncoding(code, wide, features);
  if (encoding == nullptr) return undefined;
  Op op;
  op.address = address;
  op.code = code;
  op.size = wide ? 4 : 2;
  op.it = it;
  DecodeContext context;
  context.features = features;
  context.inIt = it != 0;
  context.lastInIt = (it & 15) == 8;
  if (decodeInto(op, *encoding, context) == Decoded::Undefined) return undefined;
  std::string text;
  const std::string_view pattern = encoding->row->text;
  bool named = it == 0;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (!named && (pattern[i] == ' ' || pattern[i] == '.')) {
      text += kConditions[it >> 4];
      named = true;
    }
    const size_t close = pattern[i] == '{' ? pattern.find('}', i) : std::string_view::npos;
    if (close == std::string_view::npos) {
      text += pattern[i];
    } else {
      text += fieldText(op, pattern.substr(i + 1, close - i - 1));
      i = close;
    }
  }
  return text;
}

}  // namespace carina::cpu_m
