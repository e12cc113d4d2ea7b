// SPDX-License-Identifier: Apache-2.0
// Determines which layers of a network need 16 bits: the cheapest program that is accurate enough, or the
// most accurate one that is cheap enough. Layers are measured one by one and together, their cost comes from
// compilation, and every choice is quantized, simulated and compiled before it counts.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/gates.hpp"
#include "pipeline/pipeline.hpp"
#include "quantize/rules_file.hpp"

namespace carina::precision {

/// What is required: at least one of these limits.
struct Goal {
  std::optional<double> minSqnr;     // dB of the worst output
  std::optional<double> minTop1;     // percent, on `data`
  std::optional<int64_t> maxCycles;  // of the NPU
  std::filesystem::path data;        // as for 'carina evaluate'; with minTop1
};

/// A program that was built.
struct Row {
  std::string name;  // "int8", "16x8", "12 of 80 layers"
  size_t raised = 0;
  double decibels = 0;            // simulated
  std::optional<double> program;  // dB of the program on the NPU model, if it was run
  std::optional<double> top1;     // percent
  int64_t cycles = 0, sram = 0, flash = 0;
  bool chosen = false;
  bool dominated = false;  // another one is as accurate with fewer cycles, or more accurate with as many
};

/// A layer: operators whose precision changes together.
struct LayerChoice {
  std::vector<std::string> nodes;
  std::string modulePath;
  bool raised = false;
  double alone = 0;   // dB of the worst output if only this layer's tensors are rounded to int8
  double gained = 0;  // share of int8's noise that raising only this layer removes
  double cycles = 0;  // of raising it, without conversions at its borders
};

struct AutoPrecision {
  std::vector<Row> rows;  // by cycles
  std::vector<LayerChoice> layers;
  std::vector<std::string> settings;  // in addition to the options' own: "equalize"
  size_t judged = 0;                  // samples on which decibels are measured
  size_t proving = 0;                 // samples on which programs run
  size_t labelled = 0;                // samples on which top-1 is measured
  /// How much more the choice may cost than the best one, by the model; empty if there was no search.
  std::optional<double> gap;
  quantize::RulesFile rules;
  /// The chosen program; null if the goal cannot be reached.
  std::unique_ptr<pipeline::Build> build;
  pipeline::Measured measured;  // of that program, or of the one nearest to the goal
};

/// `options`: for a float .pt2 and an NPU, with calibration samples. Errors: a network that is already
/// quantized or has no float output to compare, a network with state if top-1 is required, data without
/// classes, and errors of quantization and compilation.
Result<AutoPrecision> autoPrecision(const pipeline::Options& options, const Goal& goal,
                                    const quantize::Progress& progress = nullptr);

}  // namespace carina::precision
