// SPDX-License-Identifier: Apache-2.0
// Small networks that are lowered and compared with the simulation, one per rule or decomposition.
#pragma once

#include <gtest/gtest.h>

#include "aten/ops.hpp"
#include "fake_quant.hpp"
#include "support/graph_cases.hpp"
#include "support/graph_maker.hpp"
#include "support/require.hpp"
#include "tosa/ops.hpp"

namespace carina::lower::test {

using ir::Ints;
using ir::Value;

/// A graph under construction, with its weights.
struct Network : carina::test::GraphMaker {
  uint32_t seed = 1;

  Value* numbers(const Shape& shape, const std::vector<int64_t>& values) {
    return graph.addConstant(Tensor::from(shape, values));
  }
  Value* weight(const Shape& shape, float deviation = 0.3f) {
    return graph.addConstant(randomFloats(shape, ++seed, deviation));
  }
  Value* conv(Value* x, const Shape& w, Ints stride, Ints padding, Ints dilation = {1, 1}, int64_t groups = 1,
              bool bias = true) {
    return make<aten::Conv2d>(x, weight(w), bias ? weight({w[0]}) : nullptr, std::move(stride),
                              std::move(padding), std::move(dilation), groups);
  }
  Value* add(Value* x, Value* y) { return make<aten::AddTensor>(x, y, int64_t{1}); }
  Value* relu(Value* x) { return make<aten::Relu>(x); }
};

struct Case {
  std::string name;
  std::function<Value*(Network&)> build;
  int transposes = -1;  // expected number of TRANSPOSE nodes; -1: not checked
  double share = 0.01;  // of elements that may differ
  double largest = 1;   // allowed difference in codes
};

inline void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}
inline std::string nameOf(const testing::TestParamInfo<Case>& info) {
  return info.param.name;
}

/// The networks of tests/data/lower/FILE.ir. The number in a weight's name is the seed of its values; those
/// of "wide" weights have a larger deviation.
inline std::vector<Case> casesIn(const std::string& file) {
  std::vector<Case> cases;
  for (const carina::test::GraphCase& text : carina::test::graphCases("lower/" + file + ".ir")) {
    const auto weight = [](const Value& value) {
      const bool wide = value.name.starts_with("wide");
      const auto seed = static_cast<uint32_t>(std::stoul(value.name.substr(wide ? 4 : 1)));
      return randomFloats(value.shape(), seed, wide ? 0.8f : 0.3f);
    };
    const auto build = [text, weight](Network& n) {
      n.graph = carina::test::graphOf(text, weight);
      return n.graph.outputs().front();
    };
    const Case usual;
    cases.push_back({text.name, build, static_cast<int>(text.number("transposes", usual.transposes)),
                     text.number("share", usual.share), text.number("largest", usual.largest)});
  }
  return cases;
}

/// Expects complete lowering, and few elements that differ from the simulation, by few codes (one unless the
/// case allows more).
inline void check(const Case& c, const quantize::Options& options) {
  Network network;
  Value* output = c.build(network);
  network.graph.setOutputs({output});
  auto partitioned = require(quantizeAndPartition(std::move(network.graph), options));
  std::string why;
  for (const auto& refusal : partitioned.refusals) why += refusal.op + ": " + refusal.reason + "\n";
  ASSERT_TRUE(partitioned.wholly) << why;
  const auto comparison = require(compareDelegates(partitioned));
  EXPECT_LE(comparison.largest, c.largest);
  EXPECT_LE(comparison.share(), c.share) << comparison.different << " of " << comparison.elements;
  if (c.transposes >= 0) {
    EXPECT_EQ(countOps(partitioned, tosa::Transpose::def()), c.transposes);
  }
}

}  // namespace carina::lower::test
