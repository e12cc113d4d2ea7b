// SPDX-License-Identifier: Apache-2.0
// SentencePiece files: random texts become the tokens that SentencePiece makes of them
// (models/sentencepiece_files.py), and files that are broken or of another kind are refused.
#include "tokenizer/sentence_pieces.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "base/file.hpp"
#include "sentence_piece_bytes.hpp"
#include "support/contents.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"
#include "tokenizer/tokenizer.hpp"

namespace carina::tokenizer {
namespace {

using Json = nlohmann::json;

std::filesystem::path dataFile(const std::string& name) {
  return test::dataDir() / "tokenizer" / name;
}

/// `file`.model gives the tokens that `file`.json has for its texts.
void expectTokens(const std::filesystem::path& file) {
  SCOPED_TRACE(file);
  const auto pieces = require(SentencePieces::parse(test::contentsOf(file.string() + ".model")));
  const Json expected = Json::parse(test::contentsOf(file.string() + ".json"));
  const auto whole = require(Tokenizer::read(file.string() + ".model"));
  ASSERT_EQ(whole.size(), static_cast<int64_t>(expected["pieces"].size()));
  EXPECT_TRUE(whole.ends(expected["eos"].get<int64_t>()));
  for (size_t i = 0; i < expected["pieces"].size(); ++i)
    ASSERT_EQ(pieces.file().pieces[i].text, expected["pieces"][i].get<std::string>()) << i;
  size_t tokens = 0;
  for (const Json& one : expected["texts"]) {
    const auto given = one["text"].get<std::string>();
    std::vector<int64_t> wanted = one["tokens"].get<std::vector<int64_t>>();
    ASSERT_EQ(pieces.encode(given), wanted) << one["text"];
    tokens += wanted.size();
    wanted.insert(wanted.begin(), expected["bos"].get<int64_t>());
    ASSERT_EQ(*whole.encode(given), wanted);
  }
  EXPECT_GT(tokens, 20 * expected["texts"].size());
}

TEST(SentencePieces, GiveTheTokensOfSentencePiece) {
  expectTokens(dataFile("unigram"));
  expectTokens(dataFile("bpe"));
}

/// More of them, made by `sentencepiece_files.py large` and `texts`, where CARINA_SENTENCEPIECES names their
/// folder.
TEST(SentencePieces, GiveTheTokensOfSentencePieceForOtherFiles) {
  const char* folder = std::getenv("CARINA_SENTENCEPIECES");
  if (folder == nullptr) GTEST_SKIP() << "CARINA_SENTENCEPIECES names no folder";
  for (const auto& entry : test::filesIn(folder, ".model")) {
    std::filesystem::path file = entry;
    expectTokens(file.replace_extension());
  }
}

TEST(SentencePieces, DecodeToTheTextThatWasEncoded) {
  auto tokenizer = require(Tokenizer::read(dataFile("bpe.model")));
  const std::string given = "The NPU  runs 42 caf\xc3\xa9s \xf0\x9f\x98\x80 <|im_end|>.";
  const auto decoded = [&] {
    std::string result;
    const auto tokens = require(tokenizer.encode(given));
    for (const int64_t token : tokens) result += *tokenizer.decode(token);
    return result;
  };
  EXPECT_EQ(decoded(), " " + given);  // in front: the space that every text begins with
  EXPECT_EQ(tokenizer.encode("a")->front(), 1);
  tokenizer.leaveOutBeginning();
  EXPECT_NE(tokenizer.encode("a")->front(), 1);
  EXPECT_EQ(*tokenizer.decode(0), " \xe2\x81\x87 ");
  EXPECT_FALSE(tokenizer.table().ok());
}

using file::integer;
using file::kPlain;
using file::kUnknown;
using file::piece;
using file::text;

std::vector<int64_t> tokensOf(const std::string& file, std::string_view given) {
  return require(SentencePieces::parse(file)).encode(given);
}

TEST(SentencePieces, UnusedPiecesAreTakenApart) {
  const std::string bpe = text(2, integer(3, 2)) + kPlain;
  const std::string letters = piece("a", -9) + piece("b", -9) + piece("c", -9);
  EXPECT_EQ(tokensOf(kUnknown + letters + piece("ab", -1) + piece("abc", -2) + bpe, "abcx"),
            (std::vector<int64_t>{5, 0}));
  EXPECT_EQ(tokensOf(kUnknown + letters + piece("ab", -1) + piece("abc", -2, 5) + bpe, "abc"),
            (std::vector<int64_t>{4, 3}));
  EXPECT_EQ(tokensOf(kUnknown + letters + piece("ab", -1, 5) + piece("abc", -2, 5) + bpe, "abcab"),
            (std::vector<int64_t>{1, 2, 3, 1, 2}));
  EXPECT_EQ(tokensOf(kUnknown + letters + piece("ab", -1) + piece("abc", -2, 5) + kPlain, "abc"),
            (std::vector<int64_t>{4, 3}));
}

TEST(SentencePieces, RunsOfUnknownCharactersAreOneToken) {
  EXPECT_EQ(tokensOf(kUnknown + piece("a", -1) + kPlain, "xxaxx\xffx"), (std::vector<int64_t>{0, 1, 0}));
}

TEST(SentencePieces, WhatIsBrokenOrOfAnotherKindIsNamed) {
  struct Case {
    std::string file, says;
  };
  const std::string a = piece("a", -1);
  const std::string map("\x08\0\0\0abcd", 8);
  const Case cases[] = {
      {kUnknown + a + text(2, integer(3, 3)), "trainer_spec.model_type: is 'word'"},
      {kUnknown + a + text(2, integer(3, 4)), "trainer_spec.model_type: is 'char'"},
      {kUnknown + a + text(2, integer(3, 9)), "trainer_spec.model_type: is 9"},
      {kUnknown + a + a, "pieces[2]: 'a' appears twice"},
      {kUnknown + piece("", -1), "pieces[1]: has no text"},
      {kUnknown + piece(std::string(5000, 'a'), -1), "pieces[1]: has more than 4096 bytes"},
      {kUnknown + piece("a", -1, 7), "pieces[1]: has the unknown type 7"},
      {kUnknown + piece("a", NAN), "pieces[1]: has a score that is not a finite number"},
      {a, "pieces: has 0 pieces for unknown text"},
      {kUnknown + piece("<u>", 0, 2), "pieces: has 2 pieces for unknown text"},
      {kUnknown + piece("<0x41>", 0, 6),
       "pieces[1]: '<0x41>' has the type of byte pieces, but byte_fallback is not"},
      {kUnknown + piece("<0x4>", 0, 6) + text(2, integer(35, 1)),
       "'<0x4>' has the type of byte pieces, but does not name a byte"},
      {kUnknown + piece("<0x00>", 0, 6) + text(2, integer(35, 1)), "pieces: has no piece for the byte 0x01"},
      {kUnknown + a + text(5, text(2, map)), "denormalizer_spec: post-processes decoded text"},
      {kUnknown + a + text(3, text(2, map)), "normalizer_spec.precompiled_charsmap: has inconsistent sizes"},
      {kUnknown + text(1, integer(1, 5)), "pieces[1]: is not a message"},
      {kUnknown + text(2, text(3, "x")), "trainer_spec: is not a message"},
      {kUnknown + "\x0a\x7f", "the file: is not a message"},
      {kUnknown + std::string("\x0b\x0b"), "the file: is not a message"},
      {kUnknown + integer(1, 3), "the file: is not a message"},
      {"PK", "is neither a tokenizer.json nor a SentencePiece file"},
      {"", "is neither a tokenizer.json nor a SentencePiece file"},
  };
  for (const Case& one : cases) {
    const std::string error = errorOf(Tokenizer::parse(one.file));
    EXPECT_NE(error.find(one.says), std::string::npos) << one.says << ": " << error;
  }
}

/// Whatever the bytes are: an error, or tokens of the file.
TEST(SentencePieces, ChangedFilesAreRefusedOrHarmless) {
  std::mt19937 random(3);
  size_t read = 0;
  for (const char* name : {"unigram.model", "bpe.model"}) {
    const std::string file = test::contentsOf(dataFile(name));
    for (int i = 0; i < 300; ++i) {
      std::string changed = file.substr(0, random() % 8 == 0 ? random() % file.size() : file.size());
      for (size_t n = random() % 4 + 1; n > 0 && !changed.empty(); --n)
        changed[random() % changed.size()] = static_cast<char>(random());
      const auto tokenizer = Tokenizer::parse(changed);
      if (!tokenizer.ok()) continue;
      ++read;
      const auto tokens =
          require(tokenizer->encode("caf\xc3\xa9 \xef\xac\x81le\xe2\x80\xa6 <|im_end|> \xff 42"));
      for (const int64_t token : tokens) EXPECT_TRUE(tokenizer->decode(token).ok());
    }
  }
  EXPECT_GT(read, 100u);
}

}  // namespace
}  // namespace carina::tokenizer
