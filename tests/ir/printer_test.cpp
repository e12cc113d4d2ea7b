// SPDX-License-Identifier: Apache-2.0
// The textual form of graphs.
#include "ir/printer.hpp"

#include <gtest/gtest.h>

#include "toy/ops.hpp"

namespace carina::ir {
namespace {

TEST(Printer, ShowsValuesAttributesAndQuantization) {
  Graph graph("net");
  Value* x = graph.addInput({DType::Int8, {1, 2}}, "x");
  x->quantization = Quantization{{0.25}, {-3}, -1};
  Value* w = graph.addConstant(Tensor::from<int8_t>({1, 2}, std::vector<int8_t>{4, -5}), "w");
  Value* big = graph.addConstant(Tensor::zeros(DType::Int8, {100}), "");
  Builder build(graph, nullptr, std::make_shared<Location>(Location{"add_1", "features.0", "model.py:7"}));
  auto add = toy::Add::create(build, x, w, toy::Mode::FANCY, int64_t{1});
  auto cat = toy::CatDefault::create(build, {add.sum(), big}, x, {1, -1}, std::nullopt);
  graph.setOutputs({cat.whole()});
  EXPECT_EQ(print(graph), R"(graph @net(%x: i8[1,2]<0.25:-3>) -> (%2) {
  %w: i8[1,2] = [4, -5]
  %0: i8[100] = #1fc05eb337858375
  %1: i8[1,2] = toy.ADD(%x, %w) {mode = FANCY}
  %2: i8[1,2] = toy.cat.default([%1, %0], %x) {dims = [1, -1]}
}
)");
  const std::string located = print(graph, {.locations = true});
  EXPECT_NE(located.find("// add_1 (module features.0) at model.py:7"), std::string::npos);
}

}  // namespace
}  // namespace carina::ir
