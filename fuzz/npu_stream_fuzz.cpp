// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as command streams, on small regions: the model must end with a result or a fault, and
// never crash, hang or leave its regions. First byte: target and options; then the stream, four bytes per
// word.
#include <cstring>
#include <vector>

#include "npu/model/model.hpp"
#include "target.hpp"

namespace carina::npu_stream_fuzz {

CARINA_FUZZ_TARGET(npu_stream) {
  using namespace carina::npu;
  if (size < 5) return 0;
  const auto targets = allTargets();
  const Target& target = targets[(data[0] & 0x3f) % targets.size()];
  auto machine = makeMachine(target.name, "", "");
  if (!machine.ok()) return 0;
  std::vector<uint32_t> words((size - 1) / 4);
  std::memcpy(words.data(), data + 1, words.size() * 4);

  static std::vector<std::byte> constants(1 << 14), scratch(1 << 15), fast(1 << 12);
  for (size_t i = 0; i < constants.size(); ++i) constants[i] = static_cast<std::byte>(i * 131 >> 3);
  const RegionBytes regions[] = {{constants, false}, {scratch, true}, {fast, true}};
  ModelOptions options;
  options.timing = (data[0] & 0x40) != 0;
  options.check = (data[0] & 0x80) != 0;
  options.parallel = false;
  options.maxOperationWork = 1 << 18;
  options.maxOperationBytes = 1 << 20;
  options.maxCommands = 2000;
  const RunResult result = runStream(words, *machine, regions, options);
  if (result.fault && result.fault->offset > words.size() * 4) __builtin_trap();
  return 0;
}

}  // namespace carina::npu_stream_fuzz
