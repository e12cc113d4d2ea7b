// SPDX-License-Identifier: Apache-2.0
// Command streams and driver payloads as text. The text holds every bit: assembler.hpp turns it back into the
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
// One command per line with its fields as name=value: logical values (a "minus one" field shows the real
// number), enum names, hexadecimal addresses. What is no command, or sets reserved bits, is a .word. Text
// after ';' is a comment.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/result.hpp"
#include "base/tensor.hpp"
#include "npu/isa/operation.hpp"
#include "npu/targets/target.hpp"

namespace carina::npu {

struct DisassemblyOptions {
  bool comments = true;  // byte offsets, and what each operation does
};

/// Any words: what is not understood appears as .word.
std::string disassembleStream(std::span<const uint32_t> words, Family family,
                              const DisassemblyOptions& options = {});

/// A whole driver payload. Fails when it is none, or when its NPU is unknown (the commands cannot be named
/// then).
Result<std::string> disassemblePayload(ByteSpan payload, const DisassemblyOptions& options = {});

/// One line for people: "conv 40x7x16 s8 <- 49x10x1 s8, kernel 10x4 stride 1x1".
std::string describe(const Operation& operation);

}  // namespace carina::npu
