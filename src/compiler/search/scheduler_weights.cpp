// SPDX-License-Identifier: Apache-2.0
// Blocks, weight transfer paths and weight streams (scheduler.hpp).
#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "base/parallel.hpp"
#include "compiler/emit/table_slots.hpp"
#include "compiler/schedule/block_search.hpp"
#include "compiler/schedule/operation_builder.hpp"
#include "compiler/search/encoded_memo.hpp"
#include "compiler/search/scheduler.hpp"
#include "npu/isa/blockconfig.hpp"
#include "npu/weights/scale_records.hpp"

namespace carina::compiler {
namespace {

constexpr int64_t kSliceQuantum = 16;  // output channels
constexpr double kWorthwhile = 1.01;   // gain of slices that take more memory

}  // namespace

npu::Cycles Scheduler::estimatedCycles(int32_t p, int32_t rows, MapsBehind behind) const {
  const Pass& pass = result_.passes[static_cast<size_t>(p)];
  if (pass.isDma) return 0;
  npu::KernelOperation op = pass.operation;
  if (rows > 0 && rows < op.ofm.height) {
    const int32_t granule = std::max(npu::BlockRules(target_, op).granule().h, 1);
    op.ofm.height = rows;
    op.block.h = std::min<int32_t>(op.block.h, static_cast<int32_t>(roundUp(rows, granule)));
  }
  npu::TimingContext context = timingContext(pass);
  if (behind.ifm) context.ifm = npu::Area::Arena;
  if (behind.ifm2) context.ifm2 = npu::Area::Arena;
  if (behind.ofm) context.ofm = npu::Area::Arena;
  return npu::estimate(op, context).total;
}

std::vector<LiveRange> Scheduler::stagingEstimate() const {
  std::vector<LiveRange> ranges;
  for (size_t i = 0; i < result_.passes.size(); ++i) {
    const Pass& pass = result_.passes[i];
    if (!pass.staged) continue;
    const int32_t at = pass.group;
    const int64_t bytes = contents_->expectedBytes(pass.node), slice = slicedBytes(pass);
    const int64_t margin = slice / 8 + 64;
    ranges.push_back({slice + margin, at - 1, at});
    if (slice < bytes) ranges.push_back({slice + margin, at, at});
  }
  return ranges;
}

int64_t Scheduler::allWeights() const {
  constexpr int64_t kMargin = 1024;  // of the expected bytes of two slices
  int64_t bytes = 0;
  for (const Pass& pass : result_.passes) {
    if (!isConvolution(pass)) continue;
    const int64_t whole = contents_->expectedBytes(pass.node);
    bytes += (whole > kMaxUnslicedBytes || shortOfMemory() ? 2 * whole : whole) + kMargin;
  }
  return bytes;
}

int64_t Scheduler::slicedBytes(const Pass& pass, int32_t depth) const {
  const int64_t bytes = contents_->expectedBytes(pass.node);
  if (depth >= pass.operation.ofm.depth) return bytes;
  return roundUp(bytes * depth / pass.operation.ofm.depth + 256, 16);
}

int32_t Scheduler::sliceDepth(const Pass& pass) const {
  return isSliced(pass.weights.path) ? pass.sliceDepth : pass.operation.ofm.depth;
}

int32_t Scheduler::slicedDepth(const Pass& pass) const {
  // All weights of a cascade stay in fast memory while it runs: every stripe needs them.
  if (contents_->expectedBytes(pass.node) <= limits_.maxUnslicedBytes || inCascade(pass))
    return pass.operation.ofm.depth;
  return mostChannels(pass, WeightPath::Sliced);
}

int32_t Scheduler::mostChannels(const Pass& pass, WeightPath path) const {
  const int64_t thin = limits_.maxUnslicedBytes / 2;
  int64_t most = path == WeightPath::Sliced ? thin : path == WeightPath::ThickSlices ? 4 * thin : 16 * thin;
  // Two thick ones have to fit, with what they may take beyond the expected size.
  const int64_t limit = mode().spilling() ? cacheLimit(result_.machine, options_) : options_.arenaLimit;
  if (limit > 0 && path != WeightPath::Sliced) most = std::min(most, limit / 32 * 15);
  const int64_t depth = pass.operation.ofm.depth, bytes = contents_->expectedBytes(pass.node);
  const int64_t channels = depth * most / bytes / kSliceQuantum * kSliceQuantum;
  return static_cast<int32_t>(std::clamp(channels, kSliceQuantum, depth));
}

npu::TimingContext Scheduler::timingContext(const Pass& pass) const {
  return timingContext(pass, pass.staged, sliceDepth(pass));
}

npu::TimingContext Scheduler::timingContext(const Pass& pass, bool staged, int32_t depth) const {
  npu::TimingContext context;
  context.machine = &result_.machine;
  if (pass.ifm.value) context.ifm = areaOf(pass.ifm);
  if (pass.ifm2.value) context.ifm2 = areaOf(pass.ifm2);
  context.ofm = areaOf(pass.result);
  if (isConvolution(pass)) {
    context.weights = context.scales = staged ? fastArea() : npu::Area::Constants;
    // Records come in groups of 16 channels.
    context.scaleBytes = npu::kScaleRecordBytes * roundUp(depth, 16);
    context.weightBytes =
        contents_->expectedBytes(pass.node) * depth / std::max(pass.operation.ofm.depth, 1) -
        npu::kScaleRecordBytes * depth;
  } else if (isCoded(pass)) {
    context.weights = areaOf(pass.ifm2);
    context.scaleBytes = npu::kScaleRecordBytes * roundUp(pass.operation.ofm.depth, 16);
  }
  return context;
}

Result<ChosenBlocks> Scheduler::blocksFor(const Pass& pass, bool staged, int32_t depth) const {
  std::vector<npu::KernelOperation> chain;
  std::vector<npu::TimingContext> contexts;
  const auto first = static_cast<size_t>(&pass - result_.passes.data());
  for (size_t p = first; p < result_.passes.size() && (p == first || result_.passes[p].follows); ++p) {
    npu::KernelOperation op = result_.passes[p].operation;
    if (isConvolution(pass)) op.ofm.depth = depth;
    if (op.weights) op.weights->sparse = result_.passes[p].canBeSparse;
    if (op.kind == npu::OperationKind::Depthwise) op.ifm.depth = op.ofm.depth;
    if (result_.passes[p].stripeRows > 0) op.ofm.height = result_.passes[p].stripeRows;
    chain.push_back(op);
    contexts.push_back(timingContext(result_.passes[p], staged, depth));
  }
  CARINA_TRY(ChosenBlocks best, blocks_->choose(chain, contexts, isConvolution(pass)));
  const npu::Cycles most = best.cost.total * (100 + sharing_) / 100;
  for (const WeightForm& form : formsOf(pass)) {
    if (form.sliceDepth != depth) continue;
    const auto shared = blocks_->choose(chain, contexts, true, form.order);
    if (shared.ok() && shared->cost.total <= most) return *shared;
  }
  return best;
}

std::span<const WeightForm> Scheduler::formsOf(const Pass& pass) const {
  const auto known = forms_.find(pass.node);
  return sharing_ == 0 || known == forms_.end() ? std::span<const WeightForm>() : known->second;
}

bool Scheduler::isKnown(const Pass& pass, const npu::KernelOperation& op, int32_t sliceDepth) const {
  const std::span<const WeightForm> forms = formsOf(pass);
  if (forms.empty()) return false;
  return std::find(forms.begin(), forms.end(), WeightForm{npu::weightOrder(target_, op), sliceDepth}) !=
         forms.end();
}

void Scheduler::use(const ChosenBlocks& chosen, Pass& pass) {
  const auto first = static_cast<size_t>(&pass - result_.passes.data());
  for (size_t i = 0; i < chosen.blocks.size(); ++i)
    chosen.blocks[i].apply(result_.passes[first + i].operation);
}

Status Scheduler::chooseBlocks() {
  return forEachPass([this](Pass& pass) -> Status {
    if (pass.isDma || pass.follows) return {};
    CARINA_TRY(const ChosenBlocks chosen, blocksFor(pass, pass.staged, sliceDepth(pass)));
    use(chosen, pass);
    return {};
  });
}

Result<Scheduler::WeightChoices> Scheduler::weightChoices(const Pass& pass) const {
  WeightChoices choices;
  const int32_t channels = pass.operation.ofm.depth;
  const auto choose = [&](WeightPath path, int32_t depth) -> Status {
    CARINA_TRY(ChosenBlocks chosen, blocksFor(pass, path != WeightPath::Direct, depth));
    WeightChoice choice{std::move(chosen), depth};
    WeightChoice& best = choices[static_cast<size_t>(path)];
    if (best.depth == 0 || choice.cycles(channels) * kWorthwhile < best.cycles(channels))
      best = std::move(choice);
    return {};
  };
  CARINA_RETURN_IF_ERROR(choose(WeightPath::Direct, channels));
  CARINA_RETURN_IF_ERROR(choose(WeightPath::Whole, channels));
  if (slicedDepth(pass) >= channels) return choices;
  const WeightChoice* thinner = nullptr;
  for (const WeightPath path : {WeightPath::Sliced, WeightPath::ThickSlices, WeightPath::ThickestSlices}) {
    const int32_t most = mostChannels(pass, path);
    if (thinner != nullptr && (most <= thinner->depth || most >= channels)) continue;
    // Slices of equal depth, or as many of the greatest depth, the last of which is thinner.
    const int64_t equal = roundUp(ceilDiv(channels, ceilDiv(channels, most)), kSliceQuantum);
    CARINA_RETURN_IF_ERROR(choose(path, static_cast<int32_t>(equal)));
    if (equal < most) CARINA_RETURN_IF_ERROR(choose(path, most));
    WeightChoice& choice = choices[static_cast<size_t>(path)];
    // Thicker slices take more memory, which has to pay off.
    if (thinner == nullptr || choice.cycles(channels) * kWorthwhile < thinner->cycles(channels)) {
      thinner = &choice;
    } else {
      choice = {};
    }
  }
  return choices;
}

Status Scheduler::describeWeights() {
  auto described = std::make_shared<DescribedWeights>();
  auto& choices = described->choices;
  choices.resize(result_.passes.size());
  CARINA_RETURN_IF_ERROR(forEachPass([&](Pass& pass) -> Status {
    if (!isPlanned(pass)) return {};
    CARINA_TRY(choices[static_cast<size_t>(&pass - result_.passes.data())], weightChoices(pass));
    return {};
  }));
  WeightProblem& problem = described->problem;
  problem.ahead = limits_.ahead;
  describeGroups(problem);
  StreamSets sets(target_, *contents_);
  for (size_t p = 0; p < result_.passes.size(); ++p) {
    if (!isPlanned(result_.passes[p])) continue;
    problem.uses.push_back(describeUse(result_.passes[p], choices[p], sets));
    described->passOfUse.push_back(p);
  }
  weights_ = std::move(described);
  return {};
}

WeightUse Scheduler::describeUse(const Pass& pass, const WeightChoices& choices, StreamSets& sets) const {
  WeightUse use;
  use.group = pass.group;
  npu::KernelOperation whole = pass.operation;
  choices[static_cast<size_t>(WeightPath::Whole)].chosen.blocks.front().apply(whole);
  use.set = sets.indexOf(pass.node, whole);
  use.bytes = contents_->expectedBytes(pass.node);
  const int32_t channels = pass.operation.ofm.depth;
  const bool slices = !choices[static_cast<size_t>(WeightPath::Sliced)].chosen.blocks.empty();
  for (size_t path = 0; path < kWeightPaths; ++path) {
    const WeightChoice& choice = choices[path];
    PathCost& cost = use.costs[path];
    if (choice.chosen.blocks.empty()) continue;
    // For minimal memory, use slices wherever possible.
    if (!limits_.ahead && slices && path == static_cast<size_t>(WeightPath::Whole)) continue;
    const double share = choice.cycles(channels) / static_cast<double>(choice.chosen.cost.total);
    const auto part = [share](npu::Cycles cycles) {
      return static_cast<npu::Cycles>(static_cast<double>(cycles) * share);
    };
    const npu::OperationCost& one = choice.chosen.cost;
    cost = {part(one.total), part(one.port[mode().port(npu::Area::Constants)]),
            part(one.port[mode().port(fastArea())]), slicedBytes(pass, choice.depth),
            static_cast<int32_t>(ceilDiv(channels, choice.depth))};
    if (formsOf(pass).empty()) continue;
    npu::KernelOperation op = pass.operation;
    choice.chosen.blocks.front().apply(op);
    if (!isKnown(pass, op, choice.depth)) cost.cycles = cost.cycles * (100 + sharing_) / 100;
  }
  return use;
}

WeightPlan Scheduler::planWeightPaths(const Limits& limits) const {
  WeightProblem problem = weights_->problem;
  problem.copies = limits.copies;
  problem.sharing = limits.sharing;
  problem.longPieces = limits.longPieces;
  if (!limits.thickSlices) {
    for (WeightUse& use : problem.uses) {
      for (const WeightPath path : {WeightPath::ThickSlices, WeightPath::ThickestSlices})
        use.costs[static_cast<size_t>(path)] = {};
    }
  }
  const int64_t room = limits.ahead || mode().spilling() ? limits.fast : int64_t{1} << 40;
  for (WeightGroup& group : problem.groups) group.freeBytes += room;
  return planWeights(problem);
}

void Scheduler::useWeightPaths(const Limits& limits, const WeightPlan& plan) {
  limits_ = limits;
  const std::vector<size_t>& passOfUse = weights_->passOfUse;
  for (size_t u = 0; u < passOfUse.size(); ++u) {
    Pass& pass = result_.passes[passOfUse[u]];
    pass.weights = plan.uses[u];
    if (pass.weights.copyOf >= 0) {
      pass.weights.copyOf = static_cast<int32_t>(passOfUse[static_cast<size_t>(pass.weights.copyOf)]);
    }
    pass.staged = pass.weights.path != WeightPath::Direct;
    const WeightChoice& choice = weights_->choices[passOfUse[u]][static_cast<size_t>(pass.weights.path)];
    pass.sliceDepth = choice.depth;
    this->use(choice.chosen, pass);
  }
}

std::vector<bool> Scheduler::passesThatLoad() const {
  std::vector<bool> loads;
  TableSlots tables;
  for (const Pass& pass : result_.passes) {
    loads.push_back(pass.isDma);
    if (pass.isDma) continue;
    if (const npu_ir::OutputStage stage = npu_ir::outputStage(pass.node); stage.table) {
      const ByteSpan table = stage.table->constant().bytes();
      const auto number = static_cast<int64_t>(hashes_->at(table.data()) >> 1);
      loads.back() = tables.use(std::array{StoredTable{number, static_cast<int64_t>(table.size())}}).load;
    } else if (target_.tablesShareAccumulators()) {
      tables.forget();
    }
  }
  return loads;
}

void Scheduler::describeGroups(WeightProblem& problem) const {
  constexpr int64_t kProbe = int64_t{1} << 20;
  const auto transfer = [&](int64_t bytes) {
    return npu::transferCycles(result_.machine, bytes, npu::Area::Constants, fastArea());
  };
  problem.speed.latency = transfer(0);
  problem.speed.cyclesPerByte =
      static_cast<double>(transfer(kProbe) - problem.speed.latency) / static_cast<double>(kProbe);
  problem.speed.outstanding = target_.architecture().outstandingDmas;
  npu::DmaOperation probe;
  probe.destination.region = regionOf(fastArea());
  probe.length = kProbe;
  problem.speed.fastCyclesPerByte =
      static_cast<double>(npu::estimate(probe, result_.machine).port[mode().port(fastArea())]) /
      static_cast<double>(kProbe);
  std::vector<LiveRange> taken;
  for (const Placement& placement : result_.buffers) {
    if (placement.area == fastArea() && placement.live.bytes > 0) taken.push_back(placement.live);
  }
  for (const Pass& pass : result_.passes) {
    if (!pass.staged || isPlanned(pass)) continue;
    taken.push_back({contents_->expectedBytes(pass.node), pass.group - 1, pass.group});
  }
  const std::vector<bool> loads = passesThatLoad();
  const size_t count = result_.groups.size();
  std::vector<int64_t> change(count + 1, 0);  // in occupied bytes, at each group
  for (const LiveRange& range : taken) {
    const auto first = static_cast<size_t>(std::max(range.first, 0));
    const auto end = static_cast<size_t>(std::max(range.last + 1, 0));
    if (first >= end || first >= count) continue;
    change[first] += roundUp(range.bytes, 16);
    change[std::min(end, count)] -= roundUp(range.bytes, 16);
  }
  int64_t takenBytes = 0;
  for (size_t g = 0; g < count; ++g) {
    const Group& members = result_.groups[g];
    WeightGroup group;
    takenBytes += change[g];
    group.freeBytes = -takenBytes;
    std::vector<npu::KernelOperation> chain;
    std::vector<npu::TimingContext> contexts;
    for (int32_t p = members.first; p <= members.last; ++p) {
      const Pass& pass = result_.passes[static_cast<size_t>(p)];
      group.transfers |= loads[static_cast<size_t>(p)];
      if (pass.isDma) continue;
      chain.push_back(pass.operation);
      contexts.push_back(timingContext(pass));
      if (members.rows > 0) group.cycles += npu::estimate(chain.back(), contexts.back()).total;
    }
    group.last = group.cycles;
    if (members.rows > 0) {
      group.last /= static_cast<npu::Cycles>(std::max<size_t>(result_.stripes[g].size(), 1));
    } else if (!chain.empty()) {
      const npu::OperationCost cost = npu::estimateChain(chain, contexts);
      group.cycles = group.last = cost.total;
      group.port = cost.port[mode().port(npu::Area::Constants)];
      group.fastPort = cost.port[mode().port(fastArea())];
    }
    problem.groups.push_back(group);
  }
}

Status Scheduler::encodeCodedScales() {
  for (Pass& pass : result_.passes) {
    if (!isCoded(pass)) continue;
    CARINA_TRY(EncodedSlice slice, encodeScales(pass.node, pass.operation, target_));
    pass.slices = {stored(std::make_shared<const EncodedSlice>(std::move(slice)), false)};
  }
  return {};
}

void Scheduler::expectSlices(Pass& pass) {
  if (!isConvolution(pass)) return;
  pass.slices.clear();
  const int32_t depth = pass.operation.ofm.depth, step = sliceDepth(pass);
  for (int32_t c = 0; c < depth; c += step) {
    WeightSlice slice;
    slice.channels = {c, std::min(step, depth - c)};
    slice.streams = *pass.operation.weights;
    const auto scales = static_cast<uint64_t>(npu::kScaleRecordBytes * slice.channels.depth);
    slice.bytes = roundUp(contents_->expectedBytes(pass.node) * slice.channels.depth / depth, 16);
    slice.streams.scales[0] = npu::AddressRange{0, scales};
    slice.streams.weights[0] = npu::AddressRange{scales, static_cast<uint64_t>(slice.bytes) - scales};
    slice.pieces = {{0, 0}};
    if (isKnown(pass, pass.operation, step))
      slice.pieces.push_back({static_cast<int64_t>(scales), static_cast<int64_t>(scales)});
    pass.slices.push_back(slice);
  }
}

Status Scheduler::forEachPass(const std::function<Status(Pass&)>& body) {
  std::vector<Status> statuses(result_.passes.size());
  parallelForIf(worthThreads(), statuses.size(), [&](size_t i) { statuses[i] = body(result_.passes[i]); });
  for (size_t i = 0; i < statuses.size(); ++i) {
    if (!statuses[i].ok()) return std::move(statuses[i]).error().at(result_.passes[i].node->where());
  }
  return {};
}

Status Scheduler::encodeWeights() {
  struct Job {
    size_t pass;
    npu::DepthSlice channels;
    size_t first;  // index of the first job with the same streams
  };
  std::vector<Job> jobs;
  const auto keyOf = [&](const Job& job) {
    return SliceKey{contents_->of(result_.passes[job.pass].node), job.channels.offset, job.channels.depth};
  };
  std::map<SliceKey, std::vector<size_t>> firstJobs;
  for (size_t i = 0; i < result_.passes.size(); ++i) {
    const Pass& pass = result_.passes[i];
    if (!isConvolution(pass) || pass.weights.copyOf >= 0) continue;
    const auto sameStreams = [&](size_t j) {
      return encodesAlike(pass.operation, result_.passes[jobs[j].pass].operation);
    };
    const int32_t depth = pass.operation.ofm.depth, step = sliceDepth(pass);
    for (int32_t c = 0; c < depth; c += step) {
      const npu::DepthSlice channels{c, std::min(step, depth - c)};
      std::vector<size_t>& known = firstJobs[keyOf({i, channels, 0})];
      const auto same = std::find_if(known.begin(), known.end(), sameStreams);
      const size_t first = same == known.end() ? jobs.size() : *same;
      if (first == jobs.size()) known.push_back(first);
      jobs.push_back({i, channels, first});
    }
  }
  // Long jobs first, so that the last one to finish is short.
  std::vector<size_t> order;
  std::vector<std::shared_ptr<const EncodedSlice>> encoded(jobs.size());
  for (size_t j = 0; j < jobs.size(); ++j) {
    if (jobs[j].first != j) continue;
    encoded[j] = encoded_->find(keyOf(jobs[j]), result_.passes[jobs[j].pass].operation);
    if (!encoded[j]) order.push_back(j);
  }
  const auto work = [&](size_t j) {
    const Pass& pass = result_.passes[jobs[j].pass];
    return pass.node->operand(1)->numElements() / pass.operation.ofm.depth * jobs[j].channels.depth;
  };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return work(a) > work(b); });
  std::vector<std::optional<Error>> errors(jobs.size());
  const npu::CodingEffort effort = options_.effort == 1   ? npu::CodingEffort::Low
                                   : options_.effort == 3 ? npu::CodingEffort::High
                                                          : npu::CodingEffort::Normal;
  parallelForIf(
      worthThreads(), order.size(),
      [&](size_t k) {
        const Job& job = jobs[order[k]];
        const Pass& pass = result_.passes[job.pass];
        auto slice = encodeSlice(pass.node, pass.operation, job.channels, target_, effort);
        if (slice.ok()) {
          encoded[order[k]] = std::make_shared<const EncodedSlice>(std::move(*slice));
        } else {
          errors[order[k]] = std::move(slice).error();
        }
      },
      Pieces::Smallest);
  // Whether other schedules may reuse the slices.
  const bool others =
      options_.arenaLimit > 0 || options_.optimize == Optimize::Size || keepsEncoded_ || options_.known;
  std::vector<WeightSlice> slices(jobs.size());
  for (size_t j = 0; j < jobs.size(); ++j) {
    Pass& pass = result_.passes[jobs[j].pass];
    if (jobs[j].first == j) {
      if (errors[j]) return std::move(*errors[j]).at(pass.node->where());
      if (others) encoded_->keep(keyOf(jobs[j]), pass.operation, encoded[j]);
      slices[j] = stored(encoded[j], isKnown(pass, pass.operation, sliceDepth(pass)));
    }
    pass.slices.push_back(slices[jobs[j].first]);
  }
  for (Pass& pass : result_.passes) {
    if (pass.weights.copyOf >= 0)
      pass.slices = result_.passes[static_cast<size_t>(pass.weights.copyOf)].slices;
  }
  return encodeCodedScales();
}

WeightSlice Scheduler::stored(const std::shared_ptr<const EncodedSlice>& slice, bool known) {
  WeightSlice result{slice->channels, static_cast<int64_t>(slice->bytes.size()), slice->streams, {}};
  std::vector<int64_t> begins{0};
  if (known) {
    const auto add = [&begins](const auto& ranges) {
      for (const npu::AddressRange& range : ranges) {
        if (range.length > 0) begins.push_back(static_cast<int64_t>(range.address));
      }
    };
    add(slice->streams.weights);
    add(slice->streams.scales);
    std::sort(begins.begin(), begins.end());
    begins.erase(std::unique(begins.begin(), begins.end()), begins.end());
  }
  for (size_t i = 0; i < begins.size(); ++i) {
    const int64_t end = i + 1 < begins.size() ? begins[i + 1] : result.bytes;
    const ByteSpan piece =
        ByteSpan(slice->bytes).subspan(static_cast<size_t>(begins[i]), static_cast<size_t>(end - begins[i]));
    result.pieces.push_back({begins[i], result_.constants.addShared(piece, slice)});
  }
  return result;
}

bool Scheduler::expectSizesOf(std::span<const Pass> encoded) {
  auto contents = std::make_shared<WeightContents>(*contents_);
  bool differ = false;
  for (const Pass& pass : encoded) {
    if (!isConvolution(pass)) continue;
    int64_t bytes = 0;
    for (const WeightSlice& slice : pass.slices) bytes += slice.bytes;
    if (bytes == contents->expectedBytes(pass.node)) continue;
    contents->expect(pass.node, bytes);
    differ = true;
  }
  contents_ = std::move(contents);
  return differ;
}

void Scheduler::addStaging() {
  result_.staging.clear();
  for (size_t i = 0; i < result_.passes.size(); ++i) {
    Pass& pass = result_.passes[i];
    if (!pass.staged) continue;
    if (pass.weights.copyOf >= 0) {
      pass.staging = result_.passes[static_cast<size_t>(pass.weights.copyOf)].staging;
      continue;
    }
    const int32_t at = pass.group;
    for (size_t parity = 0; parity < std::min<size_t>(pass.slices.size(), 2); ++parity) {
      int64_t bytes = 0;
      for (size_t s = parity; s < pass.slices.size(); s += 2) bytes = std::max(bytes, pass.slices[s].bytes);
      Placement placement;
      placement.area = fastArea();
      placement.bytes = bytes;
      // The first slice arrives while the previous group runs.
      placement.live = {bytes, parity == 0 ? at - 1 : at, at};
      if (!pass.weights.fetches.empty()) {
        placement.live = {bytes, pass.weights.liveFirst, pass.weights.liveLast};
      }
      pass.staging[parity] = static_cast<int>(result_.staging.size());
      result_.staging.push_back(placement);
    }
  }
}

}  // namespace carina::compiler
