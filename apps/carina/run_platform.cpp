// SPDX-License-Identifier: Apache-2.0
#include "run_platform.hpp"

#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <memory>

#include "base/file.hpp"
#include "console.hpp"
#include "platform/byte_source.hpp"
#include "platform/gdb_server.hpp"
#include "platform/hardware.hpp"
#include "platform/platform.hpp"
#include "platform/trace_file.hpp"
#include "report/platform_stats.hpp"
#include "result_files.hpp"

namespace carina::app {
namespace {

Result<uint32_t> parseAddress(std::string_view text, std::string_view option) {
  std::string_view digits = text;
  const bool hex = digits.substr(0, 2) == "0x" || digits.substr(0, 2) == "0X";
  if (hex) digits.remove_prefix(2);
  uint32_t value = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, hex ? 16 : 10);
  if (error != std::errc{} || end != digits.data() + digits.size())
    return fail(Code::BadOption, "'{}' is not a 32-bit address", text)
        .at(option)
        .withRemedy("give one such as 0x70000000");
  return value;
}

Result<platform::Options> optionsOf(const PlatformFlags& flags) {
  platform::Options options;
  const platform::HardwareChoice choice{flags.platform == kHostPlatform ? "" : flags.platform, flags.target,
                                        flags.systemConfig, flags.memoryMode, flags.macs};
  CARINA_TRY(const platform::Hardware hardware, platform::chooseHardware(choice, flags.file));
  options.board = hardware.board;
  options.machine = hardware.machine;
  options.timingAdapters = flags.timingAdapters;
  if (!flags.waitStates.empty()) {
    auto timing = platform::parseMemoryTiming(flags.waitStates, *options.board);
    if (!timing) return std::move(timing.error()).at("--wait-states");
    options.memoryTiming = std::move(*timing);
  }
  options.semihosting = !flags.noSemihosting;
  options.semihostingFolder = flags.semihostingFolder;
  options.commandLine = flags.file.filename().string();
  if (!flags.arguments.empty()) options.commandLine += " " + flags.arguments;
  if (!flags.vectorTable.empty()) {
    CARINA_TRY(options.vectorTable, parseAddress(flags.vectorTable, "--vector-table"));
  }
  for (const std::string& entry : flags.data) {
    const size_t at = entry.rfind('@');
    if (at == std::string::npos)
      return fail(Code::BadOption, "'{}' does not say where to load it", entry)
          .at("--data")
          .withRemedy("FILE@0xADDRESS");
    CARINA_TRY(const uint32_t address, parseAddress(std::string_view(entry).substr(at + 1), "--data"));
    options.data.push_back({entry.substr(0, at), address});
  }
  CARINA_TRY(options.media, flags.media.read());
  options.secondsLimit = flags.seconds;
  options.instructionsLimit = flags.instructions;
  return options;
}

constexpr const char* kGroup = "Firmware";

}  // namespace

void addPlatformOptions(Command& command, PlatformFlags& flags) {
  OptionGroup group = command.group(kGroup, "Only with firmware (.elf):");
  group.option("--npu-macs", flags.macs, "MACs per cycle of the platform's NPU; default: the image's");
  group.flag("--timing-adapters", flags.timingAdapters,
             "The firmware's timing adapters set the memory speeds");
  group.option(
      "--wait-states", flags.waitStates,
      "Cycles that the core waits for memories, and the size of its caches in KiB: sram=1,ddr=30,cache=32");
  group.option("--semihosting-dir", flags.semihostingFolder,
               "Folder whose files the firmware may read and write");
  group.flag("--no-semihosting", flags.noSemihosting, "Semihosting calls are faults");
  group.option("--args", flags.arguments, "The firmware's command line, after the program's name");
  group.option("--uart-input", flags.uartInput, "What UART 0 receives: a file, or - for standard input");
  group.option("--lcd", flags.media.frames,
               "Write what the display shows to this folder: frame-0001.png, ...");
  group.option(
      "--events", flags.media.events,
      "Touches, pins, buttons and switches: a text file with MILLISECONDS and an event on each line");
  group.option("--audio-in", flags.media.soundIn, "What the audio interface receives: a .wav file");
  group.option("--audio-out", flags.media.soundOut, "Write what the audio interface sends to this .wav file");
  group.option("--vsi", flags.media.streams,
               "What a virtual stream (0 to 7) delivers: N=FILE or N=DRIVER:FILE with driver audio, video, "
               "vstream or data; several images are consecutive frames");
  group.option("--vsi-out", flags.media.streamOutputs,
               "Write what a virtual stream receives: N=FILE or N=DRIVER:FILE");
  group.option("--data", flags.data, "Load a file unchanged at an address: FILE@ADDRESS");
  group.option("--vector-table", flags.vectorTable,
               "Address of the vector table; default: found in the image");
  group.option("--time-limit", flags.seconds, "Stop after this many seconds");
  group.option("--instruction-limit", flags.instructions, "Stop after this many instructions");
  group.option("--gdb", flags.gdbPort, "Wait for GDB on this local port; 0: any free port");
  group.option("--trace", flags.trace,
               "Write device accesses, exceptions and semihosting calls to this file");
  group.option("--trace-cpu", flags.cpuTrace,
               "Write every instruction with the registers and memory that it changed to this file");
  group.option("--pmu-trace", flags.pmuTrace,
               "Write counters of core and NPU over time to this file: .csv, or .json for ui.perfetto.dev; "
               "with .gz appended, compressed");
  group.option("--pmu-interval", flags.pmuInterval, "Cycles between rows of --pmu-trace").showDefault();
  group.option("--coverage", flags.coverage,
               "Write which source lines were executed to this file, for lcov's tools");
}

std::string platformOptionGiven(const Command& command) {
  for (const GivenOption& option : command.given()) {
    if (option.group == kGroup) return option.name;
  }
  return {};
}

bool isFirmware(const std::filesystem::path& file) {
  return file.extension() == ".elf" || file.extension() == ".axf" || file.extension() == ".hex";
}

Result<int> runOnPlatform(const PlatformFlags& flags) {
  CARINA_TRY(platform::Options options, optionsOf(flags));
  CARINA_TRY(options.uartInput, platform::bytesFrom(flags.uartInput));
  platform::TraceFile trace, cpuTrace;
  CARINA_RETURN_IF_ERROR(trace.open(flags.trace, options.trace));
  CARINA_RETURN_IF_ERROR(cpuTrace.open(flags.cpuTrace, options.cpuTrace));
  options.coverage = !flags.coverage.empty();
  if (flags.pmuInterval < platform::PmuTrace::kMinInterval)
    return fail(Code::BadOption, "{} cycles are too few", flags.pmuInterval)
        .at("--pmu-interval")
        .withRemedy(fmt::format("give {} or more", platform::PmuTrace::kMinInterval));
  if (!flags.pmuTrace.empty()) options.pmuInterval = flags.pmuInterval;
  std::unique_ptr<platform::GdbServer> gdb;
  if (flags.gdbPort) {
    CARINA_TRY(gdb, platform::GdbServer::listen(*flags.gdbPort));
    options.debugger = gdb.get();
    fmt::print(stderr, "waiting for GDB: target remote :{}\n", gdb->port());
  }
  // UART 0 is the firmware's standard output; output of other UARTs must not be mixed into it. On a terminal,
  // every byte is shown as it arrives.
  options.output = [live = isatty(STDOUT_FILENO) != 0](uint32_t uart, char byte) {
    std::putc(byte, uart == 0 ? stdout : stderr);
    if (byte == '\n' || live) std::fflush(uart == 0 ? stdout : stderr);
  };
  options.input = [] { return std::getchar(); };
  CARINA_TRY(const platform::Outcome outcome, platform::runElf(flags.file, options));
  std::fflush(stdout);
  CARINA_RETURN_IF_ERROR(trace.close());
  CARINA_RETURN_IF_ERROR(cpuTrace.close());
  if (options.coverage) CARINA_RETURN_IF_ERROR(writeFile(flags.coverage, outcome.lcov));
  ResultFiles results;
  CARINA_RETURN_IF_ERROR(
      results.add(flags.json, report::platformStatsJson(flags.file.filename().string(), outcome, options)));
  CARINA_RETURN_IF_ERROR(flags.media.addTo(results.files(), outcome.media));
  if (!flags.pmuTrace.empty())
    CARINA_RETURN_IF_ERROR(
        results.files().add(flags.pmuTrace, platform::pmuFile(outcome.pmu, flags.pmuTrace)));
  CARINA_RETURN_IF_ERROR(results.commit());
  results.print("");
  fmt::print(stderr, "{}", report::platformStatsText(outcome, options));
  if (!outcome.refusedFile.empty())
    report(fail(Code::CannotRead, "the firmware requested the file '{}' by semihosting", outcome.refusedFile)
               .withRemedy("give it access to a folder with --semihosting-dir DIR"));
  if (outcome.reason != platform::EndReason::Exit)
    return fail(Code::CannotRead, "{}: {}", platform::endReasonName(outcome.reason), outcome.explanation)
        .inFile(flags.file.string());
  // A shell sees only eight bits; a failure must not look like success.
  const int code = outcome.exitCode & 0xff;
  return code == 0 && outcome.exitCode != 0 ? 1 : code;
}

}  // namespace carina::app
