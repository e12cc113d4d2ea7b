// SPDX-License-Identifier: Apache-2.0
// Assembly of text into command streams and payloads.
#include "npu/isa/assembler.hpp"

#include <charconv>
#include <optional>

#include "format/ethosu_payload.hpp"
#include "npu/isa/stream.hpp"

namespace carina::npu {
namespace {

std::vector<std::string_view> tokensOf(std::string_view line) {
  line = line.substr(0, line.find(';'));
  std::vector<std::string_view> tokens;
  constexpr std::string_view kBlank = " \t\r";
  for (size_t at = line.find_first_not_of(kBlank); at != line.npos; at = line.find_first_not_of(kBlank, at)) {
    const size_t end = std::min(line.find_first_of(kBlank, at), line.size());
    tokens.push_back(line.substr(at, end - at));
    at = end;
  }
  return tokens;
}

std::optional<int64_t> number(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    text.remove_prefix(2);
    base = 16;
  }
  int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || problem != std::errc() || end != text.data() + text.size() || text.front() == '-')
    return std::nullopt;
  return negative ? -value : value;
}

const isa::Field* findField(const isa::Command& command, std::string_view name) {
  for (uint8_t n = 0; n < command.fieldCount; ++n) {
    if (name == command.fields[n].name) return &command.fields[n];
  }
  return nullptr;
}

std::optional<int64_t> valueOf(const isa::Field& field, std::string_view text) {
  if (field.enumeration != nullptr) {
    for (uint8_t n = 0; n < field.enumeration->count; ++n) {
      if (text == field.enumeration->values[n].name) return field.enumeration->values[n].value;
    }
  }
  return number(text);
}

class Assembler {
 public:
  Status line(std::string_view text) {
    const std::vector<std::string_view> tokens = tokensOf(text);
    if (tokens.empty()) return {};
    if (tokens[0] == ".payload") return payload(tokens);
    if (tokens[0] == ".stream") return stream(tokens);
    if (tokens[0] == ".end") return end(tokens);
    if (tokens[0] == ".word") return words(tokens);
    if (tokens[0] == ".config") return config(tokens);
    if (tokens[0] == ".nop") return action(tokens, {format::cop1Word(format::Cop1Action::Nop, 0)}, 1);
    if (tokens[0].starts_with('.')) return fail(Code::BadText, "unknown directive {}", tokens[0]);
    return command(tokens);
  }

  Result<Assembly> finish() {
    if (place_ == Place::Start) return fail(Code::BadText, "the text has no .stream");
    if (assembly_.isPayload && place_ == Place::Stream)
      return fail(Code::BadText, "a payload's stream needs .end");
    std::vector<uint32_t> all;
    if (assembly_.isPayload) {
      all.push_back(fourcc_);
      all.insert(all.end(), before_.begin(), before_.end());
      if (fourcc_ == format::kCop1Fourcc) {
        all.push_back(format::cop1Word(format::Cop1Action::CommandStream,
                                       static_cast<uint32_t>(assembly_.stream.size())));
      }
    }
    all.insert(all.end(), assembly_.stream.begin(), assembly_.stream.end());
    all.insert(all.end(), after_.begin(), after_.end());
    for (const uint32_t word : all) {
      for (int shift = 0; shift < 32; shift += 8)
        assembly_.bytes.push_back(static_cast<uint8_t>(word >> shift));
    }
    return std::move(assembly_);
  }

 private:
  enum class Place : uint8_t { Start, Before, Stream, After };

  Status payload(const std::vector<std::string_view>& tokens) {
    if (place_ == Place::After)
      return fail(Code::BadText, ".payload appears twice: one file holds one command stream");
    if (place_ != Place::Start) return fail(Code::BadText, ".payload must come first");
    if (tokens.size() != 2 || (tokens[1] != "cop1" && tokens[1] != "cop2"))
      return fail(Code::BadText, ".payload takes cop1 or cop2");
    assembly_.isPayload = true;
    fourcc_ = tokens[1] == "cop1" ? format::kCop1Fourcc : format::kCop2Fourcc;
    place_ = Place::Before;
    return {};
  }

  Status stream(const std::vector<std::string_view>& tokens) {
    if (place_ != Place::Start && place_ != Place::Before)
      return fail(Code::BadText, "only one .stream is allowed");
    if (tokens.size() != 2) return fail(Code::BadText, ".stream needs an architecture");
    for (const Family family : {Family::U55, Family::U65, Family::U85}) {
      if (tokens[1] == architecture(family).name) {
        assembly_.family = family;
        place_ = Place::Stream;
        return {};
      }
    }
    return fail(Code::BadText, "unknown architecture {}: expected ethos-u55, ethos-u65 or ethos-u85",
                tokens[1]);
  }

  Status end(const std::vector<std::string_view>& tokens) {
    if (place_ != Place::Stream || tokens.size() != 1)
      return fail(Code::BadText, ".end must come after a .stream, without operands");
    if (assembly_.stream.size() > format::kMaxStreamWords)
      return fail(Code::BadText, "the stream exceeds the hardware's 16 MiB");
    place_ = Place::After;
    return {};
  }

  Status words(const std::vector<std::string_view>& tokens) {
    std::vector<uint32_t>* to = place_ == Place::Before   ? &before_
                                : place_ == Place::Stream ? &assembly_.stream
                                                          : &after_;
    if (place_ == Place::Start || (place_ == Place::After && !assembly_.isPayload))
      return fail(Code::BadText, ".word outside a stream");
    for (size_t n = 1; n < tokens.size(); ++n) {
      CARINA_TRY(const uint32_t word, word32(tokens[n]));
      to->push_back(word);
    }
    return {};
  }

  Status config(const std::vector<std::string_view>& tokens) {
    if (tokens.size() != 3) return fail(Code::BadText, ".config takes the CONFIG and the ID word");
    CARINA_TRY(const uint32_t configWord, word32(tokens[1]));
    CARINA_TRY(const uint32_t idWord, word32(tokens[2]));
    return action(tokens, {format::kCop1OptimizerConfigWord, configWord, idWord}, 3);
  }

  Status action(const std::vector<std::string_view>& tokens, std::initializer_list<uint32_t> actionWords,
                size_t tokenCount) {
    if (tokens.size() != tokenCount)
      return fail(Code::BadText, "{} has {} surplus operands", tokens[0], tokens.size() - tokenCount);
    if (fourcc_ != format::kCop1Fourcc || (place_ != Place::Before && place_ != Place::After)) {
      return fail(Code::BadText, "{} belongs before or after the stream of a cop1 payload", tokens[0]);
    }
    std::vector<uint32_t>& to = place_ == Place::Before ? before_ : after_;
    to.insert(to.end(), actionWords);
    return {};
  }

  static Result<uint32_t> word32(std::string_view text) {
    const std::optional<int64_t> value = number(text);
    if (!value || *value < 0 || *value > UINT32_MAX)
      return fail(Code::BadText, "{} is not a 32-bit word", text);
    return static_cast<uint32_t>(*value);
  }

  Status command(const std::vector<std::string_view>& tokens) {
    if (place_ != Place::Stream) return fail(Code::BadText, "{} outside a stream", tokens[0]);
    const isa::Command* info = findCommand(assembly_.family, tokens[0]);
    if (info == nullptr)
      return fail(Code::BadText, "{} has no command {}", familyName(assembly_.family), tokens[0]);
    uint64_t bits = uint64_t{info->opcode} | (info->twoWords ? 1u << 14 : 0u);
    for (size_t n = 1; n < tokens.size(); ++n) {
      const size_t equals = tokens[n].find('=');
      if (equals == tokens[n].npos)
        return fail(Code::BadText, "{}: expected field=value, found {}", tokens[0], tokens[n]);
      const std::string_view name = tokens[n].substr(0, equals), text = tokens[n].substr(equals + 1);
      const isa::Field* field = findField(*info, name);
      if (field == nullptr) return fail(Code::BadText, "{} has no field {}", tokens[0], name);
      const std::optional<int64_t> value = valueOf(*field, text);
      if (!value) return fail(Code::BadText, "{}: {} cannot be {}", tokens[0], name, text);
      CARINA_RETURN_IF_ERROR(setField(*field, *value, bits));
    }
    assembly_.stream.push_back(static_cast<uint32_t>(bits));
    if (info->twoWords) assembly_.stream.push_back(static_cast<uint32_t>(bits >> 32));
    return {};
  }

  Assembly assembly_;
  uint32_t fourcc_ = 0;
  Place place_ = Place::Start;
  std::vector<uint32_t> before_, after_;
};

}  // namespace

Result<Assembly> assemble(std::string_view text) {
  Assembler assembler;
  size_t lineNumber = 0;
  while (!text.empty()) {
    ++lineNumber;
    const size_t end = std::min(text.find('\n'), text.size());
    Status status = assembler.line(text.substr(0, end));
    if (!status.ok()) return std::move(status).error().at(fmt::format("line {}", lineNumber));
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  return assembler.finish();
}

}  // namespace carina::npu
