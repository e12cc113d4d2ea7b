// SPDX-License-Identifier: Apache-2.0
#include "pipeline/generate.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "base/damaged.hpp"
#include "base/file.hpp"
#include "delivery/compile_cache.hpp"
#include "device/run.hpp"
#include "pipeline/chosen_machine.hpp"
#include "pipeline/loaded_program.hpp"
#include "pte/program.hpp"
#include "tokenizer/tokenizer.hpp"

namespace carina::pipeline {
namespace {

/// The number that a method without inputs returns; nothing when there is no such method.
Result<std::optional<int64_t>> constantOf(ByteSpan bytes, const pte::Program& program,
                                          const device::RunOptions& options, const char* name) {
  if (!program.findMethod(name)) return std::optional<int64_t>();
  device::RunOptions asking = options;
  asking.method = name;
  CARINA_TRY(const device::RunOutcome outcome, device::runProgram(bytes, {}, asking));
  if (outcome.outputs.size() != 1 || outcome.outputs[0].numElements() != 1 ||
      isFloat(outcome.outputs[0].dtype())) {
    return fail(Code::InputMismatch, "does not return a whole number")
        .at(name)
        .withRemedy("give --context N");
  }
  return std::optional<int64_t>(outcome.outputs[0].integerAt(0));
}

Result<int64_t> contextOf(ByteSpan bytes, const pte::Program& program, const device::RunOptions& options,
                          int64_t given) {
  if (given > 0) return given;
  for (const char* name : {"get_max_context_len", "get_max_seq_len"}) {
    CARINA_TRY(const auto context, constantOf(bytes, program, options, name));
    if (!context) continue;
    if (*context > 0) return *context;
    return fail(Code::InputMismatch, "returns {}", *context).at(name).withRemedy("give --context N");
  }
  return fail(Code::InputMismatch, "does not say how many tokens its state has room for")
      .withRemedy("give --context N, or compile it with --constant-method get_max_context_len=N");
}

/// "decode", or the only method with inputs.
Result<std::string> decoderOf(const pte::Program& program) {
  std::vector<std::string> names;
  for (const pte::Method& method : program.methods) {
    if (method.name == "decode") return method.name;
    if (!method.inputs.empty()) names.push_back(method.name);
  }
  if (names.size() == 1) return names[0];
  return fail(Code::InputMismatch, "has {} methods that take inputs and none called 'decode'", names.size())
      .withRemedy("compile the network that takes one token at a time");
}

/// The step from one token to the logits of the next.
class Decoder {
 public:
  static Result<Decoder> open(ByteSpan bytes, const pte::Program& program, const device::RunOptions& options,
                              int64_t vocabulary) {
    device::RunOptions running = options;
    CARINA_TRY(running.method, decoderOf(program));
    CARINA_TRY(device::Runner runner, device::Runner::open(bytes, running));
    const auto describe = [&] {
      std::string text;
      for (const device::Runner::Io& io : runner.inputs())
        text += fmt::format("{}{}{}", text.empty() ? "" : ", ", dtypeName(io.dtype), shapeText(io.shape));
      return text;
    };
    const auto isOne = [](const device::Runner::Io& io) {
      return isInteger(io.dtype) && numElements(io.shape) == 1;
    };
    if (runner.inputs().size() != 2 || !std::all_of(runner.inputs().begin(), runner.inputs().end(), isOne)) {
      return fail(Code::InputMismatch, "takes {}, not one token and its position", describe())
          .at(running.method)
          .withRemedy(
              "export a step of the model: integers tokens [1, 1] and positions [1], the cache as state");
    }
    const auto& outputs = runner.outputs();
    if (outputs.empty() || !isFloat(outputs[0].dtype) || numElements(outputs[0].shape) != vocabulary) {
      return fail(Code::InputMismatch, "returns {} numbers first, the tokenizer has {} tokens",
                  outputs.empty() ? 0 : numElements(outputs[0].shape), vocabulary)
          .at(running.method)
          .withRemedy(
              "give the tokenizer.json that the network was trained with, and compile with float outputs");
    }
    return Decoder(std::move(runner));
  }

  /// Logits behind `token` at `position`; cycles of the NPU are added to `cycles`.
  Result<Tensor> step(int64_t token, int64_t position, int64_t& cycles) {
    std::vector<Tensor> inputs;
    for (const device::Runner::Io& io : runner_.inputs()) {
      Tensor input = Tensor::zeros(io.dtype, io.shape);
      input.setIntegerAt(0, inputs.empty() ? token : position);
      inputs.push_back(std::move(input));
    }
    CARINA_TRY(device::RunOutcome outcome, runner_.run(inputs));
    stats_ = std::move(outcome.stats);
    cycles += stats_.npuCycles;
    return convert(outcome.outputs[0], DType::Float32);
  }
  const device::RunStats& stats() const { return stats_; }

 private:
  explicit Decoder(device::Runner runner) : runner_(std::move(runner)) {}
  device::Runner runner_;
  device::RunStats stats_;  // of the last step
};

double secondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Clock of the machine that ran, where its names say it.
std::optional<double> clockOf(const GenerateOptions& options, const Generated& result) {
  if (result.target.empty()) return std::nullopt;
  Options machine;
  machine.target = result.target;
  machine.systemConfig = result.systemConfig;
  machine.memoryMode = result.memoryMode;
  machine.configFile = options.configFile;
  const auto chosen = chosenMachine(machine);
  return chosen.ok() ? std::optional(chosen->system.clockHz) : std::nullopt;
}

Status checkPrompt(const Generated& result) {
  const auto count = static_cast<int64_t>(result.promptTokens.size());
  if (count == 0)
    return fail(Code::InputMismatch, "is empty").at("--prompt").withRemedy("give the text to go on from");
  if (count < result.context) return {};
  return fail(Code::InputMismatch, "has {} tokens, the context {}: no room for another one", count,
              result.context)
      .at("--prompt")
      .withRemedy("give a shorter prompt, or compile a network with a larger context");
}

Result<Generated> run(const GenerateOptions& options, ByteSpan bytes, const tokenizer::Tokenizer& tokenizer) {
  CARINA_TRY(const pte::Program program, pte::readProgram(bytes));
  device::RunOptions running;
  running.target = options.target;
  running.systemConfig = options.systemConfig;
  running.memoryMode = options.memoryMode;
  running.configFile = options.configFile;
  Generated result;
  result.prompt = options.prompt;
  CARINA_TRY(result.context, contextOf(bytes, program, running, options.context));
  CARINA_TRY(result.promptTokens, tokenizer.encode(options.prompt));
  CARINA_RETURN_IF_ERROR(checkPrompt(result));
  CARINA_TRY(Decoder decoder, Decoder::open(bytes, program, running, tokenizer.size()));
  if (options.write) options.write(options.prompt);

  auto start = std::chrono::steady_clock::now();
  int64_t position = 0;
  Tensor logits;
  for (const int64_t token : result.promptTokens) {
    CARINA_TRY(logits, decoder.step(token, position++, result.promptCycles));
  }
  result.promptSeconds = secondsSince(start);
  start = std::chrono::steady_clock::now();
  Sampler sampler(options.sampling);
  while (static_cast<int64_t>(result.tokens.size()) < options.tokens) {
    const int64_t token = sampler.choose(logits.as<float>());
    if ((result.ended = tokenizer.ends(token))) break;
    CARINA_TRY(const std::string piece, tokenizer.decode(token));
    result.tokens.push_back(token);
    result.text += piece;
    if (options.write) options.write(piece);
    if ((result.full = position == result.context)) break;
    if (static_cast<int64_t>(result.tokens.size()) == options.tokens) break;
    CARINA_TRY(logits, decoder.step(token, position++, result.cycles));
  }
  result.seconds = secondsSince(start);
  const device::RunStats& stats = decoder.stats();
  result.target = stats.target;
  result.systemConfig = stats.systemConfig;
  result.memoryMode = stats.memoryMode;
  result.kernels = stats.kernels.size();
  result.warnings = stats.warnings;
  result.clockHz = clockOf(options, result);
  return result;
}

}  // namespace

int64_t Sampler::choose(std::span<const float> logits) {
  CARINA_CHECK(!logits.empty(), "there is something to choose from");
  std::vector<int64_t> order(logits.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto at = [&](int64_t i) { return static_cast<double>(logits[static_cast<size_t>(i)]); };
  const auto larger = [&](int64_t a, int64_t b) { return at(a) != at(b) ? at(a) > at(b) : a < b; };
  if (settings_.temperature <= 0) return *std::min_element(order.begin(), order.end(), larger);
  std::sort(order.begin(), order.end(), larger);
  if (settings_.topK > 0 && settings_.topK < static_cast<int64_t>(order.size()))
    order.resize(static_cast<size_t>(settings_.topK));
  std::vector<double> weights;
  double sum = 0;
  for (const int64_t i : order) {
    weights.push_back(std::exp((at(i) - at(order[0])) / settings_.temperature));
    sum += weights.back();
  }
  double kept = 0;
  size_t count = 0;
  while (count < weights.size() && (count == 0 || kept < settings_.topP * sum)) kept += weights[count++];
  // 53 bits: the same numbers with every standard library.
  double left = static_cast<double>(random_() >> 11) * 0x1p-53 * kept;
  for (size_t i = 0; i < count; ++i) {
    if (left < weights[i]) return order[i];
    left -= weights[i];
  }
  return order[count - 1];
}

Result<Generated> generate(const GenerateOptions& options) {
  CARINA_TRY(const tokenizer::Tokenizer tokenizer, tokenizer::Tokenizer::read(options.tokenizer));
  CARINA_TRY(const auto file, MappedFile::open(options.program));
  auto loaded = LoadedProgram::from(file->bytes(), {options.target, options.systemConfig, options.memoryMode,
                                                    options.configFile, delivery::defaultCacheFolder()});
  if (!loaded) return std::move(loaded).error().inFile(options.program.string());
  auto result = run(options, loaded->bytes(), tokenizer);
  if (!result) return std::move(result).error().inFile(options.program.string());
  return result;
}

}  // namespace carina::pipeline
