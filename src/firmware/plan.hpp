// SPDX-License-Identifier: Apache-2.0
// The contents of the image of one program: everything in its generated source, derived from the program.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/tensor.hpp"
#include "firmware/platforms.hpp"
#include "npu/targets/target.hpp"

namespace carina::firmware {

/// Default bytes of stack. An image with no kernels other than quantize and dequantize uses a kilobyte; the
/// frames of all other kernels are at most 1.5 KiB (the kit is built with a limit of 2 KiB).
constexpr int64_t kStack = 4096, kStackOfKernels = 6144;

/// An image that prints the text of a language model.
struct TextOptions {
  std::filesystem::path tokenizer;  // tokenizer.json
  std::string prompt;               // empty: lines that the UART receives
  int64_t tokens = 64;              // of a text, at most, excluding the prompt
  int64_t context = 0;              // tokens that the state can hold; 0: as the program specifies
};

struct PlanOptions {
  std::string platform;                  // "corstone-300"
  std::string method;                    // empty: the first
  std::optional<TextOptions> text;       // the methods are then those of a language model
  int32_t npuMacs = 0;                   // of the platform's NPU; 0: what the program was compiled for
  bool programByFile = false;            // the program is not linked in but read by semihosting
  bool semihosted = false;               // inputs and outputs are files
  int64_t stackBytes = 0;                // 0: as the program's kernels require
  NamedTensors inputs;                   // in0, in1, ...; empty: every element is 1
  NamedTensors expected;                 // out0, out1, ...; empty: nothing to compare with
  std::string inputsFile, expectedFile;  // where they come from, for messages
};

/// A block of memory and the region in which it is placed.
struct Placement {
  std::string_view what;    // "program", "arena", ...
  std::string_view region;  // "SRAM"
  int64_t bytes = 0;
};

/// The memory requirements of a method.
struct MethodPlan {
  uint32_t index = 0;  // among the program's methods
  size_t values = 0, operators = 0, delegates = 0;
  int64_t ioBytes = 0;
  std::vector<int64_t> poolBytes;
  /// Upper bound for the method's own memory, which is laid out by the cross compiler.
  int64_t methodBytes() const;
};
/// Index, counted from 0, of the pool that methods share: the state that they keep between calls.
constexpr size_t kStatePool = 1;

struct TextPlan {
  std::string table;  // format/tokenizer_table.hpp
  std::string prompt;
  int64_t tokens = 0, context = 0;
  int64_t lineBytes = 0, pieces = 0;  // of a prompt
};

struct Plan {
  const PlatformInfo* platform = nullptr;
  std::optional<npu::Machine> machine;  // none without delegates
  std::string target;                   // "ethos-u55-128" or "cpu"
  bool programByFile = false, semihosted = false;
  std::vector<std::string> kernels;  // of all methods
  std::vector<MethodPlan> methods;   // the one that is run; of a language model: decode, and prefill if any
  std::optional<TextPlan> text;
  int64_t programBytes = 0, temporaryBytes = 0, fastScratchBytes = 0, stackBytes = 0;
  uint32_t samples = 1;
  std::vector<std::string> inputs, expected;  // bytes as in the target's memory, all samples
  std::vector<Placement> placements;
  std::vector<std::string> notes;  // for the user

  std::string_view regionOf(std::string_view what) const;
  /// Pools, and inputs and outputs without planned memory; what methods share counts once.
  int64_t poolBytes() const;
  int64_t methodBytes() const;  // of all methods
  /// Whether pool `pool` of method `method` is that of the first method.
  bool isShared(size_t method, size_t pool) const;
};

/// Errors: the program cannot be read or needs kernels or backends that do not exist, was compiled for an NPU
/// other than the platform's, arrays do not match it, or a block does not fit its region (the error states
/// the sizes).
Result<Plan> makePlan(ByteSpan program, const PlanOptions& options);

/// The same without a platform: kernels and sizes, but no placement. `method` empty: the first.
Result<Plan> measureProgram(ByteSpan program, const std::string& method);

}  // namespace carina::firmware
