// SPDX-License-Identifier: Apache-2.0
// carina assemble: converts the text of carina inspect --commands back to commands.
#include <memory>

#include "base/file.hpp"
#include "commands.hpp"
#include "console.hpp"
#include "ethosn/stream/stream_text.hpp"
#include "npu/isa/assembler.hpp"
#include "option_values.hpp"

namespace carina::app {
namespace {

struct AssembleFlags {
  std::filesystem::path input, output;
};

Status assemble(const AssembleFlags& flags) {
  CARINA_RETURN_IF_ERROR(checkOutputs({flags.output}));
  CARINA_TRY(const auto file, MappedFile::open(flags.input));
  if (ethosn::isNetworkText(asText(file->bytes()))) {
    auto network = ethosn::parseNetwork(asText(file->bytes()));
    if (!network)
      return std::move(network)
          .error()
          .inFile(flags.input.string())
          .withRemedy("'carina inspect NETWORK.encn --commands' shows the format");
    const std::vector<uint8_t> bytes = ethosn::writeCompiledNetwork(*network);
    CARINA_RETURN_IF_ERROR(writeFile(flags.output, std::as_bytes(std::span(bytes))));
    fmt::print("{}: compiled Ethos-N network of {} bytes\n", flags.output.string(), bytes.size());
    return {};
  }
  auto assembly = npu::assemble(asText(file->bytes()));
  if (!assembly)
    return std::move(assembly)
        .error()
        .inFile(flags.input.string())
        .withRemedy("'carina inspect PROGRAM --commands' shows the format");
  CARINA_RETURN_IF_ERROR(writeFile(flags.output, std::as_bytes(std::span(assembly->bytes))));
  fmt::print("{}: {} of {} command words for {}\n", flags.output.string(),
             assembly->isPayload ? "driver payload" : "bare commands", assembly->stream.size(),
             npu::familyName(assembly->family));
  return {};
}

}  // namespace

void addAssemble(CommandLine& line, Run& run) {
  auto flags = std::make_shared<AssembleFlags>();
  Command command =
      line.add("assemble", "Convert the text of carina inspect --commands back to a command stream");
  command
      .option(
          "FILE", flags->input,
          "Text: a driver payload (.payload), bare commands (.stream) or a network for Ethos-N (.network)")
      .transform(inputFile())
      .required();
  command.option("-o,--output", flags->output, "Where the bytes go").required();
  command.callback([flags, &run] { run = [flags] { return exitStatus(assemble(*flags), flags->input); }; });
}

}  // namespace carina::app
