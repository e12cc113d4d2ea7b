// SPDX-License-Identifier: Apache-2.0
// Every error names a file or an option and says what to do: for damaged files of every kind, and every
// command that reads them.
#include "cli.hpp"

namespace carina {
namespace {

using test::contentsOf;
using test::model;
using testing::HasSubstr;

class CliMessages : public test::Cli {
 protected:
  /// Each error of `result`: "carina: error[CODE]: FILE: ...", or "carina: error[CODE]: --option: ...", and a
  /// line below it.
  void expectHelpful(const Outcome& result, const std::string& command) const {
    std::istringstream lines(result.err);
    std::string previous;
    const auto isError = [](const std::string& line) { return line.starts_with("carina: error[E"); };
    const std::string beginning = "carina: error[E0000]: ";
    for (std::string line; std::getline(lines, line); previous = line) {
      if (isError(line)) {
        const std::string message = line.substr(beginning.size());
        EXPECT_TRUE(message.starts_with("/") || message.starts_with("--")) << command << "\n" << line;
      }
      EXPECT_FALSE(isError(previous) && !line.starts_with("  ")) << command << "\n" << previous;
    }
    EXPECT_FALSE(isError(previous)) << command << "\n" << previous;
  }

  void compileDense(const std::string& output) const {
    ASSERT_EQ(run("compile " + model("dense.pt2") + " --target ethos-u55-128 --io int8 -o " + path(output) +
                  calibrate("dense"))
                  .status,
              0);
  }
};

TEST_F(CliMessages, DamagedFilesOfEveryKind) {
  const std::string build = " --target ethos-u55-128" + calibrate("dense") + " -o " + path("out.pte");
  const std::vector<std::pair<std::string, std::vector<std::string>>> kinds{
      {".pte",
       {"run @", "inspect @", "check @", "profile @",
        "firmware @ --platform corstone-300 -o " + path("x.elf")}},
      {".bin", {"inspect @", "profile @"}},
      {".tosa", {"compile @" + build, "run @", "inspect @", "verify @ --target ethos-u55-128"}},
      {".tflite", {"compile @" + build, "run @", "inspect @", "profile @"}},
      {".pt2", {"compile @" + build, "inspect @", "ops @ --target cpu", "sweep @"}},
      {".npz",
       {"inspect @", "compile " + model("dense.pt2") + " --target cpu --quantize int8 -o " + path("o.pte") +
                         " --calibrate @"}},
  };
  for (const auto& [extension, commands] : kinds) {
    std::string whole;
    if (extension == ".pt2" || extension == ".npz") {
      whole = contentsOf(model("dense" + extension));
    } else {
      compileDense("dense" + extension);
      whole = contentsOf(path("dense" + extension));
    }
    std::string changed = whole;
    for (size_t i = 8; i < changed.size(); i += 13) changed[i] = static_cast<char>(changed[i] ^ 0x55);
    for (const std::string& damaged :
         {std::string(), whole.substr(0, 6), whole.substr(0, whole.size() / 3),
          whole.substr(0, whole.size() - 1), whole.substr(0, 12) + whole.substr(16), changed}) {
      writeText("x" + extension, damaged);
      for (std::string command : commands) {
        command.replace(command.find('@'), 1, path("x" + extension));
        const Outcome result = run(command);
        EXPECT_GE(result.status, damaged.empty() ? 1 : 0) << command;
        expectHelpful(result, command);
      }
    }
  }
}

TEST_F(CliMessages, WrongNames) {
  compileDense("d.pte");
  const std::string dense = model("dense.pt2") + calibrate("dense");
  writeText("hello.txt", "hello\n");
  writeText("open.json", "{\n");
  const std::string text = path("hello.txt"), open = path("open.json");
  for (const std::string& command :
       {"compile " + dense + " --target ethos-u1 -o " + path("o.pte"),
        "compile " + dense + " --target ethos-u55-128 --memory-mode Slow -o " + path("o.pte"),
        "compile " + dense + " --target ethos-u55-128 --system-config Slow -o " + path("o.pte"),
        "profile " + dense,
        "profile " + dense + " --target cpu",
        "profile " + path("d.pte") + " --target ethos-u55-64",
        "ops " + dense + " --target ethos-u1",
        "sweep " + dense + " --targets ethos-u1",
        "run " + path("d.pte") + " --target ethos-u1",
        "run " + path("d.pte") + " --memory-mode Slow",
        "run " + path("d.pte") + " --method none",
        "run " + path("d.pte"),
        "inspect " + path("d.pte") + " --part 9",
        "inspect " + model("dense.pt2") + " --commands",
        "check " + path("none.pte"),
        "assemble " + path("none.s") + " -o " + path("x.bin"),
        "diff " + open + " " + path("d.pte"),
        "evaluate " + path("d.pte") + " --data " + text,
        "ci " + text,
        "ci " + open,
        "merge " + text,
        "merge " + open,
        "opt " + text,
        "assemble " + text + " -o " + path("x.bin"),
        "check " + text,
        "fit " + text + " --board corstone-300",
        "run " + path("d.pte") + " --input " + text,
        "run " + path("d.pte") + " --platform corstone-300",
        "run " + open + " --platform corstone-300",
        "run " + path("none.elf") + " --platform corstone-300"}) {
    const Outcome result = run(command);
    EXPECT_EQ(result.status, 1) << command;
    EXPECT_THAT(result.err, HasSubstr("carina: error[E")) << command;
    expectHelpful(result, command);
  }
  EXPECT_THAT(run("compile " + dense + " --target ethos-u1 -o " + path("o.pte")).err, HasSubstr("Ethos-N78"));
  EXPECT_THAT(run("run " + path("d.pte") + " --platform corstone-300").err,
              HasSubstr("build an image with 'carina firmware"));
}

}  // namespace
}  // namespace carina
