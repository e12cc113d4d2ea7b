// SPDX-License-Identifier: Apache-2.0
// Networks of .tflite files: read, placed on an NPU as a whole or in parts, and written again with `ethos-u`
// operators in place of the parts.
#pragma once

#include "pipeline/pipeline.hpp"
#include "tflite/graph_builder.hpp"

namespace carina::pipeline {

/// A .tflite as it was read. Locations of nodes made from `network` are its own.
struct TfliteSource {
  std::shared_ptr<const MappedFile> file;
  tflite::Model model;  // borrows `file`
  tflite::PartialNetwork network;
};

/// Every operator of a .tflite as the file names it.
Result<std::vector<SourceNode>> tfliteNodes(const std::filesystem::path& file);

/// A whole network as TOSA; for an NPU, one that has parts for the CPU as a graph of the tfl dialect. For
/// target cpu, operators that do not lower are errors, all of them at once.
Result<Front> readTflite(const Options& options, std::vector<StageTime>& times);

/// Why a network is no whole: errors name operators and what would help.
Error wholeError(const TfliteSource& source, const Options& options);

/// Settles whether a network that lowers to TOSA is one part of an NPU, as `placeWhole` says: otherwise,
/// where some of it is to stay on the CPU, and where conversions at its ends are to stay operators, the
/// front's graph becomes that of the tfl dialect. Returns what `placeWhole` made of a whole network.
std::optional<ir::Graph> placeTflite(const Options& options, const partition::Place& placeWhole, Front& front,
                                     const partition::PlaceControlFlow& placeControlFlow = nullptr);

/// How the graph of such a front is partitioned. `source` outlives it.
partition::Dialect tfliteDialect(const TfliteSource& source);

/// Names refused operators as the file does: "SVDF" in place of tfl.OTHER.
void nameOperators(const Front& front, partition::Partitioned& partitioned);

/// The network of a build with `ethos-u` operators in place of its NPU parts, and places in the arena for all
/// tensors.
Result<std::string> rewrittenTflite(const Build& build);

}  // namespace carina::pipeline
