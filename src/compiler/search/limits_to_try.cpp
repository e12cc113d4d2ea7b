// SPDX-License-Identifier: Apache-2.0
#include "compiler/search/limits_to_try.hpp"

#include <algorithm>

namespace carina::compiler {
namespace {

/// Collects the limits. `quick`: few tries suffice.
class LimitList {
 public:
  LimitList(const Scheduler& prepared, const npu::Machine& machine, const Options& options,
            int64_t arenaLimit, int effort)
      : prepared_(prepared),
        options_(options),
        arenaLimit_(arenaLimit),
        cache_(cacheLimit(machine, options)),
        spilling_(machine.memory.spilling()),
        // Not if the user limits memory: what fits may be one of the others.
        quick_(effort == 1 && arenaLimit == 0 && options.cacheLimit == 0),
        exhaustive_(effort == 3) {}

  std::vector<Limits> all() && {
    const int64_t least = prepared_.mapBytes();
    // Large weights are worth as much memory as the maps.
    const int64_t withSlices = std::min(prepared_.mapAndSliceBytes(), 2 * least);
    const int64_t most = spilling_         ? cache_
                         : arenaLimit_ > 0 ? std::max(arenaLimit_, least)
                                           : std::max({least + 2 * kMargin, cache_, withSlices});
    for (const int64_t size : sizes(least, most)) {
      // The traffic of reading in place is only estimated in plans: try both ways.
      for (const bool copies : {false, true}) {
        if (!copies || !quick_) addSize(size, most, copies);
      }
    }
    // Always fits: nothing in the cache.
    if (spilling_) all_.push_back({});
    if (prepared_.mayCopyInputs()) {
      for (size_t i = 0, count = all_.size(); i < count; ++i) {
        Limits without = all_[i];
        without.copyInputs = false;
        all_.push_back(without);
      }
    }
    if (arenaLimit_ > 0 || options_.cacheLimit > 0 || exhaustive_) addForShortMemory(most);
    return std::move(all_);
  }

 private:
  static constexpr int64_t kMargin = 48 * 1024;  // for weights in addition to the largest maps

  /// Sizes of fast memory. `least`: bytes that maps need.
  std::vector<int64_t> sizes(int64_t least, int64_t most) const {
    if (quick_) {
      // Maps and weights share a cache: the split is worth a few more tries.
      return spilling_ ? std::vector<int64_t>{most / 3, most * 2 / 3, most} : std::vector<int64_t>{most};
    }
    std::vector<int64_t> sizes;
    for (const int64_t kib : {64, 128, 256, 384, 512, 1024, 2048, 4096}) {
      if (kib * 1024 < most && (spilling_ || kib * 1024 > least)) sizes.push_back(kib * 1024);
    }
    if (!spilling_) {
      for (const int64_t size : {least, least + kMargin, least + 2 * kMargin}) {
        if (size < most) sizes.push_back(size);
      }
      // Addresses may need slightly more memory than the planned live bytes: smaller sizes leave a margin.
      for (const int64_t eighths : {1, 2, 3, 4, 5, 6, 7}) {
        if (arenaLimit_ > 0 && most > least) sizes.push_back(least + (most - least) / 8 * eighths);
      }
    }
    sizes.push_back(most);
    if (exhaustive_) addBetween(sizes);
    std::sort(sizes.begin(), sizes.end());
    if (!spilling_) {
      // Beyond the total size of maps and weights, the plan no longer depends on the size.
      const auto enough = std::lower_bound(sizes.begin(), sizes.end(), least + prepared_.allWeights());
      if (enough != sizes.end()) sizes.erase(enough + 1, sizes.end());
    }
    return sizes;
  }

  /// Adds three sizes between every two neighbours.
  static void addBetween(std::vector<int64_t>& sizes) {
    std::sort(sizes.begin(), sizes.end());
    for (size_t i = 1, count = sizes.size(); i < count; ++i) {
      for (const int64_t quarters : {1, 2, 3}) {
        const int64_t size = sizes[i - 1] + (sizes[i] - sizes[i - 1]) / 4 * quarters;
        if (size > sizes[i - 1] && size < sizes[i]) sizes.push_back(size);
      }
    }
  }

  /// Adds limits for `size` bytes of fast memory, of which there are `most`.
  void addSize(int64_t size, int64_t most, bool copies) {
    if (!spilling_) {
      all_.push_back({.fast = size, .copies = copies});
      // A single try is planned as the cycle model predicts; among several, plans that depend less on the
      // prediction are preferred.
      if (quick_) all_.back().sharing = PortSharing::Turns;
      return;
    }
    for (const int64_t eighths : {4, 7, 8}) {
      if (copies && eighths == 8) continue;
      all_.push_back({.maps = size * eighths / 8, .fast = size, .copies = copies});
      if (eighths < 8 && !copies) addCascades(size * eighths / 8, size, size == most);
    }
  }

  /// Adds cascades for `bytes` of a cache's `size`. `most`: also with maps larger than half or a quarter of
  /// it behind the cache, which leaves space for taller stripes.
  void addCascades(int64_t bytes, int64_t size, bool most) {
    Limits limits{.cascades = bytes, .cascadesInCache = true, .maps = size, .fast = size};
    all_.push_back(limits);
    if (!most) return;
    for (const int64_t parts : {2, 4}) {
      limits.maxCachedMapBytes = size / parts;
      if (prepared_.largestMap() > limits.maxCachedMapBytes) all_.push_back(limits);
    }
  }

  /// Adds smaller slices of staged weights and, for a small cache, all maps that fit with weights planned for
  /// less memory than available. Behind a cache, where no two tries share a plan, the slices would take
  /// minutes in networks of many passes.
  void addForShortMemory(int64_t most) {
    const bool slow = spilling_ && prepared_.passes() > kManyPasses;
    for (size_t i = 0, count = slow ? 0 : all_.size(); i < count; ++i) {
      for (const int64_t staging : shortStaging(prepared_, all_[i].fast)) {
        all_.push_back(all_[i]);
        all_.back().maxUnslicedBytes = staging;
      }
    }
    if (!spilling_) return;
    const int64_t maps = std::min(prepared_.cacheableBytes(), most);
    for (const int64_t eighths : {1, 2, 3, 4, 5, 6, 7}) {
      for (const bool copies : {false, true}) {
        for (const bool copyInputs : {true, false}) {
          const int64_t fast = maps + (most - maps) / 8 * eighths;
          all_.push_back({.maps = most, .fast = fast, .copies = copies, .copyInputs = copyInputs});
        }
      }
    }
  }

  const Scheduler& prepared_;
  const Options& options_;
  const int64_t arenaLimit_, cache_;
  const bool spilling_, quick_, exhaustive_;
  std::vector<Limits> all_;
};

}  // namespace

std::vector<Limits> limitsToTry(const Scheduler& prepared, const npu::Machine& machine,
                                const Options& options, int64_t arenaLimit, int effort) {
  if (!machine.memory.slowConstants()) {
    const int64_t fast = cacheLimit(machine, options);
    return {{.maps = fast, .fast = fast}};
  }
  return LimitList(prepared, machine, options, arenaLimit, effort).all();
}

std::vector<int64_t> shortStaging(const Scheduler& prepared, int64_t fast) {
  std::vector<int64_t> sizes;
  for (int64_t size = kMaxUnslicedBytes / 3; size >= 1024; size /= 2) {
    if (size < fast && size < prepared.largestWeights()) sizes.push_back(size);
  }
  return sizes;
}

}  // namespace carina::compiler
