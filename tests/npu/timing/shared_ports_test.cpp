// SPDX-License-Identifier: Apache-2.0
// Ports that kernels and transfers share: nothing goes through one faster than it can.
#include "npu/timing/shared_ports.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace carina::npu::timing {
namespace {

TEST(SharedPorts, ATransferDelaysTheKernelThatRuns) {
  // A kernel that keeps the second port busy, and a transfer of 300 cycles through it.
  SharedPorts ports;
  EXPECT_EQ(ports.kernel(0, 0, 1000, {0, 1000}), 1000);
  const auto transfer = ports.transfer(100, 400, {0, 300}, true);
  EXPECT_EQ(transfer.end, 700);
  EXPECT_EQ(transfer.kernelDelay, 300);
  EXPECT_EQ(ports.free(1), 1300);
}

TEST(SharedPorts, AKernelThatLeavesThePortTimeIsNotDelayed) {
  SharedPorts ports;
  EXPECT_EQ(ports.kernel(0, 0, 1000, {0, 600}), 1000);
  EXPECT_EQ(ports.transfer(0, 300, {0, 300}, true).kernelDelay, 0);
  EXPECT_EQ(ports.transfer(600, 900, {0, 300}, true).kernelDelay, 0);  // 900 of 1,000 cycles by now
}

TEST(SharedPorts, TheNextKernelWaitsForTheOneThatIsDelayed) {
  SharedPorts ports;
  ports.kernel(0, 0, 1000, {0, 1000});
  EXPECT_EQ(ports.kernel(1000, 1050, 1500, {0, 0}), 1500);  // 50 cycles behind it
  EXPECT_EQ(ports.transfer(100, 400, {0, 300}, true).kernelDelay, 250);
}

TEST(SharedPorts, ATransferThatIsLongerThanTheKernelHasThePortAlone) {
  SharedPorts ports;
  ports.kernel(0, 0, 200, {0, 200});
  const auto transfer = ports.transfer(100, 1100, {0, 1000}, true);
  EXPECT_EQ(transfer.kernelDelay, 100);  // half of the port for 200 cycles
  EXPECT_EQ(transfer.end, 1200);
}

TEST(SharedPorts, ATransferThatIsDoneBeforeTheKernelBeginsDelaysNothing) {
  SharedPorts ports;
  ports.kernel(500, 500, 900, {0, 400});  // placed before, but it waits for another
  EXPECT_EQ(ports.transfer(0, 300, {0, 300}, true).kernelDelay, 0);
  EXPECT_EQ(ports.transfer(300, 600, {0, 300}, true).kernelDelay, 100);
}

RC_GTEST_PROP(SharedPorts, NothingMovesFasterThanThePorts, ()) {
  SharedPorts ports;
  Cycles kernelEnd = 0, transferEnd = 0;
  SharedPorts::Work moved{};
  const int count = *rc::gen::inRange(1, 40);
  for (int i = 0; i < count; ++i) {
    const SharedPorts::Work work{*rc::gen::inRange<Cycles>(0, 300), *rc::gen::inRange<Cycles>(0, 300)};
    const Cycles rest = *rc::gen::inRange<Cycles>(0, 400);
    for (size_t port = 0; port < moved.size(); ++port) moved[port] += work[port];
    const Cycles least = std::max({work[0], work[1], rest});
    if (*rc::gen::arbitrary<bool>()) {
      const Cycles start = kernelEnd + *rc::gen::element<Cycles>(0, 0, 100);
      kernelEnd = ports.kernel(start, start, start + least, work);
      RC_ASSERT(kernelEnd >= start + least);
    } else {
      const Cycles start = std::max(transferEnd, *rc::gen::inRange<Cycles>(0, kernelEnd + 1));
      const auto placed = ports.transfer(start, start + least, work, *rc::gen::arbitrary<bool>());
      RC_ASSERT(placed.end >= start + least);
      RC_ASSERT(placed.kernelDelay >= 0);
      transferEnd = placed.end;
      kernelEnd += placed.kernelDelay;
    }
  }
  for (const Cycles port : moved) RC_ASSERT(std::max(kernelEnd, transferEnd) >= port);
}

}  // namespace
}  // namespace carina::npu::timing
