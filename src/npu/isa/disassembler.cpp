// SPDX-License-Identifier: Apache-2.0
// Command streams and payloads to text.
#include "npu/isa/disassembler.hpp"

#include <fmt/format.h>

#include "base/pairs.hpp"
#include "format/ethosu_payload.hpp"
#include "npu/isa/payload.hpp"
#include "npu/isa/stream.hpp"

namespace carina::npu {
namespace {

constexpr size_t kCommentColumn = 56;

constexpr std::pair<ElementType, std::string_view> kTypes[] = {
    {ElementType::Int8, "s8"},    {ElementType::UInt8, "u8"},  {ElementType::Int16, "s16"},
    {ElementType::UInt16, "u16"}, {ElementType::Int32, "s32"}, {ElementType::UInt32, "u32"},
    {ElementType::Int64, "s64"}};

std::string_view typeText(ElementType type) {
  return secondOf(kTypes, type).value_or("?");
}

std::string mapText(const FeatureMap& fm) {
  return fmt::format("{}x{}x{} {}", fm.height, fm.width, fm.depth, typeText(fm.type));
}

std::string_view poolText(PoolMode mode) {
  constexpr std::string_view kNames[] = {"max",  "average", "reduce_sum", "sum",
                                         "none", "min",     "argmax_x",   "argmax_y"};
  return kNames[static_cast<size_t>(mode)];
}

constexpr std::pair<ElementwiseMode, std::string_view> kElementwise[] = {
    {ElementwiseMode::Mul, "mul"},       {ElementwiseMode::Add, "add"},
    {ElementwiseMode::Sub, "sub"},       {ElementwiseMode::Min, "min"},
    {ElementwiseMode::Max, "max"},       {ElementwiseMode::LRelu, "lrelu"},
    {ElementwiseMode::Abs, "abs"},       {ElementwiseMode::Clz, "clz"},
    {ElementwiseMode::Shr, "shr"},       {ElementwiseMode::Shl, "shl"},
    {ElementwiseMode::Lsr, "lsr"},       {ElementwiseMode::Div, "div"},
    {ElementwiseMode::CmpEq, "cmp_eq"},  {ElementwiseMode::CmpNe, "cmp_ne"},
    {ElementwiseMode::CmpGe, "cmp_ge"},  {ElementwiseMode::CmpGt, "cmp_gt"},
    {ElementwiseMode::And, "and"},       {ElementwiseMode::Or, "or"},
    {ElementwiseMode::Xor, "xor"},       {ElementwiseMode::Not, "not"},
    {ElementwiseMode::AndNot, "and_not"}};

std::string_view elementwiseText(ElementwiseMode mode) {
  return secondOf(kElementwise, mode).value_or("?");
}

std::string describeKernel(const KernelOperation& op) {
  const Kernel& k = op.kernel;
  const auto window = [&] {
    std::string text = fmt::format("kernel {}x{} stride {}x{}", k.height, k.width, k.strideY, k.strideX);
    if (k.dilationY != 1 || k.dilationX != 1)
      text += fmt::format(" dilation {}x{}", k.dilationY, k.dilationX);
    return text;
  };
  switch (op.kind) {
    case OperationKind::Conv:
      return fmt::format("conv {} <- {}, {}", mapText(op.ofm), mapText(op.ifm), window());
    case OperationKind::Depthwise:
      return fmt::format("depthwise {} <- {}, {}", mapText(op.ofm), mapText(op.ifm), window());
    case OperationKind::Pool:
      return fmt::format("pool {} {} <- {}, {}", poolText(op.pool), mapText(op.ofm), mapText(op.ifm),
                         window());
    case OperationKind::Resize:
      return fmt::format("resize {} <- {}", mapText(op.ofm), mapText(op.ifm));
    case OperationKind::Elementwise:
      break;
  }
  std::string text =
      fmt::format("{} {} <- {}", elementwiseText(op.elementwise.mode), mapText(op.ofm), mapText(op.ifm));
  if (!op.ifm2) return text;
  if (op.elementwise.ifm2Broadcast.scalar) return text + fmt::format(", scalar {}", op.elementwise.scalar);
  return text + fmt::format(", {}", mapText(*op.ifm2));
}

std::string describeDma(const DmaOperation& dma) {
  const auto end = [](const DmaEnd& e) {
    return e.internal ? fmt::format("internal+{:#x}", e.address)
                      : fmt::format("region {}+{:#x}", e.region, e.address);
  };
  std::string text = fmt::format("{} bytes {} -> {}", dma.length, end(dma.source), end(dma.destination));
  if (dma.size0 != 1 || dma.size1 != 1) text = fmt::format("{} x {} x {}", dma.size1, dma.size0, text);
  if (dma.source.indexed) text += ", gather";
  if (dma.destination.indexed) text += ", scatter";
  return text;
}

ListedField listedField(const isa::Field& field, uint64_t bits) {
  ListedField listed{field.name, fieldValue(field, bits), {}, false};
  if (field.enumeration != nullptr) {
    for (uint8_t n = 0; n < field.enumeration->count; ++n) {
      if (field.enumeration->values[n].value == listed.value && listed.enumerator.empty())
        listed.enumerator = field.enumeration->values[n].name;
    }
  }
  listed.address = listed.name.find("addr") != listed.name.npos ||
                   listed.name.find("target") != listed.name.npos || listed.name == "user_reg";
  return listed;
}

std::string fieldText(const ListedField& field) {
  if (!field.enumerator.empty()) return fmt::format("{}={}", field.name, field.enumerator);
  return field.address ? fmt::format("{}={:#x}", field.name, static_cast<uint64_t>(field.value))
                       : fmt::format("{}={}", field.name, field.value);
}

std::string commandText(const ListedCommand& command) {
  std::string text;
  if (command.name.empty()) {
    text = ".word";
    for (const uint32_t word : command.words) text += fmt::format(" {:#010x}", word);
    return text;
  }
  text = command.name;
  for (const ListedField& field : command.fields) text += ' ' + fieldText(field);
  return text;
}

void addLine(std::string& out, const std::string& text, const std::string& comment) {
  out += text;
  if (!comment.empty()) {
    out.append(text.size() < kCommentColumn ? kCommentColumn - text.size() : 1, ' ');
    out += "; " + comment;
  }
  out += '\n';
}

std::string operationText(const RegisterState& state, const Command& command, const Target& target) {
  const Result<Operation> operation = decodeOperation(state, command, target);
  return operation.ok() ? describe(*operation) : "(" + operation.error().message() + ")";
}

/// Calls `use` with each line. `target` is only needed to describe operations; null: no descriptions.
template <typename Use>
void forEachLine(std::span<const uint32_t> words, Family family, const Target* target, const Use& use) {
  RegisterState state;
  for (size_t index = 0; index < words.size();) {
    const Result<Command> command = readCommand(words, index, family);
    ListedCommand line;
    line.offset = static_cast<uint32_t>(index * 4);
    if (!command.ok()) {
      line.words = {words[index]};
      use(line);
      ++index;
      continue;
    }
    const uint64_t reserved = command->bits() & ~uint64_t{0xffff} & ~fieldMask(*command->info);
    if (reserved != 0) {
      line.words = {words[index]};
      if (command->words() == 2) line.words.push_back(words[index + 1]);
      line.reserved = command->info->name;
    } else {
      line.name = command->info->name;
      for (uint8_t n = 0; n < command->info->fieldCount; ++n)
        line.fields.push_back(listedField(command->info->fields[n], command->bits()));
      if (command->info->operation && target != nullptr)
        line.operation = operationText(state, *command, *target);
    }
    use(line);
    if (!command->info->operation) state.apply(*command);
    index += command->words();
  }
}

/// `target` is used for comments only.
void addStream(std::string& out, std::span<const uint32_t> words, Family family, const Target* target,
               const DisassemblyOptions& options) {
  addLine(out, fmt::format(".stream {}", architecture(family).name), "");
  forEachLine(words, family, options.comments ? target : nullptr, [&](const ListedCommand& line) {
    std::string comment = options.comments ? fmt::format("{:#x}", line.offset) : std::string();
    if (options.comments && !line.reserved.empty())
      comment += fmt::format(" {} with reserved bits", line.reserved);
    if (!line.operation.empty()) comment += ' ' + line.operation;
    addLine(out, commandText(line), comment);
  });
}

/// The largest variant of a family: sufficient to decode operations of any variant for a comment.
const Target* someTarget(Family family) {
  const Target* found = nullptr;
  for (const Target& target : allTargets()) {
    if (target.family == family) found = &target;
  }
  return found;
}

uint32_t wordAt(ByteSpan bytes, size_t offset) {
  return format::loadWord(reinterpret_cast<const unsigned char*>(bytes.data()) + offset);
}

void addWords(std::string& out, ByteSpan bytes, size_t from, size_t to) {
  for (size_t at = from; at < to; at += 4) addLine(out, fmt::format(".word {:#010x}", wordAt(bytes, at)), "");
}

/// COP1 actions in [from, to), up to but not including the stream's own.
void addActions(std::string& out, ByteSpan bytes, size_t from, size_t to, const Target& target,
                bool comments) {
  using format::Cop1Action;
  for (size_t at = from; at < to;) {
    const uint32_t word = wordAt(bytes, at);
    if (word == format::kCop1OptimizerConfigWord && to - at >= 12) {
      addLine(out, fmt::format(".config {:#010x} {:#010x}", wordAt(bytes, at + 4), wordAt(bytes, at + 8)),
              comments ? std::string(target.name) : std::string());
      at += 12;
    } else if (word == format::cop1Word(Cop1Action::Nop, 0)) {
      addLine(out, ".nop", "");
      at += 4;
    } else {
      const size_t end =
          format::cop1Action(word) == Cop1Action::OptimizerConfig ? std::min(to, at + 12) : at + 4;
      addWords(out, bytes, at, end);
      at = end;
    }
  }
}

}  // namespace

std::string describe(const Operation& operation) {
  struct Visitor {
    std::string operator()(const KernelOperation& op) const { return describeKernel(op); }
    std::string operator()(const DmaOperation& dma) const { return describeDma(dma); }
    std::string operator()(const KernelWait& wait) const {
      return fmt::format("at most {} kernels pending", wait.outstanding);
    }
    std::string operator()(const DmaWait& wait) const {
      return fmt::format("at most {} DMAs pending", wait.outstanding);
    }
    std::string operator()(const Stop&) const { return "end"; }
    std::string operator()(const Irq&) const { return "interrupt"; }
    std::string operator()(const PmuMask& mask) const { return mask.count ? "PMU counts" : "PMU paused"; }
    std::string operator()(const Branch& b) const {
      return fmt::format("{} {:#x}", b.ifResult ? "if the result is set, to" : "to", b.target);
    }
  };
  return std::visit(Visitor{}, operation);
}

std::string disassembleStream(std::span<const uint32_t> words, Family family,
                              const DisassemblyOptions& options) {
  std::string out;
  addStream(out, words, family, someTarget(family), options);
  return out;
}

std::vector<ListedCommand> listStream(std::span<const uint32_t> words, Family family, const Target* target) {
  std::vector<ListedCommand> lines;
  forEachLine(words, family, target, [&](const ListedCommand& line) { lines.push_back(line); });
  return lines;
}

Result<std::string> disassemblePayload(ByteSpan bytes, const DisassemblyOptions& options) {
  CARINA_TRY(const Payload payload, readPayload(bytes));
  CARINA_TRY(const Target* const target, payloadTarget(payload));
  const size_t begin = payload.streamOffset, end = begin + payload.words.size() * 4;
  std::string out;
  addLine(out, payload.cop2 ? ".payload cop2" : ".payload cop1", "");
  if (payload.cop2)
    addWords(out, bytes, 4, begin);
  else
    addActions(out, bytes, 4, begin - 4, *target, options.comments);
  addStream(out, payload.words, target->family, target, options);
  addLine(out, ".end", "");
  if (payload.cop2)
    addWords(out, bytes, end, bytes.size());
  else
    addActions(out, bytes, end, bytes.size(), *target, options.comments);
  return out;
}

}  // namespace carina::npu
