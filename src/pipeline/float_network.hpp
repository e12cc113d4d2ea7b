// SPDX-License-Identifier: Apache-2.0
// A network on its way to the quantizer: read, decomposed, with its calibration samples. To quantize it in
// several ways, it is read once.
#pragma once

#include "pipeline/pipeline.hpp"
#include "quantize/rules_file.hpp"

namespace carina::pipeline {

struct FloatNetwork {
  Front front;             // as far as known before quantization; complete if nothing is quantized
  bool quantizes = false;  // false: the network is prequantized, or the options leave it in float
  ir::Graph graph;         // for the quantizer
  quantize::Options quantizer;
  std::vector<quantize::Sample> samples;
};

/// The state that methods of one program share.
struct CommonState {
  std::vector<std::string> names;          // of buffers used by several of them and written by one
  std::map<std::string, Tensor> contents;  // as left by the calibration samples of the methods so far
};

/// For a .pt2; recurrences are unrolled, because whoever simulates a network with some layers in other
/// precisions, or shares state between networks, does not look into loops. Errors: those of runFront up to
/// the quantizer. `common`: of the program that this network becomes a method of; its samples are the calls
/// that follow those of the methods so far.
Result<FloatNetwork> readFloatNetwork(const Options& options, std::vector<StageTime>& times,
                                      CommonState* common = nullptr);

/// Networks of one program, each by its own options, quantized so that common state has one range
/// (quantize/together.hpp). Networks that are not to be quantized are already complete.
Result<std::vector<Front>> quantizeNetworks(std::span<const Options> options,
                                            std::vector<FloatNetwork> networks,
                                            std::vector<StageTime>& times);

/// The network quantized according to the options and these rules.
Result<Front> quantizeNetwork(const Options& options, const FloatNetwork& network,
                              const quantize::RulesFile& rules, std::vector<StageTime>& times);
/// The options that quantizeNetwork would pass to the quantizer.
quantize::Options quantizerOf(const Options& options, const FloatNetwork& network,
                              const quantize::RulesFile& rules);

}  // namespace carina::pipeline
