// SPDX-License-Identifier: Apache-2.0
// carina-fvp: the virtual platform behind the command line of Arm's Fixed Virtual Platforms. Called by one of
// their names (links in bin/) it is that platform.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "platform/byte_source.hpp"
#include "platform/fvp_command.hpp"

namespace {

using namespace carina;
using namespace carina::platform;

// Scripts take lines that begin with E or F for failures of the firmware: none of ours does.
int report(const Error& error) {
  for (const Diagnostic& diagnostic : error.diagnostics())
    fmt::print(stderr, "carina-fvp: {}\n", diagnostic.str());
  return 1;
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

int run(const FvpCommand& command) {
  Options options = command.options;
  for (const std::string& name : command.unknown)
    fmt::print(stderr, "carina-fvp: {} is not known here: ignored\n", name);
  std::unique_ptr<std::FILE, CloseFile> file;
  if (!command.uartFile.empty()) {
    file.reset(std::fopen(command.uartFile.c_str(), "w"));
    if (file == nullptr) return report(fail(Code::CannotWrite, "cannot be written").inFile(command.uartFile));
  }
  auto input = bytesFrom(command.uartInput);
  if (!input.ok()) return report(input.error());
  options.uartInput = *input;
  std::FILE* const uart0 = file ? file.get() : stdout;
  options.output = [uart0](uint32_t uart, char byte) {
    if (uart == 0) std::putc(byte, uart0);
    if (uart == 0 && byte == '\n') std::fflush(uart0);
  };
  options.input = [] { return std::getchar(); };
  const auto outcome = runElf(command.image, options);
  const Status written = flush(uart0, file ? command.uartFile : "standard output");
  if (!written.ok()) return report(written.error());
  if (!outcome.ok()) return report(outcome.error());
  if (outcome->reason == EndReason::TimeLimit)
    fmt::print("\nInfo: Simulation is stopping. Reason: CPU time has been exceeded.\n");
  else if (outcome->reason != EndReason::Exit)
    return report(fail(Code::BadOption, "{}: {}", endReasonName(outcome->reason), outcome->explanation)
                      .inFile(command.image.string()));
  if (command.statistics) {
    fmt::print(
        "\n--- {} statistics: ---\nSimulated cycles    : {}\nInstructions        : {}\nWall time           : "
        "{:.6f}\n",
        options.board->name, outcome->cycles, outcome->instructions, outcome->seconds);
  }
  const int code = outcome->exitCode & 0xff;
  return code == 0 && outcome->exitCode != 0 ? 1 : code;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const std::string program = std::filesystem::path(argv[0]).filename().string();
  const auto command = parseFvpCommand(program, arguments);
  int status = 0;
  if (!command.ok()) {
    status = report(command.error());
  } else if (command->asks == FvpCommand::Asks::Help) {
    fmt::print("{}", fvpHelp(program));
  } else if (command->asks == FvpCommand::Asks::Version) {
    fmt::print("carina-fvp {}, as {}\n", CARINA_VERSION, program);
  } else {
    status = run(*command);
  }
  const Status written = flush(stdout, "standard output");
  return written.ok() ? status : report(written.error());
}
