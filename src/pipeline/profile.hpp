// SPDX-License-Identifier: Apache-2.0
// Where the cycles and the bytes of a program go: its operations on the timeline of the cycle model, grouped
// by the network layer that they come from, and its memory plan. For a network, which is compiled first, or
// for a finished program.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/measured_ways.hpp"
#include "pipeline/network_graph.hpp"
#include "pipeline/pipeline.hpp"

namespace carina::pipeline {

/// One hardware operation.
struct ProfiledOperation {
  size_t layer = 0;         // index into ProfiledPart::layers
  std::string name, kind;   // "conv2d_3[16:32]", "CONV"
  std::string description;  // "conv 40x7x16 s8 <- 49x10x1 s8, kernel 10x4 stride 1x1"
  npu::Operation operation;
  npu::ScheduledCost timing;
  npu::Cycles added = 0;  // time that it adds to the timeline: from the end of earlier ones to its own
};

/// The operations of one node of the network (for a finished program, which has no names: one operation).
struct Layer {
  std::string name, modulePath, source;  // "conv2d_3", "features.3.conv", "model.py:42"; empty when unknown
  std::string op;                        // as in the file: "aten.conv2d.default"; empty when unknown
  std::string kind;                      // of its most expensive kernel operation
  size_t operations = 0, heaviest = 0;   // heaviest: index into ProfiledPart::operations
  npu::Cycles cycles = 0;                // added to the timeline, waiting for transfers included
  npu::Cycles compute = 0;               // of its kernel operations alone
  int64_t macs = 0;
  npu::BoundBy bound = npu::BoundBy::Mac;     // what limits it
  std::array<npu::PortTraffic, 2> traffic{};  // per port of the system configuration, transfers included
  std::optional<double> sqnr;  // dB of the last value that it completes, with Options::measureSqnr
};

/// One delegate.
struct ProfiledPart {
  std::string method;  // for a program in which several methods have NPU parts; else empty
  std::vector<ProfiledOperation> operations;
  std::vector<Layer> layers;  // in the order in which they first run
  npu::Cycles cycles = 0;
  int64_t macs = 0;
  int64_t arenaBytes = 0, cacheBytes = 0, constantBytes = 0, commandBytes = 0;
  std::vector<compiler::MemoryRecord> memory;    // empty for a finished program
  std::vector<std::string> steps;                // of the schedule, for the memory plan
  std::vector<npu::Cycles> cyclesByRules;        // under each of npu::timing::ruleSets()
  std::vector<compiler::BranchRecord> branches;  // conditionals and loops; empty for a finished program
};

struct Profile {
  std::filesystem::path file;
  npu::Machine machine;
  std::vector<ProfiledPart> parts;
  std::vector<NetworkNode> network;  // empty for a finished program
  npu::Cycles longest = 0;  // of a network: all parts on the longest path, data-dependent loops iterate once
  std::optional<MeasuredPaths> measured;  // if samples were given
  /// Unset if not known for a finished program: none records its SQNR, and only a .pte the others.
  std::optional<double> inferenceMs, sqnr;
  std::optional<bool> wholly;
  std::string onCpu;  // what is not on the NPU, and why
  std::optional<int64_t> programBytes;
  std::vector<Diagnostic> warnings;  // from the compilation
  std::vector<StageTime> times;
};

/// For options.model: a network, which is first compiled for options.target, or a finished program.
Result<Profile> profile(const Options& options);
/// For a compilation for an NPU.
Profile profileBuild(const Build& build);
/// For a file with command streams (see command_streams.hpp): a .pte, a .tflite compiled for an Ethos-U, a
/// blob. `options` may select another system configuration or memory mode; the target is the program's,
/// except for bare commands.
Result<Profile> profileProgram(const std::filesystem::path& file, const Options& options);

}  // namespace carina::pipeline
