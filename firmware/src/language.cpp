// SPDX-License-Identifier: Apache-2.0
// Text generation with a language model: prompts arrive by UART or are linked in, tokens are sent to the UART
// as they are generated.
#include "console.hpp"
#include "session.hpp"

namespace carina::firmware {
namespace {

using rt::ScalarType;
using rt::Text;
using rt::TokenPiece;
using rt::Value;
using rt::ValueKind;

constexpr char kEndOfTransmission = 4, kBackspace = 8, kDelete = 127;

Session decode(kApp, 0), prefill(kApp, 1);
rt::Tokenizer tokenizer;

/// Cost of a sequence of calls.
struct Cost {
  uint32_t tokens = 0, calls = 0;
  uint64_t npuCycles = 0, cycles = 0;

  void print(const char* name) const {
    info(name, tokens, " tokens in ", calls, calls == 1 ? " call, " : " calls, ", npuCycles, " NPU cycles, ",
         cycles, " CPU cycles");
  }
};

/// A method that maps tokens to the logits of the next one.
class Step {
 public:
  explicit Step(Session& session) : session_(session) {}

  /// Number of tokens that a call takes; 0 if the method does not have this form.
  uint32_t tokens() const {
    rt::Method& method = session_.method();
    if (method.inputCount() != 2 || method.outputCount() == 0) return 0;
    const Value &tokens = method.input(0), &positions = method.input(1), &logits = method.output(0);
    const size_t count = numbers(tokens);
    if (count == 0 || numbers(positions) != count || logits.kind != ValueKind::Tensor ||
        logits.tensor.type != ScalarType::Float32) {
      return 0;
    }
    const size_t values = logits.tensor.elements();
    const bool fits = values == tokenizer.size() || values == uint64_t{count} * tokenizer.size();
    return fits ? static_cast<uint32_t>(count) : 0;
  }

  /// Logits after the last of the tokens(), the first of which is at `position`. Null on failure, after
  /// printing the reason.
  const float* run(const TokenPiece* pieces, uint32_t position, Cost& cost) {
    const uint32_t count = tokens();
    const uint64_t npuCycles = session_.npuCycles(), cycles = session_.cycles();
    for (uint32_t i = 0; i < 2; ++i) {
      rt::MutableBytes memory;
      if (!session_.inputMemory(i, &memory)) return nullptr;
      const size_t size = rt::elementSize(session_.method().input(i).tensor.type);
      for (uint32_t j = 0; j < count; ++j) {
        const uint64_t number = i == 0 ? pieces[j].token : position + j;
        __builtin_memcpy(memory.data + size * j, &number, size);
      }
    }
    const rt::Status status = session_.execute();
    if (!status.ok()) {
      put('\n');
      session_.explain(status);
      return nullptr;
    }
    ++cost.calls;
    cost.tokens += count;
    cost.npuCycles += session_.npuCycles() - npuCycles;
    cost.cycles += session_.cycles() - cycles;
    const rt::Tensor& logits = session_.method().output(0).tensor;
    return logits.as<const float>() + (logits.elements() - tokenizer.size());
  }

 private:
  static size_t numbers(const Value& value) {
    const bool integers = value.kind == ValueKind::Tensor &&
                          (value.tensor.type == ScalarType::Int64 || value.tensor.type == ScalarType::Int32);
    return integers ? value.tensor.elements() : 0;
  }

  Session& session_;
};

/// The first one of equal maxima.
uint32_t largest(const float* logits) {
  uint32_t best = 0;
  for (uint32_t i = 1; i < tokenizer.size(); ++i) {
    if (logits[i] > logits[best]) best = i;
  }
  return best;
}

/// Control characters are shown as escapes: one of them would end a simulator's run.
void putText(Text text) {
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    if ((byte >= ' ' && byte != kDelete) || c == '\n' || c == '\t') {
      put(c);
      continue;
    }
    put("\\x");
    put("0123456789abcdef"[byte >> 4]);
    put("0123456789abcdef"[byte & 15]);
  }
}

/// Writes the model's continuation of a prompt, up to the end of the context, a token that ends texts or
/// TextSetup::tokens.
bool writeText(const TextSetup& setup, Text prompt) {
  uint32_t count = 0;
  const rt::Status status = tokenizer.encode(prompt, setup.pieces, &count);
  if (!status.ok()) {
    put('\n');
    error(status);
    return false;
  }
  if (count == 0 || count >= setup.context) {
    put('\n');
    error("the prompt has ", count, " tokens, the context ", setup.context, ": no room for another one");
    return false;
  }
  if (!decode.restart() || (kApp.methods.size > 1 && !prefill.restart())) return false;
  Step one(decode), many(prefill);
  Cost reading, writing;
  const float* logits = nullptr;
  uint32_t position = 0;
  const uint32_t chunk = kApp.methods.size > 1 ? many.tokens() : 0;
  while (position < count) {
    const bool whole = chunk != 0 && count - position >= chunk;
    logits = (whole ? many : one).run(setup.pieces.data + position, position, reading);
    if (logits == nullptr) return false;
    position += whole ? chunk : 1;
  }
  uint32_t written = 0;
  for (;;) {
    const TokenPiece next{largest(logits), 0};
    if (tokenizer.ends(next.token)) break;
    Text text;
    const rt::Status known = tokenizer.decode(next.token, &text);
    if (!known.ok()) {
      put('\n');
      error(known);
      return false;
    }
    putText(text);
    if (++written == setup.tokens || position == setup.context) break;
    logits = one.run(&next, position++, writing);
    if (logits == nullptr) return false;
  }
  put('\n');
  reading.print("prompt: ");
  writing.tokens = written;
  writing.print("text: ");
  return true;
}

enum class Received : uint8_t { Line, TooLong, End };

/// Reads a line from the UART and echoes it; a backspace removes the last character.
Received receiveLine(rt::Span<char> memory, Text* line) {
  static bool afterReturn = false;
  size_t size = 0;
  bool tooLong = false;
  for (;;) {
    const char c = receive();
    const bool second = c == '\n' && afterReturn;  // of \r\n
    afterReturn = c == '\r';
    if (second) continue;
    if (c == kEndOfTransmission) return Received::End;
    if (c == '\r' || c == '\n') break;
    if (c == kBackspace || c == kDelete) {
      if (size == 0) continue;
      while (--size > 0 && (memory[size] & 0xc0) == 0x80) {
      }
      put("\b \b");
    } else if (size == memory.size) {
      tooLong = true;
    } else {
      memory[size++] = c;
      putText(Text(&c, 1));
    }
  }
  *line = Text(memory.data, size);
  if (tooLong) return Received::TooLong;
  return size == 0 ? Received::End : Received::Line;
}

/// Generates one text per line. Returns whether all of them succeeded.
bool answerLines(const TextSetup& setup) {
  bool good = true;
  for (;;) {
    put("> ");
    Text line;
    const Received received = receiveLine(setup.line, &line);
    if (received == Received::Line) {
      good = writeText(setup, line) && good;
      continue;
    }
    put('\n');
    if (received == Received::End) return good;
    error("the prompt has more than ", setup.line.size, " bytes");
    good = false;
  }
}

bool open(const App& app) {
  const rt::Status status = rt::Tokenizer::load(app.text->tokenizer, &tokenizer);
  if (!status.ok()) {
    error(status);
    return false;
  }
  if (!decode.open(app.program)) return false;
  const bool many = app.methods.size > 1;
  if (many && !prefill.openSharingNpu(decode)) return false;
  if (Step(decode).tokens() == 1 && (!many || Step(prefill).tokens() != 0)) return true;
  error("the program does not take tokens and their positions, or its tokenizer is another model's");
  return false;
}

}  // namespace

int runLanguage(const App& app) {
  const TextSetup& setup = *app.text;
  if (!open(app)) return 1;
  bool good = true;
  if (setup.prompt.empty()) {
    good = answerLines(setup);
  } else {
    putText(setup.prompt);
    good = writeText(setup, setup.prompt);
  }
  decode.reportMemory();
  info("Program complete, exiting.");
  return good ? 0 : 1;
}

}  // namespace carina::firmware
