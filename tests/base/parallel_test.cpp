// SPDX-License-Identifier: Apache-2.0
#include "base/parallel.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <new>
#include <numeric>
#include <thread>
#include <vector>

namespace carina {
namespace {

TEST(Parallel, EachIndexIsVisitedOnce) {
  for (const Pieces pieces : {Pieces::Adaptive, Pieces::Smallest}) {
    for (const size_t count : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> visits(count);
      parallelFor(
          count, [&](size_t i) { ++visits[i]; }, pieces);
      EXPECT_TRUE(std::all_of(visits.begin(), visits.end(), [](const auto& n) { return n == 1; })) << count;
    }
  }
}

TEST(Parallel, RangesCoverTheLoop) {
  for (const size_t count : {0, 1, 63, 64, 65, 10000}) {
    std::atomic<size_t> sum = 0, calls = 0;
    parallelRanges(count, 64, [&](size_t begin, size_t end) {
      EXPECT_LT(begin, end);
      for (size_t i = begin; i < end; ++i) sum += i + 1;
      ++calls;
    });
    EXPECT_EQ(sum, count * (count + 1) / 2);
    if (count <= 64) {
      EXPECT_EQ(calls, count > 0 ? 1 : 0);
    }
  }
}

TEST(Parallel, WithoutThreadsIndicesComeInOrderOnTheCallingThread) {
  std::vector<size_t> order;
  const auto caller = std::this_thread::get_id();
  parallelForIf(false, 100, [&](size_t i) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    order.push_back(i);
  });
  std::vector<size_t> expected(100);
  std::iota(expected.begin(), expected.end(), size_t{0});
  EXPECT_EQ(order, expected);
}

TEST(Parallel, AnExceptionReachesTheCallerAndCutsNoInnerLoopShort) {
  std::atomic<bool> started = false;
  std::atomic<int> done = 0;
  constexpr int kSteps = 1000;
  const auto outer = [&](size_t i) {
    if (i == 0) {  // fails while the other call, if there is a second thread, is in its loop
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
      while (!started && std::chrono::steady_clock::now() < end) std::this_thread::yield();
      throw std::bad_alloc();
    }
    parallelFor(kSteps, [&](size_t) {
      started = true;
      ++done;
      std::this_thread::sleep_for(std::chrono::microseconds(10));
    });
    EXPECT_EQ(done, kSteps);
  };
  EXPECT_THROW(parallelFor(2, outer, Pieces::Smallest), std::bad_alloc);
}

}  // namespace
}  // namespace carina
