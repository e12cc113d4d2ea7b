// SPDX-License-Identifier: Apache-2.0
// Text from a compiled language model: a prompt in, one token after the other out.
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
  double temperature = 0;  // 0: always the largest
  int64_t topK = 0;        // among the k largest only; 0: all
  double topP = 1;         // among the fewest whose probabilities sum up to p
  uint64_t seed = 1;
};

class Sampler {
 public:
  explicit Sampler(const Sampling& settings) : settings_(settings), random_(settings.seed) {}
  /// The index of the chosen logit; of equal ones the first counts as the larger. Not empty.
  int64_t choose(std::span<const float> logits);

 private:
  Sampling settings_;
  std::mt19937_64 random_;
};

struct GenerateOptions {
  std::filesystem::path program;    // .pte
  std::filesystem::path tokenizer;  // tokenizer.json or a SentencePiece file
  std::string prompt;
  bool beginning = true;  // with the tokens that the tokenizer puts in front of texts
  int64_t tokens = 64;    // at most, without those of the prompt
  int64_t context = 0;    // tokens that the state has room for; 0: what the program's method
                          // get_max_context_len or get_max_seq_len says
  Sampling sampling;
  std::string target, systemConfig, memoryMode;  // empty: the program's
  std::filesystem::path configFile;
  bool trusted = false;  // no limits on the work of a call and the memory of the program
  std::string cpu;       // core of the CPU's part, for its time; empty: the usual one
  /// Each piece of the text as soon as it is there, that of the prompt first.
  std::function<void(const std::string& piece)> write;
};

/// Calls of one method.
struct MethodCalls {
  std::string method;
  int64_t tokens = 1;  // a call
  size_t calls = 0;
  int64_t npuCycles = 0;
  double seconds = 0;                 // of this machine
  std::optional<InferenceTime> time;  // of one call, of the last NPU cycles; none with an Ethos-N
  std::vector<std::string> kernels;   // CPU kernels of one call, in order
};

struct Generated {
  std::filesystem::path program;
  int64_t programBytes = 0;
  std::string prompt, text;  // `text` without the prompt
  std::vector<int64_t> promptTokens, tokens;
  bool ended = false;  // by a token that ends texts
  bool full = false;   // by the end of the context
  int64_t context = 0;
  /// What read the prompt many tokens a call (none without such a method), what read the rest of it token by
  /// token, and what wrote the text.
  std::optional<MethodCalls> prefill;
  MethodCalls prompting, writing;
  std::string target, systemConfig, memoryMode;  // of the NPU; empty without one
  std::vector<Diagnostic> warnings;
};

/// What gates are about: a call for one token (with none, one of the prefill method), and the program.
Measured measuredOf(const Generated& result);

/// Runs a language model's methods (pipeline/language_program.hpp); what they keep of earlier tokens is their
/// state. As much of the prompt as "prefill" takes whole goes through it. Errors: those of languageProgram()
/// and promptTokens().
Result<Generated> generate(const GenerateOptions& options);

}  // namespace carina::pipeline
