// SPDX-License-Identifier: Apache-2.0
// Checks a .tflite with `ethos-u` operators against the .tflite that it was compiled from: the NPU model
// against the operators of the network one by one, as TensorFlow Lite's reference kernels compute them.
#pragma once

#include "pipeline/against.hpp"
#include "pipeline/pipeline.hpp"

namespace carina::pipeline {

/// Runs both on the same samples, each carrying its own state from sample to sample, and compares the results
/// of every NPU operator with the network's tensors of the same names, then the outputs. `arrays`: in0, in1,
/// ...; empty: `samples` samples of reproducible noise over all codes (for 32 and 64 bits: 0 and 1). Errors:
/// files that do not match or have operators that are not computed here, a float input without arrays.
Result<Against> verifyTflite(ByteSpan compiled, ByteSpan network, const std::string& networkName,
                             const AgainstOptions& options, const NamedTensors& arrays);

/// The same for two files: `options.program` and the only one of `options.graphs`.
Result<Against> verifyTfliteFiles(const AgainstOptions& options, const NamedTensors& arrays);

/// Whether a build is of a network some of whose operators stay on the CPU as operators of its .tflite.
bool staysTflite(const Build& build);

/// build() of a .tflite for an Ethos-U in the form that its .tflite will have: staysTflite() unless the NPU
/// computes everything except conversions at inputs and outputs. Other networks and targets: build().
Result<Build> buildAsTflite(const Options& options);

}  // namespace carina::pipeline
