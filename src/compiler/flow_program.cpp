// SPDX-License-Identifier: Apache-2.0
// The arena of such a program starts with the places that blocks share; they are followed by memory that one
// block after another uses for itself. Between blocks everything is complete, and nothing is assumed about
// registers, lookup tables or the cache.
#include "compiler/flow_program.hpp"

#include <algorithm>
#include <set>

#include "compiler/flow/flow.hpp"
#include "compiler/program_writer.hpp"
#include "compiler/search/search.hpp"
#include "compiler/storage/storage.hpp"
#include "ir/printer.hpp"

namespace carina::compiler {
namespace {

constexpr uint32_t kBranchBytes = 8;

/// A block with its schedule.
struct Compiled {
  ir::Graph npu;
  Schedule schedule;
  std::vector<CopyPlaces::Copy> copies;  // outputs that share memory with another one in the schedule
};

npu::DmaOperation copyOf(npu::DmaEnd from, int64_t to, int64_t bytes) {
  npu::DmaOperation dma;
  dma.source = from;
  dma.destination.region = regionOf(npu::Area::Arena);
  dma.destination.address = static_cast<uint64_t>(to);
  dma.length = static_cast<uint64_t>(bytes);
  return dma;
}

class FlowCompiler {
 public:
  FlowCompiler(const ir::Graph& tosa, const npu::Machine& machine, const Options& options, const ToNpu& toNpu)
      : tosa_(tosa), machine_(machine), options_(options), toNpu_(toNpu), flow_(flowOf(tosa)) {
    program_.machine = machine;
  }

  Result<CompiledProgram> run() {
    CARINA_RETURN_IF_ERROR(compileBlocks());
    ProgramWriter writer(machine_, options_, program_);
    writer_ = &writer;
    CARINA_RETURN_IF_ERROR(write(flow_.steps));
    CARINA_RETURN_IF_ERROR(writer.finish());
    CARINA_RETURN_IF_ERROR(estimate());
    for (size_t i = 0; i < flow_.inputs.size(); ++i)
      program_.inputs.push_back(ioTensor(*tosa_.inputs()[i], flow_.inputs[i]));
    for (size_t i = 0; i < flow_.outputs.size(); ++i)
      program_.outputs.push_back(ioTensor(*tosa_.outputs()[i], flow_.outputs[i]));
    recordPlaces();
    program_.constants = std::move(constants_).take();
    return std::move(program_);
  }

 private:
  const Place& placeOf(int32_t place) const { return flow_.places[static_cast<size_t>(place)]; }

  IoTensor ioTensor(const ir::Value& value, int32_t place) const {
    return {value.name, value.dtype(), value.shape(), placeOf(place).address, placeOf(place).live.bytes};
  }

  Status compileBlocks() {
    Options options = options_;
    if (options.arenaLimit > 0) {
      if (options.arenaLimit <= flow_.bytes) {
        return fail(Code::DoesNotFit,
                    "the values between the blocks take {} bytes of the arena, more than {}", flow_.bytes,
                    options.arenaLimit)
            .at(tosa_.name)
            .withRemedy("allow a larger arena");
      }
      options.arenaLimit -= flow_.bytes;
    }
    program_.arenaBytes = flow_.bytes;
    for (const Block& block : flow_.blocks) {
      CARINA_TRY(ir::Graph npu, toNpu_(block.tosa, machine_));
      Compiled compiled{std::move(npu), {}, {}};
      blocks_.push_back(std::make_unique<Compiled>(std::move(compiled)));
      Compiled& made = *blocks_.back();
      if (options_.dump) options_.dump("npu", [&] { return ir::print(made.npu); });
      CARINA_TRY(made.schedule, schedule(made.npu, machine_, options, Ends::Outside));
      program_.arenaBytes = std::max(program_.arenaBytes, flow_.bytes + made.schedule.arenaBytes);
      program_.cacheBytes = std::max(program_.cacheBytes, made.schedule.cacheBytes);
      relocate(block, made);
      if (options_.dump) options_.dump("schedule", [&] { return print(made.schedule); });
    }
    return {};
  }

  /// Gives everything in a schedule its address in the program.
  void relocate(const Block& block, Compiled& made) {
    Schedule& plan = made.schedule;
    const int64_t constants = constants_.add(std::move(plan.constants).take());
    const auto move = [&](Placement& placement) {
      if (placement.area == npu::Area::Arena) placement.address += flow_.bytes;
      if (placement.area == npu::Area::Constants) placement.address += constants;
    };
    for (auto* placements : {&plan.buffers, &plan.staging, &plan.homes}) {
      for (Placement& placement : *placements) move(placement);
    }
    for (Pass& pass : plan.passes) {
      if (pass.table >= 0) pass.table += constants;
      for (WeightSlice& slice : pass.slices) {
        for (WeightSlice::Piece& piece : slice.pieces) piece.constant += constants;
      }
    }
    const auto bufferOf = [&](const ir::Value* value) {
      return static_cast<size_t>(plan.storage->access(value).buffer);
    };
    for (size_t i = 0; i < block.inputs.size(); ++i)
      plan.buffers[bufferOf(made.npu.inputs()[i])].address = placeOf(block.inputs[i]).address;
    std::unordered_map<size_t, int32_t> taken;
    for (size_t i = 0; i < block.outputs.size(); ++i) {
      const size_t buffer = bufferOf(made.npu.outputs()[i]);
      const auto [first, isNew] = taken.emplace(buffer, block.outputs[i]);
      if (isNew) {
        plan.buffers[buffer].address = placeOf(block.outputs[i]).address;
      } else {
        made.copies.push_back({block.outputs[i], first->second, nullptr});
      }
    }
  }

  Status write(const FlowSteps& steps) {
    for (const FlowStep& step : steps) {
      if (const auto* run = std::get_if<RunBlock>(&step.what)) {
        CARINA_RETURN_IF_ERROR(writeBlock(run->block));
      } else if (const auto* copies = std::get_if<CopyPlaces>(&step.what)) {
        CARINA_RETURN_IF_ERROR(writeCopies(copies->copies));
      } else if (const auto* choice = std::get_if<Choose>(&step.what)) {
        CARINA_RETURN_IF_ERROR(writeChoice(*choice));
      } else {
        CARINA_RETURN_IF_ERROR(writeLoop(std::get<Repeat>(step.what)));
      }
    }
    return {};
  }

  Status writeBlock(int32_t index) {
    const Compiled& block = *blocks_[static_cast<size_t>(index)];
    const Block& from = flow_.blocks[static_cast<size_t>(index)];
    if (options_.records) addMemoryRecords(block.schedule, block.npu, from.tosa, program_);
    const size_t before = program_.values.size();
    CARINA_RETURN_IF_ERROR(writer_->add(block.schedule, from.graph));
    CARINA_RETURN_IF_ERROR(writer_->addWaits());
    if (!block.copies.empty()) CARINA_RETURN_IF_ERROR(writeCopies(block.copies));
    recordResults(from, before);
    return {};
  }

  /// The results of a block are whole in their places, regardless of how many operations computed them.
  /// `before`: number of values recorded before the block.
  void recordResults(const Block& block, size_t before) {
    if (program_.operations.empty()) return;
    std::set<std::string_view> known;
    for (size_t i = before; i < program_.values.size(); ++i) known.insert(program_.values[i].value);
    std::vector<ValuePlacement> results;
    for (size_t i = 0; i < block.outputs.size(); ++i) {
      const ir::Value& value = *block.tosa.outputs()[i];
      if (value.name.empty() || known.contains(value.name)) continue;
      npu::FeatureMap map;
      map.type = elementType(value.dtype());
      map.region = regionOf(npu::Area::Arena);
      map.base[0] = static_cast<uint64_t>(placeOf(block.outputs[i]).address);
      map.width = map.width0 = static_cast<int32_t>(value.numElements());
      map.strideX = map.strideC = npu::elementBytes(map.type);
      map.strideY = map.strideX * map.width;
      results.push_back({value.name, block.graph, program_.operations.size() - 1, map});
    }
    program_.values.insert(program_.values.end(), results.begin(), results.end());
  }

  Status writeCopies(const std::vector<CopyPlaces::Copy>& copies) {
    for (const CopyPlaces::Copy& copy : copies) {
      npu::DmaEnd from;
      from.region = regionOf(copy.constant ? npu::Area::Constants : npu::Area::Arena);
      from.address = static_cast<uint64_t>(copy.constant ? constants_.add(copy.constant->constant().bytes())
                                                         : placeOf(copy.from).address);
      const Place& to = placeOf(copy.to);
      CARINA_RETURN_IF_ERROR(writer_->add(copyOf(from, to.address, to.live.bytes), to.name));
    }
    return writer_->addWaits();
  }

  /// Ensures that the flag holds the predicate.
  Status writeFlag(int32_t predicate, int32_t flagBlock) {
    const npu::KernelOperation* setter = writer_->flagSetter();
    const bool isSet = setter && setter->ofm.region == regionOf(npu::Area::Arena) &&
                       setter->ofm.base[0] == static_cast<uint64_t>(placeOf(predicate).address);
    return isSet ? Status() : writeBlock(flagBlock);
  }

  Status writeChoice(const Choose& choice) {
    BranchRecord record;
    record.name = choice.name;
    CARINA_RETURN_IF_ERROR(writeFlag(choice.predicate, choice.flagBlock));
    const ProgramWriter::Label isTrue = writer_->newLabel(), end = writer_->newLabel();
    record.begin = writer_->position();
    CARINA_RETURN_IF_ERROR(writer_->branch(isTrue, true));
    CARINA_RETURN_IF_ERROR(write(choice.whenFalse));
    CARINA_RETURN_IF_ERROR(writer_->branch(end, false));
    writer_->place(isTrue);
    record.middle = writer_->position();
    CARINA_RETURN_IF_ERROR(write(choice.whenTrue));
    writer_->place(end);
    record.end = writer_->position();
    program_.branches.push_back(std::move(record));
    return {};
  }

  /// The test follows the body, so that each iteration takes one branch.
  Status writeLoop(const Repeat& loop) {
    BranchRecord record;
    record.name = loop.name;
    record.isLoop = true;
    record.turns = loop.turns;
    const ProgramWriter::Label test = writer_->newLabel(), body = writer_->newLabel();
    record.begin = writer_->position();
    CARINA_RETURN_IF_ERROR(writer_->branch(test, false));
    writer_->place(body);
    CARINA_RETURN_IF_ERROR(write(loop.body));
    writer_->place(test);
    record.middle = writer_->position();
    CARINA_RETURN_IF_ERROR(write(loop.test));
    CARINA_RETURN_IF_ERROR(writeFlag(loop.predicate, loop.flagBlock));
    CARINA_RETURN_IF_ERROR(writer_->branch(body, true));
    writer_->place(writer_->newLabel());
    record.end = writer_->position();
    program_.branches.push_back(std::move(record));
    return {};
  }

  /// Cycles of the program and of the paths through it.
  Status estimate() {
    CARINA_TRY(const std::vector<npu::PlacedOperation> all,
               npu::decodeStream(program_.commands, *machine_.target));
    const std::vector<npu::CountedLoop> loops = countedLoops(program_);
    program_.cycles = npu::longestPath(all, machine_, npu::timing::kCalibrated, loops);
    const auto offsetOf = [](const npu::PlacedOperation& placed, uint32_t at) { return placed.offset < at; };
    for (BranchRecord& record : program_.branches) {
      // The branches at both ends belong to neither path.
      const auto way = [&](uint32_t begin, uint32_t end) {
        const auto first = std::lower_bound(all.begin(), all.end(), begin, offsetOf);
        const auto last = std::lower_bound(first, all.end(), end, offsetOf);
        return npu::longestPath({first, last}, machine_, npu::timing::kCalibrated,
                                loopsWithin(loops, begin + 1, end));
      };
      const npu::Cycles before = way(record.begin + kBranchBytes, record.middle),
                        behind = way(record.middle, record.end);
      record.first = record.isLoop ? before : behind;
      record.second = record.isLoop ? behind : before;
    }
    return {};
  }

  /// Of loops sorted by their starts, those within a range of the stream.
  static std::span<const npu::CountedLoop> loopsWithin(std::span<const npu::CountedLoop> loops,
                                                       uint32_t begin, uint32_t end) {
    const auto before = [](const npu::CountedLoop& loop, uint32_t at) { return loop.begin < at; };
    const auto first = std::lower_bound(loops.begin(), loops.end(), begin, before);
    return {first, std::lower_bound(first, loops.end(), end, before)};
  }

  void recordPlaces() {
    if (!options_.records) return;
    const auto steps = static_cast<int32_t>(program_.steps.size());
    const auto isIn = [](const std::vector<int32_t>& list, size_t place) {
      return std::find(list.begin(), list.end(), static_cast<int32_t>(place)) != list.end();
    };
    std::vector<MemoryRecord> all;
    for (size_t p = 0; p < flow_.places.size(); ++p) {
      const Place& place = flow_.places[p];
      if (place.live.bytes == 0) continue;
      const char* what = isIn(flow_.inputs, p)    ? "input"
                         : isIn(flow_.outputs, p) ? "output"
                                                  : "between blocks";
      all.push_back({place.name, what, npu::Area::Arena, place.address, place.live.bytes, -1, steps});
    }
    // What blocks have in places was recorded with the places.
    for (MemoryRecord& record : program_.memory) {
      if (record.area != npu::Area::Arena || record.address >= flow_.bytes) all.push_back(std::move(record));
    }
    program_.memory = std::move(all);
  }

  const ir::Graph& tosa_;
  const npu::Machine& machine_;
  const Options& options_;
  const ToNpu& toNpu_;
  const Flow flow_;
  std::vector<std::unique_ptr<Compiled>> blocks_;  // schedules hold references to their graphs
  ConstantPool constants_;
  CompiledProgram program_;
  ProgramWriter* writer_ = nullptr;
};

}  // namespace

std::vector<npu::CountedLoop> countedLoops(const CompiledProgram& program) {
  std::vector<npu::CountedLoop> loops;
  for (const BranchRecord& record : program.branches) {
    // The branch that enters a loop runs once.
    if (record.isLoop && record.turns >= 0)
      loops.push_back({record.begin + kBranchBytes, record.end, record.turns});
  }
  std::sort(loops.begin(), loops.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  return loops;
}

Result<CompiledProgram> compileFlow(const ir::Graph& tosa, const npu::Machine& machine,
                                    const Options& options, const ToNpu& toNpu) {
  for (const ir::Node* node : tosa.nodes()) {
    if (node->regions().empty()) continue;
    if (auto why = supports(*node, *machine.target)) return Error(std::move(*why));
  }
  return FlowCompiler(tosa, machine, options, toNpu).run();
}

}  // namespace carina::compiler
