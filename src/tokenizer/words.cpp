// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/words.hpp"

#include <algorithm>

namespace carina::tokenizer {
namespace {

bool isSpace(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}
bool isLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool isDigit(char c) {
  return c >= '0' && c <= '9';
}
bool isOther(char c) {
  return !isSpace(c) && !isLetter(c) && !isDigit(c);
}

/// Length of the suffix of an English contraction that `text` begins with, 0 for none.
size_t contraction(std::string_view text) {
  for (const std::string_view suffix : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
    if (text.substr(0, suffix.size()) == suffix) return suffix.size();
  }
  return 0;
}

template <typename Is>
size_t runOf(std::string_view text, size_t from, Is is) {
  while (from < text.size() && is(text[from])) ++from;
  return from;
}

/// Length of the first word of a text that is not empty.
size_t firstWord(std::string_view text) {
  if (const size_t length = contraction(text); length > 0) return length;
  const size_t start = text[0] == ' ' ? 1 : 0;
  if (start < text.size()) {
    for (const auto is : {isLetter, isDigit, isOther}) {
      if (is(text[start])) return runOf(text, start, is);
    }
  }
  // Spaces; the last one belongs to the word behind them, if there is one.
  const size_t end = runOf(text, 0, isSpace);
  return end == text.size() || end == 1 ? end : end - 1;
}

}  // namespace

Result<std::vector<std::string_view>> splitWords(std::string_view text, const WordRules& rules) {
  std::vector<std::string_view> parts;  // what the digits leave
  size_t from = 0;
  for (size_t i = 0; rules.singleDigits && i < text.size(); ++i) {
    if (!isDigit(text[i])) continue;
    if (i > from) parts.push_back(text.substr(from, i - from));
    parts.push_back(text.substr(i, 1));
    from = i + 1;
  }
  if (from < text.size()) parts.push_back(text.substr(from));
  if (!rules.gpt2) return parts;
  const auto foreign = std::find_if(text.begin(), text.end(), [](char c) { return (c & 0x80) != 0; });
  if (foreign != text.end()) {
    return fail(Code::InputMismatch,
                "byte {} of the text is not ASCII, and the tokenizer cuts words by classes of Unicode",
                foreign - text.begin())
        .withRemedy("write the text in ASCII, or use a tokenizer without a word pattern (use_regex false)");
  }
  std::vector<std::string_view> words;
  for (std::string_view part : parts) {
    while (!part.empty()) {
      const size_t length = firstWord(part);
      words.push_back(part.substr(0, length));
      part.remove_prefix(length);
    }
  }
  return words;
}

}  // namespace carina::tokenizer
