// SPDX-License-Identifier: Apache-2.0
#include "pipeline/generate.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "base/file.hpp"
#include "delivery/compile_cache.hpp"
#include "device/run.hpp"
#include "pipeline/inference_of_run.hpp"
#include "pipeline/language_program.hpp"
#include "pipeline/loaded_program.hpp"
#include "pte/program.hpp"
#include "tokenizer/tokenizer.hpp"

namespace carina::pipeline {
namespace {

double secondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// The step from tokens to the logits of the next one.
class Step {
 public:
  Step(device::Runner runner, LanguageMethod method, int64_t vocabulary)
      : runner_(std::move(runner)), method_(std::move(method)), vocabulary_(vocabulary) {}

  int64_t tokens() const { return method_.tokens; }
  /// A runner that shares this one's state, which is reset to its initial contents.
  Result<device::Runner> beside(const std::string& method) const { return runner_.openSharingNpu(method); }

  /// Logits after the last of `tokens`, the first of which is at `position`.
  Result<Tensor> run(std::span<const int64_t> tokens, int64_t position, MethodCalls& calls) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<Tensor> inputs;
    for (const device::Runner::Io& io : runner_.inputs()) {
      Tensor input = Tensor::zeros(io.dtype, io.shape);
      for (int64_t i = 0; i < method_.tokens; ++i)
        input.setIntegerAt(i, inputs.empty() ? tokens[static_cast<size_t>(i)] : position + i);
      inputs.push_back(std::move(input));
    }
    auto ran = runner_.run(inputs);
    if (!ran) {
      return std::move(ran)
          .error()
          .at(fmt::format("the call of {} for position {}", method_.name, position))
          .withRemedy(
              "if earlier positions ran, the state has no room for more tokens: give a smaller --context");
    }
    device::RunOutcome outcome = std::move(*ran);
    stats_ = std::move(outcome.stats);
    calls.method = method_.name;
    calls.tokens = method_.tokens;
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
  device::Runner runner_;
  LanguageMethod method_;
  int64_t vocabulary_ = 0;
  device::RunStats stats_;  // of the last call
};

/// The time of a call on the machine that executed it.
void addTime(ByteSpan bytes, const GenerateOptions& options, const Step& step, MethodCalls& calls) {
  if (calls.calls == 0) return;
  RunOptions running;
  running.method = calls.method;
  running.configFile = options.configFile;
  auto time = inferenceOfRun(bytes, running, step.stats(), options.cpu);
  if (time) calls.time = std::move(*time);
}

Result<Generated> run(const GenerateOptions& options, ByteSpan bytes, const tokenizer::Tokenizer& tokenizer) {
  CARINA_TRY(const pte::Program program, pte::readProgram(bytes));
  device::RunOptions running;
  running.target = options.target;
  running.systemConfig = options.systemConfig;
  running.memoryMode = options.memoryMode;
  running.configFile = options.configFile;
  running.trusted = options.trusted;
  Generated result;
  result.prompt = options.prompt;
  CARINA_TRY(const LanguageProgram language,
             languageProgram(bytes, program, running, tokenizer.size(), options.context));
  result.context = language.context;
  CARINA_TRY(result.promptTokens, promptTokens(tokenizer, options.prompt, language.context));
  running.method = language.decode.name;
  CARINA_TRY(device::Runner runner, device::Runner::open(bytes, running));
  Step decoder(std::move(runner), language.decode, tokenizer.size());
  std::optional<Step> prefiller;
  if (language.prefill) {
    CARINA_TRY(device::Runner beside, decoder.beside(language.prefill->name));
    prefiller.emplace(std::move(beside), *language.prefill, tokenizer.size());
    result.prefill.emplace().method = language.prefill->name;
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
  // 53 bits: the same values with every standard library.
  double left = static_cast<double>(random_() >> 11) * 0x1p-53 * kept;
  for (size_t i = 0; i < count; ++i) {
    if (left < weights[i]) return order[i];
    left -= weights[i];
  }
  return order[count - 1];
}

Result<Generated> generate(const GenerateOptions& options) {
  CARINA_TRY(tokenizer::Tokenizer tokenizer, tokenizer::Tokenizer::read(options.tokenizer));
  if (!options.beginning) tokenizer.leaveOutBeginning();
  CARINA_TRY(const auto file, MappedFile::open(options.program));
  auto loaded =
      LoadedProgram::from(file->bytes(), {options.target, options.systemConfig, options.memoryMode,
                                          options.configFile, delivery::defaultCacheFolder(), true});
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
  recordPlacement(calls.kernels, !result.target.empty(), measured);
  return measured;
}

}  // namespace carina::pipeline
