// SPDX-License-Identifier: Apache-2.0
// Inputs, outputs and optionally the program as files of the host.
#include "console.hpp"
#include "semihosting.hpp"
#include "session.hpp"

namespace carina::firmware {
namespace {

namespace host = semihosting;

constexpr size_t kCommandLine = 512;
constexpr size_t kFileName = 256;

/// Splits the command line at spaces.
class Words {
 public:
  explicit Words(char* text) : next_(text) {}
  /// Null at the end.
  const char* take() {
    while (*next_ == ' ') ++next_;
    if (*next_ == 0) return nullptr;
    const char* word = next_;
    while (*next_ != ' ' && *next_ != 0) ++next_;
    if (*next_ == ' ') *next_++ = 0;
    return word;
  }

 private:
  char* next_;
};

struct Arguments {
  static constexpr uint32_t kMaxInputs = 16;
  const char* program = nullptr;
  const char* inputs[kMaxInputs] = {};
  uint32_t inputCount = 0;
  const char* output = nullptr;

  bool parse(char* text) {
    Words words(text);
    words.take();  // the name of the image
    while (const char* flag = words.take()) {
      const char* value = words.take();
      const bool known = flag[0] == '-' && flag[1] != 0 && flag[2] == 0 && value != nullptr;
      if (known && flag[1] == 'm') {
        program = value;
      } else if (known && flag[1] == 'o') {
        output = value;
      } else if (known && flag[1] == 'i' && inputCount < kMaxInputs) {
        inputs[inputCount++] = value;
      } else {
        error("cannot understand '", flag, "': NAME [-m PROGRAM] [-i INPUT]... [-o OUTPUT]");
        return false;
      }
    }
    return true;
  }
};

Session session(kApp, 0);

bool findProgram(const App& app, const Arguments& arguments, rt::Bytes* program) {
  *program = app.program;
  if (arguments.program == nullptr && app.program.size != 0) return true;
  if (arguments.program == nullptr) {
    error("no program is linked in: name one with -m");
    return false;
  }
  size_t bytes = 0;
  if (app.programMemory.size == 0) {
    error("this image has no memory for a program: build it with --program semihosting");
    return false;
  }
  if (!host::readFile(arguments.program, app.programMemory, &bytes)) {
    error("cannot read ", arguments.program, ", or it has more than ", app.programMemory.size, " bytes");
    return false;
  }
  *program = rt::Bytes(app.programMemory.data, bytes);
  return true;
}

bool readInputs(const Arguments& arguments) {
  rt::Method& method = session.method();
  if (arguments.inputCount == 0) return session.fillWithOnes();
  if (arguments.inputCount != method.inputCount()) {
    error(arguments.inputCount, " inputs given, the program has ", method.inputCount());
    return false;
  }
  for (uint32_t i = 0; i < method.inputCount(); ++i) {
    rt::MutableBytes memory;
    size_t bytes = 0;
    if (!session.inputMemory(i, &memory)) return false;
    if (!host::readFile(arguments.inputs[i], memory, &bytes) || bytes != memory.size) {
      error("cannot read ", arguments.inputs[i], ", or it does not have ", memory.size, " bytes");
      return false;
    }
  }
  return true;
}

/// BASE-<index>.bin
bool writeOutput(const char* base, uint32_t index, const rt::Tensor& tensor) {
  char name[kFileName];
  const size_t length = rt::textLength(base);
  if (length + 10 > sizeof(name)) {
    error("the name of the output is too long");
    return false;
  }
  __builtin_memcpy(name, base, length);
  char* at = name + length;
  *at++ = '-';
  if (index >= 10) *at++ = static_cast<char>('0' + index / 10 % 10);
  *at++ = static_cast<char>('0' + index % 10);
  __builtin_memcpy(at, ".bin", 5);
  if (host::writeFile(name, rt::Bytes(tensor.as<const uint8_t>(), tensor.bytes))) return true;
  error("cannot write ", name);
  return false;
}

bool run(const App& app) {
  static char text[kCommandLine];
  Arguments arguments;
  rt::Bytes program;
  if (!host::commandLine(text, sizeof(text))) {
    error("the command line is missing or longer than ", kCommandLine, " characters");
    return false;
  }
  if (!arguments.parse(text) || !findProgram(app, arguments, &program) || !session.open(program) ||
      !readInputs(arguments) || !session.infer()) {
    return false;
  }
  if (arguments.output == nullptr) session.printOutputs();
  for (uint32_t i = 0; i < session.method().outputCount() && arguments.output != nullptr; ++i) {
    if (!writeOutput(arguments.output, i, session.method().output(i).tensor)) return false;
  }
  session.report();
  return true;
}

}  // namespace

int runSemihosted(const App& app) {
  const bool done = run(app);
  info(done ? "Program complete, exiting." : "Program failed, exiting.");
  host::exit(done ? 0 : 1);
}

}  // namespace carina::firmware
