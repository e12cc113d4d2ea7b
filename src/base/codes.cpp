// SPDX-License-Identifier: Apache-2.0
// The explanations (codes.hpp), a row for each kind in the order of their ids.
#include "base/codes.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

namespace carina {
namespace {

constexpr CodeInfo kCodes[] = {
    // Files
    {Code::CannotRead, "an input cannot be read",
     "The operating system refused to open or read the file: it does not exist, is a folder, may not be "
     "read, or changed while it was being read. The message ends with the system's reason."},
    {Code::CannotWrite, "an output cannot be written",
     "The folder does not exist, the disk is full, or the name belongs to something that is no regular file. "
     "Outputs appear whole or not at all: nothing half-written is left behind, and a file that was there "
     "keeps its contents."},
    {Code::WrongKind, "a file of another kind is needed",
     "The file was recognised, or not recognised at all, but this command takes something else: `run` takes "
     "programs and not networks, for example. `carina inspect FILE` says what a file is."},
    {Code::Damaged, "a file is damaged",
     "Offsets, sizes or checksums in the file contradict each other, or it ends too early. The place names "
     "the part of the file. Copy or export the file again; if the writer is yours, the message says which "
     "field to look at."},
    {Code::Excessive, "a file asks for more than its size can justify",
     "Readers, the program loader and the NPU model limit memory and work to amounts that are linear in the "
     "size of the file, so that a small file cannot occupy the machine. docs/reliability.md lists the "
     "limits."},
    {Code::UnknownVersion, "a file uses a version or feature that is not known here",
     "The file is well formed, as far as one can tell, but was written by a newer tool, or uses a part of "
     "its format that Carina does not read. Export it with the version that the message names."},
    {Code::NotRepresentable, "the output format cannot hold this",
     "Each format has limits: a .npy file holds one array, a bare command stream one NPU part, TOSA no "
     "floating-point types beyond its own. Choose another format by the ending of the output's name."},
    // Command line and configuration
    {Code::BadOption, "an option has an impossible value",
     "The value does not have the form that the option takes. `carina COMMAND --help` shows the form."},
    {Code::OptionDoesNotApply, "an option does not apply here",
     "The option is valid, but has no meaning for this input or together with another option. It is refused "
     "rather than ignored, so that no one relies on an effect that it does not have."},
    {Code::UnknownName, "a name is not known",
     "No target, board, memory mode, operator, pass or similar has this name. The message offers the nearest "
     "match where there is one; `carina targets` lists targets with their memories."},
    {Code::BadConfiguration, "a configuration file is not valid",
     "A memory configuration (--config) or a file of quantization rules (--quantize-config) has a line or a "
     "value that is not understood. docs/commands/compile.md and docs/quantization.md describe both."},
    // Networks
    {Code::InvalidOperator, "an operator's operands and arguments do not fit together",
     "Shapes, dimensions or arguments contradict the definition of the operator, as they would in PyTorch. "
     "The place names the node, its module and the line of Python that it comes from."},
    {Code::WrongElementType, "an operator is not defined for an element type",
     "Convert the tensor in the network, as PyTorch would need it, or leave the operator out of the exported "
     "part."},
    {Code::DependsOnValues, "a shape or a choice depends on values known only at run time",
     "Programs have static shapes. Masks as indices, unbounded symbolic sizes and similar have to become "
     "operators whose result has one shape, such as torch.where."},
    {Code::TrainingOnly, "an operator behaves as in training",
     "Dropout and random slopes draw new numbers for every run. Call model.eval() before "
     "torch.export.export."},
    {Code::UnknownOperator, "an operator is not known",
     "docs/operators.md lists the operators. Custom operators have to be decomposed before the export, for "
     "example with run_decompositions(), or stay outside of the exported part."},
    {Code::InvalidGraph, "a graph contradicts itself",
     "Values are used before they are defined, results have other types than the operands give, or "
     "attributes are missing. For a graph of a file, its writer is at fault; for one behind a pass, that "
     "pass is, and the message says which."},
    {Code::BadText, "a text cannot be parsed",
     "The place holds line and column. docs/ir.md describes graphs as text, docs/commands/assemble.md "
     "command streams."},
    {Code::TooLarge, "a tensor or network exceeds a limit",
     "Tensors have up to 2^31-1 elements, networks a limited number of operators while they are rewritten; "
     "docs/reliability.md lists the limits."},
    {Code::NoResult, "an operator has no result for these values",
     "An index lies outside of its tensor, an integer is divided by zero, or a sum overflows. The values are "
     "those of the inputs or samples that were given."},
    {Code::UnsupportedForm, "a tensor or argument has a form that is not supported",
     "The operator is known, but not with this argument: a sparse layout, a mode, a view of shared storage. "
     "The remedy names a form that is supported where there is one."},
    // Quantization
    {Code::NotQuantized, "a value is not quantized",
     "NPUs compute in integers. Quantize with --quantize and calibration data, or put a quantize node in "
     "front of and behind the operator when the network comes quantized."},
    {Code::UnusableQuantization, "scales or zero points cannot be computed with",
     "The quantization parameters have no exact integer form here: scales that are too far apart, a zero "
     "point where 16-bit codes are symmetric, scales per channel where one is needed. docs/quantization.md "
     "says what each operator takes."},
    {Code::BadCalibration, "calibration data is missing or does not fit",
     "Quantization needs samples with the shapes and ranges of the network's real inputs, one array per "
     "input (--calibrate FILE.npz)."},
    // The NPU
    {Code::NoIntegerForm, "an operator has no form on the NPU",
     "There is no combination of the NPU's operations that computes it. The operator stays on the CPU unless "
     "--require-npu is given; docs/operators.md lists what each target takes."},
    {Code::HardwareLimit, "an operand exceeds what the hardware takes",
     "A kernel, stride, dilation, sum or number of pieces is larger than registers and accumulators hold, "
     "even after splitting."},
    {Code::MissingCapability, "this NPU does not have the operation",
     "Another target has it; the remedy names one."},
    {Code::NeedsWholeNpu, "the command needs a network that runs on one NPU part",
     "The output or command can hold only what one NPU computes, and part of the network is left to the CPU, "
     "or the target is a CPU. `carina ops` says which operators are left and why."},
    {Code::DoesNotFit, "something does not fit the memory",
     "The message names the memory, what is needed and what there is. --optimize size, --arena-size and "
     "other memory modes trade cycles for memory."},
    {Code::OnRequest, "an operator is kept off the NPU on request",
     "--cpu-ops, --cpu-names, --cpu-modules or a rule of the quantization file leaves it to the CPU."},
    // Command streams and weights
    {Code::InvalidStream, "a command stream is not valid",
     "A command, field or combination does not exist on the NPU, or a container around the stream is not "
     "consistent."},
    {Code::InvalidWeights, "weights or scales cannot be encoded or decoded",
     "A weight stream is damaged, or weights, biases and scales exceed the fields of the hardware's "
     "formats."},
    {Code::Findings, "a command stream has findings",
     "The checker found accesses without a wait between them, tables that were never loaded, maps that "
     "overlap, or similar. Each finding names the command. docs/npu-model.md says what is checked."},
    {Code::NpuFault, "the NPU stopped",
     "The model met a command that it cannot execute, an access outside of mapped memory or a damaged weight "
     "stream; hardware reports the same in its STATUS register."},
    {Code::OtherNpu, "the program is for another NPU",
     "Command streams hold for one variant. Compile for the NPU at hand, or choose the target that the "
     "program was compiled for."},
    // Programs
    {Code::InvalidProgram, "a program is not consistent",
     "Values, instructions or memory plans of the .pte contradict each other. A loader on the device would "
     "refuse it or read out of bounds."},
    {Code::MissingKernel, "the runtime has no kernel for an operator",
     "The operator is left to the CPU and no kernel computes it, or not with these types. docs/operators.md "
     "lists kernels."},
    {Code::InputMismatch, "the inputs given are not those that are taken",
     "Names, number, shapes or element types differ from the program's inputs; `carina check PROGRAM` lists "
     "them."},
    {Code::UnsupportedProgram, "a program cannot be used here",
     "The program is valid, but uses something that this command or this runtime does not support; the "
     "message names it."},
    {Code::ResultsDiffer, "results differ",
     "Two executions that should agree do not, or outputs are not the expected ones. `carina verify` names "
     "the first operation that differs."},
    // Firmware, platforms and the host
    {Code::ToolFailed, "a tool or system service failed",
     "The cross compiler, a socket, a pipe or the allocation of host memory failed; the message holds the "
     "tool's own words."},
    {Code::InvalidImage, "a firmware image cannot be loaded",
     "The file is no executable for a Cortex-M, or its segments and vector table do not match the board."},
    {Code::GuestFault, "firmware ran into a fault that it cannot handle",
     "The core is locked up: a fault happened while the hard fault handler ran, or the stack or the vector "
     "table lies where no memory is. The address in the message is the program counter."},
    {Code::OutOfMemory, "the machine ran out of memory",
     "Carina needs more memory for this network than the machine has free. Close other programs, or compile "
     "on a larger machine; the target does not matter."},
};

}  // namespace

std::span<const CodeInfo> allCodes() {
  return kCodes;
}

std::string codeId(Code code) {
  return code == Code::None ? std::string() : fmt::format("E{:04}", static_cast<int>(code));
}

const CodeInfo* findCode(std::string_view id) {
  const auto sameLetter = [](char a, char b) {
    return std::toupper(static_cast<unsigned char>(a)) == std::toupper(static_cast<unsigned char>(b));
  };
  for (const CodeInfo& info : kCodes) {
    const std::string known = codeId(info.code);
    if (std::equal(known.begin(), known.end(), id.begin(), id.end(), sameLetter)) return &info;
  }
  return nullptr;
}

}  // namespace carina
