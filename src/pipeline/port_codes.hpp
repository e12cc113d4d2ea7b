// SPDX-License-Identifier: Apache-2.0
// What the integers mean that a program takes and gives. A .pte says it in methods that take nothing and
// return a constant, under the names that ExecuTorch's QuantizeInputs and QuantizeOutputs give them
// (input0_scale, input0_zp, output0_scale, ...), with input0_mean, input0_std and input0_layout beside them.
// Of the methods behind the first one, the method's name is in front: decode_input0_scale.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/tensor.hpp"
#include "pipeline/program_ends.hpp"
#include "pte/program.hpp"

namespace carina::pipeline {

struct Build;
struct Port;

/// Of one input or output.
struct PortCodes {
  std::optional<double> scale;  // real = scale * (code - zeroPoint)
  int64_t zeroPoint = 0;
  /// The network is given (real - mean) / deviation: one value or one per channel; empty: real itself. Then
  /// real is pixel / 255.
  std::vector<double> mean, deviation;
  bool channelsLast = false;  // [N, H, W, C] where the network has [N, C, H, W]

  bool pixels() const { return !mean.empty(); }
  bool empty() const { return !scale && !channelsLast; }
};

/// Of a program; behind the last entry everything is empty.
struct ProgramCodes {
  std::vector<PortCodes> inputs, outputs;
};

/// Of a build's caller's inputs and outputs.
ProgramCodes codesOf(const Build& build);
/// Adds the methods that tell those of `method`, one of the program's. Fails where a method has such a name.
Status addCodeMethods(const ProgramCodes& codes, const std::string& method, pte::Program& program);
/// What the methods of a program tell of one of them (untrusted: what makes no sense is left out); empty: the
/// first one.
ProgramCodes codesOf(const pte::Program& program, const std::string& method = "");
/// Of a compiled .tflite: of the inputs and outputs of its only graph.
ProgramCodes codesOfTflite(ByteSpan file);
/// Whether the method is one of those: it tells what the codes of a method mean, and computes nothing.
bool isCodeMethod(const pte::Method& method);

/// "scale 0.00392157, zero point 0, pixels with mean 0.485,0.456,0.406 and std 0.229,0.224,0.225, nhwc"; ""
/// for floats in the network's layout.
std::string codesText(const PortCodes& codes);

/// How the network's inputs became these ports of a program.
ProgramEnds endsOf(std::span<const Port> ports, const ProgramCodes& codes);
/// Float arrays in0, ... for integer ports, as the ports take them: what the network takes, quantized.
/// Others as they are. Errors: numbers that no pixel gives.
Result<NamedTensors> quantizeInputs(NamedTensors arrays, std::span<const Port> ports,
                                    const ProgramCodes& codes);
/// Arrays out0, ... of 8 or 16 bits as float32 numbers. Fails where the program does not tell their scale.
Result<NamedTensors> dequantizeOutputs(NamedTensors arrays, const ProgramCodes& codes);

/// Numbers as codes of type `to`, as the kernels of programs round them.
Tensor quantizeTensor(const Tensor& numbers, DType to, double scale, int64_t zeroPoint);

}  // namespace carina::pipeline
