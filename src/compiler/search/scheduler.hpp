// SPDX-License-Identifier: Apache-2.0
// One try at a schedule within given limits; limit_search.cpp and search.cpp search over such tries.
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

/// Bytes available in a dedicated cache.
int64_t cacheLimit(const npu::Machine& machine, const Options& options);

/// Staged weights up to this size are not sliced; larger ones use two alternating slices of about half this
/// size.
constexpr int64_t kMaxUnslicedBytes = 48 * 1024;

/// Limits of one try.
struct Limits {
  /// Choose cascades that keep the arena within this many bytes (0: as few as possible), or all feature maps
  /// within this many bytes of a dedicated cache.
  std::optional<int64_t> cascades = std::nullopt;
  bool cascadesInCache = false;
  int64_t maps = 0;                              // bytes of a dedicated cache for feature maps
  int64_t fast = 0;                              // bytes of fast memory for feature maps and weights
  bool ahead = true;                             // weights may be fetched early and kept
  bool copies = false;                           // and are copied wherever they fit
  bool inPlace = false;                          // weights of cascades are read in place, once per stripe
  bool copyInputs = true;                        // copy program inputs to the cache where that may be faster
  bool thickSlices = true;                       // weights may be copied in thick slices
  bool countReads = true;                        // cache first what linear layers read several times
  RollingMaps rolling = RollingMaps::Parts;      // which maps cascades may hold in part
  int64_t maxUnslicedBytes = kMaxUnslicedBytes;  // less if memory is short
  PortSharing sharing = PortSharing::Waiting;    // assumed when weights are planned
  bool longPieces = false;                       // weights may be fetched while several groups run
  /// Cascades are chosen as if larger maps were behind the cache, except where a cascade holds them in a
  /// rolling buffer.
  int64_t maxCachedMapBytes = std::numeric_limits<int64_t>::max();
  bool operator==(const Limits&) const = default;
};

/// What a try chooses first: cascades and the placement of maps. Tries with equal places differ at most in
/// the plan of their weights.
struct Places {
  bool ahead = true, inPlace = false;
  int64_t maxUnslicedBytes = 0;
  std::vector<Group> groups;
  std::vector<std::vector<Stripe>> stripes;
  std::vector<Placement> buffers, homes;
  bool operator==(const Places&) const = default;
};

/// Prepared once, then copied for each try.
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

  /// Computes what does not depend on limits.
  Status prepare();

  /// By how many percent an operation may take more cycles to read its weights in the order that another
  /// program uses (Options::known); 0: other programs are ignored.
  void share(int percent) { sharing_ = percent; }

  /// Chooses everything but the encoded weights. Copies of a prepared scheduler may try different limits.
  Status choose(const Limits& limits);

  /// The same in steps. choosePlaces() and chooseBlocksAndPaths() are common to limits that differ only in
  /// `fast`, `copies` and `sharing`, the latter also to limits with equal places; limits with equal weight
  /// plans give the same schedule.
  Status choosePlaces(const Limits& limits);
  Status chooseBlocksAndPaths();
  Status chooseButWeights(const Limits& limits);
  WeightPlan planWeightPaths(const Limits& limits) const;
  void useWeightPaths(const Limits& limits, const WeightPlan& plan);
  /// Frees the data for planWeightPaths() and useWeightPaths(), which is as large as the schedule.
  void forgetWeightPaths() { weights_.reset(); }

  /// Valid after choosePlaces().
  Places places() const;

  /// Expected cycles of the program, before its weights are encoded.
  Result<npu::Cycles> expectedCycles();
  /// The same, after expectedCycles(), summed over the settings of the cycle model that affect where maps are
  /// best read.
  npu::Cycles cyclesOverSettings() const;
  /// The same under the setting in which transfers get only the port cycles that kernels leave.
  npu::Cycles cyclesIfTransfersWait() const;
  int64_t fastBytes() const { return mode().spilling() ? result_.cacheBytes : result_.arenaBytes; }
  /// Bytes of the arena behind a cache.
  int64_t arenaBehind() const { return mode().spilling() ? result_.arenaBytes : 0; }

  /// Most bytes of maps alive at the same time in fast memory, without weights.
  int64_t mapBytes() const;

  /// The same with the thickest slices of the weights that each operation reads.
  int64_t mapAndSliceBytes() const;

  /// mapBytes() for all maps that may be cached.
  int64_t cacheableBytes() const;

  /// Bytes of the largest of these maps.
  int64_t largestMap() const;

  /// Expected bytes of the largest weights of one operation.
  int64_t largestWeights() const { return contents_->largestBytes(); }
  /// Upper bound on the staged weights of all operations together.
  int64_t allWeights() const;

  size_t passes() const { return result_.passes.size(); }

  /// Lower bound on the arena for any choice of cascades that hold these maps in part: at each pass, the maps
  /// that must be whole, the rows of its input in its window, and one row of each other map. 0 behind a cache
  /// and with Ends::Outside.
  int64_t arenaBound(RollingMaps rolling) const;

  /// Whether some program input may be read faster from the cache.
  bool mayCopyInputs() const { return mode().spilling() && !inputsToCopy().empty(); }

  /// Whether Limits::countReads makes a difference.
  bool hasLinearLayers() const;

  /// Whether maps take more memory because of Options::padsBricks, and whether Options::freesMapsEarly made a
  /// difference.
  bool padsBricks() const;
  bool isReordered() const { return reordered_; }

  /// Lower bound on the arena for any choice of cascades; see Schedule::arenaBound.
  int64_t arenaBound() const { return result_.arenaBound; }

  /// Whether Limits::rolling may make a difference.
  bool hasParts() const;

  /// Whether the network is large enough for several threads. Starting them takes about as much CPU time as
  /// searching and encoding a small network.
  bool worthThreads() const { return worthThreads_; }

  /// Keeps what is encoded for this schedule, for other schedules that will be completed.
  void keepEncoded() { keepsEncoded_ = true; }
  Result<Schedule> finish();
  /// After finish() failed because the cache does not hold what was planned: moves maps behind the cache
  /// where that is necessary. Fails if the program takes more than `most` cycles then.
  Result<Schedule> finishWithLess(npu::Cycles most);

  /// Passes whose weights finish() has encoded, even if it failed.
  std::span<const Pass> encodedPasses() const { return result_.passes; }
  /// Sets the expected sizes of weights to those in these passes. Returns whether any expectation changed.
  bool expectSizesOf(std::span<const Pass> encoded);

 private:
  const npu::MemoryMode& mode() const { return result_.machine.memory; }
  npu::Area fastArea() const { return mode().spilling() ? npu::Area::Cache : npu::Area::Arena; }

  void addPasses();
  /// Implements a copy as a pooling or as a product with 1, whichever takes fewer cycles.
  void chooseUnit(npu::KernelOperation& op) const;

  /// First and last pass that touch each buffer; program inputs exist before the first pass, outputs after
  /// the last. Untouched buffers have 0 bytes.
  std::vector<LiveRange> passRanges() const;

  /// Whether the caller places a buffer.
  bool isOutside(size_t buffer) const {
    const BufferKind kind = result_.storage->buffers[buffer].kind;
    return ends_ == Ends::Outside && (kind == BufferKind::Input || kind == BufferKind::Output);
  }

  /// Sets the sizes of the buffers, and their lifetimes in groups.
  void findLifetimes();

  /// Turns maps between the passes of a cascade into rolling buffers.
  void rollBuffers();

  /// Lets elementwise results take the place of an input that is not read after them.
  void takeOver(const std::vector<LiveRange>& ranges);

  /// Whether memory matters more than the time spent on looking for placements.
  bool shortOfMemory() const {
    return options_.arenaLimit > 0 || options_.cacheLimit > 0 || options_.optimize == Optimize::Size;
  }

  InPlace inPlace() const { return shortOfMemory() ? InPlace::SamePlaces : InPlace::SameLayout; }

  /// A program input, and a buffer that may overlay it from its start: the input's bytes are read before the
  /// buffer overwrites them.
  struct Overlay {
    size_t input = 0, buffer = 0;
  };
  std::vector<Overlay> overlays() const;
  /// Passes in which buffers need memory of their own, given the overlays of whole maps.
  std::vector<LiveRange> rangesWithOverlays() const;

  /// Puts every pass or chain into a group of its own.
  void separateGroups();

  void assignGroups();

  /// Groups passes into cascades so that the arena stays within the limit (0: becomes as small as possible).
  Status chooseCascades(int64_t limit);

  /// Cycles of a pass for the first rows of its result, with the block of the whole pass clipped to them.
  npu::Cycles estimatedCycles(int32_t p, int32_t rows, MapsBehind behind) const;

  bool isConvolution(const Pass& pass) const {
    return !pass.isDma && pass.operation.weights.has_value() && !isCoded(pass);
  }
  /// A convolution whose weights are written by other operations: only its scales are constants.
  bool isCoded(const Pass& pass) const { return ir::isa<npu_ir::CodedConv>(pass.node); }

  /// Decides which weights are staged and, with a cache in front of a slow arena, which feature maps are
  /// cached.
  void chooseAreas();

  /// The buffer whose memory `buffer` uses.
  size_t rootBuffer(int32_t buffer) const;

  /// For each buffer, whether it is a feature map that shares its memory with no program input or output.
  std::vector<bool> mayBeCached() const;

  /// Program inputs that are read in fewer cycles, copy included, if they are first copied to the cache;
  /// estimated one pass at a time.
  std::vector<size_t> inputsToCopy() const;

  /// How often a convolution reads its input, if that and its weights are not copied: once for each block of
  /// output channels.
  int64_t inputReads(const Pass& pass) const;

  /// Gives a program input that is read from the cache a place in the arena as well.
  void giveHome(size_t buffer);
  /// Moves a map from the cache back to the arena.
  void evict(Placement& placement);

  /// Expected live ranges of staged weights.
  std::vector<LiveRange> stagingEstimate() const;

  /// Expected encoded bytes of one slice.
  int64_t slicedBytes(const Pass& pass) const { return slicedBytes(pass, slicedDepth(pass)); }
  int64_t slicedBytes(const Pass& pass, int32_t depth) const;

  /// Output channels per slice.
  int32_t sliceDepth(const Pass& pass) const;

  /// Output channels per slice on the path with the thinnest slices.
  int32_t slicedDepth(const Pass& pass) const;

  /// Output channels of the thickest slices on a sliced path.
  int32_t mostChannels(const Pass& pass, WeightPath path) const;

  bool inCascade(const Pass& pass) const;

  npu::Area areaOf(const PassValue& value) const { return result_.buffers[rootBuffer(value.buffer)].area; }

  npu::TimingContext timingContext(const Pass& pass) const;

  /// `depth`: output channels of one operation.
  npu::TimingContext timingContext(const Pass& pass, bool staged, int32_t depth) const;

  /// The best blocks for a pass and those chained to it, given how its weights are read.
  Result<ChosenBlocks> blocksFor(const Pass& pass, bool staged, int32_t depth) const;

  void use(const ChosenBlocks& chosen, Pass& pass);

  /// Forms in which other programs hold the weights of a convolution.
  std::span<const WeightForm> formsOf(const Pass& pass) const;
  /// Whether another program holds the weights as this pass reads them, in slices of `sliceDepth` channels.
  bool isKnown(const Pass& pass, const npu::KernelOperation& op, int32_t sliceDepth) const;
  /// Adds an encoded slice to the constants, with its records as separate pieces if the weights are known.
  WeightSlice stored(const std::shared_ptr<const EncodedSlice>& slice, bool known);

  Status chooseBlocks();

  /// Whether the weights of a pass are planned: not in cascades, where they are staged before the first
  /// stripe.
  bool isPlanned(const Pass& pass) const { return isConvolution(pass) && !inCascade(pass); }

  /// The best blocks of a pass on a weight path, and the output channels of an operation; no blocks if the
  /// path is not possible.
  struct WeightChoice {
    ChosenBlocks chosen;
    int32_t depth = 0;

    /// Cycles of all operations, the last of which may have fewer channels than the others.
    double cycles(int32_t channels) const {
      return static_cast<double>(chosen.cost.total) * channels / depth;
    }
  };
  using WeightChoices = std::array<WeightChoice, kWeightPaths>;

  /// The input of a weight plan, except for the available memory.
  struct DescribedWeights {
    std::vector<WeightChoices> choices;  // per pass
    WeightProblem problem;               // freeBytes: minus what everything else takes
    std::vector<size_t> passOfUse;
  };
  Status describeWeights();
  Result<WeightChoices> weightChoices(const Pass& pass) const;
  WeightUse describeUse(const Pass& pass, const WeightChoices& choices, StreamSets& sets) const;

  /// Adds the groups and their cost apart from planned weights.
  /// Which passes begin with transfers that are not of weights: of rows by index, or of a table that is not
  /// in the table memory.
  std::vector<bool> passesThatLoad() const;
  void describeGroups(WeightProblem& problem) const;

  /// Creates the slices that will be encoded, with their expected sizes.
  void expectSlices(Pass& pass);

  /// Runs in parallel; returns the first error in pass order, with its location.
  Status forEachPass(const std::function<Status(Pass&)>& body);

  Status encodeWeights();

  /// Encodes the scales of convolutions whose weights are written by other operations.
  Status encodeCodedScales();

  /// Hashes tables and constant maps, which every try adds to its pool.
  void hashConstants();
  void addConstants();

  /// Creates buffers for staged slices: even and odd slices alternate. Passes that read another's copy share
  /// it.
  void addStaging();

  enum class Allocation : uint8_t {
    Try,       // quickly; fails if the cache does not hold what was planned
    Final,     // as densely as possible; fails as well, unless nothing is planned ahead
    Evicting,  // the same, but maps move behind the cache where it does not hold them
  };
  Status allocate(Allocation how);

  /// Cached feature maps, largest first.
  std::vector<Placement*> cachedMaps();

  /// Evicts as few of the largest cached feature maps as bring the live bytes within `limit`. Returns whether
  /// any was evicted.
  bool evictBeyond(int64_t limit);

  /// Evicts the largest cached feature map, if any.
  bool evict();

  /// Evicts one cached map for each buffer that ends above `limit`, if these are few. Returns whether any was
  /// evicted.
  bool evictAbove(int64_t limit);

  /// `trying`: may run on several threads at a time.
  int64_t place(const std::vector<Placement*>& placements, int64_t target, int attempts, bool trying) const;

  const ir::Graph& graph_;
  const Options& options_;
  const Ends ends_;
  int sharing_ = 0;
  const npu::Target& target_;
  // Shared by all tries.
  std::shared_ptr<BlockMemo> blocks_;
  std::shared_ptr<const std::unordered_map<const std::byte*, uint64_t>> hashes_;  // of constants, by address
  // Shared by the schedules that are completed, one after another.
  std::shared_ptr<Packer> packer_;
  std::shared_ptr<EncodedMemo> encoded_;
  std::shared_ptr<const WeightContents> contents_;
  std::unordered_map<const ir::Node*, std::span<const WeightForm>> forms_;  // held by other programs
  Limits limits_;
  bool worthThreads_ = true;
  bool keepsEncoded_ = false;
  std::shared_ptr<const DescribedWeights> weights_;  // kept between the steps of choose()
  CascadeProblem problem_;                           // with cascades only
  std::vector<Overlay> overlays_, wholeOverlays_;    // of this try, and without cascades
  Schedule result_;
  bool reordered_ = false;
};

}  // namespace carina::compiler
