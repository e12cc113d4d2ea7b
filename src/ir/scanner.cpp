// SPDX-License-Identifier: Apache-2.0
#include "ir/scanner.hpp"

#include <algorithm>

#include "ir/quoted.hpp"

namespace carina::ir {

namespace {

bool isWordCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         c == '+' || c == '-';
}

/// The plain name that a text begins with.
std::string_view plainName(std::string_view text) {
  size_t end = 0;
  while (end < text.size() &&
         (isWordCharacter(text[end]) || (text[end] == '/' && text.substr(end, 2) != "//")))
    ++end;
  return text.substr(0, end);
}

}  // namespace

bool isPlainName(std::string_view name) {
  return !name.empty() && name.back() != '/' && plainName(name).size() == name.size();
}

size_t Scanner::position() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      ++at_;
    } else if (text_.substr(at_, 2) == "//") {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else {
      break;
    }
  }
  return at_;
}

char Scanner::peek() {
  return atEnd() ? '\0' : text_[at_];
}

std::string_view Scanner::peekWord() {
  const size_t begin = position();
  size_t end = begin;
  while (end < text_.size() && isWordCharacter(text_[end])) ++end;
  return text_.substr(begin, end - begin);
}

bool Scanner::take(char c) {
  if (atEnd() || text_[at_] != c) return false;
  ++at_;
  return true;
}

bool Scanner::takeWord(std::string_view word) {
  if (peekWord() != word) return false;
  at_ += word.size();
  return true;
}

Status Scanner::expect(char c, std::string_view why) {
  if (take(c)) return {};
  return expected(fmt::format("'{}' {}", c, why));
}

Result<std::string_view> Scanner::word(std::string_view what) {
  const std::string_view word = peekWord();
  if (word.empty()) return expected(what);
  at_ += word.size();
  return word;
}

Result<std::string> Scanner::string(std::string_view what) {
  if (peek() != '"') return expected(what);
  const size_t begin = at_ + 1;
  size_t end = begin;
  while (end < text_.size() && text_[end] != '"' && text_[end] != '\n') end += text_[end] == '\\' ? 2 : 1;
  if (end >= text_.size() || text_[end] != '"') {
    return errorAt(at_, fail(Code::BadText, "expected {}, found an unterminated string", what)
                            .withRemedy("close the string with '\"' on the same line"));
  }
  auto value = unquoted(text_.substr(begin, end - begin));
  if (!value) {
    return errorAt(at_,
                   fail(Code::BadText, "expected {}, found a string with an unknown escape", what)
                       .withRemedy("the escapes are \\\" \\\\ \\n and \\xNN with two hexadecimal digits"));
  }
  at_ = end + 1;
  return std::move(*value);
}

Result<std::string> Scanner::name(std::string_view what) {
  if (peek() == '"') return string(what);
  const std::string_view name = plainName(text_.substr(position()));
  if (name.empty()) return expected(what);
  at_ += name.size();
  return std::string(name);
}

std::string Scanner::found() {
  constexpr size_t kMaxShown = 40;
  if (atEnd()) return "the end of the text";
  const std::string_view word = peekWord();
  if (word.size() > kMaxShown) return fmt::format("'{}...'", word.substr(0, kMaxShown));
  if (!word.empty()) return fmt::format("'{}'", word);
  const auto byte = static_cast<unsigned char>(text_[at_]);
  if (byte >= 0x20 && byte < 0x7f) return fmt::format("'{}'", text_[at_]);
  return fmt::format("a byte {:#04x}", byte);
}

Error Scanner::expected(std::string_view what) {
  const std::string text = found();
  return errorAt(at_, fail(Code::BadText, "expected {}, found {}", what, text));
}

Error Scanner::errorAt(size_t offset, const Error& error) const {
  const std::string_view before = text_.substr(0, offset);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t lineStart = before.rfind('\n') + 1;  // npos + 1 is 0
  std::vector<Diagnostic> diagnostics = error.diagnostics();
  for (Diagnostic& diagnostic : diagnostics)
    diagnostic.place = fmt::format("line {}, column {}", line, offset - lineStart + 1);
  return Error(std::move(diagnostics));
}

}  // namespace carina::ir
