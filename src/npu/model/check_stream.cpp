// SPDX-License-Identifier: Apache-2.0
#include "npu/model/check_stream.hpp"

#include <algorithm>
#include <limits>

#include "base/work_budget.hpp"
#include "npu/isa/disassembler.hpp"
#include "npu/isa/stream.hpp"
#include "npu/model/checker.hpp"
#include "npu/model/work.hpp"

namespace carina::npu {
namespace {

/// Work of the operation in the model; 0 for waits, branches etc.
int64_t workOf(const Operation& operation) {
  if (const auto* kernel = std::get_if<KernelOperation>(&operation)) return model::workOf(*kernel);
  if (const auto* dma = std::get_if<DmaOperation>(&operation)) return model::workOf(*dma);
  return 0;
}

/// Work limit for a run of the stream; none if its memory is not known.
int64_t workLimit(std::span<const uint32_t> words, const StreamMemory& memory) {
  uint64_t program = words.size() * 4;
  bool known = false;
  for (const auto& region : memory.regions) {
    if (!region) continue;
    known = true;
    if (!region->writable) program += region->bytes;
  }
  return known ? workFor(program) : std::numeric_limits<int64_t>::max();
}

/// Passes commands to the checker until STOP or an error; returns findings about the stream itself.
std::vector<Finding> feed(std::span<const uint32_t> words, const Target& target, int64_t limit,
                          model::Checker& checker) {
  RegisterState state;
  for (size_t index = 0; index < words.size();) {
    const auto offset = static_cast<uint32_t>(index * 4);
    const Result<Command> command = readCommand(words, index, target.family);
    // Where commands begin after an unknown word is not known.
    if (!command.ok()) return {{Finding::Kind::Command, offset, command.error().message()}};
    index += command->words();
    if (!command->info->operation) {
      state.apply(*command);
      continue;
    }
    std::vector<std::string_view> unset;
    const Result<Operation> operation = decodeOperation(state, *command, target, &unset);
    if (!operation.ok()) return {{Finding::Kind::Command, offset, operation.error().message()}};
    checker.add(*operation, offset, unset);
    if (const int64_t work = workOf(*operation); work > limit) {
      return {{Finding::Kind::Command, offset,
               fmt::format(
                   "{}: {:.3g} steps, and the model's limit for a program and memory of this size is {:.3g}",
                   describe(*operation), static_cast<double>(work), static_cast<double>(limit))}};
    }
    if (std::holds_alternative<Stop>(*operation)) return {};
  }
  return {{Finding::Kind::Command, static_cast<uint32_t>(words.size() * 4), "the stream ends without STOP"}};
}

}  // namespace

std::vector<Finding> checkStream(std::span<const uint32_t> words, const Target& target,
                                 const StreamMemory& memory) {
  model::Checker checker(target);
  for (size_t index = 0; index < memory.regions.size(); ++index) {
    const auto region = static_cast<uint8_t>(index);
    const auto& known = memory.regions[region];
    if (known) checker.setRegion(region, known->bytes, known->writable);
    if (!memory.inputsKnown || (known && !known->writable)) checker.assumeInitialized(region);
  }
  for (const InitializedRange& range : memory.initialized) {
    checker.assumeInitialized(range.region, range.offset, range.length);
  }
  const std::vector<Finding> own = feed(words, target, workLimit(words, memory), checker);
  std::vector<Finding> findings = checker.take();
  findings.insert(findings.end(), own.begin(), own.end());
  return findings;
}

}  // namespace carina::npu
