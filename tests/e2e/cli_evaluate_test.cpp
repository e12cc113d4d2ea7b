// SPDX-License-Identifier: Apache-2.0
// carina evaluate and merge, as scripts use them.
#include <fmt/format.h>

#include "base/file.hpp"
#include "base/npy.hpp"
#include "cli.hpp"
#include "support/require.hpp"

namespace carina::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class CliEvaluate : public Cli {
 protected:
  void SetUp() override {
    ASSERT_EQ(run("compile " + model("digits8.pt2") + " --target ethos-u55-128" + calibrate("digits8") +
                  " -o " + path("d.pte"))
                  .status,
              0);
  }
  std::string program() const { return "evaluate " + path("d.pte"); }
  std::string network() const {
    return "evaluate " + model("digits8.pt2") + " --target ethos-u55-128" + calibrate("digits8");
  }
  std::string heldOut() const { return " --data " + model("digits8_eval.npz"); }
};

TEST_F(CliEvaluate, AllEnginesSideBySide) {
  const Outcome result = run(network() + heldOut() + " --json " + path("e.json") + " --csv " + path("e.csv"));
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("200 samples, classify"), HasSubstr("float"), HasSubstr("simulation"),
                    HasSubstr("NPU and TOSA agree bit for bit on all samples"), HasSubstr("flipped")));
  EXPECT_THAT(contentsOf(path("e.csv")), HasSubstr("npu,top-1,"));
  // The same count as carina run reports.
  const Outcome ran = run("run " + path("d.pte") + " --input " + model("digits8_eval.npz"));
  const size_t at = ran.out.find("top-1   ") + 8;
  const double percent = std::stod(ran.out.substr(at));
  const std::string csv = contentsOf(path("e.csv"));
  const size_t npu = csv.find("npu,top-1,") + 10;
  EXPECT_NEAR(std::stod(csv.substr(npu)), percent, 0.051);
}

TEST_F(CliEvaluate, ShardsMergeToTheWholeBitForBit) {
  const std::string base = network() + heldOut() + " --samples 31";
  ASSERT_EQ(run(base + " --json " + path("whole.json") + " --csv " + path("whole.csv")).status, 0);
  std::string files;
  for (const int shard : {3, 1, 2}) {
    const std::string name = path("part" + std::to_string(shard));
    const Outcome part = run(fmt::format("{} --shard {}/3 --records {}", base, shard, name));
    ASSERT_EQ(part.status, 0) << part.err;
    files += " " + name;
  }
  const Outcome merged =
      run("merge" + files + " --json " + path("merged.json") + " --csv " + path("merged.csv"));
  ASSERT_EQ(merged.status, 0) << merged.err;
  EXPECT_EQ(contentsOf(path("merged.json")), contentsOf(path("whole.json")));
  EXPECT_EQ(contentsOf(path("merged.csv")), contentsOf(path("whole.csv")));

  const std::string one = path("part1"), two = path("part2"), three = path("part3");
  EXPECT_THAT(run("merge " + one + " " + three).err, HasSubstr("shard 2/3 is missing"));
  EXPECT_THAT(run("merge " + one + " " + two).err, HasSubstr("shard 3/3 is missing"));
  EXPECT_THAT(run("merge " + one + " " + one + " " + two).err, HasSubstr("part1: is shard 1/3, as is"));
  ASSERT_EQ(run(program() + heldOut() + " --samples 31 --shard 2/3 --records " + path("other")).status, 0);
  EXPECT_THAT(run("merge " + one + " " + path("other") + " " + three).err, HasSubstr("another evaluation"));
  writeText("half", contentsOf(two).substr(0, contentsOf(two).size() / 2));
  const Outcome half =
      run("merge " + one + " " + path("half") + " " + three + " --json " + path("half.json"));
  EXPECT_EQ(half.status, 1);
  EXPECT_THAT(half.err, HasSubstr("is not complete"));
  EXPECT_FALSE(std::filesystem::exists(path("half.json")));
}

TEST_F(CliEvaluate, AKilledShardResumes) {
  const std::string base = program() + heldOut() + " --shard 1/2 --records ";
  ASSERT_EQ(run(base + path("whole")).status, 0);
  // Killed without a chance to clean up, once some samples are done.
  const Outcome killed = shell("bash -c '" + std::string(CARINA_BINARY) + " " + base + path("part") +
                               " & child=$!; while [ $(cat " + path("part.partial") +
                               " 2>/dev/null | wc -l) -lt 5 ] && kill -0 $child "
                               "2>/dev/null; do :; done; kill -9 $child 2>/dev/null; wait $child; true'");
  ASSERT_EQ(killed.status, 0);
  ASSERT_TRUE(std::filesystem::exists(path("part.partial")) || std::filesystem::exists(path("part")));
  const Outcome again = run(base + path("part"));
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(contentsOf(path("part")), contentsOf(path("whole")));
  EXPECT_FALSE(std::filesystem::exists(path("part.partial")));
}

/// Four processes that MPI starts produce the bits of one.
class CliTogether : public CliEvaluate {
 protected:
  void SetUp() override {
    if (std::system("command -v mpirun >/dev/null 2>&1") != 0)
      GTEST_SKIP() << "mpirun is not installed (Debian: openmpi-bin)";
    CliEvaluate::SetUp();
    const Outcome two = shell(mpirun(2) + CARINA_BINARY + " " + program() + heldOut() + " --samples 2");
    if (two.err.find("built without MPI") != std::string::npos)
      GTEST_SKIP() << "carina was built without MPI (Debian: libopenmpi-dev)";
    ASSERT_EQ(two.status, 0) << two.err;
  }
  static std::string mpirun(int processes) {
    return "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -n " +
           std::to_string(processes) + " ";
  }
  Outcome together(const std::string& arguments) const {
    return shell(mpirun(4) + CARINA_BINARY + " " + arguments);
  }
};

TEST_F(CliTogether, FourProcessesProduceTheBitsOfOne) {
  for (const int samples : {31, 3}) {  // also fewer than processes
    const std::string base = network() + heldOut() + " --samples " + std::to_string(samples);
    const auto outputs = [&](const std::string& name) {
      return " --json " + path(name + ".json") + " --csv " + path(name + ".csv") + " --records " +
             path(name + std::to_string(samples));
    };
    ASSERT_EQ(run(base + outputs("one")).status, 0);
    const Outcome four = together(base + outputs("four") + " --min-top1 50");
    ASSERT_EQ(four.status, 0) << four.err;
    EXPECT_EQ(contentsOf(path("four.json")), contentsOf(path("one.json")));
    EXPECT_EQ(contentsOf(path("four.csv")), contentsOf(path("one.csv")));
    const std::string count = std::to_string(samples);
    EXPECT_EQ(contentsOf(path("four" + count)), contentsOf(path("one" + count)));
    EXPECT_FALSE(std::filesystem::exists(path("four" + count + ".1-of-4")));
    EXPECT_EQ(four.out, run(base).out) << "shown once";
    // Complete records are shown again.
    EXPECT_EQ(together(base + " --records " + path("four" + count)).out, four.out);
  }
}

TEST_F(CliTogether, AKilledProcessResumesWhereItStopped) {
  const std::string base = network() + heldOut() + " --records ";
  ASSERT_EQ(run(base + path("whole")).status, 0);
  // One of the processes is killed once some of its samples are done, which ends the others. If they finish
  // before that, it is tried again.
  const std::string part = path("part.2-of-4.partial");
  const std::string attempt =
      "bash -c 'export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; mpirun --oversubscribe -n "
      "4 " +
      std::string(CARINA_BINARY) + " " + base + path("part") +
      " & all=$!; lines=(); while [ ${#lines[@]} -lt 3 ] && kill -0 $all 2>/dev/null; do [ ! -e " + part +
      " ] || mapfile -t lines < " + part +
      "; done; for child in $(cat /proc/$all/task/$all/children); do kill -9 $child; break; done; wait $all'";
  bool killed = false;
  for (int i = 0; i < 20 && !killed; ++i) {
    std::filesystem::remove(path("part"));
    killed = shell(attempt).status != 0 && !std::filesystem::exists(path("part"));
  }
  ASSERT_TRUE(killed);
  // Only the process whose samples were awaited has certainly begun.
  EXPECT_TRUE(std::filesystem::exists(part) || std::filesystem::exists(path("part.2-of-4")));
  const Outcome again = together(base + path("part"));
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(contentsOf(path("part")), contentsOf(path("whole")));
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "."))
    EXPECT_EQ(entry.path().string().find("-of-4"), std::string::npos) << entry.path();
}

TEST_F(CliTogether, OneStatusAndOneMessage) {
  const Outcome missed = together(program() + heldOut() + " --min-top1 100");
  EXPECT_EQ(missed.status, 3);
  const Outcome missing = together(program() + " --data " + path("none"));
  EXPECT_EQ(missing.status, 1);
  const size_t first = missing.err.find("does not exist");
  ASSERT_NE(first, std::string::npos) << missing.err;
  EXPECT_EQ(missing.err.find("does not exist", first + 1), std::string::npos) << missing.err;
  const Outcome shard = together(program() + heldOut() + " --records " + path("r") + " --shard 1/2");
  EXPECT_EQ(shard.status, 1);
  EXPECT_THAT(shard.err, HasSubstr("--shard: the processes divide the data among themselves"));
}

/// Arrays for the network also serve programs that take pixels, channels last or codes: the figures are those
/// of `run` and of the network itself.
TEST_F(CliEvaluate, FloatsForProgramsThatTakeIntegers) {
  const std::string camera = " --io-inputs uint8 --mean 0.5 --std 0.5 --io-layout nhwc";
  const std::string compile =
      "compile " + model("digits8.pt2") + " --target ethos-u55-128" + calibrate("digits8") + " -o ";
  ASSERT_EQ(run(compile + path("camera.pte") + camera).status, 0);
  ASSERT_EQ(run(compile + path("codes.pte") + " --io-inputs int8").status, 0);
  const auto figures = [&](const std::string& command) {
    const Outcome result = run(command + heldOut() + " --engines npu --csv " + path("f.csv"));
    EXPECT_EQ(result.status, 0) << result.err;
    return contentsOf(path("f.csv"));
  };
  EXPECT_EQ(figures("evaluate " + path("camera.pte")), figures(network() + camera));
  EXPECT_EQ(figures("evaluate " + path("codes.pte")), figures(program()));
  const Outcome ran = run("run " + path("camera.pte") + " --input " + model("digits8_eval.npz"));
  const size_t at = ran.out.find("top-1   ") + 8;
  const std::string csv = figures("evaluate " + path("camera.pte"));
  EXPECT_NEAR(std::stod(csv.substr(csv.find("npu,top-1,") + 10)), std::stod(ran.out.substr(at)), 0.051);
  auto arrays = require(readNpz(model("digits8_eval.npz")));
  for (auto& [name, tensor] : arrays) {
    if (name == "in0") tensor.mutableAs<float>()[3] = 7;
  }
  ASSERT_TRUE(writeFile(path("far.npz"), formatNpz(arrays)).ok());
  const Outcome far = run("evaluate " + path("camera.pte") + " --data " + path("far.npz"));
  EXPECT_EQ(far.status, 1);
  EXPECT_THAT(far.err, HasSubstr("far.npz"));
}

TEST_F(CliEvaluate, GatesAndMistakes) {
  EXPECT_EQ(run(program() + heldOut() + " --min-top1 90").status, 0);
  const Outcome missed = run(program() + heldOut() + " --min-top1 100 --junit " + path("j.xml"));
  EXPECT_EQ(missed.status, 3);
  EXPECT_THAT(missed.err, HasSubstr("--min-top1 100 %: found "));
  EXPECT_THAT(contentsOf(path("j.xml")), HasSubstr("failures=\"1\""));
  EXPECT_EQ(run(program() + heldOut() + " --min-sqnr 20").status, 1) << "no float results";
  EXPECT_EQ(run(program() + " --data " + path("none")).status, 1);
  EXPECT_EQ(run(program()).status, 2);
  EXPECT_EQ(run(program() + heldOut() + " --shard 1/2").status, 2);
  for (const std::string shard : {"0/2", "3/2", "1", "1/0", "a/b", "1/2x"})
    EXPECT_EQ(run(program() + heldOut() + " --records " + path("r") + " --shard " + shard).status, 2)
        << shard;
  EXPECT_EQ(run(program() + heldOut() + " --engines float").status, 1);
  EXPECT_EQ(run(program() + heldOut() + " --engines fpga").status, 2);

  auto arrays = require(readNpz(model("digits8_eval.npz")));
  for (auto& [name, tensor] : arrays) {
    if (name == "labels") tensor.setIntegerAt(7, 10);
  }
  ASSERT_TRUE(writeFile(path("bad.npz"), formatNpz(arrays)).ok());
  const Outcome outOfRange = run(program() + " --data " + path("bad.npz") + " --json " + path("bad.json"));
  EXPECT_EQ(outOfRange.status, 1);
  EXPECT_THAT(outOfRange.err, AllOf(HasSubstr("bad.npz[7]"), HasSubstr("the label 10 is out of range")));
  EXPECT_FALSE(std::filesystem::exists(path("bad.json")));
}

}  // namespace
}  // namespace carina::test
