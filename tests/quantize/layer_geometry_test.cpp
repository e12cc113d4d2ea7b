// SPDX-License-Identifier: Apache-2.0
// The columns of layers compared with the layers themselves.
#include "quantize/layer_geometry.hpp"

#include <gtest/gtest.h>

#include "aten/executor.hpp"
#include "small_network.hpp"

namespace carina::quantize {
namespace {

struct Case {
  const char* name;
  Shape input, weight;
  Ints stride, pad, dilation;
  int64_t groups = 1;
  Ints outputPad = {};  // if given: transposed
};
void PrintTo(const Case& layer, std::ostream* out) {
  *out << layer.name;
}

const Case kCases[] = {
    {"pointwise", {1, 5, 4, 6}, {3, 5, 1, 1}, {1, 1}, {0, 0}, {1, 1}},
    {"padded_strided_dilated", {2, 4, 15, 14}, {6, 4, 3, 2}, {2, 3}, {2, 1}, {2, 3}},
    {"kernel_larger_than_input", {1, 2, 3, 3}, {2, 2, 7, 5}, {1, 1}, {3, 2}, {1, 1}},
    {"inputs_left_over", {1, 2, 10, 11}, {2, 2, 2, 3}, {3, 4}, {0, 0}, {1, 1}},
    {"grouped", {2, 6, 7, 7}, {9, 2, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 3},
    {"depthwise", {1, 6, 8, 8}, {6, 1, 5, 5}, {2, 2}, {2, 2}, {1, 1}, 6},
    {"wider_than_vectors", {2, 19, 9, 37}, {19, 1, 3, 3}, {2, 1}, {1, 1}, {1, 1}, 19},
    {"narrower_than_vectors", {1, 11, 9, 13}, {4, 11, 3, 1}, {1, 1}, {1, 0}, {1, 1}},
    {"one_dimension", {2, 3, 40}, {4, 3, 5}, {2}, {3}, {2}},
    {"three_dimensions", {1, 2, 6, 7, 5}, {3, 2, 2, 3, 3}, {1, 2, 1}, {0, 1, 2}, {1, 1, 2}},
    {"linear", {3, 7, 5}, {4, 5}, {}, {}, {}},
    {"linear_of_one_row", {5}, {4, 5}, {}, {}, {}},
    {"transposed", {1, 4, 5, 6}, {4, 3, 3, 2}, {2, 3}, {1, 0}, {1, 1}, 1, {1, 2}},
    {"transposed_grouped_dilated", {2, 6, 5, 4}, {6, 2, 3, 3}, {1, 2}, {2, 1}, {2, 1}, 3, {0, 0}},
    {"transposed_in_one_dimension", {2, 3, 9}, {3, 2, 4}, {3}, {2}, {2}, 1, {2}},
};

/// The layer without bias, as its only node.
Value* build(Network& n, const Case& at) {
  Value* x = n.input(at.input);
  Value* weight = n.constant(at.weight, -1, 0.5f);
  if (at.stride.empty()) return n.make<aten::Linear>(x, weight, nullptr);
  const bool transposed = !at.outputPad.empty();
  return n.make<aten::Convolution>(x, weight, nullptr, at.stride, at.pad, at.dilation, transposed,
                                   transposed ? at.outputPad : Ints(at.stride.size(), 0), at.groups);
}

class LayerColumns : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    n.done(result = build(n, GetParam()));
    op = *asWeighted(*result->producer());
    geometry = geometryOf(op);
    x = ramp(GetParam().input, -1, 2);
    y = (*aten::execute(n.graph, std::array{x}))[0];
    channels = geometry.groups * geometry.outputs;
  }
  /// The channel of an element of the output, in the output's order.
  int64_t channelOf(int64_t element) const { return element / op.elementsPerChannel() % channels; }

  Network n;
  Value* result = nullptr;
  WeightedOp op;
  LayerGeometry geometry;
  Tensor x, y;
  int64_t channels = 0;
};

TEST_P(LayerColumns, ColumnMeansGiveOutputMeans) {
  std::vector<double> expected(static_cast<size_t>(channels));
  for (int64_t i = 0; i < y.numElements(); ++i)
    expected[static_cast<size_t>(channelOf(i))] += y.realAt(i) / static_cast<double>(geometry.positions);
  const std::vector<float> means = columnMeans(geometry, x.as<float>());
  ASSERT_EQ(static_cast<int64_t>(means.size()), geometry.groups * geometry.columns());
  const auto weights = op.weight->constant().as<float>();
  for (int64_t o = 0; o < channels; ++o) {
    const int64_t group = o / geometry.outputs;
    double mean = 0;
    for (int64_t c = 0; c < geometry.channels; ++c) {
      const int64_t row = geometry.transposed
                              ? (group * geometry.channels + c) * geometry.outputs + o % geometry.outputs
                              : o * geometry.channels + c;
      for (int64_t t = 0; t < geometry.taps; ++t)
        mean += static_cast<double>(weights[static_cast<size_t>(row * geometry.taps + t)]) *
                means[static_cast<size_t>(group * geometry.columns() + c * geometry.taps + t)];
    }
    EXPECT_NEAR(mean, expected[static_cast<size_t>(o)], 1e-5) << "channel " << o;
  }
}

TEST_P(LayerColumns, RowsTimesWeightsAreOutputs) {
  if (geometry.transposed) return;
  std::vector<int64_t> positions;
  for (int64_t p = 0; p < geometry.positions; p += 3) positions.push_back(p);
  const std::vector<Origin> origins = originsOf(geometry, positions);
  const auto weights = op.weight->constant().as<float>();
  const int64_t perImage = geometry.positions / geometry.images;
  std::vector<float> column(positions.size());
  for (int64_t o = 0; o < channels; ++o) {
    std::vector<double> sums(positions.size());
    for (int64_t c = 0; c < geometry.columns(); ++c) {
      const int64_t channel = o / geometry.outputs * geometry.channels + c / geometry.taps;
      gatherColumn(geometry, x.as<float>(), channel, offsetsOf(geometry, origins, c % geometry.taps),
                   column.data());
      for (size_t i = 0; i < column.size(); ++i)
        sums[i] += static_cast<double>(column[i]) * weights[static_cast<size_t>(o * geometry.columns() + c)];
    }
    for (size_t i = 0; i < positions.size(); ++i) {
      const bool linear = geometry.kernel.empty();
      const int64_t image = positions[i] / perImage, at = positions[i] % perImage;
      const int64_t element = linear ? positions[i] * channels + o : (image * channels + o) * perImage + at;
      EXPECT_NEAR(sums[i], y.realAt(element), 1e-5) << "channel " << o << ", position " << positions[i];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Layers, LayerColumns, testing::ValuesIn(kCases),
                         [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace carina::quantize
