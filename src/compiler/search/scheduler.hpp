// SPDX-License-Identifier: Apache-2.0
// One try at a schedule within given limits: what limit_search.cpp and search.cpp search among.
#pragma once

#include <array>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "compiler/schedule/block_memo.hpp"
#include "compiler/schedule/known_weights.hpp"
#include "compiler/schedule/pass_links.hpp"
#include "compiler/schedule/schedule.hpp"
#include "compiler/schedule/weight_streams.hpp"
#include "compiler/search/encoded_memo.hpp"
#include "compiler/search/options.hpp"
#include "compiler/search/search.hpp"

namespace carina::compiler {

/// Bytes that a dedicated cache may hold.
int64_t cacheLimit(const npu::Machine& machine, const Options& options);

/// Staged weights up to this size are not cut into slices; larger ones into two alternating ones of about
/// half of it.
constexpr int64_t kWholeStagingBytes = 48 * 1024;

/// What one try may take.
struct Limits {
  /// Look for cascades that keep the arena within so many bytes (0: the least), or all feature maps within so
  /// many bytes of a dedicated cache.
  std::optional<int64_t> cascades;
  bool cascadesInCache = false;
  int64_t maps = 0;                            // of a dedicated cache, for feature maps
  int64_t fast = 0;                            // of fast memory, for maps and weights
  bool ahead = true;                           // weights may arrive early and stay
  bool copies = false;                         // and are copied wherever there is room
  bool inPlace = false;                        // weights of cascades are read where they lie, once per stripe
  bool copyInputs = true;                      // program inputs to the cache, where that may be faster
  int64_t wholeStaging = kWholeStagingBytes;   // less where memory is short
  PortSharing sharing = PortSharing::Waiting;  // that weights are planned for
  /// Cascades are chosen as if larger maps lay behind the cache, where no cascade rolls them.
  int64_t wholeAtMost = std::numeric_limits<int64_t>::max();
  bool operator==(const Limits&) const = default;
};

/// What a try chooses first: cascades, and where maps lie. With equal places, tries differ in what they plan
/// weights with at most.
struct Places {
  bool ahead = true, inPlace = false;
  int64_t wholeStaging = 0;
  std::vector<Group> groups;
  std::vector<std::vector<Stripe>> stripes;
  std::vector<Placement> buffers, homes;
  bool operator==(const Places&) const = default;
};

/// Prepared once, then copied for every try.
class Scheduler {
 public:
  Scheduler(const ir::Graph& graph, const npu::Machine& machine, const Options& options, Ends ends)
      : graph_(graph),
        options_(options),
        ends_(ends),
        target_(*machine.target),
        blocks_(std::make_shared<BlockMemo>()),
        packer_(std::make_shared<Packer>()),
        encoded_(std::make_shared<EncodedMemo>()) {
    result_.machine = machine;
  }

  /// What does not depend on limits.
  Status prepare();

  /// Cycles, in percent, that an operation may take more to read its weights as another program does
  /// (Options::known), 0: all is chosen as if there were none.
  void share(int percent) { sharing_ = percent; }

  /// Everything but the weights' bytes. Copies of a prepared scheduler may try different limits.
  Status choose(const Limits& limits);

  /// The same in steps. Limits that differ in `fast`, `copies` and `sharing` have the first two in common,
  /// and those with equal places the second; the third tells limits that come to the same from others.
  Status choosePlaces(const Limits& limits);
  Status chooseBlocksAndPaths();
  Status chooseButWeights(const Limits& limits);
  WeightPlan planWeightPaths(const Limits& limits) const;
  void useWeightPaths(const Limits& limits, const WeightPlan& plan);
  /// What planWeightPaths() and useWeightPaths() go by is as large as the schedule.
  void forgetWeightPaths() { weights_.reset(); }

  /// Behind choosePlaces().
  Places places() const;

  /// Cycles of the program to expect, before its weights are encoded.
  Result<npu::Cycles> expectedCycles();
  /// The same, behind expectedCycles(), added up over the settings of the cycle model that bear on where maps
  /// are read.
  npu::Cycles cyclesInDoubt() const;
  /// The same under the setting by which transfers have only what kernels leave of a port.
  npu::Cycles cyclesIfTransfersWait() const;
  int64_t fastBytes() const { return mode().spilling() ? result_.cacheBytes : result_.arenaBytes; }
  /// Of the arena behind a cache.
  int64_t arenaBehind() const { return mode().spilling() ? result_.arenaBytes : 0; }

  /// Bytes of maps that are alive at a time in the fast memory, without weights.
  int64_t mapBytes() const;

  /// The same of all maps that a cache may hold.
  int64_t cacheableBytes() const;

  /// Bytes of the largest of these.
  int64_t largestMap() const;

  /// Bytes to expect of the largest weights of one operation.
  int64_t largestWeights() const { return contents_->largestBytes(); }
  /// More than the staged weights of all operations together may take.
  int64_t allWeights() const;

  size_t passes() const { return result_.passes.size(); }

  /// Whether some program input may be faster to read from the cache.
  bool mayCopyInputs() const { return mode().spilling() && !inputsToCopy().empty(); }

  /// Whether the network is large enough for several threads. Starting them takes about as much CPU time as
  /// the search and the encoding of a small network.
  bool worthThreads() const { return worthThreads_; }

  /// Other schedules will be completed, too: what is encoded for this one is kept for them.
  void keepEncoded() { keepsEncoded_ = true; }
  Result<Schedule> finish();

  /// Passes whose weights finish() has encoded, even where it ended with an error.
  std::span<const Pass> encodedPasses() const { return result_.passes; }
  /// Expects weights to be as large as they became in these passes. Whether that differs from what was to be
  /// expected for any.
  bool expectSizesOf(std::span<const Pass> encoded);

 private:
  const npu::MemoryMode& mode() const { return result_.machine.memory; }
  npu::Area fastArea() const { return mode().spilling() ? npu::Area::Cache : npu::Area::Arena; }

  void addPasses();
  /// A copy becomes a pool or a product with 1, whichever takes fewer cycles.
  void chooseUnit(npu::KernelOperation& op) const;

  /// First and last pass that touches each buffer; program inputs are there before the first pass, outputs
  /// after the last. Buffers that nothing touches have 0 bytes.
  std::vector<LiveRange> passRanges() const;

  /// Whether a buffer lies where the caller says.
  bool isOutside(size_t buffer) const {
    const BufferKind kind = result_.storage->buffers[buffer].kind;
    return ends_ == Ends::Outside && (kind == BufferKind::Input || kind == BufferKind::Output);
  }

  /// Sizes and lifetimes of the buffers in groups.
  void findLifetimes();

  /// Maps between the passes of a cascade become rolling buffers.
  void rollBuffers();

  /// Elementwise results take the place of an input that nobody reads after them.
  void takeOver(const std::vector<LiveRange>& ranges);

  /// Whether memory counts more than the time that it takes to look for places.
  bool shortOfMemory() const {
    return options_.arenaLimit > 0 || options_.cacheLimit > 0 || options_.optimize == Optimize::Size;
  }

  InPlace inPlace() const { return shortOfMemory() ? InPlace::SamePlaces : InPlace::SameLayout; }

  /// A program input, and a buffer that may lie on it from its start: what is written there has been read.
  struct Overlay {
    size_t input = 0, buffer = 0;
  };
  std::vector<Overlay> overlays() const;
  /// Passes in which buffers need memory of their own, with the overlays of whole maps.
  std::vector<LiveRange> rangesWithOverlays() const;

  /// Passes and chains by themselves.
  void separateGroups();

  void assignGroups();

  /// Groups passes into cascades so that the arena stays within the limit (0: gets as small as possible).
  Status chooseCascades(int64_t limit);

  /// Bytes that the arena needs however the passes are put into cascades: at each of them, maps that have to
  /// be whole, the rows of its input that its window sees, and one row of the others.
  int64_t leastArena() const;

  /// Cycles of a pass for the first rows of its result, with the block of the whole pass cut to them.
  npu::Cycles estimatedCycles(int32_t p, int32_t rows, MapsBehind behind) const;

  bool isConvolution(const Pass& pass) const {
    return !pass.isDma && pass.operation.weights.has_value() && !isCoded(pass);
  }
  /// A convolution whose weights other operations write: only its scales are constants.
  bool isCoded(const Pass& pass) const { return ir::isa<npu_ir::CodedConv>(pass.node); }

  /// Decides which weights are staged and, with a cache in front of a slow arena, which feature maps live in
  /// it.
  void chooseAreas();

  /// The buffer whose memory a buffer uses.
  size_t rootBuffer(int32_t buffer) const;

  /// For each buffer, whether it is a feature map that no program input or output shares its memory with.
  std::vector<bool> mayBeCached() const;

  /// Program inputs that are read in fewer cycles when they are copied to the cache first, the copy included:
  /// as far as one pass after the other can tell.
  std::vector<size_t> inputsToCopy() const;

  /// A program input that is read from the cache gets a place in the arena, too.
  void giveHome(size_t buffer);
  /// Back from the cache to the arena.
  void evict(Placement& placement);

  /// Live ranges that staged weights are expected to need.
  std::vector<LiveRange> stagingEstimate() const;

  /// Encoded bytes to expect of one slice.
  int64_t slicedBytes(const Pass& pass) const;

  /// Output channels per slice.
  int32_t sliceDepth(const Pass& pass) const;

  /// Output channels of a slice of a pass that is sliced.
  int32_t slicedDepth(const Pass& pass) const;

  bool inCascade(const Pass& pass) const;

  npu::Area areaOf(const PassValue& value) const { return result_.buffers[rootBuffer(value.buffer)].area; }

  npu::TimingContext timingContext(const Pass& pass) const;

  /// `depth`: output channels of one operation.
  npu::TimingContext timingContext(const Pass& pass, bool staged, int32_t depth) const;

  /// A pass with the ones that are chained to it, in the blocks that are best for a way to its weights.
  Result<ChosenBlocks> blocksFor(const Pass& pass, bool staged, int32_t depth) const;

  void use(const ChosenBlocks& chosen, Pass& pass);

  /// Forms in which other programs hold the weights of a convolution.
  std::span<const WeightForm> formsOf(const Pass& pass) const;
  /// Whether another program holds weights as this pass reads them, in slices of so many channels.
  bool isKnown(const Pass& pass, const npu::KernelOperation& op, int32_t sliceDepth) const;
  /// Puts an encoded slice into the constants, its records by themselves where the weights are known.
  WeightSlice stored(const EncodedSlice& slice, bool known);

  Status chooseBlocks();

  /// Passes whose weights are planned: not in cascades, where they are staged before the first stripe.
  bool isPlanned(const Pass& pass) const { return isConvolution(pass) && !inCascade(pass); }

  /// Best blocks of a pass for each way to its weights; no blocks where there is no such way.
  using WeightChoices = std::array<ChosenBlocks, kWeightPaths>;

  /// What a plan of the weights goes by, apart from the room that there is.
  struct DescribedWeights {
    std::vector<WeightChoices> choices;  // per pass
    WeightProblem problem;               // freeBytes: minus what other things take
    std::vector<size_t> passOfUse;
  };
  Status describeWeights();
  WeightUse describeUse(const Pass& pass, const WeightChoices& choices, StreamSets& sets) const;

  /// Groups with what they cost apart from planned weights.
  void describeGroups(WeightProblem& problem) const;

  /// Slices as they will be encoded, of the size that is to be expected.
  void expectSlices(Pass& pass);

  /// In parallel; errors in pass order, with the place filled in.
  Status forEachPass(const std::function<Status(Pass&)>& body);

  Status encodeWeights();

  /// The scales of convolutions whose weights other operations write.
  Status encodeCodedScales();

  /// Bytes of scales and maps among the constants, at most: memory for all constants is had at once.
  int64_t otherConstants() const;

  /// Of tables and constant maps, which every try puts into its pool.
  void hashConstants();
  void addConstants();

  /// Staged slices become buffers of their own: even and odd slices take turns. Copies that others read stay.
  void addStaging();

  /// `trying`: quickly, and fails when the cache does not hold what was planned.
  Status allocate(bool trying);

  /// Cached feature maps, the largest first.
  std::vector<Placement*> cachedMaps();

  /// Sends as many of the largest cached feature maps back to the arena as the live bytes beyond `limit` ask
  /// for. Returns whether any went.
  bool evictBeyond(int64_t limit);

  /// Sends the largest cached feature map back to the arena.
  bool evict();

  /// `trying`: on several threads at a time.
  int64_t place(const std::vector<Placement*>& placements, int64_t target, int attempts, bool trying) const;

  const ir::Graph& graph_;
  const Options& options_;
  const Ends ends_;
  int sharing_ = 0;
  const npu::Target& target_;
  // Of all tries.
  std::shared_ptr<BlockMemo> blocks_;
  std::shared_ptr<const std::unordered_map<const std::byte*, uint64_t>> hashes_;  // of bytes there
  // Of the schedules that are completed, one after the other.
  std::shared_ptr<Packer> packer_;
  std::shared_ptr<EncodedMemo> encoded_;
  std::shared_ptr<const WeightContents> contents_;
  std::unordered_map<const ir::Node*, std::span<const WeightForm>> forms_;  // in which others hold weights
  Limits limits_;
  bool worthThreads_ = true;
  bool keepsEncoded_ = false;
  std::shared_ptr<const DescribedWeights> weights_;  // between the steps of choose()
  CascadeProblem problem_;                           // with cascades only
  std::vector<Overlay> overlays_, wholeOverlays_;    // of this try, and without cascades
  Schedule result_;
};

}  // namespace carina::compiler
