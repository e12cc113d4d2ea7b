// SPDX-License-Identifier: Apache-2.0
// Profiles in ExecuTorch's format contain the given runs and events, at the field numbers of its schema.
#include "pte/etdump.hpp"

#include <gtest/gtest.h>

#include "pte/schema.hpp"

namespace carina::pte {
namespace {

TEST(EtDump, HoldsRunsAndEvents) {
  const std::vector<ProfiledRun> runs = {
      {"Execute", -1, {{"native_call_add.out", 3, "", 10, 25}, {"NPU DMA", 4, "0x148", 30, 31}}},
      {"Execute", 2, {}}};
  const std::string file = writeEtDump(runs);
  const auto* bytes = reinterpret_cast<const uint8_t*>(file.data());
  ASSERT_EQ(flatbuffers::GetPrefixedSize(bytes) + 4, file.size());
  EXPECT_EQ(file.substr(8, 4), "ED00");
  flatbuffers::Verifier verifier(bytes, file.size());
  ASSERT_TRUE(verifier.VerifySizePrefixedBuffer<fb::etdump::DumpRoot>("ED00"));
  const auto* root = flatbuffers::GetSizePrefixedRoot<fb::etdump::DumpRoot>(bytes);
  ASSERT_EQ(root->runs()->size(), 2u);
  EXPECT_EQ(root->runs()->Get(1)->bundled_case(), 2);
  const auto* run = root->runs()->Get(0);
  EXPECT_EQ(run->name()->str(), "Execute");
  EXPECT_EQ(run->bundled_case(), -1);
  ASSERT_EQ(run->events()->size(), 2u);
  const auto* first = run->events()->Get(0)->profile();
  EXPECT_EQ(first->name()->str(), "native_call_add.out");
  EXPECT_EQ(first->instruction(), 3);
  EXPECT_EQ(first->start(), 10u);
  EXPECT_EQ(first->end(), 25u);
  EXPECT_EQ(first->delegate_text(), nullptr);
  EXPECT_EQ(run->events()->Get(1)->profile()->delegate_text()->str(), "0x148");
}

}  // namespace
}  // namespace carina::pte
