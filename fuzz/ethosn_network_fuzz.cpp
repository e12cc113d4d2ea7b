// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as compiled Ethos-N networks: what the reader accepts round-trips through bytes and text,
// and runs to a result or a fault.
#include <algorithm>
#include <vector>

#include "ethosn/model/run.hpp"
#include "ethosn/stream/stream_text.hpp"
#include "target.hpp"

namespace carina::ethosn_network_fuzz {

namespace {
using namespace carina::ethosn;

uint64_t memoryOf(const CompiledNetwork& network) {
  uint64_t bytes = intermediateBytes(network);
  for (const auto* infos : {&network.inputs, &network.outputs}) {
    for (const BufferInfo& info : *infos) bytes += info.size;
  }
  return bytes;
}

void runOn(const CompiledNetwork& network, const Variant& variant) {
  std::vector<std::vector<std::byte>> inputs;
  std::vector<ByteSpan> spans;
  for (const BufferInfo& info : network.inputs) {
    inputs.emplace_back(info.size);
    for (size_t i = 0; i < info.size; ++i) inputs.back()[i] = static_cast<std::byte>(i * 131 >> 3);
    spans.push_back(inputs.back());
  }
  const auto target = makeTarget(variant);
  WorkBudget budget(1 << 24);
  const auto result = runNetwork(network, spans, *target, {.order = inputs.size(), .budget = &budget});
  if (result && result->outputs.size() != network.outputs.size()) __builtin_trap();
}

}  // namespace

CARINA_FUZZ_TARGET(ethosn_network) {
  const auto network = readCompiledNetwork(std::as_bytes(std::span(data, size)));
  if (!network) return 0;
  const std::vector<uint8_t> written = writeCompiledNetwork(*network);
  if (!std::equal(written.begin(), written.end(), data, data + size)) __builtin_trap();
  const auto text = printNetwork(*network);
  if (!text) return 0;
  const auto parsed = parseNetwork(*text);
  if (!parsed || writeCompiledNetwork(*parsed) != written) __builtin_trap();
  const auto stream = readCommandStream(*commandStreamBytes(*network));
  const auto variant = variantOf(*stream);
  constexpr uint64_t kMaxMemory = 1 << 22;
  if (!variant || memoryOf(*network) > kMaxMemory) return 0;
  runOn(*network, *variant != nullptr ? **variant : allVariants()[1]);
  return 0;
}

}  // namespace carina::ethosn_network_fuzz
