// SPDX-License-Identifier: Apache-2.0
// The precompiled character map of SentencePiece files: a double-array trie (Darts) of the texts to replace,
// and their replacements.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace carina::tokenizer {

class CharacterMap {
 public:
  CharacterMap() = default;  // replaces nothing
  /// `blob` must outlive the map; an empty one replaces nothing. Errors: sizes that do not fit together.
  static Result<CharacterMap> parse(std::string_view blob);

  struct Replacement {
    size_t length = 0;  // of what is replaced
    std::string_view text;
  };
  /// The replacement of the longest entry that `text` begins with.
  std::optional<Replacement> find(std::string_view text) const;

 private:
  std::vector<uint32_t> units_;
  std::string_view texts_;  // zero-terminated each
};

}  // namespace carina::tokenizer
