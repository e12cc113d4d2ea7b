// SPDX-License-Identifier: Apache-2.0
// Command streams and driver payloads as text. The text is lossless: assembler.hpp turns it back into the
// same bytes.
//
//   .payload cop1
//   .config 0x00001807 0x10060000        ; ethos-u55-128
//   .nop
//   .stream ethos-u55
//   NPU_SET_IFM_REGION region=1          ; 0x24
//   NPU_OP_CONV                          ; 0x148 conv 40x7x16 s8 ...
//   .end
//
// One command per line with its fields as name=value: logical values (a "minus one" field shows the actual
// value), enum names, hexadecimal addresses. Words that are not a command, or that set reserved bits, appear
// as .word. Text after ';' is a comment.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/tensor.hpp"
#include "npu/isa/operation.hpp"
#include "npu/targets/target.hpp"

namespace carina::npu {

struct DisassemblyOptions {
  bool comments = true;  // byte offsets, and what each operation does
};

/// Accepts any words; those that cannot be decoded appear as .word.
std::string disassembleStream(std::span<const uint32_t> words, Family family,
                              const DisassemblyOptions& options = {});

/// A field of a command as the text shows it.
struct ListedField {
  std::string_view name;
  int64_t value = 0;            // logical: the actual value of a "minus one" field
  std::string_view enumerator;  // the name of the value, if it has one
  bool address = false;         // the text shows it in hexadecimal
};

/// A command of a stream, or words that are not a command.
struct ListedCommand {
  uint32_t offset = 0;    // in bytes
  std::string_view name;  // empty: words that are not a command, or that set reserved bits
  std::vector<ListedField> fields;
  std::vector<uint32_t> words;  // if `name` is empty
  std::string_view reserved;    // the command whose reserved bits they set
  std::string operation;  // describe() of the operation started; or, in parentheses, why it cannot be read
};

/// The lines of disassembleStream() as data. Operations are decoded for `target`; null: not decoded.
std::vector<ListedCommand> listStream(std::span<const uint32_t> words, Family family, const Target* target);

/// Disassembles a whole driver payload. Fails if it is not a payload, or if its NPU is unknown (its commands
/// then cannot be named).
Result<std::string> disassemblePayload(ByteSpan payload, const DisassemblyOptions& options = {});

/// One human-readable line: "conv 40x7x16 s8 <- 49x10x1 s8, kernel 10x4 stride 1x1".
std::string describe(const Operation& operation);

}  // namespace carina::npu
