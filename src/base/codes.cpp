// SPDX-License-Identifier: Apache-2.0
// The explanations (codes.hpp): a row for each kind, in the order of ids.
#include "base/codes.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

namespace carina {
namespace {

constexpr CodeInfo kCodes[] = {
    // Files
    {Code::CannotRead, "an input cannot be read",
     "The operating system refused to open or read the file: it does not exist, is a folder, is not "
     "readable, or changed while it was being read. The message ends with the system's reason."},
    {Code::CannotWrite, "an output cannot be written",
     "The folder does not exist, the disk is full, or the name belongs to something that is not a regular "
     "file. Outputs are written completely or not at all: no partial file remains, and an existing file "
     "keeps its contents."},
    {Code::WrongKind, "a file is of the wrong kind",
     "The file was not recognised, or is of a kind that this command does not accept: `run` takes programs "
     "and not networks, for example. `carina inspect FILE` says what a file is."},
    {Code::Damaged, "a file is damaged",
     "Offsets, sizes or checksums in the file contradict each other, or it ends too early. The place names "
     "the part of the file. Copy or export the file again. If your own tool wrote it, the message names the "
     "field to look at."},
    {Code::Excessive, "a file asks for more than its size can justify",
     "Readers, the program loader and the NPU model limit memory and work to amounts that are linear in the "
     "size of the file, so that a small file cannot exhaust the machine. docs/reliability.md lists the "
     "limits."},
    {Code::UnknownVersion, "a file uses an unknown version or feature",
     "The file appears to be well formed, but was written by a newer tool or uses a part of its format that "
     "Carina does not read. Export it with the version that the message names."},
    {Code::NotRepresentable, "the output format cannot represent this",
     "Each format has limits: a .npy file holds one array, a bare command stream one NPU part, TOSA only its "
     "own floating-point types. Choose another format with the extension of the output file."},
    // Command line and configuration
    {Code::BadOption, "an option has an invalid value",
     "The value does not have the form that the option takes. `carina COMMAND --help` shows the form."},
    {Code::OptionDoesNotApply, "an option does not apply here",
     "The option is valid, but has no meaning for this input or together with another option. It is refused "
     "rather than ignored, so that no one relies on an effect that it does not have."},
    {Code::UnknownName, "a name is unknown",
     "No target, board, memory mode, operator, pass or similar has this name. The message suggests the "
     "nearest match, if there is one; `carina targets` lists targets with their memories."},
    {Code::BadConfiguration, "a configuration file is not valid",
     "A memory configuration (--config) or a file of quantization rules (--quantize-config) has a line or a "
     "value that is not understood. docs/commands/compile.md and docs/quantization.md describe both."},
    // Networks
    {Code::InvalidOperator, "an operator's operands and arguments do not fit together",
     "Shapes, dimensions or arguments contradict the definition of the operator, as they would in PyTorch. "
     "The place names the node, its module and the line of Python that it comes from."},
    {Code::WrongElementType, "an operator is not defined for an element type",
     "Convert the tensor in the network, as PyTorch would require, or leave the operator out of the exported "
     "part."},
    {Code::DependsOnValues, "a shape or a choice depends on values known only at run time",
     "Programs have static shapes. Masks as indices, unbounded symbolic sizes and similar have to become "
     "operators whose result has a fixed shape, such as torch.where."},
    {Code::TrainingOnly, "an operator is in training mode",
     "Dropout and random slopes draw new numbers for every run. Call model.eval() before "
     "torch.export.export."},
    {Code::UnknownOperator, "an operator is unknown",
     "docs/operators.md lists the operators. Custom operators have to be decomposed before export, for "
     "example with run_decompositions(), or stay outside the exported part."},
    {Code::InvalidGraph, "a graph is inconsistent",
     "Values are used before they are defined, types of results do not match the operands, or attributes are "
     "missing. If the graph comes from a file, its writer is at fault; if it comes from a pass, that pass "
     "is, and the message names it."},
    {Code::BadText, "text cannot be parsed",
     "The place gives line and column. docs/ir.md describes graphs as text, docs/commands/assemble.md "
     "command streams."},
    {Code::TooLarge, "a tensor or network exceeds a limit",
     "Tensors have up to 2^31-1 elements, networks a limited number of operators while they are rewritten; "
     "docs/reliability.md lists the limits."},
    {Code::NoResult, "an operator has no result for these values",
     "An index is out of range, an integer is divided by zero, or a sum or product overflows. The values "
     "come from the "
     "inputs or samples that were given."},
    {Code::UnsupportedForm, "a tensor or argument has a form that is not supported",
     "The operator is supported, but not with this argument: a sparse layout, a mode, a view of shared "
     "storage. The remedy names a supported form, if there is one."},
    // Quantization
    {Code::NotQuantized, "a value is not quantized",
     "NPUs compute in integers. Quantize with --quantize and calibration data, or put quantize nodes before "
     "and after the operator if the network is already quantized."},
    {Code::UnusableQuantization, "scales or zero points are not usable",
     "The quantization parameters have no exact integer form here: scales that are too far apart, a zero "
     "point where 16-bit codes are symmetric, scales per channel where one is needed. docs/quantization.md "
     "says what each operator supports."},
    {Code::BadCalibration, "calibration data is missing or does not fit",
     "Quantization needs samples with the shapes and ranges of the network's real inputs, one array per "
     "input (--calibrate FILE.npz)."},
    // The NPU
    {Code::NoIntegerForm, "an operator cannot be mapped to the NPU",
     "No combination of the NPU's operations computes it. The operator stays on the CPU unless --require-npu "
     "is given; docs/operators.md lists what each target supports."},
    {Code::HardwareLimit, "an operand exceeds what the hardware supports",
     "A kernel, stride, dilation, sum or number of pieces exceeds the registers or accumulators, even after "
     "splitting."},
    {Code::MissingCapability, "this NPU does not have the operation",
     "Another target has it; the remedy names one."},
    {Code::NeedsWholeNpu, "the command needs a network that runs on one NPU part",
     "The output or command can hold only what one NPU computes, and part of the network is left to the CPU, "
     "or the target is a CPU. `carina ops` lists which operators are left and why."},
    {Code::DoesNotFit, "something does not fit into memory",
     "The message names the memory, what is needed and what is available. --optimize size, --arena-size and "
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
     "overlap, or similar. Each finding names the command. docs/npu-model.md describes what is checked."},
    {Code::NpuFault, "the NPU stopped",
     "The model met a command that it cannot execute, an access outside of mapped memory or a damaged weight "
     "stream; hardware reports the same in its STATUS register."},
    {Code::OtherNpu, "the program is for another NPU",
     "A command stream is valid for one variant only. Compile for the NPU at hand, or choose the target that "
     "the program was compiled for."},
    // Programs
    {Code::InvalidProgram, "a program is not consistent",
     "Values, instructions or memory plans of the .pte contradict each other. A loader on the device would "
     "refuse it or read out of bounds."},
    {Code::MissingKernel, "the runtime has no kernel for an operator",
     "The operator is left to the CPU and no kernel computes it, or not with these types. docs/operators.md "
     "lists kernels."},
    {Code::InputMismatch, "inputs do not match what is expected",
     "Names, number, shapes or element types differ from the program's inputs; `carina check PROGRAM` lists "
     "them."},
    {Code::UnsupportedProgram, "a program cannot be used here",
     "The program is valid, but uses something that this command or this runtime does not support; the "
     "message names it."},
    {Code::ResultsDiffer, "results differ",
     "Two executions that should agree do not, or outputs differ from the expected ones. `carina verify` "
     "names the first operation that differs."},
    // Firmware, platforms and the host
    {Code::ToolFailed, "a tool or system service failed",
     "The cross compiler, a socket, a pipe or the allocation of host memory failed; the message contains the "
     "tool's own output."},
    {Code::InvalidImage, "a firmware image cannot be loaded",
     "The file is not an executable for a Cortex-M, or its segments and vector table do not match the "
     "board."},
    {Code::GuestFault, "firmware ran into a fault that it cannot handle",
     "The core is locked up: a fault happened while the hard fault handler ran, or the stack or the vector "
     "table lies outside of memory. The address in the message is the program counter."},
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
