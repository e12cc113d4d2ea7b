// SPDX-License-Identifier: Apache-2.0
// Dilations beyond the hardware's become convolutions over every n-th position: how many there are, and that
// the sums are exact.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/program_runner.hpp"
#include "compiler/tosa_graphs.hpp"

namespace carina::test {
namespace {

/// A convolution; `pad`: top, bottom, left, right.
struct DilationCase {
  Shape input;
  ir::Ints kernel, dilation, stride, pad;
};

ir::Graph graphOf(const DilationCase& c, bool depthwise, uint64_t seed = 1) {
  TosaBuilder b(seed);
  ir::Value* x = b.input(DType::Int8, c.input);
  ir::Value* y = depthwise ? b.depthwise(x, c.kernel, c.stride, c.pad, 5, 1, c.dilation)
                           : b.conv(x, 9, c.kernel, c.stride, c.pad, 5, c.dilation);
  return b.finish({b.rescalePerChannel(y, DType::Int8, 40, 3)});
}

size_t count(const DilationCase& c) {
  return operations(graphOf(c, false), "ethos-u85-256").size();
}

TEST(Dilation, CausalOneDimensionalConvolutionsStayOne) {
  for (const int64_t d : {4, 8, 16}) {
    EXPECT_EQ(count({{1, 1, 64, 8}, {1, 3}, {1, d}, {1, 1}, {0, 0, 2 * d, 0}}), 1u) << d;
    EXPECT_EQ(count({{1, 64, 1, 8}, {3, 1}, {d, 1}, {1, 1}, {d, d, 0, 0}}), 1u) << d;
  }
  // 50 positions are 12 rows of 4, and two columns with one more row.
  EXPECT_EQ(count({{1, 1, 50, 8}, {1, 3}, {1, 4}, {1, 1}, {0, 0, 8, 0}}), 2u);
}

TEST(Dilation, FeatureMapsTakeOneConvolutionPerResidue) {
  // The hardware's dilation of 2 halves the residues on each axis.
  EXPECT_EQ(count({{1, 16, 16, 8}, {3, 3}, {4, 4}, {1, 1}, {4, 4, 4, 4}}), 4u);
  EXPECT_EQ(count({{1, 16, 16, 8}, {3, 3}, {3, 3}, {1, 1}, {3, 3, 3, 3}}), 9u);
  EXPECT_EQ(count({{1, 16, 16, 8}, {3, 3}, {2, 6}, {1, 1}, {2, 2, 6, 6}}), 3u);
  // A stride of 2 needs only every second position.
  EXPECT_EQ(count({{1, 17, 17, 8}, {3, 3}, {4, 4}, {2, 2}, {4, 4, 4, 4}}), 1u);
}

TEST(Dilation, TapsThatSeeOnlyPaddingAreRemoved) {
  // Only the middle tap of the 3x3 kernel reads the feature map.
  EXPECT_EQ(count({{1, 8, 8, 8}, {3, 3}, {18, 18}, {1, 1}, {18, 18, 18, 18}}), 1u);
}

TEST(Dilation, SumsAreExact) {
  const std::vector<DilationCase> cases{
      {{1, 1, 64, 8}, {1, 3}, {1, 16}, {1, 1}, {0, 0, 32, 0}},
      {{1, 1, 50, 7}, {1, 3}, {1, 4}, {1, 1}, {0, 0, 3, 6}},
      {{1, 50, 1, 20}, {4, 1}, {5, 1}, {2, 1}, {7, 7, 0, 0}},
      {{1, 1, 42, 16}, {1, 2}, {1, 9}, {1, 4}, {0, 0, 0, 0}},
      {{1, 13, 11, 16}, {3, 3}, {4, 4}, {1, 1}, {4, 4, 4, 4}},
      {{1, 13, 11, 5}, {2, 3}, {3, 5}, {1, 1}, {1, 2, 7, 0}},
      {{1, 17, 18, 16}, {3, 3}, {4, 6}, {2, 3}, {3, 3, 5, 5}},
      {{1, 9, 9, 16}, {3, 3}, {2, 7}, {1, 1}, {2, 2, 7, 7}},
      {{1, 8, 6, 8}, {3, 3}, {18, 18}, {1, 1}, {18, 18, 18, 18}},
      {{1, 8, 6, 8}, {3, 3}, {7, 5}, {1, 1}, {9, 9, 5, 5}},
      // Some positions see only padding: 3 inputs, two taps 5 apart.
      {{1, 1, 3, 4}, {1, 2}, {1, 5}, {1, 1}, {0, 0, 4, 4}},
      {{1, 3, 3, 4}, {2, 2}, {5, 5}, {1, 1}, {4, 4, 4, 4}},
  };
  const char* const targets[] = {"ethos-u55-128", "ethos-u65-512", "ethos-u85-256", "ethos-u85-1024"};
  uint64_t seed = 1;
  for (const DilationCase& c : cases) {
    for (const bool depthwise : {false, true}) {
      const ir::Graph graph = graphOf(c, depthwise, ++seed);
      const auto inputs = randomInputs(graph, seed);
      for (const char* target : targets) {
        EXPECT_EQ(differences(graph, target, "", inputs), "") << seed << (depthwise ? " depthwise" : "");
      }
    }
  }
}

}  // namespace
}  // namespace carina::test
