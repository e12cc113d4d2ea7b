// SPDX-License-Identifier: Apache-2.0
// Networks that are decomposed into other operators before lowering: the same results, quantized or not.
#pragma once

#include "aten/executor.hpp"
#include "decompose/decompose.hpp"
#include "lower_case.hpp"
#include "support/require.hpp"

namespace carina::lower::test {

/// The decomposed network computes the same results in float.
inline void checkKeepsTheResult(const Case& c) {
  Network network, small;
  network.graph.setOutputs({c.build(network)});
  small.graph.setOutputs({c.build(small)});
  ASSERT_TRUE(decompose::forNpu(small.graph).ok());
  std::vector<Tensor> inputs;
  for (const Value* input : network.graph.inputs()) {
    const auto seed = static_cast<uint32_t>(inputs.size()) + 7;
    inputs.push_back(isFloat(input->dtype()) ? randomFloats(input->shape(), seed)
                                             : randomCodes(input->type, seed));
  }
  const auto expected = require(aten::execute(network.graph, inputs));
  const auto actual = require(aten::execute(small.graph, inputs));
  const Tensor &x = expected[0], &y = actual[0];
  ASSERT_EQ(x.shape(), y.shape());
  ASSERT_EQ(x.dtype(), y.dtype());
  for (int64_t i = 0; i < x.numElements(); ++i)
    EXPECT_NEAR(x.realAt(i), y.realAt(i), 1e-5 * (1 + std::abs(x.realAt(i)))) << i;
}

}  // namespace carina::lower::test
