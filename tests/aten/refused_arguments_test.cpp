// SPDX-License-Identifier: Apache-2.0
// Type inference refuses what PyTorch refuses; if it misses something, the kernel ends with an error.
#include "aten/one_op.hpp"
#include "support/require.hpp"

namespace carina::aten::test {
namespace {

Tensor bools(const Shape& shape) {
  return Tensor::zeros(DType::Bool, shape);
}
Tensor ints(const Shape& shape) {
  return Tensor::zeros(DType::Int32, shape);
}
Tensor reals(const Shape& shape) {
  return Tensor::zeros(DType::Float32, shape);
}

/// Why the operator is refused before anything runs; empty if it is not.
std::string refusal(const std::string& op, const std::vector<Tensor>& operands,
                    const Attributes& attributes = {}) {
  Groups groups;
  for (const Tensor& operand : operands) groups.push_back({operand});
  return errorOf(oneOp(op, groups, attributes));
}

TEST(AtenRefusedArguments, ClampWithoutBounds) {
  for (const char* op : {"aten.clamp.default", "aten.clamp.Tensor"})
    EXPECT_NE(refusal(op, {reals({2})}).find("needs a lower or an upper bound"), std::string::npos) << op;
  EXPECT_EQ(refusal("aten.clamp.default", {reals({2})}, {{"max", "1.0"}}), "");
  EXPECT_EQ(refusal("aten.clamp.Tensor", {reals({2}), reals({2})}), "");
}

TEST(AtenRefusedArguments, CellsWhoseStatesDiffer) {
  const auto refused = [](const Shape& second) {
    Groups groups{{reals({1, 10})},  {reals({1, 12}), reals(second)},
                  {reals({48, 10})}, {reals({48, 12})},
                  {reals({48})},     {reals({48})}};
    return !oneOp("aten.lstm_cell.default", groups, {}).ok();
  };
  EXPECT_FALSE(refused({1, 12}));
  EXPECT_TRUE(refused({4, 1, 12}));
}

TEST(AtenRefusedArguments, OutputPaddingsNotBelowTheStride) {
  const auto refused = [](const std::string& padding) {
    return refusal("aten.conv_transpose2d.input", {reals({1, 8, 6, 6}), reals({8, 4, 3, 3})},
                   {{"stride", "[2, 2]"}, {"output_padding", padding}});
  };
  EXPECT_EQ(refused("[1, 1]"), "");
  EXPECT_NE(refused("[2, 1]").find("must be smaller than stride 2 or dilation 1"), std::string::npos);
}

TEST(AtenRefusedArguments, SizesTogetherWithFactors) {
  const Attributes both{{"output_size", "[]"}, {"scale_factors", "[2.0, 2.0]"}};
  EXPECT_NE(refusal("aten.upsample_nearest2d.vec", {reals({1, 2, 3, 3})}, both).find("exactly one of"),
            std::string::npos);
  EXPECT_EQ(refusal("aten.upsample_nearest2d.vec", {reals({1, 2, 3, 3})}, {both[1]}), "");
}

TEST(AtenRefusedArguments, RunningSumsAlongMissingDimensions) {
  for (const char* dim : {"2", "-3", "-2147483648"})
    EXPECT_NE(refusal("aten.logcumsumexp.default", {reals({2, 3})}, {{"dim", dim}}), "") << dim;
  EXPECT_EQ(refusal("aten.logcumsumexp.default", {reals({2, 3})}, {{"dim", "-2"}}), "");
}

TEST(AtenRefusedArguments, UnknownModesAndQuotientsOfIntegers) {
  const auto sampled = [](const char* padding) {
    return refusal("aten.grid_sampler_2d.default", {reals({1, 2, 3, 3}), reals({1, 4, 4, 2})},
                   {{"interpolation_mode", "0"}, {"padding_mode", padding}, {"align_corners", "True"}});
  };
  EXPECT_EQ(sampled("1"), "");
  EXPECT_NE(sampled("17").find("padding mode 17 is not known"), std::string::npos);
  EXPECT_EQ(refusal("aten.addcdiv.default", {reals({2}), reals({2}), reals({2})}), "");
  EXPECT_NE(
      refusal("aten.addcdiv.default", {bools({2}), bools({2}), bools({2})}).find("not defined on integers"),
      std::string::npos);
}

TEST(AtenRefusedArguments, CodesOf64Bits) {
  const auto refused = [](const std::string& type) {
    return refusal(
        "quantized_decomposed.quantize_per_tensor.default", {reals({2})},
        {{"scale", "0.1"}, {"zero_point", "0"}, {"quant_min", "-1"}, {"quant_max", "1"}, {"dtype", type}});
  };
  EXPECT_EQ(refused("i32"), "");
  EXPECT_NE(refused("i64").find("codes of type int64"), std::string::npos);
}

TEST(AtenRefusedArguments, AveragePoolsOfIntegers) {
  const Tensor image = Tensor::zeros(DType::Int64, {1, 1, 2, 2});
  EXPECT_NE(refusal("aten.avg_pool2d.default", {image}, {{"kernel_size", "[1, 1]"}}).find("floating-point"),
            std::string::npos);
  EXPECT_NE(refusal("aten.adaptive_avg_pool2d.default", {image}, {{"output_size", "[1, 1]"}})
                .find("floating-point"),
            std::string::npos);
}

TEST(AtenRefusedArguments, IndicesOfOtherTypesAndMasksThatDoNotFit) {
  const auto refused = [](const std::vector<Tensor>& indices) {
    Groups groups(3);
    groups[0].push_back(reals({3, 4, 5}));
    groups[1].assign(indices.begin(), indices.end());
    groups[2].push_back(reals({}));
    return errorOf(oneOp("aten.index_put.default", groups, {}));
  };
  EXPECT_EQ(refused({ints({2})}), "");
  EXPECT_EQ(refused({bools({3, 4})}), "");
  EXPECT_EQ(refused({bools({3}), ints({1})}), "");
  EXPECT_NE(refused({Tensor::zeros(DType::Int16, {2})}).find("int32 or int64"), std::string::npos);
  EXPECT_NE(refused({bools({3}), reals({1})}).find("int32 or int64"), std::string::npos);
  EXPECT_NE(refused({bools({4, 4})}).find("does not fit into"), std::string::npos);
  EXPECT_NE(refused({bools({3, 4, 5, 1})}).find("does not fit into"), std::string::npos);
}

TEST(AtenRefusedArguments, ProductsOfBoolsOrMixedTypes) {
  const std::vector<std::pair<std::string, std::vector<Shape>>> products{
      {"aten.mm.default", {{2, 2}, {2, 2}}},
      {"aten.bmm.default", {{1, 2, 2}, {1, 2, 2}}},
      {"aten.matmul.default", {{2, 2}, {2}}},
      {"aten.mv.default", {{2, 2}, {2}}},
      {"aten.dot.default", {{2}, {2}}},
      {"aten.linear.default", {{2, 2}, {2, 2}}},
      {"aten.addmm.default", {{2, 2}, {2, 2}, {2, 2}}},
      {"aten.addmv.default", {{2}, {2, 2}, {2}}},
      {"aten.conv2d.default", {{1, 1, 2, 2}, {1, 1, 1, 1}}}};
  for (const auto& [op, shapes] : products) {
    std::vector<Tensor> truth, mixed, whole;
    for (const Shape& shape : shapes) {
      truth.push_back(bools(shape));
      mixed.push_back(mixed.empty() ? reals(shape) : ints(shape));
      whole.push_back(ints(shape));
    }
    EXPECT_NE(refusal(op, truth).find("not defined on bool"), std::string::npos) << op;
    EXPECT_NE(refusal(op, mixed).find("expected one type"), std::string::npos) << op;
    EXPECT_EQ(refusal(op, whole), "") << op;
  }
  EXPECT_EQ(refusal("aten.outer.default", {bools({2}), bools({2})}), "") << "an elementwise product";
}

TEST(AtenRefusedArguments, QuotientsOfBoolsAndByZero) {
  for (const char* op : {"aten.floor_divide.default", "aten.remainder.Tensor", "aten.fmod.Tensor",
                         "aten.pow.Tensor_Tensor", "aten.sub.Tensor"})
    EXPECT_NE(refusal(op, {bools({2}), bools({2})}).find("not defined on bool"), std::string::npos) << op;
  for (const char* op : {"aten.floor_divide.Scalar", "aten.remainder.Scalar", "aten.fmod.Scalar"}) {
    EXPECT_NE(refusal(op, {ints({2})}, {{"other", "0"}}).find("divides integers by 0"), std::string::npos)
        << op;
    EXPECT_EQ(refusal(op, {ints({2})}, {{"other", "3"}}), "") << op;
    EXPECT_EQ(refusal(op, {reals({2})}, {{"other", "0"}}), "") << op;
  }
  // A constant divisor.
  ir::Graph graph;
  ir::NodeSpec spec;
  spec.def = findOperator("aten.floor_divide.default");
  spec.operands = {{graph.addInput({DType::Int32, {2}})}, {graph.addConstant(ints({2}))}};
  EXPECT_NE(errorOf(graph.create(std::move(spec))).find("divides integers by 0"), std::string::npos);
}

TEST(AtenRefusedArguments, MeansAndNormsOfIntegerTypes) {
  const Attributes integer{{"dtype", "i64"}};
  EXPECT_NE(refusal("aten.mean.default", {reals({2})}, integer).find("floating-point"), std::string::npos);
  EXPECT_NE(refusal("aten.linalg_vector_norm.default", {reals({2})}, integer).find("floating-point"),
            std::string::npos);
  EXPECT_EQ(refusal("aten.sum.default", {reals({2})}, integer), "");
  EXPECT_NE(refusal("aten._softmax.default", {reals({2})}, {{"dim", "0"}, {"half_to_float", "True"}})
                .find("half_to_float"),
            std::string::npos);
}

TEST(AtenRefusedArguments, ShapesAndTypesOfSingleOperators) {
  EXPECT_NE(refusal("aten.triu.default", {reals({3})}).find("takes matrices"), std::string::npos);
  EXPECT_NE(
      refusal("aten.one_hot.default", {reals({3})}, {{"num_classes", "4"}}).find("expected an integer type"),
      std::string::npos);
}

TEST(AtenRefusedArguments, DropoutInTraining) {
  for (const char* op :
       {"aten.dropout.default", "aten.alpha_dropout.default", "aten.native_dropout.default"}) {
    EXPECT_NE(refusal(op, {reals({2})}, {{"p", "0.5"}, {"train", "True"}}).find("eval"), std::string::npos)
        << op;
    EXPECT_EQ(refusal(op, {reals({2})}, {{"p", "0.5"}, {"train", "False"}}), "") << op;
  }
}

TEST(AtenRefusedArguments, AKernelThatGetsAnUnexpectedTypeEndsWithAnError) {
  const std::string text =
      errorOf(runGroups("aten.layer_norm.default", {{reals({2, 4})}, {Tensor::zeros(DType::Int8, {4})}, {}},
                        {{"normalized_shape", "[4]"}}));
  EXPECT_NE(text.find("aten.layer_norm.default: internal error: element type"), std::string::npos) << text;
  EXPECT_NE(text.find("report it"), std::string::npos) << text;
}

}  // namespace
}  // namespace carina::aten::test
