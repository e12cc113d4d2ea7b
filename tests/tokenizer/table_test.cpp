// SPDX-License-Identifier: Apache-2.0
// Tokenizer tables: devices compute the same tokens as the tokenizer.json, and the bytes of a table are not
// trusted.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "base/file.hpp"
#include "carina/tokenizer.hpp"
#include "format/tokenizer_table.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"
#include "tokenizer/tokenizer.hpp"

namespace carina::tokenizer {
namespace {

rt::Bytes bytesOf(const std::string& table) {
  return rt::Bytes(reinterpret_cast<const uint8_t*>(table.data()), table.size());
}

/// Encodes with the table; nullopt if the text is refused.
std::optional<std::vector<int64_t>> encodeOnDevice(const rt::Tokenizer& tokenizer, std::string_view text) {
  std::vector<rt::TokenPiece> pieces(text.size() + 8);
  uint32_t count = 0;
  const rt::Status status = tokenizer.encode(rt::Text(text.data(), text.size()),
                                             rt::Span<rt::TokenPiece>(pieces.data(), pieces.size()), &count);
  if (!status.ok()) return std::nullopt;
  std::vector<int64_t> tokens;
  for (uint32_t i = 0; i < count; ++i) tokens.push_back(pieces[i].token);
  return tokens;
}

/// A text of words, digits, spaces, arbitrary bytes and sometimes special tokens.
std::string randomText(std::mt19937& random, bool ascii) {
  static const char* const kParts[] = {"the ",  "software", "don't",   "'ll",    " 42",   "x",
                                       "  ",    "\n",       "<|end|>", "-",      "Licen", "e",
                                       ".\n\n", "\t",       "<|",      "NAME\n", "tion",  "\0"};
  std::string text;
  const size_t parts = random() % 40;
  for (size_t i = 0; i < parts; ++i) {
    if (random() % 4 == 0)
      text += static_cast<char>(random() % (ascii ? 128 : 256));
    else
      text += kParts[random() % std::size(kParts)];
  }
  return text;
}

void expectSame(const Tokenizer& tokenizer, bool ascii) {
  const auto table = require(tokenizer.table());
  rt::Tokenizer onDevice;
  const rt::Status status = rt::Tokenizer::load(bytesOf(table), &onDevice);
  ASSERT_TRUE(status.ok()) << status.what;
  ASSERT_EQ(onDevice.size(), tokenizer.size());
  std::mt19937 random(5);
  size_t tokens = 0;
  for (int i = 0; i < 3000; ++i) {
    const std::string text = randomText(random, ascii);
    const auto expected = require(tokenizer.encode(text));
    const auto actual = encodeOnDevice(onDevice, text);
    ASSERT_EQ(actual, expected) << text;
    tokens += actual->size();
  }
  EXPECT_GT(tokens, 60000u);
  for (int64_t token = -1; token <= tokenizer.size(); ++token) {
    const auto expected = tokenizer.decode(token);
    rt::Text text;
    const bool known = onDevice.decode(static_cast<uint32_t>(token), &text).ok();
    ASSERT_EQ(known, expected.ok()) << token;
    EXPECT_EQ(std::string_view(text.data, text.size), expected.ok() ? *expected : "") << token;
    EXPECT_EQ(onDevice.ends(static_cast<uint32_t>(token)), tokenizer.ends(token)) << token;
  }
}

TEST(TokenizerTable, MatchesTheTokenizerFile) {
  const auto trained = require(Tokenizer::read(test::modelFile("language_tokenizer.json")));
  expectSame(trained, true);
  const auto file = require(MappedFile::open(test::modelFile("language_tokenizer.json")));
  std::string json(asText(file->bytes()));
  const std::string pattern = "\"use_regex\": true";
  const size_t at = json.find(pattern);
  ASSERT_NE(at, std::string::npos);
  json.replace(at, pattern.size(), "\"use_regex\": false");
  const auto bytes = require(Tokenizer::parse(json));
  expectSame(bytes, false);
}

class Tables : public testing::Test {
 protected:
  Tables() {
    const auto tokenizer = require(Tokenizer::read(test::modelFile("language_tokenizer.json")));
    table_ = *tokenizer.table();
  }
  std::string table_;
};

TEST_F(Tables, TextsThatAreTooLongOrNotAsciiAreRefused) {
  rt::Tokenizer tokenizer;
  ASSERT_TRUE(rt::Tokenizer::load(bytesOf(table_), &tokenizer).ok());
  rt::TokenPiece pieces[4];
  uint32_t count = 0;
  EXPECT_TRUE(tokenizer.encode(rt::Text("the", 3), pieces, &count).ok());
  EXPECT_EQ(tokenizer.encode(rt::Text("12345", 5), pieces, &count).code, rt::Code::OutOfMemory);
  EXPECT_EQ(tokenizer.encode(rt::Text("caf\xc3\xa9", 5), rt::Span<rt::TokenPiece>(pieces, 4), &count).code,
            rt::Code::Unsupported);
  rt::Text text;
  EXPECT_FALSE(tokenizer.decode(tokenizer.size(), &text).ok());
}

TEST_F(Tables, TruncatedAndExtendedTablesAreRefused) {
  rt::Tokenizer tokenizer;
  for (size_t size = 0; size < table_.size(); size += size < 2048 ? 1 : 97)
    EXPECT_FALSE(rt::Tokenizer::load(bytesOf(table_.substr(0, size)), &tokenizer).ok()) << size;
  EXPECT_FALSE(rt::Tokenizer::load(bytesOf(table_ + '\0'), &tokenizer).ok());
}

/// Sets each word to values that point outside the table: it is refused, or remains safe to use.
TEST_F(Tables, CorruptedWordsAreRefusedOrHarmless) {
  namespace layout = format::tokenizer_table;
  size_t refused = 0, words = 0;
  uint32_t texts = 0;
  std::memcpy(&texts, table_.data() + 4 * layout::kTextsWord, 4);
  for (size_t at = 0; at < table_.size() - texts; at += 4) {
    for (const uint32_t wrong : {0u, 0x7fffffffu, 0xffffffffu}) {
      std::string changed = table_;
      std::memcpy(changed.data() + at, &wrong, 4);
      if (changed == table_) continue;
      ++words;
      rt::Tokenizer tokenizer;
      const rt::Status status = rt::Tokenizer::load(bytesOf(changed), &tokenizer);
      refused += !status.ok();
      const bool header = at < 4 * layout::kHeaderWords && at != 4 * layout::kRulesWord;
      EXPECT_FALSE(header && status.ok()) << at;
      if (!status.ok()) continue;
      const auto tokens = encodeOnDevice(tokenizer, "the GNU software <|end|> 42");
      for (const int64_t token : tokens.value_or(std::vector<int64_t>{})) {
        rt::Text text;
        if (!tokenizer.decode(static_cast<uint32_t>(token), &text).ok()) continue;
        EXPECT_LE(text.data + text.size, changed.data() + changed.size());
      }
    }
  }
  EXPECT_GT(refused, words / 2);
}

}  // namespace
}  // namespace carina::tokenizer
