// SPDX-License-Identifier: Apache-2.0
// Command streams: words to named commands, commands to register state, register state to npu::Operation and
// back. Reference: ethosu-command-stream 1 to 8.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "npu/isa/isa.hpp"
#include "npu/isa/operation.hpp"
#include "npu/targets/target.hpp"

namespace carina::npu {

const isa::Architecture& architecture(Family family);

/// One command of a stream.
struct Command {
  const isa::Command* info = nullptr;
  uint32_t offset = 0;     // bytes from the start of the stream
  uint16_t parameter = 0;  // word 0, upper half
  uint32_t payload = 0;    // word 1 of two-word commands

  uint32_t words() const { return info->twoWords ? 2 : 1; }
  uint32_t word0() const {
    return uint32_t{info->opcode} | (info->twoWords ? 1u << 14 : 0u) | uint32_t{parameter} << 16;
  }
  /// Word 0 with word 1 above it: the bits to which isa::Field positions refer.
  uint64_t bits() const { return word0() | uint64_t{payload} << 32; }
  bool is(isa::Cmd0 command) const {
    return !info->twoWords && info->opcode == static_cast<uint16_t>(command);
  }
  bool is(isa::Cmd1 command) const {
    return info->twoWords && info->opcode == static_cast<uint16_t>(command);
  }
};

/// Command with this opcode, or null.
const isa::Command* findCommand(Family family, bool twoWords, uint32_t opcode);
const isa::Command* findCommand(Family family, std::string_view name);

/// Logical value of a field: parts concatenated, bias added; sign-extended if the field is signed or takes
/// its sign from its tensor.
int64_t fieldValue(const isa::Field& field, uint64_t bits);
/// The bits that a command's fields cover, excluding opcode and control.
uint64_t fieldMask(const isa::Command& command);
/// Stores a logical value; fails if it does not fit the field.
Status setField(const isa::Field& field, int64_t value, uint64_t& bits);

/// The command at word `index`. Errors (unknown opcode, reserved bits in the first halfword, missing second
/// word) name the byte offset.
Result<Command> readCommand(std::span<const uint32_t> words, size_t index, Family family);
/// All commands in order, up to the end of the words (not following branches).
Result<std::vector<Command>> readStream(std::span<const uint32_t> words, Family family);

/// The state established by set-commands: every register keeps its value until it is set again. All are
/// initially 0.
class RegisterState {
 public:
  void apply(const Command& command) {
    const size_t slot = slotOf(command.info->twoWords, command.info->opcode);
    values_[slot] = uint64_t{command.parameter} << 32 | command.payload;
    set_[slot] = true;
  }
  uint16_t get(isa::Cmd0 command) const { return static_cast<uint16_t>(values_[slotOf(command)] >> 32); }
  /// Parameter of a two-word command.
  uint16_t parameter(isa::Cmd1 command) const {
    return static_cast<uint16_t>(values_[slotOf(command)] >> 32);
  }
  uint32_t payload(isa::Cmd1 command) const { return static_cast<uint32_t>(values_[slotOf(command)]); }
  bool isSet(isa::Cmd0 command) const { return set_[slotOf(command)]; }
  bool isSet(isa::Cmd1 command) const { return set_[slotOf(command)]; }
  void clear() {
    values_ = {};
    set_.reset();
  }

 private:
  // Opcodes of set-commands: one-word 0x100..0x1ff, two-word 0x000..0x0ff.
  static size_t slotOf(bool twoWords, uint32_t opcode) { return (opcode & 0xffu) | (twoWords ? 0x100u : 0u); }
  static size_t slotOf(isa::Cmd0 command) { return slotOf(false, static_cast<uint32_t>(command)); }
  static size_t slotOf(isa::Cmd1 command) { return slotOf(true, static_cast<uint32_t>(command)); }
  friend class StreamWriter;

  std::array<uint64_t, 512> values_{};
  std::bitset<512> set_;
};

/// The operation that operation command `command` performs in state `state`. Only the fields that it reads
/// are filled in; the rest keep their defaults. Fails on undefined values (modes, table functions). `unset`
/// collects the names of registers that the operation reads but no command has set.
Result<Operation> decodeOperation(const RegisterState& state, const Command& command, const Target& target,
                                  std::vector<std::string_view>* unset = nullptr);

/// An operation and the offset of its command in the stream (bytes).
struct PlacedOperation {
  Operation operation;
  uint32_t offset = 0;
};
/// All operations of a stream in order, including branches, which are not followed.
Result<std::vector<PlacedOperation>> decodeStream(std::span<const uint32_t> words, const Target& target);

/// Builds a command stream. A register is written only when its value changes.
class StreamWriter {
 public:
  explicit StreamWriter(const Target& target) : target_(target) {}

  /// Writes registers, then the operation's command. Fails if a value does not fit its field or the target
  /// lacks the feature.
  Status add(const Operation& operation);
  /// Forgets the values of the registers; required at branch targets. Adding a Branch does so implicitly.
  void forgetState();

  /// Byte offset of the next command, for branch targets.
  uint32_t position() const { return static_cast<uint32_t>(words_.size() * 4); }
  /// Sets the target of the branch whose command is at byte offset `branch`.
  void patchBranch(uint32_t branch, uint32_t target);
  std::span<const uint32_t> words() const { return words_; }
  std::vector<uint32_t> take() && { return std::move(words_); }

 private:
  friend class OperationEncoder;
  void set(isa::Cmd0 command, uint16_t parameter);
  void set(isa::Cmd1 command, uint16_t parameter, uint32_t payload);
  void emit(isa::Cmd0 command, uint16_t parameter);

  const Target& target_;
  std::vector<uint32_t> words_;
  RegisterState shadow_;
};

}  // namespace carina::npu
