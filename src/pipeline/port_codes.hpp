// SPDX-License-Identifier: Apache-2.0
// What the integers mean that a program accepts and returns. A .pte records it in methods that have no inputs
// and return a constant, under the names that ExecuTorch's QuantizeInputs and QuantizeOutputs use
// (input0_scale, input0_zp, output0_scale, ...), in addition to input0_mean, input0_std and input0_layout.
// For methods after the first one, the method's name is prepended: decode_input0_scale.
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

/// For one input or output.
struct PortCodes {
  std::optional<double> scale;  // real = scale * (code - zeroPoint)
  int64_t zeroPoint = 0;
  /// The network expects (real - mean) / deviation: one value or one per channel; empty: real itself. If
  /// given, real is pixel / 255.
  std::vector<double> mean, deviation;
  bool channelsLast = false;  // [N, H, W, C] while the network has [N, C, H, W]

  bool pixels() const { return !mean.empty(); }
  bool empty() const { return !scale && !channelsLast; }
};

/// For a program; ports beyond the last entry have no codes.
struct ProgramCodes {
  std::vector<PortCodes> inputs, outputs;
};

/// Of the caller's inputs and outputs of a build.
ProgramCodes codesOf(const Build& build);
/// Adds the methods that describe those of `method`, one of the program's. Fails if a method already has such
/// a name.
Status addCodeMethods(const ProgramCodes& codes, const std::string& method, pte::Program& program);
/// The codes of a method according to the methods of a program (untrusted: inconsistent values are left out);
/// empty: the first method.
ProgramCodes codesOf(const pte::Program& program, const std::string& method = "");
/// For a compiled .tflite: of the inputs and outputs of its only graph.
ProgramCodes codesOfTflite(ByteSpan file);
/// Whether the method is one of those that describe the codes of another method, and computes nothing.
bool isCodeMethod(const pte::Method& method);

/// "scale 0.00392157, zero point 0, pixels with mean 0.485,0.456,0.406 and std 0.229,0.224,0.225, nhwc"; ""
/// for floats in the network's layout.
std::string codesText(const PortCodes& codes);

/// How the network's inputs were turned into these ports of a program.
ProgramEnds endsOf(std::span<const Port> ports, const ProgramCodes& codes);
/// Float arrays in0, ... for integer ports are quantized: the network's inputs become what the ports expect.
/// Others are unchanged. Errors: values that no pixel can produce.
Result<NamedTensors> quantizeInputs(NamedTensors arrays, std::span<const Port> ports,
                                    const ProgramCodes& codes);
/// Arrays out0, ... of 8 or 16 bits as float32 numbers. Fails if the program does not record their scale.
Result<NamedTensors> dequantizeOutputs(NamedTensors arrays, const ProgramCodes& codes);

/// Real values as codes of type `to`, rounded like the kernels of programs.
Tensor quantizeTensor(const Tensor& numbers, DType to, double scale, int64_t zeroPoint);

}  // namespace carina::pipeline
