// SPDX-License-Identifier: Apache-2.0
// carina-fvp: the virtual platform with the command line of Arm's Fixed Virtual Platforms. Called by one of
// their names (links in bin/), it acts as that platform.
#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/gzip.hpp"
#include "platform/byte_source.hpp"
#include "platform/fvp_command.hpp"
#include "platform/gdb_server.hpp"
#include "platform/trace_file.hpp"

namespace {

using namespace carina;
using namespace carina::platform;

// Scripts interpret lines that begin with E or F as failures of the firmware; none of ours does.
int report(const Error& error) {
  for (const Diagnostic& diagnostic : error.diagnostics())
    fmt::print(stderr, "carina-fvp: {}\n", diagnostic.str());
  return 1;
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

/// Where the UARTs send their output.
class Outputs {
 public:
  Status open(const FvpCommand& command) {
    for (size_t i = 0; i < uarts_.size(); ++i) {
      const auto& name = command.uartFiles[i];
      if (!name) continue;
      if (!name->empty()) {
        uarts_[i].file.reset(std::fopen(name->c_str(), "w"));
        if (uarts_[i].file == nullptr) return fail(Code::CannotWrite, "cannot be written").inFile(*name);
      }
      uarts_[i].to = name->empty() ? stdout : uarts_[i].file.get();
      uarts_[i].name = name->empty() ? "standard output" : *name;
    }
    return {};
  }
  void put(uint32_t uart, char byte) {
    std::FILE* const to = uarts_[uart].to;
    if (to == nullptr) return;
    std::putc(byte, to);
    if (byte == '\n') std::fflush(to);
  }
  Status flushAll() {
    for (const Uart& uart : uarts_) {
      if (uart.to != nullptr) CARINA_RETURN_IF_ERROR(flush(uart.to, uart.name));
    }
    return {};
  }

 private:
  struct Uart {
    std::unique_ptr<std::FILE, CloseFile> file;
    std::FILE* to = nullptr;
    std::string name;
  };
  std::array<Uart, kUarts> uarts_;
};

int run(const FvpCommand& command) {
  Options options = command.options;
  for (const std::string& name : command.unknown)
    fmt::print(stderr, "carina-fvp: {} is unknown and is ignored\n", name);
  Outputs outputs;
  if (Status ready = outputs.open(command); !ready.ok()) return report(ready.error());
  auto media = command.media.read();
  if (!media.ok()) return report(media.error());
  options.media = std::move(*media);
  auto input = bytesFrom(command.uartInput);
  if (!input.ok()) return report(input.error());
  options.uartInput = *input;
  options.output = [&outputs](uint32_t uart, char byte) { outputs.put(uart, byte); };
  options.input = [] { return std::getchar(); };
  TraceFile trace, cpuTrace;
  Status opened = trace.open(command.trace, options.trace);
  if (opened.ok()) opened = cpuTrace.open(command.cpuTrace, options.cpuTrace);
  if (!opened.ok()) return report(opened.error());
  std::unique_ptr<GdbServer> gdb;
  if (command.gdbPort) {
    auto listening = GdbServer::listen(*command.gdbPort);
    if (!listening.ok()) return report(listening.error());
    gdb = std::move(*listening);
    options.debugger = gdb.get();
    fmt::print(stderr, "waiting for GDB: target remote :{}\n", gdb->port());
  }
  const auto outcome = runElf(command.image, options);
  Status written = outputs.flushAll();
  if (written.ok()) written = trace.close();
  if (written.ok()) written = cpuTrace.close();
  if (!written.ok()) return report(written.error());
  if (!outcome.ok()) return report(outcome.error());
  OutputFiles files;
  Status kept = command.media.addTo(files, outcome->media);
  if (kept.ok() && !command.pmuTrace.empty()) {
    const std::string json = pmuJson(outcome->pmu);
    kept = files.add(command.pmuTrace, command.pmuTrace.extension() == ".gz" ? gzipped(json) : json);
  }
  if (kept.ok() && !command.coverage.empty()) kept = files.add(command.coverage, outcome->lcov);
  if (kept.ok()) kept = files.commit();
  if (!kept.ok()) return report(kept.error());
  for (const std::string& note : outcome->media.notes) fmt::print(stderr, "carina-fvp: {}\n", note);
  for (const UnknownAccess& access : outcome->unknownPeripherals)
    fmt::print(stderr, "carina-fvp: {}\n", text(access));
  if (outcome->reason == EndReason::TimeLimit)
    fmt::print("\nInfo: Simulation is stopping. Reason: CPU time has been exceeded.\n");
  else if (outcome->reason == EndReason::CycleLimit)
    fmt::print("\nInfo: Simulation is stopping. Reason: Simulated time has been exceeded.\n");
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
  } else if (command->asks == FvpCommand::Asks::Parameters) {
    fmt::print("{}", fvpParameters(program));
  } else if (command->asks == FvpCommand::Asks::Version) {
    fmt::print("carina-fvp {}, as {}\n", CARINA_VERSION, program);
  } else {
    status = run(*command);
  }
  const Status written = flush(stdout, "standard output");
  return written.ok() ? status : report(written.error());
}
