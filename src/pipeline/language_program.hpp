// SPDX-License-Identifier: Apache-2.0
// The requirements on a language model program: a method that processes one token at a time, optionally one
// that processes several, and logits that match a tokenizer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "device/run.hpp"
#include "pte/program.hpp"
#include "tokenizer/tokenizer.hpp"

namespace carina::pipeline {

struct LanguageMethod {
  std::string name;
  int64_t tokens = 1;  // per call
};

struct LanguageProgram {
  LanguageMethod decode;
  std::optional<LanguageMethod> prefill;
  int64_t context = 0;  // tokens that the state can hold
};

/// The decoder is the method "decode", or else the only method with inputs apart from "prefill": token [1, 1]
/// and position [1] as integers in, logits with `vocabulary` as last axis out. A method "prefill" takes
/// tokens [1, N] and their positions [N], and returns logits after the last or after each of them. `context`
/// 0: the value of the program's method get_max_context_len or get_max_seq_len, which is run with `options`.
/// `bytes` are those of `program`. Errors: other methods, a tokenizer with another vocabulary, an unknown
/// context, one larger than the program states or its state can hold.
Result<LanguageProgram> languageProgram(ByteSpan bytes, const pte::Program& program,
                                        const device::RunOptions& options, int64_t vocabulary,
                                        int64_t context);

/// The tokens of a prompt. Fails if it is empty or leaves no room in the context.
Result<std::vector<int64_t>> promptTokens(const tokenizer::Tokenizer& tokenizer, const std::string& prompt,
                                          int64_t context);

}  // namespace carina::pipeline
