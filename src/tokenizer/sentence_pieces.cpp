// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/sentence_pieces.hpp"

#include <algorithm>
#include <cfloat>
#include <queue>
#include <unordered_map>

namespace carina::tokenizer {
namespace {

using Kind = SentencePieceFile::Kind;

constexpr std::string_view kSpace = "\xe2\x96\x81";        // U+2581
constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD
constexpr float kUnknownPenalty = 10;

/// Exceeds the total of any other pieces, whose scores are logarithms of probabilities.
float userDefinedScore(size_t bytes) {
  return static_cast<float>(0.1 * static_cast<double>(bytes - 1));
}

/// Length of a character according to its first byte, at most that of the text.
size_t characterLength(std::string_view text) {
  const auto lead = static_cast<uint8_t>(text[0]);
  const size_t length = lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  return std::min(length, text.size());
}

/// Length of the UTF-8 character that the text begins with; 0 if it is invalid.
size_t validLength(std::string_view text) {
  const auto at = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const auto lead = at(0);
  if (lead < 0x80) return 1;
  const size_t length = lead < 0xc0 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf8 ? 4 : 0;
  if (length == 0 || text.size() < length) return 0;
  uint32_t character = lead & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((at(i) & 0xc0) != 0x80) return 0;
    character = character << 6 | (at(i) & 0x3fu);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = character >= 0xd800 && character < 0xe000;
  return character < kLeast[length] || character > 0x10ffff || surrogate ? 0 : length;
}

/// Merges adjacent pairs by the score of the merged piece, best first, leftmost first among equal ones.
class Merger {
 public:
  Merger(const PieceTrie& pieces, const SentencePieceFile& file) : pieces_(pieces), file_(file) {}

  /// `frozen`: does not merge.
  void add(std::string_view text, bool frozen) {
    const auto index = static_cast<int64_t>(symbols_.size());
    symbols_.push_back({text, index - 1, -1, frozen});
    if (index > 0) symbols_[static_cast<size_t>(index - 1)].next = index;
  }

  /// The remaining texts; unused pieces are split again.
  std::vector<std::string_view> run() {
    for (int64_t i = 1; i < static_cast<int64_t>(symbols_.size()); ++i) consider(i - 1, i);
    while (!open_.empty()) {
      const Pair pair = open_.top();
      open_.pop();
      Symbol &left = at(pair.left), &right = at(pair.right);
      if (left.text.empty() || right.text.empty() || left.text.size() + right.text.size() != pair.size)
        continue;
      left.text = std::string_view(left.text.data(), pair.size);
      left.next = right.next;
      if (right.next >= 0) at(right.next).previous = pair.left;
      right.text = {};
      consider(left.previous, pair.left);
      consider(pair.left, left.next);
    }
    std::vector<std::string_view> texts;
    for (int64_t i = symbols_.empty() ? -1 : 0; i >= 0; i = at(i).next) takeApart(at(i).text, texts);
    return texts;
  }

 private:
  struct Symbol {
    std::string_view text;
    int64_t previous, next;  // -1: none
    bool frozen;
  };
  struct Pair {
    float score;
    int64_t left, right;
    size_t size;
    bool operator<(const Pair& other) const {
      return score < other.score || (score == other.score && left > other.left);
    }
  };
  Symbol& at(int64_t i) { return symbols_[static_cast<size_t>(i)]; }

  void consider(int64_t left, int64_t right) {
    if (left < 0 || right < 0 || at(left).frozen || at(right).frozen) return;
    const std::string_view text(at(left).text.data(), at(left).text.size() + at(right).text.size());
    const auto token = pieces_.find(text);
    if (!token) return;
    const SentencePieceFile::Piece& piece = file_.pieces[static_cast<size_t>(*token)];
    open_.push({piece.score, left, right, text.size()});
    if (piece.kind == Kind::Unused) parts_[text] = at(left).text.size();
  }

  void takeApart(std::string_view text, std::vector<std::string_view>& texts) const {
    const auto token = pieces_.find(text);
    const bool unused = token && file_.pieces[static_cast<size_t>(*token)].kind == Kind::Unused;
    const auto found = unused ? parts_.find(text) : parts_.end();
    if (found == parts_.end()) {
      texts.push_back(text);
      return;
    }
    takeApart(text.substr(0, found->second), texts);
    takeApart(text.substr(found->second), texts);
  }

  const PieceTrie& pieces_;
  const SentencePieceFile& file_;
  std::vector<Symbol> symbols_;
  std::priority_queue<Pair> open_;
  std::unordered_map<std::string_view, size_t> parts_;  // of unused pieces: bytes of the left part
};

}  // namespace

Result<SentencePieces> SentencePieces::parse(std::string_view bytes) {
  SentencePieces result;
  result.bytes_.assign(bytes.begin(), bytes.end());
  CARINA_TRY(result.file_, readSentencePieceFile({result.bytes_.data(), result.bytes_.size()}));
  CARINA_TRY(result.map_, CharacterMap::parse(result.file_.normalizer.map));
  result.lowest_ = FLT_MAX;
  for (size_t i = 0; i < result.file_.pieces.size(); ++i) {
    const SentencePieceFile::Piece& piece = result.file_.pieces[i];
    const auto token = static_cast<int64_t>(i);
    const bool ordinary =
        piece.kind == Kind::Normal || piece.kind == Kind::UserDefined || piece.kind == Kind::Unused;
    (ordinary ? result.pieces_ : result.reserved_).add(piece.text, token);
    if (piece.kind == Kind::UserDefined) result.userDefined_.add(piece.text, token);
    if (piece.kind != Kind::Normal) continue;
    result.lowest_ = std::min(result.lowest_, piece.score);
  }
  return result;
}

int64_t SentencePieces::control(std::string_view name) const {
  const auto token = reserved_.find(name);
  return token && file_.pieces[static_cast<size_t>(*token)].kind == Kind::Control ? *token : -1;
}

CharacterMap::Replacement SentencePieces::first(std::string_view text) const {
  if (const size_t length = userDefined_.longestPrefix(text); length > 0)
    return {length, text.substr(0, length)};
  if (const auto replaced = map_.find(text)) return *replaced;
  const size_t length = validLength(text);
  return length > 0 ? CharacterMap::Replacement{length, text.substr(0, length)}
                    : CharacterMap::Replacement{1, kReplacement};
}

std::string SentencePieces::normalize(std::string_view text) const {
  const SentencePieceFile::Normalizer& rules = file_.normalizer;
  const std::string_view space = rules.escapeWhitespace ? kSpace : " ";
  std::string result;
  while (rules.removeExtraWhitespace && !text.empty()) {
    const CharacterMap::Replacement next = first(text);
    if (next.text != " ") break;
    text.remove_prefix(next.length);
  }
  if (text.empty()) return result;
  if (rules.dummyPrefix && !file_.whitespaceAsSuffix) result += space;
  bool afterSpace = rules.removeExtraWhitespace;
  while (!text.empty()) {
    CharacterMap::Replacement next = first(text);
    text.remove_prefix(next.length);
    while (afterSpace && next.text.starts_with(' ')) next.text.remove_prefix(1);
    for (const char c : next.text) {
      if (c == ' ')
        result += space;
      else
        result += c;
    }
    if (!next.text.empty()) afterSpace = next.text.ends_with(' ');
    afterSpace = afterSpace && rules.removeExtraWhitespace;
  }
  while (rules.removeExtraWhitespace && result.ends_with(space)) result.resize(result.size() - space.size());
  if (rules.dummyPrefix && file_.whitespaceAsSuffix) result += space;
  return result;
}

int64_t SentencePieces::tokenOf(std::string_view piece) const {
  if (const auto token = reserved_.find(piece)) return *token;
  return pieces_.find(piece).value_or(static_cast<int64_t>(file_.unknown));
}

/// The pieces with the highest total score; among equal totals, those whose last piece begins first.
std::vector<SentencePieces::Part> SentencePieces::likeliest(std::string_view text) const {
  struct Best {
    int64_t token = -1, begin = -1;
    float score = 0;
  };
  std::vector<Best> ends(text.size() + 1);
  constexpr float kMaxScore = 100000;
  size_t frontier = 0;  // the last end that was offered
  const auto offer = [&](size_t begin, size_t length, int64_t token, float score) {
    frontier = std::max(frontier, begin + length);
    Best& best = ends[begin + length];
    const float sum = score + ends[begin].score;
    if (best.begin >= 0 && sum <= best.score) return;
    best = {token, static_cast<int64_t>(begin), sum};
  };
  for (size_t begin = 0; begin < text.size();) {
    const float reached = ends[begin].score;
    // Scores of long texts would lose precision; only differences matter.
    if (reached < -kMaxScore || reached > kMaxScore) {
      for (size_t end = begin; end <= frontier; ++end) ends[end].score -= reached;
    }
    const std::string_view rest = text.substr(begin);
    const size_t length = characterLength(rest);
    bool known = false;
    pieces_.forEachPrefix(rest, [&](size_t bytes, int64_t token) {
      const SentencePieceFile::Piece& piece = file_.pieces[static_cast<size_t>(token)];
      if (piece.kind == Kind::Unused) return;
      const float score = piece.kind == Kind::UserDefined ? userDefinedScore(bytes) : piece.score;
      offer(begin, bytes, token, score);
      known = known || bytes == length;
    });
    if (!known) offer(begin, length, static_cast<int64_t>(file_.unknown), lowest_ - kUnknownPenalty);
    begin += length;
  }
  std::vector<Part> parts;
  for (size_t end = text.size(); end > 0;) {
    const auto begin = static_cast<size_t>(ends[end].begin);
    parts.push_back({text.substr(begin, end - begin), ends[end].token});
    end = begin;
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<SentencePieces::Part> SentencePieces::merged(std::string_view text) const {
  Merger merger(pieces_, file_);
  while (!text.empty()) {
    const size_t frozen = userDefined_.longestPrefix(text);
    const size_t length = frozen > 0 ? frozen : characterLength(text);
    merger.add(text.substr(0, length), frozen > 0);
    text.remove_prefix(length);
  }
  std::vector<Part> parts;
  for (const std::string_view piece : merger.run()) parts.push_back({piece, tokenOf(piece)});
  return parts;
}

std::vector<int64_t> SentencePieces::encode(std::string_view text) const {
  const std::string normalized = normalize(text);
  std::vector<int64_t> tokens;
  bool afterUnknown = false;
  for (const Part& part :
       file_.model == SentencePieceFile::Model::Bpe ? merged(normalized) : likeliest(normalized)) {
    const bool unknown = part.token == static_cast<int64_t>(file_.unknown);
    if (unknown && file_.byteFallback) {
      for (const char c : part.text) tokens.push_back(tokenOf(bytePiece(static_cast<uint8_t>(c))));
    } else if (!unknown || !afterUnknown) {  // a run of unknown ones is one token
      tokens.push_back(part.token);
    }
    afterUnknown = unknown;
  }
  return tokens;
}

}  // namespace carina::tokenizer
