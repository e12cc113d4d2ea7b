// SPDX-License-Identifier: Apache-2.0
// Programs with symbolic sizes (models/dynamic_shapes.py), read for chosen values: they compute what torch
// computed at these sizes, and values that do not fit are refused with the values that do.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "aten/executor.hpp"
#include "base/npy.hpp"
#include "pt2/exported_program.hpp"
#include "pt2/size_expression.hpp"
#include "support/contents.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"

namespace carina::pt2 {
namespace {

using Sizes = std::map<std::string, int64_t>;

std::filesystem::path fileOf(const std::string& name) {
  return test::dataDir() / "dynamic" / name;
}

/// "2_12_16" -> {2, 12, 16}
std::vector<int64_t> numbersOf(const std::string& tag) {
  std::vector<int64_t> numbers;
  for (size_t at = 0; at < tag.size();
       at = tag.find('_', at) == std::string::npos ? tag.size() : tag.find('_', at) + 1)
    numbers.push_back(std::stoll(tag.substr(at)));
  return numbers;
}

Sizes sizesOf(const std::string& name, const std::string& tag) {
  const auto symbols = sizeSymbols(fileOf(name + ".pt2"));
  EXPECT_TRUE(symbols.ok());
  const std::vector<int64_t> numbers = numbersOf(tag);
  Sizes sizes;
  for (size_t i = 0; symbols.ok() && i < symbols->size(); ++i) sizes[(*symbols)[i].name] = numbers.at(i);
  return sizes;
}

Result<ExportedProgram> read(const std::string& name, const Sizes& sizes) {
  return readExportedProgram(fileOf(name + ".pt2"), {.model = "", .sizes = sizes});
}

std::string refusal(const std::string& name, const Sizes& sizes) {
  return errorOf(read(name, sizes));
}

class Dynamic : public testing::TestWithParam<std::string> {};

TEST_P(Dynamic, ComputesWhatTorchComputesAtEverySize) {
  const auto arrays = require(readNpz(fileOf(GetParam() + ".npz")));
  std::set<std::string> tags;
  for (const auto& [name, tensor] : arrays) {
    if (name.find(".in0") != std::string::npos) tags.insert(name.substr(0, name.find('.')));
  }
  ASSERT_GE(tags.size(), 2u);
  for (const std::string& tag : tags) {
    const auto program = read(GetParam(), sizesOf(GetParam(), tag));
    ASSERT_TRUE(program.ok()) << tag << ": " << program.error().str();
    EXPECT_TRUE(program->warnings.empty()) << program->warnings.front().message;
    const auto results = aten::execute(program->graph, test::arraysNamed(arrays, tag + ".in"));
    ASSERT_TRUE(results.ok()) << tag << ": " << results.error().str();
    const std::vector<Tensor> expected = test::arraysNamed(arrays, tag + ".out");
    ASSERT_EQ(results->size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      const Tensor& actual = (*results)[i];
      ASSERT_EQ(actual.shape(), expected[i].shape()) << tag << " output " << i;
      for (int64_t k = 0; k < actual.numElements(); ++k) {
        ASSERT_NEAR(actual.realAt(k), expected[i].realAt(k), 1e-5 * (1 + std::abs(expected[i].realAt(k))))
            << tag << " output " << i << " element " << k;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Pt2, Dynamic,
                         testing::Values("length", "attention", "picture", "pair", "fours", "number",
                                         "choice"),
                         [](const auto& network) { return network.param; });

TEST(Dynamic, ScalarResultsFollowTheChosenSize) {
  const auto program = require(read("length", sizesOf("length", "20")));
  EXPECT_EQ(program.outputs.back().constant, "80");
  ASSERT_EQ(program.inputs.size(), 1u);
  EXPECT_EQ(program.inputs[0].chosen, std::vector<size_t>{2});
  EXPECT_EQ(program.graph.inputs()[0]->shape(), (Shape{1, 4, 40}));
}

TEST(Dynamic, ScalarInputsBecomeConstants) {
  const auto program = require(read("number", sizesOf("number", "4_9")));
  ASSERT_EQ(program.inputs.size(), 2u);
  EXPECT_EQ(program.inputs[1].constant, "9");
  EXPECT_EQ(program.graph.inputs().size(), 1u);
}

TEST(Dynamic, SymbolsAreListedWithRanges) {
  const auto symbols = require(sizeSymbols(fileOf("picture.pt2")));
  ASSERT_EQ(symbols.size(), 3u);
  EXPECT_EQ(symbols[0].where, "input x, dimension 0");
  EXPECT_EQ(symbols[0].str(), symbols[0].name + " from 1 to 8");
  EXPECT_EQ(symbols[2].min, 8);
  EXPECT_EQ(symbols[2].max, 64);
  const auto fixed = require(sizeSymbols(test::dataDir() / "methods" / "read.pt2"));
  EXPECT_TRUE(fixed.empty());
}

/// The only symbol of a network.
std::string symbolOf(const std::string& name) {
  return sizesOf(name, "1").begin()->first;
}

TEST(Dynamic, WithoutValuesTheRemedySaysWhatToWrite) {
  const std::string s = symbolOf("length");
  const std::string text = refusal("length", {});
  EXPECT_NE(text.find("dimension 2 is dynamic: 2*" + s + ", " + s + " from 2 to 32, 16 at export"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("--specialize " + s + "=2,32"), std::string::npos) << text;
}

TEST(Dynamic, UnboundedSizesAreRefused) {
  for (const Sizes& sizes : {Sizes{}, Sizes{{symbolOf("unbounded"), 5}}}) {
    const auto program = read("unbounded", sizes);
    ASSERT_FALSE(program.ok());
    EXPECT_EQ(program.error().diagnostics()[0].code, Code::DependsOnValues);
    const std::string text = program.error().str();
    EXPECT_NE(text.find("Dim(\"size\", min=2, max=256)"), std::string::npos) << text;
  }
}

TEST(Dynamic, ValuesThatDoNotFitAreRefused) {
  const std::string pair = symbolOf("pair"), fours = symbolOf("fours");
  EXPECT_NE(refusal("pair", {{pair, 31}}).find(pair + "=31 is outside the range"), std::string::npos);
  EXPECT_NE(refusal("pair", {{pair, 2}}).find("choose " + pair + " from 3 to 30"), std::string::npos);
  EXPECT_NE(refusal("pair", {{"s99", 5}}).find("no input has the size 's99'"), std::string::npos);
  const Sizes whole = sizesOf("picture", "2_12_16");
  EXPECT_NE(refusal("picture", {*whole.begin()}).find("has no value"), std::string::npos);
  // 20 = 4 * 5 takes the other branch in forward().
  const std::string text = refusal("fours", {{fours, 20}});
  EXPECT_NE(text.find(fours + "=20 does not fit the program, which was exported under the condition"),
            std::string::npos)
      << text;
  const std::string error = errorOf(
      readExportedProgram(test::dataDir() / "methods" / "read.pt2", {.model = "", .sizes = {{"s1", 4}}}));
  EXPECT_NE(error.find("leave the option out"), std::string::npos) << error;
}

// Expressions
// --------------------------------------------------------------------------------------------------------------

SizeLookup lookup() {
  return {[](std::string_view symbol) -> std::optional<SizeNumber> {
            if (symbol == "s0") return SizeNumber::whole(7);
            if (symbol == "s1") return SizeNumber::whole(-3);
            return std::nullopt;
          },
          [](std::string_view input, int64_t dimension) -> std::optional<SizeNumber> {
            if (input != "x" || dimension != 1) return std::nullopt;
            return SizeNumber::whole(12);
          }};
}

double valueOf(std::string_view expression) {
  return require(evaluate(expression, lookup())).asReal();
}

TEST(SizeExpression, IsComputedAsPythonDoes) {
  EXPECT_EQ(valueOf("Symbol('s0', positive=True, integer=True)"), 7);
  EXPECT_EQ(valueOf("Add(Mul(Integer(2), Symbol('s0', positive=True, integer=True)), Integer(-1))"), 13);
  EXPECT_EQ(valueOf("2*s0 + 1"), 15);
  EXPECT_EQ(valueOf("-s0**2"), -49);
  EXPECT_EQ(valueOf("s0 - 1 - 1"), 5);
  EXPECT_EQ(valueOf("s1 // 2"), -2);
  EXPECT_EQ(valueOf("s1 % 2"), 1);
  EXPECT_EQ(valueOf("Mod(Symbol('s0'), Integer(4))"), 3);
  EXPECT_EQ(valueOf("FloorDiv(Add(Symbol('s0'), Integer(-1)), Integer(2))"), 3);
  EXPECT_EQ(valueOf("Mul(Rational(1, 7), Symbol('s0'))"), 1);
  EXPECT_EQ(valueOf("Mul(Rational(-3, 7), Symbol('s0'))"), -3);
  EXPECT_EQ(valueOf("Max(Integer(1), Symbol('s0'), Integer(9))"), 9);
  EXPECT_EQ(valueOf("Min(s0, 3)"), 3);
  EXPECT_EQ(valueOf("Pow(Symbol('s0'), Integer(-1))"), 1.0 / 7);
  EXPECT_EQ(valueOf("s0/2"), 3.5);
  EXPECT_EQ(valueOf("TruncToInt(s1/2)"), -1);
  EXPECT_EQ(valueOf("ceiling(Float('2.5', precision=53))"), 3);
  EXPECT_EQ(valueOf("CeilDiv(s0, 2)"), 4);
  EXPECT_EQ(valueOf("L['x'].size()[1] == (4*(L['x'].size()[1] // 4))"), 1);
  EXPECT_EQ(valueOf("8 <= L['x'].size()[1] and not L['x'].size()[1] > 64"), 1);
  EXPECT_EQ(valueOf("L['x'].size()[1] != 12 or s0 < 7"), 0);
}

TEST(SizeExpression, MalformedOnesAreErrors) {
  const std::string deep(5000, '('), long1 = [] {
    std::string text = "s0";
    for (int i = 0; i < 5000; ++i) text += "+1";
    return text;
  }();
  for (const std::string& text : {std::string(),
                                  std::string("s0 +"),
                                  std::string("s9"),
                                  std::string("Strange(s0)"),
                                  std::string("s0 s0"),
                                  std::string("s0 // 0"),
                                  std::string("Mod(s0, 0)"),
                                  std::string("9223372036854775807 + s0"),
                                  std::string("Pow(10, 30)"),
                                  std::string("Symbol('s0"),
                                  std::string("Symbol(')"),
                                  std::string("Add(s0)"),
                                  std::string("Rational(1, 0)"),
                                  std::string("Rational(s0, 2)"),
                                  std::string("99999999999999999999"),
                                  std::string("L['y'].size()[1]"),
                                  std::string("L['x'].shape[1]"),
                                  deep,
                                  long1,
                                  std::string("-") + deep,
                                  std::string("(-9223372036854775807 - 1) // -1")}) {
    EXPECT_FALSE(evaluate(text, lookup()).ok()) << text.substr(0, 40);
    (void)symbolsIn(text);
    (void)sizeText(text);
  }
}

TEST(SizeExpression, IsPrintedReadably) {
  EXPECT_EQ(sizeText("Mul(Integer(2), Symbol('s42', positive=True, integer=True))"), "2*s42");
  EXPECT_EQ(sizeText("Add(Mul(Integer(2), Symbol('s42')), Integer(1))"), "2*s42 + 1");
  EXPECT_EQ(sizeText("FloorDiv(Add(Symbol('s53'), Integer(-1)), Integer(2))"), "(s53 + (-1)) // 2");
  EXPECT_EQ(sizeText("no size"), "no size");
  EXPECT_EQ(symbolsIn("Add(Symbol('s1'), Mul(Symbol('s0'), Symbol('s1')))"),
            (std::vector<std::string>{"s1", "s0"}));
}

}  // namespace
}  // namespace carina::pt2
