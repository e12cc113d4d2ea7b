// SPDX-License-Identifier: Apache-2.0
// Operators that are made of others before they are lowered: mixed types, windows, indexing, masks.
#include "decompose/composites.hpp"
#include "decomposed_case.hpp"

namespace carina::lower::test {
namespace {

class Decomposed : public testing::TestWithParam<Case> {};

TEST_P(Decomposed, EqualsFakeQuantInInt8) {
  check(GetParam(), {});
}

TEST_P(Decomposed, KeepsTheResult) {
  checkKeepsTheResult(GetParam());
}

/// Operators without attributes on two integer tensors.
template <typename Op>
Value* integers(Network& n, DType dtype) {
  return Op::create(n.b, n.input({3, 5}, dtype), n.input({1, 5}, dtype)).output();
}

const Case kTypes[] = {
    {"float_and_integer",
     [](Network& n) {
       return n.add(n.input({3, 5}), n.input({5}, DType::Int32));
     }},
    {"add_bytes",
     [](Network& n) {
       return n.add(n.input({3, 5}, DType::Int8), n.input({3, 5}, DType::Int8));
     },
     -1, 0},
    {"multiply_shorts", [](Network& n) { return integers<aten::MulTensor>(n, DType::Int16); }, -1, 0},
    {"maximum_of_bytes", [](Network& n) { return integers<aten::Maximum>(n, DType::Int8); }, -1, 0},
    {"bits_and_number",
     [](Network& n) {
       return aten::BitwiseAndScalar::create(n.b, n.input({3, 5}, DType::Int16), int64_t{1027}).output();
     },
     -1, 0},
    {"integers_plus_number",
     [](Network& n) {
       return aten::AddScalar::create(n.b, n.input({3, 5}, DType::Int32), int64_t{-4}, int64_t{3}).output();
     },
     -1, 0},
    {"integers_plus_fraction",
     [](Network& n) {
       return aten::AddScalar::create(n.b, n.input({3, 5}, DType::Int32), 0.5, int64_t{1}).output();
     }},
    {"number_minus_integers",
     [](Network& n) {
       return aten::RsubScalar::create(n.b, n.input({3, 5}, DType::Int32), int64_t{9}, int64_t{1}).output();
     },
     -1, 0},
    {"relu_of_integers",
     [](Network& n) {
       return n.relu(
           aten::SubScalar::create(n.b, n.input({3, 5}, DType::Int32), int64_t{4}, int64_t{1}).output());
     },
     -1, 0},
    {"clamp_by_tensors",
     [](Network& n) {
       return aten::ClampTensor::create(n.b, n.input({3, 5}, DType::Int32), n.input({5}, DType::Int32),
                                        n.input({3, 1}, DType::Int32))
           .output();
     },
     -1, 0},
    {"floats_clamped_by_tensor",
     [](Network& n) {
       return aten::ClampMinTensor::create(n.b, n.input({3, 5}), n.input({5})).output();
     }},
    {"any",
     [](Network& n) {
       return aten::AnyDim::create(n.b, n.input({3, 2, 5}, DType::Bool), int64_t{1}, false).output();
     },
     -1, 0},
    {"all_of_numbers",
     [](Network& n) {
       return aten::AllDims::create(n.b, n.input({3, 2, 5}, DType::Int32), Ints{0, 2}, true).output();
     },
     -1, 0},
    {"logic_of_numbers",
     [](Network& n) {
       return aten::LogicalAnd::create(n.b, n.input({3, 5}, DType::Int32), n.input({3, 5}, DType::Int32))
           .output();
     },
     -1, 0},
    {"opposite_of_numbers",
     [](Network& n) {
       return aten::LogicalNot::create(n.b, n.input({3, 5}, DType::Int32)).output();
     },
     -1, 0},
    {"either_float",
     [](Network& n) {
       return aten::LogicalOr::create(n.b, n.input({3, 5}), n.input({3, 5})).output();
     },
     -1, 0},
    {"product_of_bools", [](Network& n) { return integers<aten::MulTensor>(n, DType::Bool); }, -1, 0},
    {"order_of_bools", [](Network& n) { return integers<aten::LeTensor>(n, DType::Bool); }, -1, 0},
    {"bool_is_zero",
     [](Network& n) {
       return aten::EqScalar::create(n.b, n.input({3, 5}, DType::Bool), int64_t{0}).output();
     },
     -1, 0},
    {"magnitude_of_integers",
     [](Network& n) {
       return aten::Abs::create(n.b, n.input({3, 5}, DType::Int16)).output();
     },
     -1, 0},
    {"place_of_the_largest_integer",
     [](Network& n) {
       Value* few = aten::BitwiseAndScalar::create(n.b, n.input({3, 9}, DType::Int32), int64_t{3}).output();
       return aten::Argmax::create(n.b, few, int64_t{1}, true).output();
     },
     -1, 0},
    {"running_sum_of_integers",
     [](Network& n) {
       Value* few =
           aten::BitwiseAndScalar::create(n.b, n.input({3, 9}, DType::Int32), int64_t{1023}).output();
       return aten::Cumsum::create(n.b, few, int64_t{1}, std::nullopt).output();
     },
     -1, 0},
    {"sign_of_integers",
     [](Network& n) {
       return aten::Sign::create(n.b, n.input({3, 5}, DType::Int32)).output();
     },
     -1, 0},
    {"copy_of_row",
     [](Network& n) {
       return aten::Copy::create(n.b, n.input({3, 5}), n.input({5}), false).output();
     },
     -1, 0},
    {"argmin",
     [](Network& n) {
       return aten::PrivateToCopy::create(
                  n.b, aten::Argmin::create(n.b, n.input({3, 5}), int64_t{1}, false).output(), DType::Int32,
                  {}, {}, {}, false, {})
           .output();
     },
     -1, 0},
    {"one_hot",
     [](Network& n) {
       return aten::PrivateToCopy::create(
                  n.b, aten::OneHot::create(n.b, n.input({3, 5}, DType::Int32), int64_t{10}).output(),
                  DType::Int32, {}, {}, {}, false, {})
           .output();
     },
     -1, 0},
    {"truth_as_number",
     [](Network& n) {
       return aten::PrivateToCopy::create(n.b, n.input({3, 5}, DType::Bool), DType::Float32, {}, {}, {},
                                          false, {})
           .output();
     },
     -1, 0},
    {"shifted_by_tensor", [](Network& n) { return integers<aten::BitwiseLeftShiftTensor>(n, DType::Int32); },
     -1, 0},
    {"floored_quotient_by_number",
     [](Network& n) {
       Value* x =
           aten::SubScalar::create(n.b, n.input({3, 5}, DType::Int32), int64_t{5}, int64_t{1}).output();
       return aten::FloorDivideScalar::create(n.b, x, int64_t{-3}).output();
     },
     -1, 0},
    {"remainder_of_integers",
     [](Network& n) {
       Value* x =
           aten::SubScalar::create(n.b, n.input({3, 5}, DType::Int32), int64_t{5}, int64_t{1}).output();
       return aten::RemainderScalar::create(n.b, x, int64_t{4}).output();
     },
     -1, 0},
    {"erfinv",
     [](Network& n) {
       return aten::Erfinv::create(n.b, aten::Tanh::create(n.b, n.input({3, 5})).output()).output();
     }},
    {"cosine_similarity",
     [](Network& n) {
       return aten::CosineSimilarity::create(n.b, n.input({3, 5, 4}), n.input({3, 5, 4}), int64_t{1}, 1e-8)
           .output();
     },
     -1, 0.1},
    {"batch_norm_by_the_batch",
     [](Network& n) {
       return aten::BatchNorm::create(n.b, n.input({2, 3, 4, 5}), n.weight({3}), n.weight({3}), nullptr,
                                      nullptr, true, 0.1, 1e-5, false)
           .output();
     },
     -1, 0.1},
};
Value* scattered(Network& n, const char* how, bool includeSelf) {
  return aten::ScatterReduceTwo::create(n.b, n.input({4, 5}),
                                        n.numbers({3, 4}, {0, 1, 2, 0, 2, 0, 0, 3, 0, 3, 2, 1}),
                                        n.input({3, 4}), int64_t{0}, how, includeSelf)
      .output();
}
const Case kScatters[] = {
    {"sum", [](Network& n) { return scattered(n, "sum", true); }, -1, 0.1},
    {"sum_alone", [](Network& n) { return scattered(n, "sum", false); }, -1, 0.1},
    {"mean", [](Network& n) { return scattered(n, "mean", true); }, -1, 0.2},
    {"mean_alone", [](Network& n) { return scattered(n, "mean", false); }, -1, 0.2},
    {"prod", [](Network& n) { return scattered(n, "prod", true); }, -1, 0.2},
    {"amax", [](Network& n) { return scattered(n, "amax", true); }, -1, 0.1},
    {"amin_alone", [](Network& n) { return scattered(n, "amin", false); }, -1, 0.1},
};

/// Functions of two float tensors.
template <typename Op>
Value* pairOf(Network& n) {
  return Op::create(n.b, n.input({3, 5}), n.input({3, 5})).output();
}
template <typename Op>
Value* oneOf(Network& n) {
  return Op::create(n.b, n.input({3, 5})).output();
}
const Case kFunctions[] = {
    {"hypot", pairOf<aten::Hypot>, -1, 0.1},
    {"logaddexp", pairOf<aten::Logaddexp>, -1, 0.1},
    {"logaddexp2", pairOf<aten::Logaddexp2>, -1, 0.1},
    {"heaviside", pairOf<aten::Heaviside>, -1, 0.1},
    {"copysign", pairOf<aten::CopysignTensor>, -1, 0.1},
    {"fmax", pairOf<aten::Fmax>, -1, 0.1},
    {"deg2rad", oneOf<aten::Deg2rad>},
    {"sinc", oneOf<aten::Sinc>, -1, 0.1},
    {"lerp",
     [](Network& n) {
       return aten::LerpScalar::create(n.b, n.input({3, 5}), n.input({5}), 0.3).output();
     },
     -1, 0.1},
    {"round_to_tenths",
     [](Network& n) {
       return aten::RoundDecimals::create(n.b, n.input({3, 5}), int64_t{1}).output();
     },
     -1, 0.2},
    {"logsumexp",
     [](Network& n) {
       return aten::Logsumexp::create(n.b, n.input({3, 5}), Ints{1}, false).output();
     },
     -1, 0.1},
    {"max_of_all", oneOf<aten::Max>, -1, 0},
    {"norm_of_order_3",
     [](Network& n) {
       return aten::LinalgVectorNorm::create(n.b, n.input({3, 5}), 3.0, Ints{1}, true, std::nullopt).output();
     },
     -1, 0.1},
    {"smallest_magnitude",
     [](Network& n) {
       return aten::LinalgVectorNorm::create(n.b, n.input({3, 5}), -HUGE_VAL, Ints{1}, false, std::nullopt)
           .output();
     },
     -1, 0.1},
    {"prod",
     [](Network& n) {
       return aten::ProdDimInt::create(n.b, n.input({3, 5}), int64_t{-1}, true, std::nullopt).output();
     },
     -1, 0.2},
    {"cumprod",
     [](Network& n) {
       return aten::Cumprod::create(n.b, n.input({3, 5}), int64_t{1}, std::nullopt).output();
     },
     -1, 0.2},
    {"logcumsumexp",
     [](Network& n) {
       return aten::Logcumsumexp::create(n.b, n.input({3, 5}), int64_t{1}).output();
     },
     -1, 0.1},
    {"cummax",
     [](Network& n) {
       return aten::Cummax::create(n.b, n.input({3, 7}), int64_t{1}).node()->result(0);
     },
     -1, 0},
    {"trace",
     [](Network& n) {
       return aten::Trace::create(n.b, n.input({4, 5})).output();
     },
     -1, 0.1},
    {"count_nonzero",
     [](Network& n) {
       return aten::CountNonzero::create(n.b, n.input({3, 5}, DType::Bool), int64_t{1}).output();
     },
     -1, 0},
    {"cdist",
     [](Network& n) {
       return aten::Cdist::create(n.b, n.input({4, 3}), n.input({5, 3}), 2.0, std::nullopt).output();
     },
     -1, 0.1},
    {"pdist",
     [](Network& n) {
       return aten::Pdist::create(n.b, n.input({4, 3}), 1.0).output();
     },
     -1, 0.1},
    {"pairwise_distance",
     [](Network& n) {
       return aten::PairwiseDistance::create(n.b, n.input({4, 3}), n.input({4, 3}), 2.0, 1e-6, true).output();
     },
     -1, 0.1},
    {"outer", [](Network& n) { return aten::Outer::create(n.b, n.input({4}), n.input({5})).output(); }, -1,
     0.1},
    {"dot", [](Network& n) { return aten::Dot::create(n.b, n.input({6}), n.input({6})).output(); }, -1, 0.1},
    {"addmv",
     [](Network& n) {
       return aten::Addmv::create(n.b, n.input({4}), n.input({4, 3}), n.input({3}), 0.5, 2.0).output();
     },
     -1, 0.1},
    {"addr",
     [](Network& n) {
       return aten::Addr::create(n.b, n.input({4, 3}), n.input({4}), n.input({3}), 0.5, 2.0).output();
     },
     -1, 0.1},
    {"addbmm",
     [](Network& n) {
       return aten::Addbmm::create(n.b, n.input({4, 5}), n.input({2, 4, 3}), n.input({2, 3, 5}), 0.5, 2.0)
           .output();
     },
     -1, 0.1},
    {"computed_weights",
     [](Network& n) {
       return aten::Linear::create(n.b, n.input({2, 4, 3}), n.input({5, 3}), n.input({5})).output();
     },
     -1, 0.1},
};

INSTANTIATE_TEST_SUITE_P(Scatters, Decomposed, testing::ValuesIn(kScatters),
                         [](const auto& param) { return std::string(param.param.name); });
INSTANTIATE_TEST_SUITE_P(Functions, Decomposed, testing::ValuesIn(kFunctions),
                         [](const auto& param) { return std::string(param.param.name); });
INSTANTIATE_TEST_SUITE_P(Types, Decomposed, testing::ValuesIn(kTypes),
                         [](const auto& param) { return std::string(param.param.name); });

const Case kWindows[] = {
    {"unfold_by_elements",
     [](Network& n) {
       return aten::Unfold::create(n.b, n.input({2, 13, 3}), int64_t{1}, int64_t{3}, int64_t{2}).output();
     },
     -1, 0},
    {"unfold_by_windows",
     [](Network& n) {
       return aten::Unfold::create(n.b, n.input({2, 13, 3}), int64_t{1}, int64_t{9}, int64_t{4}).output();
     },
     -1, 0},
    {"im2col",
     [](Network& n) {
       return aten::Im2col::create(n.b, n.input({2, 3, 7, 8}), Ints{3, 2}, Ints{1, 2}, Ints{1, 2}, Ints{2, 3})
           .output();
     },
     -1, 0},
    {"col2im",
     [](Network& n) {
       return aten::Col2im::create(n.b, n.input({2, 18, 20}), Ints{6, 7}, Ints{3, 3}, Ints{1, 1}, Ints{0, 0},
                                   Ints{1, 1})
           .output();
     }},
    {"diagonal",
     [](Network& n) {
       return aten::Diagonal::create(n.b, n.input({4, 2, 6}), int64_t{-1}, int64_t{0}, int64_t{2}).output();
     },
     -1, 0},
    {"as_strided",
     [](Network& n) {
       return aten::AsStrided::create(n.b, n.input({5, 4}), Ints{3, 2}, Ints{4, 2}, int64_t{1}).output();
     },
     -1, 0},
    {"circular_pad",
     [](Network& n) {
       return aten::Pad::create(n.b, n.input({1, 2, 4, 5}), Ints{2, 1, 0, 4}, "circular", std::nullopt)
           .output();
     },
     -1, 0},
    {"max_pool_dilated",
     [](Network& n) {
       return aten::MaxPool2d::create(n.b, n.input({2, 3, 9, 11}), Ints{3, 2}, Ints{1, 1}, Ints{1, 0},
                                      Ints{2, 3}, false)
           .output();
     },
     -1, 0},
    {"max_pool_dilated_and_strided_ceil",
     [](Network& n) {
       return aten::MaxPool2d::create(n.b, n.input({1, 2, 10, 12}), Ints{3, 2}, Ints{2, 3}, Ints{1, 1},
                                      Ints{2, 3}, true)
           .output();
     },
     -1, 0},
    {"avg_pool_divisor_and_edges",
     [](Network& n) {
       return aten::AvgPool2d::create(n.b, n.input({1, 2, 7, 8}), Ints{3, 3}, Ints{2, 2}, Ints{1, 1}, true,
                                      false, int64_t{4})
           .output();
     },
     -1, 0.5},
};
INSTANTIATE_TEST_SUITE_P(Windows, Decomposed, testing::ValuesIn(kWindows),
                         [](const auto& param) { return std::string(param.param.name); });

const Case kIndexing[] = {
    {"two_indices",
     [](Network& n) {
       return aten::IndexTensor::create(n.b, n.input({5, 4, 3}),
                                        {n.numbers({2}, {3, -1}), n.numbers({2}, {0, 2})})
           .output();
     },
     -1, 0},
    {"indices_apart",
     [](Network& n) {
       return aten::IndexTensor::create(n.b, n.input({5, 4, 3}),
                                        {n.numbers({2, 1}, {3, 1}), nullptr, n.numbers({3}, {0, 2, 1})})
           .output();
     },
     -1, 0},
    {"indices_behind",
     [](Network& n) {
       return aten::IndexTensor::create(n.b, n.input({2, 4, 3}),
                                        {nullptr, n.numbers({2, 1}, {3, 1}), n.numbers({3}, {0, 2, 1})})
           .output();
     },
     -1, 0},
    {"bools_by_row",
     [](Network& n) {
       return aten::IndexSelect::create(n.b, n.input({10, 4}, DType::Bool), n.input({3}, DType::Int32),
                                        int64_t{0})
           .output();
     },
     -1, 0},
    {"put_inside",
     [](Network& n) {
       return aten::IndexPut::create(n.b, n.input({2, 5, 3}), {nullptr, n.numbers({2}, {4, 1})},
                                     n.input({2, 3}), false)
           .output();
     },
     -1, 0},
    {"put_by_two",
     [](Network& n) {
       return aten::IndexPut::create(n.b, n.input({5, 4, 3}),
                                     {n.numbers({2}, {0, 4}), n.numbers({2}, {1, 3})}, n.input({3}), false)
           .output();
     },
     -1, 0},
    {"put_many_rows",  // too many pieces for slices
     [](Network& n) {
       std::vector<int64_t> odd;
       for (int64_t i = 1; i < 60; i += 2) odd.push_back(i);
       return aten::IndexPut::create(n.b, n.input({60, 2}), {n.numbers({30}, odd)}, n.input({30, 2}), false)
           .output();
     },
     -1, 0},
    {"put_where_told",  // perhaps some of them at the same place
     [](Network& n) {
       Value* told = aten::BitwiseAndScalar::create(n.b, n.input({6}, DType::Int32), int64_t{3}).output();
       Value* index = aten::SubScalar::create(n.b, told, int64_t{4}, int64_t{1}).output();
       return aten::IndexPut::create(n.b, n.input({5, 3}), {index}, n.input({6, 3}), false).output();
     },
     -1, 0},
    {"rows_from_the_back",
     [](Network& n) {
       Value* told = aten::BitwiseAndScalar::create(n.b, n.input({6}, DType::Int32), int64_t{7}).output();
       Value* index = aten::SubScalar::create(n.b, told, int64_t{4}, int64_t{1}).output();
       return aten::IndexTensor::create(n.b, n.input({3, 5}), {nullptr, index}).output();
     },
     -1, 0},
    {"elements_from_the_back",
     [](Network& n) {
       Value* told = aten::BitwiseAndScalar::create(n.b, n.input({6}, DType::Int32), int64_t{3}).output();
       Value* index = aten::SubScalar::create(n.b, told, int64_t{4}, int64_t{1}).output();
       return aten::IndexTensor::create(n.b, n.input({4, 5}), {index, told}).output();
     },
     -1, 0},
    {"index_add",
     [](Network& n) {
       return aten::IndexAdd::create(n.b, n.input({2, 5}), n.numbers({3}, {4, 0, 4}), n.input({2, 3}),
                                     int64_t{1}, 2.0)
           .output();
     },
     -1, 0.1},
    {"take",
     [](Network& n) {
       return aten::Take::create(n.b, n.input({3, 4}), n.numbers({2, 2}, {11, 0, -1, 5})).output();
     },
     -1, 0},
    {"masked_scatter",
     [](Network& n) {
       return aten::MaskedScatter::create(n.b, n.input({3, 4}), n.input({3, 4}, DType::Bool), n.input({12}))
           .output();
     },
     -1, 0},
    {"put_accumulated",
     [](Network& n) {
       return aten::IndexPut::create(n.b, n.input({5, 3}), {n.numbers({4}, {1, 0, 1, 4})}, n.input({4, 3}),
                                     true)
           .output();
     },
     -1, 0.1},
    {"put_accumulated_integers",  // three at one place
     [](Network& n) {
       return aten::IndexPut::create(
                  n.b, n.input({3, 4, 2}, DType::Int32),
                  {nullptr, n.numbers({5}, {1, 3, 1, 1, 0}), n.numbers({5}, {0, 1, 0, 0, 1})},
                  n.input({3, 5}, DType::Int32), true)
           .output();
     },
     -1, 0},
    {"index_copy",
     [](Network& n) {
       return aten::IndexCopy::create(n.b, n.input({2, 5, 3}), n.numbers({2}, {4, 1}), n.input({2, 2, 3}),
                                      int64_t{1})
           .output();
     },
     -1, 0},
    {"index_fill",
     [](Network& n) {
       return aten::IndexFillIntScalar::create(n.b, n.input({2, 5}), n.numbers({2}, {4, 1}), int64_t{-1}, 0.5)
           .output();
     },
     -1, 0},
    {"slice_scatter_step",
     [](Network& n) {
       return aten::SliceScatter::create(n.b, n.input({2, 9}), n.input({2, 3}), int64_t{1}, 1, 9, int64_t{3})
           .output();
     },
     -1, 0},
    {"scatter",
     [](Network& n) {
       return aten::ScatterSrc::create(n.b, n.input({4, 3}), n.numbers({2, 3}, {0, 3, 1, 2, 0, 3}),
                                       n.input({3, 3}), int64_t{0})
           .output();
     },
     -1, 0},
    {"scatter_value",
     [](Network& n) {
       return aten::ScatterValue::create(n.b, n.input({4, 3}), n.numbers({4, 1}, {0, 2, 1, 2}), int64_t{1},
                                         0.25)
           .output();
     },
     -1, 0},
};
INSTANTIATE_TEST_SUITE_P(Indexing, Decomposed, testing::ValuesIn(kIndexing),
                         [](const auto& param) { return std::string(param.param.name); });

/// A mask chooses places for one value; the float executor has no such indexing, so its result is written
/// here.
TEST(Masks, PutOneValueWhereTheyAreTrue) {
  Network n;
  Value* x = n.input({2, 3});
  Value* mask = n.input({2}, DType::Bool);
  n.graph.setOutputs(
      {aten::IndexPut::create(n.b, x, {mask}, n.graph.addConstant(Tensor::scalar(7.0f)), false).output()});
  ASSERT_TRUE(decompose::forNpu(n.graph).ok());
  Tensor keep = Tensor::zeros(DType::Bool, {2});
  keep.setIntegerAt(1, 1);
  const auto result = aten::execute(
      n.graph, std::vector<Tensor>{Tensor::from({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6}), keep});
  ASSERT_TRUE(result.ok()) << result.error().str();
  const std::vector<double> expected{1, 2, 3, 7, 7, 7};
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ((*result)[0].realAt(i), expected[static_cast<size_t>(i)]);
}

/// Extremes with their places: both are used, so both are computed.
TEST(Extremes, WithIndicesAreTwoReductions) {
  Network n;
  const aten::MinDim op = aten::MinDim::create(n.b, n.input({3, 5}), int64_t{1}, false);
  n.graph.setOutputs({op.node()->result(0), op.node()->result(1)});
  ASSERT_TRUE(decompose::forNpu(n.graph).ok());
  const auto result =
      aten::execute(n.graph, std::vector<Tensor>{Tensor::from(
                                 {3, 5}, std::vector<float>{4, 2, 2, 9, 3, 0, 1, 2, 3, 4, 5, 4, 3, 2, 1})});
  ASSERT_TRUE(result.ok()) << result.error().str();
  const std::vector<double> values{2, 0, 1}, indices{1, 0, 4};
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ((*result)[0].realAt(i), values[static_cast<size_t>(i)]);
    EXPECT_EQ((*result)[1].realAt(i), indices[static_cast<size_t>(i)]);
  }
}

Value* einsum(Network& n, const char* equation, const std::vector<Value*>& operands) {
  return aten::Einsum::create(n.b, operands, equation, std::nullopt).output();
}

const Case kEinsum[] = {
    {"scores",  // as MaxViT has them
     [](Network& n) {
       return einsum(n, "B G H I D, B G H J D -> B G H I J",
                     {n.input({1, 2, 3, 5, 4}), n.input({1, 2, 3, 6, 4})});
     }},
    {"weights_times_values",
     [](Network& n) {
       return einsum(n, "bhij,bjhd->bihd", {n.input({2, 3, 4, 5}), n.input({2, 5, 3, 6})});
     }},
    {"matrix",
     [](Network& n) {
       return einsum(n, "bld,dk->blk", {n.input({2, 3, 8}), n.weight({8, 5})});
     }},
    {"outer",
     [](Network& n) {
       return einsum(n, "bi,bj->bij", {n.input({2, 3}), n.input({2, 4})});
     }},
    {"sums_of_one_operand",
     [](Network& n) {
       return einsum(n, "bij,bjk->bk", {n.input({2, 3, 4}), n.input({2, 4, 5})});
     }},
    {"broadcast",
     [](Network& n) {
       return einsum(n, "...ij,...jk->...ik", {n.input({2, 3, 4}), n.input({1, 4, 5})});
     }},
    {"one_operand",
     [](Network& n) {
       return einsum(n, "ijk->ki", {n.input({2, 3, 4})});
     }},
    {"three_operands",
     [](Network& n) {
       return einsum(n, "bi,ij,bj->b", {n.input({3, 4}), n.weight({4, 5}), n.input({3, 5})});
     }},
    {"shared_heads",  // grouped-query attention
     [](Network& n) {
       Value *q = n.input({1, 4, 5, 8}), *k = n.input({1, 2, 6, 8}), *v = n.input({1, 2, 6, 8});
       return aten::ScaledDotProductAttention::create(n.b, q, k, v, nullptr, 0.0, false, std::nullopt, true)
           .output();
     }},
};
INSTANTIATE_TEST_SUITE_P(Einsum, Decomposed, testing::ValuesIn(kEinsum),
                         [](const auto& param) { return std::string(param.param.name); });

/// Windows of two by two: one dimension more than TOSA has.
Value* windows(Network& n, Value* x) {
  Value* split = aten::View::create(n.b, x, Ints{2, 2, 2, 2, 2, 2, 3}).output();
  return aten::Permute::create(n.b, split, Ints{0, 2, 4, 1, 3, 5, 6}).output();
}
Value* flattened(Network& n, Value* x) {
  return aten::View::create(n.b, x, Ints{x->numElements() / 6, 6}).output();
}

const Case kManyDimensions[] = {
    {"long_recurrence_in_both_directions",  // the input's products come in parts
     [](Network& n) {
       Value* zeros = n.graph.addConstant(Tensor::zeros(DType::Float32, {2, 1, 4}));
       std::vector<Value*> params;
       for (int i = 0; i < 2; ++i) {
         for (const Shape& shape : {Shape{12, 3}, Shape{12, 4}, Shape{12}, Shape{12}})
           params.push_back(n.weight(shape));
       }
       return aten::GruInput::create(n.b, n.input({1, 600, 3}), zeros, params, true, int64_t{1}, 0.0, false,
                                     true, true)
           .node()
           ->result(0);
     }},
    {"elements_of_windows",
     [](Network& n) {
       Value* x = windows(n, n.input({8, 8, 3}));
       return flattened(n, n.add(n.relu(x), windows(n, n.input({8, 8, 3}))));
     }},
    {"windows_plus_vector",
     [](Network& n) {
       Value* x = windows(n, n.input({8, 8, 3}));
       Value* rows = aten::View::create(n.b, n.input({4, 1}), Ints{2, 1, 2, 1, 1}).output();
       return flattened(n, n.add(n.add(x, n.input({3})), rows));
     }},
    {"centred_windows",
     [](Network& n) {
       Value* x = windows(n, n.input({8, 8, 3}));
       Value* mean = aten::MeanDim::create(n.b, x, Ints{3, 4, -2}, true, std::nullopt).output();
       return flattened(n, aten::SubTensor::create(n.b, x, mean, int64_t{1}).output());
     }},
    {"largest_of_windows",
     [](Network& n) {
       Value* x = windows(n, n.input({8, 8, 3}));
       return aten::View::create(n.b, aten::Amax::create(n.b, x, Ints{1, 3}, false).output(), Ints{8, 6})
           .output();
     },
     -1, 0},
    {"joined_and_cut_windows",
     [](Network& n) {
       Value* x = windows(n, n.input({8, 8, 3}));
       Value* joined = aten::Cat::create(n.b, {x, x}, int64_t{-3}).output();
       return flattened(
           n,
           aten::SliceTensor::create(n.b, joined, int64_t{4}, int64_t{1}, int64_t{4}, int64_t{2}).output());
     },
     -1, 0},
    {"linear_of_windows",
     [](Network& n) {
       Value* x = windows(n, n.input({8, 8, 3}));
       return flattened(n, aten::Linear::create(n.b, x, n.weight({6, 3}), n.weight({6})).output());
     }},
    {"products_of_windows",
     [](Network& n) {
       Value* x = windows(n, n.input({8, 8, 3}));
       Value* y = windows(n, n.input({8, 8, 3}));
       y = aten::Permute::create(n.b, y, Ints{0, 1, 2, 3, 4, 6, 5}).output();
       return aten::View::create(n.b, aten::Matmul::create(n.b, x, y).output(), Ints{32, 4}).output();
     }},
};
INSTANTIATE_TEST_SUITE_P(ManyDimensions, Decomposed, testing::ValuesIn(kManyDimensions),
                         [](const auto& param) { return std::string(param.param.name); });

TEST(Recurrent, GatesOfOneFunctionAreOneOperation) {
  Network n;
  Value* zeros = n.graph.addConstant(Tensor::zeros(DType::Float32, {1, 2, 4}));
  const std::vector<Value*> params{n.weight({16, 3}), n.weight({16, 4}), n.weight({16}), n.weight({16})};
  const auto lstm = aten::LstmInput::create(n.b, n.input({5, 2, 3}), {zeros, zeros}, params, true, int64_t{1},
                                            0.0, false, false, false);
  n.graph.setOutputs({lstm.node()->result(0)});
  ASSERT_TRUE(decompose::forNpu(n.graph).ok());
  std::map<std::string_view, int> count;
  for (const ir::Node* node : n.graph.nodes()) ++count[node->opName()];
  EXPECT_EQ(count["aten.sigmoid.default"], 5);   // input, forget and output gate of a step
  EXPECT_EQ(count["aten.tanh.default"], 2 * 5);  // candidate and cell
  EXPECT_EQ(count["aten.add.Tensor"], 3 * 5);    // two sums of gates, the cell
  EXPECT_EQ(count["aten.linear.default"],
            1 + 4);  // of the input in all steps; that of the zeros is a constant
}

TEST(WeightNorm, BecomesAConstant) {
  const ir::OpDef* def = aten::findOperator("aten._weight_norm.default");
  for (const int64_t dim : {0, 1, -1}) {
    Network n;
    Value* v = n.weight({3, 4, 2});
    Value* g = n.weight(dim == 0 ? Shape{3, 1, 1} : dim == 1 ? Shape{1, 4, 1} : Shape{});
    ir::NodeSpec spec;
    spec.def = def;
    spec.operands = {{v}, {g}};
    spec.attributes = {dim};
    spec.types = {v->type};
    const auto node = n.graph.create(std::move(spec));
    ASSERT_TRUE(node.ok()) << node.error().str();
    n.graph.setOutputs({(*node)->result()});
    const Tensor directions = v->constant(), lengths = g->constant();
    ASSERT_TRUE(decompose::replaceComposites(n.graph).ok());
    ASSERT_TRUE(decompose::forNpu(n.graph).ok());
    ASSERT_TRUE(n.graph.outputs()[0]->isConstant());
    const Tensor& weight = n.graph.outputs()[0]->constant();
    const auto group = [&](int64_t i) { return dim == 0 ? i / 8 : dim == 1 ? i / 2 % 4 : 0; };
    for (int64_t i = 0; i < 24; ++i) {
      double squares = 0;
      for (int64_t k = 0; k < 24; ++k) {
        if (group(k) == group(i)) squares += directions.realAt(k) * directions.realAt(k);
      }
      EXPECT_NEAR(weight.realAt(i), directions.realAt(i) * lengths.realAt(group(i)) / std::sqrt(squares),
                  1e-6);
    }
  }
}

/// x / max(|x|, 1e-12), as F.normalize exports it: a row of zeros stays zero and takes no range from the
/// others.
TEST(Normalize, ARowOfZerosCostsNoAccuracy) {
  Network n;
  Value* x = n.input({4, 16});
  Value* squares = aten::MulTensor::create(n.b, x, x).output();
  Value* sum = aten::SumDimIntList::create(n.b, squares, Ints{-1}, true, std::nullopt).output();
  Value* length = aten::ClampMin::create(n.b, aten::Sqrt::create(n.b, sum).output(), 1e-12).output();
  Value* wide = aten::Expand::create(n.b, length, Ints{4, 16}, false).output();
  n.graph.setOutputs({aten::DivTensor::create(n.b, x, wide).output()});
  Tensor rows = randomFloats({4, 16}, 3);
  for (size_t i = 0; i < 16; ++i) rows.mutableAs<float>()[i] = 0;
  const auto expected = aten::execute(n.graph, {{rows}});
  ASSERT_TRUE(expected.ok()) << expected.error().str();
  ASSERT_TRUE(decompose::forNpu(n.graph).ok());
  const std::vector<quantize::Sample> samples{{rows}};
  const auto quantized = quantize::quantize(std::move(n.graph), {}, samples);
  ASSERT_TRUE(quantized.ok()) << quantized.error().str();
  const auto simulated = aten::execute(quantized->graph, {{rows}});
  ASSERT_TRUE(simulated.ok()) << simulated.error().str();
  for (int64_t i = 0; i < 64; ++i)
    EXPECT_NEAR((*simulated)[0].realAt(i), (*expected)[0].realAt(i), 0.03) << i;
}

}  // namespace
}  // namespace carina::lower::test
