// SPDX-License-Identifier: Apache-2.0
// The bound (cycle_bound.hpp).
#include "compiler/cycle_bound.hpp"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "compiler/schedule/block_memo.hpp"
#include "compiler/schedule/block_search.hpp"
#include "compiler/schedule/operation_builder.hpp"
#include "npu/timing/bandwidth.hpp"

namespace carina::compiler {
namespace {

/// An operation and those chained to it.
struct BoundGroup {
  std::vector<npu::KernelOperation> operations;
  std::vector<npu::TimingContext> contexts;
};

bool follows(const npu::KernelOperation& op) {
  const auto chained = [](const npu::FeatureMap& map) { return map.storage == npu::Storage::Chained; };
  return chained(op.ifm) || (op.ifm2 && chained(*op.ifm2));
}

/// A lower bound for any placement: scales come from the memory with the least latency, and the part of an
/// operation that the slowest memory's latency hides is not counted.
npu::TimingContext bestCaseContext(const npu::Machine& machine) {
  const auto latency = [&](npu::Area area) { return machine.timing(area).readLatency; };
  const auto areas = {npu::Area::Constants, npu::Area::Arena, npu::Area::Cache};
  const auto faster = [&](npu::Area a, npu::Area b) { return latency(a) < latency(b); };
  npu::TimingContext context;
  context.machine = &machine;
  context.scales = std::min(areas, faster);
  context.ifm = context.ifm2 = std::max(areas, faster);
  return context;
}

/// The kernel operations without the fields that the block search ignores, so that equivalent ones are equal.
std::vector<BoundGroup> groupsOf(const CompiledProgram& program) {
  std::vector<BoundGroup> groups;
  for (const OperationRecord& record : program.operations) {
    const auto* kernel = std::get_if<npu::KernelOperation>(&record.operation);
    if (!kernel) continue;
    npu::KernelOperation op = *kernel;
    if (groups.empty() || !follows(op)) groups.emplace_back();
    op = withoutPlaces(op);
    if (allowsTwoRows(op, *program.machine.target))
      op = inTwoRows(op);  // never more cycles of the multipliers
    if (op.weights) {      // their encoding and addresses do not belong to the operation
      op.weights->weightRegion = op.weights->scaleRegion = 0;
      op.weights->weights = {};
      op.weights->scales = {};
    }
    groups.back().operations.push_back(op);
    groups.back().contexts.push_back(bestCaseContext(program.machine));
  }
  return groups;
}

/// Bytes of weight streams that come through the port of the constants: read in place, or copied together
/// with their scales, which are not counted.
int64_t weightBytes(const CompiledProgram& program) {
  constexpr int kConstants = 0;  // region
  std::vector<std::pair<uint64_t, uint64_t>> read;
  int64_t copiedScales = 0;
  for (const OperationRecord& record : program.operations) {
    if (const auto* dma = std::get_if<npu::DmaOperation>(&record.operation)) {
      if (record.kind == "DMA weights")
        read.emplace_back(dma->source.address, dma->source.address + dma->length);
      continue;
    }
    const auto* kernel = std::get_if<npu::KernelOperation>(&record.operation);
    if (!kernel || !kernel->weights) continue;
    if (kernel->weights->weightRegion == kConstants) {
      for (const npu::AddressRange& range : kernel->weights->weights)
        read.emplace_back(range.address, range.address + range.length);
    } else {
      for (const npu::AddressRange& range : kernel->weights->scales)
        copiedScales += static_cast<int64_t>(range.length);
    }
  }
  std::sort(read.begin(), read.end());
  uint64_t end = 0;
  int64_t bytes = -copiedScales;
  for (const auto& [from, to] : read) {
    if (to > end) bytes += static_cast<int64_t>(to - std::max(from, end));
    end = std::max(end, to);
  }
  return std::max<int64_t>(bytes, 0);
}

/// Cycles to read the weights: one channel at a time keeps the port busy, at the rate of the fastest.
npu::Cycles weightCycles(const CompiledProgram& program) {
  using npu::timing::Channel;
  const npu::Machine& machine = program.machine;
  const npu::MemoryTiming& memory = machine.timing(npu::Area::Constants);
  double rate = 0;
  for (const Channel channel : {Channel::Weights, Channel::FastWeights, Channel::Mem2Mem})
    rate = std::max(rate, npu::timing::channelBandwidth(*machine.target, memory, channel, memory.burst));
  return static_cast<npu::Cycles>(static_cast<double>(weightBytes(program)) / rate);
}

}  // namespace

std::optional<CycleBound> cycleBound(const CompiledProgram& program) {
  if (!program.branches.empty()) return std::nullopt;
  CycleBound bound;
  std::vector<std::pair<std::vector<npu::KernelOperation>, npu::Cycles>> known;  // networks repeat layers
  std::unordered_multimap<int64_t, size_t> places;
  for (BoundGroup& group : groupsOf(program)) {
    const npu::KernelOperation& head = group.operations.front();
    const int64_t key = (int64_t{head.ofm.height} * 4099 + head.ofm.width) * 4099 + head.ofm.depth;
    const auto [first, last] = places.equal_range(key);
    const auto same = std::find_if(
        first, last, [&](const auto& place) { return known[place.second].first == group.operations; });
    if (same != last) {
      bound.engine += known[same->second].second;
      continue;
    }
    std::vector<npu::KernelOperation> operations = group.operations;
    const npu::Cycles cycles = leastEngineCycles(operations, group.contexts);
    places.emplace(key, known.size());
    known.emplace_back(std::move(group.operations), cycles);
    bound.engine += cycles;
  }
  const npu::Machine& machine = program.machine;
  std::array<int64_t, 2> bytes{};
  bytes[machine.memory.port(npu::Area::Constants)] += static_cast<int64_t>(program.constants.size());
  for (const auto* ports : {&program.inputs, &program.outputs}) {
    for (const IoTensor& tensor : *ports) bytes[machine.memory.port(npu::Area::Arena)] += tensor.bytes;
  }
  for (size_t port = 0; port < bytes.size(); ++port) {
    const double rate = npu::timing::portBandwidth(*machine.target, machine.system.ports[port]);
    bound.ports[port] = static_cast<npu::Cycles>(static_cast<double>(bytes[port]) / rate);
  }
  npu::Cycles& constants = bound.ports[machine.memory.port(npu::Area::Constants)];
  constants = std::max(constants, weightCycles(program));
  return bound;
}

}  // namespace carina::compiler
