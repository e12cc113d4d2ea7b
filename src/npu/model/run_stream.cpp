// SPDX-License-Identifier: Apache-2.0
// runStream: runs a command stream directly on regions in host memory, without a bus in between.
#include "npu/model/command_processor.hpp"

namespace carina::npu {
namespace {

class RegionMap final : public model::AddressMap {
 public:
  explicit RegionMap(std::span<const RegionBytes> regions) : regions_(regions) {}
  std::byte* resolve(uint8_t region, uint64_t offset, uint64_t length, Access access) override {
    if (region >= regions_.size()) return nullptr;
    const RegionBytes& bytes = regions_[region];
    if (offset >= bytes.bytes.size() || length > bytes.bytes.size() - offset) return nullptr;
    if (access == Access::Write && !bytes.writable) return nullptr;
    return bytes.bytes.data() + offset;
  }

 private:
  std::span<const RegionBytes> regions_;
};

}  // namespace

RunResult runStream(std::span<const uint32_t> words, const Machine& machine,
                    std::span<const RegionBytes> regions, const ModelOptions& options) {
  model::CommandProcessor processor(machine, options);
  RegionMap memory(regions);
  processor.start({words.begin(), words.end()});
  for (size_t region = 0; processor.checker() != nullptr && region < regions.size(); ++region) {
    if (!regions[region].writable) processor.checker()->assumeInitialized(static_cast<uint8_t>(region));
  }
  using Step = model::CommandProcessor::Step;
  Step step;
  do {
    step = processor.step(memory);
  } while (step == Step::Continue || step == Step::Interrupt);
  RunResult result;
  result.stats = processor.statistics();
  result.fault = processor.fault();
  if (processor.checker() != nullptr) result.findings = processor.checker()->take();
  return result;
}

}  // namespace carina::npu
