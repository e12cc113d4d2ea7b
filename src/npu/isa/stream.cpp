// SPDX-License-Identifier: Apache-2.0
// Reading command streams: opcode lookup, fields, traversal of a stream.
#include "npu/isa/stream.hpp"

#include <memory>

namespace carina::npu {
namespace {

constexpr size_t kOpcodes = 1024;

/// Commands by opcode, one-word then two-word.
struct OpcodeIndex {
  std::array<const isa::Command*, 2 * kOpcodes> commands{};
  explicit OpcodeIndex(const isa::Architecture& architecture) {
    for (uint16_t n = 0; n < architecture.commandCount; ++n) {
      const isa::Command& command = architecture.commands[n];
      commands[command.opcode + (command.twoWords ? kOpcodes : 0)] = &command;
    }
  }
};

const OpcodeIndex& opcodeIndex(Family family) {
  static const OpcodeIndex u55(isa::u55::kArchitecture), u65(isa::u65::kArchitecture),
      u85(isa::u85::kArchitecture);
  return family == Family::U55 ? u55 : family == Family::U65 ? u65 : u85;
}

constexpr uint64_t lowBits(unsigned count) {
  return (uint64_t{1} << count) - 1;
}

unsigned fieldWidth(const isa::Field& field) {
  return unsigned{field.parts[0].width} + field.parts[1].width;
}

}  // namespace

const isa::Architecture& architecture(Family family) {
  switch (family) {
    case Family::U55:
      return isa::u55::kArchitecture;
    case Family::U65:
      return isa::u65::kArchitecture;
    case Family::U85:
      return isa::u85::kArchitecture;
  }
  CARINA_UNREACHABLE("all families are covered");
}

const isa::Command* findCommand(Family family, bool twoWords, uint32_t opcode) {
  return opcode < kOpcodes ? opcodeIndex(family).commands[opcode + (twoWords ? kOpcodes : 0)] : nullptr;
}

const isa::Command* findCommand(Family family, std::string_view name) {
  const isa::Architecture& arch = architecture(family);
  for (uint16_t n = 0; n < arch.commandCount; ++n) {
    if (name == arch.commands[n].name) return &arch.commands[n];
  }
  return nullptr;
}

int64_t fieldValue(const isa::Field& field, uint64_t bits) {
  uint64_t value = bits >> field.parts[0].lsb & lowBits(field.parts[0].width);
  if (field.parts[1].width > 0) {
    value |= (bits >> field.parts[1].lsb & lowBits(field.parts[1].width)) << field.parts[0].width;
  }
  const unsigned width = fieldWidth(field);
  auto logical = static_cast<int64_t>(value);
  if (field.sign != isa::Sign::None && (value >> (width - 1) & 1) != 0) logical -= int64_t{1} << width;
  return logical + field.bias;
}

uint64_t fieldMask(const isa::Command& command) {
  uint64_t mask = 0;
  for (uint8_t n = 0; n < command.fieldCount; ++n) {
    for (const isa::FieldPart& part : command.fields[n].parts) mask |= lowBits(part.width) << part.lsb;
  }
  return mask;
}

Status setField(const isa::Field& field, int64_t value, uint64_t& bits) {
  const unsigned width = fieldWidth(field);
  const int64_t low = field.sign == isa::Sign::None ? 0 : -(int64_t{1} << (width - 1));
  const int64_t high = field.sign == isa::Sign::Signed ? (int64_t{1} << (width - 1)) - 1
                                                       : static_cast<int64_t>(lowBits(width));
  const int64_t stored = value - field.bias;
  if (stored < low || stored > high) {
    return fail(Code::InvalidStream, "{} = {} is outside {}..{}", field.name, value, low + field.bias,
                high + field.bias);
  }
  auto raw = static_cast<uint64_t>(stored);
  for (const isa::FieldPart& part : field.parts) {
    bits &= ~(lowBits(part.width) << part.lsb);
    bits |= (raw & lowBits(part.width)) << part.lsb;
    raw >>= part.width;
  }
  return {};
}

Result<Command> readCommand(std::span<const uint32_t> words, size_t index, Family family) {
  CARINA_CHECK(index < words.size(), "a command is read inside the stream");
  const uint32_t word = words[index];
  const uint32_t control = word >> 14 & 3u;
  const auto place = [&] { return fmt::format("command stream, offset {:#x}", index * 4); };
  if ((word >> 10 & 0xfu) != 0 || control > 1) {
    return fail(Code::InvalidStream, "word {:#010x} is not a command: reserved bits are set", word)
        .at(place());
  }
  const bool twoWords = control == 1;
  const isa::Command* info = findCommand(family, twoWords, word & 0x3ffu);
  if (info == nullptr) {
    return fail(Code::InvalidStream, "word {:#010x}: opcode {:#x} does not exist on {}", word, word & 0x3ffu,
                familyName(family))
        .at(place());
  }
  if (twoWords && index + 1 >= words.size())
    return fail(Code::InvalidStream, "{} lacks its second word", info->name).at(place());
  Command command;
  command.info = info;
  command.offset = static_cast<uint32_t>(index * 4);
  command.parameter = static_cast<uint16_t>(word >> 16);
  command.payload = twoWords ? words[index + 1] : 0;
  return command;
}

Result<std::vector<Command>> readStream(std::span<const uint32_t> words, Family family) {
  std::vector<Command> commands;
  commands.reserve(words.size());
  for (size_t index = 0; index < words.size();) {
    CARINA_TRY(const Command command, readCommand(words, index, family));
    index += command.words();
    commands.push_back(command);
  }
  return commands;
}

Result<std::vector<PlacedOperation>> decodeStream(std::span<const uint32_t> words, const Target& target) {
  std::vector<PlacedOperation> operations;
  RegisterState state;
  for (size_t index = 0; index < words.size();) {
    CARINA_TRY(const Command command, readCommand(words, index, target.family));
    index += command.words();
    if (!command.info->operation) {
      state.apply(command);
      continue;
    }
    CARINA_TRY(const Operation operation, decodeOperation(state, command, target));
    operations.push_back({operation, command.offset});
  }
  return operations;
}

}  // namespace carina::npu
