// SPDX-License-Identifier: Apache-2.0
#include "compiler/schedule/pass_order.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace carina::compiler {
namespace {

constexpr size_t kNone = std::numeric_limits<size_t>::max();

/// The passes that write and read a map, in order.
struct Accesses {
  std::vector<size_t> writers, readers;
};

class Mover {
 public:
  explicit Mover(Schedule& schedule)
      : schedule_(schedule), maps_(schedule.storage->buffers.size()), after_(schedule.passes.size(), kNone) {
    for (size_t p = 0; p < schedule.passes.size(); ++p) {
      for (const PassValue& input : memoryInputs(schedule, schedule.passes[p])) {
        std::vector<size_t>& readers = map(input).readers;
        if (readers.empty() || readers.back() != p) readers.push_back(p);
      }
      map(schedule.passes[p].result).writers.push_back(p);
    }
  }

  bool run() {
    // A map's writers move before its readers do.
    std::vector<size_t> order(maps_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    const auto isUsed = [this](size_t b) { return !maps_[b].writers.empty() && !maps_[b].readers.empty(); };
    order.erase(std::remove_if(order.begin(), order.end(), [&](size_t b) { return !isUsed(b); }),
                order.end());
    std::sort(order.begin(), order.end(),
              [this](size_t a, size_t b) { return maps_[a].writers.front() < maps_[b].writers.front(); });
    bool moved = false;
    for (const size_t b : order) moved |= moveReadersOf(b);
    if (moved) reorder();
    return moved;
  }

 private:
  Accesses& map(const PassValue& value) { return maps_[static_cast<size_t>(value.buffer)]; }
  int64_t bytes(size_t buffer) const { return schedule_.storage->buffers[buffer].bytes; }

  /// Whether the pass reads nothing but map `b`, and writes another one.
  bool readsOnly(size_t p, size_t b) const {
    const Pass& pass = schedule_.passes[p];
    const MemoryInputs inputs = memoryInputs(schedule_, pass);
    return static_cast<size_t>(pass.result.buffer) != b &&
           std::all_of(inputs.begin(), inputs.end(),
                       [b](const PassValue& input) { return static_cast<size_t>(input.buffer) == b; });
  }

  bool moveReadersOf(size_t b) {
    const auto& [writers, readers] = maps_[b];
    if (schedule_.storage->buffers[b].kind != BufferKind::FeatureMap) return false;
    const bool writerMoved =
        std::any_of(writers.begin(), writers.end(), [this](size_t p) { return after_[p] != kNone; });
    if (writerMoved && writers.size() > 1) return false;
    // As many of the last readers as have smaller results than the map.
    size_t first = readers.size();
    int64_t results = 0;
    std::vector<int32_t> counted;
    for (; first > 0 && readsOnly(readers[first - 1], b); --first) {
      const int32_t result = schedule_.passes[readers[first - 1]].result.buffer;
      if (std::find(counted.begin(), counted.end(), result) == counted.end()) {
        counted.push_back(result);
        results += bytes(static_cast<size_t>(result));
      }
      if (results >= bytes(b)) break;
    }
    size_t place = writers.back();
    if (first > 0) place = std::max(place, readers[first - 1]);
    while (first < readers.size() && readers[first] <= place + 1) place = std::max(place, readers[first++]);
    for (size_t r = first; r < readers.size(); ++r) after_[readers[r]] = place;
    return first < readers.size();
  }

  void reorder() {
    std::vector<std::vector<size_t>> followers(after_.size());
    for (size_t p = 0; p < after_.size(); ++p) {
      if (after_[p] != kNone) followers[after_[p]].push_back(p);
    }
    std::vector<Pass> ordered;
    std::vector<size_t> open;
    for (size_t p = 0; p < after_.size(); ++p) {
      if (after_[p] == kNone) open.push_back(p);
      while (!open.empty()) {
        const size_t next = open.back();
        open.pop_back();
        ordered.push_back(std::move(schedule_.passes[next]));
        open.insert(open.end(), followers[next].rbegin(), followers[next].rend());
      }
    }
    schedule_.passes = std::move(ordered);
  }

  Schedule& schedule_;
  std::vector<Accesses> maps_;
  std::vector<size_t> after_;  // per pass: the pass that it is moved after
};

}  // namespace

bool freeMapsEarly(Schedule& schedule) {
  return Mover(schedule).run();
}

}  // namespace carina::compiler
