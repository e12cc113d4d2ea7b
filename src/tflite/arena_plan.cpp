// SPDX-License-Identifier: Apache-2.0
#include "tflite/arena_plan.hpp"

#include <algorithm>
#include <numeric>

namespace carina::tflite {
namespace {

constexpr int64_t kAlignment = 16;

int64_t alignedUp(int64_t offset) {
  const int64_t rest = offset % kAlignment;
  return rest == 0 ? offset : offset - rest + (rest > 0 ? kAlignment : 0);
}

bool liveTogether(const ArenaPiece& a, const ArenaPiece& b) {
  return a.first <= b.last && b.first <= a.last;
}

int64_t sizeOf(const ArenaBody& body) {
  int64_t low = 0, high = 0;
  for (const ArenaPiece& piece : body) {
    low = std::min(low, piece.offset);
    high = std::max(high, piece.offset + piece.bytes);
  }
  return high - low;
}

/// The lowest free offset for the body: starts at the lowest one and moves past each piece in conflict.
/// `placed` is sorted by offset: one pass suffices for a body of one piece.
int64_t placeOf(const ArenaBody& body, const std::vector<ArenaPiece>& placed) {
  int64_t base = 0;
  for (const ArenaPiece& piece : body) base = std::max(base, alignedUp(-piece.offset));
  for (bool moved = true; moved;) {
    moved = false;
    for (const ArenaPiece& other : placed) {
      for (const ArenaPiece& piece : body) {
        const int64_t begin = base + piece.offset;
        if (!liveTogether(piece, other) || begin >= other.offset + other.bytes ||
            other.offset >= begin + piece.bytes)
          continue;
        base = alignedUp(other.offset + other.bytes - piece.offset);
        moved = body.size() > 1;
      }
    }
  }
  return base;
}

}  // namespace

bool fitTogether(const ArenaBody& a, const ArenaBody& b, int64_t distance) {
  for (const ArenaPiece& one : a) {
    for (const ArenaPiece& other : b) {
      const int64_t begin = other.offset + distance;
      if (liveTogether(one, other) && begin < one.offset + one.bytes && one.offset < begin + other.bytes)
        return false;
    }
  }
  return true;
}

std::vector<int64_t> placeBodies(const std::vector<ArenaBody>& bodies) {
  std::vector<int64_t> sizes;
  sizes.reserve(bodies.size());
  for (const ArenaBody& body : bodies) sizes.push_back(sizeOf(body));
  std::vector<size_t> order(bodies.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return sizes[a] > sizes[b]; });
  std::vector<int64_t> offsets(bodies.size());
  std::vector<ArenaPiece> placed;
  for (const size_t index : order) {
    offsets[index] = placeOf(bodies[index], placed);
    for (ArenaPiece piece : bodies[index]) {
      piece.offset += offsets[index];
      const auto at =
          std::upper_bound(placed.begin(), placed.end(), piece,
                           [](const ArenaPiece& a, const ArenaPiece& b) { return a.offset < b.offset; });
      placed.insert(at, piece);
    }
  }
  return offsets;
}

}  // namespace carina::tflite
