// SPDX-License-Identifier: Apache-2.0
// What makes a program a language model: a method that takes one token after the other, maybe one that takes
// many, and logits that belong to a tokenizer.
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
  int64_t tokens = 1;  // a call
};

struct LanguageProgram {
  LanguageMethod decode;
  std::optional<LanguageMethod> prefill;
  int64_t context = 0;  // tokens that the state has room for
};

/// The method "decode", or the program's only other one than "prefill" that takes inputs: token [1, 1] and
/// position [1] as integers in, logits with `vocabulary` as last axis out. A method "prefill" takes tokens
/// [1, N] and their positions [N], gives logits behind the last or behind each of them. `context` 0: what the
/// program's method get_max_context_len or get_max_seq_len says, which runs as `options` say. `bytes` are
/// those of `program`. Errors: another method, a tokenizer of another vocabulary, no word on the context,
/// one that is larger than what the program says or its state can hold.
Result<LanguageProgram> languageProgram(ByteSpan bytes, const pte::Program& program,
                                        const device::RunOptions& options, int64_t vocabulary,
                                        int64_t context);

/// The tokens of a prompt. Fails for one that is empty or leaves no room in the context.
Result<std::vector<int64_t>> promptTokens(const tokenizer::Tokenizer& tokenizer, const std::string& prompt,
                                          int64_t context);

}  // namespace carina::pipeline
