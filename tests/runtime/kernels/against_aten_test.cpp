// SPDX-License-Identifier: Apache-2.0
// Compares every kernel with the float executor on random cases.
#include "aten/compare.hpp"
#include "runtime/kernels/cases.hpp"

namespace carina::rt::test {
namespace {

class EveryKernel : public ::testing::TestWithParam<std::string> {};

std::vector<std::string> names() {
  std::vector<std::string> list;
  for (const KernelInfo& info : kernelInfos()) list.emplace_back(info.name);
  return list;
}
std::string testName(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
}

KernelFunction functionOf(const std::string& name) {
  for (const Kernel& kernel : allKernels()) {
    if (name == kernel.name) return kernel.run;
  }
  return nullptr;
}

KernelCase caseOf(const std::string& kernel, Random& random) {
  const auto found = generators().find(kernel);
  if (found == generators().end()) return {};
  return found->second(kernel, random);
}

TEST_P(EveryKernel, MatchesTheReference) {
  ASSERT_TRUE(generators().contains(GetParam())) << "no test calls this kernel";
  int served = 0;
  for (uint32_t seed = 0; seed < 80; ++seed) {
    Random random(seed * 7919 + 1);
    KernelCase sample = caseOf(GetParam(), random);
    ASSERT_FALSE(HasFailure()) << sample.text;
    const Status status = sample.call.run(functionOf(GetParam()));
    ASSERT_TRUE(sample.call.guardsHold()) << sample.text;
    if (sample.refused) {
      ASSERT_FALSE(status.ok()) << sample.text << " is refused by the reference";
      continue;
    }
    ASSERT_TRUE(status.ok()) << sample.text << ": " << status.what << " at " << status.where;
    for (size_t i = 0; i < sample.expected.size(); ++i) {
      if (sample.tolerance != 0) {
        const carina::Tensor result = sample.call.result(i);
        for (int64_t e = 0; e < result.numElements(); ++e)
          ASSERT_LE(std::abs(result.integerAt(e) - sample.expected[i].integerAt(e)), sample.tolerance)
              << sample.text;
        continue;
      }
      ASSERT_TRUE(aten::test::close(sample.call.result(i), sample.expected[i]))
          << sample.text << " seed " << seed;
    }
    ++served;
  }
  EXPECT_GT(served, 40);
}

INSTANTIATE_TEST_SUITE_P(Kernels, EveryKernel, ::testing::ValuesIn(names()), testName);

}  // namespace
}  // namespace carina::rt::test
