// SPDX-License-Identifier: Apache-2.0
// Any bytes as a quantized network in a .tflite file: what is read and lowers is a valid TOSA graph.
#include <cstdint>

#include "base/check.hpp"
#include "lower_tfl/lower.hpp"
#include "tflite/graph_builder.hpp"
#include "tosa/tosa.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace carina;
  const auto model = tflite::readModel({reinterpret_cast<const std::byte*>(data), size});
  if (!model.ok()) return 0;
  // Sizes that a network may well have take longer than a fuzzer waits.
  int64_t elements = 0;
  for (const tflite::Tensor& tensor : model->subgraphs.front().tensors) {
    const auto count = checkedNumElements(tensor.shape);
    if (!count || *count > (1 << 20)) return 0;
    elements += *count;
  }
  if (elements > (1 << 22)) return 0;
  const auto graph = tflite::buildGraph(*model, nullptr);
  if (!graph.ok()) return 0;
  const auto tosa = lower_tfl::lowerToTosa(*graph);
  if (tosa.ok()) CARINA_CHECK(tosa::verify(tosa->tosa).ok(), "what lowers is valid TOSA");
  return 0;
}
