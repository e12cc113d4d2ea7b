// SPDX-License-Identifier: Apache-2.0
// Networks that keep variables from inference to inference (streaming networks): which NPU parts they have,
// and that these keep the order of reads and writes.
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

constexpr int32_t kSum = 0, kVarHandle = 142, kReadVariable = 143, kAssignVariable = 144;

/// Sums of an input and the values of variables.
class Streaming {
 public:
  Streaming() { file.inputs = {codes("x")}; }

  int32_t handle(const std::string& variable) {
    tflite::fb::VarHandleOptionsT options;
    options.shared_name = variable;
    const int32_t tensor = add({variable, TensorType::Resource, {}, "", -1, {}, {}});
    file.operators.push_back({"", kVarHandle, {}, {tensor}, test::optionsOf(options)});
    return tensor;
  }
  int32_t read(int32_t handle) {
    const int32_t value = codes("read");
    file.operators.push_back({"", kReadVariable, {handle}, {value}});
    return value;
  }
  void assign(int32_t handle, int32_t value) {
    file.operators.push_back({"", kAssignVariable, {handle, value}, {}});
  }
  int32_t sum(int32_t a, int32_t b) {
    const int32_t result = codes("sum");
    file.operators.push_back({"", kSum, {a, b}, {result}});
    return result;
  }

  test::TfliteFile file;

 private:
  int32_t add(test::TfliteFile::Tensor tensor) {
    tensor.name += std::to_string(file.tensors.size());
    file.tensors.push_back(std::move(tensor));
    return static_cast<int32_t>(file.tensors.size()) - 1;
  }
  int32_t codes(const std::string& name) {
    return add({name, TensorType::Int8, {1, 8}, "", -1, {0.5F}, {0}});
  }
};

/// The operators of the compiled network, which must compute the same as the network over three inferences.
std::vector<std::string> compiledOperators(test::TfliteFile file) {
  const test::TempDir folder;
  const pipeline::Options options =
      test::optionsForWritten(std::move(file), folder.path() / "network.tflite");
  const auto compiled = folder.path() / "compiled.tflite";
  require(pipeline::writeOutput(require(pipeline::build(options)), compiled));
  NamedTensors inputs = {{"in0", Tensor::uninitialized(DType::Int8, {3, 8})}};
  for (int64_t n = 0; n < 24; ++n) inputs[0].second.setIntegerAt(n, 3 * n - 40);
  std::vector<Tensor> outputs;
  for (const auto& path : {options.model, compiled}) {
    pipeline::RunOptions run;
    run.file = path;
    outputs.push_back(require(pipeline::runFile(run, inputs)).outputs.front().second);
  }
  EXPECT_EQ(outputs[0], outputs[1]);
  const std::string bytes = require(pipeline::rewrittenTflite(require(pipeline::build(options))));
  std::vector<std::string> names;
  const tflite::Model model = require(tflite::readModel(asBytes(bytes)));
  for (const tflite::Operator& op : model.subgraphs.front().operators) names.push_back(op.name);
  return names;
}

TEST(TfliteVariables, DifferentVariablesDoNotSplitTheNetwork) {
  Streaming net;
  const int32_t a = net.handle("a"), b = net.handle("b");
  const int32_t first = net.sum(net.file.inputs[0], net.read(a));
  net.assign(a, first);
  const int32_t second = net.sum(first, net.read(b));
  net.assign(b, second);
  net.file.outputs = {second};
  EXPECT_THAT(compiledOperators(net.file),
              ElementsAre("VAR_HANDLE", "VAR_HANDLE", "READ_VARIABLE", "READ_VARIABLE", "ethos-u",
                          "ASSIGN_VARIABLE", "ASSIGN_VARIABLE"));
}

TEST(TfliteVariables, AVariableIsReadAfterItIsWritten) {
  Streaming net;
  const int32_t a = net.handle("a"), same = net.handle("a");
  const int32_t first = net.sum(net.file.inputs[0], net.read(a));
  net.assign(a, first);
  net.file.outputs = {net.sum(first, net.read(same))};
  EXPECT_THAT(compiledOperators(net.file), ElementsAre("VAR_HANDLE", "VAR_HANDLE", "READ_VARIABLE", "ethos-u",
                                                       "ASSIGN_VARIABLE", "READ_VARIABLE", "ethos-u"));
}

}  // namespace
}  // namespace carina
