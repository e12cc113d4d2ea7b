// SPDX-License-Identifier: Apache-2.0
#include "pipeline/npu_probe.hpp"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "format/ethosu_registers.hpp"
#include "pipeline/npu_bus.hpp"

namespace carina::pipeline {
namespace {

namespace reg = format::ethosu_reg;

/// The memories of one run.
struct Board {
  explicit Board(const compiler::CompiledProgram& program)
      : arena(static_cast<size_t>(std::max<int64_t>(program.arenaBytes, 16))),
        cache(static_cast<size_t>(std::max<int64_t>(program.cacheBytes, 16))) {
    memory.map(kStreamAddress, std::as_bytes(std::span(program.commands)));
    if (!program.constants.empty())
      memory.map(kRegionAddress[0], std::span<const std::byte>(program.constants));
    memory.map(kRegionAddress[1], std::span<std::byte>(arena));
    memory.map(kRegionAddress[2], std::span<std::byte>(cache));
  }

  std::vector<int64_t> read(const npu::FeatureMap& map) const {
    const std::vector<std::byte>& bytes = map.region == 2 ? cache : arena;
    std::vector<int64_t> elements = readMap(map, map.height, map.width, map.depth, bytes).elements;
    CARINA_CHECK(!elements.empty(), "a value is recorded outside its region");
    return elements;
  }

  std::vector<std::byte> arena, cache;
  npu::MappedMemory memory;
};

void write64(npu::Npu& device, uint32_t offset, uint64_t value) {
  device.write32(offset, static_cast<uint32_t>(value));
  device.write32(offset + 4, static_cast<uint32_t>(value >> 32));
}

void start(npu::Npu& device, const compiler::CompiledProgram& program) {
  device.write32(reg::kCmd, 0);  // clock and power stay on
  write64(device, reg::kQBase, kStreamAddress);
  device.write32(reg::kQSize, static_cast<uint32_t>(program.commands.size() * 4));
  for (uint32_t i = 0; i < 3; ++i) write64(device, reg::kBaseP + 8 * i, kRegionAddress[i]);
  device.write32(reg::kCmd, 1);
}

/// Follows the branches of a stream.
class WayCounter {
 public:
  explicit WayCounter(std::span<const compiler::BranchRecord> branches) : counts_(branches.size()) {
    constexpr uint32_t kBranchBytes = 8;
    for (size_t i = 0; i < branches.size(); ++i) {
      const compiler::BranchRecord& branch = branches[i];
      // A loop decides at its end, after its condition.
      if (branch.isLoop) {
        decisions_[branch.end - kBranchBytes] = {i, branch.begin + kBranchBytes, true};
      } else {
        decisions_[branch.begin] = {i, branch.middle, false};
      }
    }
  }

  /// The command at byte offset `command` has run, the one at `next` follows.
  void step(uint32_t command, uint32_t next) {
    const auto found = decisions_.find(command);
    if (found == decisions_.end()) return;
    const Decision& decision = found->second;
    PathCount& count = counts_[decision.branch];
    const bool taken = next == decision.target;
    count.first += taken;
    count.second += decision.isLoop || !taken;
  }
  std::vector<PathCount> take() { return std::move(counts_); }

 private:
  struct Decision {
    size_t branch = 0;
    uint32_t target = 0;
    bool isLoop = false;
  };
  std::unordered_map<uint32_t, Decision> decisions_;
  std::vector<PathCount> counts_;
};

}  // namespace

Result<ProbeResult> probe(const compiler::CompiledProgram& program, std::span<const Tensor> inputs,
                          const ValueListener& listener) {
  CARINA_CHECK(inputs.size() == program.inputs.size(), "one tensor per input");
  Board board(program);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ByteSpan bytes = inputs[i].bytes();
    CARINA_CHECK(static_cast<int64_t>(bytes.size()) == program.inputs[i].bytes, "input of another size");
    std::copy(bytes.begin(), bytes.end(), board.arena.begin() + program.inputs[i].offset);
  }

  std::unordered_multimap<uint32_t, const compiler::ValuePlacement*>
      complete;  // by byte offset of the command
  if (listener) {
    for (const compiler::ValuePlacement& placement : program.values)
      complete.emplace(program.operations[placement.operation].wordOffset * 4, &placement);
  }
  ProbeResult result;
  WayCounter ways(program.branches);
  npu::Npu device(program.machine, board.memory);
  start(device, program);
  while (device.running()) {
    const uint32_t command = device.read32(reg::kQRead);
    device.step();
    if (device.fault()) return fail(Code::NpuFault, "the NPU model stopped: {}", device.fault()->str());
    ways.step(command, device.read32(reg::kQRead));
    const auto [first, last] = complete.equal_range(command);
    for (auto it = first; it != last; ++it)
      listener(*it->second, [&, it] { return board.read(it->second->map); });
  }
  result.ways = ways.take();
  result.stats = device.stats();
  for (const compiler::IoTensor& io : program.outputs) {
    Tensor tensor = Tensor::uninitialized(io.dtype, io.shape);
    std::memcpy(tensor.mutableBytes().data(), board.arena.data() + io.offset, static_cast<size_t>(io.bytes));
    result.outputs.push_back(std::move(tensor));
  }
  return result;
}

}  // namespace carina::pipeline
