// SPDX-License-Identifier: Apache-2.0
// The accuracy of a network or program on labelled data: float, simulation, TOSA and NPU side by side.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "evaluate/data_set.hpp"
#include "evaluate/metrics.hpp"
#include "evaluate/records.hpp"
#include "pipeline/gates.hpp"
#include "pipeline/pipeline.hpp"

namespace carina::evaluate {

struct Options {
  pipeline::Options build;  // model: a network, or a program
  std::filesystem::path data;
  Preprocessing preprocessing;
  std::optional<Task> task;     // nullopt: from the labels
  std::vector<Engine> engines;  // empty: all available
  size_t most = 0;              // samples, 0: all
  double boxIou = 0.5;          // minimum overlap of matching boxes
  double badLayer = 20;         // dB below which a layer of a flipped sample is bad
  size_t shard = 0, shards = 1;
  std::filesystem::path records;  // may be empty
  std::function<void(const SampleRecord&)>
      record;  // receives each record in order, those of an earlier run first; may be empty
  quantize::Progress progress;
};

struct Evaluation {
  RecordsHeader header;
  Summary summary{Task::Compare, {}};
  pipeline::Measured measured;  // SQNR and top-1 are the NPU's
  std::vector<Diagnostic> warnings;

  /// Derived from the summary.
  void takeMeasured();
};

/// Runs all samples, or those of one shard, on all cores. Errors name the sample; the first in sample order
/// is reported.
Result<Evaluation> evaluate(const Options& options);

/// Merges all shards, in any order. Errors: shards that belong to different evaluations, are missing,
/// duplicate or incomplete. Bit-identical to a single evaluation of everything.
Result<Evaluation> merge(const std::vector<std::filesystem::path>& files);

}  // namespace carina::evaluate
