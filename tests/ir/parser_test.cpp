// SPDX-License-Identifier: Apache-2.0
// Graphs from text: full text from print() parses to the same graph, and errors state position and cause.
#include "ir/parser.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>

#include "ir/printer.hpp"
#include "ir/verifier.hpp"
#include "support/require.hpp"
#include "support/same_graph.hpp"
#include "toy/ops.hpp"

namespace carina::ir {
namespace {

const OperatorSet kToy{toy::findOperator, [] {
                         std::vector<std::string> names;
                         for (const OpDef& def : toy::operators()) names.emplace_back(def.name);
                         return names;
                       }};

std::string printed(const Graph& graph) {
  return print(graph, {.exact = true});
}

/// The error of parsing a text, as "place: message | remedy".
std::string errorOf(std::string_view text) {
  const auto graph = parse(text, kToy);
  if (graph.ok()) return "no error";
  const Diagnostic& diagnostic = graph.error().diagnostics().front();
  return diagnostic.place + ": " + diagnostic.message + " | " + diagnostic.remedy;
}

/// A graph of one line, with the inputs %x: f32[2] and %i: i8[3].
std::string withLine(std::string_view line) {
  return fmt::format("graph @g(%x: f32[2], %i: i8[3]) -> (%x) {{\n  {}\n}}\n", line);
}
std::string errorOfLine(std::string_view line) {
  return errorOf(withLine(line));
}

TEST(Parser, ReadsHandWrittenText) {
  const auto graph = require(parse(R"(
    // Types of results and defaults may be left out, blanks and line ends stand anywhere.
    graph @net(%x: f32[2]<0.5:-3>) -> (%sum, %x) {
      %w: f32[2] = splat 1.5
      %sum = toy.ADD(%x, %w) loc("add_1", "features.0")
      toy.STORE(%sum) {label = "a \"quoted\" label"}
    })",
                                   kToy));
  EXPECT_EQ(printed(graph), R"(graph @net(%x: f32[2]<0.5:-3>) -> (%sum, %x) {
  %w: f32[2] = [1.5, 1.5]
  %sum: f32[2] = toy.ADD(%x, %w) loc("add_1", "features.0")
  toy.STORE(%sum) {label = "a \"quoted\" label"}
}
)");
  EXPECT_TRUE(verify(graph).ok());
  EXPECT_TRUE(graph.outputs()[1]->isInput());
}

TEST(Parser, NamesNeedNotBeWordsNorUnique) {
  Graph graph("a graph");
  Value* odd = graph.addInput({DType::Float32, {2}}, "conv/weight:0 \"x\"\n");
  Value* number = graph.addInput({DType::Float32, {2}}, "12");
  Value* unnamed = graph.addInput({DType::Float32, {2}});
  Builder build(graph);
  auto first = toy::Add::create(build, odd, number, toy::Mode::PLAIN, int64_t{1});
  auto second = toy::Add::create(build, first.sum(), unnamed, toy::Mode::PLAIN, int64_t{1});
  first.sum()->name = second.sum()->name = "sum";
  graph.setOutputs({second.sum(), first.sum()});
  EXPECT_EQ(
      printed(graph),
      R"(graph @"a graph"(%"conv/weight:0 \"x\"\n": f32[2], %"12": f32[2], %0: f32[2]) -> (%sum#2, %sum) {
  %sum: f32[2] = toy.ADD(%"conv/weight:0 \"x\"\n", %"12")
  %sum#2: f32[2] = toy.ADD(%sum, %0)
}
)");
  const auto again = require(parse(printed(graph), kToy));
  EXPECT_EQ(test::GraphDifference::between(graph, again), "");
}

TEST(Parser, ConstantsKeepTheirBits) {
  Graph graph;
  std::vector<Value*> outputs;
  const auto add = [&](const Tensor& tensor) { outputs.push_back(graph.addConstant(tensor)); };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  add(Tensor::from<float>({4}, std::vector<float>{0.1f, -0.0f, 3.4028235e38f, 1e-45f}));
  add(Tensor::from<float>({2}, std::vector<float>{std::numeric_limits<float>::infinity(), -INFINITY}));
  add(Tensor::from<float>({2}, std::vector<float>{nan, -nan}));
  add(Tensor::from<double>({2}, std::vector<double>{0.1, 4.9e-324}));
  add(Tensor::from<int64_t>({2}, std::vector<int64_t>{INT64_MIN, INT64_MAX}));
  add(Tensor::from<uint32_t>({}, std::vector<uint32_t>{UINT32_MAX}));
  add(Tensor::zeros(DType::Int8, {3, 0}));
  for (const DType type : {DType::Bool, DType::Int4, DType::Float16, DType::BFloat16, DType::Int48}) {
    std::vector<float> values;
    for (int i = 0; i < 12; ++i) values.push_back(static_cast<float>(i % 2));
    add(convert(Tensor::from({12}, values), type));
    add(convert(Tensor::from({3}, std::vector<float>{1, 0, 1}), type));
    add(convert(Tensor::from({100}, std::vector<float>(100, 1)), type));
  }
  add(convert(Tensor::from({2}, std::vector<float>{6.1e-5f, 65504}), DType::Float16));
  Tensor wide = Tensor::zeros(DType::Float32, {3, 7});
  for (size_t i = 0; i < 21; ++i) wide.mutableAs<float>()[i] = static_cast<float>(i) / 3;
  add(wide);
  graph.setOutputs(outputs);
  const std::string text = printed(graph);
  EXPECT_NE(text.find("f16[100] = splat 1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("f32[2] = 0x0000c07f0000c0ff\n"), std::string::npos) << text;
  const auto again = require(parse(text, kToy));
  EXPECT_EQ(test::GraphDifference::between(graph, again), "");
}

TEST(Parser, SplatConstantsAreLimitedAndStillReadBack) {
  Graph graph;
  std::vector<Value*> outputs;
  for (int i = 0; i < 3; ++i) outputs.push_back(graph.addConstant(Tensor::zeros(DType::Int8, {6 << 20})));
  graph.setOutputs(outputs);
  const std::string text = printed(graph);
  EXPECT_GT(text.size(), size_t{12} << 20);  // the third one does not fit and is written in full
  const auto again = require(parse(text, kToy));
  EXPECT_EQ(test::GraphDifference::between(graph, again), "");
  EXPECT_EQ(errorOf("graph @g() -> (%c) { %c: f32[4194305] = splat 0 }"),
            "line 1, column 41: splat constants may take 16 MiB per file, which this one exceeds | make the "
            "constant smaller, or write its bytes as 0x...");
}

TEST(Parser, ErrorsSayWhereAndWhat) {
  EXPECT_EQ(errorOf(""), "line 1, column 1: expected 'graph', found the end of the text | ");
  EXPECT_EQ(errorOf("grph @g() -> () {}"), "line 1, column 1: expected 'graph', found 'grph' | ");
  EXPECT_EQ(errorOf("graph @g() -> (%y) {\n}"),
            "line 1, column 16: the output %y is not defined in graph @g | ");
  EXPECT_EQ(errorOf("graph @g() -> () {}\ngraph @h() -> () {}"),
            "line 2, column 1: expected the end of the text after the graph, found 'graph' | a file holds "
            "one graph: put each graph into its own file");
  EXPECT_EQ(
      errorOf("graph @g(%x: f33[2]) -> () {}"),
      "line 1, column 14: expected a type such as f32[1,8], found 'f33' | the element types are bool, i4, "
      "i8, u8, i16, u16, i32, u32, i48, i64, f16, bf16, f32, f64 and shape");
  EXPECT_EQ(errorOf("graph @g(%x: f32[-2]) -> () {}"),
            "line 1, column 14: a tensor of shape [-2]: sizes cannot be negative | ");
  EXPECT_EQ(errorOfLine("%y: f32[2] = toy.AD(%x, %x)"),
            "line 2, column 16: there is no operator 'toy.AD' | did you mean 'toy.ADD'?");
  EXPECT_EQ(errorOfLine("%y: f32[2] = toy.ADD(%x, %z)"),
            "line 2, column 28: value %z is used before it is defined | define it as an input, a constant or "
            "the result of an earlier node");
  EXPECT_EQ(errorOfLine("%y: f32[2] = toy.ADD(%x)"),
            "line 2, column 26: expected ',' and operand 'b' of toy.ADD, found ')' | ");
  EXPECT_EQ(errorOfLine("%y: f32[2] = toy.ADD(%x, %x, %x)"),
            "line 2, column 30: expected ')' after the operands of toy.ADD, found ',' | ");
  EXPECT_EQ(errorOfLine("%y: f32[2] = toy.ADD(%x, _)"),
            "line 2, column 28: operand 'b' of toy.ADD cannot be left out | ");
  EXPECT_EQ(errorOfLine("%y: f32[2] = toy.ADD(%x, %x) {alpha = 1, alpha = 2}"),
            "line 2, column 44: attribute 'alpha' is given twice | ");
  EXPECT_EQ(errorOfLine("%y: f32[2] = toy.ADD(%x, %x) {beta = 1}"),
            "line 2, column 33: toy.ADD has no attribute 'beta' | its attributes are mode, alpha");
  EXPECT_EQ(errorOfLine("%y: f32[2] = toy.ADD(%x, %x) {mode = FANZY}"),
            "line 2, column 40: expected one of PLAIN, FANCY for attribute 'mode', found 'FANZY' | ");
  EXPECT_EQ(
      errorOfLine("toy.STORE(%x)"),
      "line 2, column 3: attribute 'label' of toy.STORE is missing | write {label = ...} with a string in "
      "double quotes");
  EXPECT_EQ(errorOfLine("toy.STORE(%x) {label = \"open}"),
            "line 2, column 26: expected a string in double quotes for attribute 'label', found an "
            "unterminated string | close the string with '\"' on the same line");
  EXPECT_EQ(errorOfLine("%x: f32[2] = toy.ADD(%x, %x)"),
            "line 2, column 3: value %x is defined twice | give one of them another name; values that share "
            "a name are written %name and %name#2");
  EXPECT_EQ(errorOfLine("%y, %z = toy.ADD(%x, %x)"),
            "line 2, column 3: toy.ADD has 1 result, but 2 are named here | ");
}

TEST(Parser, VerifiesAsItReads) {
  EXPECT_EQ(errorOfLine("%y: f32[3] = toy.ADD(%x, %x)"),
            "line 2, column 16: result 0 of toy.ADD is written as f32[3], but its operands imply f32[2] | "
            "write that type, or leave the type out");
  EXPECT_EQ(errorOfLine("%y = toy.ADD(%x, %i)"), "line 2, column 8: shapes [2] and [3] differ | ");
  EXPECT_EQ(errorOfLine("%y = toy.cat.default([])  {dims = [0]}"),
            "line 2, column 8: nothing to infer from | ");
  EXPECT_EQ(
      errorOfLine("%y = toy.IF(%x)"),
      "line 2, column 3: the results of toy.IF need their types | write %name: TYPE, such as %x: f32[1,8]");
}

TEST(Parser, RefusesConstantsThatDoNotFit) {
  EXPECT_EQ(errorOfLine("%c: i8[2] = [1, 128]"),
            "line 2, column 19: expected an element of type i8, found '128' | ");
  EXPECT_EQ(errorOfLine("%c: i8[2] = [1, 0.5]"),
            "line 2, column 19: expected an element of type i8, found '0.5' | ");
  EXPECT_EQ(errorOfLine("%c: i8[2] = [1]"),
            "line 2, column 15: the constant has 1 elements, but its type i8[2] has 2 | ");
  EXPECT_EQ(errorOfLine("%c: i16[2] = 0x0102"),
            "line 2, column 16: the constant has 4 hexadecimal digits, but its type i16[2] has 4 bytes of "
            "two digits | ");
  EXPECT_EQ(errorOfLine("%c: i8[2] = 0x01zz"),
            "line 2, column 19: expected hexadecimal digits, found 'zz' | ");
  EXPECT_EQ(errorOfLine("%c: bool[2] = 0x0102"),
            "line 2, column 17: element 1 is 2, which is not a valid bool | ");
  EXPECT_EQ(errorOfLine("%c: i4[1] = 0x08"), "line 2, column 15: element 0 is 8, which is not a valid i4 | ");
  EXPECT_EQ(errorOfLine("%c: f32[2000000000,2000000000] = [1]").substr(0, 40),
            "line 2, column 7: a tensor of shape [200");
}

TEST(Parser, RefusesTextInShortForm) {
  Graph graph;
  Value* large = graph.addConstant(Tensor::zeros(DType::Int8, {100}), "w");
  graph.setOutputs({large});
  const std::string remedy = "print the graph in full: 'carina opt FILE -o OUT.ir' does";
  EXPECT_EQ(
      errorOf(print(graph)),
      "line 2, column 17: the contents of the constant are left out here; '#' begins a checksum | " + remedy);
  large->quantization = Quantization{{1, 2}, {0, 0}, 0};
  EXPECT_EQ(errorOf(print(graph)),
            "line 2, column 15: the scales and zero points of the value are left out here | " + remedy);
}

TEST(Parser, NestingHasALimit) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "graph @g(%x: f32[2]) -> (%y) { %y: f32[2] = toy.IF(%x)\n";
  EXPECT_EQ(errorOf(text), "line 34, column 1: graphs are nested more than 32 deep | ");
}

// Random graphs
// ------------------------------------------------------------------------------------------------------------

class RandomGraph {
 public:
  explicit RandomGraph(uint64_t seed) : state_(seed * 2 + 1) {}

  Graph make(int depth = 0) {
    Graph graph(text());
    std::vector<Value*> values;
    for (size_t i = below(3) + 1; i > 0; --i) values.push_back(named(graph.addInput(type())));
    for (size_t i = below(3); i > 0; --i) {
      Tensor tensor = Tensor::uninitialized(type().dtype, {static_cast<int64_t>(below(12))});
      for (int64_t k = 0; k < tensor.numElements(); ++k) element(tensor, k);
      values.push_back(named(graph.addConstant(std::move(tensor))));
    }
    for (size_t i = below(6); i > 0; --i) {
      Node* node = all(graph, values);
      for (size_t r = 0; depth < 2 && r < 2; ++r) {
        if (below(4) == 0) node->setRegion(r, make(depth + 1));
      }
      for (Value* result : node->results()) values.push_back(named(result));
    }
    std::vector<Value*> outputs;
    for (size_t i = below(3); i > 0; --i) outputs.push_back(any(values));
    graph.setOutputs(std::move(outputs));
    return graph;
  }

 private:
  size_t below(size_t n) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<size_t>(state_ >> 33) % n;
  }
  bool coin() { return below(2) == 0; }
  Value* any(const std::vector<Value*>& values) { return values[below(values.size())]; }

  std::string text() {
    static const std::vector<std::string> kTexts{"",       "a",        "a.b-c+d", "7",   "0x1",  "_",
                                                 "graph",  "None",     "a b",     "%",   "\"\\", "//x",
                                                 "\n\x01", "\xc3\xa4", "splat",   "loc", "a#2"};
    return kTexts[below(kTexts.size())];
  }
  double real() {
    static const std::vector<double> kReals{0, -0.0, 1, 0.1, 1e300, -5e-324, 1e22, INFINITY, -INFINITY};
    return kReals[below(kReals.size())];
  }
  int64_t integer() {
    static const std::vector<int64_t> kIntegers{0, 1, -1, 127, INT64_MIN, INT64_MAX};
    return kIntegers[below(kIntegers.size())];
  }
  Type type() {
    Type type{static_cast<DType>(below(15)), {}};
    for (size_t i = below(4); i > 0; --i) type.shape.push_back(static_cast<int64_t>(below(5)));
    return type;
  }
  void element(Tensor& tensor, int64_t i) {
    const DType dtype = tensor.dtype();
    if (isFloat(dtype)) {
      const Tensor one = convert(Tensor::scalar(real()), dtype);
      std::memcpy(tensor.mutableBytes().data() + i * dtypeSize(dtype), one.bytes().data(),
                  static_cast<size_t>(dtypeSize(dtype)));
    } else {
      tensor.setIntegerAt(i, std::clamp(integer(), integerMin(dtype), integerMax(dtype)));
    }
  }
  Value* named(Value* value) {
    value->name = text();
    if (below(3) == 0) {
      Quantization q;
      for (size_t i = below(3); i > 0; --i) q.scales.push_back(real());
      for (size_t i = below(3); i > 0; --i) q.zeroPoints.push_back(integer());
      q.axis = static_cast<int>(below(3)) - 1;
      value->quantization = q;
    }
    return value;
  }

  Node* all(Graph& graph, const std::vector<Value*>& values) {
    const auto optional = [&] { return coin() ? std::vector<Value*>{any(values)} : std::vector<Value*>{}; };
    NodeSpec spec;
    spec.def = &toy::All::def();
    spec.operands = {optional(), optional(), {}, optional()};
    for (size_t i = below(4); i > 0; --i) spec.operands[2].push_back(coin() ? any(values) : nullptr);
    Ints ints;
    for (size_t i = below(4); i > 0; --i) ints.push_back(integer());
    Reals reals;
    for (size_t i = below(4); i > 0; --i) reals.push_back(real());
    Strings texts;
    for (size_t i = below(4); i > 0; --i) texts.push_back(text());
    const std::vector<Attribute> scalars{std::monostate{}, coin(), integer(), real()};
    Attribute contents;
    if (coin()) contents = convert(Tensor::from({2}, std::vector<double>{real(), real()}), DType::Float32);
    spec.attributes = {coin(),
                       coin() ? int64_t{3} : integer(),
                       real(),
                       scalars[below(4)],
                       coin() ? Attribute(text()) : Attribute(),
                       static_cast<DType>(below(15)),
                       ints,
                       reals,
                       texts,
                       static_cast<int64_t>(below(2)),
                       contents};
    for (size_t i = below(3); i > 0; --i) spec.types.push_back(type());
    if (coin()) spec.location = std::make_shared<const Location>(Location{text(), text(), text()});
    return require(graph.create(std::move(spec)));
  }

  uint64_t state_;
};

TEST(Parser, RandomGraphsRoundTrip) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    const Graph graph = RandomGraph(seed).make();
    const std::string text = printed(graph);
    const auto again = parse(text, kToy);
    ASSERT_TRUE(again.ok()) << again.error().str() << "\n" << text;
    ASSERT_EQ(test::GraphDifference::between(graph, *again), "") << text;
    ASSERT_EQ(printed(*again), text);
  }
}

// Truncated or changed text yields an error or a valid graph, never a crash.
RC_GTEST_PROP(Parser, DamagedTextYieldsAnErrorOrAValidGraph,
              (uint64_t seed, uint32_t at, char byte, bool cut)) {
  std::string text = printed(RandomGraph(seed).make());
  at %= static_cast<uint32_t>(text.size());
  if (cut) {
    text.resize(at);
  } else {
    text[at] = byte;
  }
  const auto graph = parse(text, kToy);
  if (graph.ok()) {
    RC_ASSERT(verify(*graph).ok());
  } else {
    RC_ASSERT(graph.error().diagnostics().front().place.substr(0, 5) == "line ");
  }
}

}  // namespace
}  // namespace carina::ir
