// SPDX-License-Identifier: Apache-2.0
#include "base/block_memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

namespace carina {
namespace {

struct Piece {
  unsigned char* at = nullptr;
  size_t bytes = 0;
  unsigned char mark = 0;
};

Piece make(size_t bytes, unsigned char mark) {
  Piece piece{static_cast<unsigned char*>(allocateBlock(bytes)), bytes, mark};
  std::memset(piece.at, mark, bytes);
  return piece;
}

bool whole(const Piece& piece) {
  return std::all_of(piece.at, piece.at + piece.bytes,
                     [&](unsigned char byte) { return byte == piece.mark; });
}

TEST(BlockMemory, EverySizeIsAlignedAndApartFromTheOthers) {
  std::vector<Piece> pieces;
  std::map<uintptr_t, size_t> extents;
  for (size_t bytes = 0; bytes <= kLargestBlock + 100; bytes += bytes < 600 ? 1 : 97) {
    pieces.push_back(make(bytes, static_cast<unsigned char>(bytes * 7)));
    ASSERT_NE(pieces.back().at, nullptr);
    const auto at = reinterpret_cast<uintptr_t>(pieces.back().at);
    EXPECT_EQ(at % 16, 0U) << bytes;
    extents[at] = std::max<size_t>(bytes, 1);
  }
  EXPECT_EQ(extents.size(), pieces.size());
  uintptr_t end = 0;
  for (const auto& [at, bytes] : extents) {
    EXPECT_GE(at, end);
    end = at + bytes;
  }
  for (const Piece& piece : pieces) {
    EXPECT_TRUE(whole(piece)) << piece.bytes;
    freeBlock(piece.at, piece.bytes);
  }
}

TEST(BlockMemory, AFreedBlockComesAgainWhetherItsSizeIsToldOrNot) {
  for (const size_t bytes : {1, 16, 17, 300, 5000, static_cast<int>(kLargestBlock)}) {
    void* first = allocateBlock(bytes);
    freeBlock(first);
    void* second = allocateBlock(bytes);
    EXPECT_EQ(first, second);
    freeBlock(second, bytes);
    EXPECT_EQ(allocateBlock(bytes), second);
    freeBlock(second);
  }
  freeBlock(nullptr);
  freeBlock(nullptr, 16);
  freeBlock(nullptr, kLargestBlock + 1);
}

/// Threads make pieces, others drop them, and some end in between: nobody's bytes change.
TEST(BlockMemory, PiecesTravelBetweenThreads) {
  std::mutex mutex;
  std::vector<Piece> shared;
  std::atomic<int> broken = 0;
  const auto work = [&](unsigned seed) {
    std::mt19937 random(seed);
    std::vector<Piece> own;
    for (int n = 0; n < 20000; ++n) {
      const size_t bytes = size_t{1} << random() % 15 | random() % 64;
      own.push_back(make(bytes, static_cast<unsigned char>(random())));
      if (random() % 2 == 0) {
        std::swap(own.back(), own[random() % own.size()]);
        const Piece piece = own.back();
        own.pop_back();
        if (!whole(piece)) ++broken;
        random() % 2 == 0 ? freeBlock(piece.at) : freeBlock(piece.at, piece.bytes);
      }
      if (n % 64 == 0) {
        const std::lock_guard lock(mutex);
        std::swap(own, shared);
      }
    }
    const std::lock_guard lock(mutex);
    shared.insert(shared.end(), own.begin(), own.end());
  };
  for (unsigned round = 0; round < 3; ++round) {
    std::vector<std::thread> threads;
    for (unsigned n = 0; n < 4; ++n) threads.emplace_back(work, round * 4 + n);
    for (std::thread& thread : threads) thread.join();
  }
  for (const Piece& piece : shared) {
    if (!whole(piece)) ++broken;
    freeBlock(piece.at);
  }
  EXPECT_EQ(broken, 0);
}

}  // namespace
}  // namespace carina
