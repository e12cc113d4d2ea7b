// SPDX-License-Identifier: Apache-2.0
// Random legal instructions, generated from the tables of encodings, as bare-metal images that store all
// registers in memory: the same image runs on the core and on another emulator.
#pragma once

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "cpu_m/encoding.hpp"

namespace carina::cpu_m {

/// An image: a vector table at kVectors and the rest at kBase. It ends with semihosting calls that write the
/// results to the console and exit; the first of them is reached at `end`.
struct RandomImage {
  static constexpr uint32_t kVectors = 0x10000000, kBase = 0x60000000, kStart = kBase + 0x2000;
  std::vector<uint8_t> vectors, code;
  uint32_t end = 0;
  uint32_t results = 0, resultBytes = 0;  // [address, address + size) of the memory to compare
  struct Case {
    uint32_t begin, end;  // of its instructions
    uint32_t results;     // r0..r12, APSR, S0..S31, FPSCR, VPR, then kScratch bytes of memory
  };
  std::vector<Case> cases;
  struct Data {
    uint32_t begin, end;
  };
  std::vector<Data> data;         // tables and constants between instructions
  uint64_t instructions = 0;      // number of random ones
  uint64_t flowInstructions = 0;  // those of RandomOptions::flow

  static constexpr uint32_t kRegisterWords = 14 + 32 + 2, kScratch = 256,
                            kCaseBytes = 4 * kRegisterWords + kScratch;
  /// The image as an ELF file.
  std::vector<uint8_t> elf() const;
};

struct RandomOptions {
  uint32_t features = 0;
  int cases = 100, instructionsPerCase = 8;
  /// The rows to take instructions from.
  std::function<bool(const CompiledEncoding&)> wanted;
  /// IT blocks, branches and loops between them.
  bool control = true;
  /// Random modes in FPSCR, predicates and loop tails (VPR, LTPSIZE and LR); operands that are special
  /// floating-point numbers.
  bool vectors = false;
  /// Vector instructions that resume after their first beats, as after a return from an exception: an SVC
  /// with the ECI as its number precedes them.
  bool resumed = false;
  /// Branches, loops, stops and accesses to special registers (random_flow.hpp) among them.
  bool flow = false;
};

RandomImage makeRandomImage(uint32_t seed, const RandomOptions& options);

/// The instructions of a case in the order of their addresses.
struct Listed {
  uint32_t address, code;
  bool wide;
};
std::vector<Listed> instructionsOf(const RandomImage& image, const RandomImage::Case& which);

/// "adds r0, r1" and so on, one per line, for messages.
std::string listing(const RandomImage& image, const RandomImage::Case& which, uint32_t features);

}  // namespace carina::cpu_m
