// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/words.hpp"

namespace carina::tokenizer {

Result<std::vector<std::string_view>> splitWords(std::string_view text, const WordRules& rules) {
  const rt::Text whole(text.data(), text.size());
  const size_t foreign = rt::firstForeign(whole);
  if (rules.gpt2 && foreign < text.size()) {
    return fail(Code::InputMismatch,
                "byte {} of the text is not ASCII, but the tokenizer splits words by Unicode classes",
                foreign)
        .withRemedy("write the text in ASCII, or use a tokenizer without a word pattern (use_regex false)");
  }
  std::vector<std::string_view> result;
  rt::Words words(whole, rules);
  for (rt::Text word = words.next(); !word.empty(); word = words.next())
    result.emplace_back(word.data, word.size);
  return result;
}

}  // namespace carina::tokenizer
