// SPDX-License-Identifier: Apache-2.0
// Every lowering rule on small graphs: TOSA interpreter against the fake-quant executor, and what it costs in
// transposes.
#include <gtest/gtest.h>

#include "aten/ops.hpp"
#include "lower_case.hpp"

namespace carina::lower::test {
namespace {

class Lower : public testing::TestWithParam<Case> {};

TEST_P(Lower, EqualsFakeQuantInInt8) {
  check(GetParam(), {});
}

TEST_P(Lower, EqualsFakeQuantWithWeightsPerTensor) {
  quantize::Options options;
  options.perChannelWeights = false;
  options.observer = quantize::ObserverKind::MinMax;
  check(GetParam(), options);
}

const Case kConvolutions[] = {
    {"conv",
     [](Network& n) {
       return n.conv(n.input({1, 3, 8, 8}), {6, 3, 3, 3}, {1, 1}, {1, 1});
     },
     2},
    {"conv_one_channel_in",
     [](Network& n) {
       return n.conv(n.input({1, 1, 8, 8}), {6, 1, 3, 3}, {1, 1}, {1, 1});
     },
     1},
    {"conv_no_bias",
     [](Network& n) {
       return n.conv(n.input({1, 3, 8, 8}), {6, 3, 3, 3}, {1, 1}, {0, 0}, {1, 1}, 1, false);
     }},
    {"conv_leftover_from_padding",
     [](Network& n) {
       return n.conv(n.input({1, 3, 8, 9}), {4, 3, 3, 3}, {2, 2}, {1, 1});
     }},
    {"conv_leftover_from_input",
     [](Network& n) {
       return n.conv(n.input({1, 3, 9, 10}), {4, 3, 2, 2}, {3, 3}, {0, 0});
     }},
    {"conv_dilated",
     [](Network& n) {
       return n.conv(n.input({1, 2, 9, 9}), {4, 2, 3, 3}, {1, 1}, {2, 2}, {2, 2});
     }},
    {"conv_batch",
     [](Network& n) {
       return n.conv(n.input({3, 2, 5, 5}), {4, 2, 3, 3}, {1, 1}, {1, 1});
     }},
    {"conv_unbatched",
     [](Network& n) {
       return n.conv(n.input({2, 5, 5}), {4, 2, 3, 3}, {1, 1}, {1, 1});
     }},
    {"depthwise",
     [](Network& n) {
       return n.conv(n.input({1, 6, 8, 8}), {6, 1, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 6);
     },
     2},
    {"depthwise_multiplier",
     [](Network& n) {
       return n.conv(n.input({1, 3, 8, 8}), {6, 1, 3, 3}, {2, 2}, {1, 1}, {1, 1}, 3);
     }},
    {"grouped",
     [](Network& n) {
       return n.conv(n.input({1, 4, 6, 6}), {6, 2, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 2);
     },
     2},
    {"conv_relu",
     [](Network& n) {
       return n.relu(n.conv(n.input({1, 3, 8, 8}), {6, 3, 3, 3}, {1, 1}, {1, 1}));
     },
     2},
    {"conv_relu6",
     [](Network& n) {
       return aten::Relu6::create(n.b, n.conv(n.input({1, 3, 8, 8}), {6, 3, 3, 3}, {1, 1}, {1, 1})).output();
     }},
    {"conv_hardtanh",
     [](Network& n) {
       Value* x = n.conv(n.input({1, 3, 8, 8}), {6, 3, 3, 3}, {1, 1}, {1, 1});
       return aten::Hardtanh::create(n.b, x, -0.5, 0.75).output();
     }},
    {"conv1d",
     [](Network& n) {
       return aten::Conv1d::create(n.b, n.input({1, 3, 16}), n.weight({4, 3, 5}), n.weight({4}), Ints{2},
                                   Ints{2}, Ints{1}, 1)
           .output();
     }},
    {"conv2d_same",
     [](Network& n) {
       return aten::Conv2dPadding::create(n.b, n.input({1, 3, 7, 7}), n.weight({4, 3, 4, 3}), n.weight({4}),
                                          Ints{1, 1}, "same", Ints{1, 1}, 1)
           .output();
     }},
    {"conv3d",
     [](Network& n) {
       return aten::Conv3d::create(n.b, n.input({1, 2, 4, 5, 5}), n.weight({3, 2, 3, 3, 3}), n.weight({3}),
                                   Ints{1, 1, 1}, Ints{1, 1, 1}, Ints{1, 1, 1}, 1)
           .output();
     }},
    {"conv_transpose",
     [](Network& n) {
       return aten::ConvTranspose2dInput::create(n.b, n.input({1, 3, 5, 5}), n.weight({3, 4, 3, 3}),
                                                 n.weight({4}), Ints{2, 2}, Ints{1, 1}, Ints{1, 1}, 1,
                                                 Ints{1, 1})
           .output();
     }},
    {"conv_transpose_dilated",
     [](Network& n) {
       return aten::ConvTranspose2dInput::create(n.b, n.input({1, 2, 5, 5}), n.weight({2, 3, 2, 2}),
                                                 n.weight({3}), Ints{1, 1}, Ints{0, 0}, Ints{0, 0}, 1,
                                                 Ints{2, 2})
           .output();
     }},
    {"conv_transpose3d",
     [](Network& n) {
       return aten::ConvTranspose3dInput::create(n.b, n.input({1, 4, 3, 4, 4}), n.weight({4, 2, 3, 3, 3}),
                                                 n.weight({4}), Ints{2, 2, 1}, Ints{1, 0, 1}, Ints{1, 0, 0},
                                                 2, Ints{1, 1, 1})
           .output();
     }},
    {"residual",
     [](Network& n) {
       Value* x = n.relu(n.conv(n.input({1, 3, 8, 8}), {4, 3, 3, 3}, {1, 1}, {1, 1}));
       return n.relu(n.add(n.conv(x, {4, 4, 3, 3}, {1, 1}, {1, 1}), x));
     },
     2},
    {"linear",
     [](Network& n) {
       return aten::Linear::create(n.b, n.input({2, 12}), n.weight({5, 12}), n.weight({5})).output();
     },
     0},
    {"linear_rows",
     [](Network& n) {
       return aten::Linear::create(n.b, n.input({2, 3, 12}), n.weight({5, 12}), nullptr).output();
     }},
    {"flatten_linear",  // the weight's columns follow the channel-last data: only the input is transposed
     [](Network& n) {
       Value* x = n.relu(n.conv(n.input({1, 3, 6, 6}), {4, 3, 3, 3}, {1, 1}, {1, 1}));
       x = aten::FlattenUsingInts::create(n.b, x, int64_t{1}, int64_t{-1}).output();
       return aten::Linear::create(n.b, x, n.weight({5, 4 * 36}), n.weight({5})).output();
     },
     1},
    {"batch_norm_folded",
     [](Network& n) {
       Value* x = n.conv(n.input({1, 3, 6, 6}), {4, 3, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 1, false);
       Value* variance = n.graph.addConstant(Tensor::from(Shape{4}, std::vector<float>{0.5f, 1, 2, 0.1f}));
       return n.relu(aten::BatchNorm::create(n.b, x, n.weight({4}), n.weight({4}), n.weight({4}), variance,
                                             false, 0.1, 1e-5, false)
                         .output());
     }},
    {"batch_norm_alone",
     [](Network& n) {
       Value* variance = n.graph.addConstant(Tensor::from(Shape{3}, std::vector<float>{0.5f, 1, 2}));
       return aten::BatchNorm::create(n.b, n.input({1, 3, 6, 6}), nullptr, nullptr, n.weight({3}), variance,
                                      false, 0.1, 1e-5, false)
           .output();
     }},
};
INSTANTIATE_TEST_SUITE_P(Convolutions, Lower, testing::ValuesIn(kConvolutions),
                         [](const auto& param) { return std::string(param.param.name); });

const Case kPointwise[] = {
    {"add",
     [](Network& n) {
       return n.add(n.input({1, 3, 4, 5}), n.input({1, 3, 4, 5}));
     },
     0},
    {"add_channels",
     [](Network& n) {
       return n.add(n.input({1, 3, 4, 5}), n.input({1, 3, 1, 1}));
     },
     0},
    {"add_both_broadcast",
     [](Network& n) {
       return n.add(n.input({4, 1, 3}), n.input({2, 1}));
     },
     0},
    {"add_constant",
     [](Network& n) {
       return n.add(n.input({1, 3, 4, 5}), n.weight({3, 1, 1}));
     },
     0},
    {"add_alpha",
     [](Network& n) {
       return aten::AddTensor::create(n.b, n.input({2, 5}), n.input({2, 5}), 2.5).output();
     }},
    {"sub",
     [](Network& n) {
       return aten::SubTensor::create(n.b, n.input({2, 7}), n.input({2, 7}), int64_t{1}).output();
     }},
    {"mul",
     [](Network& n) {
       return aten::MulTensor::create(n.b, n.input({2, 7}), n.input({2, 7})).output();
     }},
    {"mul_after_conv",  // the gate of a squeeze-and-excite block stays channel-last
     [](Network& n) {
       Value* x = n.conv(n.input({1, 3, 4, 4}), {4, 3, 1, 1}, {1, 1}, {0, 0});
       Value* gate =
           aten::Sigmoid::create(n.b, aten::AdaptiveAvgPool2d::create(n.b, x, Ints{1, 1}).output()).output();
       return aten::MulTensor::create(n.b, x, gate).output();
     },
     2},
    {"maximum",
     [](Network& n) {
       return aten::Maximum::create(n.b, n.input({3, 5}), n.input({3, 5})).output();
     }},
    {"minimum",
     [](Network& n) {
       return aten::Minimum::create(n.b, n.input({3, 5}), n.input({1, 5})).output();
     }},
    {"relu_alone",
     [](Network& n) {
       return n.relu(n.input({1, 3, 4, 4}));
     },
     0, 0},
    {"clamp",
     [](Network& n) {
       return aten::Clamp::create(n.b, n.input({3, 9}), -0.5, 1.25).output();
     },
     0, 0},
    {"sigmoid",
     [](Network& n) {
       return aten::Sigmoid::create(n.b, n.input({3, 9})).output();
     },
     0},
    {"tanh",
     [](Network& n) {
       return aten::Tanh::create(n.b, n.input({3, 9})).output();
     }},
    {"gelu",
     [](Network& n) {
       return aten::Gelu::create(n.b, n.input({3, 9}), "none").output();
     }},
    {"hardswish",
     [](Network& n) {
       return aten::Hardswish::create(n.b, n.input({3, 9})).output();
     }},
    {"abs",
     [](Network& n) {
       return aten::Abs::create(n.b, n.input({3, 9})).output();
     }},
    {"add_number",
     [](Network& n) {
       return aten::AddScalar::create(n.b, n.input({3, 9}), 0.5, int64_t{1}).output();
     }},
    {"mul_number",
     [](Network& n) {
       return aten::MulScalar::create(n.b, n.input({3, 9}), 0.37).output();
     }},
    {"mul_negative_number",
     [](Network& n) {
       return aten::MulScalar::create(n.b, n.input({3, 9}), -1.7).output();
     }},
    {"softmax",
     [](Network& n) {
       return aten::SoftmaxInt::create(n.b, n.input({2, 10}), int64_t{-1}, std::nullopt).output();
     },
     -1, 0.05},
    {"layer_norm",
     [](Network& n) {
       return aten::LayerNorm::create(n.b, n.input({2, 3, 8}), n.weight({8}), n.weight({8}), Ints{8}, 1e-5,
                                      false)
           .output();
     },
     -1, 0.05},
    {"where",
     [](Network& n) {
       Value* x = n.input({3, 9});
       Value* positive = aten::GtTensor::create(n.b, x, n.input({3, 9})).output();
       return aten::WhereSelf::create(n.b, positive, x, n.weight({1, 1})).output();
     }},
};
INSTANTIATE_TEST_SUITE_P(Pointwise, Lower, testing::ValuesIn(kPointwise),
                         [](const auto& param) { return std::string(param.param.name); });

const Case kReductions[] = {
    {"max_pool",
     [](Network& n) {
       return aten::MaxPool2d::create(n.b, n.input({1, 3, 8, 8}), Ints{2, 2}, Ints{2, 2}, Ints{0, 0},
                                      Ints{1, 1}, false)
           .output();
     },
     -1, 0},
    {"max_pool_padded_ceil",
     [](Network& n) {
       return aten::MaxPool2d::create(n.b, n.input({1, 3, 8, 7}), Ints{3, 3}, Ints{2, 2}, Ints{1, 1},
                                      Ints{1, 1}, true)
           .output();
     },
     -1, 0},
    {"avg_pool",
     [](Network& n) {
       return aten::AvgPool2d::create(n.b, n.input({1, 3, 9, 8}), Ints{2, 2}, Ints{2, 2}, Ints{0, 0}, false,
                                      true, std::nullopt)
           .output();
     },
     -1, 0.3},
    {"avg_pool_counted_padding_ceil",
     [](Network& n) {
       return aten::AvgPool2d::create(n.b, n.input({1, 3, 8, 8}), Ints{3, 3}, Ints{2, 2}, Ints{1, 1}, true,
                                      true, std::nullopt)
           .output();
     },
     -1, 0.3},
    {"avg_pool_uncounted_padding",
     [](Network& n) {
       return aten::AvgPool2d::create(n.b, n.input({1, 3, 8, 8}), Ints{3, 3}, Ints{1, 1}, Ints{1, 1}, false,
                                      false, std::nullopt)
           .output();
     },
     -1, 0.3},
    {"adaptive_one",
     [](Network& n) {
       return aten::AdaptiveAvgPool2d::create(n.b, n.input({1, 3, 7, 7}), Ints{1, 1}).output();
     },
     -1, 0.3},
    {"adaptive_uneven",
     [](Network& n) {
       return aten::AdaptiveAvgPool2d::create(n.b, n.input({1, 3, 7, 5}), Ints{3, 2}).output();
     },
     -1, 0.3},
    {"mean_hw",
     [](Network& n) {
       return aten::MeanDim::create(n.b, n.input({1, 3, 7, 7}), Ints{2, 3}, false, std::nullopt).output();
     }},
    {"mean_hw_after_conv",  // no data moves between
     [](Network& n) {
       Value* x = n.conv(n.input({1, 3, 6, 6}), {5, 3, 3, 3}, {1, 1}, {1, 1});
       return aten::MeanDim::create(n.b, x, Ints{2, 3}, false, std::nullopt).output();
     },
     1},
    {"mean_last",
     [](Network& n) {
       return aten::MeanDim::create(n.b, n.input({2, 5, 9}), Ints{-1}, true, std::nullopt).output();
     },
     0},
    {"sum_dim1",
     [](Network& n) {
       return aten::SumDimIntList::create(n.b, n.input({2, 5, 9}), Ints{1}, false, std::nullopt).output();
     }},
    {"sum_all",
     [](Network& n) {
       return aten::Sum::create(n.b, n.input({2, 5, 3}), std::nullopt).output();
     }},
    {"amax",
     [](Network& n) {
       return aten::Amax::create(n.b, n.input({2, 5, 9}), Ints{1}, false).output();
     },
     -1, 0},
    {"matmul",
     [](Network& n) {
       return aten::Matmul::create(n.b, n.input({2, 3, 4, 6}), n.input({2, 3, 6, 5})).output();
     }},
    {"bytes",  // an image as cameras give it
     [](Network& n) {
       Value* x = aten::Permute::create(n.b, n.input({1, 6, 6, 3}, DType::UInt8), Ints{0, 3, 1, 2}).output();
       x = aten::ToDtype::create(n.b, x, DType::Float32, false, false, std::nullopt).output();
       x = aten::DivScalar::create(n.b, x, 255.0).output();
       return n.conv(x, {5, 3, 3, 3}, {1, 1}, {1, 1});
     },
     1},
    {"bytes_as_integers",
     [](Network& n) {
       Value* x = n.input({2, 5}, DType::UInt8);
       x = aten::ToDtype::create(n.b, x, DType::Int32, false, false, std::nullopt).output();
       Value* y = aten::ToDtype::create(n.b, x, DType::Float32, false, false, std::nullopt).output();
       return aten::MulScalar::create(n.b, y, 0.5).output();
     },
     0, 0},
    {"matmul_broadcast",
     [](Network& n) {
       return aten::Matmul::create(n.b, n.input({2, 3, 4, 6}), n.input({3, 6, 5})).output();
     }},
    {"matmul_one_right",
     [](Network& n) {
       return aten::Matmul::create(n.b, n.input({2, 3, 4, 6}), n.input({6, 5})).output();
     }},
    {"attention",
     [](Network& n) {
       return aten::ScaledDotProductAttention::create(n.b, n.input({1, 2, 4, 8}), n.input({1, 2, 4, 8}),
                                                      n.input({1, 2, 4, 8}), nullptr, 0.0, true, std::nullopt,
                                                      false)
           .output();
     },
     -1, 0.05},
};
INSTANTIATE_TEST_SUITE_P(Reductions, Lower, testing::ValuesIn(kReductions),
                         [](const auto& param) { return std::string(param.param.name); });

const Case kMoves[] = {
    {"cat",
     [](Network& n) {
       const std::vector<Value*> parts{n.input({1, 3, 4, 4}), n.input({1, 2, 4, 4})};
       return aten::Cat::create(n.b, parts, int64_t{1}).output();
     },
     0, 0},
    {"cat_after_conv",
     [](Network& n) {
       Value* x = n.conv(n.input({1, 3, 4, 4}), {4, 3, 1, 1}, {1, 1}, {0, 0});
       const std::vector<Value*> parts{x, n.conv(x, {2, 4, 3, 3}, {1, 1}, {1, 1})};
       return aten::Cat::create(n.b, parts, int64_t{1}).output();
     },
     2},
    {"stack",
     [](Network& n) {
       const std::vector<Value*> parts{n.input({3, 4}), n.input({3, 4})};
       return aten::Stack::create(n.b, parts, int64_t{1}).output();
     },
     0, 0},
    {"permute",
     [](Network& n) {
       return aten::Permute::create(n.b, n.input({2, 3, 4}), Ints{2, 0, 1}).output();
     },
     1, 0},
    {"permute_twice",
     [](Network& n) {
       Value* x = aten::Permute::create(n.b, n.input({2, 3, 4}), Ints{2, 0, 1}).output();
       return aten::Permute::create(n.b, n.relu(x), Ints{1, 2, 0}).output();
     },
     0, 0},
    {"view",
     [](Network& n) {
       return aten::View::create(n.b, n.input({2, 3, 4}), Ints{6, 4}).output();
     },
     0, 0},
    {"slice",
     [](Network& n) {
       return aten::SliceTensor::create(n.b, n.input({2, 9, 4}), int64_t{1}, 2, 8, int64_t{1}).output();
     },
     0, 0},
    {"slice_step",
     [](Network& n) {
       return aten::SliceTensor::create(n.b, n.input({2, 9, 4}), int64_t{1}, 1, 9, int64_t{3}).output();
     },
     0, 0},
    {"select",
     [](Network& n) {
       return aten::SelectInt::create(n.b, n.input({2, 9, 4}), int64_t{-2}, int64_t{-1}).output();
     },
     0, 0},
    {"pad",
     [](Network& n) {
       return aten::ConstantPadNd::create(n.b, n.input({1, 2, 5, 5}), Ints{1, 2, -1, 3}, 0.5).output();
     },
     0, 0},
    {"pad_reflect",
     [](Network& n) {
       return aten::Pad::create(n.b, n.input({1, 2, 5, 5}), Ints{1, 2, 2, 1}, "reflect", std::nullopt)
           .output();
     },
     0, 0},
    {"flip",
     [](Network& n) {
       return aten::Flip::create(n.b, n.input({2, 3, 4}), Ints{0, -1}).output();
     },
     0, 0},
    {"roll",
     [](Network& n) {
       return aten::Roll::create(n.b, n.input({2, 5, 4}), Ints{-2, 1}, Ints{1, 2}).output();
     },
     0, 0},
    {"expand",
     [](Network& n) {
       return aten::Expand::create(n.b, n.input({3, 1}), Ints{2, 3, 4}, false).output();
     },
     0, 0},
    {"repeat",
     [](Network& n) {
       return aten::Repeat::create(n.b, n.input({3, 2}), Ints{2, 1, 3}).output();
     },
     0, 0},
    {"pixel_shuffle",
     [](Network& n) {
       return aten::PixelShuffle::create(n.b, n.input({1, 8, 3, 4}), int64_t{2}).output();
     },
     1, 0},
    {"channel_shuffle_between_convs",
     [](Network& n) {
       Value* x = n.conv(n.input({1, 3, 4, 4}), {6, 3, 1, 1}, {1, 1}, {0, 0});
       return n.conv(aten::ChannelShuffle::create(n.b, x, int64_t{2}).output(), {4, 6, 1, 1}, {1, 1}, {0, 0});
     },
     3},
    {"upsample_nearest_2x",
     [](Network& n) {
       return aten::UpsampleNearest2dVec::create(n.b, n.input({1, 2, 4, 5}), std::nullopt,
                                                 ir::Reals{2.0, 2.0})
           .output();
     },
     -1, 0},
    {"upsample_nearest_by_more_than_2",
     [](Network& n) {
       return aten::UpsampleNearest2dVec::create(n.b, n.input({1, 2, 2, 3}), std::nullopt,
                                                 ir::Reals{2.25, 2.1})
           .output();
     },
     -1, 0},
    {"upsample_nearest_odd_ratio",
     [](Network& n) {
       return aten::UpsampleNearest2dVec::create(n.b, n.input({1, 2, 5, 4}), Ints{13, 7}, std::nullopt)
           .output();
     },
     -1, 0},
    {"upsample_bilinear",
     [](Network& n) {
       return aten::UpsampleBilinear2dVec::create(n.b, n.input({1, 2, 4, 5}), std::nullopt, false,
                                                  ir::Reals{2.0, 2.0})
           .output();
     },
     -1, 0.2},
    {"upsample_bilinear_aligned",
     [](Network& n) {
       return aten::UpsampleBilinear2dVec::create(n.b, n.input({1, 2, 4, 5}), Ints{10, 13}, true,
                                                  std::nullopt)
           .output();
     },
     -1, 0.2},
    {"index_select",
     [](Network& n) {
       Value* index = n.graph.addConstant(Tensor::from(Shape{3}, std::vector<int64_t>{3, 0, 1}));
       return aten::IndexSelect::create(n.b, n.input({2, 5, 3}), index, int64_t{1}).output();
     },
     0, 0},
    {"gather",
     [](Network& n) {
       Tensor index = Tensor::zeros(DType::Int64, {2, 3, 4});
       for (int64_t i = 0; i < index.numElements(); ++i) index.setIntegerAt(i, i * 7 % 5);
       return aten::Gather::create(n.b, n.input({2, 5, 4}), n.graph.addConstant(index), int64_t{1}, false)
           .output();
     },
     -1, 0},
    {"index_put",
     [](Network& n) {
       Value* index = n.graph.addConstant(Tensor::from(Shape{2}, std::vector<int64_t>{3, 0}));
       return aten::IndexPut::create(n.b, n.input({5, 4}), {index}, n.input({2, 4}), false).output();
     },
     -1, 0},
    {"cumsum",
     [](Network& n) {
       return aten::Cumsum::create(n.b, n.input({2, 5, 3}), int64_t{1}, std::nullopt).output();
     }},
    {"compare_number_and_mask",
     [](Network& n) {
       Value* x = n.input({3, 9});
       Value* mask = aten::GtScalar::create(n.b, x, 0.25).output();
       return aten::WhereSelf::create(n.b, mask, x, n.weight({1, 1})).output();
     },
     0},
    {"lstm",
     [](Network& n) {
       Value* zeros = n.graph.addConstant(Tensor::zeros(DType::Float32, {1, 2, 4}));
       const std::vector<Value*> params{n.weight({16, 3}), n.weight({16, 4}), n.weight({16}), n.weight({16})};
       return aten::LstmInput::create(n.b, n.input({5, 2, 3}), {zeros, zeros}, params, true, int64_t{1}, 0.0,
                                      false, false, false)
           .node()
           ->result(0);
     },
     -1, 0.05},
    {"gru_both_directions",
     [](Network& n) {
       Value* zeros = n.graph.addConstant(Tensor::zeros(DType::Float32, {2, 1, 4}));
       std::vector<Value*> params;
       for (int i = 0; i < 2; ++i) {
         for (const Shape& shape : {Shape{12, 3}, Shape{12, 4}, Shape{12}, Shape{12}})
           params.push_back(n.weight(shape));
       }
       return aten::GruInput::create(n.b, n.input({1, 3, 3}), zeros, params, true, int64_t{1}, 0.0, false,
                                     true, true)
           .node()
           ->result(0);
     },
     -1, 0.05},
    {"glu",
     [](Network& n) {
       return aten::Glu::create(n.b, n.input({2, 8}), int64_t{-1}).output();
     }},
};
INSTANTIATE_TEST_SUITE_P(Moves, Lower, testing::ValuesIn(kMoves),
                         [](const auto& param) { return std::string(param.param.name); });

TEST(Ranks, BeyondSixAreRefusedWithTheRank) {
  Network network;
  network.graph.setOutputs({network.relu(network.input({1, 2, 1, 2, 1, 2, 3}))});
  auto partitioned = quantizeAndPartition(std::move(network.graph));
  ASSERT_TRUE(partitioned.ok()) << partitioned.error().str();
  EXPECT_FALSE(partitioned->wholly);
  ASSERT_FALSE(partitioned->refusals.empty());
  EXPECT_NE(partitioned->refusals[0].reason.find("rank 7 exceeds 6"), std::string::npos)
      << partitioned->refusals[0].reason;
  EXPECT_NE(partitioned->refusals[0].remedy.find("merge dimensions"), std::string::npos);
}

TEST(RunningSums, BeyondTheKernelsAreaAreRefusedWithTheLimit) {
  Network network;
  network.graph.setOutputs(
      {aten::Cumsum::create(network.b, network.input({2, 4097}), int64_t{1}, std::nullopt).output()});
  auto partitioned = quantizeAndPartition(std::move(network.graph));
  ASSERT_TRUE(partitioned.ok()) << partitioned.error().str();
  ASSERT_FALSE(partitioned->refusals.empty());
  EXPECT_NE(partitioned->refusals[0].reason.find("4097 elements, more than 4096"), std::string::npos)
      << partitioned->refusals[0].reason;
}

/// Groups of a transposed convolution share the scales of the weight's channels.
const Case kGroups[] = {
    {"conv_transpose_groups",
     [](Network& n) {
       return aten::ConvTranspose2dInput::create(n.b, n.input({1, 6, 4, 5}), n.weight({6, 2, 3, 2}),
                                                 n.weight({6}), Ints{2, 1}, Ints{1, 0}, Ints{1, 0}, 3,
                                                 Ints{1, 1})
           .output();
     }},
    {"conv_transpose_that_cuts_off_more_than_its_kernel",
     [](Network& n) {
       return aten::ConvTranspose2dInput::create(n.b, n.input({1, 4, 5, 4}), n.weight({4, 3, 2, 1}),
                                                 n.weight({3}), Ints{2, 3}, Ints{3, 1}, Ints{1, 2}, 1,
                                                 Ints{1, 1})
           .output();
     }},
    {"conv_that_only_sees_padding",
     [](Network& n) {
       return n.conv(n.input({1, 2, 1, 3}), {4, 2, 2, 2}, {7, 5}, {3, 2});
     },
     -1, 0},
};
INSTANTIATE_TEST_SUITE_P(Groups, Lower, testing::ValuesIn(kGroups),
                         [](const auto& param) { return std::string(param.param.name); });

class LowerWide : public testing::TestWithParam<Case> {};

TEST_P(LowerWide, EqualsFakeQuantIn16x8) {
  quantize::Options options;
  options.precision = quantize::Precision::Int16x8;
  check(GetParam(), options);
}

/// Steps that a table of 16-bit codes would smooth, and sums of 48 bits.
const Case kWide[] = {
    {"floor",
     [](Network& n) {
       return aten::Floor::create(n.b, n.input({3, 97})).output();
     },
     0, 0},
    {"ceil",
     [](Network& n) {
       return aten::Ceil::create(n.b, n.input({3, 97})).output();
     },
     0, 0},
    {"round",
     [](Network& n) {
       return aten::Round::create(n.b, n.input({3, 97})).output();
     },
     0, 0},
    {"remainder",
     [](Network& n) {
       return aten::RemainderScalar::create(n.b, n.input({3, 97}), 0.7).output();
     },
     0, 0.01},
    {"remainder_of_negative_divisor",
     [](Network& n) {
       return aten::RemainderScalar::create(n.b, n.input({3, 97}), -0.3).output();
     },
     0, 0.01},
    {"floor_of_ones",  // whose code times scale is one in float32, though not in exact arithmetic
     [](Network& n) {
       Value* ones =
           aten::ClampMax::create(n.b, aten::ClampMin::create(n.b, n.input({3, 97}), 1.0).output(), 1.0)
               .output();
       return aten::Floor::create(n.b, aten::MulTensor::create(n.b, ones, ones).output()).output();
     },
     -1, 0},
    {"floor_of_products",
     [](Network& n) {
       Value* row =
           n.input({1, 97});  // made first: arguments have no order, and the order decides the numbers
       Value* rows = n.input({3, 97});
       return aten::Floor::create(n.b, aten::MulTensor::create(n.b, rows, row).output()).output();
     },
     -1, 0.05},  // saturated sums and products are -32768 here, -32767 there
    {"cumsum",
     [](Network& n) {
       return aten::Cumsum::create(n.b, n.input({2, 5, 3}), int64_t{1}, std::nullopt).output();
     },
     -1, 0.3},
};
INSTANTIATE_TEST_SUITE_P(Wide, LowerWide, testing::ValuesIn(kWide),
                         [](const auto& param) { return std::string(param.param.name); });

/// acosh has no value below 1, but numbers above 1 are rounded to the code of 0 as well.
TEST(Lower, CodesAtTheEdgeOfADomainStandForWhatLiesInside) {
  Network n;
  n.graph.setOutputs({aten::Acosh::create(n.b, n.input({1, 2, 4})).output()});
  quantize::Options options;
  options.observer = quantize::ObserverKind::MinMax;
  const quantize::Sample sample{
      Tensor::from(Shape{1, 2, 4}, std::vector<float>{1, 2, 10, 100, 500, 700, 900, 1000})};
  auto quantized = quantize::quantize(std::move(n.graph), options, std::array{sample});
  ASSERT_TRUE(quantized.ok()) << quantized.error().str();
  auto partitioned = partition::partition(std::move(quantized->graph), {});
  ASSERT_TRUE(partitioned.ok()) << partitioned.error().str();
  const ir::Node* lookup = nullptr;
  for (const ir::Node* node : partitioned->delegates.at(0).tosa.nodes()) {
    if (ir::isa<tosa::Table>(node)) lookup = node;
  }
  ASSERT_NE(lookup, nullptr);
  const Tensor& table = lookup->operands()[1]->constant();
  // Code -128 is what lies between 0 and 1.96: acosh gives up to 1.3 there, in steps of 7.6 / 255.
  EXPECT_GT(table.integerAt(0), -128 + 10);
  EXPECT_LT(table.integerAt(0), table.integerAt(1));
}

}  // namespace
}  // namespace carina::lower::test
