// SPDX-License-Identifier: Apache-2.0
// Inputs and expected outputs from linked arrays.
#include "console.hpp"
#include "session.hpp"

namespace carina::firmware {
namespace {

using rt::Bytes;
using rt::Tensor;

Bytes sampleOf(Bytes array, size_t bytes, uint32_t sample) {
  return Bytes(array.data + bytes * sample, bytes);
}

/// Compares outputs with the expected ones and keeps the largest difference.
class Comparison {
 public:
  explicit Comparison(float tolerance) : tolerance_(tolerance) {}

  void add(const Tensor& tensor, Bytes expected) {
    if (tensor.type != rt::ScalarType::Float32) {
      const size_t size = rt::elementSize(tensor.type);
      for (size_t at = 0; at < tensor.bytes; at += size) {
        if (__builtin_memcmp(tensor.as<const uint8_t>() + at, expected.data + at, size) != 0) ++different_;
      }
      return;
    }
    for (size_t i = 0; i < tensor.elements(); ++i) {
      const float actual = tensor.as<const float>()[i];
      float wanted;
      __builtin_memcpy(&wanted, expected.data + 4 * i, 4);
      if (__builtin_memcmp(&actual, &wanted, 4) == 0) continue;
      const float error = __builtin_fabsf(actual - wanted);
      if (error > largest_) largest_ = error;
      if (!(error <= tolerance_) || tolerance_ == 0.0f) ++different_;
    }
  }

  /// Whether all outputs are as expected; prints this in the words that test scripts look for.
  bool report() const {
    print("=== Error stats for testset 0 ===");
    print(" max_absolute_error: ", largest_);
    print(" different_elements: ", different_);
    const bool passed = different_ == 0;
    info(passed ? "Model output match expected BundleIO bpte ref data."
                : "Model output don't match expected BundleIO bpte ref data.");
    info("TEST: BundleIO index[0] Test_result: ", passed ? "PASS" : "FAIL");
    return passed;
  }

 private:
  float tolerance_;
  float largest_ = 0.0f;
  uint32_t different_ = 0;
};

bool setInputs(Session& session, const App& app, uint32_t sample) {
  if (app.inputs.empty()) return session.fillWithOnes();
  for (uint32_t i = 0; i < session.method().inputCount(); ++i) {
    const size_t bytes = session.method().input(i).tensor.bytes;
    const rt::Status status = session.method().setInput(i, sampleOf(app.inputs[i], bytes, sample));
    if (!status.ok()) {
      error(status);
      return false;
    }
  }
  return true;
}

Session session(kApp, 0);

}  // namespace

int runLinked(const App& app) {
  if (!session.open(app.program)) return 1;
  Comparison comparison(app.tolerance);
  for (uint32_t sample = 0; sample < app.samples; ++sample) {
    if (!setInputs(session, app, sample) || !session.infer()) return 1;
    if (app.expected.empty()) session.printOutputs();
    for (uint32_t i = 0; i < app.expected.size; ++i) {
      const Tensor& tensor = session.method().output(i).tensor;
      comparison.add(tensor, sampleOf(app.expected[i], tensor.bytes, sample));
    }
  }
  session.report();
  const bool passed = app.expected.empty() || comparison.report();
  info("Program complete, exiting.");
  return passed ? 0 : 1;
}

}  // namespace carina::firmware
