// SPDX-License-Identifier: Apache-2.0
// Networks of .tflite files: reading, placement on an NPU as a whole or in parts, and writing with `ethos-u`
// operators in place of the parts.
#pragma once

#include "pipeline/pipeline.hpp"
#include "tflite/graph_builder.hpp"

namespace carina::pipeline {

/// A .tflite as read. Nodes created from `network` have its locations.
struct TfliteSource {
  std::shared_ptr<const MappedFile> file;
  tflite::Model model;  // borrows `file`
  tflite::PartialNetwork network;
};

/// Every operator of a .tflite, named as in the file.
Result<std::vector<SourceNode>> tfliteNodes(const std::filesystem::path& file);

/// A whole network as TOSA; for an NPU, a network with parts for the CPU as a graph of the tfl dialect. For
/// target cpu, operators that cannot be lowered are errors, reported together.
Result<Front> readTflite(const Options& options, std::vector<StageTime>& times);

/// Why a network cannot be one whole: errors name the operators and what would help.
Error wholeError(const TfliteSource& source, const Options& options);

/// Decides whether a network that lowers to TOSA becomes one NPU part, according to `placeWhole`. If not,
/// because part of it is to stay on the CPU or conversions at its inputs and outputs are to stay operators,
/// the front's graph becomes that of the tfl dialect. Returns the result of `placeWhole` for a whole network.
std::optional<ir::Graph> placeTflite(const Options& options, const partition::Place& placeWhole, Front& front,
                                     const partition::PlaceControlFlow& placeControlFlow = nullptr);

/// How the graph of such a front is partitioned. `source` must outlive it.
partition::Dialect tfliteDialect(const TfliteSource& source);
/// Why operators of such a front cannot be in any part. `source` must outlive it.
partition::Supports tfliteRefusals(const TfliteSource& source);

/// Names refused operators as in the file: "SVDF" instead of tfl.OTHER.
void nameOperators(const Front& front, partition::Partitioned& partitioned);

/// The network of a build with `ethos-u` operators in place of its NPU parts, and arena offsets for all
/// tensors.
Result<std::string> rewrittenTflite(const Build& build);

}  // namespace carina::pipeline
