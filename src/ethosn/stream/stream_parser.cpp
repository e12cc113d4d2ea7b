// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>

#include "ethosn/stream/stream_text.hpp"
#include "ethosn/stream/text_names.hpp"

namespace carina::ethosn {
namespace {

/// The words of a line, without its comment; a quoted name is one word.
std::vector<std::string_view> wordsOf(std::string_view line) {
  std::vector<std::string_view> words;
  size_t i = 0;
  while (i < line.size()) {
    if (line[i] == ' ' || line[i] == '\t' || line[i] == '\r') {
      ++i;
      continue;
    }
    if (line[i] == ';') break;
    const size_t begin = i;
    for (bool quote = false; i < line.size() && (quote || (line[i] != ' ' && line[i] != '\t' &&
                                                           line[i] != ';' && line[i] != '\r'));
         ++i) {
      if (line[i] == '"') quote = !quote;
    }
    words.push_back(line.substr(begin, i - begin));
  }
  return words;
}

Result<uint32_t> number(std::string_view text) {
  std::string_view digits = text;
  int base = 10;
  if (digits.starts_with("0x")) {
    digits.remove_prefix(2);
    base = 16;
  }
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc() || end != digits.data() + digits.size() || digits.empty()) {
    return fail(Code::BadText, "'{}' is not a 32-bit number", text);
  }
  return value;
}

Status addHex(std::string_view text, std::vector<uint8_t>& out) {
  if (text.size() % 2 != 0) return fail(Code::BadText, "an odd number of hexadecimal digits");
  for (size_t i = 0; i < text.size(); i += 2) {
    uint8_t byte = 0;
    const auto [end, error] = std::from_chars(text.data() + i, text.data() + i + 2, byte, 16);
    if (error != std::errc() || end != text.data() + i + 2)
      return fail(Code::BadText, "'{}' is not a hexadecimal byte", text.substr(i, 2));
    out.push_back(byte);
  }
  return {};
}

Result<std::string> unquoted(std::string_view text) {
  if (text.size() < 2 || text.front() != '"' || text.back() != '"')
    return fail(Code::BadText, "a name must be in quotation marks");
  std::string out;
  text = text.substr(1, text.size() - 2);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    std::vector<uint8_t> byte;
    if (i + 2 >= text.size()) return fail(Code::BadText, "'\\' needs two hexadecimal digits");
    CARINA_RETURN_IF_ERROR(addHex(text.substr(i + 1, 2), byte));
    out += static_cast<char>(byte[0]);
    i += 2;
  }
  return out;
}

template <typename Enum, size_t N>
Result<Enum> enumNamed(const std::string_view (&names)[N], std::string_view text) {
  for (size_t i = 0; i < N; ++i) {
    if (names[i] == text) return static_cast<Enum>(i);
  }
  return fail(Code::BadText, "'{}' is not a valid value", text);
}

/// The name=value pairs of a line; each must be taken exactly once.
class Values {
 public:
  static Result<Values> of(std::span<const std::string_view> words) {
    Values values;
    for (const std::string_view word : words) {
      const size_t equals = word.find('=');
      if (equals == std::string_view::npos)
        return fail(Code::BadText, "'{}' is not of the form name=value", word);
      values.left_.emplace_back(word.substr(0, equals), word.substr(equals + 1));
    }
    return values;
  }
  std::optional<std::string_view> take(std::string_view name) {
    for (auto it = left_.begin(); it != left_.end(); ++it) {
      if (it->first != name) continue;
      const std::string_view value = it->second;
      left_.erase(it);
      return value;
    }
    return std::nullopt;
  }
  Status allTaken() const {
    if (left_.empty()) return {};
    return fail(Code::BadText, "unknown or repeated name '{}'", left_.front().first);
  }

 private:
  std::vector<std::pair<std::string_view, std::string_view>> left_;
};

/// Carries the first error out of callbacks.
class FirstError {
 public:
  template <typename T>
  void store(Result<T> result, T& to) {
    if (result) {
      to = *result;
    } else {
      note(std::move(result).error());
    }
  }
  void note(Error error) {
    if (status_) status_ = std::move(error);
  }
  Status status_;
};

Result<Agent> parseAgent(std::string_view typeName, Values values) {
  Agent agent;
  for (uint32_t type = 0;; ++type) {
    if (type == kAgentTypes) return fail(Code::BadText, "unknown type of agent '{}'", typeName);
    if (agentTypeName(static_cast<AgentType>(type)) == typeName) {
      agent = makeAgent(static_cast<AgentType>(type));
      break;
    }
  }
  FirstError error;
  std::visit(
      [&](auto& data) {
        std::decay_t<decltype(data)>::fields(data, [&](std::string_view name, size_t, auto& member, Fields) {
          using Member = std::decay_t<decltype(member)>;
          const auto text = values.take(name);
          if (!text) return;
          if constexpr (std::is_same_v<Member, MceOperation>) {
            error.store(enumNamed<MceOperation>(kMceOperations, *text), member);
          } else if constexpr (std::is_same_v<Member, PleInput>) {
            error.store(enumNamed<PleInput>(kPleInputs, *text), member);
          } else {
            uint32_t value = 0;
            error.store(number(*text), value);
            if (value > std::numeric_limits<Member>::max())
              error.note(fail(Code::BadText, "{}={} does not fit 16 bits", name, value));
            member = static_cast<Member>(value);
          }
        });
      },
      agent.data);
  CARINA_RETURN_IF_ERROR(error.status_);
  if (const auto unused = values.take("unused")) {
    std::vector<uint8_t> bytes;
    CARINA_RETURN_IF_ERROR(addHex(*unused, bytes));
    if (bytes.size() != agent.unused.size())
      return fail(Code::BadText, "unused= has {} bytes instead of {}", bytes.size(), agent.unused.size());
    std::copy(bytes.begin(), bytes.end(), agent.unused.begin());
  }
  CARINA_RETURN_IF_ERROR(values.allTaken());
  return agent;
}

Result<Command> parseCommand(std::string_view typeName, Values values) {
  Command command;
  for (uint32_t type = 0;; ++type) {
    if (type == kCommandTypes) return fail(Code::BadText, "unknown command '{}'", typeName);
    if (commandTypeName(static_cast<CommandType>(type)) == typeName) {
      command = makeCommand(static_cast<CommandType>(type));
      break;
    }
  }
  FirstError error;
  std::visit(
      [&](auto& body) {
        std::decay_t<decltype(body)>::words(
            body, [&](std::string_view name, std::span<uint32_t> words, Fields) {
              auto text = values.take(name);
              if (!text) return;
              if (name == "counter") {
                for (uint32_t i = 0; i < kCounters; ++i) {
                  if (counterName(static_cast<Counter>(i)) == *text) {
                    words[0] = i;
                    return;
                  }
                }
                error.note(fail(Code::BadText, "unknown counter '{}'", *text));
                return;
              }
              size_t next = 0;
              for (bool more = true; more;) {
                const size_t comma = text->find(',');
                more = comma != std::string_view::npos;
                if (next == words.size()) {
                  error.note(fail(Code::BadText, "{} has more than {} values", name, words.size()));
                  return;
                }
                error.store(number(text->substr(0, comma)), words[next++]);
                if (more) text->remove_prefix(comma + 1);
              }
            });
      },
      command);
  CARINA_RETURN_IF_ERROR(error.status_);
  CARINA_RETURN_IF_ERROR(values.allTaken());
  return command;
}

class Parser {
 public:
  Status line(std::string_view text) {
    const std::vector<std::string_view> words = wordsOf(text);
    if (words.empty()) return {};
    if (!begun_) {
      if (words[0] != kNetworkDirective || words.size() != 2)
        return fail(Code::BadText, "the text does not begin with '{} VERSION'", kNetworkDirective);
      if (words[1] != fmt::format("{}.{}.{}", kNetworkMajor, kNetworkMinor, kNetworkPatch)) {
        return fail(Code::BadText, "unknown version {}", words[1]);
      }
      begun_ = true;
      return {};
    }
    if (ended_) return fail(Code::BadText, "'{}' follows .end", words[0]);
    if (words[0].starts_with('.')) return directive(words);
    if (bytes_ != nullptr) {
      for (const std::string_view word : words) CARINA_RETURN_IF_ERROR(addHex(word, *bytes_));
      return {};
    }
    if (list_ == nullptr) return fail(Code::BadText, "'{}' is not in a list", words[0]);
    CARINA_TRY(Values values, Values::of(std::span(words).subspan(1)));
    CARINA_TRY(const Command command, parseCommand(words[0], std::move(values)));
    list_->push_back(command);
    return {};
  }

  Result<CompiledNetwork> finish() {
    if (!ended_) return fail(Code::BadText, "the text ends without .end");
    CARINA_TRY(const std::vector<uint8_t> stream, writeCommandStream(stream_));
    network_.constantControlUnit = before_;
    network_.constantControlUnit.insert(network_.constantControlUnit.end(), stream.begin(), stream.end());
    network_.constantControlUnit.insert(network_.constantControlUnit.end(), behind_.begin(), behind_.end());
    return std::move(network_);
  }

 private:
  Status directive(const std::vector<std::string_view>& words) {
    const std::string_view name = words[0].substr(1);
    list_ = nullptr;
    bytes_ = nullptr;
    if (name == "agent") {
      if (words.size() < 3) return fail(Code::BadText, ".agent needs its number and its type");
      CARINA_TRY(const uint32_t index, number(words[1]));
      if (index != stream_.agents.size())
        return fail(Code::BadText, "found agent {}, expected agent {}", index, stream_.agents.size());
      CARINA_TRY(Values values, Values::of(std::span(words).subspan(3)));
      CARINA_TRY(Agent agent, parseAgent(words[2], std::move(values)));
      stream_.agents.push_back(agent);
      return {};
    }
    if (name == "list") {
      for (size_t q = 0; q < kQueues; ++q) {
        if (words.size() == 2 && words[1] == queueName(static_cast<Queue>(q))) list_ = &stream_.queues[q];
      }
      if (list_ == nullptr) return fail(Code::BadText, ".list needs one of dma_rd, dma_wr, mce, ple");
      return {};
    }
    for (size_t kind = 0; kind < 5; ++kind) {
      if (name == bufferKindName(static_cast<BufferKind>(kind)))
        return buffer(static_cast<BufferKind>(kind), words);
    }
    if (words.size() > 1) return fail(Code::BadText, "'{}' takes no operands", words[0]);
    if (name == "before") {
      bytes_ = &before_;
    } else if (name == "behind") {
      bytes_ = &behind_;
    } else if (name == "constants") {
      bytes_ = &network_.constantDma;
    } else if (name == "end") {
      ended_ = true;
    } else {
      return fail(Code::BadText, "unknown directive '{}'", words[0]);
    }
    return {};
  }

  Status buffer(BufferKind kind, const std::vector<std::string_view>& words) {
    CARINA_TRY(Values values, Values::of(std::span(words).subspan(1)));
    BufferInfo info;
    for (const auto& [name, member] :
         {std::pair(std::string_view("id"), &info.id), {"offset", &info.offset}, {"size", &info.size}}) {
      const auto text = values.take(name);
      if (!text) return fail(Code::BadText, "a buffer has no {}", name);
      CARINA_TRY(*member, number(*text));
    }
    if (const auto text = values.take("name")) {
      CARINA_TRY(info.name, unquoted(*text));
    }
    CARINA_RETURN_IF_ERROR(values.allTaken());
    std::vector<BufferInfo>* const tables[] = {&network_.inputs, &network_.outputs,
                                               &network_.controlUnitBuffers, &network_.dmaBuffers,
                                               &network_.intermediates};
    tables[static_cast<size_t>(kind)]->push_back(std::move(info));
    return {};
  }

  CompiledNetwork network_;
  CommandStream stream_;
  std::vector<uint8_t> before_, behind_;
  std::vector<Command>* list_ = nullptr;
  std::vector<uint8_t>* bytes_ = nullptr;
  bool begun_ = false, ended_ = false;
};

}  // namespace

Result<CompiledNetwork> parseNetwork(std::string_view text) {
  Parser parser;
  size_t number = 1;
  for (; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (Status status = parser.line(text.substr(0, end)); !status) {
      return std::move(status).error().at(fmt::format("line {}", number));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  auto network = parser.finish();
  if (!network) return std::move(network).error().at(fmt::format("line {}", number));
  return network;
}

}  // namespace carina::ethosn
