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

namespace carina::compiler {
namespace {

/// What a plain dedicated cache holds at most: the fast scratch of the common runner.
constexpr int64_t kDefaultCacheBytes = 384 * 1024;
/// Weights up to this size are staged whole; larger ones in two alternating slices of about half of it each.
constexpr int64_t kWholeStagingBytes = 48 * 1024;

class Scheduler {
 public:
  Scheduler(const ir::Graph& graph, const npu::Machine& machine, const Options& options)
      : graph_(graph), options_(options), target_(*machine.target) {
    result_.machine = machine;
  }

  Result<Schedule> run() {
    CARINA_TRY(result_.storage, assignStorage(graph_, true));
    addPasses();
    findLifetimes();
    chooseAreas();
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

  /// Values in memory that a pass reads.
  static std::vector<const ir::Value*> inputsOf(const Pass& pass, const npu::Target& target) {
    if (pass.isDma) return {pass.node->operands().begin(), pass.node->operands().end()};
    const OperationInputs inputs = operationInputs(pass.node, target);
    std::vector<const ir::Value*> values;
    if (inputs.ifm) values.push_back(inputs.ifm);
    if (inputs.ifm2) values.push_back(inputs.ifm2);
    return values;
  }

  void findLifetimes() {
    result_.buffers.resize(result_.storage.buffers.size());
    const auto end = static_cast<int32_t>(result_.passes.size());
    std::vector<bool> used(result_.buffers.size());
    const auto touch = [&](const ir::Value* value, int32_t pass) {
      const auto b = static_cast<size_t>(result_.storage.access(value).buffer);
      LiveRange& live = result_.buffers[b].live;
      if (!used[b]) live = {0, pass, pass};
      used[b] = true;
      live.first = std::min(live.first, pass);
      live.last = std::max(live.last, pass);
    };
    for (const ir::Value* input : graph_.inputs()) touch(input, -1);
    for (int32_t i = 0; i < end; ++i) {
      const Pass& pass = result_.passes[static_cast<size_t>(i)];
      for (const ir::Value* value : inputsOf(pass, target_)) touch(value, i);
      touch(pass.node->result(), i);
    }
    for (const ir::Value* output : graph_.outputs()) touch(output, end);
    for (size_t b = 0; b < used.size(); ++b) {
      const Buffer& buffer = result_.storage.buffers[b];
      Placement& placement = result_.buffers[b];
      placement.bytes = used[b] ? buffer.bytes : 0;
      placement.live.bytes = buffer.kind == BufferKind::Constant ? 0 : placement.bytes;
      if (buffer.kind == BufferKind::Constant) placement.area = npu::Area::Constants;
    }
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
        traffic[static_cast<size_t>(result_.storage.access(value).buffer)] +=
            value->numElements() * dtypeSize(value->dtype());
      };
      for (const ir::Value* value : inputsOf(pass, target_)) count(value);
      count(pass.node->result());
    }
    std::vector<size_t> order;
    for (size_t b = 0; b < result_.buffers.size(); ++b) {
      if (result_.storage.buffers[b].kind == BufferKind::FeatureMap && result_.buffers[b].bytes > 0)
        order.push_back(b);
    }
    const auto weight = [&](size_t b) {
      const Placement& p = result_.buffers[b];
      return static_cast<double>(traffic[b]) /
             (static_cast<double>(p.bytes) * (p.live.last - p.live.first + 1));
    };
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return weight(a) > weight(b); });
    std::vector<LiveRange> cached = stagingEstimate();
    const int64_t limit = cacheLimit();
    for (const size_t b : order) {
      cached.push_back(result_.buffers[b].live);
      if (pack(cached, limit, 0).bytes <= limit) {
        result_.buffers[b].area = npu::Area::Cache;
      } else {
        cached.pop_back();
      }
    }
  }

  /// Live ranges that staged weights are expected to need.
  std::vector<LiveRange> stagingEstimate() const {
    std::vector<LiveRange> ranges;
    for (size_t i = 0; i < result_.passes.size(); ++i) {
      const Pass& pass = result_.passes[i];
      if (!pass.staged) continue;
      const auto at = static_cast<int32_t>(i);
      const int64_t bytes = estimateEncodedBytes(pass.node);
      const int64_t slice = sliceDepth(pass) >= pass.operation.ofm.depth
                                ? bytes
                                : roundUp(bytes * sliceDepth(pass) / pass.operation.ofm.depth + 256, 16);
      const int64_t margin = slice / 8 + 64;
      ranges.push_back({slice + margin, at - 1, at});
      if (slice < bytes) ranges.push_back({slice + margin, at, at});
    }
    return ranges;
  }

  /// Output channels per staged slice.
  int32_t sliceDepth(const Pass& pass) const {
    const int32_t depth = pass.operation.ofm.depth;
    const int64_t bytes = estimateEncodedBytes(pass.node);
    if (!pass.staged || bytes <= kWholeStagingBytes) return depth;
    const int32_t quantum = std::max(16, target_.isU85() ? 16 : 16);
    const int64_t slice = depth * (kWholeStagingBytes / 2) / bytes / quantum * quantum;
    return static_cast<int32_t>(std::clamp<int64_t>(slice, quantum, depth));
  }

  npu::Area areaOf(const ir::Value* value) const {
    return result_.buffers[static_cast<size_t>(result_.storage.access(value).buffer)].area;
  }

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
      if (pass.isDma) return {};
      npu::KernelOperation op = pass.operation;
      const npu::TimingContext context = timingContext(pass);
      if (isConvolution(pass)) {
        op.ofm.depth = sliceDepth(pass);
        if (op.kind == npu::OperationKind::Depthwise) op.ifm.depth = op.ofm.depth;
      }
      CARINA_RETURN_IF_ERROR(isConvolution(pass) ? chooseBlockAndTraversal(op, context)
                                                 : chooseBlock(op, context));
      op.ofm.depth = pass.operation.ofm.depth;
      op.ifm.depth = pass.operation.ifm.depth;
      pass.operation = op;
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
      const auto at = static_cast<int32_t>(i);
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
    if (options_.arenaLimit > 0 && result_.arenaBytes > options_.arenaLimit) {
      return fail("the program needs an arena of {} bytes, the limit is {}", result_.arenaBytes,
                  options_.arenaLimit)
          .withRemedy("raise --arena-size");
    }
    return {};
  }

  /// Sends the largest cached feature map back to the arena.
  bool evict() {
    Placement* largest = nullptr;
    for (Placement& placement : result_.buffers) {
      if (placement.area == npu::Area::Cache && placement.bytes > 0 &&
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
  Schedule result_;
};

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
  return Scheduler(graph, machine, options).run();
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
    text += fmt::format("pass {}: {} {}", i, pass.node->opName(), pass.node->where());
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
    text += fmt::format("{}: {} {:#x}..{:#x} passes {}..{}{}\n", what, kAreas[static_cast<size_t>(p.area)],
                        p.address, p.address + p.bytes, p.live.first, p.live.last, extra);
  };
  for (size_t b = 0; b < schedule.buffers.size(); ++b) {
    const Placement& placement = schedule.buffers[b];
    const Buffer& buffer = schedule.storage.buffers[b];
    if (placement.bytes == 0 || buffer.kind == BufferKind::Constant) continue;
    line("buffer", placement,
         fmt::format(" {} {}{}", dtypeName(buffer.dtype), shapeText(buffer.shape),
                     buffer.layout == npu::Layout::NHCWB16 ? " bricks" : ""));
  }
  for (const Placement& placement : schedule.staging) line("staging", placement, "");
  text += fmt::format("arena {} bytes, cache {} bytes, constants {} bytes\n", schedule.arenaBytes,
                      schedule.cacheBytes, schedule.constants.bytes().size());
  return text;
}

}  // namespace carina::compiler
