// SPDX-License-Identifier: Apache-2.0
// Networks of which an NPU computes only some parts (tests/data/tflite_mixed): the written file computes what
// TensorFlow Lite for Microcontrollers computed for the original network, and keeps everything that is not
// for the NPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.hpp"
#include "base/npy.hpp"
#include "pipeline/run.hpp"
#include "pipeline/tflite_against.hpp"
#include "pipeline/tflite_arena.hpp"
#include "pipeline/tflite_network.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"
#include "support/temp_dir.hpp"
#include "tflite/control_flow.hpp"
#include "tflite/file_builder.hpp"
#include "tflite/schema.hpp"
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

/// A model as written for a target, with its bytes.
struct Written {
  std::string bytes;
  tflite::Model model;
};
Written written(const std::string& name, const std::string& target = "ethos-u55-128") {
  Written result;
  result.bytes = require(pipeline::rewrittenTflite(require(built(name, target))));
  result.model = require(tflite::readModel(asBytes(result.bytes)));
  return result;
}

std::vector<std::string> operatorsOf(const Written& file, size_t subgraph = 0) {
  std::vector<std::string> names;
  for (const tflite::Operator& op : file.model.subgraphs.at(subgraph).operators) names.push_back(op.name);
  return names;
}

/// A range of the arena, and the steps of an inference during which it is live.
struct LiveBlock {
  uint64_t begin = 0, end = 0;
  int first = 0, last = 0;
  std::string what;
  std::set<std::pair<size_t, int32_t>> tensors;  // subgraph, index; of a part: its inputs and outputs
  bool isPart = false;
};

/// Follows the steps of an inference, into subgraphs where operators run them.
class Walk {
 public:
  explicit Walk(const tflite::Model& model, const tflite::NpuProgram& program)
      : model_(model), program_(program) {
    step(0);
  }

  /// Tensors in the arena, for each run of their subgraph, and the memory of `ethos-u` operators.
  const std::vector<LiveBlock>& blocks() const { return blocks_; }
  /// Whether an `ethos-u` operator computes one from the other.
  bool inPlace(const LiveBlock& a, const LiveBlock& b) const {
    return std::any_of(blocks_.begin(), blocks_.end(), [&](const LiveBlock& part) {
      if (!part.isPart) return false;
      const auto in = [&](const LiveBlock& one) { return part.tensors.count(*one.tensors.begin()) != 0; };
      return in(a) && in(b) && (a.last == b.first || b.last == a.first) &&
             (part.first == a.last || part.first == b.last);
    });
  }

 private:
  using Lives = std::map<int32_t, std::pair<int, int>>;  // by tensor of the subgraph

  static void live(Lives& lives, int32_t tensor, int from, int to) {
    if (tensor < 0) return;
    const auto [known, isNew] = lives.emplace(tensor, std::pair(from, to));
    known->second.first = std::min(known->second.first, from);
    known->second.second = std::max(known->second.second, to);
  }
  void step(size_t graph) {
    const tflite::Subgraph& subgraph = model_.subgraphs[graph];
    Lives lives;
    ++step_;
    for (const int32_t input : subgraph.inputs) live(lives, input, step_, step_);
    for (const tflite::Operator& op : subgraph.operators) {
      const int begin = ++step_;
      const bool npu = op.name == "ethos-u";
      if (const auto flow = tflite::controlFlowOf(op)) {
        for (const int64_t called : flow->subgraphs) step(static_cast<size_t>(called));
      }
      for (size_t i = npu ? 4 : 0; i < op.inputs.size(); ++i) live(lives, op.inputs[i], begin, step_);
      for (const int32_t output : op.outputs) live(lives, output, begin, step_);
      if (npu) addPart(graph, op, begin);
    }
    ++step_;
    for (const int32_t output : subgraph.outputs) live(lives, output, step_, step_);
    for (const auto& [index, life] : lives) {
      const auto& place = program_.subgraphs[graph].offsets[static_cast<size_t>(index)];
      const tflite::Tensor& tensor = subgraph.tensors[static_cast<size_t>(index)];
      if (!place) continue;
      const auto bytes = static_cast<uint64_t>(*tflite::tensorBytes(tensor));
      blocks_.push_back(
          {*place, *place + bytes, life.first, life.second, tensor.name, {{graph, index}}, false});
    }
  }
  /// Scratch holds the inputs and outputs of its operator.
  void addPart(size_t graph, const tflite::Operator& op, int step) {
    const tflite::NpuProgram::Subgraph& places = program_.subgraphs[graph];
    const uint64_t begin = *places.offsets[static_cast<size_t>(op.inputs[2])];
    const uint64_t end =
        begin + static_cast<uint64_t>(places.tensors[static_cast<size_t>(op.inputs[2])].shape[0]);
    LiveBlock part{begin, end, step, step, places.tensors[static_cast<size_t>(op.inputs[2])].name, {}, true};
    std::set<int32_t> own(op.inputs.begin() + 4, op.inputs.end());
    own.insert(op.outputs.begin(), op.outputs.end());
    for (const int32_t tensor : own) {
      part.tensors.emplace(graph, tensor);
      const uint64_t at = places.offsets[static_cast<size_t>(tensor)].value_or(~uint64_t{0});
      EXPECT_GE(at, begin);
      EXPECT_LE(at + static_cast<uint64_t>(*tflite::tensorBytes(places.tensors[static_cast<size_t>(tensor)])),
                end);
    }
    blocks_.push_back(std::move(part));
  }

  const tflite::Model& model_;
  const tflite::NpuProgram& program_;
  int step_ = -1;
  std::vector<LiveBlock> blocks_;
};

/// Blocks that are live at the same time do not overlap, except a part with its inputs and outputs.
void expectSoundPlan(const Written& file) {
  const auto program = require(tflite::npuProgram(file.model));
  const Walk walk(file.model, program);
  for (const LiveBlock& a : walk.blocks()) {
    for (const LiveBlock& b : walk.blocks()) {
      if (&a == &b || a.first > b.last || b.first > a.last || a.end <= b.begin || b.end <= a.begin) continue;
      const bool own =
          std::includes(a.tensors.begin(), a.tensors.end(), b.tensors.begin(), b.tensors.end()) ||
          std::includes(b.tensors.begin(), b.tensors.end(), a.tensors.begin(), a.tensors.end());
      EXPECT_TRUE(a.isPart || b.isPart ? own : walk.inPlace(a, b)) << a.what << " and " << b.what;
    }
  }
}

TEST(TfliteMixed, RemainingOperatorsSurroundNpuParts) {
  EXPECT_THAT(operatorsOf(written("svdf")), ElementsAre("ethos-u", "SVDF", "ethos-u"));
  EXPECT_THAT(operatorsOf(written("float_island")),
              ElementsAre("ethos-u", "DEQUANTIZE", "DIV", "QUANTIZE", "ethos-u"));
  EXPECT_THAT(operatorsOf(written("float_ends")),
              ElementsAre("QUANTIZE", "ethos-u", "DEQUANTIZE", "SOFTMAX"));
  EXPECT_THAT(operatorsOf(written("branches")), ElementsAre("ethos-u", "IF", "ethos-u"));
  EXPECT_THAT(operatorsOf(written("custom")), ElementsAre("ethos-u", "acme.mystery", "ethos-u"));
  EXPECT_THAT(operatorsOf(written("nothing")), ElementsAre("DIV", "RESHAPE", "LOG_SOFTMAX"));
}

/// NPU parts are in the sides of a conditional, in the condition and body of a loop, and in subgraphs that
/// these run.
TEST(TfliteMixed, SubgraphsHaveTheirOwnNpuParts) {
  const Written sides = written("sides");
  EXPECT_THAT(operatorsOf(sides), ElementsAre("ethos-u", "IF", "ethos-u"));
  EXPECT_THAT(operatorsOf(sides, 1), ElementsAre("ethos-u"));
  EXPECT_THAT(operatorsOf(sides, 2), ElementsAre("ethos-u", "DEQUANTIZE", "DIV", "QUANTIZE", "ethos-u"));
  const Written turns = written("turns");
  EXPECT_THAT(operatorsOf(turns), ElementsAre("ethos-u", "WHILE", "ethos-u"));
  EXPECT_THAT(operatorsOf(turns, 1), ElementsAre("ethos-u"));
  EXPECT_THAT(operatorsOf(turns, 2),
              ElementsAre("ethos-u", "DEQUANTIZE", "DIV", "QUANTIZE", "RESHAPE", "ethos-u"));
  const Written remembered = written("remembered", "ethos-u85-256");
  EXPECT_THAT(operatorsOf(remembered),
              ElementsAre("CALL_ONCE", "VAR_HANDLE", "READ_VARIABLE", "IF", "ethos-u", "ASSIGN_VARIABLE"));
  EXPECT_THAT(operatorsOf(remembered, 1), ElementsAre("VAR_HANDLE", "ASSIGN_VARIABLE"));
  EXPECT_THAT(operatorsOf(remembered, 3), ElementsAre("ethos-u"));
}

TEST(TfliteMixed, MemoryPlansAreSound) {
  for (const char* name : {"svdf", "float_island", "float_ends", "branches", "custom", "two_tensors",
                           "input_again", "byte_ends", "sides", "turns", "remembered"}) {
    for (const char* target : {"ethos-u55-128", "ethos-u65-256", "ethos-u85-256"}) {
      SCOPED_TRACE(fmt::format("{} {}", name, target));
      expectSoundPlan(written(name, target));
    }
  }
}

/// Contents that neither the plan nor NPU operators touch.
TEST(TfliteMixed, OtherContentsAreKept) {
  const Written file = written("svdf");
  const tflite::Subgraph& graph = file.model.subgraphs[0];
  const tflite::Operator& svdf = graph.operators[1];
  ASSERT_EQ(svdf.inputs.size(), 5u);
  EXPECT_TRUE(graph.tensors[static_cast<size_t>(svdf.inputs[4])].isVariable);
  EXPECT_EQ(graph.tensors[static_cast<size_t>(svdf.inputs[4])].scales.size(), 1u);
  const auto source = require(MappedFile::open(networkFile("svdf")));
  const auto original = require(tflite::readModel(source->bytes()));
  const tflite::Subgraph& before = original.subgraphs[0];
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
  EXPECT_EQ(branches.model.subgraphs[2].name, "subgraph2");
  const Written ends = written("float_ends");
  ASSERT_NE(ends.model.findMetadata("notes"), nullptr);
  EXPECT_EQ(ends.model.findMetadata("notes")->data.size(), 40u);
  EXPECT_THAT(ends.bytes, HasSubstr("serving_default"));
}

/// Everything that an application finds by name: inputs and outputs, signatures with their tensors, metadata.
TEST(TfliteMixed, NamesSignaturesAndMetadataAreKept) {
  size_t signatures = 0, metadata = 0;
  for (const auto& file : test::filesIn(test::dataDir() / "tflite_mixed", ".tflite")) {
    SCOPED_TRACE(file.stem().string());
    const auto source = require(MappedFile::open(file));
    const std::unique_ptr<tflite::fb::RootT> before(tflite::fb::GetRoot(source->bytes().data())->UnPack());
    const Written compiled = written(file.stem().string(), "ethos-u85-256");
    const std::unique_ptr<tflite::fb::RootT> after(tflite::fb::GetRoot(compiled.bytes.data())->UnPack());
    const auto nameOf = [](const tflite::fb::RootT& root, size_t graph, auto tensor) {
      return root.subgraphs[graph]->tensors[static_cast<size_t>(tensor)]->name;
    };
    ASSERT_EQ(after->subgraphs.size(), before->subgraphs.size());
    for (size_t g = 0; g < before->subgraphs.size(); ++g) {
      const auto &was = *before->subgraphs[g], &is = *after->subgraphs[g];
      EXPECT_EQ(is.name, was.name);
      ASSERT_EQ(is.inputs.size(), was.inputs.size());
      ASSERT_EQ(is.outputs.size(), was.outputs.size());
      for (size_t i = 0; i < was.inputs.size(); ++i)
        EXPECT_EQ(nameOf(*after, g, is.inputs[i]), nameOf(*before, g, was.inputs[i]));
      for (size_t i = 0; i < was.outputs.size(); ++i)
        EXPECT_EQ(nameOf(*after, g, is.outputs[i]), nameOf(*before, g, was.outputs[i]));
    }
    ASSERT_EQ(after->signatures.size(), before->signatures.size());
    for (size_t i = 0; i < before->signatures.size(); ++i, ++signatures) {
      const auto &was = *before->signatures[i], &is = *after->signatures[i];
      EXPECT_EQ(is.key, was.key);
      EXPECT_EQ(is.subgraph_index, was.subgraph_index);
      for (auto list : {&tflite::fb::SignatureT::inputs, &tflite::fb::SignatureT::outputs}) {
        ASSERT_EQ((is.*list).size(), (was.*list).size());
        for (size_t k = 0; k < (was.*list).size(); ++k) {
          EXPECT_EQ((is.*list)[k]->name, (was.*list)[k]->name);
          EXPECT_EQ(nameOf(*after, is.subgraph_index, (is.*list)[k]->tensor_index),
                    nameOf(*before, was.subgraph_index, (was.*list)[k]->tensor_index));
        }
      }
    }
    for (const auto& entry : before->metadata) {
      const auto same = std::find_if(after->metadata.begin(), after->metadata.end(),
                                     [&](const auto& one) { return one->name == entry->name; });
      ASSERT_NE(same, after->metadata.end()) << entry->name;
      EXPECT_EQ(after->buffers[(*same)->buffer]->data, before->buffers[entry->buffer]->data);
      ++metadata;
    }
  }
  EXPECT_EQ(signatures, 2u);
  EXPECT_EQ(metadata, 3u);
}

/// With nothing for the NPU, the operators are those of the file, including every byte of their options.
TEST(TfliteMixed, ANetworkWithoutNpuPartsIsUnchanged) {
  const Written file = written("nothing");
  const auto source = require(MappedFile::open(networkFile("nothing")));
  const auto original = require(tflite::readModel(source->bytes()));
  const tflite::Subgraph &before = original.subgraphs[0], &after = file.model.subgraphs[0];
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

/// The NPU's results equal those of the network's own operators, tensor by tensor; differences are found.
TEST(TfliteMixed, VerifyComparesWithTheNetworksOperators) {
  for (const char* name :
       {"branches", "byte_ends", "float_ends", "float_island", "float_layers", "input_again", "remembered",
        "sides", "svdf", "svdf_bytes", "turns", "two_tensors"}) {
    SCOPED_TRACE(name);
    const Written file = written(name, "ethos-u65-256");
    const auto network = require(MappedFile::open(networkFile(name)));
    const auto arrays = require(readArrays(networkFile(name).replace_extension(".npz")));
    const auto against =
        require(pipeline::verifyTflite(asBytes(file.bytes), network->bytes(), name, {}, arrays));
    EXPECT_TRUE(against.ok());
    ASSERT_GE(against.parts.size(), 2u);
    size_t elements = 0;
    for (size_t i = 0; i + 1 < against.parts.size(); ++i) {
      const pipeline::PartAgainst& part = against.parts[i];
      EXPECT_EQ(part.seen > 0, part.samples > 0) << part.part;
      elements += static_cast<size_t>(part.elements);
    }
    EXPECT_GT(elements, 0u);
  }
  // Change the constants of the first NPU operator.
  Written file = written("two_tensors");
  const std::vector<tflite::NpuCall> calls = tflite::npuCalls(file.model);
  ASSERT_FALSE(calls.empty());
  const auto at = static_cast<size_t>(calls[0].constants.data() - asBytes(file.bytes).data());
  file.bytes[at] ^= 0x40;  // of a bias
  const auto network = require(MappedFile::open(networkFile("two_tensors")));
  const auto arrays = require(readArrays(networkFile("two_tensors").replace_extension(".npz")));
  const auto against =
      require(pipeline::verifyTflite(asBytes(file.bytes), network->bytes(), "two_tensors", {}, arrays));
  EXPECT_FALSE(against.ok());
  ASSERT_TRUE(against.parts[0].first.has_value());
  EXPECT_GT(against.parts[0].mismatches, 0);
}

/// Compared with arena_used_bytes() of the interpreter on a 64-bit machine (less the space for 16 variables
/// that its application requested): enough, and at most 35% more.
TEST(TfliteMixed, TheArenaIsEnough) {
  struct {
    const char *name, *target;
    int64_t used;
  } const cases[] = {{"branches", "", 1664},
                     {"byte_ends", "", 1264},
                     {"float_ends", "", 1424},
                     {"float_island", "", 4272},
                     {"float_layers", "", 3520},
                     {"input_again", "", 6912},
                     {"remembered", "", 3552},
                     {"sides", "", 3168},
                     {"svdf", "", 1408},
                     {"svdf_bytes", "", 1360},
                     {"turns", "", 2688},
                     {"two_tensors", "", 2832},
                     {"branches", "ethos-u55-128", 1616},
                     {"float_island", "ethos-u55-128", 4448},
                     {"input_again", "ethos-u55-128", 7040},
                     {"remembered", "ethos-u85-256", 2912},
                     {"svdf", "ethos-u55-128", 1328},
                     {"turns", "ethos-u55-128", 2624}};
  for (const auto& [name, target, used] : cases) {
    SCOPED_TRACE(std::string(name) + " " + target);
    const auto file = require(MappedFile::open(networkFile(name)));
    std::string bytes(file->bytes().size(), '\0');
    std::copy(file->bytes().begin(), file->bytes().end(), reinterpret_cast<std::byte*>(bytes.data()));
    if (*target != '\0') bytes = written(name, target).bytes;
    const auto model = require(tflite::readModel(asBytes(bytes)));
    std::optional<tflite::NpuProgram> plan;
    if (*target != '\0') {
      auto program = require(tflite::npuProgram(model));
      plan = std::move(program);
    }
    const auto arena = require(pipeline::tfliteArena(model, plan ? &*plan : nullptr, 8));
    EXPECT_GE(arena.bytes(), used);
    EXPECT_LE(arena.bytes(), used * 135 / 100);
    EXPECT_LT(pipeline::tfliteArena(model, plan ? &*plan : nullptr)->bytes(), arena.bytes());
  }
}

/// A .pte cannot hold subgraphs, and the error says so.
TEST(TfliteMixed, SubgraphsAreRefusedInAPte) {
  for (const char* target : {"cpu", "ethos-u85-256", "ethos-n78-4tops-2ple"}) {
    for (const char* name : {"branches", "remembered", "sides", "turns"}) {
      SCOPED_TRACE(std::string(name) + " " + target);
      EXPECT_THAT(errorOf(built(name, target, false)),
                  HasSubstr("in which it remains a TensorFlow Lite operator"));
    }
  }
}

/// Float operators become kernels of a .pte, whose conversions round ties to even.
TEST(TfliteMixed, APteComputesFloatOperators) {
  for (const char* name : {"float_island", "float_layers", "two_tensors"}) {
    SCOPED_TRACE(name);
    const auto build = require(built(name, "ethos-u55-128", false));
    const test::TempDir folder;
    pipeline::RunOptions run;
    run.file = folder.path() / "program.pte";
    require(pipeline::writeOutput(build, run.file));
    const auto data = require(readArrays(networkFile(name).replace_extension(".npz")));
    const auto result = require(pipeline::runFile(run, {{"in0", *findTensor(data, "in0")}}));
    for (const auto& [key, tensor] : result.outputs) {
      const Tensor* expected = findTensor(data, key);
      ASSERT_NE(expected, nullptr);
      const double tolerance = tensor.dtype() == DType::Float32 ? 1e-6 : 1;
      for (int64_t i = 0; i < tensor.numElements(); ++i)
        EXPECT_NEAR(tensor.realAt(i), expected->realAt(i), tolerance) << key << " " << i;
    }
  }
}

TEST(TfliteMixed, APteRefusesOtherOperators) {
  const std::string error = errorOf(built("svdf", "ethos-u55-128", false));
  EXPECT_THAT(error, HasSubstr("SVDF is left to the CPU"));
  EXPECT_THAT(error, HasSubstr("-o OUT.tflite"));
}

TEST(TfliteMixed, OperatorsStayOnTheCpuOnRequest) {
  pipeline::Options options;
  options.model = networkFile("float_island");
  options.target = "ethos-u55-128";
  options.tflite = true;
  options.cpuOps = {"ADD"};
  const auto build = require(pipeline::build(options));
  ASSERT_EQ(build.partitioned.refusals.size(), 4u);
  EXPECT_EQ(build.partitioned.refusals.back().op, "tfl.ADD");
  options.cpuOps = {"SVDF"};
  EXPECT_THAT(errorOf(pipeline::build(options)), HasSubstr("no operator of the network matches 'SVDF'"));
}

/// Tensors that no operator computes, or that two operators compute.
TEST(TfliteMixed, InconsistentFilesAreErrors) {
  constexpr int32_t kSvdf = 27;
  test::TfliteFile file;
  file.tensors = {{"x", tflite::TensorType::Int8, {1, 4}, ""},
                  {"y", tflite::TensorType::Int8, {1, 4}, ""},
                  {"z", tflite::TensorType::Int8, {1, 4}, ""}};
  file.inputs = {0};
  file.outputs = {1};
  const auto problem = [&] {
    const std::string bytes = file.bytes();
    const auto model = require(tflite::readModel(asBytes(bytes)));
    return errorOf(tflite::buildPartialNetwork(model, nullptr));
  };
  file.operators = {{"", kSvdf, {0}, {1}}};
  EXPECT_EQ(problem(), "");
  file.operators = {{"", kSvdf, {2}, {1}}, {"", kSvdf, {1}, {2}}};
  EXPECT_THAT(problem(), HasSubstr("'z' is used before it is computed"));
  file.operators = {{"", kSvdf, {0}, {1}}, {"", kSvdf, {0}, {1}}};
  EXPECT_THAT(problem(), HasSubstr("'y' is computed twice"));
  file.operators = {{"", kSvdf, {0}, {1, 1}}};
  EXPECT_THAT(problem(), HasSubstr("'y' is computed twice"));
  file.operators = {{"", kSvdf, {0}, {0}}};
  EXPECT_THAT(problem(), HasSubstr("'x' is computed twice"));
}

TEST(TfliteMixed, RequireNpuNamesRemainingOperators) {
  pipeline::Options options;
  options.model = networkFile("custom");
  options.target = "ethos-u85-256";
  options.tflite = options.requireNpu = true;
  EXPECT_THAT(errorOf(pipeline::build(options)), HasSubstr("acme.mystery is left to the CPU"));
}

/// Outputs equal those of TensorFlow Lite for Microcontrollers for the original network; for some networks,
/// over several consecutive invocations. The original, run without an NPU, gives them, too.
TEST(TfliteMixed, ComputesTheOutputsOfTheOriginal) {
  size_t count = 0;
  for (const char* name : {"svdf", "svdf_bytes", "float_island", "float_layers", "float_ends", "byte_ends",
                           "two_tensors", "input_again", "branches", "sides", "turns", "remembered"}) {
    for (const char* target : {"ethos-u55-128", "ethos-u85-256", ""}) {
      SCOPED_TRACE(fmt::format("{} {}", name, target));
      const test::TempDir folder;
      pipeline::RunOptions run;
      run.file = networkFile(name);
      run.check = true;
      if (*target != 0) {
        const auto build = require(built(name, target));
        run.file = folder.path() / "compiled.tflite";
        require(pipeline::writeOutput(build, run.file));
      }
      const auto data = require(readArrays(networkFile(name).replace_extension(".npz")));
      NamedTensors inputs;
      for (const auto& [key, tensor] : data) {
        if (key.starts_with("in")) inputs.emplace_back(key, tensor);
      }
      const auto result = require(pipeline::runFile(run, inputs));
      EXPECT_TRUE(result.findings.empty());
      for (const auto& [key, tensor] : result.outputs) {
        const Tensor* expected = findTensor(data, key);
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
  EXPECT_EQ(count, 42u);
}

}  // namespace
}  // namespace carina
