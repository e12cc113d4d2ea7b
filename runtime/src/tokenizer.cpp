// SPDX-License-Identifier: Apache-2.0
#include "carina/tokenizer.hpp"

#include "format/tokenizer_table.hpp"

namespace carina::rt {

namespace table = format::tokenizer_table;

namespace {

constexpr uint32_t kNoMerge = 0xffffffffu;

Status broken(const char* what, size_t word = Status::kNowhere) {
  return failure(Code::InvalidArgument, what, static_cast<uint32_t>(word));
}

bool beginsWith(Text text, Text prefix) {
  return text.size >= prefix.size && __builtin_memcmp(text.data, prefix.data, prefix.size) == 0;
}

}  // namespace

/// Appends pieces to the caller's array.
class Tokenizer::Output {
 public:
  explicit Output(Span<TokenPiece> pieces) : pieces_(pieces) {}

  Status put(uint32_t token) {
    if (count_ == pieces_.size)
      return failure(Code::OutOfMemory, "the text has more tokens than there is memory for");
    pieces_[count_++] = {token, kNoMerge};
    return {};
  }
  size_t count() const { return count_; }
  void setCount(size_t count) { count_ = count; }
  Span<TokenPiece> pieces() const { return pieces_; }

 private:
  Span<TokenPiece> pieces_;
  size_t count_ = 0;
};

Status Tokenizer::load(Bytes bytes, Tokenizer* tokenizer) {
  Tokenizer result;
  result.table_ = bytes;
  CARINA_RT_TRY(result.layOut());
  CARINA_RT_TRY(result.checkTokens({table::kHeaderWords, table::kBytes}));
  CARINA_RT_TRY(result.checkTokens(result.before_));
  CARINA_RT_TRY(result.checkTokens(result.behind_));
  CARINA_RT_TRY(result.checkTexts());
  CARINA_RT_TRY(result.checkMerges());
  *tokenizer = result;
  return {};
}

Status Tokenizer::layOut() {
  if (table_.size < 4 * table::kHeaderWords || word(table::kMagicWord) != table::kMagic)
    return broken("not a tokenizer table");
  uint64_t at = table::kHeaderWords + table::kBytes;
  const auto take = [&](uint32_t header, uint32_t words, Section* section) {
    section->begin = static_cast<uint32_t>(at);
    section->count = word(header);
    at += uint64_t{words} * section->count;
    return at <= table_.size / 4;
  };
  const bool fits = at <= table_.size / 4 && take(table::kTokensWord, 1, &tokens_) &&
                    take(table::kMergesWord, table::kMergeWords, &merges_) &&
                    take(table::kSpecialsWord, table::kSpecialWords, &specials_) &&
                    take(table::kBeforeWord, 1, &before_) && take(table::kBehindWord, 1, &behind_);
  textBytes_ = word(table::kTextsWord);
  if (!fits || textBytes_ > table::kMaxTextBytes || 4 * at + textBytes_ != table_.size)
    return broken("the tokenizer table is cut off or has bytes too many");
  texts_ = static_cast<uint32_t>(4 * at);
  const uint32_t rules = word(table::kRulesWord);
  if (rules > (table::kGpt2 | table::kSingleDigits))
    return failure(Code::Unsupported, "the tokenizer table asks for rules that are not known",
                   table::kRulesWord);
  rules_.gpt2 = (rules & table::kGpt2) != 0;
  rules_.singleDigits = (rules & table::kSingleDigits) != 0;
  return {};
}

Status Tokenizer::checkTokens(const Section& section) const {
  for (uint32_t i = section.begin; i < section.begin + section.count; ++i) {
    if (word(i) >= tokens_.count) return broken("the tokenizer table names a token that it does not have", i);
  }
  return {};
}

/// Texts are contiguous: their ends ascend, first of the tokens' texts, then of the special tokens'.
Status Tokenizer::checkTexts() const {
  constexpr const char* kOrder = "texts of the tokenizer table are out of order";
  uint32_t end = 0;
  for (uint32_t i = 0; i < tokens_.count; ++i) {
    const uint32_t next = word(tokens_.begin + i) >> table::kTextShift;
    if (next < end || next > textBytes_) return broken(kOrder, tokens_.begin + i);
    end = next;
  }
  for (uint32_t i = 0; i < specials_.count; ++i) {
    const size_t at = specials_.begin + size_t{table::kSpecialWords} * i;
    // An empty text would match anywhere.
    if (word(at) >= tokens_.count || word(at + 1) <= end || word(at + 1) > textBytes_)
      return broken("a special token of the tokenizer table has no text", at);
    end = word(at + 1);
  }
  return {};
}

Status Tokenizer::checkMerges() const {
  for (uint32_t i = 0; i < merges_.count; ++i) {
    const size_t at = merges_.begin + size_t{table::kMergeWords} * i;
    const uint32_t left = mergeWord(i, 0), right = mergeWord(i, 1);
    if (left >= tokens_.count || right >= tokens_.count || mergeWord(i, 3) >= tokens_.count)
      return broken("a merge of the tokenizer table names a token that it does not have", at);
    if (i == 0) continue;
    const uint32_t before = mergeWord(i - 1, 0);
    if (before > left || (before == left && mergeWord(i - 1, 1) >= right))
      return broken("merges of the tokenizer table are out of order", at);
  }
  return {};
}

uint32_t Tokenizer::mergeWord(uint32_t merge, uint32_t which) const {
  return word(merges_.begin + size_t{table::kMergeWords} * merge + which);
}

Text Tokenizer::textBetween(uint32_t begin, uint32_t end) const {
  return Text(reinterpret_cast<const char*>(table_.data + texts_ + begin), end - begin);
}

uint32_t Tokenizer::textBegin(uint32_t token) const {
  return token == 0 ? 0 : word(tokens_.begin + token - 1) >> table::kTextShift;
}

Text Tokenizer::specialText(uint32_t special) const {
  const size_t at = specials_.begin + size_t{table::kSpecialWords} * special + 1;
  return textBetween(special == 0 ? textBegin(tokens_.count) : word(at - table::kSpecialWords), word(at));
}

uint32_t Tokenizer::findMerge(uint32_t left, uint32_t right) const {
  uint32_t low = 0, high = merges_.count;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    const uint32_t first = mergeWord(middle, 0), second = mergeWord(middle, 1);
    if (first == left && second == right) return middle;
    if (first < left || (first == left && second < right))
      low = middle + 1;
    else
      high = middle;
  }
  return kNoMerge;
}

/// Merges adjacent pieces from `begin` to `end` until no merge applies, always the first pair of the lowest
/// rank.
void Tokenizer::mergePairs(Span<TokenPiece> pieces, size_t begin, size_t* end) const {
  const auto consider = [&](size_t i) {
    pieces[i].merge = i + 1 < *end ? findMerge(pieces[i].token, pieces[i + 1].token) : kNoMerge;
  };
  for (size_t i = begin; i < *end; ++i) consider(i);
  for (;;) {
    size_t best = *end;
    uint32_t lowest = 0;
    for (size_t i = begin; i < *end; ++i) {
      if (pieces[i].merge == kNoMerge) continue;
      const uint32_t rank = mergeWord(pieces[i].merge, 2);
      if (best != *end && rank >= lowest) continue;
      best = i;
      lowest = rank;
    }
    if (best == *end) return;
    pieces[best].token = mergeWord(pieces[best].merge, 3);
    --*end;
    for (size_t i = best + 1; i < *end; ++i) pieces[i] = pieces[i + 1];
    consider(best);
    if (best > begin) consider(best - 1);
  }
}

Status Tokenizer::encodePlain(Text text, Output& output) const {
  if (const size_t foreign = firstForeign(text); rules_.gpt2 && foreign < text.size)
    return failure(Code::Unsupported,
                   "the text is not ASCII, and the tokenizer cuts words by classes of Unicode");
  Words words(text, rules_);
  for (Text next = words.next(); !next.empty(); next = words.next()) {
    const size_t begin = output.count();
    for (const char c : next) CARINA_RT_TRY(output.put(word(table::kHeaderWords + static_cast<uint8_t>(c))));
    size_t end = output.count();
    mergePairs(output.pieces(), begin, &end);
    output.setCount(end);
  }
  return {};
}

uint32_t Tokenizer::specialAt(Text text) const {
  uint32_t special = 0;
  while (special < specials_.count && !beginsWith(text, specialText(special))) ++special;
  return special;
}

Status Tokenizer::encode(Text text, Span<TokenPiece> pieces, uint32_t* count) const {
  Output output(pieces);
  for (uint32_t i = 0; i < before_.count; ++i) CARINA_RT_TRY(output.put(word(before_.begin + i)));
  size_t from = 0;
  for (size_t i = 0; i < text.size;) {
    const uint32_t special = specialAt(Text(text.data + i, text.size - i));
    if (special == specials_.count) {
      ++i;
      continue;
    }
    CARINA_RT_TRY(encodePlain(Text(text.data + from, i - from), output));
    CARINA_RT_TRY(output.put(word(specials_.begin + size_t{table::kSpecialWords} * special)));
    from = i += specialText(special).size;
  }
  CARINA_RT_TRY(encodePlain(Text(text.data + from, text.size - from), output));
  for (uint32_t i = 0; i < behind_.count; ++i) CARINA_RT_TRY(output.put(word(behind_.begin + i)));
  *count = static_cast<uint32_t>(output.count());
  return {};
}

Status Tokenizer::decode(uint32_t token, Text* text) const {
  if (token >= tokens_.count || (word(tokens_.begin + token) & table::kKnown) == 0)
    return failure(Code::InvalidArgument, "no token of the tokenizer", token);
  *text = textBetween(textBegin(token), word(tokens_.begin + token) >> table::kTextShift);
  return {};
}

bool Tokenizer::ends(uint32_t token) const {
  return token < tokens_.count && (word(tokens_.begin + token) & table::kEndsTexts) != 0;
}

}  // namespace carina::rt
