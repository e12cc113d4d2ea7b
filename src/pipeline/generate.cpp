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
#include "pipeline/inference_of_run.hpp"
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

constexpr const char* kPrefill = "prefill";

/// "decode", or the only other method than "prefill" with inputs.
Result<std::string> decoderOf(const pte::Program& program) {
  std::vector<std::string> names;
  for (const pte::Method& method : program.methods) {
    if (method.name == "decode") return method.name;
    if (!method.inputs.empty() && method.name != kPrefill) names.push_back(method.name);
  }
  if (names.size() == 1) return names[0];
  return fail(Code::InputMismatch, "has {} methods that take inputs and none called 'decode'", names.size())
      .withRemedy("compile the network that takes one token at a time");
}

std::string inputsText(const device::Runner& runner) {
  std::string text;
  for (const device::Runner::Io& io : runner.inputs())
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", dtypeName(io.dtype), shapeText(io.shape));
  return text;
}

double secondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// The step from some tokens to the logits of the next one.
class Step {
 public:
  /// A method that takes one token a call.
  static Result<Step> decoder(device::Runner runner, const std::string& method, int64_t vocabulary) {
    Step step(std::move(runner), method);
    if (step.tokens_ != 1) {
      return fail(Code::InputMismatch, "takes {}, not one token and its position", inputsText(step.runner_))
          .at(method)
          .withRemedy(
              "export a step of the model: integers tokens [1, 1] and positions [1], the cache as state");
    }
    CARINA_RETURN_IF_ERROR(step.checkLogits(vocabulary));
    return step;
  }

  /// One that takes any number.
  static Result<Step> prefiller(device::Runner runner, int64_t vocabulary) {
    Step step(std::move(runner), kPrefill);
    if (step.tokens_ < 1) {
      return fail(Code::InputMismatch, "takes {}, not tokens and their positions", inputsText(step.runner_))
          .at(kPrefill)
          .withRemedy("export a step of the model over N tokens: integers tokens [1, N] and positions [N]");
    }
    CARINA_RETURN_IF_ERROR(step.checkLogits(vocabulary));
    return step;
  }

  int64_t tokens() const { return tokens_; }
  /// One that reads the same state, which holds its initial contents again.
  Result<device::Runner> beside(const std::string& method) const { return runner_.openBeside(method); }

  /// Logits behind the last of `tokens`, the first of which is at `position`.
  Result<Tensor> run(std::span<const int64_t> tokens, int64_t position, MethodCalls& calls) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<Tensor> inputs;
    for (const device::Runner::Io& io : runner_.inputs()) {
      Tensor input = Tensor::zeros(io.dtype, io.shape);
      for (int64_t i = 0; i < tokens_; ++i)
        input.setIntegerAt(i, inputs.empty() ? tokens[static_cast<size_t>(i)] : position + i);
      inputs.push_back(std::move(input));
    }
    CARINA_TRY(device::RunOutcome outcome, runner_.run(inputs));
    stats_ = std::move(outcome.stats);
    calls.method = method_;
    calls.tokens = tokens_;
    ++calls.calls;
    calls.npuCycles += stats_.npuCycles;
    calls.kernels = stats_.kernels;
    const Tensor logits = convert(outcome.outputs[0], DType::Float32);
    Tensor last = Tensor::uninitialized(DType::Float32, {vocabulary_});
    const auto all = logits.as<float>();
    std::copy(all.end() - vocabulary_, all.end(), last.mutableAs<float>().begin());
    calls.seconds += secondsSince(start);
    return last;
  }
  const device::RunStats& stats() const { return stats_; }

 private:
  Step(device::Runner runner, std::string method) : runner_(std::move(runner)), method_(std::move(method)) {
    const auto& inputs = runner_.inputs();
    const bool integers = inputs.size() == 2 && isInteger(inputs[0].dtype) && isInteger(inputs[1].dtype);
    if (integers && numElements(inputs[0].shape) == numElements(inputs[1].shape))
      tokens_ = numElements(inputs[0].shape);
  }

  /// Logits of the last token, or of all of them.
  Status checkLogits(int64_t vocabulary) {
    const auto& outputs = runner_.outputs();
    const int64_t count = outputs.empty() ? 0 : numElements(outputs[0].shape);
    if (count == 0 || !isFloat(outputs[0].dtype) || (count != vocabulary && count != tokens_ * vocabulary)) {
      return fail(Code::InputMismatch, "returns {} numbers first, the tokenizer has {} tokens", count,
                  vocabulary)
          .at(method_)
          .withRemedy(
              "give the tokenizer.json that the network was trained with, and compile with float outputs");
    }
    vocabulary_ = vocabulary;
    return {};
  }

  device::Runner runner_;
  std::string method_;
  int64_t tokens_ = 0, vocabulary_ = 0;
  device::RunStats stats_;  // of the last call
};

/// The time of a call on the machine that ran it.
void addTime(ByteSpan bytes, const GenerateOptions& options, const Step& step, MethodCalls& calls) {
  if (calls.calls == 0) return;
  RunOptions running;
  running.method = calls.method;
  running.configFile = options.configFile;
  auto time = inferenceOfRun(bytes, running, step.stats(), options.cpu);
  if (time) calls.time = std::move(*time);
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
  CARINA_TRY(running.method, decoderOf(program));
  CARINA_TRY(device::Runner runner, device::Runner::open(bytes, running));
  CARINA_TRY(Step decoder, Step::decoder(std::move(runner), running.method, tokenizer.size()));
  std::optional<Step> prefiller;
  if (program.findMethod(kPrefill)) {
    CARINA_TRY(device::Runner beside, decoder.beside(kPrefill));
    CARINA_TRY(prefiller, Step::prefiller(std::move(beside), tokenizer.size()));
    result.prefill.emplace().method = kPrefill;
    result.prefill->tokens = prefiller->tokens();
  }
  if (options.write) options.write(options.prompt);

  size_t position = 0;
  Tensor logits;
  const std::span<const int64_t> prompt(result.promptTokens);
  const auto next = [&](Step& step, MethodCalls& calls) -> Status {
    const auto count = static_cast<size_t>(step.tokens());
    CARINA_TRY(logits, step.run(prompt.subspan(position, count), static_cast<int64_t>(position), calls));
    position += count;
    return {};
  };
  while (prefiller && prompt.size() - position >= static_cast<size_t>(prefiller->tokens()))
    CARINA_RETURN_IF_ERROR(next(*prefiller, *result.prefill));
  while (position < prompt.size()) CARINA_RETURN_IF_ERROR(next(decoder, result.prompting));
  Sampler sampler(options.sampling);
  while (static_cast<int64_t>(result.tokens.size()) < options.tokens) {
    const int64_t token = sampler.choose(logits.as<float>());
    if ((result.ended = tokenizer.ends(token))) break;
    CARINA_TRY(const std::string piece, tokenizer.decode(token));
    result.tokens.push_back(token);
    result.text += piece;
    if (options.write) options.write(piece);
    if ((result.full = static_cast<int64_t>(position) == result.context)) break;
    if (static_cast<int64_t>(result.tokens.size()) == options.tokens) break;
    CARINA_TRY(logits, decoder.run(std::span(&token, 1), static_cast<int64_t>(position++), result.writing));
  }
  addTime(bytes, options, decoder, result.prompting);
  addTime(bytes, options, decoder, result.writing);
  if (prefiller) addTime(bytes, options, *prefiller, *result.prefill);
  const bool decoded = result.prompting.calls + result.writing.calls > 0;
  const device::RunStats& stats = decoded ? decoder.stats() : prefiller->stats();
  result.target = stats.target;
  result.systemConfig = stats.systemConfig;
  result.memoryMode = stats.memoryMode;
  result.warnings = stats.warnings;
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
  result->program = options.program;
  result->programBytes = static_cast<int64_t>(file->bytes().size());
  return result;
}

Measured measuredOf(const Generated& result) {
  const MethodCalls& calls = result.writing.calls > 0     ? result.writing
                             : result.prompting.calls > 0 ? result.prompting
                                                          : *result.prefill;
  Measured measured;
  measured.subject = result.program.filename().string();
  measured.cycles = calls.npuCycles / static_cast<int64_t>(calls.calls);
  if (calls.time && calls.time->clockHz > 0) measured.inferenceMs = calls.time->milliseconds();
  measured.flash = result.programBytes;
  takePlace(calls.kernels, !result.target.empty(), measured);
  return measured;
}

}  // namespace carina::pipeline
