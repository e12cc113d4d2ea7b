// SPDX-License-Identifier: Apache-2.0
#include "platform/fvp_command.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "support/require.hpp"
#include "support/temp_dir.hpp"

namespace carina::platform {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class FvpCommandTest : public testing::Test {
 protected:
  FvpCommandTest() { std::ofstream(folder_ / "app.elf") << "image"; }
  std::string image() const { return (folder_ / "app.elf").string(); }
  static Result<FvpCommand> parse(const char* program, const std::vector<std::string>& arguments) {
    return parseFvpCommand(program, arguments);
  }
  test::TempDir folder_;
};

TEST_F(FvpCommandTest, AcceptsTheCommandLinesOfScripts) {
  const auto command = require(
      parse("FVP_Corstone_SSE-300_Ethos-U55",
            {"-C", "ethosu.num_macs=256", "-C", "mps3_board.visualisation.disable-visualisation=1", "-C",
             "mps3_board.telnetterminal0.start_telnet=0", "-C", "mps3_board.uart0.out_file=\"-\"", "-C",
             "mps3_board.uart0.in_file=keys.txt", "-C", "mps3_board.uart0.shutdown_on_eot=1", "-a", image(),
             "--timelimit", "220", "--simlimit", "1.5", "--stat"}));
  EXPECT_EQ(command.image, image());
  EXPECT_EQ(command.options.machine.target->name, "ethos-u55-256");
  EXPECT_EQ(command.options.secondsLimit, 220);
  EXPECT_EQ(command.options.cyclesLimit, 37'500'000u);
  EXPECT_TRUE(command.options.stopAtEot);
  EXPECT_TRUE(command.options.timingAdapters);
  EXPECT_FALSE(command.options.semihosting);
  EXPECT_TRUE(command.statistics);
  EXPECT_EQ(command.uartFiles[0], "");
  EXPECT_EQ(command.uartFiles[1], std::nullopt);
  EXPECT_EQ(command.uartInput, "keys.txt");
  EXPECT_THAT(command.unknown, IsEmpty());
}

TEST_F(FvpCommandTest, AcceptsTheCommandLinesOfZephyr) {
  // boards/arm/mps4/board.cmake and boards/arm/mps3/board.cmake; --quantum occurs in notes on virtual
  // hardware.
  const std::vector<std::string> arguments = {
      "-C", "mps4_board.subsystem.iotss3_systemcontrol.INITSVTOR_RST=0",
      "-C", "mps4_board.subsystem.cpu0.MPU_S=16",
      "-C", "mps4_board.subsystem.cpu0.CFGPACBTI=1",
      "-C", "mps4_board.uart1.out_file=-",
      "-C", "mps4_board.uart2.unbuffered_output=1",
      "-C", "mps4_board.telnetterminal2.start_telnet=0",
      "-C", "vis_hdlcd.disable_visualisation=1",
      "-Q", "10",
      "-a", "cpu0*=" + image()};
  const auto command = require(parse("FVP_Corstone_SSE-320", arguments));
  EXPECT_THAT(command.unknown, IsEmpty());
  EXPECT_EQ(command.options.vectorTable, 0u);
  EXPECT_EQ(command.image, image());
  // A Cortex-M55 has no pointer authentication.
  const auto other = require(parse("FVP_Corstone_SSE-300_Ethos-U55", arguments));
  EXPECT_THAT(other.unknown, ElementsAre("mps4_board.subsystem.cpu0.CFGPACBTI"));
  const auto fewer = require(parse("FVP_Corstone_SSE-320", {"-C", "cpu0.MPU_S=8", "-a", image()}));
  EXPECT_THAT(fewer.unknown, ElementsAre("cpu0.MPU_S"));
  EXPECT_EQ(parse("FVP_Corstone_SSE-320", {"--list-params"})->asks, FvpCommand::Asks::Parameters);
}

TEST_F(FvpCommandTest, StreamsNeedFilesInsteadOfScripts) {
  const auto scripts =
      parse("FVP_Corstone_SSE-300_Ethos-U55", {"-C", "mps3_board.v_path=./vsi/python/", "-a", image()});
  ASSERT_FALSE(scripts.ok());
  EXPECT_THAT(scripts.error().str(), HasSubstr("Python scripts of virtual streams in './vsi/python/'"));
  const auto files = require(parse("FVP_Corstone_SSE-300_Ethos-U55", {"-C", "mps3_board.v_path=./vsi/python/",
                                                                      "-C", "carina.vsi0=test.wav",
                                                                      "-C", "carina.vsi6_out=video:f.png",
                                                                      "-C", "carina.lcd=shown",
                                                                      "-C", "carina.events=e.txt",
                                                                      "-C", "carina.audio_in=i.wav",
                                                                      "-C", "carina.audio_out=o.wav",
                                                                      "-C", "carina.vsi=x",
                                                                      "-C", "carina.vsi1_in=x",
                                                                      "-C", "carina.sound=x",
                                                                      "-a", image()}));
  EXPECT_THAT(files.media.streams, ElementsAre("0=test.wav"));
  EXPECT_THAT(files.media.streamOutputs, ElementsAre("6=video:f.png"));
  EXPECT_EQ(files.media.frames, "shown");
  EXPECT_EQ(files.media.events, "e.txt");
  EXPECT_EQ(files.media.soundIn, "i.wav");
  EXPECT_EQ(files.media.soundOut, "o.wav");
  EXPECT_THAT(files.unknown, ElementsAre("carina.vsi", "carina.vsi1_in", "carina.sound"));
}

TEST_F(FvpCommandTest, Corstone320WithSemihosting) {
  const auto command = require(
      parse("FVP_Corstone_SSE-320",
            {"-C", "mps4_board.subsystem.ethosu.num_macs=1024", "-C",
             "mps4_board.subsystem.ethosu.extra_args=--fast", "-C",
             "mps4_board.subsystem.cpu0.semihosting-enable=1", "-C",
             "mps4_board.subsystem.cpu0.semihosting-cwd=/box", "-C",
             "mps4_board.subsystem.cpu0.semihosting-cmd_line='runner -m x.pte'", "-C",
             "mps4_board.subsystem.cpu0.INITSVTOR=0x11000000", "--data", "cpu0=x.pte@0x70000000", image()}));
  EXPECT_EQ(command.options.machine.target->name, "ethos-u85-1024");
  EXPECT_FALSE(command.options.timingAdapters);
  EXPECT_TRUE(command.options.semihosting);
  EXPECT_EQ(command.options.semihostingFolder, "/box");
  EXPECT_EQ(command.options.commandLine, "runner -m x.pte");
  EXPECT_EQ(command.options.vectorTable, 0x11000000u);
  ASSERT_EQ(command.options.data.size(), 1u);
  EXPECT_EQ(command.options.data[0].file, "x.pte");
  EXPECT_EQ(command.options.data[0].address, 0x70000000u);
}

TEST_F(FvpCommandTest, TheProgramNameSelectsTheBoard) {
  const auto board = [&](const char* program) {
    const auto command = parse(program, {image()});
    return command.ok()
               ? fmt::format("{} {}", command->options.board->name, command->options.machine.target->name)
               : command.error().str();
  };
  EXPECT_EQ(board("FVP_Corstone_SSE-300_Ethos-U55"), "corstone-300 ethos-u55-128");
  EXPECT_EQ(board("FVP_Corstone_SSE-310"), "corstone-310 ethos-u55-128");
  EXPECT_EQ(board("FVP_Corstone_SSE-310_Ethos-U65"), "corstone-310 ethos-u65-256");
  EXPECT_EQ(board("FVP_Corstone_SSE-315"), "corstone-315 ethos-u65-256");
  EXPECT_EQ(board("FVP_Corstone_SSE-320"), "corstone-320 ethos-u85-256");
}

TEST_F(FvpCommandTest, EveryUartHasAFile) {
  const auto command =
      require(parse("FVP_Corstone_SSE-300_Ethos-U55",
                    {"-C", "mps3_board.uart1.out_file=-", "-C", "mps3_board.uart5.out_file=five.txt", "-C",
                     "mps3_board.uart1.unbuffered_output=1", "-C", "mps3_board.uart6.out_file=-", "-C",
                     "mps3_board.uart11.out_file=-", "-C", "uartx.out_file=-", image()}));
  EXPECT_THAT(command.uartFiles, ElementsAre("", "", std::nullopt, std::nullopt, std::nullopt, "five.txt"));
  EXPECT_THAT(command.unknown,
              ElementsAre("mps3_board.uart6.out_file", "mps3_board.uart11.out_file", "uartx.out_file"));
}

TEST_F(FvpCommandTest, ParametersFromAFile) {
  std::ofstream(folder_ / "config.txt")
      << "# what the scripts of CMSIS-DSP use\r\n\ncpu0.semihosting-enable=1 # on\n"
         "  ethosu.num_macs=64\ncpu0.INITSVTOR=0x70000000\n";
  const auto command =
      require(parse("FVP_Corstone_SSE-300_Ethos-U55", {"-f", (folder_ / "config.txt").string(), image()}));
  EXPECT_TRUE(command.options.semihosting);
  EXPECT_EQ(command.options.machine.target->name, "ethos-u55-64");
  EXPECT_EQ(command.options.vectorTable, 0x70000000u);

  std::ofstream(folder_ / "bad.txt") << "\nethosu.num_macs\n";
  const auto bad = parse("FVP_Corstone_SSE-300_Ethos-U55", {"-f", (folder_ / "bad.txt").string(), image()});
  ASSERT_FALSE(bad.ok());
  EXPECT_THAT(bad.error().str(), HasSubstr("bad.txt"));
  EXPECT_THAT(bad.error().str(), HasSubstr("line 2"));
}

TEST_F(FvpCommandTest, HelpAndVersionNeedNoImage) {
  const auto help = require(parse("FVP_Corstone_SSE-320", {"--help"}));
  EXPECT_EQ(help.asks, FvpCommand::Asks::Help);
  EXPECT_THAT(fvpHelp("FVP_Corstone_SSE-320"), HasSubstr("--list-params"));
  const auto version = require(parse("FVP_Corstone_SSE-320", {"--version"}));
  EXPECT_EQ(version.asks, FvpCommand::Asks::Version);
}

TEST_F(FvpCommandTest, CoreParametersAreAcceptedIfTheyMatchTheModel) {
  const auto command =
      require(parse("FVP_Corstone_SSE-310",
                    {"-C", "cpu0.SAU=0x8", "-C", "cpu0.SECEXT=1", "-C", "cpu0.IRQLVL=3", "-C", "cpu0.ITM=0",
                     "-C", "cpu0.SAU=0", "-C", "cpu0.MPU_NS=0x10", "-C", "cpu0.CPIF=1", image()}));
  EXPECT_THAT(command.unknown, ElementsAre("cpu0.SAU", "cpu0.CPIF"));
}

TEST_F(FvpCommandTest, ListsTheParametersThatItAccepts) {
  for (const char* const program : {"FVP_Corstone_SSE-300_Ethos-U55", "FVP_Corstone_SSE-320"}) {
    const auto asked = require(parse(program, {"-l"}));
    EXPECT_EQ(asked.asks, FvpCommand::Asks::Parameters);
    // Passing all of them with their default values changes nothing.
    const std::string file = (folder_ / "parameters.txt").string();
    std::ofstream(file) << fvpParameters(program);
    const auto command = parse(program, {"-f", file, image()}), plain = parse(program, {image()});
    ASSERT_TRUE(command.ok() && plain.ok()) << command.error().str();
    EXPECT_THAT(command->unknown, IsEmpty());
    EXPECT_EQ(command->uartFiles, plain->uartFiles);
    EXPECT_EQ(command->options.vectorTable, plain->options.vectorTable);
    EXPECT_EQ(command->options.machine.target, plain->options.machine.target);
    EXPECT_TRUE(command->media.streams.empty() && command->media.streamOutputs.empty());
  }
  EXPECT_THAT(fvpParameters("FVP_Corstone_SSE-315"), HasSubstr("mps4_board.subsystem.cpu0.INITSVTOR="));
  EXPECT_THAT(fvpParameters("FVP_Corstone_SSE-310"), HasSubstr("mps3_board.uart5.out_file="));
}

TEST_F(FvpCommandTest, OptionsOfCarinaRun) {
  const auto command = require(parse(
      "FVP_Corstone_SSE-310", {"--trace", "t", "--trace-cpu=c", "--coverage", "v", "--gdb", "0",
                               "--pmu-trace", "p", "--wait-states", "sram=2,ddr=30,cache=16", image()}));
  EXPECT_EQ(command.trace, "t");
  EXPECT_EQ(command.cpuTrace, "c");
  EXPECT_EQ(command.coverage, "v");
  EXPECT_TRUE(command.options.coverage);
  EXPECT_EQ(command.gdbPort, 0);
  EXPECT_EQ(command.pmuTrace, "p");
  ASSERT_EQ(command.options.memoryTiming.entries.size(), 2u);
  EXPECT_EQ(command.options.memoryTiming.entries[1].cycles, 30u);
  EXPECT_EQ(command.options.memoryTiming.cacheKiB, 16u);
  EXPECT_THAT(command.unknown, IsEmpty());
}

TEST_F(FvpCommandTest, UnknownParametersAreNamedAndIgnored) {
  const auto command =
      require(parse("FVP_Corstone_SSE-300_Ethos-U65", {"-C", "some.thing=1", "--weird", image()}));
  EXPECT_THAT(command.unknown, ElementsAre("some.thing", "--weird"));
  EXPECT_EQ(command.options.machine.target->name, "ethos-u65-256");
}

TEST_F(FvpCommandTest, UnknownArgumentsOfTheNpuAreNamed) {
  const auto command = require(
      parse("FVP_Corstone_SSE-300_Ethos-U55",
            {"-C", "ethosu.extra_args=\"--pmu-trace out.json.gz --fast --deep value\"", "-a", image()}));
  EXPECT_FALSE(command.options.timingAdapters);
  EXPECT_THAT(command.unknown, ElementsAre("ethosu.extra_args --deep value"));
  EXPECT_EQ(command.pmuTrace, "out.json.gz");
  EXPECT_EQ(command.options.pmuInterval, PmuTrace::kUsualInterval);
}

TEST_F(FvpCommandTest, RefusesInvalidArguments) {
  const auto refusal = [&](const std::vector<std::string>& arguments) {
    return errorOf(parse("FVP_Corstone_SSE-320", arguments));
  };
  EXPECT_THAT(refusal({}), HasSubstr("no image"));
  EXPECT_THAT(refusal({"-C"}), HasSubstr("value is missing"));
  EXPECT_THAT(refusal({"-C", "nonsense", image()}), HasSubstr("name=value"));
  EXPECT_THAT(refusal({"-C", "ethosu.num_macs=many", image()}), HasSubstr("not a number"));
  EXPECT_THAT(refusal({"-C", "ethosu.num_macs=77", image()}), HasSubstr("ethos-u85-77"));
  EXPECT_THAT(refusal({"--data", "x.pte", image()}), HasSubstr("no load address"));
  EXPECT_THAT(refusal({"--timelimit", "long", image()}), HasSubstr("not a number of seconds"));
  EXPECT_THAT(refusal({"--simlimit=1e30", image()}), HasSubstr("not a number of seconds"));
  EXPECT_THAT(refusal({"--gdb", "70000", image()}), HasSubstr("not a port"));
  EXPECT_THAT(refusal({"--wait-states", "itcm=1", image()}), HasSubstr("tightly coupled"));
}

TEST_F(FvpCommandTest, GatingCanBeDisabled) {
  const auto usual = require(parse("FVP_Corstone_SSE-300_Ethos-U55", {"-a", image()}));
  EXPECT_TRUE(usual.options.gating);
  const auto open =
      require(parse("FVP_Corstone_SSE-300_Ethos-U55", {"-C", "mps3_board.DISABLE_GATING=1", "-a", image()}));
  EXPECT_FALSE(open.options.gating);
  EXPECT_THAT(open.unknown, IsEmpty());
}

}  // namespace
}  // namespace carina::platform
