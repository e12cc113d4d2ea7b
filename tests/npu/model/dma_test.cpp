// SPDX-License-Identifier: Apache-2.0
// Random DMA transfers of every mode, compared with addresses computed from the description. Run i of group g
// begins at base + (g * SIZE0 + i) * (LEN + SKIP0) + g * SKIP1 on U65 (a side without strides is contiguous),
// at base + g * STRIDE1 + i * STRIDE0 on U85, where an indexed side uses its index instead of i.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstring>
#include <random>

#include "npu/isa/stream.hpp"
#include "npu/model/model.hpp"

namespace carina::test {
namespace {

using namespace npu;

constexpr size_t kRegion = 8192;
constexpr uint64_t kMiddle = kRegion / 2;  // from here, strides of either sign stay in the region

struct Case {
  DmaOperation dma;
  std::vector<int32_t> indices;  // one per run and group; empty if not indexed

  uint64_t at(const DmaEnd& end, bool u65, int dimensions, int64_t g, int64_t i) const {
    const int64_t run = g * dma.size0 + i;
    int64_t offset = 0;
    if (u65) {
      offset = run * static_cast<int64_t>(dma.length);
      if (dimensions >= 2) offset += run * end.stride0;
      if (dimensions >= 3) offset += g * end.stride1;
    } else {
      const int64_t step = end.indexed ? indices[static_cast<size_t>(run)] : i;
      offset = g * end.stride1 + step * end.stride0;
    }
    return end.address + static_cast<uint64_t>(offset);
  }
};

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  int in(int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine_); }
  bool coin() { return in(0, 1) == 1; }

 private:
  std::mt19937 engine_;
};

Case randomCase(Random& random, Family family) {
  Case result;
  DmaOperation& dma = result.dma;
  dma.source.region = 0;
  dma.destination.region = 1;
  dma.length = static_cast<uint64_t>(family == Family::U55 ? 16 * random.in(1, 8) : random.in(1, 24));
  dma.source.address = dma.destination.address = kMiddle;
  if (family == Family::U55) return result;
  dma.dimensions = static_cast<uint8_t>(random.in(1, 3));
  dma.destinationDimensions = family == Family::U65 ? static_cast<uint8_t>(random.in(1, 3)) : 1;
  const int dimensions = std::max(dma.dimensions, dma.destinationDimensions);
  if (dimensions >= 2) dma.size0 = random.in(1, 6);
  if (dimensions >= 3) dma.size1 = random.in(1, 4);
  for (DmaEnd* end : {&dma.source, &dma.destination}) {
    end->stride0 = random.in(-40, 40);
    end->stride1 = random.in(-60, 60);
  }
  if (family == Family::U65) {  // one pair of SKIP registers for both sides
    dma.source.stride0 = dma.destination.stride0;
    dma.source.stride1 = dma.destination.stride1;
  }
  if (family == Family::U85 && random.coin()) {
    (random.coin() ? dma.source : dma.destination).indexed = true;
    if (dma.dimensions == 1) dma.dimensions = 2;
    dma.indexRegion = 2;
    dma.indexMax = random.in(0, 9);
    dma.indexAddress = 64;
    dma.indexSkip1 = dma.dimensions == 3 ? 4 * random.in(0, 2) : 0;
    for (int64_t n = 0; n < int64_t{dma.size0} * dma.size1; ++n) {
      result.indices.push_back(random.in(0, static_cast<int>(dma.indexMax)));
    }
  }
  return result;
}

void checkCase(const char* target, uint32_t seed) {
  auto machine = makeMachine(target, "", "");
  ASSERT_TRUE(machine.ok());
  Random random(seed);
  const Family family = machine->target->family;
  const Case tested = randomCase(random, family);
  const DmaOperation& dma = tested.dma;
  std::vector<std::byte> source(kRegion), destination(kRegion), index(1024);
  for (std::byte& byte : source) byte = static_cast<std::byte>(random.in(0, 255));
  for (std::byte& byte : destination) byte = static_cast<std::byte>(random.in(0, 255));
  std::vector<std::byte> expected = destination;
  uint64_t indexAt = dma.indexAddress;
  for (int64_t g = 0; g < dma.size1; ++g) {
    for (int64_t i = 0; i < dma.size0; ++i) {
      if (!tested.indices.empty()) {
        std::memcpy(index.data() + indexAt, &tested.indices[static_cast<size_t>(g * dma.size0 + i)], 4);
        indexAt += 4;
      }
      const bool u65 = family == Family::U65;
      const uint64_t from = tested.at(dma.source, u65, dma.dimensions, g, i);
      const uint64_t to = tested.at(dma.destination, u65, dma.destinationDimensions, g, i);
      std::memcpy(expected.data() + to, source.data() + from, dma.length);
    }
    indexAt += static_cast<uint64_t>(dma.indexSkip1);
  }
  StreamWriter writer(*machine->target);
  ASSERT_TRUE(writer.add(dma).ok());
  ASSERT_TRUE(writer.add(Stop{}).ok());
  const RegionBytes regions[] = {{source, false}, {destination, true}, {index, false}};
  const RunResult run = runStream(writer.words(), *machine, regions);
  ASSERT_TRUE(run.ok()) << run.fault->str();
  EXPECT_TRUE(destination == expected);
}

RC_GTEST_PROP(ModelDma, TransfersMatchTheDescription, ()) {
  const auto seed = *rc::gen::arbitrary<uint32_t>();
  for (const char* target : {"ethos-u55-64", "ethos-u65-512", "ethos-u85-256"}) {
    checkCase(target, seed);
    RC_ASSERT(!testing::Test::HasFailure());
  }
}

}  // namespace
}  // namespace carina::test
