// SPDX-License-Identifier: Apache-2.0
// Sizes that a network computes from the shapes of its tensors: constants for operators on the NPU, computed
// by operators for those that stay.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lower_tfl/written_network.hpp"
#include "pipeline/operators.hpp"
#include "pipeline/run.hpp"
#include "pipeline/tflite_network.hpp"
#include "support/require.hpp"
#include "support/temp_dir.hpp"
#include "tflite/file_builder.hpp"
#include "tflite/schema.hpp"

namespace carina {
namespace {

using testing::ElementsAre;
using tflite::TensorType;

constexpr int32_t kShapeMul = 18, kToShape = 22, kResizeBilinear = 23, kStridedSlice = 45, kShape = 77,
                  kPack = 83, kFloatRelu = 19;

std::string int32s(const std::vector<int32_t>& values) {
  return {reinterpret_cast<const char*>(values.data()), 4 * values.size()};
}

struct ShapeNetwork {
  test::TfliteFile file;
  int32_t add(TensorType type, std::vector<int32_t> shape, std::string data = "") {
    const bool codes = type == TensorType::Int8;
    const std::vector<float> scales = codes ? std::vector<float>{0.5F} : std::vector<float>();
    const std::vector<int64_t> zeros(scales.size(), 3);
    file.tensors.push_back({"t" + std::to_string(file.tensors.size()), type, std::move(shape),
                            std::move(data), -1, scales, zeros});
    return static_cast<int32_t>(file.tensors.size()) - 1;
  }
  int32_t numbers(const std::vector<int32_t>& values) {
    return add(TensorType::Int32, {static_cast<int32_t>(values.size())}, int32s(values));
  }
  void op(int32_t builtin, std::vector<int32_t> inputs, int32_t output,
          test::TfliteFile::Options options = {}) {
    file.operators.push_back({"", builtin, std::move(inputs), {output}, std::move(options)});
  }
  int32_t shapeOf(int32_t tensor) {
    const auto rank = static_cast<int32_t>(file.tensors[static_cast<size_t>(tensor)].shape.size());
    const int32_t shape = add(TensorType::Int32, {rank});
    op(kShape, {tensor}, shape);
    return shape;
  }
  /// Elements `first` to `last` of a list, or the first one `alone`.
  int32_t slice(int32_t list, int32_t first, int32_t last, bool alone = false) {
    tflite::fb::StridedSliceOptionsT options;
    options.shrink_axis_mask = alone ? 1 : 0;
    const int32_t part = alone ? add(TensorType::Int32, {}) : add(TensorType::Int32, {last - first});
    op(kStridedSlice, {list, numbers({first}), numbers({last}), numbers({1})}, part,
       test::optionsOf(options));
    return part;
  }
};

struct BothRuns {
  std::vector<std::string> operators;
  Tensor original, compiled;  // outputs
};

BothRuns bothRuns(test::TfliteFile file, const Tensor& input) {
  const test::TempDir folder;
  const pipeline::Options options =
      test::optionsForWritten(std::move(file), folder.path() / "network.tflite");
  const auto build = require(pipeline::build(options));
  BothRuns result;
  const std::string bytes = require(pipeline::rewrittenTflite(build));
  const tflite::Model model = require(tflite::readModel(asBytes(bytes)));
  for (const tflite::Operator& op : model.subgraphs.front().operators) result.operators.push_back(op.name);
  pipeline::RunOptions run;
  run.file = options.model;
  result.original = require(pipeline::runFile(run, {{"in0", input}})).outputs.front().second;
  run.file = folder.path() / "compiled.tflite";
  require(pipeline::writeOutput(build, run.file));
  result.compiled = require(pipeline::runFile(run, {{"in0", input}})).outputs.front().second;
  return result;
}

Tensor counted(DType type, const Shape& shape) {
  Tensor tensor = Tensor::uninitialized(type, shape);
  for (int64_t n = 0; n < tensor.numElements(); ++n) {
    if (isFloat(type)) {
      tensor.mutableAs<float>()[static_cast<size_t>(n)] = static_cast<float>(n) - 5;
    } else {
      tensor.setIntegerAt(n, 7 * n % 256 - 128);
    }
  }
  return tensor;
}

/// resize(x, 2 * shape(x)[1:3]), as Keras writes it.
TEST(TfliteShapes, SizesFromAShapeAreConstants) {
  ShapeNetwork net;
  const int32_t x = net.add(TensorType::Int8, {1, 3, 5, 2});
  net.file.inputs = {x};
  const int32_t doubled = net.add(TensorType::Int32, {2});
  net.op(kShapeMul, {net.slice(net.shapeOf(x), 1, 3), net.numbers({2, 2})}, doubled);
  const int32_t y = net.add(TensorType::Int8, {1, 6, 10, 2});
  net.op(kResizeBilinear, {x, doubled}, y, test::optionsOf(tflite::fb::ResizeBilinearOptionsT()));
  net.file.outputs = {y};
  const BothRuns result = bothRuns(net.file, counted(DType::Int8, {1, 3, 5, 2}));
  EXPECT_THAT(result.operators, ElementsAre("ethos-u"));
  EXPECT_EQ(result.original, result.compiled);
}

/// reshape(relu(x), [shape(x)[0], 6]) of floats, which stays, and so do the operators before it that compute
/// its sizes.
TEST(TfliteShapes, OperatorsThatStayKeepTheirSizes) {
  ShapeNetwork net;
  const int32_t x = net.add(TensorType::Float32, {2, 2, 3});
  net.file.inputs = {x};
  const int32_t positive = net.add(TensorType::Float32, {2, 2, 3});
  net.op(kFloatRelu, {x}, positive);
  tflite::fb::PackOptionsT options;
  options.values_count = 2;
  const int32_t sizes = net.add(TensorType::Int32, {2});
  const int32_t six = net.add(TensorType::Int32, {}, int32s({6}));
  net.op(kPack, {net.slice(net.shapeOf(x), 0, 1, true), six}, sizes, test::optionsOf(options));
  const int32_t y = net.add(TensorType::Float32, {2, 6});
  net.op(kToShape, {positive, sizes}, y);
  net.file.outputs = {y};
  const BothRuns result = bothRuns(net.file, counted(DType::Float32, {2, 2, 3}));
  EXPECT_THAT(result.operators, ElementsAre("RELU", "SHAPE", "STRIDED_SLICE", "PACK", "RESHAPE"));
  EXPECT_EQ(result.original, result.compiled);
}

/// A shape may be an output.
TEST(TfliteShapes, AShapeThatIsAnOutputIsComputed) {
  ShapeNetwork net;
  const int32_t x = net.add(TensorType::Float32, {2, 2, 3});
  net.file.inputs = {x};
  net.file.outputs = {net.shapeOf(x)};
  const BothRuns result = bothRuns(net.file, counted(DType::Float32, {2, 2, 3}));
  EXPECT_EQ(result.original, Tensor::from({3}, std::vector<int32_t>{2, 2, 3}));
  EXPECT_EQ(result.original, result.compiled);
}

}  // namespace
}  // namespace carina
