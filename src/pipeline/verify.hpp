// SPDX-License-Identifier: Apache-2.0
// The executions of one network side by side: float, fake-quant simulation, TOSA interpreter and NPU model;
// the program itself through runtime and driver. Shows where they part.
#pragma once

#include <optional>
#include <span>

#include "pipeline/cpu_check.hpp"

namespace carina::pipeline {

using quantize::Sqnr;

/// One value that the NPU computes, in the order in which it is computed.
struct LayerResult {
  std::string value;                 // name of the TOSA value
  std::string op;                    // TOSA operator
  std::string where;                 // node of the user's network
  int64_t elements = 0;              // compared, all samples
  int64_t mismatches = 0;            // NPU against TOSA interpreter
  int64_t firstMismatch = -1;        // flat index, in the first sample that differs
  int64_t expected = 0, actual = 0;  // there
  size_t turns = 0, npuTurns = 0;    // how often the interpreter and the NPU computed it, all samples
  bool equal() const { return mismatches == 0 && turns == npuTurns; }
};

/// One program output.
struct OutputResult {
  std::string name;
  int64_t elements = 0;
  int64_t npuMismatches =
      0;  // delegate results that differ from the TOSA interpreter's, counted at this output's value
  int64_t beyondOneLsb = 0;  // program against fake-quant simulation
  double worstLsb = 0;
  Sqnr ends;       // float between inputs and outputs rounded to their codes, against float
  Sqnr simulated;  // fake-quant against float
  Sqnr program;    // program against float
};

/// A value of the network that exists in float and quantized.
struct AccuracyResult {
  std::string value;
  std::string where;
  Sqnr sqnr;  // fake-quant against float
};

/// A value of the program that leaves the fake-quant simulation by more than rounding.
struct DriftResult {
  std::string value;
  std::string where;         // node of the user's network
  int64_t elements = 0;      // compared, all samples
  int64_t beyondOneLsb = 0;  // of them: more than one quantum away
  int64_t worstLsb = 0;
};

/// Results of parts for an Ethos-N, whose arithmetic is not TOSA's, beside the interpreter's.
struct OffTosa {
  int64_t elements = 0, different = 0, worst = 0;
};

struct Verification {
  size_t samples = 0;
  std::vector<CpuResult> cpu;  // nodes that CPU kernels compute, quantize and dequantize included
  bool wholly = false;         // everything but quantize and dequantize runs on the NPU
  size_t delegates = 0;        // parts on the NPU
  std::vector<LayerResult> layers;
  std::vector<AccuracyResult> accuracy;
  std::vector<DriftResult> drift;  // in the order in which they are computed; NPU parts only
  std::vector<OutputResult> outputs;
  int64_t delegateMismatches = 0;  // elements of delegate results that differ from the TOSA interpreter's
  size_t inIntegers = 0, quantized = 0;  // of Simulation::Integers: quantized values computed so, and all
  OffTosa offTosa;                       // of an Ethos-N: its layers are compared within a code or two
  int64_t cycles = 0;                    // NPU, one inference
  std::vector<std::string> findings;     // of the checker of command streams, in the first sample
  /// NPU equals TOSA everywhere, CPU kernels the float executor within its tolerance; nothing is found in the
  /// command streams.
  bool ok() const;
  /// SQNR of the worst output, program against float; nothing where no output was compared.
  std::optional<double> worstDecibels() const;
};

/// What the program's codes are compared with: the quantized network computed in float and rounded wherever
/// it quantizes, or operator by operator in the integers of its TOSA form (partition::IntegerExecutor).
enum class Simulation : uint8_t { Float, Integers };

/// `samples`: one tensor per input of the float network, or of the program when there is no float network.
/// `progress` is called after each.
Result<Verification> verify(const Build& build, std::span<const quantize::Sample> samples,
                            const quantize::Progress& progress = nullptr,
                            Simulation simulation = Simulation::Float);

/// Samples for a build: `in*`/`calib*` arrays of `arrays` where given; otherwise one sample of reproducible
/// noise over the range of each integer input (float inputs need arrays).
Result<std::vector<quantize::Sample>> verificationSamples(const Build& build, const NamedTensors& arrays);

}  // namespace carina::pipeline
