// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as a .tflite file: models that can be read can be printed; compiled programs have memory
// for every tensor that they use.
#include <cstdint>

#include "base/check.hpp"
#include "target.hpp"
#include "tflite/vela.hpp"

namespace carina::tflite_fuzz {

CARINA_FUZZ_TARGET(tflite) {
  const auto model = tflite::readModel({reinterpret_cast<const std::byte*>(data), size});
  if (!model.ok()) return 0;
  (void)tflite::printModel(*model);
  (void)tflite::npuCalls(*model);
  const auto program = tflite::npuProgram(*model);
  if (!program.ok()) return 0;
  const auto check = [&](size_t graph, const std::vector<int32_t>& tensors) {
    const tflite::NpuProgram::Subgraph& subgraph = program->subgraphs[graph];
    for (const int32_t index : tensors) {
      const auto at = static_cast<size_t>(index);
      const auto bytes = tflite::storedBytes(subgraph.tensors[at]);
      CARINA_CHECK(bytes.has_value(), "a tensor of a program has a size");
      CARINA_CHECK(!subgraph.offsets[at] ||
                       *subgraph.offsets[at] + static_cast<uint64_t>(*bytes) <= program->arenaBytes,
                   "a planned tensor lies in the arena");
    }
  };
  for (const tflite::NpuCall& call : program->calls) {
    (void)program->sharesScratch(call);
    check(call.subgraph, call.inputs);
    check(call.subgraph, call.outputs);
  }
  check(0, program->main().inputs);
  check(0, program->main().outputs);
  return 0;
}

}  // namespace carina::tflite_fuzz
