// SPDX-License-Identifier: Apache-2.0
// Where the time of the parts for an Ethos-N goes, by the public formulas: walks the commands in execution
// order and counts what each pass moves and computes.
#pragma once

#include <algorithm>

#include "ethosn/stream/ple_kernels.hpp"
#include "pipeline/pipeline.hpp"

namespace carina::pipeline {

/// What a pass moves between DRAM and SRAM for one of its feature maps, or reads from SRAM if it is already
/// there.
struct EthosNTraffic {
  uint64_t bytes = 0, stripes = 0;  // moved
  uint64_t mapBytes = 0;            // of the feature maps; anything moved beyond that is a reload
  uint64_t sramBytes = 0;           // left in SRAM by an earlier pass, or for later passes

  uint64_t alone() const { return stripes == 0 ? 0 : bytes / stripes; }  // nothing runs in parallel with it
  uint64_t parallel() const { return bytes - alone(); }
  /// How often the whole feature map is reloaded. One transfer moves it once; anything in addition belongs to
  /// later passes.
  uint64_t reloads() const {
    return mapBytes == 0 || bytes <= mapBytes ? 0 : std::min(stripes - 1, (bytes - 1) / mapBytes);
  }
};

/// One pass: what the hardware does in one go for an operation.
struct EthosNPassCost {
  std::string operation;  // node of the network
  std::string mce, ple;   // see ethosn::CompiledPass
  uint64_t stripes = 0;   // of the MCE, or of the PLE
  uint64_t macs = 0, mceCycles = 0, pleCycles = 0;
  uint64_t plePatches = 0;                           // see ethosn::plePatches()
  std::optional<ethosn::PleOperation> pleOperation;  // none: a copy
  EthosNTraffic input, weights, output;
  uint64_t streamBytes = 0, plainWeightBytes = 0;  // of the weights, compressed and uncompressed
  /// By the metric of Arm's planner: transfers with which nothing overlaps, plus the longest of the
  /// activities that run in parallel.
  uint64_t cycles = 0;
};

struct EthosNPartCost {
  std::vector<EthosNPassCost> passes;
  int64_t sramBytes = 0;  // in use
  /// From the first command to the end of the last, as scheduled by the waits, including overlap between
  /// passes.
  uint64_t overlappedCycles = 0;
  uint64_t constantBytes = 0, intermediateBytes = 0, commandBytes = 0;

  uint64_t sum(uint64_t EthosNPassCost::*member) const;
};

Result<EthosNPartCost> costOf(const EthosNPart& part, const ethosn::Target& target);

struct EthosNProfile {
  std::filesystem::path file;
  ethosn::Target target;
  std::vector<EthosNPartCost> parts;
  std::vector<partition::Refusal> refusals;  // what is left to the CPU, and why
  int64_t cpuCycles = 0;                     // estimated, for that
  std::vector<Diagnostic> warnings;
  std::vector<StageTime> times;

  uint64_t cycles() const;
  uint64_t overlappedCycles() const;
};
/// `build` must be for an Ethos-N.
Result<EthosNProfile> profileEthosN(const Build& build);

/// Whether the file is a compiled network (.encn), or a program with parts for an Ethos-N.
bool isEthosNProgram(const std::filesystem::path& file);
/// For such a file, made by any compiler: a pass is named after its weights or its output. What stays in SRAM
/// is not known.
Result<EthosNProfile> profileEthosNProgram(const std::filesystem::path& file, const Options& options);

}  // namespace carina::pipeline
