// SPDX-License-Identifier: Apache-2.0
#include "carina/words.hpp"

namespace carina::rt {
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

bool beginsWith(Text text, const char* prefix) {
  size_t i = 0;
  while (prefix[i] != 0 && i < text.size && text[i] == prefix[i]) ++i;
  return prefix[i] == 0;
}

/// Length of the suffix of an English contraction that `text` begins with, 0 for none.
size_t contraction(Text text) {
  constexpr const char* kSuffixes[] = {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};
  for (const char* suffix : kSuffixes) {
    if (beginsWith(text, suffix)) return textLength(suffix);
  }
  return 0;
}

template <typename Is>
size_t runOf(Text text, size_t from, Is is) {
  while (from < text.size && is(text[from])) ++from;
  return from;
}

/// Length of the first word of a non-empty text, by the pattern of GPT-2.
size_t firstWord(Text text) {
  if (const size_t length = contraction(text)) return length;
  const size_t start = text[0] == ' ' ? 1 : 0;
  if (start < text.size) {
    if (isLetter(text[start])) return runOf(text, start, isLetter);
    if (isDigit(text[start])) return runOf(text, start, isDigit);
    if (isOther(text[start])) return runOf(text, start, isOther);
  }
  // Whitespace; the last character belongs to the following word, if there is one.
  const size_t end = runOf(text, 0, isSpace);
  return end == text.size || end == 1 ? end : end - 1;
}

/// Removes the first `length` bytes from `text` and returns them.
Text cut(Text& text, size_t length) {
  const Text front(text.data, length);
  text = Text(text.data + length, text.size - length);
  return front;
}

}  // namespace

size_t firstForeign(Text text) {
  return runOf(text, 0, [](char c) { return (c & 0x80) == 0; });
}

Text Words::next() {
  if (part_.empty() && !rest_.empty()) {
    size_t length = rest_.size;
    if (rules_.singleDigits)
      length = isDigit(rest_[0]) ? 1 : runOf(rest_, 0, [](char c) { return !isDigit(c); });
    part_ = cut(rest_, length);
  }
  return cut(part_, rules_.gpt2 && !part_.empty() ? firstWord(part_) : part_.size);
}

}  // namespace carina::rt
