// SPDX-License-Identifier: Apache-2.0
// operator new and delete of the program: this test is linked with apps/carina/allocation.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <random>
#include <set>
#include <thread>
#include <vector>

namespace {

struct Block {
  unsigned char* memory;
  std::size_t bytes;
  unsigned char mark;
};

Block take(std::size_t bytes, unsigned char mark) {
  auto* const memory = static_cast<unsigned char*>(::operator new(bytes));
  std::memset(memory, mark, bytes);
  return {memory, bytes, mark};
}

bool isIntact(const Block& block) {
  return std::all_of(block.memory, block.memory + block.bytes,
                     [&](unsigned char byte) { return byte == block.mark; });
}

TEST(Allocation, LiveObjectsDoNotOverlap) {
  std::mt19937 random(1);
  std::vector<Block> blocks;
  for (int step = 0; step < 50'000; ++step) {
    if (blocks.size() < 200 || random() % 2 == 0) {
      blocks.push_back(take(1 + random() % 1100, static_cast<unsigned char>(random())));
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(blocks.back().memory) % 16, 0u);
      continue;
    }
    std::swap(blocks[random() % blocks.size()], blocks.back());
    ASSERT_TRUE(isIntact(blocks.back())) << blocks.back().bytes << " bytes";
    ::operator delete(blocks.back().memory, blocks.back().bytes);
    blocks.pop_back();
  }
  for (const Block& block : blocks) {
    EXPECT_TRUE(isIntact(block)) << block.bytes << " bytes";
    ::operator delete(block.memory, block.bytes);
  }
}

// Sizes are rounded up to one of 32 classes: an object freed with one size may be reused for another.
TEST(Allocation, AFreedObjectServesAllSizesOfItsClass) {
  for (const std::size_t bytes : {1u, 15u, 16u, 17u, 31u, 32u, 497u, 511u, 512u, 513u}) {
    const std::size_t largest = (bytes + 15) / 16 * 16;
    Block first = take(bytes, 1);
    ::operator delete(first.memory, first.bytes);
    const Block second = take(largest, 2), third = take(largest, 3);
    EXPECT_TRUE(isIntact(second) && isIntact(third)) << bytes;
    ::operator delete(second.memory, second.bytes);
    ::operator delete(third.memory, third.bytes);
  }
}

TEST(Allocation, EveryFormOfNewMatchesItsDelete) {
  for (const std::size_t bytes : {0u, 1u, 40u, 512u, 513u, 5000u}) {
    ::operator delete(::operator new(bytes));
    ::operator delete[](::operator new[](bytes));
    ::operator delete(::operator new(bytes, std::nothrow));
    if (bytes > 0) ::operator delete(::operator new(bytes, std::nothrow), bytes);
    ::operator delete[](::operator new[](bytes, std::nothrow));
    void* const aligned = ::operator new (bytes, std::align_val_t{64});
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(aligned) % 64, 0u);
    ::operator delete (aligned, bytes, std::align_val_t{64});
  }
  ::operator delete(nullptr, 16);
}

// Free objects belong to the thread that freed them.
TEST(Allocation, ObjectsAreFreedOnOtherThreads) {
  constexpr int kThreads = 4, kObjects = 3000;
  std::vector<std::vector<Block>> made(kThreads);
  const auto onThreads = [](const auto& body) {
    std::vector<std::thread> threads;
    threads.reserve(kThreads);
    for (int t = 0; t < kThreads; ++t) threads.emplace_back(body, t);
    for (std::thread& thread : threads) thread.join();
  };
  for (int round = 0; round < 5; ++round) {
    onThreads([&](int t) {
      for (int n = 0; n < kObjects; ++n)
        made[static_cast<std::size_t>(t)].push_back(
            take(static_cast<std::size_t>(1 + n % 600), static_cast<unsigned char>(t * 50 + n)));
    });
    std::set<const unsigned char*> places;
    for (const auto& blocks : made) {
      for (const Block& block : blocks) EXPECT_TRUE(places.insert(block.memory).second);
    }
    std::vector<int> damaged(kThreads);
    onThreads([&](int t) {
      for (const Block& block : made[static_cast<std::size_t>((t + 1) % kThreads)]) {
        damaged[static_cast<std::size_t>(t)] += isIntact(block) ? 0 : 1;
        ::operator delete(block.memory, block.bytes);
      }
    });
    EXPECT_EQ(damaged, std::vector<int>(kThreads));
    for (auto& blocks : made) blocks.clear();
  }
}

// A thread keeps at most 64 KiB of freed objects per size and returns the rest to the allocator.
TEST(Allocation, ManyFreedObjectsAreReused) {
  constexpr std::size_t kBytes = 64, kCount = 5000;
  std::vector<Block> blocks;
  for (int round = 0; round < 3; ++round) {
    for (std::size_t n = 0; n < kCount; ++n) blocks.push_back(take(kBytes, static_cast<unsigned char>(n)));
    for (const Block& block : blocks) {
      EXPECT_TRUE(isIntact(block));
      ::operator delete(block.memory, kBytes);
    }
    blocks.clear();
  }
}

TEST(Allocation, OversizedRequestsThrowOrReturnNull) {
  constexpr std::size_t kTooMuch = PTRDIFF_MAX / 2;
  volatile std::size_t bytes = kTooMuch;  // hidden from the compiler
  EXPECT_THROW(::operator delete(::operator new(bytes)), std::bad_alloc);
  EXPECT_EQ(::operator new(bytes, std::nothrow), nullptr);
}

}  // namespace
