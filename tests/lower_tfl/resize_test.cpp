// SPDX-License-Identifier: Apache-2.0
// RESIZE_BILINEAR against the arithmetic of TensorFlow Lite's integer kernel: positions in units of 1/1024,
// sums rounded with halves away from zero.
#include <gtest/gtest.h>

#include <array>
#include <fstream>

#include "pipeline/operators.hpp"
#include "pipeline/run.hpp"
#include "support/require.hpp"
#include "support/temp_dir.hpp"
#include "tflite/file_builder.hpp"
#include "tflite/schema.hpp"

namespace carina {
namespace {

constexpr int32_t kBilinear = 23;
constexpr int64_t kOne = 1024;

struct ResizeCase {
  const char* name;
  int32_t inputs, outputs;
  bool alignCorners, halfPixel;
};

const ResizeCase kResizeCases[] = {
    {"twice", 8, 16, false, false},        {"twice_half_pixel", 8, 16, false, true},
    {"twice_aligned", 8, 15, true, false}, {"four_times_half_pixel", 5, 20, false, true},
    {"eight_times", 4, 32, false, false},  {"half", 12, 6, false, true},
};

/// The source of an output position: two rows and the weight of the second.
struct SourceRows {
  int64_t low = 0, high = 0, fraction = 0;
};
SourceRows rowsOf(const ResizeCase& c, int64_t output) {
  const int64_t from = c.alignCorners ? c.inputs - 1 : c.inputs,
                to = c.alignCorners ? c.outputs - 1 : c.outputs;
  const int64_t step = (kOne * from + to / 2) / to;
  const int64_t at = output * step + (c.halfPixel ? step / 2 - kOne / 2 : 0);
  const int64_t low = std::max<int64_t>(at / kOne, 0);
  return {low, std::min<int64_t>((at + kOne - 1) / kOne, c.inputs - 1), at - kOne * low};
}

Tensor resized(const ResizeCase& c, const Tensor& input, int64_t channels) {
  Tensor result = Tensor::uninitialized(input.dtype(), {1, c.outputs, c.outputs, channels});
  int64_t next = 0;
  for (int64_t y = 0; y < c.outputs; ++y) {
    for (int64_t x = 0; x < c.outputs; ++x) {
      const SourceRows down = rowsOf(c, y), across = rowsOf(c, x);
      for (int64_t i = 0; i < channels; ++i) {
        const auto at = [&](int64_t row, int64_t column) {
          return input.integerAt((row * c.inputs + column) * channels + i);
        };
        const int64_t upper =
            at(down.low, across.low) * (kOne - across.fraction) + at(down.low, across.high) * across.fraction;
        const int64_t lower = at(down.high, across.low) * (kOne - across.fraction) +
                              at(down.high, across.high) * across.fraction;
        const int64_t sum = upper * (kOne - down.fraction) + lower * down.fraction;
        constexpr int64_t kUnit = kOne * kOne;
        result.setIntegerAt(next++, (sum + (sum > 0 ? kUnit / 2 : -kUnit / 2)) / kUnit);
      }
    }
  }
  return result;
}

class ResizeBilinear : public testing::TestWithParam<ResizeCase> {};

/// Neighbours differ by all amounts, so that sums have all remainders.
TEST_P(ResizeBilinear, MatchesTheKernelsArithmetic) {
  const ResizeCase& c = GetParam();
  constexpr int32_t kChannels = 37;
  test::TfliteFile file;
  const std::array<int32_t, 2> sizes{c.outputs, c.outputs};
  file.tensors = {
      {"x", tflite::TensorType::Int8, {1, c.inputs, c.inputs, kChannels}, "", -1, {0.5F}, {-3}},
      {"sizes",
       tflite::TensorType::Int32,
       {2},
       std::string(reinterpret_cast<const char*>(sizes.data()), 8),
       -1,
       {},
       {}},
      {"y", tflite::TensorType::Int8, {1, c.outputs, c.outputs, kChannels}, "", -1, {0.5F}, {-3}}};
  tflite::fb::ResizeBilinearOptionsT options;
  options.align_corners = c.alignCorners;
  options.half_pixel_centers = c.halfPixel;
  file.operators = {{"", kBilinear, {0, 1}, {2}, test::optionsOf(options)}};
  file.inputs = {0};
  file.outputs = {2};
  Tensor input = Tensor::uninitialized(DType::Int8, {1, c.inputs, c.inputs, kChannels});
  uint32_t state = 1;
  for (int64_t n = 0; n < input.numElements(); ++n) {
    state = 1664525 * state + 1013904223;
    input.setIntegerAt(n, static_cast<int64_t>(state >> 24) - 128);
  }
  const test::TempDir folder;
  pipeline::Options build;
  build.model = folder.path() / "network.tflite";
  std::ofstream(build.model, std::ios::binary) << file.bytes();
  for (const char* target : {"ethos-u55-128", "ethos-u65-256", "ethos-u85-256"}) {
    build.target = target;
    pipeline::RunOptions run;
    run.file = folder.path() / "p.pte";
    require(pipeline::writeOutput(require(pipeline::build(build)), run.file));
    const Tensor output = require(pipeline::runFile(run, {{"in0", input}})).outputs.front().second;
    EXPECT_EQ(output, resized(c, input, kChannels)) << target;
  }
}

INSTANTIATE_TEST_SUITE_P(Ratios, ResizeBilinear, testing::ValuesIn(kResizeCases),
                         [](const auto& given) { return given.param.name; });

}  // namespace
}  // namespace carina
