// SPDX-License-Identifier: Apache-2.0
// Compiles one network for many targets, system configurations and memory modes for comparison. The network
// is read and quantized once.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "pipeline/gates.hpp"
#include "pipeline/inference_time.hpp"
#include "pipeline/pipeline.hpp"

namespace carina::pipeline {

struct SweepOptions {
  Options base;                            // target, system configuration and memory mode are not used
  bool pareto = false;                     // per configuration: the arenas that are Pareto-optimal
  std::vector<std::string> targets;        // empty: all NPUs
  std::string cpuCore;                     // core for the CPU part; empty: the default one
  std::vector<std::string> systemConfigs;  // empty: each target's default
  std::vector<std::string>
      memoryModes;  // empty: each target's default; "all": every mode that the target has
  std::function<void(size_t done, size_t total)>
      progress;  // may be called from several threads, one at a time
};

/// One configuration.
struct SweepRow {
  std::string target, systemConfig, memoryMode;
  double clockHz = 0;  // 0: not known (Ethos-N)
  npu::Cycles cycles = 0;
  int64_t macs = 0;
  double macUse = 0;  // 0..1
  int64_t arenaBytes = 0, cacheBytes = 0, constantBytes = 0, commandBytes = 0;
  std::string reproduce;   // on a frontier: the options of `carina compile` that give this row
  int64_t arenaBound = 0;  // on a frontier: no choice of cascades needs less; 0: unknown
  std::map<npu::MemoryKind, int64_t> bytes;  // of each physical memory; commands count as constants
  bool wholly = false;                       // the whole network runs on the NPU
  std::string problem;                       // why there is no result, "" when there is one
  Measured measured;                         // for gates
  std::optional<InferenceTime> inference;
};

struct Sweep {
  std::vector<SweepRow> rows;
  std::vector<Diagnostic> warnings;  // from reading and quantizing the network
  std::vector<StageTime> times;      // of reading it, and of all configurations together
};

/// One row per configuration that exists, in the order of the lists, those of an Ethos-N last. `pareto`: for
/// an Ethos-U configuration one row per arena size that takes fewer cycles than all smaller ones, smallest
/// first, from that of --optimize size to that of --optimize performance. Fails if the network cannot be read
/// or quantized, or a name is unknown; a failure of a single configuration is its row's problem.
Result<Sweep> sweep(const SweepOptions& options);

}  // namespace carina::pipeline
