// SPDX-License-Identifier: Apache-2.0
// Tokenizers as tables for devices.
#include "format/tokenizer_table.hpp"
#include "tokenizer/tokenizer.hpp"

namespace carina::tokenizer {

namespace layout = format::tokenizer_table;

namespace {

class TableWriter {
 public:
  void word(uint64_t value) {
    for (int shift = 0; shift < 32; shift += 8) words_ += static_cast<char>(value >> shift & 0xff);
  }
  void tokens(const std::vector<int64_t>& list) {
    for (const int64_t token : list) word(static_cast<uint64_t>(token));
  }
  /// Appends a text and returns its end among all texts.
  uint64_t text(std::string_view text) {
    texts_ += text;
    return texts_.size();
  }
  std::string finish() && { return words_ + texts_; }

 private:
  std::string words_, texts_;
};

}  // namespace

Result<std::string> Tokenizer::table() const {
  if (pieces_) {
    return fail(Code::WrongKind,
                "is a SentencePiece file, but a table for devices can only hold byte-level BPE")
        .withRemedy("use a network with a tokenizer.json of that kind, or run it on this machine");
  }
  uint64_t textBytes = 0;
  for (const std::string& bytes : bytes_) textBytes += bytes.size();
  for (const Special& special : special_) textBytes += special.text.size();
  if (textBytes > layout::kMaxTextBytes)
    return fail(Code::Excessive, "its tokens have {} bytes, but a table for devices can hold {}", textBytes,
                layout::kMaxTextBytes)
        .withRemedy("use a smaller vocabulary");
  TableWriter table;
  table.word(layout::kMagic);
  table.word((words_.gpt2 ? layout::kGpt2 : 0) | (words_.singleDigits ? layout::kSingleDigits : 0));
  for (const size_t count :
       {bytes_.size(), merges_.size(), special_.size(), before_.size(), behind_.size(), textBytes})
    table.word(count);
  for (const int64_t token : ofByte_) table.word(static_cast<uint64_t>(token));
  for (size_t i = 0; i < bytes_.size(); ++i) {
    table.word(table.text(bytes_[i]) << layout::kTextShift |
               (ends(static_cast<int64_t>(i)) ? layout::kEndsTexts : 0) | (known_[i] ? layout::kKnown : 0));
  }
  for (const auto& [pair, merge] : merges_) table.tokens({pair.first, pair.second, merge.rank, merge.token});
  for (const Special& special : special_) {
    table.word(static_cast<uint64_t>(special.token));
    table.word(table.text(special.text));
  }
  table.tokens(before_);
  table.tokens(behind_);
  return std::move(table).finish();
}

}  // namespace carina::tokenizer
