// SPDX-License-Identifier: Apache-2.0
#include "ethosn/targets/variant.hpp"

#include <gmock/gmock.h>

#include "ethosn/stream/ple_kernels.hpp"

namespace carina::ethosn {
namespace {

using ::testing::HasSubstr;

TEST(EthosNVariant, NamesAreAcceptedInAnyCaseAndForm) {
  for (std::string_view name :
       {"ethos-n78-4tops-4ple", "ETHOS_N78_4TOPS_4PLE", "Ethos-N78_4TOPS_4PLE_RATIO"}) {
    auto variant = findVariant(name);
    ASSERT_TRUE(variant) << name;
    EXPECT_EQ((*variant)->name, "ethos-n78-4tops-4ple");
    EXPECT_EQ((*variant)->banks(), 16);
    EXPECT_EQ((*variant)->igs(), 16);
    EXPECT_EQ((*variant)->ogs(), 16);
  }
}

TEST(EthosNVariant, RetiredAndUnknownNamesSayWhy) {
  auto retired = findVariant("ethos-n77");
  ASSERT_FALSE(retired);
  EXPECT_THAT(retired.error().str(), HasSubstr("retired"));
  auto unknown = findVariant("ethos-n78-3tops");
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().str(), HasSubstr("ethos-n78-8tops-2ple"));
  EXPECT_TRUE(isEthosNName("Ethos-N57"));
  EXPECT_FALSE(isEthosNName("ethos-u55-128"));
}

TEST(EthosNVariant, ThreeHaveNoKernels) {
  int refused = 0;
  for (const Variant& variant : allVariants()) {
    const Status status = requireKernels(variant);
    if (status) continue;
    ++refused;
    EXPECT_THAT(Status(status).error().str(), HasSubstr("no PLE kernels"));
  }
  EXPECT_EQ(refused, 3);
}

TEST(EthosNVariant, SramSizesAreChecked) {
  const Variant& variant = **findVariant("ethos-n78-4tops-4ple");
  EXPECT_EQ(makeTarget(variant)->sramBytes, 1 << 20);
  EXPECT_EQ(makeTarget(variant, 512 << 10)->bankBytes(), 32 << 10);
  EXPECT_TRUE(makeTarget(variant, 16 * (56 << 10)));
  EXPECT_TRUE(makeTarget(variant, 16 * (256 << 10)));
  EXPECT_FALSE(makeTarget(variant, 16 * (31 << 10)));
  EXPECT_FALSE(makeTarget(variant, 16 * (144 << 10)));
  EXPECT_FALSE(makeTarget(variant, 16 * (40 << 10)));
  EXPECT_FALSE(makeTarget(variant, -1));
}

TEST(EthosNVariant, NameSuffixSetsTheSramSize) {
  const auto target = findTarget("Ethos-N78_4TOPS_4PLE:512k");
  ASSERT_TRUE(target) << target.error().str();
  EXPECT_EQ(target->sramBytes, 512 << 10);
  EXPECT_EQ(nameOf(*target), "ethos-n78-4tops-4ple:512K");
  EXPECT_EQ(nameOf(*findTarget("ethos-n78-8tops-2ple:2M")), "ethos-n78-8tops-2ple");
  EXPECT_EQ(findTarget("ethos-n78-1tops-4ple:262144")->sramBytes, 256 << 10);
  for (std::string_view wrong : {":", ":K", ":0", ":12Q", ":-5K", ":99999999999M", ":100K", ":3000000"})
    EXPECT_FALSE(findTarget("ethos-n78-4tops-4ple" + std::string(wrong))) << wrong;
}

TEST(EthosNVariant, CapabilitiesDescribeTheVariant) {
  const auto words = capabilities(*makeTarget(**findVariant("ethos-n78-4tops-4ple")));
  EXPECT_EQ(words[1], 120u);
  EXPECT_EQ(words[6], 0x100000u);
  EXPECT_EQ(words[7], 8u);
  EXPECT_EQ(words[8], 2u);
  EXPECT_EQ(words[26], 2u);
}

TEST(EthosNPleKernels, IdsRoundTrip) {
  for (uint16_t id = 0; id < 4 * kPleKernelsPerFamily; ++id) {
    const auto known = pleKernel(id);
    ASSERT_TRUE(known);
    EXPECT_EQ(pleKernelId(known->family, known->kernel), id) << pleKernelName(id);
  }
  EXPECT_FALSE(pleKernel(4 * kPleKernelsPerFamily));
}

TEST(EthosNPleKernels, PublishedIds) {
  EXPECT_EQ(pleKernelName(262), "V8222 PASSTHROUGH 8x8 x2");
  EXPECT_EQ(pleKernelName(14), "V2442 INTERLEAVE_2X2_2_2 16x16");
  EXPECT_EQ(pleKernelName(99 + 56), "V4442 MEAN_XY_8X8 8x8 s8");
  EXPECT_EQ(pleKernelName(297 + 94), "V8422 MAXPOOL1D y u8");
  EXPECT_EQ(pleKernelName(98), "V2442 MULTIPLICATION s8");
}

}  // namespace
}  // namespace carina::ethosn
