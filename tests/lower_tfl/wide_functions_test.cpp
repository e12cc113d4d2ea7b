// SPDX-License-Identifier: Apache-2.0
// LOGISTIC and TANH of int16 codes become one operation with the hardware's own function, exact for every
// code.
#include <gtest/gtest.h>

#include "base/file.hpp"
#include "compiler/dialect/wide_function.hpp"
#include "compiler/program_runner.hpp"
#include "lower_tfl/lower.hpp"
#include "support/require.hpp"
#include "tflite/file_builder.hpp"
#include "tflite/graph_builder.hpp"
#include "tflite/model.hpp"

namespace carina {
namespace {

constexpr int32_t kLogistic = 14, kTanh = 28;

Result<lower_tfl::Lowered> lowered(int32_t function, float scale) {
  using tflite::TensorType;
  test::TfliteFile file;
  file.tensors = {{"x", TensorType::Int16, {1, 64, 1024}, "", -1, {scale}, {0}},
                  {"y", TensorType::Int16, {1, 64, 1024}, "", -1, {0x1p-15F}, {0}}};
  file.operators = {{"", function, {0}, {1}}};
  file.inputs = {0};
  file.outputs = {1};
  const std::string bytes = file.bytes();
  CARINA_TRY(const auto model, tflite::readModel(asBytes(bytes)));
  CARINA_TRY(const ir::Graph network, tflite::buildGraph(model, nullptr));
  return lower_tfl::lowerToTosa(network);
}

/// The table ends after 256 intervals of 512 (256) values.
TEST(WideFunctions, TablesAreExactForEveryValue) {
  const Tensor both = npu_ir::wideFunctionTable(), logistic = npu_ir::wideFunctionTable(true);
  for (const bool tanh : {false, true}) {
    for (int64_t v = -140000; v <= 140000; ++v) {
      const Tensor& table = !tanh && npu_ir::needsLogisticEnd(v) ? logistic : both;
      const int64_t entry = std::clamp<int64_t>(npu_ir::wideTableEntry(table, tanh, v), -32768, 32767);
      ASSERT_EQ(entry, npu_ir::wideFunction(tanh, v)) << tanh << " " << v;
      if (!tanh) {
        const int64_t same = std::clamp<int64_t>(npu_ir::wideTableEntry(logistic, tanh, v), -32768, 32767);
        ASSERT_EQ(same, entry) << v;
      }
    }
  }
}

TEST(WideFunctions, OneOperationExactForEveryCode) {
  Tensor codes = Tensor::zeros(DType::Int16, {1, 64, 1024});
  for (int64_t i = 0; i < codes.numElements(); ++i) codes.setIntegerAt(i, i - 32768);
  for (const int32_t function : {kLogistic, kTanh}) {
    // A power of two that needs no shift, a scale that needs a 15-bit multiplier, and codes beyond the
    // function's entries.
    for (const float scale : {0x1p-12F, 0.00031F, 0.0012F}) {
      const auto graph = require(lowered(function, scale));
      for (const char* target : {"ethos-u55-128", "ethos-u65-256", "ethos-u85-256"}) {
        EXPECT_EQ(test::differences(graph.tosa, target, "", {&codes, 1}), "") << target << " " << scale;
        const auto program = require(compiler::compile(graph.tosa, *npu::makeMachine(target, "", "")));
        int kernels = 0;
        for (const auto& record : program.operations)
          kernels += std::holds_alternative<npu::KernelOperation>(record.operation);
        EXPECT_EQ(kernels, 1) << target << " " << scale;
      }
    }
  }
}

}  // namespace
}  // namespace carina
