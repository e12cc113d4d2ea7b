// SPDX-License-Identifier: Apache-2.0
// Arrays for compiled Ethos-N networks, which record only how many bytes an input has.
#include <gtest/gtest.h>

#include "pipeline/ethosn.hpp"

namespace carina::pipeline {
namespace {

EthosNProgram fourBytesIn() {
  EthosNProgram program;
  program.network.inputs.emplace_back().size = 4;
  return program;
}

TEST(EthosNPorts, TakeShapeAndSignOfTheArray) {
  const auto ports = ethosNPorts(fourBytesIn(), {{"in0", Tensor::zeros(DType::Int8, {1, 2, 2})}});
  ASSERT_TRUE(ports.ok()) << ports.error().str();
  EXPECT_EQ((*ports)[0].type.dtype, DType::Int8);
  EXPECT_EQ((*ports)[0].type.shape, (Shape{1, 2, 2}));
}

TEST(EthosNPorts, FloatsAreRefusedWithARemedy) {
  const auto ports = ethosNPorts(fourBytesIn(), {{"in0", Tensor::zeros(DType::Float32, {4})}});
  ASSERT_FALSE(ports.ok());
  EXPECT_NE(ports.error().str().find("zero point"), std::string::npos) << ports.error().str();
}

}  // namespace
}  // namespace carina::pipeline
