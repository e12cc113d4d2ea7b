// SPDX-License-Identifier: Apache-2.0
// Sampling at the positions of a grid, and bicubic resizing: against PyTorch's values.
#include "aten/compare.hpp"
#include "aten/one_op.hpp"

namespace carina::aten::test {
namespace {

const Tensor kPlane = Tensor::from<float>({1, 1, 3, 3}, {1, -2, 3, 4, 5, -6, 7, 8, 9});

struct GridCase {
  const char *interpolation, *padding;
  std::vector<float> want;
};

TEST(Sampling, PlanesAtPositionsInsideAndOutside) {
  const Tensor grid = Tensor::from<float>({1, 1, 4, 2}, {-1.2f, 0.3f, 0.4f, -0.9f, 0, 0, 1.5f, 0.7f});
  const GridCase cases[] = {{"0", "0", {1.07f, 0.6499997f, 5, 0}},
                            {"0", "2", {5.35f, 0.9999995f, 5, 8.75f}},
                            {"2", "0", {1.0593432f, 1.1646379f, 5, -0.9654444f}},
                            {"2", "2", {5.4687147f, 1.2712426f, 5, 9.2461157f}}};
  for (const GridCase& c : cases) {
    const Tensor got = run(
        "aten.grid_sampler.default", {kPlane, grid},
        {{"interpolation_mode", c.interpolation}, {"padding_mode", c.padding}, {"align_corners", "False"}});
    EXPECT_TRUE(close(got, Tensor::from({1, 1, 1, 4}, c.want))) << c.interpolation << " " << c.padding;
  }
}

TEST(Sampling, Volumes) {
  const Tensor volume = Tensor::from<float>({1, 1, 2, 2, 2}, {0, -1, 2, -3, 4, -5, 6, -7});
  const Tensor grid = Tensor::from<float>({1, 1, 1, 2, 3}, {-1.2f, 0.3f, 0.5f, 0.4f, -0.9f, -0.4f});
  EXPECT_TRUE(close(run("aten.grid_sampler.default", {volume, grid},
                        {{"interpolation_mode", "0"}, {"padding_mode", "0"}, {"align_corners", "True"}}),
                    Tensor::from<float>({1, 1, 1, 1, 2}, {3.87f, -1.22f})));
  EXPECT_EQ(
      values<float>(run("aten.grid_sampler.default", {volume, grid},
                        {{"interpolation_mode", "1"}, {"padding_mode", "1"}, {"align_corners", "False"}})),
      (std::vector<float>{6, -1}));
}

TEST(Sampling, CubicResizing) {
  EXPECT_TRUE(close(run("aten.upsample_bicubic2d.vec", {Tensor::from<float>({1, 1, 1, 4}, {1, -2, 3, 0})},
                        {{"output_size", "[1,3]"}, {"align_corners", "False"}, {"scale_factors", "None"}}),
                    Tensor::from<float>({1, 1, 1, 3}, {.4826388f, .5f, .5173599f})));
}

}  // namespace
}  // namespace carina::aten::test
