// SPDX-License-Identifier: Apache-2.0
#include "pipeline/stream_trace.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include "device/npu_setup.hpp"
#include "format/ethosu_registers.hpp"
#include "npu/isa/disassembler.hpp"
#include "npu/isa/layout.hpp"
#include "npu/isa/stream.hpp"
#include "npu/model/extent_checks.hpp"
#include "npu/model/memory_uses.hpp"
#include "npu/model/model.hpp"
#include "npu/targets/recorded_memories.hpp"
#include "pipeline/npu_bus.hpp"

namespace carina::pipeline {
namespace {

namespace reg = format::ethosu_reg;

/// The last writer of each byte of the regions.
class Writers {
 public:
  /// `dense`: every byte of the range is written.
  void write(int32_t space, uint64_t first, uint64_t last, bool dense, size_t step) {
    std::vector<Range>& ranges = spaces_[space];
    if (dense) {
      std::vector<Range> kept;
      for (const Range& range : ranges) {
        if (range.last < first || range.first > last) {
          kept.push_back(range);
          continue;
        }
        if (range.first < first) kept.push_back({range.first, first - 1, range.step});
        if (range.last > last) kept.push_back({last + 1, range.last, range.step});
      }
      ranges = std::move(kept);
    }
    ranges.push_back({first, last, step});
  }

  void read(int32_t space, uint64_t first, uint64_t last, std::vector<size_t>& steps) const {
    const auto known = spaces_.find(space);
    if (known == spaces_.end()) return;
    for (const Range& range : known->second) {
      if (range.last < first || range.first > last) continue;
      if (std::find(steps.begin(), steps.end(), range.step) == steps.end()) steps.push_back(range.step);
    }
  }

 private:
  struct Range {
    uint64_t first = 0, last = 0;
    size_t step = 0;
  };
  std::map<int32_t, std::vector<Range>> spaces_;
};

class Tracer {
 public:
  Tracer(const CommandStream& stream, WorkBudget& budget) : stream_(stream), budget_(budget) {}

  Result<StreamTrace> run(std::span<const ByteSpan> inputs) {
    const auto& arena = stream_.memory.regions[1];
    if (!arena || stream_.outputs.empty())
      return fail(Code::UnsupportedProgram, "does not say where its inputs and outputs are").at(stream_.name);
    CARINA_TRY(const npu::Machine machine,
               device::machineFor({std::string(stream_.target->name), stream_.systemConfig,
                                   stream_.memoryMode, false, stream_.memories}));
    CARINA_RETURN_IF_ERROR(take(arena->bytes));
    arena_.resize(std::max<uint64_t>(arena->bytes, 16));
    fast_.resize(static_cast<size_t>(device::fastScratchBytes(machine)));
    CARINA_RETURN_IF_ERROR(place(inputs));
    npu::MappedMemory memory;
    memory.map(kStreamAddress, std::as_bytes(std::span(stream_.words)));
    if (!stream_.constants.empty())
      memory.map(kRegionAddress[0], std::span<const std::byte>(stream_.constants));
    memory.map(kRegionAddress[1], std::span<std::byte>(arena_));
    if (!fast_.empty()) memory.map(kRegionAddress[2], std::span<std::byte>(fast_));
    npu::ModelOptions options;
    options.timing = false;
    npu::Npu device(machine, memory, options);
    device.setLimits(std::min(options.maxRunWork, budget_.left()),
                     std::min(options.maxOperationBytes, npu::operationBytesFor(taken_)));
    const Status executed = execute(device);
    budget_.spend(device.stats().work);
    CARINA_RETURN_IF_ERROR(executed);
    StreamTrace trace;
    for (const pte::BlobIo& io : stream_.outputs) {
      const std::byte* at = arena_.data() + io.offset;
      trace.outputs.emplace_back(at, at + io.bytes());
    }
    trace.steps = std::move(steps_);
    return trace;
  }

 private:
  Status place(std::span<const ByteSpan> inputs) {
    if (inputs.size() != stream_.inputs.size())
      return fail(Code::InputMismatch, "takes {} inputs, but {} are given", stream_.inputs.size(),
                  inputs.size())
          .at(stream_.name);
    const auto fits = [&](const pte::BlobIo& io) {
      return io.region == 1 && io.offset >= 0 && io.bytes() >= 0 &&
             static_cast<uint64_t>(io.offset) <= arena_.size() &&
             static_cast<uint64_t>(io.bytes()) <= arena_.size() - static_cast<uint64_t>(io.offset);
    };
    for (size_t i = 0; i < inputs.size(); ++i) {
      const pte::BlobIo& io = stream_.inputs[i];
      if (!fits(io))
        return fail(Code::UnsupportedProgram, "input {} lies outside the scratch region", i).at(stream_.name);
      if (static_cast<int64_t>(inputs[i].size()) != io.bytes())
        return fail(Code::InputMismatch, "input {} takes {} bytes, but {} are given", i, io.bytes(),
                    inputs[i].size())
            .at(stream_.name);
      std::copy(inputs[i].begin(), inputs[i].end(), arena_.begin() + io.offset);
    }
    for (size_t i = 0; i < stream_.outputs.size(); ++i) {
      if (!fits(stream_.outputs[i]))
        return fail(Code::UnsupportedProgram, "output {} lies outside the scratch region", i)
            .at(stream_.name);
    }
    return {};
  }

  Status execute(npu::Npu& device) {
    CARINA_TRY(const std::vector<npu::PlacedOperation> operations,
               npu::decodeStream(stream_.words, *stream_.target));
    std::map<uint32_t, const npu::Operation*> byOffset;
    for (const npu::PlacedOperation& placed : operations) byOffset.emplace(placed.offset, &placed.operation);
    const auto write64 = [&](uint32_t offset, uint64_t value) {
      device.write32(offset, static_cast<uint32_t>(value));
      device.write32(offset + 4, static_cast<uint32_t>(value >> 32));
    };
    device.write32(reg::kCmd, 0);  // clock and power stay on
    write64(reg::kQBase, kStreamAddress);
    device.write32(reg::kQSize, static_cast<uint32_t>(stream_.words.size() * 4));
    for (uint32_t region = 0; region < 3; ++region) write64(reg::kBaseP + 8 * region, kRegionAddress[region]);
    device.write32(reg::kCmd, 1);
    while (device.running()) {
      const auto at = byOffset.find(device.read32(reg::kQRead));
      device.step();
      if (const auto& fault = device.fault()) {
        if (fault->kind == npu::FaultKind::Limit)
          return fail(Code::Excessive, "{}", fault->str()).at(stream_.name).withRemedy(kTrustRemedy);
        return fail(Code::NpuFault, "the NPU model stopped: {}", fault->str()).at(stream_.name);
      }
      if (at != byOffset.end()) CARINA_RETURN_IF_ERROR(record(at->first, *at->second));
    }
    return {};
  }

  /// Charges memory that the stream needs.
  Status take(uint64_t bytes) {
    const auto most = static_cast<uint64_t>(budget_.bytes());
    if (bytes <= most - taken_) {
      taken_ += bytes;
      return {};
    }
    return fail(Code::Excessive, "its memory and the results of its operations need more than {} bytes", most)
        .at(stream_.name)
        .withRemedy(kTrustRemedy);
  }

  Status record(uint32_t offset, const npu::Operation& operation) {
    const auto* kernel = std::get_if<npu::KernelOperation>(&operation);
    const auto* dma = std::get_if<npu::DmaOperation>(&operation);
    if (kernel == nullptr && dma == nullptr) return {};
    TracedStep step;
    step.offset = offset;
    step.text = npu::describe(operation);
    step.isKernel = kernel != nullptr;
    const auto uses =
        kernel ? npu::memoryUses(*stream_.target, *kernel) : npu::memoryUses(*stream_.target, *dma);
    for (const npu::MemoryUse& use : uses) {
      if (!use.write) writers_.read(use.space, use.first, use.last, step.readsFrom);
    }
    bool dense = true;
    if (kernel) {
      const auto chained = [](const npu::FeatureMap& map) { return map.storage == npu::Storage::Chained; };
      if (chained(kernel->ifm) || (kernel->ifm2 && chained(*kernel->ifm2))) {
        for (const size_t member : chain_) step.readsFrom.push_back(member);
      } else {
        chain_.clear();
      }
      if (chained(kernel->ofm)) chain_.push_back(steps_.size());
      constexpr uint64_t kKept = sizeof(int64_t);
      const npu::FeatureMap& ofm = kernel->ofm;
      CARINA_RETURN_IF_ERROR(take(sizeof(TracedStep) + kKept * static_cast<uint64_t>(ofm.height) *
                                                           static_cast<uint64_t>(ofm.width) *
                                                           static_cast<uint64_t>(ofm.depth)));
      dense = read(*kernel, step);
    }
    for (const npu::MemoryUse& use : uses) {
      if (use.write) writers_.write(use.space, use.first, use.last, dense, steps_.size());
    }
    steps_.push_back(std::move(step));
    return {};
  }

  /// Reads the OFM from memory; returns whether it fills its address range.
  bool read(const npu::KernelOperation& op, TracedStep& step) const {
    const bool inMemory =
        op.ofm.storage == npu::Storage::Tiles2x2 || op.ofm.storage == npu::Storage::Tiles3x1;
    if (!op.accumulatorOutput || !inMemory || op.ofm.region == 0 || op.ofm.region > 2) return true;
    const std::vector<std::byte>& bytes = op.ofm.region == 2 ? fast_ : arena_;
    const npu::model::MapAxes axes = npu::model::ofmAxes(op);
    step.shape = {axes.h, axes.w, axes.c};
    step.elementBytes = npu::elementBytes(op.ofm.type);
    MapElements map = readMap(op.ofm, axes.h, axes.w, axes.c, bytes);
    if (map.elements.empty()) return false;
    step.elements = std::move(map.elements);
    const int64_t channels = op.ofm.layout == npu::Layout::NHWC ? axes.c : roundUp(axes.c, npu::kBrickDepth);
    return map.last - map.first <= static_cast<uint64_t>(axes.h * axes.w * channels * step.elementBytes);
  }

  const CommandStream& stream_;
  WorkBudget& budget_;
  uint64_t taken_ = 0;  // memory charged so far
  std::vector<std::byte> arena_, fast_;
  std::vector<TracedStep> steps_;
  std::vector<size_t> chain_;  // members of the open chain
  Writers writers_;
};

}  // namespace

Result<StreamTrace> traceStream(const CommandStream& stream, std::span<const ByteSpan> inputs,
                                WorkBudget& budget) {
  return Tracer(stream, budget).run(inputs);
}

}  // namespace carina::pipeline
