// SPDX-License-Identifier: Apache-2.0
// Order, lifetimes, cascades, areas and addresses of a schedule (scheduler.hpp).
#include "compiler/search/scheduler.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <numeric>
#include <string_view>

#include "compiler/emit/emit.hpp"
#include "compiler/schedule/block_search.hpp"
#include "compiler/schedule/operation_builder.hpp"
#include "compiler/schedule/pass_links.hpp"
#include "compiler/schedule/pass_order.hpp"
#include "npu/isa/blockconfig.hpp"
#include "npu/weights/scale_records.hpp"

namespace carina::compiler {
namespace {

/// The settings of the cycle model that affect where maps are best read, the calibrated one first.
constexpr std::array<std::string_view, 2> kUncertainSettings{"calibrated", "whole-bursts"};

/// Default capacity of a dedicated cache: the fast scratch memory of the common runner.
constexpr int64_t kDefaultCacheBytes = 384 * 1024;

/// Networks of up to this many passes and bytes of encoded weights run on one thread.
constexpr size_t kFewPasses = 512;
constexpr int64_t kFewWeights = 384 * 1024;

/// A layer over tokens, in a row or two. It reads its map again for each block of output channels. Blocks of
/// images cover more channels, and cascades keep their rows.
bool isLinear(const npu::KernelOperation& op) {
  return op.kernel.height * op.kernel.width == 1 && std::min(op.ofm.height, op.ofm.width) <= 2;
}

}  // namespace

int64_t cacheLimit(const npu::Machine& machine, const Options& options) {
  const int64_t most = machine.memory.cacheBytes > 0 ? machine.memory.cacheBytes : kDefaultCacheBytes;
  return options.cacheLimit > 0 ? std::min(most, options.cacheLimit) : most;
}

Status Scheduler::prepare() {
  CARINA_TRY(Storage storage, assignStorage(graph_, options_.padsBricks ? Bricks::Padded : Bricks::Whole));
  result_.storage = std::make_shared<const Storage>(std::move(storage));
  addPasses();
  if (options_.freesMapsEarly) reordered_ = freeMapsEarly(result_);
  std::vector<const ir::Node*> convolutions;
  for (const Pass& pass : result_.passes) {
    if (isConvolution(pass)) convolutions.push_back(pass.node);
  }
  contents_ = std::make_shared<const WeightContents>(convolutions);
  if (options_.known) {
    for (const ir::Node* node : convolutions) forms_.emplace(node, options_.known->formsOf(node));
  }
  hashConstants();
  worthThreads_ = result_.passes.size() > kFewPasses || contents_->totalBytes() > kFewWeights;
  linkChains(result_);
  separateGroups();
  findLifetimes();
  wholeOverlays_ = overlays_;
  result_.arenaBound = arenaBound(RollingMaps::Parts);
  return {};
}

Status Scheduler::choose(const Limits& limits) {
  CARINA_RETURN_IF_ERROR(chooseButWeights(limits));
  if (mode().slowConstants()) useWeightPaths(limits, planWeightPaths(limits));
  forgetWeightPaths();
  return {};
}

Status Scheduler::choosePlaces(const Limits& limits) {
  limits_ = limits;
  chooseAreas();
  if (limits_.cascades) {
    CARINA_RETURN_IF_ERROR(chooseCascades(*limits_.cascades));
    findLifetimes();
    chooseAreas();
  }
  return {};
}

Status Scheduler::chooseBlocksAndPaths() {
  CARINA_RETURN_IF_ERROR(chooseBlocks());
  if (mode().slowConstants()) CARINA_RETURN_IF_ERROR(describeWeights());
  return {};
}

Status Scheduler::chooseButWeights(const Limits& limits) {
  CARINA_RETURN_IF_ERROR(choosePlaces(limits));
  return chooseBlocksAndPaths();
}

Places Scheduler::places() const {
  return {limits_.ahead,   limits_.inPlace, limits_.maxUnslicedBytes, result_.groups, result_.stripes,
          result_.buffers, result_.homes};
}

Result<npu::Cycles> Scheduler::expectedCycles() {
  for (Pass& pass : result_.passes) expectSlices(pass);
  CARINA_RETURN_IF_ERROR(encodeCodedScales());
  addConstants();
  CARINA_RETURN_IF_ERROR(allocate(Allocation::Try));
  return streamCycles(result_);
}

npu::Cycles Scheduler::cyclesOverSettings() const {
  npu::Cycles sum = 0;
  for (const std::string_view name : kUncertainSettings)
    sum += streamCycles(result_, *npu::timing::findRules(name));
  return sum;
}

npu::Cycles Scheduler::cyclesIfTransfersWait() const {
  return streamCycles(result_, *npu::timing::findRules("transfers-wait"));
}

int64_t Scheduler::mapBytes() const {
  std::vector<LiveRange> ranges;
  for (const Placement& placement : result_.buffers) {
    if (placement.area == fastArea() && placement.live.bytes > 0) ranges.push_back(placement.live);
  }
  return packingLowerBound(ranges);
}

int64_t Scheduler::mapAndSliceBytes() const {
  std::vector<LiveRange> ranges;
  for (const Placement& placement : result_.buffers) {
    if (placement.area == fastArea() && placement.live.bytes > 0) ranges.push_back(placement.live);
  }
  for (const Pass& pass : result_.passes) {
    if (!isConvolution(pass)) continue;
    const int64_t slice = slicedBytes(pass, mostChannels(pass, WeightPath::ThickestSlices));
    ranges.push_back({2 * slice, pass.group, pass.group});
  }
  return packingLowerBound(ranges);
}

int64_t Scheduler::cacheableBytes() const {
  const std::vector<bool> may = mayBeCached();
  std::vector<LiveRange> ranges;
  for (size_t b = 0; b < may.size(); ++b) {
    if (may[b]) ranges.push_back(result_.buffers[b].live);
  }
  return packingLowerBound(ranges);
}

int64_t Scheduler::largestMap() const {
  const std::vector<bool> may = mayBeCached();
  int64_t bytes = 0;
  for (size_t b = 0; b < may.size(); ++b) {
    if (may[b]) bytes = std::max(bytes, result_.buffers[b].live.bytes);
  }
  return bytes;
}

Result<Schedule> Scheduler::finish() {
  for (Pass& pass : result_.passes) pass.slices.clear();
  result_.constants = {};
  CARINA_RETURN_IF_ERROR(encodeWeights());
  addConstants();
  CARINA_RETURN_IF_ERROR(allocate(Allocation::Final));
  return std::move(result_);
}

Result<Schedule> Scheduler::finishWithLess(npu::Cycles most) {
  CARINA_RETURN_IF_ERROR(allocate(Allocation::Evicting));
  const npu::Cycles cycles = streamCycles(result_);
  if (cycles > most)
    return fail(Code::DoesNotFit, "evicted maps cost too many cycles: {} instead of {}", cycles, most);
  return std::move(result_);
}

void Scheduler::addPasses() {
  for (const ir::Node* node : graph_.nodes()) {
    if (ir::isa<npu_ir::View>(node) || ir::isa<npu_ir::Join>(node)) continue;
    Pass pass;
    pass.node = node;
    pass.isDma = !npu_ir::hasOutputStage(node);
    const auto placed = [&](const ir::Value* value) {
      return value ? PassValue{value, result_.storage->access(value).buffer} : PassValue{};
    };
    pass.result = placed(node->result());
    if (!pass.isDma) {
      const OperationInputs inputs = operationInputs(node, target_);
      pass.ifm = placed(inputs.ifm);
      pass.ifm2 = placed(inputs.ifm2);
      pass.operation = buildOperation(node, *result_.storage, target_);
      chooseUnit(pass.operation);
    }
    pass.canBeSparse =
        target_.architecture().sparseWeights && ir::isa<npu_ir::Conv>(node) && canBeSparse(node);
    result_.passes.push_back(std::move(pass));
  }
}

void Scheduler::chooseUnit(npu::KernelOperation& op) const {
  const auto product = asProduct(op, target_);
  if (!product) return;
  npu::TimingContext context;
  context.machine = &result_.machine;
  context.ifm = context.ofm = fastArea();
  const auto cycles = [&](const npu::KernelOperation& candidate) {
    const auto chosen = blocks_->choose({&candidate, 1}, {&context, 1}, false);
    return chosen.ok() ? chosen->cost.total : std::numeric_limits<npu::Cycles>::max();
  };
  if (cycles(*product) <= cycles(op)) op = *product;
}

std::vector<LiveRange> Scheduler::passRanges() const {
  std::vector<LiveRange> ranges(result_.storage->buffers.size());
  const auto end = static_cast<int32_t>(result_.passes.size());
  const auto touch = [&](int32_t buffer, int32_t pass) {
    const auto b = static_cast<size_t>(buffer);
    LiveRange& live = ranges[b];
    if (live.bytes == 0) live = {result_.storage->buffers[b].bytes, pass, pass};
    live.first = std::min(live.first, pass);
    live.last = std::max(live.last, pass);
  };
  for (const ir::Value* input : graph_.inputs()) touch(result_.storage->access(input).buffer, -1);
  for (int32_t i = 0; i < end; ++i) {
    const Pass& pass = result_.passes[static_cast<size_t>(i)];
    for (const PassValue& input : memoryInputs(result_, pass)) touch(input.buffer, i);
    if (!result_.chained.contains(pass.result.value)) touch(pass.result.buffer, i);
  }
  for (const ir::Value* output : graph_.outputs()) {
    if (!result_.chained.contains(output)) touch(result_.storage->access(output).buffer, end);
  }
  return ranges;
}

void Scheduler::findLifetimes() {
  const std::vector<LiveRange> ranges = passRanges();
  result_.buffers.assign(ranges.size(), {});
  result_.homes.clear();
  const auto group = [&](int32_t pass) {
    if (pass < 0) return -1;
    return pass < static_cast<int32_t>(result_.passes.size())
               ? result_.passes[static_cast<size_t>(pass)].group
               : static_cast<int32_t>(result_.groups.size());
  };
  for (size_t b = 0; b < ranges.size(); ++b) {
    Placement& placement = result_.buffers[b];
    placement.bytes = ranges[b].bytes;
    placement.live = {ranges[b].bytes, group(ranges[b].first), group(ranges[b].last)};
    if (result_.storage->buffers[b].kind == BufferKind::Constant) {
      placement.live.bytes = 0;
      placement.area = npu::Area::Constants;
    }
    if (isOutside(b)) placement.live.bytes = 0;
  }
  rollBuffers();
  takeOver(ranges);
}

void Scheduler::rollBuffers() {
  for (size_t g = 0; g < result_.groups.size(); ++g) {
    const Group& group = result_.groups[g];
    if (group.rows == 0) continue;
    const auto plan = planStripes(stripedPasses(problem_, group), group.rows);
    CARINA_CHECK(plan, "a chosen cascade has a plan");
    result_.stripes[g] = plan->stripes;
    for (Stripe& stripe : result_.stripes[g]) {
      stripe.pass += group.first;
      Pass& pass = result_.passes[static_cast<size_t>(stripe.pass)];
      pass.stripeRows = std::max(pass.stripeRows, stripe.end - stripe.begin);
    }
    for (int32_t p = group.first; p <= group.last; ++p) {
      const CascadePass& member = problem_.passes[static_cast<size_t>(p)];
      const int32_t held = plan->held[static_cast<size_t>(p - group.first)];
      if (member.buffer < 0 || member.rollsFrom < group.first || member.rollsUntil > group.last) continue;
      if (held >= member.operation->ofm.height) continue;
      Placement& placement = result_.buffers[static_cast<size_t>(member.buffer)];
      placement.heldRows = held;
      placement.bytes = placement.live.bytes = member.rowBytes * held;
    }
  }
}

void Scheduler::takeOver(const std::vector<LiveRange>& ranges) {
  for (const Pass& pass : result_.passes) {
    if (result_.groups[static_cast<size_t>(pass.group)].rows > 0) continue;
    const int32_t from = dyingInput(result_, pass, ranges, inPlace());
    if (from < 0 || isOutside(static_cast<size_t>(from)) ||
        isOutside(static_cast<size_t>(pass.result.buffer)))
      continue;
    int32_t root = from;
    while (result_.buffers[static_cast<size_t>(root)].takesOver >= 0) {
      root = result_.buffers[static_cast<size_t>(root)].takesOver;
    }
    Placement& result = result_.buffers[static_cast<size_t>(pass.result.buffer)];
    LiveRange& live = result_.buffers[static_cast<size_t>(root)].live;
    live.last = std::max(live.last, result.live.last);
    result.live.bytes = 0;
    result.takesOver = root;
  }
  overlays_ = shortOfMemory() && !mode().spilling() ? overlays() : std::vector<Overlay>();
  for (const Overlay& overlay : overlays_) {
    Placement &input = result_.buffers[overlay.input], &buffer = result_.buffers[overlay.buffer];
    input.live.last = std::max(input.live.last, buffer.live.last);
    buffer.live.bytes = 0;
    buffer.takesOver = static_cast<int32_t>(overlay.input);
  }
}

void Scheduler::separateGroups() {
  result_.groups.clear();
  for (int32_t p = 0; p < static_cast<int32_t>(result_.passes.size()); ++p) {
    if (result_.passes[static_cast<size_t>(p)].follows) {
      result_.groups.back().last = p;
    } else {
      result_.groups.push_back({p, p, 0});
    }
  }
  assignGroups();
}

void Scheduler::assignGroups() {
  result_.stripes.assign(result_.groups.size(), {});
  for (size_t g = 0; g < result_.groups.size(); ++g) {
    for (int32_t p = result_.groups[g].first; p <= result_.groups[g].last; ++p) {
      result_.passes[static_cast<size_t>(p)].group = static_cast<int32_t>(g);
    }
  }
}

Status Scheduler::chooseCascades(int64_t limit) {
  // The blocks of whole passes determine their cost.
  const npu::Area area = limits_.cascadesInCache ? npu::Area::Cache : npu::Area::Arena;
  if (limits_.cascadesInCache) {
    const std::vector<bool> cacheable = mayBeCached();
    for (size_t b = 0; b < cacheable.size(); ++b) {
      // Results that take over a buffer outside of cascades have one of their own in a cascade.
      const bool takesOver =
          result_.buffers[b].takesOver >= 0 && result_.storage->buffers[b].kind == BufferKind::FeatureMap;
      if (cacheable[b] || takesOver) result_.buffers[b].area = area;
    }
  }
  for (Pass& pass : result_.passes)
    pass.staged = isConvolution(pass) && mode().slowConstants() && !limits_.inPlace;
  CARINA_RETURN_IF_ERROR(chooseBlocks());
  problem_ = cascadeProblem(result_, rangesWithOverlays(), area, inPlace(), limits_.rolling);
  for (size_t p = 0; p < problem_.passes.size(); ++p) {
    const Pass& pass = result_.passes[p];
    if (!isConvolution(pass) || !mode().slowConstants() || limits_.inPlace) continue;
    const int64_t bytes = contents_->expectedBytes(pass.node);
    problem_.passes[p].stagedWhole = bytes;
    problem_.passes[p].stagedBytes = std::min(bytes, 2 * slicedBytes(pass));
  }
  if (limits_.cascadesInCache) {
    // Outside of cascades, weights need no copy.
    for (CascadePass& pass : problem_.passes) pass.stagedBytes = 0;
  } else if (mode().spilling()) {
    // Staged weights are in the cache.
    for (CascadePass& pass : problem_.passes) pass.stagedBytes = pass.stagedWhole = 0;
  }
  problem_.maxCachedMapBytes = limits_.maxCachedMapBytes;
  problem_.cycles = [this](int32_t p, int32_t rows, MapsBehind behind) {
    return estimatedCycles(p, rows, behind);
  };
  result_.groups = chooseGroups(problem_, limit).groups;
  assignGroups();
  return {};
}

int64_t Scheduler::arenaBound(RollingMaps rolling) const {
  if (mode().spilling() || ends_ != Ends::InArena) return 0;
  const CascadeProblem problem =
      cascadeProblem(result_, rangesWithOverlays(), npu::Area::Arena, inPlace(), rolling);
  std::vector<int64_t> bytes;
  for (const LiveRange& buffer : problem.buffers) bytes.push_back(roundUp(buffer.bytes, 16));
  const size_t count = problem.passes.size();
  std::vector<int64_t> change(count + 1, 0);  // in live bytes, at each pass
  for (size_t p = 0; p < count; ++p) {
    const CascadePass& pass = problem.passes[p];
    if (pass.buffer < 0) continue;
    int64_t& own = bytes[static_cast<size_t>(pass.buffer)];
    if (pass.operation && pass.rollsUntil >= 0) own = std::min(own, roundUp(pass.rowBytes, 16));
    // The result overwrites an input.
    change[p] -= pass.inPlaceBytes;
    change[p + 1] += pass.inPlaceBytes;
  }
  // While a pass computes a row, all input rows in its window are alive.
  for (size_t p = 0; p < count; ++p) {
    const CascadePass& pass = problem.passes[p];
    if (!pass.operation || pass.ifmProducer < 0) continue;
    const CascadePass& producer = problem.passes[static_cast<size_t>(pass.ifmProducer)];
    if (producer.buffer < 0 || producer.rollsUntil < 0 || !producer.operation) continue;
    const int64_t whole = problem.buffers[static_cast<size_t>(producer.buffer)].bytes;
    const int64_t up = pass.operation->upscale == npu::Upscale::None ? 1 : 2;
    const int64_t window =
        std::min(whole, producer.rowBytes * ceilDiv(pass.operation->kernel.dilatedHeight(), up));
    const int64_t more =
        std::max<int64_t>(roundUp(window, 16) - bytes[static_cast<size_t>(producer.buffer)], 0);
    change[p] += more;
    change[p + 1] -= more;
  }
  for (size_t b = 0; b < bytes.size(); ++b) {
    const LiveRange& range = problem.buffers[b];
    const auto first = static_cast<size_t>(std::max(range.first, 0));
    const size_t end = std::min(static_cast<size_t>(std::max(range.last + 1, 0)), count);
    if (range.bytes == 0 || first >= end) continue;
    change[first] += bytes[b];
    change[end] -= bytes[b];
  }
  int64_t alive = 0, most = 0;
  for (size_t p = 0; p < count; ++p) {
    alive += change[p];
    most = std::max(most, alive);
  }
  return most;
}

void Scheduler::chooseAreas() {
  for (Pass& pass : result_.passes) {
    pass.staged = isConvolution(pass) && mode().slowConstants() && !limits_.inPlace &&
                  (!limits_.ahead || inCascade(pass));
  }
  for (Placement& placement : result_.buffers) {
    if (placement.area == npu::Area::Cache) evict(placement);
  }
  result_.homes.clear();
  if (!mode().spilling()) return;
  // Most accessed bytes first; whatever still fits next to the staged weights is cached.
  std::vector<int64_t> traffic(result_.buffers.size());
  for (const Pass& pass : result_.passes) {
    const auto count = [&](const PassValue& value, int64_t times = 1) {
      traffic[rootBuffer(value.buffer)] += value.value->numBytes() * times;
    };
    const bool counts = limits_.countReads && isConvolution(pass) && isLinear(pass.operation);
    const int64_t reads = counts ? inputReads(pass) : 1;
    for (const PassValue& input : memoryInputs(result_, pass)) count(input, reads);
    if (!result_.chained.contains(pass.result.value)) count(pass.result);
  }
  const std::vector<bool> cacheable = mayBeCached();
  std::vector<size_t> order;
  for (size_t b = 0; b < result_.buffers.size(); ++b) {
    if (cacheable[b]) order.push_back(b);
  }
  if (limits_.copyInputs) {
    for (const size_t b : inputsToCopy()) order.push_back(b);
  }
  // Which order packs best depends on the network: the one that keeps the most traffic in the cache wins.
  const int64_t limit = limits_.maps;
  std::vector<size_t> best;
  int64_t mostKept = -1;
  const auto consider = [&](const auto& value) {
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return value(a) > value(b); });
    // By live bytes: the limit has a margin for gaps in the packing.
    std::vector<int64_t> free(result_.groups.size(), limit);
    const auto inside = [&](const LiveRange& range, const auto& visit) {
      const auto end = std::min<size_t>(static_cast<size_t>(range.last) + 1, free.size());
      for (auto g = static_cast<size_t>(std::max(range.first, 0)); g < end; ++g) visit(free[g]);
    };
    for (const LiveRange& range : stagingEstimate())
      inside(range, [&](int64_t& left) { left -= range.bytes; });
    std::vector<size_t> chosen;
    int64_t kept = 0;
    for (const size_t b : order) {
      const LiveRange& range = result_.buffers[b].live;
      bool fits = true;
      inside(range, [&](int64_t left) { fits &= left >= roundUp(range.bytes, 16); });
      if (!fits) continue;
      inside(range, [&](int64_t& left) { left -= roundUp(range.bytes, 16); });
      chosen.push_back(b);
      kept += traffic[b];
    }
    if (kept > mostKept) {
      mostKept = kept;
      best = std::move(chosen);
    }
  };
  const auto bytes = [&](size_t b) { return static_cast<double>(result_.buffers[b].live.bytes); };
  const auto moved = [&](size_t b) { return static_cast<double>(traffic[b]); };
  consider([&](size_t b) {
    const LiveRange& live = result_.buffers[b].live;
    return moved(b) / (bytes(b) * (live.last - live.first + 1));
  });
  consider([&](size_t b) { return moved(b) / bytes(b); });
  consider([&](size_t b) { return moved(b); });
  for (const size_t b : best) {
    result_.buffers[b].area = npu::Area::Cache;
    if (result_.storage->buffers[b].kind == BufferKind::Input) giveHome(b);
  }
}

bool Scheduler::padsBricks() const {
  const std::vector<Buffer>& buffers = result_.storage->buffers;
  return std::any_of(buffers.begin(), buffers.end(),
                     [](const Buffer& buffer) { return buffer.storedDepth() != buffer.shape[3]; });
}

bool Scheduler::hasParts() const {
  for (const ir::Node* node : graph_.nodes()) {
    if (ir::isa<npu_ir::View>(node) || ir::isa<npu_ir::Join>(node)) return true;
  }
  return false;
}

bool Scheduler::hasLinearLayers() const {
  return std::any_of(result_.passes.begin(), result_.passes.end(),
                     [this](const Pass& pass) { return isConvolution(pass) && isLinear(pass.operation); });
}

int64_t Scheduler::inputReads(const Pass& pass) const {
  const npu::TimingContext context = timingContext(pass, false, pass.operation.ofm.depth);
  const auto chosen = blocks_->choose({&pass.operation, 1}, {&context, 1}, true);
  if (!chosen.ok() || chosen->blocks.empty()) return 1;
  return ceilDiv(int64_t{pass.operation.ofm.depth}, int64_t{chosen->blocks.front().block.c});
}

void Scheduler::giveHome(size_t buffer) {
  Placement& copy = result_.buffers[buffer];
  Placement home = copy;
  home.area = npu::Area::Arena;
  // Only until the first group starts: the copy is made before it.
  home.live.last = std::min(home.live.last, 0);
  copy.home = static_cast<int32_t>(result_.homes.size());
  result_.homes.push_back(home);
}

void Scheduler::evict(Placement& placement) {
  placement.area = npu::Area::Arena;
  if (placement.home < 0) return;
  result_.homes[static_cast<size_t>(placement.home)].live.bytes = 0;
  placement.home = -1;
}

std::vector<size_t> Scheduler::inputsToCopy() const {
  // The cost of short accesses is uncertain: a copy is worth a try if it pays off under either setting.
  std::array<std::vector<npu::Cycles>, kUncertainSettings.size()> gains;
  for (std::vector<npu::Cycles>& gain : gains) gain.resize(result_.buffers.size());
  std::vector<bool> possible(result_.buffers.size());
  for (size_t b = 0; b < possible.size(); ++b)
    possible[b] = result_.storage->buffers[b].kind == BufferKind::Input && result_.buffers[b].live.bytes > 0;
  for (const ir::Value* output : graph_.outputs())
    possible[rootBuffer(result_.storage->access(output).buffer)] = false;
  for (const Pass& pass : result_.passes) {
    if (pass.isDma) continue;
    for (const PassValue& input : memoryInputs(result_, pass)) {
      const size_t b = rootBuffer(input.buffer);
      if (!possible[b] || result_.storage->buffers[b].kind != BufferKind::Input) continue;
      npu::TimingContext context = timingContext(pass);
      for (const auto& [area, sign] : {std::pair(npu::Area::Arena, 1), std::pair(npu::Area::Cache, -1)}) {
        (input.value == pass.ifm.value ? context.ifm : context.ifm2) = area;
        const auto chosen = blocks_->choose({&pass.operation, 1}, {&context, 1}, isConvolution(pass));
        if (!chosen.ok()) continue;
        npu::KernelOperation operation = pass.operation;
        if (!chosen->blocks.empty()) chosen->blocks.front().apply(operation);
        for (size_t n = 0; n < gains.size(); ++n) {
          npu::TimingContext judged = context;
          judged.rules = npu::timing::findRules(kUncertainSettings[n]);
          gains[n][b] += sign * (n == 0 ? chosen->cost : npu::estimate(operation, judged)).total;
        }
      }
    }
  }
  std::vector<size_t> worth;
  for (size_t b = 0; b < possible.size(); ++b) {
    const npu::Cycles copy = npu::transferCycles(result_.machine, result_.buffers[b].live.bytes,
                                                 npu::Area::Arena, npu::Area::Cache);
    if (possible[b] &&
        std::any_of(gains.begin(), gains.end(), [&](const auto& gain) { return gain[b] > copy; }))
      worth.push_back(b);
  }
  return worth;
}

size_t Scheduler::rootBuffer(int32_t buffer) const {
  const auto b = static_cast<size_t>(buffer);
  const int32_t root = result_.buffers[b].takesOver;
  return root >= 0 ? static_cast<size_t>(root) : b;
}

std::vector<bool> Scheduler::mayBeCached() const {
  std::vector<bool> may(result_.buffers.size());
  for (size_t b = 0; b < may.size(); ++b) {
    may[b] = result_.storage->buffers[b].kind == BufferKind::FeatureMap && result_.buffers[b].live.bytes > 0;
  }
  for (size_t b = 0; b < may.size(); ++b) {
    const int32_t root = result_.buffers[b].takesOver;
    if (root >= 0 && result_.storage->buffers[b].kind != BufferKind::FeatureMap)
      may[static_cast<size_t>(root)] = false;
  }
  return may;
}

bool Scheduler::inCascade(const Pass& pass) const {
  return !result_.groups.empty() && result_.groups[static_cast<size_t>(pass.group)].rows > 0;
}

void Scheduler::hashConstants() {
  std::unordered_map<const std::byte*, uint64_t> hashes;
  const auto add = [&](const Tensor& constant) {
    hashes.try_emplace(constant.bytes().data(), ConstantPool::hashOf(constant.bytes()));
  };
  for (const Pass& pass : result_.passes) {
    if (pass.isDma) continue;
    if (const npu_ir::OutputStage stage = npu_ir::outputStage(pass.node); stage.table)
      add(stage.table->constant());
  }
  for (const Buffer& buffer : result_.storage->buffers)
    if (buffer.kind == BufferKind::Constant) add(buffer.root->constant());
  hashes_ = std::make_shared<const decltype(hashes)>(std::move(hashes));
}

void Scheduler::addConstants() {
  for (Pass& pass : result_.passes) {
    if (pass.isDma) continue;
    const npu_ir::OutputStage stage = npu_ir::outputStage(pass.node);
    if (!stage.table) continue;
    const Tensor& table = stage.table->constant();
    pass.table = result_.constants.addLasting(table.bytes(), hashes_->at(table.bytes().data()));
    pass.tableBytes = table.numBytes();
  }
  std::vector<bool> transferred(result_.buffers.size());
  for (const Pass& pass : result_.passes) {
    if (!pass.isDma) continue;
    for (const ir::Value* operand : pass.node->operands())
      transferred[static_cast<size_t>(result_.storage->access(operand).buffer)] = true;
  }
  for (size_t b = 0; b < result_.buffers.size(); ++b) {
    const Buffer& buffer = result_.storage->buffers[b];
    if (buffer.kind != BufferKind::Constant || result_.buffers[b].bytes == 0) continue;
    const ByteSpan bytes = buffer.root->constant().bytes();
    // Operations read maps in plain layout at element alignment; transfers and bricks need more.
    const bool packed = buffer.layout == npu::Layout::NHWC && !transferred[b];
    const auto alignment = packed ? static_cast<int64_t>(std::bit_ceil(bytes.size())) : ConstantPool::kLine;
    result_.buffers[b].address = result_.constants.addLasting(bytes, hashes_->at(bytes.data()),
                                                              std::min(alignment, ConstantPool::kLine));
  }
}

}  // namespace carina::compiler
