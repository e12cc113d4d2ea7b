// SPDX-License-Identifier: Apache-2.0
// Files made to break the tool, and consistent but odd networks, through the real program: each is processed,
// or refused with one clear error, in bounded time and memory. Needs CARINA_FIXTURES.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <set>
#include <sstream>

#include "base/file.hpp"
#include "base/npy.hpp"
#include "pt2/exported_program.hpp"
#include "support/child_process.hpp"
#include "support/fixtures.hpp"
#include "support/temp_dir.hpp"

namespace carina {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr int kEither = -1;

/// One command over one file of fixtures/hostile. In `command`, `@` is the file, `@NAME` another file of the
/// folder and `OUT` a path to write to (it keeps its extension: OUT.pte).
struct Row {
  const char* file;
  const char* command;
  int status = kEither;  // expected exit status; kEither: 0 or 1
  const char* message = "";
  int64_t megabytes = 500;
};

constexpr const char* kOnCpu = "compile @ -o OUT.pte --target cpu --quantize none";

// A file may have several rows. New files get a row (EveryFileHasARow).
const Row kRows[] = {
    {"big_add_1000.pt2", kOnCpu, 0},
    {"big_add_2000.pt2", kOnCpu, 0},
    {"big_add_4000.pt2", kOnCpu, 0},
    {"big_fan_1000.pt2", kOnCpu, 0},
    {"big_fan_2000.pt2", kOnCpu, 0},
    {"big_fan_4000.pt2", kOnCpu, 0},
    {"big_relu_1000.pt2", kOnCpu, 0},
    {"big_relu_2000.pt2", kOnCpu, 0},
    {"big_relu_4000.pt2", kOnCpu, 0},
    {"cal_zero.npz", "inspect @"},
    {"dense.npz", "inspect @"},
    {"two.npz", "inspect @"},
    {"two2.npz", "inspect @"},
    {"z64.npz", "inspect @"},
    {"in.bin", "inspect @", 1},
    {"dim_2e31.pt2", kOnCpu, 1, "has more than 2^31-1 elements"},
    {"dim_2e33.pt2", kOnCpu, 1, "has more than 2^31-1 elements"},
    {"dim_2e62.pt2", kOnCpu, 1, "has more than 2^31-1 elements"},
    {"dim_63.pt2", kOnCpu, 1, "has more than 2^31-1 elements"},
    {"dim_neg.pt2", kOnCpu, 1, "sizes cannot be negative"},
    {"dim_neg2.pt2", kOnCpu, 1},
    {"dim_wrap.pt2", kOnCpu, 1, "has more than 2^31-1 elements"},
    {"dim_wrap.pt2", "inspect @", 1},
    {"dim_wrap.pt2", "ops @ --target ethos-u55-128", 1},
    {"dim_zero.pt2", kOnCpu, 1, "has no elements"},
    {"dim_zero.pt2", "ops @ --target ethos-u85-256", 1, "has no elements"},
    {"amp_20000.tflite", "compile @ -o OUT.pte --target ethos-u55-128", 1, "share their contents"},
    {"amp_20000.tflite", "inspect @", 1, "share their contents"},
    {"dots.pt2", kOnCpu, 0, "", 100},
    {"trace.pt2", kOnCpu, 0, "", 100},
    {"jsonbomb.pt2", kOnCpu, 1, "more than an archive of 1046875 bytes may hold", 100},
    {"manyargs.pt2", kOnCpu, 1, "has no argument 'zz0'", 200},
    {"pickamp.pt2", kOnCpu, 1, "repeats its own values too often", 200},
    {"stride0.pt2", kOnCpu, 1, "is a view of 4 bytes", 100},
    {"syms.elf", "run @", 1, "does not say which board", 100},
    {"nest.pt2", kOnCpu, 1, "malformed"},
    {"dots.pt2", "inspect @"},
    {"jsonbomb.pt2", "inspect @"},
    {"manyargs.pt2", "inspect @"},
    {"pickamp.pt2", "inspect @"},
    {"stride0.pt2", "inspect @"},
    {"trace.pt2", "inspect @"},
    {"cubic1000.pte", "check @", 1},
    {"cubic1000.pte", "run @ --input @dense.npz --output OUT.npz", 1},
    {"cubic1000.pte", "inspect @"},
    {"cubic3000.pte", "check @", 1},
    {"cubic3000.pte", "run @ --input @dense.npz --output OUT.npz", 1},
    {"cubic3000.pte", "inspect @"},
    {"deleg_div0.pte", "check @", 1},
    {"deleg_div0.pte", "run @ --input @dense.npz --output OUT.npz", 1},
    {"deleg_div0.pte", "inspect @"},
    {"deleg_only.pte", "check @", 1},
    {"deleg_only.pte", "run @ --input @dense.npz --output OUT.npz", 1},
    {"deleg_only.pte", "inspect @"},
    {"deleg_oob.pte", "check @", 1},
    {"deleg_oob.pte", "run @ --input @dense.npz --output OUT.npz", 1},
    {"deleg_oob.pte", "inspect @"},
    {"deleg_oob_leak.pte", "check @", 1},
    {"deleg_oob_leak.pte", "run @ --input @dense.npz --output OUT.npz", 1},
    {"deleg_oob_leak.pte", "inspect @"},
    {"deleg_oob_small.pte", "check @", 1},
    {"deleg_oob_small.pte", "run @ --input @dense.npz --output OUT.npz", 1},
    {"deleg_oob_small.pte", "inspect @"},
    {"fw_const.pte", "check @", 1},
    {"fw_const.pte", "run @ --input @dense.npz --output OUT.npz", 1},
    {"fw_const.pte", "inspect @"},
    {"ilist20k.pte", "check @", 1},
    {"ilist20k.pte", "run @ --input @dense.npz --output OUT.npz", 1},
    {"ilist20k.pte", "inspect @"},
    {"move_const.pte", "check @", 1},
    {"move_const.pte", "run @ --input @two2.npz --output OUT.npz", 1},
    {"move_const.pte", "inspect @"},
    {"move_input.pte", "check @", 1},
    {"move_input.pte", "run @ --input @two.npz --output OUT.npz", 1},
    {"move_input.pte", "inspect @"},
    {"ofmout.pte", "check @", 1},
    {"ofmout.pte", "run @ --input @dense.npz --output OUT.npz", 1},
    {"ofmout.pte", "inspect @"},
    {"quad100k.pte", "check @", 1},
    {"quad100k.pte", "run @ --input @dense.npz --output OUT.npz", 1},
    {"quad100k.pte", "inspect @"},
    {"quad20k.pte", "check @", 1},
    {"quad20k.pte", "run @ --input @dense.npz --output OUT.npz", 1},
    {"quad20k.pte", "inspect @"},
    {"zerostride.pte", "check @", 1},
    {"zerostride.pte", "run @ --input @dense.npz --output OUT.npz", 1},
    {"zerostride.pte", "inspect @"},
    {"ofmout.pte", "run @ --input ZEROS --output OUT.npz"},
    {"zerostride.pte", "run @ --input ZEROS --output OUT.npz", 1},
    {"fw_const.pte", "firmware @ --platform corstone-300 -o OUT.elf", 1},
    {"syms.elf", "run @ --platform corstone-300", 1},
    {"syms.elf", "inspect @"},
};

std::vector<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> result;
  for (std::string word; stream >> word;) result.push_back(word);
  return result;
}

/// No signal, no uncaught failure; an error must be usable.
void expectOrderly(const test::ChildOutcome& outcome, int64_t megabytes) {
  EXPECT_EQ(outcome.signal, 0) << outcome.err;
  EXPECT_TRUE(outcome.status == 0 || outcome.status == 1) << outcome.status << ' ' << outcome.err;
  if (outcome.status == 1) {
    // check prints its findings as its result.
    EXPECT_THAT(outcome.err + outcome.out,
                testing::AnyOf(HasSubstr("carina: error[E"), HasSubstr("FAILS: ")));
    EXPECT_THAT(outcome.err, Not(HasSubstr("out of memory")));
  }
  EXPECT_THAT(outcome.err, Not(HasSubstr("internal error")));
  if (!test::sanitized()) {
    EXPECT_LE(outcome.peakBytes >> 20, megabytes) << "MiB resident";
  }
}

test::ChildOutcome carina(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), CARINA_BINARY);
  return test::runChild(arguments);
}

std::filesystem::path hostile(const std::filesystem::path& fixtures) {
  return fixtures / "fixtures" / "hostile";
}

std::string zeros(const test::TempDir& folder) {
  const Tensor zero = Tensor::zeros(DType::Float32, {1, 8, 8, 16});
  std::ofstream(folder / "zeros.npz", std::ios::binary) << formatNpz({{"in0", zero}, {"in1", zero}});
  return (folder / "zeros.npz").string();
}

class HostileFiles : public testing::TestWithParam<Row> {};

TEST_P(HostileFiles, AreProcessedOrRefused) {
  CARINA_NEED_FIXTURES(fixtures);
  const Row& row = GetParam();
  const test::TempDir folder, inputs;
  std::vector<std::string> arguments = words(row.command);
  for (std::string& argument : arguments) {
    if (argument.starts_with("@"))
      argument = (hostile(fixtures) / (argument == "@" ? row.file : argument.substr(1))).string();
    if (argument == "ZEROS") argument = zeros(inputs);
    if (argument.starts_with("OUT")) argument = (folder / ("out" + argument.substr(3))).string();
  }
  const test::ChildOutcome outcome = carina(arguments);
  expectOrderly(outcome, row.megabytes);
  if (row.status != kEither) {
    EXPECT_EQ(outcome.status, row.status) << outcome.err;
  }
  EXPECT_THAT(outcome.err, HasSubstr(row.message));
  if (outcome.status != 0) {
    EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "a failed command left a file";
  }
}

std::string rowName(const testing::TestParamInfo<Row>& info) {
  std::string name = info.param.file;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name + "_" + std::to_string(info.index);
}

INSTANTIATE_TEST_SUITE_P(All, HostileFiles, testing::ValuesIn(kRows), rowName);

// Thousands of operations: a chain that becomes one table, a chain of sums, and branches that all stay live
// to the end.
TEST(Hostile, LongNetworksCompileForTheNpu) {
  CARINA_NEED_FIXTURES(fixtures);
  const test::TempDir folder;
  const std::string samples = (folder / "samples.npz").string();
  const std::vector<float> values{-2, -1, -0.5f, 0, 0.25f, 0.5f, 1, 2};
  std::ofstream(samples, std::ios::binary) << formatNpz({{"calib0", Tensor::from<float>({1, 1, 8}, values)}});
  const std::pair<const char*, int64_t> networks[] = {
      {"big_relu_4000.pt2", 150}, {"big_add_4000.pt2", 300}, {"big_fan_4000.pt2", 350}};
  for (const auto& [name, megabytes] : networks) {
    SCOPED_TRACE(name);
    const test::ChildOutcome outcome =
        carina({"compile", (hostile(fixtures) / name).string(), "-o", (folder / "out.pte").string(),
                "--target", "ethos-u55-128", "--calibrate", samples});
    expectOrderly(outcome, megabytes);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
  }
}

TEST(Hostile, EveryFileHasARow) {
  CARINA_NEED_FIXTURES(fixtures);
  std::set<std::string> known, present;
  for (const Row& row : kRows) known.insert(row.file);
  for (const auto& entry : std::filesystem::directory_iterator(hostile(fixtures))) {
    const std::string name = entry.path().filename().string();
    if (entry.is_regular_file() && name != "README.md") present.insert(name);
  }
  EXPECT_EQ(known, present);
}

// Consistent but odd networks
// ------------------------------------------------------------------------------------------

/// Writes a sample for each input of a network, for calibration and runs if the collection has no data.
Status writeSamples(const std::filesystem::path& network, const std::filesystem::path& file) {
  CARINA_TRY(const pt2::ExportedProgram program, pt2::readExportedProgram(network));
  std::mt19937 random(1);
  std::uniform_real_distribution<float> reals(0.1f, 0.9f);
  NamedTensors arrays;
  for (const ir::Value* input : program.graph.inputs()) {
    Tensor tensor = Tensor::zeros(input->dtype(), input->shape());
    if (input->dtype() == DType::Float32) {
      for (float& value : tensor.mutableAs<float>()) value = reals(random);
    }
    arrays.emplace_back("in" + std::to_string(arrays.size()), std::move(tensor));
  }
  std::ofstream(file, std::ios::binary) << formatNpz(arrays);
  return {};
}

struct OddNetwork {
  std::filesystem::path model, samples;
  std::vector<std::string> command;  // as recorded, with paths
};

/// The second line of ID.txt is the command that once failed.
OddNetwork oddNetwork(const std::filesystem::path& record, const test::TempDir& folder) {
  const std::string id = record.stem().string();
  OddNetwork network{record.parent_path() / (id + "_in.pt2"), record.parent_path() / (id + "_cal.npz"), {}};
  if (!std::filesystem::exists(network.samples) || std::filesystem::file_size(network.samples) < 100) {
    network.samples = folder / "samples.npz";
    // A network that cannot be read needs no data.
    if (!writeSamples(network.model, network.samples).ok()) network.samples.clear();
  }
  std::ifstream stream(record);
  std::string line;
  std::getline(stream, line);
  std::getline(stream, line);
  for (std::string word : words(line)) {
    if (word.ends_with("in.pt2")) word = network.model.string();
    if (word == "cal.npz") word = network.samples.string();
    if (word == "out.pte") word = (folder / "out.pte").string();
    if (word.empty()) {
      network.command.pop_back();  // --calibrate
      continue;
    }
    network.command.push_back(word);
  }
  return network;
}

/// The compile options of the recorded command, for other commands.
std::vector<std::string> buildOptions(const OddNetwork& network) {
  std::vector<std::string> options;
  for (size_t i = 0; i + 1 < network.command.size(); ++i) {
    const std::string& word = network.command[i];
    if (word == "--target" || word == "--quantize" || word == "--calibrate")
      options.insert(options.end(), {word, network.command[i + 1]});
  }
  return options;
}

/// Runs the recorded command; if the network compiles, the program must run, and NPU and TOSA must agree.
void tryNetwork(const std::filesystem::path& record) {
  SCOPED_TRACE(record.filename().string());
  const test::TempDir folder;
  const OddNetwork network = oddNetwork(record, folder);
  if (!std::filesystem::exists(network.model)) return;  // too large for the collection
  expectOrderly(carina(network.command), 500);
  const std::string program = (folder / "program.pte").string();
  std::vector<std::string> compile{"compile", network.model.string(), "-o", program};
  const std::vector<std::string> options = buildOptions(network);
  compile.insert(compile.end(), options.begin(), options.end());
  const test::ChildOutcome compiled = carina(compile);
  expectOrderly(compiled, 500);
  EXPECT_EQ(std::filesystem::exists(program), compiled.status == 0);
  if (compiled.status != 0) return;
  EXPECT_EQ(carina({"check", program}).status, 0);
  if (network.samples.empty()) return;
  // Odd, but our own: its work is bounded by the network, not by the size of the program.
  const test::ChildOutcome ran = carina({"run", program, "--input", network.samples.string(), "--trusted"});
  expectOrderly(ran, 2000);
  EXPECT_EQ(ran.status, 0) << ran.err;
  if (std::find(options.begin(), options.end(), "cpu") != options.end()) return;
  std::vector<std::string> verify{"verify", network.model.string(), "--trusted"};
  verify.insert(verify.end(), options.begin(), options.end());
  const test::ChildOutcome verified = carina(verify);
  expectOrderly(verified, 2000);  // all stages side by side
  EXPECT_EQ(verified.status, 0) << verified.out << verified.err;
}

/// Each test runs a share of the networks, so that tests run in parallel.
class HostileNetworks : public testing::TestWithParam<size_t> {
 public:
  static constexpr size_t kShares = 8;
};

TEST_P(HostileNetworks, WorkOrAreRefused) {
  CARINA_NEED_FIXTURES(fixtures);
  const auto records = test::filesIn(hostile(fixtures) / "networks", ".txt");
  ASSERT_GE(records.size(), 60u);
  for (size_t i = GetParam(); i < records.size(); i += kShares) tryNetwork(records[i]);
}

INSTANTIATE_TEST_SUITE_P(Shares, HostileNetworks, testing::Range<size_t>(0, HostileNetworks::kShares));

}  // namespace
}  // namespace carina
