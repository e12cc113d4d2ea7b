// SPDX-License-Identifier: Apache-2.0
// Text generation with a compiled language model: a prompt in, token after token out.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/tensor.hpp"
#include "pipeline/gates.hpp"
#include "pipeline/inference_time.hpp"

namespace carina::pipeline {

/// How the next token is chosen from the logits.
struct Sampling {
  double temperature = 0;  // 0: always the most likely token
  int64_t topK = 0;        // only among the k largest; 0: all
  double topP = 1;         // among the smallest set whose probabilities add up to at least p
  uint64_t seed = 1;
};

class Sampler {
 public:
  explicit Sampler(const Sampling& settings) : settings_(settings), random_(settings.seed) {}
  /// The index of the chosen logit; of equal logits, the first counts as larger. `logits` must not be empty.
  int64_t choose(std::span<const float> logits);

 private:
  Sampling settings_;
  std::mt19937_64 random_;
};

struct GenerateOptions {
  std::filesystem::path program;    // .pte
  std::filesystem::path tokenizer;  // tokenizer.json or a SentencePiece file
  std::string prompt;
  bool beginning = true;  // with the tokens that the tokenizer prepends to texts
  int64_t tokens = 64;    // at most, not counting those of the prompt
  int64_t context = 0;    // tokens that the state can hold; 0: as returned by the program's method
                          // get_max_context_len or get_max_seq_len
  Sampling sampling;
  std::string target, systemConfig, memoryMode;  // empty: the program's
  std::filesystem::path configFile;
  bool trusted = false;  // no limits on the work of a call and the memory of the program
  std::string cpu;       // core for the CPU part, for timing; empty: the default one
  /// Each piece of the text as soon as it is available, starting with the prompt.
  std::function<void(const std::string& piece)> write;
};

/// Calls of one method.
struct MethodCalls {
  std::string method;
  int64_t tokens = 1;  // per call
  size_t calls = 0;
  int64_t npuCycles = 0;
  double seconds = 0;                 // on this machine
  std::optional<InferenceTime> time;  // of one call, with the NPU cycles of the last; none with an Ethos-N
  std::vector<std::string> kernels;   // CPU kernels of one call, in order
};

struct Generated {
  std::filesystem::path program;
  int64_t programBytes = 0;
  std::string prompt, text;  // `text` without the prompt
  std::vector<int64_t> promptTokens, tokens;
  bool ended = false;  // by an end-of-text token
  bool full = false;   // because the context is full
  int64_t context = 0;
  /// The calls that read the prompt several tokens at a time (none without such a method), those that read
  /// the rest of it token by token, and those that generated the text.
  std::optional<MethodCalls> prefill;
  MethodCalls prompting, writing;
  std::string target, systemConfig, memoryMode;  // of the NPU; empty without one
  std::vector<Diagnostic> warnings;
};

/// The figures that gates check: a call for one token (if there was none, one of the prefill method), and the
/// program.
Measured measuredOf(const Generated& result);

/// Runs the methods of a language model (pipeline/language_program.hpp); what they remember of earlier tokens
/// is their state. The prompt goes through "prefill" as long as a full call of it fits. Errors: those of
/// languageProgram() and promptTokens().
Result<Generated> generate(const GenerateOptions& options);

}  // namespace carina::pipeline
