// SPDX-License-Identifier: Apache-2.0
// Networks of which an NPU computes some parts only (tests/data/tflite_mixed): what is written gives the
// numbers that TensorFlow Lite for Microcontrollers gave for the network as it was, and keeps everything that
// is not for the NPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.hpp"
#include "base/npy.hpp"
#include "pipeline/run.hpp"
#include "pipeline/tflite_network.hpp"
#include "support/fixtures.hpp"
#include "support/temp_dir.hpp"
#include "tflite/file_builder.hpp"
#include "tflite/vela.hpp"

namespace carina {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::filesystem::path networkFile(const std::string& name) {
  return test::dataDir() / "tflite_mixed" / (name + ".tflite");
}

Result<pipeline::Build> built(const std::string& name, const std::string& target, bool tflite = true) {
  pipeline::Options options;
  options.model = networkFile(name);
  options.target = target;
  options.tflite = tflite;
  return pipeline::build(options);
}

/// A model as it is written for a target, with its bytes.
struct Written {
  std::string bytes;
  tflite::Model model;
};
Written written(const std::string& name, const std::string& target = "ethos-u55-128") {
  Written result;
  const auto build = built(name, target);
  EXPECT_TRUE(build.ok()) << build.error().str();
  if (!build) return result;
  auto bytes = pipeline::rewrittenTflite(*build);
  EXPECT_TRUE(bytes.ok()) << bytes.error().str();
  if (!bytes) return result;
  result.bytes = std::move(*bytes);
  auto model = tflite::readModel(asBytes(result.bytes));
  EXPECT_TRUE(model.ok()) << model.error().str();
  if (model) result.model = std::move(*model);
  return result;
}

std::vector<std::string> operatorsOf(const Written& file) {
  std::vector<std::string> names;
  for (const tflite::Operator& op : file.model.subgraphs.at(0).operators) names.push_back(op.name);
  return names;
}

/// Places of tensors that are alive together do not overlap, those of an NPU part within its scratch.
void expectSoundPlan(const Written& file) {
  const auto program = tflite::npuProgram(file.model);
  ASSERT_TRUE(program.ok()) << program.error().str();
  const tflite::Subgraph& graph = file.model.subgraphs[0];
  const auto steps = static_cast<int>(graph.operators.size());
  std::map<int32_t, std::pair<int, int>> lives;
  const auto live = [&](int32_t tensor, int step) {
    if (tensor < 0) return;
    const auto [known, isNew] = lives.emplace(tensor, std::pair(step, step));
    known->second.second = std::max(known->second.second, step);
  };
  for (const int32_t input : graph.inputs) live(input, -1);
  for (int step = 0; step < steps; ++step) {
    const tflite::Operator& op = graph.operators[static_cast<size_t>(step)];
    const bool npu = op.name == "ethos-u";
    for (size_t i = npu ? 4 : 0; i < op.inputs.size(); ++i) live(op.inputs[i], step);
    for (const int32_t output : op.outputs) live(output, step);
    if (!npu) continue;
    // Scratch holds the inputs and outputs of its operator and collides with everything else.
    const uint64_t begin = *program->offsets[static_cast<size_t>(op.inputs[2])];
    const uint64_t end =
        begin + static_cast<uint64_t>(graph.tensors[static_cast<size_t>(op.inputs[2])].shape[0]);
    std::set<int32_t> own(op.inputs.begin() + 4, op.inputs.end());
    own.insert(op.outputs.begin(), op.outputs.end());
    for (const int32_t tensor : own) {
      const uint64_t at = program->offsets[static_cast<size_t>(tensor)].value_or(~uint64_t{0});
      EXPECT_GE(at, begin);
      EXPECT_LE(at + static_cast<uint64_t>(*tflite::tensorBytes(graph.tensors[static_cast<size_t>(tensor)])),
                end);
    }
    live(op.inputs[2], step);
  }
  for (const int32_t output : graph.outputs) live(output, steps);
  for (const auto& [a, lifeA] : lives) {
    for (const auto& [b, lifeB] : lives) {
      const auto &offsetA = program->offsets[static_cast<size_t>(a)],
                 &offsetB = program->offsets[static_cast<size_t>(b)];
      if (a == b || !offsetA || !offsetB || lifeA.first > lifeB.second || lifeB.first > lifeA.second)
        continue;
      const tflite::Tensor &tensorA = graph.tensors[static_cast<size_t>(a)],
                           &tensorB = graph.tensors[static_cast<size_t>(b)];
      const auto has = [](const std::vector<int32_t>& list, int32_t tensor) {
        return std::count(list.begin(), list.end(), tensor) != 0;
      };
      const auto memoryOf = [&](int32_t memory, int32_t tensor) {
        return std::any_of(program->calls.begin(), program->calls.end(), [&](const tflite::NpuCall& call) {
          return call.scratch == memory && (has(call.inputs, tensor) || has(call.outputs, tensor));
        });
      };
      // A part may leave its result where an input was that nobody needs any more.
      const auto inPlace = [&](int32_t input, int32_t output) {
        return lives[input].second == lives[output].first &&
               std::any_of(program->calls.begin(), program->calls.end(), [&](const tflite::NpuCall& call) {
                 return has(call.inputs, input) && has(call.outputs, output);
               });
      };
      if (inPlace(a, b) || inPlace(b, a)) continue;
      if (memoryOf(a, b) || memoryOf(b, a)) continue;
      EXPECT_FALSE(*offsetA < *offsetB + static_cast<uint64_t>(*tflite::tensorBytes(tensorB)) &&
                   *offsetB < *offsetA + static_cast<uint64_t>(*tflite::tensorBytes(tensorA)))
          << tensorA.name << " and " << tensorB.name;
    }
  }
}

TEST(TfliteMixed, OperatorsThatAreLeftStandAroundNpuParts) {
  EXPECT_THAT(operatorsOf(written("svdf")), ElementsAre("ethos-u", "SVDF", "ethos-u"));
  EXPECT_THAT(operatorsOf(written("float_island")),
              ElementsAre("ethos-u", "DEQUANTIZE", "DIV", "QUANTIZE", "ethos-u"));
  EXPECT_THAT(operatorsOf(written("float_ends")),
              ElementsAre("QUANTIZE", "ethos-u", "DEQUANTIZE", "SOFTMAX"));
  EXPECT_THAT(operatorsOf(written("branches")), ElementsAre("ethos-u", "IF", "ethos-u"));
  EXPECT_THAT(operatorsOf(written("custom")), ElementsAre("ethos-u", "acme.mystery", "ethos-u"));
  EXPECT_THAT(operatorsOf(written("nothing")), ElementsAre("DIV", "RESHAPE", "LOG_SOFTMAX"));
}

TEST(TfliteMixed, PlansHaveRoomForEverything) {
  for (const char* name : {"svdf", "float_island", "float_ends", "branches", "custom", "two_tensors",
                           "input_again", "byte_ends"}) {
    for (const char* target : {"ethos-u55-128", "ethos-u65-256", "ethos-u85-256"}) {
      SCOPED_TRACE(fmt::format("{} {}", name, target));
      expectSoundPlan(written(name, target));
    }
  }
}

/// What no part of the plan and no NPU operator touches.
TEST(TfliteMixed, TheRestIsKept) {
  const Written file = written("svdf");
  const tflite::Subgraph& graph = file.model.subgraphs[0];
  const tflite::Operator& svdf = graph.operators[1];
  ASSERT_EQ(svdf.inputs.size(), 5u);
  EXPECT_TRUE(graph.tensors[static_cast<size_t>(svdf.inputs[4])].isVariable);
  EXPECT_EQ(graph.tensors[static_cast<size_t>(svdf.inputs[4])].scales.size(), 1u);
  const auto source = MappedFile::open(networkFile("svdf"));
  ASSERT_TRUE(source.ok());
  const auto original = tflite::readModel((*source)->bytes());
  ASSERT_TRUE(original.ok());
  const tflite::Subgraph& before = original->subgraphs[0];
  for (size_t i = 0; i < 4; ++i) {
    const tflite::Tensor& was = before.tensors[static_cast<size_t>(before.operators[1].inputs[i])];
    const tflite::Tensor& is = graph.tensors[static_cast<size_t>(svdf.inputs[i])];
    EXPECT_EQ(is.name, was.name);
    EXPECT_EQ(is.scales, was.scales);
    EXPECT_EQ(is.zeroPoints, was.zeroPoints);
    EXPECT_TRUE(std::equal(is.data.begin(), is.data.end(), was.data.begin(), was.data.end()));
  }
  const Written custom = written("custom");
  EXPECT_EQ(asText(custom.model.subgraphs[0].operators[1].customOptions), "options of acme");
  const Written branches = written("branches");
  ASSERT_EQ(branches.model.subgraphs.size(), 3u);
  EXPECT_EQ(branches.model.subgraphs[2].operators[0].name, "MUL");
  const Written ends = written("float_ends");
  ASSERT_NE(ends.model.findMetadata("notes"), nullptr);
  EXPECT_EQ(ends.model.findMetadata("notes")->data.size(), 40u);
  EXPECT_THAT(ends.bytes, HasSubstr("serving_default"));
}

/// Nothing for the NPU: the operators are the file's, options byte by byte.
TEST(TfliteMixed, ANetworkWithoutNpuPartsComesBack) {
  const Written file = written("nothing");
  const auto source = MappedFile::open(networkFile("nothing"));
  ASSERT_TRUE(source.ok());
  const auto original = tflite::readModel((*source)->bytes());
  ASSERT_TRUE(original.ok());
  const tflite::Subgraph &before = original->subgraphs[0], &after = file.model.subgraphs[0];
  ASSERT_EQ(after.tensors.size(), before.tensors.size());
  for (size_t i = 0; i < before.tensors.size(); ++i) {
    EXPECT_EQ(after.tensors[i].str(), before.tensors[i].str());
    EXPECT_EQ(after.tensors[i].name, before.tensors[i].name);
  }
  ASSERT_EQ(after.operators.size(), before.operators.size());
  for (size_t i = 0; i < before.operators.size(); ++i) {
    EXPECT_EQ(after.operators[i].name, before.operators[i].name);
    EXPECT_EQ(after.operators[i].version, before.operators[i].version);
    EXPECT_EQ(after.operators[i].inputs, before.operators[i].inputs);
    ASSERT_EQ(after.operators[i].options.size(), before.operators[i].options.size());
    for (size_t k = 0; k < before.operators[i].options.size(); ++k) {
      EXPECT_EQ(after.operators[i].options[k].value, before.operators[i].options[k].value);
      EXPECT_EQ(after.operators[i].options[k].list, before.operators[i].options[k].list);
    }
  }
  ASSERT_EQ(after.operators[1].options.size(), 1u);
  EXPECT_THAT(after.operators[1].options[0].list, ElementsAre(3, 6));
  EXPECT_EQ(after.inputs, before.inputs);
  EXPECT_EQ(after.outputs, before.outputs);
}

/// Float operators become kernels of a .pte, whose conversions round halves to even.
TEST(TfliteMixed, APteComputesFloatOperators) {
  for (const char* name : {"float_island", "float_layers", "two_tensors"}) {
    SCOPED_TRACE(name);
    const auto build = built(name, "ethos-u55-128", false);
    ASSERT_TRUE(build.ok()) << build.error().str();
    const test::TempDir folder;
    pipeline::RunOptions run;
    run.file = folder.path() / "program.pte";
    const Status status = pipeline::writeOutput(*build, run.file);
    ASSERT_TRUE(status.ok()) << status.error().str();
    const auto data = readArrays(networkFile(name).replace_extension(".npz"));
    ASSERT_TRUE(data.ok());
    const auto result = pipeline::runFile(run, {{"in0", *findTensor(*data, "in0")}});
    ASSERT_TRUE(result.ok()) << result.error().str();
    for (const auto& [key, tensor] : result->outputs) {
      const Tensor* expected = findTensor(*data, key);
      ASSERT_NE(expected, nullptr);
      const double tolerance = tensor.dtype() == DType::Float32 ? 1e-6 : 1;
      for (int64_t i = 0; i < tensor.numElements(); ++i)
        EXPECT_NEAR(tensor.realAt(i), expected->realAt(i), tolerance) << key << " " << i;
    }
  }
}

TEST(TfliteMixed, APteHasNoPlaceForOthers) {
  const auto build = built("svdf", "ethos-u55-128", false);
  ASSERT_FALSE(build.ok());
  EXPECT_THAT(build.error().str(), HasSubstr("SVDF is left to the CPU"));
  EXPECT_THAT(build.error().str(), HasSubstr("-o OUT.tflite"));
}

TEST(TfliteMixed, OperatorsStayOnTheCpuOnRequest) {
  pipeline::Options options;
  options.model = networkFile("float_island");
  options.target = "ethos-u55-128";
  options.tflite = true;
  options.cpuOps = {"ADD"};
  const auto build = pipeline::build(options);
  ASSERT_TRUE(build.ok()) << build.error().str();
  ASSERT_EQ(build->partitioned.refusals.size(), 4u);
  EXPECT_EQ(build->partitioned.refusals.back().op, "tfl.ADD");
  options.cpuOps = {"SVDF"};
  const auto none = pipeline::build(options);
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.error().str(), HasSubstr("no operator of the network matches 'SVDF'"));
}

/// Tensors that nothing makes, or two operators make.
TEST(TfliteMixed, FilesThatContradictThemselvesAreErrors) {
  constexpr int32_t kSvdf = 27;
  test::TfliteFile file;
  file.tensors = {{"x", tflite::TensorType::Int8, {1, 4}, ""},
                  {"y", tflite::TensorType::Int8, {1, 4}, ""},
                  {"z", tflite::TensorType::Int8, {1, 4}, ""}};
  file.inputs = {0};
  file.outputs = {1};
  const auto problem = [&] {
    const std::string bytes = file.bytes();
    const auto model = tflite::readModel(asBytes(bytes));
    EXPECT_TRUE(model.ok());
    const auto network = tflite::buildPartialNetwork(*model, nullptr);
    return network.ok() ? std::string() : network.error().str();
  };
  file.operators = {{"", kSvdf, {0}, {1}}};
  EXPECT_EQ(problem(), "");
  file.operators = {{"", kSvdf, {2}, {1}}, {"", kSvdf, {1}, {2}}};
  EXPECT_THAT(problem(), HasSubstr("'z' is used, but nothing makes it before"));
  file.operators = {{"", kSvdf, {0}, {1}}, {"", kSvdf, {0}, {1}}};
  EXPECT_THAT(problem(), HasSubstr("'y' is made twice"));
  file.operators = {{"", kSvdf, {0}, {1, 1}}};
  EXPECT_THAT(problem(), HasSubstr("'y' is made twice"));
  file.operators = {{"", kSvdf, {0}, {0}}};
  EXPECT_THAT(problem(), HasSubstr("'x' is made twice"));
}

TEST(TfliteMixed, RequireNpuNamesWhatIsLeft) {
  pipeline::Options options;
  options.model = networkFile("custom");
  options.target = "ethos-u85-256";
  options.tflite = options.requireNpu = true;
  const auto build = pipeline::build(options);
  ASSERT_FALSE(build.ok());
  EXPECT_THAT(build.error().str(), HasSubstr("acme.mystery is left to the CPU"));
}

/// Outputs as TensorFlow Lite for Microcontrollers gave them for the original network; of svdf and
/// svdf_bytes, for three invocations one after the other.
TEST(TfliteMixed, RunsToTheNumbersOfTheOriginal) {
  size_t count = 0;
  for (const char* name : {"svdf", "svdf_bytes", "float_island", "float_layers", "float_ends", "byte_ends",
                           "two_tensors", "input_again"}) {
    for (const char* target : {"ethos-u55-128", "ethos-u85-256"}) {
      SCOPED_TRACE(fmt::format("{} {}", name, target));
      const auto build = built(name, target);
      ASSERT_TRUE(build.ok()) << build.error().str();
      const test::TempDir folder;
      pipeline::RunOptions run;
      run.file = folder.path() / "compiled.tflite";
      run.check = true;
      const Status status = pipeline::writeOutput(*build, run.file);
      ASSERT_TRUE(status.ok()) << status.error().str();
      const auto data = readArrays(networkFile(name).replace_extension(".npz"));
      ASSERT_TRUE(data.ok());
      NamedTensors inputs;
      for (const auto& [key, tensor] : *data) {
        if (key.starts_with("in")) inputs.emplace_back(key, tensor);
      }
      const auto result = pipeline::runFile(run, inputs);
      ASSERT_TRUE(result.ok()) << result.error().str();
      EXPECT_TRUE(result->findings.empty());
      for (const auto& [key, tensor] : result->outputs) {
        const Tensor* expected = findTensor(*data, key);
        ASSERT_NE(expected, nullptr);
        if (tensor.dtype() != DType::Float32) {
          EXPECT_EQ(tensor, *expected) << key;
        } else {
          for (int64_t i = 0; i < tensor.numElements(); ++i)
            EXPECT_NEAR(tensor.realAt(i), expected->realAt(i), 1e-6) << key << " " << i;
        }
        ++count;
      }
    }
  }
  EXPECT_EQ(count, 18u);
}

}  // namespace
}  // namespace carina
