// SPDX-License-Identifier: Apache-2.0
// A network on its way to the quantizer: read, decomposed, with its calibration samples. Whoever quantizes it
// in several ways reads it once.
#pragma once

#include "pipeline/pipeline.hpp"
#include "quantize/rules_file.hpp"

namespace carina::pipeline {

struct FloatNetwork {
  Front front;             // as far as it is known before quantization; complete when nothing is quantized
  bool quantizes = false;  // false: the network came quantized, or the options leave it in float
  ir::Graph graph;         // for the quantizer
  quantize::Options quantizer;
  std::vector<quantize::Sample> samples;
};

/// The state that methods of one program have in common.
struct CommonState {
  std::vector<std::string> names;          // of the buffers that several of them use and one writes
  std::map<std::string, Tensor> contents;  // what the calibration samples of the methods so far left
};

/// Of a .pt2; its recurrences are unrolled: what simulates a network with some of its layers in other
/// precisions, or shares state between networks, does not look into loops. Errors: those of runFront up to
/// the quantizer. `common`: of the program that it becomes a method of; its samples are the calls behind
/// those of the methods so far.
Result<FloatNetwork> readFloatNetwork(const Options& options, std::vector<StageTime>& times,
                                      CommonState* common = nullptr);

/// Networks of one program, each by its own options, quantized so that common state has one range
/// (quantize/together.hpp). Those that are not to be quantized are complete as they are.
Result<std::vector<Front>> quantizeNetworks(std::span<const Options> options,
                                            std::vector<FloatNetwork> networks,
                                            std::vector<StageTime>& times);

/// The network quantized by the options and these rules.
Result<Front> quantizeNetwork(const Options& options, const FloatNetwork& network,
                              const quantize::RulesFile& rules, std::vector<StageTime>& times);
/// What quantizeNetwork would tell the quantizer.
quantize::Options quantizerOf(const Options& options, const FloatNetwork& network,
                              const quantize::RulesFile& rules);

}  // namespace carina::pipeline
