// SPDX-License-Identifier: Apache-2.0
// Programs for an Ethos-N78 whose NPU parts are computed by the TOSA interpreter: with everything around the
// NPU (parts, conversions, order of inputs and outputs, the runtime) the results equal those of TensorFlow
// Lite's reference kernels.
#include <gtest/gtest.h>

#include <cstring>

#include "base/npy.hpp"
#include "ethosn/stream/program_blob.hpp"
#include "pipeline/pipeline.hpp"
#include "runtime/program_support.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"
#include "tosa/interpreter.hpp"

namespace carina::pipeline {
namespace {

/// Computes the parts of `build` by their TOSA graphs.
class BackDoor final : public rt::Backend {
 public:
  explicit BackDoor(const Build& build) : build_(build) {}
  ~BackDoor() = default;

  const char* id() const override { return ethosn::kProgramBackend.data(); }
  size_t stateBytes() const override { return sizeof(uint64_t); }
  rt::Status prepare(rt::Bytes blob, const rt::NamedData&, void* state, size_t* temporaryBytes) override {
    *temporaryBytes = 0;
    uint64_t part = 0;
    while (part < blobs_.size() && blobs_[part] != blob.data) ++part;
    if (part == blobs_.size()) blobs_.push_back(blob.data);
    std::memcpy(state, &part, sizeof(part));
    return {};
  }
  rt::Status checkCall(const void*, rt::Span<const rt::Value>, rt::Span<const int32_t>) const override {
    return {};
  }
  rt::Status execute(void* state, rt::Span<rt::Value> values, rt::Span<const int32_t> arguments,
                     rt::Arena&) override {
    uint64_t part = 0;
    std::memcpy(&part, state, sizeof(part));
    const ir::Graph& graph = build_.partitioned.delegates.at(part).tosa;
    const auto memory = [&](size_t argument) -> const rt::Tensor& {
      return values[static_cast<size_t>(arguments[argument])].tensor;
    };
    std::vector<Tensor> inputs;
    for (const ir::Value* input : graph.inputs()) {
      Tensor& copy = inputs.emplace_back(Tensor::zeros(input->dtype(), input->type.shape));
      const rt::Tensor& from = memory(inputs.size() - 1);
      if (copy.mutableBytes().size() != from.bytes) return rt::failure(rt::Code::ShapeMismatch, "an input");
      std::memcpy(copy.mutableBytes().data(), from.data, from.bytes);
    }
    const auto results = tosa::interpret(graph, inputs);
    if (!results.ok()) return rt::failure(rt::Code::DeviceFault, "the TOSA interpreter failed");
    for (size_t i = 0; i < results->size(); ++i) {
      const rt::Tensor& to = memory(inputs.size() + i);
      if ((*results)[i].bytes().size() != to.bytes) return rt::failure(rt::Code::ShapeMismatch, "an output");
      std::memcpy(to.data, (*results)[i].bytes().data(), to.bytes);
    }
    ++calls;
    return {};
  }
  size_t calls = 0;

 private:
  const Build& build_;
  std::vector<const uint8_t*> blobs_;
};

/// Runs the inputs recorded next to `file`; skips it if the network is refused.
void expectRecorded(const std::filesystem::path& file, const char* target, size_t& ran) {
  SCOPED_TRACE(file.stem().string());
  Options options;
  options.model = file;
  options.target = target;
  const auto built = build(options);
  if (!built.ok() || built->ethosNParts.empty()) return;
  const auto program = require(pte::writeProgram(built->program));
  BackDoor door(*built);
  rt::Loaded loaded(std::string(program.begin(), program.end()));
  loaded.withPlusOne = false;
  loaded.other = &door;
  const rt::Status opened = loaded.open();
  ASSERT_TRUE(opened.ok()) << rt::textOf(opened);
  const auto arrays = require(readArrays(std::filesystem::path(file).replace_extension(".npz")));
  const auto bytesOf = [&arrays](const char* prefix, uint32_t index) {
    const Tensor* found = findTensor(arrays, fmt::format("{}{}", prefix, index));
    return found == nullptr ? ByteSpan() : found->bytes();
  };
  for (uint32_t i = 0; i < loaded.method.inputCount(); ++i) {
    const ByteSpan bytes = bytesOf("in", i);
    const rt::Status set =
        loaded.method.setInput(i, {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
    ASSERT_TRUE(set.ok()) << rt::textOf(set);
  }
  const rt::Status executed = loaded.method.execute();
  ASSERT_TRUE(executed.ok()) << rt::textOf(executed);
  EXPECT_EQ(door.calls, built->ethosNParts.size());
  for (uint32_t i = 0; i < loaded.method.outputCount(); ++i) {
    const rt::Tensor& result = loaded.method.output(i).tensor;
    const ByteSpan expected = bytesOf("out", i);
    ASSERT_EQ(result.bytes, expected.size());
    EXPECT_EQ(std::memcmp(result.data, expected.data(), expected.size()), 0) << "output " << i;
  }
  ++ran;
}

TEST(EthosNBackDoor, ResultsEqualTheReferenceKernels) {
  size_t ran = 0;
  for (const auto& file : test::filesIn(test::dataDir() / "tflite", ".tflite"))
    expectRecorded(file, "ethos-n78-4tops-4ple", ran);
  EXPECT_GE(ran, 55U);
}

// Several parts, a tensor that bypasses them, several tensors between them.
TEST(EthosNBackDoor, PartsNextToFloatOperators) {
  size_t ran = 0;
  for (const char* name : {"input_again", "two_tensors"})
    expectRecorded(test::dataDir() / "tflite_mixed" / (std::string(name) + ".tflite"), "ethos-n78-1tops-4ple",
                   ran);
  EXPECT_EQ(ran, 2U);
}

}  // namespace
}  // namespace carina::pipeline
