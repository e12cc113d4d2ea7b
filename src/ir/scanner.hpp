// SPDX-License-Identifier: Apache-2.0
// The words of the text form of graphs (docs/ir.md), and errors that name the line and column.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace carina::ir {

/// Whether a name may stand without quotes: letters, digits and "_.+-", as in numbers and keywords, and
/// single slashes.
bool isPlainName(std::string_view name);

/// Reads a text from its beginning to its end. Blanks, line ends and "// ..." comments separate words.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  /// Offset of the next word or character, behind blanks and comments.
  size_t position();
  bool atEnd() { return position() == text_.size(); }
  /// The next character without taking it; 0 at the end.
  char peek();
  /// The next word without taking it; empty where none stands.
  std::string_view peekWord();

  /// Takes the next character when it is this one.
  bool take(char c);
  /// Takes the next word when it is this one.
  bool takeWord(std::string_view word);
  Status expect(char c, std::string_view why);
  /// `what` names the word in the error: "an operator's name".
  Result<std::string_view> word(std::string_view what);
  /// "text" in double quotes.
  Result<std::string> string(std::string_view what);
  /// A plain name or a string.
  Result<std::string> name(std::string_view what);

  /// "expected WHAT, found X", at the next word.
  Error expected(std::string_view what);
  /// The error at a place of the text, whatever place it had.
  Error errorAt(size_t offset, const Error& error) const;

 private:
  std::string found();

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace carina::ir
