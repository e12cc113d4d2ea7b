// SPDX-License-Identifier: Apache-2.0
#include "run_platform.hpp"

#include <charconv>
#include <cstdio>
#include <memory>

#include "base/file.hpp"
#include "console.hpp"
#include "platform/image_note.hpp"
#include "platform/platform.hpp"
#include "report/platform_stats.hpp"

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
    return fail("'{}' is no 32-bit address", text).at(option).withRemedy("give it as 0x70000000");
  return value;
}

/// The NPU of the platform: --target, else --npu-macs, else what the FVPs have.
Result<std::string> targetName(const PlatformFlags& flags) {
  const bool u85 = flags.platform == "corstone-320";
  if (!flags.target.empty()) {
    if (u85 != (flags.target.rfind("ethos-u85", 0) == 0))
      return fail("{} does not have an {}", flags.platform, flags.target)
          .withRemedy("Ethos-U55 and U65 are on corstone-300, Ethos-U85 is on corstone-320");
    return flags.target;
  }
  if (u85) return fmt::format("ethos-u85-{}", flags.macs == 0 ? 256 : flags.macs);
  // Both U55 and U65 come with 256; the smaller one has the name.
  if (flags.macs == 512) return std::string("ethos-u65-512");
  return fmt::format("ethos-u55-{}", flags.macs == 0 ? 128 : flags.macs);
}

Result<platform::Options> optionsOf(const PlatformFlags& flags) {
  platform::Options options;
  CARINA_TRY(options.board, platform::findBoard(flags.platform));
  CARINA_TRY(const std::string target, targetName(flags));
  CARINA_TRY(options.machine, npu::makeMachine(target, flags.systemConfig, flags.memoryMode));
  options.timingAdapters = flags.timingAdapters;
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
      return fail("'{}' does not say where to load it", entry).at("--data").withRemedy("FILE@0xADDRESS");
    CARINA_TRY(const uint32_t address, parseAddress(std::string_view(entry).substr(at + 1), "--data"));
    options.data.push_back({entry.substr(0, at), address});
  }
  options.secondsLimit = flags.seconds;
  options.instructionsLimit = flags.instructions;
  return options;
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

void addPlatformOptions(CLI::App& command, PlatformFlags& flags) {
  command.add_option("--npu-macs", flags.macs,
                     "Firmware: MACs per cycle of the platform's NPU; default 128 (U55), 256 (U85)");
  command.add_option("--system-config", flags.systemConfig,
                     "Firmware: memory speeds the NPU's cycles are counted with");
  command.add_option("--memory-mode", flags.memoryMode, "Firmware: what lives where, for the same purpose");
  command.add_flag("--timing-adapters", flags.timingAdapters,
                   "Firmware: its timing adapters set the memory speeds");
  command.add_option("--semihosting-dir", flags.semihostingFolder,
                     "Firmware: the folder whose files it may read and write");
  command.add_flag("--no-semihosting", flags.noSemihosting, "Firmware: semihosting calls are faults");
  command.add_option("--args", flags.arguments, "Firmware: its command line, after the program's name");
  command.add_option("--data", flags.data, "Firmware: load a file as it is, FILE@ADDRESS");
  command.add_option("--vector-table", flags.vectorTable,
                     "Firmware: address of the vector table; default: found in the image");
  command.add_option("--time-limit", flags.seconds, "Firmware: stop after so many seconds");
  command.add_option("--instruction-limit", flags.instructions, "Firmware: stop after so many instructions");
  command.add_option("--trace", flags.trace,
                     "Firmware: write device accesses, exceptions and semihosting calls to this file");
}

Status completeFromImage(PlatformFlags& flags) {
  CARINA_TRY(const auto file, MappedFile::open(flags.file));
  const auto note = platform::readImageNote(file->bytes());
  if (!note) return {};
  if (flags.platform == "host") flags.platform = note->platform;
  if (flags.platform != note->platform || note->target == "cpu") return {};
  if (flags.target.empty() && flags.macs == 0) flags.target = note->target;
  if (flags.target != note->target) return {};
  if (flags.systemConfig.empty()) flags.systemConfig = note->systemConfig;
  if (flags.memoryMode.empty()) flags.memoryMode = note->memoryMode;
  return {};
}

Result<int> runOnPlatform(const PlatformFlags& flags) {
  CARINA_TRY(platform::Options options, optionsOf(flags));
  std::unique_ptr<std::FILE, CloseFile> trace;
  if (!flags.trace.empty()) {
    trace.reset(std::fopen(flags.trace.c_str(), "w"));
    if (trace == nullptr) return fail("cannot be written").inFile(flags.trace.string());
    options.trace = [&trace](const std::string& line) { fmt::print(trace.get(), "{}\n", line); };
  }
  // UART 0 is the firmware's standard output; what it says elsewhere must not get between.
  options.output = [](uint32_t uart, char byte) {
    std::putc(byte, uart == 0 ? stdout : stderr);
    if (byte == '\n') std::fflush(uart == 0 ? stdout : stderr);
  };
  options.input = [] { return std::getchar(); };
  CARINA_TRY(const platform::Outcome outcome, platform::runElf(flags.file, options));
  std::fflush(stdout);
  if (!flags.json.empty()) {
    CARINA_RETURN_IF_ERROR(
        writeFile(flags.json, report::platformStatsJson(flags.file.filename().string(), outcome, options)));
  }
  fmt::print(stderr, "{}", report::platformStatsText(outcome, options));
  if (!outcome.refusedFile.empty())
    report(fail("the firmware wanted the file '{}' by semihosting", outcome.refusedFile)
               .withRemedy("--semihosting-dir DIR opens a folder to it"));
  if (outcome.reason != platform::EndReason::Exit)
    return fail("{}: {}", platform::endReasonName(outcome.reason), outcome.explanation)
        .inFile(flags.file.string());
  // A shell sees eight bits; a failure must not look like success.
  const int code = outcome.exitCode & 0xff;
  return code == 0 && outcome.exitCode != 0 ? 1 : code;
}

}  // namespace carina::app
