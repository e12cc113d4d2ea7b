// SPDX-License-Identifier: Apache-2.0
// Any bytes as a .tflite file: what is read prints; what is a compiled program has memory for every tensor it
// uses.
#include <cstdint>

#include "base/check.hpp"
#include "tflite/vela.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace carina;
  const auto model = tflite::readModel({reinterpret_cast<const std::byte*>(data), size});
  if (!model.ok()) return 0;
  (void)tflite::printModel(*model);
  (void)tflite::npuCalls(*model);
  const auto program = tflite::npuProgram(*model);
  if (!program.ok()) return 0;
  for (const tflite::NpuCall& call : program->calls) {
    (void)program->sharesScratch(call);
    for (const auto* tensors : {&call.inputs, &call.outputs, &program->inputs, &program->outputs}) {
      for (const int32_t index : *tensors) {
        const auto at = static_cast<size_t>(index);
        const auto bytes = tflite::tensorBytes(program->tensors[at]);
        CARINA_CHECK(bytes.has_value(), "a tensor of a program has a size");
        CARINA_CHECK(!program->offsets[at] ||
                         *program->offsets[at] + static_cast<uint64_t>(*bytes) <= program->arenaBytes,
                     "a planned tensor lies in the arena");
      }
    }
  }
  return 0;
}
