// SPDX-License-Identifier: Apache-2.0
// The executions of one network side by side: float, fake-quant simulation, TOSA interpreter and NPU model;
// and the program itself through runtime and driver. Shows where they diverge.
#pragma once

#include <optional>
#include <span>

#include "pipeline/cpu_check.hpp"

namespace carina::pipeline {

using quantize::Sqnr;

/// One value that the NPU computes, in execution order.
struct LayerResult {
  std::string value;                    // name of the TOSA value
  std::string op;                       // TOSA operator
  std::string where;                    // node of the user's network
  int64_t elements = 0;                 // compared, over all samples
  int64_t mismatches = 0;               // NPU against TOSA interpreter
  int64_t firstMismatch = -1;           // flat index, in the first sample that differs
  int64_t expected = 0, actual = 0;     // at that index
  size_t turns = 0, npuIterations = 0;  // how often the interpreter and the NPU computed it, over all samples
  bool equal() const { return mismatches == 0 && turns == npuIterations; }
};

/// One program output.
struct OutputResult {
  std::string name;
  int64_t elements = 0;
  int64_t npuMismatches =
      0;  // delegate results that differ from the TOSA interpreter's, counted at the value of this output
  int64_t beyondOneLsb = 0;  // program against fake-quant simulation
  double worstLsb = 0;
  /// Elements that differ from the network's, and the first of them: of a result that the network computes
  /// from integers alone, without rounding.
  int64_t wrongIntegers = 0, expected = 0, actual = 0;
  Sqnr ends;       // float with inputs and outputs rounded to their codes, against float
  Sqnr simulated;  // fake-quant against float
  Sqnr program;    // program against float
};

/// A value of the network that exists in float and quantized.
struct AccuracyResult {
  std::string value;
  std::string where;
  Sqnr sqnr;  // fake-quant against float
};

/// A value of the program that differs from the fake-quant simulation by more than rounding.
struct DriftResult {
  std::string value;
  std::string where;         // node of the user's network
  int64_t elements = 0;      // compared, over all samples
  int64_t beyondOneLsb = 0;  // of those: more than one quantum off
  int64_t worstLsb = 0;
};

/// Results of Ethos-N parts, whose arithmetic is not TOSA's, compared with the interpreter's.
struct OffTosa {
  int64_t elements = 0, different = 0, worst = 0;
};

struct Verification {
  size_t samples = 0;
  std::vector<CpuResult> cpu;  // nodes that CPU kernels compute, quantize and dequantize included
  bool wholly = false;         // everything except quantize and dequantize runs on the NPU
  size_t delegates = 0;        // parts on the NPU
  std::vector<LayerResult> layers;
  std::vector<AccuracyResult> accuracy;
  std::vector<DriftResult> drift;  // in execution order; NPU parts only
  std::vector<OutputResult> outputs;
  int64_t delegateMismatches = 0;  // elements of delegate results that differ from the TOSA interpreter's
  size_t inIntegers = 0, quantized = 0;  // of Simulation::Integers: values computed in integers, and in all
  OffTosa offTosa;                       // for an Ethos-N, whose layers are compared within a code or two
  int64_t cycles = 0;                    // NPU, one inference
  std::vector<std::string> findings;     // from the command stream checker, for the first sample
  /// NPU equals TOSA everywhere, CPU kernels equal the float executor within its tolerance, results computed
  /// from integers alone equal the network's, and the command streams have no findings.
  bool ok() const;
  /// SQNR of the worst output, program against float; nullopt if no output was compared.
  std::optional<double> worstDecibels() const;
};

/// The reference for the program's codes: the quantized network computed in float and rounded wherever it
/// quantizes, or operator by operator in the integers of its TOSA form (partition::IntegerExecutor).
enum class Simulation : uint8_t { Float, Integers };

/// `samples`: one tensor per input of the float network, or of the program if there is no float network.
/// `progress` is called after each.
Result<Verification> verify(const Build& build, std::span<const quantize::Sample> samples,
                            const quantize::Progress& progress = nullptr,
                            Simulation simulation = Simulation::Float);

/// Samples for a build: `in*`/`calib*` arrays of `arrays` if given; otherwise one sample of reproducible
/// noise over the range of each integer input (float inputs need arrays).
Result<std::vector<quantize::Sample>> verificationSamples(const Build& build, const NamedTensors& arrays);

}  // namespace carina::pipeline
