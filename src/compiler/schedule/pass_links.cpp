// SPDX-License-Identifier: Apache-2.0
#include "compiler/schedule/pass_links.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/schedule/operation_builder.hpp"
#include "npu/isa/blockconfig.hpp"

namespace carina::compiler {
namespace {

constexpr size_t kLongestChain = 4;
constexpr size_t kChainInputs = 3;  // from memory

bool wide(const npu::FeatureMap& map) {
  return map.type == npu::ElementType::Int64;
}

/// Whether the value has a buffer of its own and fills it.
bool ownsBuffer(const Storage& storage, const ir::Value* value) {
  const Buffer& buffer = storage.buffer(value);
  return buffer.root == value && buffer.planes() == 1 && storage.access(value).offset == 0;
}

bool sameShape(const npu::FeatureMap& a, const npu::FeatureMap& b) {
  return a.height == b.height && a.width == b.width && a.depth == b.depth;
}

bool canHandOver(const npu::KernelOperation& op) {
  if (op.transpose != npu::Transpose::HWC || op.reverse != npu::Reverse::None || op.weightsFromIfm2)
    return false;
  if (wide(op.ofm) || wide(op.ifm) || (op.ifm2 && wide(*op.ifm2))) return false;
  switch (op.kind) {
    case npu::OperationKind::Conv:
    case npu::OperationKind::Depthwise:
    case npu::OperationKind::Elementwise:
      return true;
    case npu::OperationKind::Pool:
      return op.pool == npu::PoolMode::Max || op.pool == npu::PoolMode::Average ||
             op.pool == npu::PoolMode::Sum;
    case npu::OperationKind::Resize:
      return false;
  }
  return false;
}

/// The map of `pass` that reads `value`; null if there is not exactly one such map, or another one
/// broadcasts.
npu::FeatureMap* chainedMap(Pass& pass, const ir::Value* value) {
  npu::KernelOperation& op = pass.operation;
  if (op.kind != npu::OperationKind::Elementwise || !canHandOver(op)) return nullptr;
  const bool first = pass.ifm.value == value, second = pass.ifm2.value == value;
  if (first == second) return nullptr;
  const auto fits = [&](const npu::FeatureMap& map, const npu::Broadcast& broadcast) {
    return broadcast.scalar || sameShape(map, op.ofm);
  };
  if (!fits(op.ifm, op.elementwise.ifmBroadcast)) return nullptr;
  if (op.ifm2 && !fits(*op.ifm2, op.elementwise.ifm2Broadcast)) return nullptr;
  return first ? &op.ifm : &*op.ifm2;
}

/// The chain under construction.
struct LinkedPasses {
  std::vector<const Pass*> passes;
  size_t inputs = 0, tables = 0;
};

bool haveCommonMicroblock(const LinkedPasses& chain, const npu::Target& target) {
  const auto all = npu::microblocks(target);
  return std::any_of(all.begin(), all.end(), [&](const npu::BlockShape& microblock) {
    return std::all_of(chain.passes.begin(), chain.passes.end(), [&](const Pass* pass) {
      return npu::microblockAllowed(target, pass->operation, microblock);
    });
  });
}

LinkedPasses startChain(const Schedule& schedule, const Pass& pass) {
  LinkedPasses chain;
  chain.passes = {&pass};
  chain.inputs = memoryInputs(schedule, pass).size();
  chain.tables = !pass.isDma && npu::usesTableMemory(*schedule.machine.target, pass.operation.activation);
  return chain;
}

/// Appends `pass` to the chain if possible.
bool extendChain(Schedule& schedule, LinkedPasses& chain, Pass& pass) {
  const npu::Target& target = *schedule.machine.target;
  const Pass& before = *chain.passes.back();
  if (before.isDma || pass.isDma || chain.passes.size() == kLongestChain || !canHandOver(before.operation)) {
    return false;
  }
  const ir::Value* value = before.node->result();
  if (!value->hasOneUse() || value->uses().front().node != pass.node ||
      !ownsBuffer(*schedule.storage, value)) {
    return false;
  }
  npu::FeatureMap* map = chainedMap(pass, value);
  if (!map || !sameShape(*map, before.operation.ofm)) return false;
  LinkedPasses longer = chain;
  longer.passes.push_back(&pass);
  longer.inputs += memoryInputs(schedule, pass).size() - 1;
  longer.tables += npu::usesTableMemory(target, pass.operation.activation);
  if (longer.inputs > kChainInputs || longer.tables > 1 || !haveCommonMicroblock(longer, target))
    return false;
  const auto number = static_cast<uint8_t>(chain.passes.size() - 1);
  for (npu::FeatureMap* side : {&const_cast<Pass&>(before).operation.ofm, map}) {
    side->storage = npu::Storage::Chained;
    side->region = number;
    side->base = {};
  }
  pass.follows = true;
  schedule.chained.insert(value);
  chain = std::move(longer);
  return true;
}

}  // namespace

void linkChains(Schedule& schedule) {
  if (!schedule.machine.target->architecture().chains || schedule.passes.empty()) return;
  LinkedPasses chain = startChain(schedule, schedule.passes.front());
  for (size_t p = 1; p < schedule.passes.size(); ++p) {
    if (!extendChain(schedule, chain, schedule.passes[p])) chain = startChain(schedule, schedule.passes[p]);
  }
}

namespace {

bool mayOverwrite(const Buffer& a, const Buffer& b, InPlace inPlace) {
  if (a.shape != b.shape || a.elementBytes != b.elementBytes) return false;
  // A single column of whole bricks is laid out as without bricks.
  constexpr int64_t kBrickChannels = 16;
  return a.layout == b.layout ||
         (inPlace == InPlace::SamePlaces && a.shape[2] == 1 && a.shape[3] % kBrickChannels == 0);
}

/// Whether the value is all bytes of its buffer, in order.
bool fillsBuffer(const Storage& storage, const ir::Value* value) {
  const Access& access = storage.access(value);
  const Buffer& buffer = storage.buffer(value);
  ir::Ints strides = rowMajorStrides(access.shape);
  for (int64_t& stride : strides) stride *= dtypeSize(value->dtype());
  return buffer.layout == npu::Layout::NHWC && access.offset == 0 && access.strides == strides &&
         value->numBytes() == buffer.bytes;
}

/// The matrices of a SCATTER if nothing reads them later: the result may be them with some rows changed.
int32_t dyingMatrices(const Schedule& schedule, const Pass& pass, std::span<const LiveRange> ranges) {
  const auto index = static_cast<int32_t>(&pass - schedule.passes.data());
  const Storage& storage = *schedule.storage;
  const ir::Value *from = pass.node->operand(0), *to = pass.node->result();
  const int source = storage.access(from).buffer, target = storage.access(to).buffer;
  for (size_t other : {size_t{1}, size_t{2}}) {
    if (storage.access(pass.node->operand(other)).buffer == source) return -1;
  }
  const BufferKind kind = storage.buffer(from).kind, into = storage.buffer(to).kind;
  if (kind == BufferKind::Constant || !fillsBuffer(storage, from) || !fillsBuffer(storage, to) ||
      ranges[static_cast<size_t>(source)].last != index || ranges[static_cast<size_t>(target)].first != index)
    return -1;
  // Program inputs and outputs are not in a cache.
  const bool bothInCache = (kind == BufferKind::FeatureMap) == (into == BufferKind::FeatureMap);
  return !schedule.machine.memory.spilling() || bothInCache ? source : -1;
}

}  // namespace

int32_t dyingInput(const Schedule& schedule, const Pass& pass, std::span<const LiveRange> ranges,
                   InPlace inPlace) {
  if (pass.isDma) {
    return ir::isa<npu_ir::Scatter>(pass.node) ? dyingMatrices(schedule, pass, ranges) : -1;
  }
  if (pass.operation.kind != npu::OperationKind::Elementwise) return -1;
  const ir::Value* result = pass.node->result();
  if (schedule.chained.contains(result) || !ownsBuffer(*schedule.storage, result)) return -1;
  const auto index = static_cast<int32_t>(&pass - schedule.passes.data());
  const Buffer& target = schedule.storage->buffers[static_cast<size_t>(pass.result.buffer)];
  if (ranges[static_cast<size_t>(pass.result.buffer)].first != index) return -1;
  for (const auto& [value, b] : memoryInputs(schedule, pass)) {
    const Buffer& buffer = schedule.storage->buffers[static_cast<size_t>(b)];
    if (buffer.kind == BufferKind::Constant || ranges[static_cast<size_t>(b)].last != index) continue;
    if (!ownsBuffer(*schedule.storage, value) || !mayOverwrite(buffer, target, inPlace)) continue;
    // A cache holds feature maps only: program inputs and outputs would keep them out of it.
    if (schedule.machine.memory.spilling() && buffer.kind != target.kind) continue;
    // Other members of the group may read it in another order, and this pass at another position.
    const Group& group = schedule.groups[static_cast<size_t>(pass.group)];
    int reads = 0;
    for (int32_t p = group.first; p <= group.last; ++p) {
      for (const PassValue& other : memoryInputs(schedule, schedule.passes[static_cast<size_t>(p)])) {
        reads += other.buffer == b;
      }
    }
    if (reads == 1) return b;
  }
  return -1;
}

namespace {

/// Whether each row of a map is in the same row of the buffer that `whole` fills, as those of some channels
/// or columns are.
bool isInRowsOf(const npu::FeatureMap& map, const npu::FeatureMap& whole) {
  return map.storage == whole.storage && map.layout == whole.layout && map.height == whole.height &&
         map.strideY == whole.strideY && map.base[0] < static_cast<uint64_t>(whole.strideY);
}

/// What passes write into each buffer and read from it, row by row.
class RowUses {
 public:
  RowUses(const Schedule& schedule, std::span<const LiveRange> ranges, RollingMaps rolling)
      : schedule_(schedule),
        ranges_(ranges),
        parts_(rolling == RollingMaps::Parts),
        buffers_(ranges.size()) {}

  /// The last pass so far that has written what a pass reads; -1 if it is not read in rows of results, or is
  /// a constant or an input. `map`: of the pass that reads it; null for transfers.
  int32_t producer(const PassValue& input, const npu::FeatureMap* map) const {
    if (!input.value || !input.value->producer()) return -1;
    const auto direct = passes_.find(input.value->producer());
    if (direct != passes_.end()) return direct->second;
    // A view, or the results of several passes side by side.
    const Written& written = buffers_[static_cast<size_t>(input.buffer)];
    const bool rows =
        parts_ && map && written.byRows && written.last >= 0 && isInRowsOf(*map, ofm(written.last));
    return rows ? written.last : -1;
  }

  /// The last pass so far that has written to a buffer, or -1.
  int32_t lastWriter(int32_t buffer) const { return buffers_[static_cast<size_t>(buffer)].last; }

  void readWhole(int32_t buffer) { buffers_[static_cast<size_t>(buffer)].byRows = false; }

  /// `byRows`: whether the pass can run stripe by stripe. Returns the pass before that has written other
  /// parts of the same rows, or -1.
  int32_t write(const Pass& pass, int32_t index, bool byRows) {
    passes_.emplace(pass.node, index);
    Written& written = buffers_[static_cast<size_t>(pass.result.buffer)];
    const npu::FeatureMap& map = pass.operation.ofm;
    if (!parts_) byRows &= ownsBuffer(*schedule_.storage, pass.node->result());
    written.byRows &= byRows && isInRowsOf(map, written.last < 0 ? map : ofm(written.last));
    const int32_t before = std::exchange(written.last, index);
    return written.byRows ? before : -1;
  }

  /// Whether the rows of a buffer are only needed between its first and its last use.
  bool mayRoll(int32_t buffer) const {
    const auto b = static_cast<size_t>(buffer);
    const Buffer& memory = schedule_.storage->buffers[b];
    return buffers_[b].byRows && memory.kind == BufferKind::FeatureMap && memory.planes() == 1 &&
           ranges_[b].last < static_cast<int32_t>(schedule_.passes.size());
  }

 private:
  struct Written {
    int32_t last = -1;
    bool byRows = true;  // written and read
  };
  const npu::FeatureMap& ofm(int32_t pass) const {
    return schedule_.passes[static_cast<size_t>(pass)].operation.ofm;
  }

  const Schedule& schedule_;
  std::span<const LiveRange> ranges_;
  bool parts_;
  std::unordered_map<const ir::Node*, int32_t> passes_;
  std::vector<Written> buffers_;
};

}  // namespace

CascadeProblem cascadeProblem(const Schedule& schedule, std::span<const LiveRange> ranges, npu::Area area,
                              InPlace inPlace, RollingMaps rolling) {
  CascadeProblem problem;
  problem.buffers.assign(ranges.begin(), ranges.end());
  for (size_t b = 0; b < ranges.size(); ++b) {
    if (schedule.buffers[b].area != area) problem.buffers[b].bytes = 0;
  }
  RowUses uses(schedule, ranges, rolling);
  for (size_t p = 0; p < schedule.passes.size(); ++p) {
    const Pass& pass = schedule.passes[p];
    CascadePass facts;
    facts.startsUnit = !pass.follows;
    const bool coded = ir::isa<npu_ir::CodedConv>(pass.node);
    if (!pass.isDma && !coded && canStripe(pass.operation)) facts.operation = &pass.operation;
    if (!pass.isDma) {
      facts.ifmProducer = uses.producer(pass.ifm, &pass.operation.ifm);
      facts.ifm2Producer = uses.producer(pass.ifm2, pass.operation.ifm2 ? &*pass.operation.ifm2 : nullptr);
    }
    for (const PassValue& input : memoryInputs(schedule, pass)) {
      const int32_t producer = pass.isDma                      ? uses.producer(input, nullptr)
                               : input.value == pass.ifm.value ? facts.ifmProducer
                                                               : facts.ifm2Producer;
      if (producer < 0) facts.after = std::max(facts.after, uses.lastWriter(input.buffer));
      if (producer < 0 || !facts.operation) uses.readWhole(input.buffer);
    }
    const int32_t joined = uses.write(pass, static_cast<int32_t>(p), facts.operation != nullptr);
    if (!schedule.chained.contains(pass.node->result())) {
      const Buffer& buffer = schedule.storage->buffers[static_cast<size_t>(pass.result.buffer)];
      facts.buffer = pass.result.buffer;
      facts.joined = joined;
      facts.rowBytes = buffer.planeBytes() / std::max<int64_t>(buffer.shape[1], 1);
      const int32_t dying = dyingInput(schedule, pass, ranges, inPlace);
      if (dying >= 0) facts.inPlaceBytes = roundUp(ranges[static_cast<size_t>(dying)].bytes, 16);
    }
    problem.passes.push_back(facts);
  }
  for (CascadePass& facts : problem.passes) {
    if (facts.buffer < 0 || !uses.mayRoll(facts.buffer)) continue;
    const LiveRange& range = ranges[static_cast<size_t>(facts.buffer)];
    facts.rollsFrom = range.first;
    facts.rollsUntil = range.last;
  }
  return problem;
}

}  // namespace carina::compiler
