// SPDX-License-Identifier: Apache-2.0
// docs/tflite-operators.md: where each TensorFlow Lite operator runs, by element type and family, determined
// by compiling a network of that operator alone. CARINA_UPDATE_GOLDENS=1 rewrites the page.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include "base/file.hpp"
#include "device/tflite_runner.hpp"
#include "pipeline/pipeline.hpp"
#include "support/contents.hpp"
#include "support/fixtures.hpp"
#include "support/temp_dir.hpp"
#include "tflite/file_builder.hpp"
#include "tflite/resolver.hpp"

namespace carina {
namespace {

namespace fb = tflite::fb;
using test::optionsOf;
using test::TfliteFile;
using Type = tflite::TensorType;

std::set<std::string> wordsOf(const std::string& text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

/// The operators that Vela 5.1 lists for an NPU (its SUPPORTED_OPS.md): for U55 and U65, and for U85.
const std::set<std::string> kVela55 = wordsOf(
    "ABS ADD ARG_MAX AVERAGE_POOL_2D BATCH_MATMUL CONCATENATION CONV_2D DEPTHWISE_CONV_2D EXP EXPAND_DIMS "
    "FULLY_CONNECTED GELU HARD_SWISH LEAKY_RELU LOG LOGISTIC MAXIMUM MAX_POOL_2D MEAN MINIMUM MIRROR_PAD "
    "MUL NEG PACK PAD PADV2 PRELU QUANTIZE REDUCE_MAX REDUCE_MIN RELU RELU6 RELU_0_TO_1 RELU_N1_TO_1 "
    "RESHAPE RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR REVERSE_V2 RSQRT SLICE SOFTMAX SPLIT SPLIT_V "
    "SQUARED_DIFFERENCE SQUEEZE STRIDED_SLICE SUB SUM TANH TILE TRANSPOSE TRANSPOSE_CONV "
    "UNIDIRECTIONAL_SEQUENCE_LSTM UNPACK");
const std::set<std::string> kVela85Only = wordsOf(
    "CAST DIV EQUAL GATHER GREATER GREATER_EQUAL LESS LESS_EQUAL LOGICAL_AND LOGICAL_NOT LOGICAL_OR "
    "NOT_EQUAL REDUCE_ALL REDUCE_ANY SCATTER_ND SELECT SELECT_V2");

constexpr std::array kTypes = {Type::Int8, Type::UInt8, Type::Int16, Type::Int32, Type::Bool};

/// Builds a network of one operator.
class Maker {
 public:
  explicit Maker(Type type) : type(type) { file_.plan = false; }

  const Type type;

  int32_t tensor(Type of, std::vector<int32_t> shape, std::string data = "", float scale = 0.05F) {
    TfliteFile::Tensor tensor{fmt::format("t{}", file_.tensors.size()), of, std::move(shape),
                              std::move(data)};
    tensor.scales = {scale};
    tensor.zeroPoints = {of == Type::Int8 ? -3 : of == Type::UInt8 ? 125 : 0};
    if (of == Type::Bool || of == Type::Int64) tensor.scales.clear(), tensor.zeroPoints.clear();
    file_.tensors.push_back(std::move(tensor));
    return static_cast<int32_t>(file_.tensors.size()) - 1;
  }
  int32_t input(std::vector<int32_t> shape = {1, 4, 4, 8}) { return input(type, std::move(shape)); }
  int32_t input(Type of, std::vector<int32_t> shape) {
    file_.inputs.push_back(tensor(of, std::move(shape)));
    return file_.inputs.back();
  }
  /// Constant integers, such as sizes and axes.
  int32_t numbers(const std::vector<int32_t>& values, std::vector<int32_t> shape = {}) {
    if (shape.empty()) shape = {static_cast<int32_t>(values.size())};
    const int32_t index =
        tensor(Type::Int32, shape, {reinterpret_cast<const char*>(values.data()), values.size() * 4});
    plain(index);
    return index;
  }
  /// A filter: int8, or uint8 if that is the network's type.
  int32_t filter(const std::vector<int32_t>& shape) {
    size_t count = 1;
    for (const int32_t size : shape) count *= static_cast<size_t>(size);
    const int32_t index =
        tensor(type == Type::UInt8 ? Type::UInt8 : Type::Int8, shape, std::string(count, '\5'), 0.01F);
    if (type != Type::UInt8) file_.tensors.back().zeroPoints = {0};
    return index;
  }
  void scaled(int32_t index, float scale, int64_t zero) {
    auto& tensor = file_.tensors[static_cast<size_t>(index)];
    tensor.scales = {scale};
    tensor.zeroPoints = {type == Type::UInt8 ? zero + 128 : type == Type::Int8 ? zero : 0};
  }
  void plain(int32_t index) {
    file_.tensors[static_cast<size_t>(index)].scales.clear();
    file_.tensors[static_cast<size_t>(index)].zeroPoints.clear();
  }
  int32_t output(std::vector<int32_t> shape = {1, 4, 4, 8}) { return output(type, std::move(shape)); }
  int32_t output(Type of, std::vector<int32_t> shape) {
    file_.outputs.push_back(tensor(of, std::move(shape)));
    return file_.outputs.back();
  }
  void op(const std::string& name, std::vector<int32_t> inputs, std::vector<int32_t> outputs,
          TfliteFile::Options options = {}) {
    int32_t code = 0;
    while (tflite::builtinName(code) != name) ++code;
    // Integers used in arithmetic have no scale.
    if (type == Type::Int32) {
      for (size_t i = 0; i < file_.tensors.size(); ++i) plain(static_cast<int32_t>(i));
    }
    file_.operators.push_back({"", code, std::move(inputs), std::move(outputs), std::move(options)});
  }
  std::string bytes() const { return file_.bytes(); }

 private:
  TfliteFile file_;
};

using Make = std::function<void(Maker&)>;
struct Case {
  std::string name;
  Make make;
};

Case unary(const std::string& name, float scale = 0.05F, int64_t zero = -3,
           const TfliteFile::Options& options = {}) {
  return {name, [=](Maker& net) {
            const int32_t x = net.input(), y = net.output();
            const bool wide = net.type == Type::Int16;
            net.scaled(y, wide && scale != 0.05F ? 1.0F / 32768 : scale, zero);
            net.op(name, {x}, {y}, options);
          }};
}
Case binary(const std::string& name, const TfliteFile::Options& options = {}) {
  return {name, [=](Maker& net) {
            const int32_t x = net.input(), y = net.input();
            net.op(name, {x, y}, {net.output()}, options);
          }};
}
Case comparison(const std::string& name) {
  return {name, [=](Maker& net) {
            const int32_t x = net.input(), y = net.input();
            net.op(name, {x, y}, {net.output(Type::Bool, {1, 4, 4, 8})});
          }};
}
Case choice(const std::string& name) {
  return {name, [=](Maker& net) {
            const int32_t c = net.input(Type::Bool, {1, 4, 4, 8}), x = net.input(), y = net.input();
            net.op(name, {c, x, y}, {net.output()});
          }};
}
/// Over height and width.
Case reduction(const std::string& name) {
  return {name, [=](Maker& net) {
            const int32_t x = net.input(), axes = net.numbers({1, 2});
            net.op(name, {x, axes}, {net.output({1, 8})}, optionsOf(fb::ReducerOptionsT{}));
          }};
}
/// With a list of integers as the second operand.
Case moved(const std::string& name, const std::vector<int32_t>& numbers, const std::vector<int32_t>& shape,
           const std::vector<int32_t>& result, const TfliteFile::Options& options = {}) {
  return {name, [=](Maker& net) {
            const int32_t x = net.input(), list = net.numbers(numbers, shape);
            net.op(name, {x, list}, {net.output(result)}, options);
          }};
}

std::vector<Case> elementwise() {
  fb::LeakyReluOptionsT leaky;
  leaky.alpha = 0.1F;
  fb::SoftmaxOptionsT softmax;
  softmax.beta = 1;
  std::vector<Case> cases = {binary("ADD", optionsOf(fb::AddOptionsT{})),
                             binary("SUB", optionsOf(fb::SubOptionsT{})),
                             binary("MUL", optionsOf(fb::MulOptionsT{})),
                             binary("DIV", optionsOf(fb::DivOptionsT{})),
                             unary("LEAKY_RELU", 0.05F, -3, optionsOf(leaky)),
                             unary("GELU", 0.05F, -3, optionsOf(fb::GeluOptionsT{})),
                             unary("LOGISTIC", 1.0F / 256, -128),
                             unary("TANH", 1.0F / 128, 0),
                             unary("SOFTMAX", 1.0F / 256, -128, optionsOf(softmax)),
                             unary("LOG_SOFTMAX", 1.0F / 16, 127),
                             unary("L2_NORMALIZATION", 1.0F / 128, 0)};
  for (const char* name : {"SQUARED_DIFFERENCE", "MINIMUM", "MAXIMUM", "PRELU", "LOGICAL_AND", "LOGICAL_OR"})
    cases.push_back(binary(name));
  for (const char* name : {"ABS", "ELU", "EXP", "HARD_SWISH", "LOG", "NEG", "RELU", "RELU6", "RELU_0_TO_1",
                           "RELU_N1_TO_1", "RSQRT", "SQRT", "SQUARE", "LOGICAL_NOT", "QUANTIZE"})
    cases.push_back(unary(name));
  for (const char* name : {"EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"})
    cases.push_back(comparison(name));
  for (const char* name : {"SELECT", "SELECT_V2"}) cases.push_back(choice(name));
  for (const char* name : {"MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_ALL", "REDUCE_ANY"})
    cases.push_back(reduction(name));
  cases.push_back({"ARG_MAX", [](Maker& net) {
                     const int32_t x = net.input(), axis = net.numbers({3});
                     net.op("ARG_MAX", {x, axis}, {net.output(Type::Int32, {1, 4, 4})});
                   }});
  cases.push_back(
      {"CAST", [](Maker& net) {
         const int32_t x = net.input();
         const int32_t y = net.output(net.type == Type::Int32 ? Type::Int8 : Type::Int32, {1, 4, 4, 8});
         net.plain(x);
         net.plain(y);
         net.op("CAST", {x}, {y});
       }});
  return cases;
}

std::vector<Case> moves() {
  fb::DepthToSpaceOptionsT toSpace;
  toSpace.block_size = 2;
  fb::SpaceToDepthOptionsT toDepth;
  toDepth.block_size = 2;
  fb::ConcatenationOptionsT joined;
  joined.axis = 3;
  fb::SplitOptionsT split;
  split.num_splits = 2;
  fb::SplitVOptionsT splitV;
  splitV.num_splits = 2;
  fb::PackOptionsT pack;
  pack.values_count = 2;
  fb::UnpackOptionsT unpack;
  unpack.num = 4;
  unpack.axis = 1;
  fb::GatherOptionsT gather;
  gather.axis = 1;
  return {
      moved("RESHAPE", {1, 16, 8}, {}, {1, 16, 8}),
      moved("EXPAND_DIMS", {0}, {1}, {1, 1, 4, 4, 8}),
      {"SQUEEZE",
       [](Maker& net) {
         const int32_t x = net.input();
         net.op("SQUEEZE", {x}, {net.output({4, 4, 8})}, optionsOf(fb::SqueezeOptionsT{}));
       }},
      moved("TRANSPOSE", {0, 2, 3, 1}, {}, {1, 4, 8, 4}),
      moved("REVERSE_V2", {1}, {1}, {1, 4, 4, 8}),
      moved("TILE", {1, 2, 1, 1}, {}, {1, 8, 4, 8}),
      moved("BROADCAST_TO", {2, 4, 4, 8}, {}, {2, 4, 4, 8}),
      moved("GATHER", {2, 0}, {}, {1, 2, 4, 8}, optionsOf(gather)),
      moved("PAD", {0, 0, 1, 1, 1, 1, 0, 0}, {4, 2}, {1, 6, 6, 8}),
      moved("MIRROR_PAD", {0, 0, 1, 1, 1, 1, 0, 0}, {4, 2}, {1, 6, 6, 8}, optionsOf(fb::MirrorPadOptionsT{})),
      {"PADV2",
       [](Maker& net) {
         const int32_t x = net.input(), pads = net.numbers({0, 0, 1, 1, 1, 1, 0, 0}, {4, 2});
         const int32_t value = net.tensor(net.type, {1}, std::string(4, '\0'));
         net.op("PADV2", {x, pads, value}, {net.output({1, 6, 6, 8})});
       }},
      {"SLICE",
       [](Maker& net) {
         const int32_t x = net.input(), from = net.numbers({0, 1, 1, 0}), size = net.numbers({1, 2, 2, 8});
         net.op("SLICE", {x, from, size}, {net.output({1, 2, 2, 8})});
       }},
      {"STRIDED_SLICE",
       [](Maker& net) {
         const int32_t x = net.input(), from = net.numbers({0, 0, 0, 0}), to = net.numbers({1, 4, 4, 8});
         const int32_t strides = net.numbers({1, 2, 2, 1});
         net.op("STRIDED_SLICE", {x, from, to, strides}, {net.output({1, 2, 2, 8})},
                optionsOf(fb::StridedSliceOptionsT{}));
       }},
      {"CONCATENATION",
       [=](Maker& net) {
         const int32_t x = net.input(), y = net.input();
         net.op("CONCATENATION", {x, y}, {net.output({1, 4, 4, 16})}, optionsOf(joined));
       }},
      {"PACK",
       [=](Maker& net) {
         const int32_t x = net.input({4, 8}), y = net.input({4, 8});
         net.op("PACK", {x, y}, {net.output({2, 4, 8})}, optionsOf(pack));
       }},
      {"UNPACK",
       [=](Maker& net) {
         const int32_t x = net.input();
         std::vector<int32_t> parts;
         parts.reserve(4);
         for (int i = 0; i < 4; ++i) parts.push_back(net.output({1, 4, 8}));
         net.op("UNPACK", {x}, parts, optionsOf(unpack));
       }},
      {"SPLIT",
       [=](Maker& net) {
         const int32_t axis = net.numbers({3}), x = net.input();
         const int32_t a = net.output({1, 4, 4, 4}), b = net.output({1, 4, 4, 4});
         net.op("SPLIT", {axis, x}, {a, b}, optionsOf(split));
       }},
      {"SPLIT_V",
       [=](Maker& net) {
         const int32_t x = net.input(), sizes = net.numbers({3, 5}), axis = net.numbers({3});
         const int32_t a = net.output({1, 4, 4, 3}), b = net.output({1, 4, 4, 5});
         net.op("SPLIT_V", {x, sizes, axis}, {a, b}, optionsOf(splitV));
       }},
      {"DEPTH_TO_SPACE",
       [=](Maker& net) {
         const int32_t x = net.input();
         net.op("DEPTH_TO_SPACE", {x}, {net.output({1, 8, 8, 2})}, optionsOf(toSpace));
       }},
      {"SPACE_TO_DEPTH",
       [=](Maker& net) {
         const int32_t x = net.input();
         net.op("SPACE_TO_DEPTH", {x}, {net.output({1, 2, 2, 32})}, optionsOf(toDepth));
       }},
      {"SPACE_TO_BATCH_ND",
       [](Maker& net) {
         const int32_t x = net.input(), block = net.numbers({2, 2}), pads = net.numbers({0, 0, 0, 0}, {2, 2});
         net.op("SPACE_TO_BATCH_ND", {x, block, pads}, {net.output({4, 2, 2, 8})});
       }},
      {"BATCH_TO_SPACE_ND",
       [](Maker& net) {
         const int32_t x = net.input({4, 2, 2, 8}), block = net.numbers({2, 2});
         const int32_t crops = net.numbers({0, 0, 0, 0}, {2, 2});
         net.op("BATCH_TO_SPACE_ND", {x, block, crops}, {net.output()});
       }},
      {"SCATTER_ND",
       [](Maker& net) {
         const int32_t at = net.numbers({1, 3}, {2, 1}), x = net.input({2, 8}), shape = net.numbers({4, 8});
         net.op("SCATTER_ND", {at, x, shape}, {net.output({4, 8})});
       }},
  };
}

std::vector<Case> windows() {
  fb::Conv2DOptionsT conv;
  conv.stride_w = conv.stride_h = 1;
  fb::DepthwiseConv2DOptionsT depthwise;
  depthwise.stride_w = depthwise.stride_h = depthwise.depth_multiplier = 1;
  fb::TransposeConvOptionsT transposed;
  transposed.stride_w = transposed.stride_h = 2;
  fb::Pool2DOptionsT pool;
  pool.stride_w = pool.stride_h = pool.filter_width = pool.filter_height = 2;
  const auto filtered = [](const std::string& name, const std::vector<int32_t>& filter,
                           const std::vector<int32_t>& in, const std::vector<int32_t>& out,
                           const TfliteFile::Options& options) {
    return Case{name, [=](Maker& net) {
                  const int32_t x = net.input(in), w = net.filter(filter);
                  net.op(name, {x, w}, {net.output(out)}, options);
                }};
  };
  const auto pooled = [=](const std::string& name) {
    return Case{name, [=](Maker& net) {
                  const int32_t x = net.input();
                  net.op(name, {x}, {net.output({1, 2, 2, 8})}, optionsOf(pool));
                }};
  };
  const auto resized = [](const std::string& name, const TfliteFile::Options& options) {
    return moved(name, {8, 8}, {}, {1, 8, 8, 8}, options);
  };
  return {filtered("CONV_2D", {8, 3, 3, 8}, {1, 4, 4, 8}, {1, 4, 4, 8}, optionsOf(conv)),
          filtered("DEPTHWISE_CONV_2D", {1, 3, 3, 8}, {1, 4, 4, 8}, {1, 4, 4, 8}, optionsOf(depthwise)),
          filtered("FULLY_CONNECTED", {6, 8}, {1, 8}, {1, 6}, optionsOf(fb::FullyConnectedOptionsT{})),
          {"TRANSPOSE_CONV",
           [=](Maker& net) {
             const int32_t shape = net.numbers({1, 8, 8, 8}), w = net.filter({8, 2, 2, 8}), x = net.input();
             net.op("TRANSPOSE_CONV", {shape, w, x}, {net.output({1, 8, 8, 8})}, optionsOf(transposed));
           }},
          {"BATCH_MATMUL",
           [](Maker& net) {
             const int32_t x = net.input({1, 4, 8}), y = net.input({1, 8, 4});
             net.op("BATCH_MATMUL", {x, y}, {net.output({1, 4, 4})}, optionsOf(fb::BatchMatMulOptionsT{}));
           }},
          pooled("AVERAGE_POOL_2D"),
          pooled("MAX_POOL_2D"),
          resized("RESIZE_BILINEAR", optionsOf(fb::ResizeBilinearOptionsT{})),
          resized("RESIZE_NEAREST_NEIGHBOR", optionsOf(fb::ResizeNearestNeighborOptionsT{}))};
}

/// "NPU" for all families or "NPU U85" for some, then "CPU" if the rest is kept and computed by `carina run`,
/// "kept" if only TensorFlow Lite's interpreter computes it.
std::string placeOf(const std::string& bytes, const std::filesystem::path& file) {
  std::ofstream(file, std::ios::binary) << bytes;
  std::string families;
  int taken = 0;
  for (const auto& [target, family] :
       {std::pair("ethos-u55-128", "U55"), {"ethos-u65-256", "U65"}, {"ethos-u85-256", "U85"}}) {
    pipeline::Options options;
    options.model = file;
    options.target = target;
    options.tflite = true;
    const auto build = pipeline::build(options);
    if (!build.ok() || !build->partitioned.wholly) continue;
    families += std::string(" ") + family;
    ++taken;
  }
  if (taken == 3) return "NPU";
  const auto runner = device::TfliteRunner::open(asBytes(bytes));
  const std::string rest = runner.ok() ? "CPU" : "kept";
  return taken == 0 ? rest : "NPU" + families + ", " + rest;
}

std::string tableOf(std::vector<Case> cases) {
  std::sort(cases.begin(), cases.end(), [](const Case& a, const Case& b) { return a.name < b.name; });
  const test::TempDir folder;
  std::string text =
      "| operator | int8 | uint8 | int16 | int32 | bool | kernel for microcontrollers | Vela |\n"
      "|---|---|---|---|---|---|---|---|\n";
  for (const Case& one : cases) {
    text += "| " + one.name;
    for (const Type type : kTypes) {
      Maker net(type);
      one.make(net);
      text += " | " + placeOf(net.bytes(), folder.path() / "network.tflite");
    }
    tflite::Operator op;
    op.name = one.name;
    text += tflite::resolverCall(op) ? " | yes" : " | no";
    text += kVela55.count(one.name) != 0       ? " | U55, U65, U85 |\n"
            : kVela85Only.count(one.name) != 0 ? " | U85 |\n"
                                               : " | no |\n";
  }
  return text;
}

TEST(TfliteDocumentation, TheTableOfOperatorsMatchesTheCompiler) {
  const std::filesystem::path page = test::dataDir() / "../../docs/tflite-operators.md";
  const std::string text = test::contentsOf(page);
  const size_t begin = text.find("| operator |");
  ASSERT_NE(begin, std::string::npos);
  std::vector<Case> cases = elementwise();
  for (auto* more : {moves, windows}) {
    for (Case& one : more()) cases.push_back(std::move(one));
  }
  const std::string table = tableOf(cases);
  if (const char* flag = std::getenv("CARINA_UPDATE_GOLDENS"); flag != nullptr && *flag == '1') {
    std::ofstream(page) << text.substr(0, begin) << table;
    return;
  }
  EXPECT_EQ(text.substr(begin), table) << "CARINA_UPDATE_GOLDENS=1 rewrites docs/tflite-operators.md";
  // Every operator that Vela lists is in the table.
  for (const auto* list : {&kVela55, &kVela85Only}) {
    for (const std::string& name : *list) {
      const bool apart = name == "UNIDIRECTIONAL_SEQUENCE_LSTM";
      EXPECT_TRUE(apart || table.find(fmt::format("| {} |", name)) != std::string::npos) << name;
    }
  }
}

}  // namespace
}  // namespace carina
