// SPDX-License-Identifier: Apache-2.0
// carina assemble: the text of carina inspect --commands back to commands.
#include <memory>

#include "base/file.hpp"
#include "commands.hpp"
#include "console.hpp"
#include "npu/assembler.hpp"
#include "option_values.hpp"

namespace carina::app {
namespace {

struct Flags {
  std::filesystem::path input, output;
};

Status assemble(const Flags& flags) {
  CARINA_RETURN_IF_ERROR(checkOutputs({flags.output}));
  CARINA_TRY(const auto file, MappedFile::open(flags.input));
  auto assembly = npu::assemble(asText(file->bytes()));
  if (!assembly) return std::move(assembly).error().inFile(flags.input.string());
  CARINA_RETURN_IF_ERROR(writeFile(flags.output, std::as_bytes(std::span(assembly->bytes))));
  fmt::print("{}: {} of {} command words for {}\n", flags.output.string(),
             assembly->isPayload ? "driver payload" : "bare commands", assembly->stream.size(),
             npu::familyName(assembly->family));
  return {};
}

}  // namespace

void addAssemble(CLI::App& app, Run& run) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command =
      app.add_subcommand("assemble", "Turn the text of carina inspect --commands back to a command stream");
  command->add_option("FILE", flags->input, "Text: a driver payload (.payload) or bare commands (.stream)")
      ->transform(inputFile())
      ->required();
  command->add_option("-o,--output", flags->output, "Where the bytes go")->required();
  command->callback([flags, &run] {
    run = [flags] {
      const Status status = assemble(*flags);
      return status.ok() ? 0 : report(Status(status).error(), flags->input);
    };
  });
}

}  // namespace carina::app
