// SPDX-License-Identifier: Apache-2.0
// A .tflite with `ethos-u` operators against the .tflite that it was made from: the NPU model against the
// operators of the network one by one, as TensorFlow Lite's reference kernels compute them.
#pragma once

#include "pipeline/against.hpp"
#include "pipeline/pipeline.hpp"

namespace carina::pipeline {

/// Runs both on the same samples, each keeping its own state from one to the next, and compares the results
/// of every NPU operator with the tensors of the same names in the network, then the outputs. `arrays`: in0,
/// in1, ...; empty: `samples` samples of reproducible noise over all codes (of 32 and 64 bits: 0 and 1).
/// Errors: files that do not fit each other or have operators that are not computed here, a float input
/// without arrays.
Result<Against> verifyTflite(ByteSpan compiled, ByteSpan network, const std::string& networkName,
                             const AgainstOptions& options, const NamedTensors& arrays);

/// The same of two files: `options.program` and the only one of `options.graphs`.
Result<Against> verifyTfliteFiles(const AgainstOptions& options, const NamedTensors& arrays);

/// Whether a build is of a network of which some operators stay on the CPU as operators of its .tflite.
bool staysTflite(const Build& build);

/// build() of a .tflite for an Ethos-U in the form that a .tflite of it has: staysTflite() unless the NPU
/// computes all of it but for conversions at its ends. Other networks and targets: build().
Result<Build> buildAsTflite(const Options& options);

}  // namespace carina::pipeline
