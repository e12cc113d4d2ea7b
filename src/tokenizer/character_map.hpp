// SPDX-License-Identifier: Apache-2.0
// The precompiled map of characters in SentencePiece files: a double array of what is replaced (Darts), and
// the texts that take its place.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace carina::tokenizer {

class CharacterMap {
 public:
  CharacterMap() = default;  // replaces nothing
  /// `blob` stays where it is; an empty one replaces nothing. Errors: sizes that do not fit together.
  static Result<CharacterMap> parse(std::string_view blob);

  struct Replacement {
    size_t length = 0;  // of what is replaced
    std::string_view text;
  };
  /// Of the longest entry that `text` begins with.
  std::optional<Replacement> find(std::string_view text) const;

 private:
  std::vector<uint32_t> units_;
  std::string_view texts_;  // zero-terminated each
};

}  // namespace carina::tokenizer
