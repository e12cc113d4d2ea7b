// SPDX-License-Identifier: Apache-2.0
// Splits the text form of graphs (docs/ir.md) into words; errors give line and column.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace carina::ir {

/// Whether a name needs no quotes: letters, digits and "_.+-", as in numbers and keywords, and single
/// slashes.
bool isPlainName(std::string_view name);

/// Reads a text from its beginning to its end. Blanks, line ends and "// ..." comments separate words.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  /// Offset of the next word or character, after blanks and comments.
  size_t position();
  bool atEnd() { return position() == text_.size(); }
  /// The next character without consuming it; 0 at the end.
  char peek();
  /// The next word without consuming it; empty if there is none.
  std::string_view peekWord();

  /// Consumes the next character if it is `c`.
  bool take(char c);
  /// Consumes the next word if it is `word`.
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
  /// The error at `offset`, whatever place it had.
  Error errorAt(size_t offset, const Error& error) const;

 private:
  std::string found();

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace carina::ir
