// SPDX-License-Identifier: Apache-2.0
// carina firmware: a bare-metal image for one program.
#include <memory>

#include "base/file.hpp"
#include "base/npy.hpp"
#include "commands.hpp"
#include "console.hpp"
#include "firmware/image.hpp"
#include "gate_options.hpp"
#include "option_values.hpp"
#include "report/image_summary.hpp"
#include "result_files.hpp"

namespace carina::app {
namespace {

struct FirmwareFlags {
  firmware::ImageOptions image;
  std::filesystem::path output, input, expected;
  ResultPath json;
  GateOptions gates;
  std::string io = "linked", program = "linked", wait = "interrupt";
  firmware::TextOptions text;
  int64_t tokens = 0;
  double timeout = 60;

  FirmwareFlags() { image.source.core = "cortex-m33"; }
};

/// Which options are compatible for images that write text.
Status checkText(const FirmwareFlags& flags, firmware::ImageOptions& image) {
  if (flags.text.tokenizer.empty()) {
    const char* given = !flags.text.prompt.empty() ? "--prompt"
                        : flags.text.context > 0   ? "--context"
                        : flags.tokens > 0         ? "--tokens"
                                                   : nullptr;
    if (given == nullptr) return {};
    return fail(Code::OptionDoesNotApply, "{} is for images that generate text", given)
        .withRemedy("give the language model's --tokenizer");
  }
  image.plan.text = flags.text;
  if (flags.tokens > 0) image.plan.text->tokens = flags.tokens;
  const bool other = image.plan.semihosted || image.plan.programByFile || !flags.input.empty() ||
                     !flags.expected.empty() || !image.plan.method.empty();
  if (!other) return {};
  return fail(Code::OptionDoesNotApply,
              "with --tokenizer, the image accepts prompts and runs the methods of a language model")
      .withRemedy("leave out --io, --program, --input, --expected and --method");
}

/// For the image: flash holds its code, constants, initial values and the program; all on-chip memories
/// except that of the code count as static RAM.
pipeline::Measured measuredOf(const firmware::Image& image, const FirmwareFlags& flags) {
  const firmware::Plan& plan = image.plan;
  int64_t program = 0, blocks = 0;
  for (const firmware::Placement& placement : plan.placements) {
    if (placement.what == "program" && !plan.programByFile) program = placement.bytes;
    if (placement.region != plan.platform->bulk) blocks += placement.bytes;
  }
  pipeline::Measured measured;
  measured.subject = flags.image.program.filename().string();
  measured.flash = image.sizes.total.text + image.sizes.total.data + program;
  measured.sram = blocks + image.sizes.ramBytes();
  measured.sramParts = fmt::format("blocks {}, data, bss and stack {}", blocks, image.sizes.ramBytes());
  return measured;
}

Result<int> execute(FirmwareFlags flags) {
  firmware::ImageOptions& image = flags.image;
  image.plan.semihosted = flags.io == "semihosting";
  image.plan.programByFile = flags.program == "semihosting";
  image.source.poll = flags.wait == "poll";
  // The program that an image reads may come from anyone.
  if (image.plan.programByFile) image.source.validate = true;
  image.source.timeoutMilliseconds = static_cast<uint32_t>(flags.timeout * 1000);
  if (image.plan.programByFile && !image.plan.semihosted) {
    return fail(Code::OptionDoesNotApply,
                "a program that is read by semihosting needs a command line that names it")
        .withRemedy("add --io semihosting");
  }
  if (image.plan.semihosted && (!flags.input.empty() || !flags.expected.empty())) {
    return fail(Code::OptionDoesNotApply,
                "--input and --expected are linked into the image, but --io semihosting reads files")
        .withRemedy("leave out one of them");
  }
  CARINA_RETURN_IF_ERROR(checkText(flags, image));
  CARINA_RETURN_IF_ERROR(checkOutputs({flags.output}));
  CARINA_RETURN_IF_ERROR(checkResults({flags.json, flags.gates.junit}));
  if (!flags.input.empty()) {
    CARINA_TRY(image.plan.inputs, readArrays(flags.input));
    image.plan.inputsFile = flags.input.string();
  }
  if (!flags.expected.empty()) {
    CARINA_TRY(image.plan.expected, readArrays(flags.expected));
    image.plan.expectedFile = flags.expected.string();
  }
  CARINA_TRY(const firmware::Image built, firmware::buildImage(image));
  CARINA_RETURN_IF_ERROR(flags.gates.check(measuredOf(built, flags)));
  ResultFiles results;
  if (!flags.gates.missed()) CARINA_RETURN_IF_ERROR(results.files().add(flags.output, built.elf));
  CARINA_RETURN_IF_ERROR(results.add(flags.json, report::imageJson(built)));
  CARINA_RETURN_IF_ERROR(flags.gates.addJunit("carina firmware", results));
  CARINA_RETURN_IF_ERROR(results.commit());
  for (const std::string& note : built.plan.notes) fmt::print(stderr, "carina: note: {}\n", note);
  results.print(report::imageText(built, flags.gates.missed() ? "(not written)" : flags.output));
  return flags.gates.finish(0);
}

}  // namespace

void addFirmware(CommandLine& line, Run& run) {
  auto flags = std::make_shared<FirmwareFlags>();
  firmware::ImageOptions& image = flags->image;
  Command command = line.add("firmware", "Build a bare-metal image for one program");
  command.option("FILE", image.program, "Program: .pte").transform(inputFile()).required();
  command
      .option("--platform", image.plan.platform, "corstone-300 (Ethos-U55, U65) or corstone-320 (Ethos-U85)")
      .required();
  command.option("-o,--output", flags->output, "Where the image goes (.elf)").required();
  command
      .option("--npu-macs", image.plan.npuMacs,
              "MACs per cycle of the platform's NPU; default: the program's")
      .check(positive());
  command.option("--core", image.source.core,
                 "cortex-m33 (default; runs on M33, M55, M85 and emulators) or cortex-m55 (MVE)");
  command.option("--method", image.plan.method, "Method of the program; default: the first");
  command
      .option("--input", flags->input,
              "Inputs to link in (.npz): in0, in1, ...; an additional leading axis holds samples")
      .transform(inputFile());
  command.option("--expected", flags->expected, "Outputs to compare with (.npz): out0, out1, ...")
      .transform(inputFile());
  command
      .option("--tolerance", image.source.tolerance,
              "Absolute tolerance of float outputs (default 0: equal bytes)")
      .check(nonNegative());
  command.option("--print", image.source.printed,
                 "Elements of each output that the image prints (default 1000)");
  command
      .option("--tokenizer", flags->text.tokenizer,
              "Tokenizer of a language model (tokenizer.json); the image then generates text for prompts "
              "that UART 0 receives")
      .transform(inputFile());
  command.option("--prompt", flags->text.prompt, "The only prompt, linked into the image; with --tokenizer");
  command
      .option("--tokens", flags->tokens,
              "Maximum number of tokens to generate per prompt (default 64); with --tokenizer")
      .check(range(int64_t{1}, int64_t{1} << 20));
  command
      .option("--context", flags->text.context,
              "Number of tokens that fit in the model's state; default: the program's; with --tokenizer")
      .check(range(int64_t{1}, int64_t{1} << 20));
  command
      .option("--io", flags->io, "linked (default), or semihosting: files named on the image's command line")
      .check(oneOf({"linked", "semihosting"}));
  command.option("--program", flags->program, "linked (default), or semihosting: the image reads the program")
      .check(oneOf({"linked", "semihosting"}));
  command.option("--wait", flags->wait, "How the image waits for the NPU: interrupt (default) or poll")
      .check(oneOf({"interrupt", "poll"}));
  command
      .option("--timeout", flags->timeout,
              "Seconds that one NPU job may take on the device (default 60; 0: no limit)")
      .check(range(0.0, 86400.0));
  command.flag("--validate-commands", image.source.validate,
               "Check before each NPU job that its commands access only their own memory; always on with "
               "--program semihosting");
  command
      .option(
          "--stack", image.plan.stackBytes,
          fmt::format("Bytes of stack (default {}; {} with CPU kernels other than quantize and dequantize)",
                      firmware::kStack, firmware::kStackOfKernels))
      .transform(byteCount())
      .check(range(int64_t{1024}, int64_t{1} << 20));
  command.option("--keep", image.keep, "Folder for the generated sources, the linker script and its map");
  addResultOption(command, "--json", flags->json, "Sizes and placement as JSON");
  command.option("--kit", image.kit,
                 "Firmware kit; default: CARINA_FIRMWARE, or share/carina/firmware next to bin");
  command.option("--compiler", image.compiler, "Cross compiler (default arm-none-eabi-g++)");
  flags->gates.declare(command, {GateOptions::Gate::Sram, GateOptions::Gate::Flash});
  command.callback([flags, &run] {
    flags->gates.checkUsage();
    run = [flags] { return exitStatus(execute(*flags), flags->image.program); };
  });
}

}  // namespace carina::app
