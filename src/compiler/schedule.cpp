// SPDX-License-Identifier: Apache-2.0
// Scheduling (schedule.hpp): order of the graph, weights staged in fast memory where the constants are slow,
// feature maps in the cache where the arena is slow, blocks by search, addresses by packing.
#include "compiler/schedule.hpp"

#include <oneapi/tbb/parallel_for.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>

#include "compiler/block_search.hpp"
#include "compiler/operation_builder.hpp"
#include "compiler/pass_links.hpp"
#include "npu/blockconfig.hpp"

namespace carina::compiler {
namespace {

/// What a plain dedicated cache holds at most: the fast scratch of the common runner.
constexpr int64_t kDefaultCacheBytes = 384 * 1024;
/// Weights up to this size are staged whole; larger ones in two alternating slices of about half of it each.
constexpr int64_t kWholeStagingBytes = 48 * 1024;

class Scheduler {
 public:
  /// `cascadeLimit`: look for cascades that keep the arena within so many bytes (0: as small as can be).
  Scheduler(const ir::Graph& graph, const npu::Machine& machine, const Options& options,
            std::optional<int64_t> cascadeLimit)
      : graph_(graph), options_(options), target_(*machine.target), cascadeLimit_(cascadeLimit) {
    result_.machine = machine;
  }

  Result<Schedule> run() {
    CARINA_TRY(result_.storage, assignStorage(graph_, true));
    addPasses();
    linkChains(result_);
    separateGroups();
    findLifetimes();
    chooseAreas();
    if (cascadeLimit_) {
      CARINA_RETURN_IF_ERROR(chooseCascades(*cascadeLimit_));
      findLifetimes();
      chooseAreas();
    }
    CARINA_RETURN_IF_ERROR(chooseBlocks());
    CARINA_RETURN_IF_ERROR(encodeWeights());
    addConstants();
    CARINA_RETURN_IF_ERROR(allocate());
    return std::move(result_);
  }

 private:
  npu::MemoryMode mode() const { return result_.machine.memory; }
  int64_t cacheLimit() const { return mode().cacheBytes > 0 ? mode().cacheBytes : kDefaultCacheBytes; }
  Buffer& storageBuffer(const ir::Value* value) {
    return result_.storage.buffers[static_cast<size_t>(result_.storage.access(value).buffer)];
  }

  void addPasses() {
    for (const ir::Node* node : graph_.nodes()) {
      if (ir::isa<npu_ir::View>(node) || ir::isa<npu_ir::Join>(node)) continue;
      Pass pass;
      pass.node = node;
      pass.isDma = !npu_ir::hasOutputStage(node);
      if (!pass.isDma) pass.operation = buildOperation(node, result_.storage, target_);
      result_.passes.push_back(std::move(pass));
    }
  }

  /// First and last pass that touches each buffer; program inputs are there before the first pass, outputs
  /// after the last. Buffers that nothing touches have 0 bytes.
  std::vector<LiveRange> passRanges() const {
    std::vector<LiveRange> ranges(result_.storage.buffers.size());
    const auto end = static_cast<int32_t>(result_.passes.size());
    const auto touch = [&](const ir::Value* value, int32_t pass) {
      if (result_.chained.contains(value)) return;
      const auto b = static_cast<size_t>(result_.storage.access(value).buffer);
      LiveRange& live = ranges[b];
      if (live.bytes == 0) live = {result_.storage.buffers[b].bytes, pass, pass};
      live.first = std::min(live.first, pass);
      live.last = std::max(live.last, pass);
    };
    for (const ir::Value* input : graph_.inputs()) touch(input, -1);
    for (int32_t i = 0; i < end; ++i) {
      const Pass& pass = result_.passes[static_cast<size_t>(i)];
      for (const ir::Value* value : memoryInputs(result_, pass)) touch(value, i);
      touch(pass.node->result(), i);
    }
    for (const ir::Value* output : graph_.outputs()) touch(output, end);
    return ranges;
  }

  /// Sizes and lifetimes of the buffers in groups.
  void findLifetimes() {
    const std::vector<LiveRange> ranges = passRanges();
    result_.buffers.assign(ranges.size(), {});
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
      if (result_.storage.buffers[b].kind == BufferKind::Constant) {
        placement.live.bytes = 0;
        placement.area = npu::Area::Constants;
      }
    }
    rollBuffers();
    takeOver(ranges);
  }

  /// Maps between the passes of a cascade become rolling buffers.
  void rollBuffers() {
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
        if (member.buffer < 0 || member.rollsUntil < 0 || member.rollsUntil > group.last) continue;
        if (held >= member.operation->ofm.height) continue;
        Placement& placement = result_.buffers[static_cast<size_t>(member.buffer)];
        placement.heldRows = held;
        placement.bytes = placement.live.bytes = member.rowBytes * held;
      }
    }
  }

  /// Elementwise results take the place of an input that nobody reads after them.
  void takeOver(const std::vector<LiveRange>& ranges) {
    for (const Pass& pass : result_.passes) {
      if (result_.groups[static_cast<size_t>(pass.group)].rows > 0) continue;
      const int32_t from = dyingInput(result_, pass, ranges);
      if (from < 0) continue;
      int32_t root = from;
      while (result_.buffers[static_cast<size_t>(root)].takesOver >= 0) {
        root = result_.buffers[static_cast<size_t>(root)].takesOver;
      }
      Placement& result =
          result_.buffers[static_cast<size_t>(result_.storage.access(pass.node->result()).buffer)];
      LiveRange& live = result_.buffers[static_cast<size_t>(root)].live;
      live.last = std::max(live.last, result.live.last);
      result.live.bytes = 0;
      result.takesOver = root;
    }
  }

  /// Passes and chains by themselves.
  void separateGroups() {
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

  void assignGroups() {
    result_.stripes.assign(result_.groups.size(), {});
    for (size_t g = 0; g < result_.groups.size(); ++g) {
      for (int32_t p = result_.groups[g].first; p <= result_.groups[g].last; ++p) {
        result_.passes[static_cast<size_t>(p)].group = static_cast<int32_t>(g);
      }
    }
  }

  /// Groups passes into cascades so that the arena stays within the limit (0: gets as small as possible).
  Status chooseCascades(int64_t limit) {
    // Blocks of the whole passes tell what they cost.
    CARINA_RETURN_IF_ERROR(chooseBlocks());
    problem_ = cascadeProblem(result_, passRanges());
    for (size_t p = 0; p < problem_.passes.size(); ++p) {
      const Pass& pass = result_.passes[p];
      if (!isConvolution(pass) || !pass.staged) continue;
      const int64_t bytes = estimateEncodedBytes(pass.node);
      problem_.passes[p].stagedWhole = bytes;
      problem_.passes[p].stagedBytes = std::min(bytes, 2 * slicedBytes(pass));
    }
    if (mode().spilling()) {
      // Staged weights lie in the cache.
      for (CascadePass& pass : problem_.passes) pass.stagedBytes = pass.stagedWhole = 0;
    }
    problem_.cycles = [this](int32_t p, int32_t rows) { return estimatedCycles(p, rows); };
    result_.groups = chooseGroups(problem_, limit).groups;
    assignGroups();
    return {};
  }

  /// Cycles of a pass for the first rows of its result, with the block of the whole pass cut to them.
  npu::Cycles estimatedCycles(int32_t p, int32_t rows) const {
    const Pass& pass = result_.passes[static_cast<size_t>(p)];
    if (pass.isDma) return 0;
    npu::KernelOperation op = pass.operation;
    if (rows > 0 && rows < op.ofm.height) {
      const int32_t granule = std::max(npu::BlockRules(target_, op).granule().h, 1);
      op.ofm.height = rows;
      op.block.h = std::min<int32_t>(op.block.h, static_cast<int32_t>(roundUp(rows, granule)));
    }
    return npu::estimate(op, timingContext(pass)).total;
  }

  bool isConvolution(const Pass& pass) const { return !pass.isDma && pass.operation.weights.has_value(); }

  /// Decides which weights are staged and, with a cache in front of a slow arena, which feature maps live in
  /// it.
  void chooseAreas() {
    for (Pass& pass : result_.passes) pass.staged = isConvolution(pass) && mode().slowConstants();
    if (!mode().spilling()) return;
    // Busiest bytes first; whatever still packs beside the staged weights stays.
    std::vector<int64_t> traffic(result_.buffers.size());
    for (const Pass& pass : result_.passes) {
      const auto count = [&](const ir::Value* value) {
        if (result_.chained.contains(value)) return;
        traffic[rootBuffer(value)] += value->numElements() * dtypeSize(value->dtype());
      };
      for (const ir::Value* value : memoryInputs(result_, pass)) count(value);
      count(pass.node->result());
    }
    std::vector<size_t> order;
    for (size_t b = 0; b < result_.buffers.size(); ++b) {
      if (mayBeCached(b)) order.push_back(b);
    }
    // Which order packs best depends on the network: the one that keeps most traffic in the cache wins.
    const int64_t limit = cacheLimit();
    std::vector<size_t> best;
    int64_t mostKept = -1;
    const auto consider = [&](const auto& value) {
      std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return value(a) > value(b); });
      std::vector<LiveRange> cached = stagingEstimate();
      std::vector<size_t> chosen;
      int64_t kept = 0;
      for (const size_t b : order) {
        cached.push_back(result_.buffers[b].live);
        if (pack(cached, limit, 0).bytes <= limit) {
          chosen.push_back(b);
          kept += traffic[b];
        } else {
          cached.pop_back();
        }
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
    for (const size_t b : best) result_.buffers[b].area = npu::Area::Cache;
  }

  /// The buffer whose memory a value uses.
  size_t rootBuffer(const ir::Value* value) const {
    const auto b = static_cast<size_t>(result_.storage.access(value).buffer);
    const int32_t root = result_.buffers[b].takesOver;
    return root >= 0 ? static_cast<size_t>(root) : b;
  }

  /// Feature maps that no program input or output shares its memory with.
  bool mayBeCached(size_t b) const {
    if (result_.storage.buffers[b].kind != BufferKind::FeatureMap || result_.buffers[b].live.bytes == 0)
      return false;
    for (size_t other = 0; other < result_.buffers.size(); ++other) {
      if (result_.buffers[other].takesOver == static_cast<int32_t>(b) &&
          result_.storage.buffers[other].kind != BufferKind::FeatureMap)
        return false;
    }
    return true;
  }

  /// Live ranges that staged weights are expected to need.
  std::vector<LiveRange> stagingEstimate() const {
    std::vector<LiveRange> ranges;
    for (size_t i = 0; i < result_.passes.size(); ++i) {
      const Pass& pass = result_.passes[i];
      if (!pass.staged) continue;
      const int32_t at = pass.group;
      const int64_t bytes = estimateEncodedBytes(pass.node), slice = slicedBytes(pass);
      const int64_t margin = slice / 8 + 64;
      ranges.push_back({slice + margin, at - 1, at});
      if (slice < bytes) ranges.push_back({slice + margin, at, at});
    }
    return ranges;
  }

  /// Encoded bytes to expect of one slice.
  int64_t slicedBytes(const Pass& pass) const {
    const int64_t bytes = estimateEncodedBytes(pass.node);
    if (sliceDepth(pass) >= pass.operation.ofm.depth) return bytes;
    return roundUp(bytes * sliceDepth(pass) / pass.operation.ofm.depth + 256, 16);
  }

  /// Output channels per staged slice.
  int32_t sliceDepth(const Pass& pass) const {
    const int32_t depth = pass.operation.ofm.depth;
    const int64_t bytes = estimateEncodedBytes(pass.node);
    // All weights of a cascade stay while it runs: every stripe needs them.
    if (!pass.staged || bytes <= kWholeStagingBytes || inCascade(pass)) return depth;
    constexpr int32_t quantum = 16;
    const int64_t slice = depth * (kWholeStagingBytes / 2) / bytes / quantum * quantum;
    return static_cast<int32_t>(std::clamp<int64_t>(slice, quantum, depth));
  }

  bool inCascade(const Pass& pass) const {
    return !result_.groups.empty() && result_.groups[static_cast<size_t>(pass.group)].rows > 0;
  }

  npu::Area areaOf(const ir::Value* value) const { return result_.buffers[rootBuffer(value)].area; }

  npu::TimingContext timingContext(const Pass& pass) const {
    npu::TimingContext context;
    context.machine = &result_.machine;
    const OperationInputs inputs = operationInputs(pass.node, target_);
    if (inputs.ifm) context.ifm = areaOf(inputs.ifm);
    if (inputs.ifm2) context.ifm2 = areaOf(inputs.ifm2);
    context.ofm = areaOf(pass.node->result());
    if (isConvolution(pass)) {
      context.weights = context.scales = !pass.staged        ? npu::Area::Constants
                                         : mode().spilling() ? npu::Area::Cache
                                                             : npu::Area::Arena;
      context.weightBytes =
          pass.node->operand(1)->numElements() * sliceDepth(pass) / std::max(pass.operation.ofm.depth, 1);
      context.scaleBytes = 10 * sliceDepth(pass);
    }
    return context;
  }

  Status chooseBlocks() {
    return forEachPass([this](Pass& pass) -> Status {
      if (pass.isDma || pass.follows) return {};
      // The pass with the ones that are chained to it, one slice or stripe of each.
      std::vector<npu::KernelOperation> chain;
      std::vector<npu::TimingContext> contexts;
      const int32_t depth = isConvolution(pass) ? sliceDepth(pass) : 0;
      const auto first = static_cast<size_t>(&pass - result_.passes.data());
      for (size_t p = first; p < result_.passes.size() && (p == first || result_.passes[p].follows); ++p) {
        npu::KernelOperation op = result_.passes[p].operation;
        if (depth > 0) op.ofm.depth = depth;
        if (op.kind == npu::OperationKind::Depthwise) op.ifm.depth = op.ofm.depth;
        if (result_.passes[p].stripeRows > 0) op.ofm.height = result_.passes[p].stripeRows;
        chain.push_back(op);
        contexts.push_back(timingContext(result_.passes[p]));
      }
      CARINA_RETURN_IF_ERROR(chain.size() > 1      ? chooseChainBlock(chain, contexts)
                             : isConvolution(pass) ? chooseBlockAndTraversal(chain[0], contexts[0])
                                                   : chooseBlock(chain[0], contexts[0]));
      for (size_t i = 0; i < chain.size(); ++i) {
        npu::KernelOperation& op = result_.passes[first + i].operation;
        op.block = chain[i].block;
        op.microblock = chain[i].microblock;
        op.ifmBufferEnd = chain[i].ifmBufferEnd;
        op.ifm2BufferStart = chain[i].ifm2BufferStart;
        op.accumulatorStart = chain[i].accumulatorStart;
        if (op.weights) op.weights->traversal = chain[i].weights->traversal;
      }
      return {};
    });
  }

  /// In parallel; errors in pass order, with the place filled in.
  Status forEachPass(const std::function<Status(Pass&)>& body) {
    std::vector<Status> statuses(result_.passes.size());
    oneapi::tbb::parallel_for(size_t{0}, statuses.size(),
                              [&](size_t i) { statuses[i] = body(result_.passes[i]); });
    for (size_t i = 0; i < statuses.size(); ++i) {
      if (!statuses[i].ok()) return std::move(statuses[i]).error().at(result_.passes[i].node->where());
    }
    return {};
  }

  Status encodeWeights() {
    struct Job {
      size_t pass;
      npu::DepthSlice channels;
    };
    std::vector<Job> jobs;
    for (size_t i = 0; i < result_.passes.size(); ++i) {
      const Pass& pass = result_.passes[i];
      if (!isConvolution(pass)) continue;
      const int32_t depth = pass.operation.ofm.depth, step = sliceDepth(pass);
      for (int32_t c = 0; c < depth; c += step) jobs.push_back({i, {c, std::min(step, depth - c)}});
    }
    // Long jobs first, so that the last one to finish is short.
    std::vector<size_t> order(jobs.size());
    std::iota(order.begin(), order.end(), size_t{0});
    const auto work = [&](size_t j) {
      const Pass& pass = result_.passes[jobs[j].pass];
      return pass.node->operand(1)->numElements() / pass.operation.ofm.depth * jobs[j].channels.depth;
    };
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return work(a) > work(b); });
    std::vector<std::optional<Result<EncodedSlice>>> encoded(jobs.size());
    oneapi::tbb::parallel_for(
        oneapi::tbb::blocked_range<size_t>(0, order.size(), 1),
        [&](const oneapi::tbb::blocked_range<size_t>& range) {
          for (size_t k = range.begin(); k != range.end(); ++k) {
            const Job& job = jobs[order[k]];
            const Pass& pass = result_.passes[job.pass];
            encoded[order[k]] = encodeSlice(pass.node, pass.operation, job.channels, target_);
          }
        },
        oneapi::tbb::simple_partitioner());
    for (size_t j = 0; j < jobs.size(); ++j) {
      Pass& pass = result_.passes[jobs[j].pass];
      if (!encoded[j]->ok()) return std::move(*encoded[j]).error().at(pass.node->where());
      const EncodedSlice& slice = encoded[j]->value();
      pass.slices.push_back({slice.channels, result_.constants.add(slice.bytes),
                             static_cast<int64_t>(slice.bytes.size()), slice.streams});
    }
    return {};
  }

  void addConstants() {
    for (Pass& pass : result_.passes) {
      if (pass.isDma) continue;
      const npu_ir::OutputStage stage = npu_ir::outputStage(pass.node);
      if (!stage.table) continue;
      const Tensor& table = stage.table->constant();
      pass.table = result_.constants.add(table.bytes());
      pass.tableBytes = table.numBytes();
    }
    for (size_t b = 0; b < result_.buffers.size(); ++b) {
      const Buffer& buffer = result_.storage.buffers[b];
      if (buffer.kind != BufferKind::Constant || result_.buffers[b].bytes == 0) continue;
      result_.buffers[b].address = result_.constants.add(buffer.root->constant().bytes());
    }
  }

  /// Staged slices become buffers of their own: even and odd slices take turns.
  void addStaging() {
    result_.staging.clear();
    for (size_t i = 0; i < result_.passes.size(); ++i) {
      Pass& pass = result_.passes[i];
      if (!pass.staged) continue;
      const int32_t at = pass.group;
      for (size_t parity = 0; parity < std::min<size_t>(pass.slices.size(), 2); ++parity) {
        int64_t bytes = 0;
        for (size_t s = parity; s < pass.slices.size(); s += 2) bytes = std::max(bytes, pass.slices[s].bytes);
        Placement placement;
        placement.area = mode().spilling() ? npu::Area::Cache : npu::Area::Arena;
        placement.bytes = bytes;
        // The first slice arrives while the previous pass runs.
        placement.live = {bytes, parity == 0 ? at - 1 : at, at};
        pass.staging[parity] = static_cast<int>(result_.staging.size());
        result_.staging.push_back(placement);
      }
    }
  }

  Status allocate() {
    addStaging();
    while (true) {
      std::vector<Placement*> inArena, inCache;
      const auto sort = [&](Placement& placement) {
        if (placement.live.bytes == 0) return;
        if (placement.area == npu::Area::Arena) inArena.push_back(&placement);
        if (placement.area == npu::Area::Cache) inCache.push_back(&placement);
      };
      for (Placement& placement : result_.buffers) sort(placement);
      for (Placement& placement : result_.staging) sort(placement);
      const int64_t limit = mode().spilling() ? cacheLimit() : 0;
      std::vector<LiveRange> cached;
      for (const Placement* placement : inCache) cached.push_back(placement->live);
      if (limit > 0 && packingLowerBound(cached) > limit && evict()) continue;
      result_.arenaBytes = place(inArena, options_.arenaLimit);
      result_.cacheBytes = place(inCache, limit);
      if (limit == 0 || result_.cacheBytes <= limit) break;
      if (!evict()) {
        return fail("staged weights need {} bytes of fast memory, {} has {}", result_.cacheBytes, mode().name,
                    limit)
            .withRemedy("choose a memory mode with a larger cache");
      }
    }
    for (Placement& placement : result_.buffers) {
      if (placement.takesOver < 0) continue;
      const Placement& root = result_.buffers[static_cast<size_t>(placement.takesOver)];
      placement.area = root.area;
      placement.address = root.address;
    }
    return {};
  }

  /// Sends the largest cached feature map back to the arena.
  bool evict() {
    Placement* largest = nullptr;
    for (Placement& placement : result_.buffers) {
      if (placement.area == npu::Area::Cache && placement.live.bytes > 0 &&
          (!largest || placement.bytes > largest->bytes)) {
        largest = &placement;
      }
    }
    if (largest) largest->area = npu::Area::Arena;
    return largest != nullptr;
  }

  static int64_t place(const std::vector<Placement*>& placements, int64_t target) {
    std::vector<LiveRange> ranges;
    for (const Placement* placement : placements) ranges.push_back(placement->live);
    const Packing packing = pack(ranges, target);
    for (size_t i = 0; i < placements.size(); ++i) placements[i]->address = packing.addresses[i];
    return packing.bytes;
  }

  const ir::Graph& graph_;
  const Options& options_;
  const npu::Target& target_;
  const std::optional<int64_t> cascadeLimit_;
  CascadeProblem problem_;  // with cascades only
  Schedule result_;
};

std::string passName(const Pass& pass) {
  const auto& location = pass.node->location();
  return location && !location->name.empty() ? location->name : pass.node->result()->name;
}

/// Why the arena cannot be smaller: what is alive where most is.
Error tooLarge(const Schedule& schedule, int64_t limit) {
  int32_t peak = 0;
  int64_t most = -1;
  const auto each = [&](int32_t group, const auto& use) {
    for (const auto* placements : {&schedule.buffers, &schedule.staging}) {
      for (const Placement& placement : *placements) {
        if (placement.area == npu::Area::Arena && placement.live.first <= group &&
            group <= placement.live.last && placement.live.bytes > 0)
          use(placement, placements == &schedule.staging);
      }
    }
  };
  for (int32_t g = 0; g < static_cast<int32_t>(schedule.groups.size()); ++g) {
    int64_t sum = 0;
    each(g, [&](const Placement& placement, bool) { sum += placement.live.bytes; });
    if (sum > most) {
      most = sum;
      peak = g;
    }
  }
  const Group& group = schedule.groups[static_cast<size_t>(peak)];
  std::string live;
  each(peak, [&](const Placement& placement, bool staged) {
    const auto b = static_cast<size_t>(&placement - schedule.buffers.data());
    const std::string what = staged ? std::string("weights") : shapeText(schedule.storage.buffers[b].shape);
    live += fmt::format("{}{} bytes {}", live.empty() ? "" : ", ", placement.live.bytes, what);
  });
  const std::string last = passName(schedule.passes[static_cast<size_t>(group.last)]);
  return fail("the program needs an arena of {} bytes, the limit is {}: at {}{} are alive {}",
              schedule.arenaBytes, limit, passName(schedule.passes[static_cast<size_t>(group.first)]),
              group.last > group.first ? " to " + last : "", live)
      .withRemedy(
          "raise --arena-size, or use smaller feature maps there ('carina profile --memory-map' shows all of "
          "them)");
}

}  // namespace

int64_t ConstantPool::add(ByteSpan bytes) {
  const uint64_t hash =
      std::hash<std::string_view>()({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const auto [first, last] = byHash_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    const auto [offset, length] = it->second;
    if (length == static_cast<int64_t>(bytes.size()) &&
        std::memcmp(bytes_.data() + offset, bytes.data(), bytes.size()) == 0) {
      return offset;
    }
  }
  const auto offset = static_cast<int64_t>(bytes_.size());
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  bytes_.resize(static_cast<size_t>(roundUp(static_cast<int64_t>(bytes_.size()), 16)));
  byHash_.emplace(hash, std::pair(offset, static_cast<int64_t>(bytes.size())));
  return offset;
}

Result<Schedule> schedule(const ir::Graph& graph, const npu::Machine& machine, const Options& options) {
  const int64_t limit = options.arenaLimit;
  if (options.optimize == Optimize::Performance) {
    CARINA_TRY(Schedule plain, Scheduler(graph, machine, options, std::nullopt).run());
    if (limit == 0 || plain.arenaBytes <= limit) return plain;
  }
  // Addresses may need a little more than the live bytes that cascades are chosen by: aim lower then.
  int64_t aim = options.optimize == Optimize::Size ? 0 : limit;
  for (int attempt = 0;; ++attempt) {
    CARINA_TRY(Schedule cascaded, Scheduler(graph, machine, options, aim).run());
    if (limit == 0 || cascaded.arenaBytes <= limit) return cascaded;
    if (aim == 0 || attempt == 3) return tooLarge(cascaded, limit);
    aim = std::max<int64_t>(aim - (cascaded.arenaBytes - limit), 1);
  }
}

std::vector<const ir::Value*> memoryInputs(const Schedule& schedule, const Pass& pass) {
  if (pass.isDma) return {pass.node->operands().begin(), pass.node->operands().end()};
  const OperationInputs inputs = operationInputs(pass.node, *schedule.machine.target);
  std::vector<const ir::Value*> values;
  for (const ir::Value* value : {inputs.ifm, inputs.ifm2}) {
    if (value && !schedule.chained.contains(value)) values.push_back(value);
  }
  return values;
}

uint8_t regionOf(npu::Area area) {
  switch (area) {
    case npu::Area::Constants:
      return 0;
    case npu::Area::Arena:
      return 1;
    case npu::Area::Cache:
      return 2;
  }
  return 1;
}

std::string print(const Schedule& schedule) {
  constexpr const char* kAreas[] = {"constants", "arena", "cache"};
  std::string text;
  for (size_t i = 0; i < schedule.passes.size(); ++i) {
    const Pass& pass = schedule.passes[i];
    text += fmt::format("pass {}: group {} {} {}", i, pass.group, pass.node->opName(), pass.node->where());
    if (pass.follows) text += ", chained";
    if (pass.stripeRows > 0) text += fmt::format(", stripes of {} rows", pass.stripeRows);
    if (!pass.isDma) {
      const auto& op = pass.operation;
      text += fmt::format(" {} ofm {}x{}x{} block {}x{}x{}", operationKindText(op), op.ofm.height,
                          op.ofm.width, op.ofm.depth, op.block.h, op.block.w, op.block.c);
      if (!pass.slices.empty()) {
        int64_t bytes = 0;
        for (const WeightSlice& slice : pass.slices) bytes += slice.bytes;
        text += fmt::format(" weights {} bytes in {} slices{}", bytes, pass.slices.size(),
                            pass.staged ? ", staged" : "");
      }
    }
    text += "\n";
  }
  const auto line = [&](const char* what, const Placement& p, const std::string& extra) {
    text += fmt::format("{}: {} {:#x}..{:#x} groups {}..{}{}\n", what, kAreas[static_cast<size_t>(p.area)],
                        p.address, p.address + p.bytes, p.live.first, p.live.last, extra);
  };
  for (size_t b = 0; b < schedule.buffers.size(); ++b) {
    const Placement& placement = schedule.buffers[b];
    const Buffer& buffer = schedule.storage.buffers[b];
    if (placement.bytes == 0 || buffer.kind == BufferKind::Constant) continue;
    line("buffer", placement,
         fmt::format(" {} {}{}{}{}", dtypeName(buffer.dtype), shapeText(buffer.shape),
                     buffer.layout == npu::Layout::NHCWB16 ? " bricks" : "",
                     placement.heldRows > 0 ? fmt::format(", {} rows held", placement.heldRows) : "",
                     placement.takesOver >= 0 ? ", in place" : ""));
  }
  for (const Placement& placement : schedule.staging) line("staging", placement, "");
  text += fmt::format("arena {} bytes, cache {} bytes, constants {} bytes\n", schedule.arenaBytes,
                      schedule.cacheBytes, schedule.constants.bytes().size());
  return text;
}

}  // namespace carina::compiler
