// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/tokenizer.hpp"

#include <gtest/gtest.h>

#include <string>

#include "support/require.hpp"

namespace carina::tokenizer {
namespace {

std::vector<std::string> wordsOf(std::string_view text, WordRules rules = {true, false}) {
  const auto words = splitWords(text, rules);
  EXPECT_TRUE(words.ok());
  return words.ok() ? std::vector<std::string>(words->begin(), words->end()) : std::vector<std::string>{};
}

using Words = std::vector<std::string>;

TEST(Words, FollowThePatternOfGpt2) {
  EXPECT_EQ(wordsOf("Hello, world"), (Words{"Hello", ",", " world"}));
  EXPECT_EQ(wordsOf("don't we'll 'tis"), (Words{"don", "'t", " we", "'ll", " '", "tis"}));
  EXPECT_EQ(wordsOf("in 2026:  two  spaces "), (Words{"in", " 2026", ":", " ", " two", " ", " spaces", " "}));
  EXPECT_EQ(wordsOf("a\nb\n\n  c"), (Words{"a", "\n", "b", "\n\n ", " c"}));
  EXPECT_EQ(wordsOf(" --x\t"), (Words{" --", "x", "\t"}));
  EXPECT_EQ(wordsOf(""), Words{});
}

TEST(Words, IndividualDigitsAndNoPattern) {
  EXPECT_EQ(wordsOf("at 42b", {true, true}), (Words{"at", " ", "4", "2", "b"}));
  EXPECT_EQ(wordsOf("all of it", {}), (Words{"all of it"}));
  EXPECT_EQ(wordsOf("caf\xc3\xa9", {}), (Words{"caf\xc3\xa9"}));
}

TEST(Words, NonAsciiIsRefusedWithThePattern) {
  EXPECT_NE(errorOf(splitWords("caf\xc3\xa9", {true, false})).find("byte 3 of the text is not ASCII"),
            std::string::npos);
}

TEST(BytePairs, LowestRankFirstLeftmostOfEqualOnes) {
  // a b -> x (rank 1), b c -> y (rank 0), x x -> z (rank 2)
  const Merges merges{{{1, 2}, {1, 10}}, {{2, 3}, {0, 11}}, {{10, 10}, {2, 12}}};
  EXPECT_EQ(mergePairs({1, 2, 3}, merges), (std::vector<int64_t>{1, 11}));
  EXPECT_EQ(mergePairs({1, 2, 1, 2}, merges), (std::vector<int64_t>{12}));
  EXPECT_EQ(mergePairs({1, 2, 1, 2, 1, 2}, merges), (std::vector<int64_t>{12, 10}));
  const Merges same{{{1, 1}, {0, 2}}};
  EXPECT_EQ(mergePairs({1, 1, 1}, same), (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(mergePairs({}, same), std::vector<int64_t>{});
}

/// A tokenizer.json with all bytes, "th" and "the", and a special token. `edit` changes its text.
std::string file(std::string_view from = "", std::string_view to = "") {
  std::string vocabulary;
  int next = 0;
  const auto add = [&](const std::string& name) {
    vocabulary += (vocabulary.empty() ? "" : ", ") + ("\"" + name + "\": " + std::to_string(next++));
  };
  int shifted = 0x100;
  for (int b = 0; b < 256; ++b) {
    const bool visible = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
    char escape[8];
    std::snprintf(escape, sizeof escape, "\\u%04x", visible ? b : shifted++);
    add(escape);
  }
  add("th");
  add("the");
  std::string text = R"({"added_tokens": [{"id": 258, "content": "<|end|>"}], "normalizer": null,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
    "post_processor": null,
    "model": {"type": "BPE", "vocab": {)" +
                     vocabulary + R"(}, "merges": [["t", "h"], "th e"]}})";
  if (!from.empty()) {
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
  }
  return text;
}

TEST(Tokenizers, EncodeAndDecode) {
  const auto tokenizer = require(Tokenizer::parse(file()));
  EXPECT_EQ(tokenizer.size(), 259);
  const auto tokens = require(tokenizer.encode("the t<|end|>h"));
  EXPECT_EQ(tokens, (std::vector<int64_t>{257, ' ', 't', 258, 'h'}));
  EXPECT_EQ(*tokenizer.decode(257), "the");
  EXPECT_EQ(*tokenizer.decode(0xff), "\xff");
  EXPECT_EQ(*tokenizer.decode(258), "");
  EXPECT_TRUE(tokenizer.ends(258));
  EXPECT_FALSE(tokenizer.ends(257));
  EXPECT_FALSE(tokenizer.decode(259).ok());
  EXPECT_FALSE(tokenizer.decode(-1).ok());
}

TEST(Tokenizers, TemplatesPrependSpecialTokens) {
  const auto tokenizer =
      require(Tokenizer::parse(file("\"post_processor\": null",
                                    R"("post_processor": {"type": "TemplateProcessing", "single":
      [{"SpecialToken": {"id": "<|end|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]})")));
  EXPECT_EQ(*tokenizer.encode("the"), (std::vector<int64_t>{258, 257}));
}

TEST(Tokenizers, ReversibleForAnyBytes) {
  const auto tokenizer = require(Tokenizer::parse(file("\"use_regex\": true", "\"use_regex\": false")));
  std::string text;
  for (int b = 255; b >= 0; --b) text += static_cast<char>(b);
  text += "the other\n thing";
  std::string again;
  const auto tokens = require(tokenizer.encode(text));
  for (const int64_t token : tokens) again += *tokenizer.decode(token);
  EXPECT_EQ(again, text);
}

TEST(Tokenizers, InvalidAndUnsupportedFilesAreRefused) {
  struct Case {
    const char *from, *to, *says;
  };
  for (const Case& one : {
           Case{"{\"added_tokens\"", "[\"added_tokens\"", "is not valid JSON"},
           {"\"BPE\"", "\"Unigram\"", "model.type: is 'Unigram'"},
           {"\"normalizer\": null", "\"normalizer\": {\"type\": \"NFC\"}", "normalizer: is not supported"},
           {"\"model\": {\"type\"", "\"model\": {\"byte_fallback\": true, \"type\"",
            "model.byte_fallback: is set"},
           {"\"ByteLevel\"", "\"Metaspace\"", "'Metaspace' with these options is not supported"},
           {"\"add_prefix_space\": false", "\"add_prefix_space\": true", "'ByteLevel' with these options"},
           {"\"post_processor\": null", "\"post_processor\": {\"type\": \"BertProcessing\"}",
            "'BertProcessing' is not supported"},
           {"\"id\": 258", "\"id\": 257", "two tokens have the id 257"},
           {"\"id\": 258", "\"id\": -1", "the id of '<|end|>' is not a number from 0"},
           {"\"id\": 258", "\"id\": 1000000", "far beyond the number of tokens"},
           {"\"the\": 257", "\"the\": \"257\"", "the id of 'the' is not a number"},
           {"\"th e\"", "\"th x\"", "entry 1 does not merge two tokens of the vocabulary into a third"},
           {"\"th e\"", "7", "entry 1 does not merge two tokens"},
           {"\"\\u0021\"", "\"\\u4e00\"", "has a character that does not represent a byte"},
           {"\"\\u0021\"", "\"tt\"", "has no token for the byte 0x21"},
           {"\"vocab\": {", "\"vocab\": [], \"other\": {", "model.vocab: is missing"},
       }) {
    const std::string error = errorOf(Tokenizer::parse(file(one.from, one.to)));
    EXPECT_NE(error.find(one.says), std::string::npos) << one.says << ": " << error;
  }
}

}  // namespace
}  // namespace carina::tokenizer
