// SPDX-License-Identifier: Apache-2.0
// The form of a byte-pair tokenizer on a device: little-endian words of 32 bits, then texts.
//
//   header     kHeaderWords, see Header
//   bytes      256: the token of each byte
//   tokens     each: end of its text << 2 | kEndsTexts | kKnown
//   merges     each kMergeWords: left, right, rank, token; ordered by left, then right
//   specials   each kSpecialWords: token, end of its text; the longest first
//   before     tokens in front of every text
//   behind     tokens after every text
//   texts      those of the tokens, then the spellings of the special tokens, concatenated
#pragma once

#include <stdint.h>

namespace carina::format::tokenizer_table {

constexpr uint32_t kMagic = 0x314b5443;  // "CTK1"

/// Words of the header.
enum Header : uint32_t {
  kMagicWord,
  kRulesWord,   // how text is split into words: kGpt2, kSingleDigits
  kTokensWord,  // counts of the sections
  kMergesWord,
  kSpecialsWord,
  kBeforeWord,
  kBehindWord,
  kTextsWord,  // bytes
  kHeaderWords
};
constexpr uint32_t kGpt2 = 1, kSingleDigits = 2;
constexpr uint32_t kKnown = 1, kEndsTexts = 2, kTextShift = 2;
constexpr uint32_t kBytes = 256, kMergeWords = 4, kSpecialWords = 2;
/// Of all texts combined.
constexpr uint32_t kMaxTextBytes = (1u << (32 - kTextShift)) - 1;

}  // namespace carina::format::tokenizer_table
