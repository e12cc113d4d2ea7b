// SPDX-License-Identifier: Apache-2.0
// Which layers of a network need 16 bits: the cheapest program that is accurate enough, or the most accurate
// one that is cheap enough. Layers are measured one by one and together, their cost comes from compiling, and
// what is chosen is quantized, simulated and compiled before it counts.
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

/// What is asked for: at least one of them.
struct Goal {
  std::optional<double> minSqnr;     // dB of the worst output
  std::optional<double> minTop1;     // percent, of `data`
  std::optional<int64_t> maxCycles;  // of the NPU
  std::filesystem::path data;        // as 'carina evaluate' takes it; with minTop1
};

/// A program that was made.
struct Row {
  std::string name;  // "int8", "16x8", "12 of 80 layers"
  size_t raised = 0;
  double decibels = 0;            // simulated
  std::optional<double> program;  // dB of the program on the NPU model, where it was run
  std::optional<double> top1;     // percent
  int64_t cycles = 0, sram = 0, flash = 0;
  bool chosen = false;
  bool dominated = false;  // another one is as accurate for fewer cycles, or more accurate for as many
};

/// A layer: operators that change their precision together.
struct LayerChoice {
  std::vector<std::string> nodes;
  std::string modulePath;
  bool raised = false;
  double alone = 0;   // dB of the worst output when only this layer's tensors are rounded to int8
  double gained = 0;  // share of the noise of int8 that raising only this layer takes away
  double cycles = 0;  // that raising it costs, without conversions at its borders
};

struct AutoPrecision {
  std::vector<Row> rows;  // by cycles
  std::vector<LayerChoice> layers;
  std::vector<std::string> settings;  // that are not the options' own: "equalize"
  size_t judged = 0;                  // samples that decibels are of
  size_t proving = 0;                 // samples that programs run on
  size_t labelled = 0;                // samples that top-1 is of
  /// How much dearer the choice may be than the best one by the model; nothing where none was searched for.
  std::optional<double> gap;
  quantize::RulesFile rules;
  /// The program that was chosen; null when the goal cannot be reached.
  std::unique_ptr<pipeline::Build> build;
  pipeline::Measured measured;  // of it, or of the nearest to the goal
};

/// `options`: of a float .pt2 for an NPU, with calibration samples. Errors: a network that comes quantized,
/// or has no float output to compare, nothing to choose from, data without classes, what quantizing and
/// compiling say.
Result<AutoPrecision> autoPrecision(const pipeline::Options& options, const Goal& goal,
                                    const quantize::Progress& progress = nullptr);

}  // namespace carina::precision
