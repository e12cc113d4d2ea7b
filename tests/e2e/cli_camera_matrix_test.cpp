// SPDX-License-Identifier: Apache-2.0
// Ends of programs on every family of targets: each option equals the corresponding code around the plain
// program, bit for bit in integers (models/camera_network.py).
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "base/npy.hpp"
#include "cli.hpp"
#include "support/require.hpp"

namespace carina {
namespace {

using testing::HasSubstr;
using namespace test;

const std::vector<double> kMean{0.5, 0.25, 0.375}, kDeviation{0.25, 0.5, 0.125};
constexpr const char* kPixels = " --io-inputs picture=uint8 --mean 0.5,0.25,0.375 --std 0.25,0.5,0.125";

struct Port {
  std::string type;
  Shape shape;
  double scale = 0;
  int64_t zeroPoint = 0;
};

struct Codes {
  std::vector<Port> inputs, outputs;
};

/// [..., A, B, C] as [..., B, C, A]; `times` 2 is the inverse.
Tensor rotated(const Tensor& tensor, int times = 1) {
  const int64_t rank = tensor.rank();
  const int64_t a = tensor.dim(rank - 3), bc = tensor.dim(rank - 2) * tensor.dim(rank - 1);
  Shape shape = tensor.shape();
  std::rotate(shape.end() - 3, shape.end() - 2, shape.end());
  Tensor result = Tensor::uninitialized(tensor.dtype(), shape);
  const auto size = static_cast<size_t>(dtypeSize(tensor.dtype()));
  std::byte* to = result.mutableBytes().data();
  for (int64_t i = 0; i < tensor.numElements(); ++i, to += size) {
    const int64_t image = i / (a * bc), at = i % (a * bc);
    const int64_t from = image * a * bc + at % a * bc + at / a;
    std::copy_n(tensor.bytes().data() + static_cast<size_t>(from) * size, size, to);
  }
  return times == 1 ? result : rotated(result, times - 1);
}

/// round(x / scale) + zero point, ties to even, in float as PyTorch's quantize_per_tensor computes.
Tensor coded(const Tensor& numbers, const Port& port) {
  const DType dtype = port.type == "i16" ? DType::Int16 : port.type == "u8" ? DType::UInt8 : DType::Int8;
  Tensor codes = Tensor::uninitialized(dtype, numbers.shape());
  const float inverse = 1.0f / static_cast<float>(port.scale);
  for (int64_t i = 0; i < numbers.numElements(); ++i) {
    const auto number = static_cast<float>(numbers.realAt(i));
    const int64_t code = static_cast<int64_t>(std::nearbyint(number * inverse)) + port.zeroPoint;
    codes.setIntegerAt(i, std::clamp(code, integerMin(dtype), integerMax(dtype)));
  }
  return codes;
}

Tensor decoded(const Tensor& codes, const Port& port) {
  Tensor numbers = Tensor::uninitialized(DType::Float32, codes.shape());
  const auto to = numbers.mutableAs<float>();
  for (int64_t i = 0; i < codes.numElements(); ++i) {
    to[static_cast<size_t>(i)] =
        static_cast<float>(codes.integerAt(i) - port.zeroPoint) * static_cast<float>(port.scale);
  }
  return numbers;
}

double decibels(const Tensor& found, const Tensor& wanted) {
  double signal = 0, noise = 0;
  for (int64_t i = 0; i < wanted.numElements(); ++i) {
    signal += wanted.realAt(i) * wanted.realAt(i);
    noise += std::pow(found.realAt(i) - wanted.realAt(i), 2);
  }
  return 10 * std::log10(signal / noise);
}

/// The index of the first maximum along the channels of [samples, 1, C, ...].
std::vector<int64_t> classesOf(const Tensor& scores) {
  const int64_t channels = scores.dim(2);
  const int64_t inner = scores.numElements() / (scores.dim(0) * channels);
  std::vector<int64_t> classes;
  for (int64_t s = 0; s < scores.dim(0); ++s) {
    for (int64_t p = 0; p < inner; ++p) {
      int64_t best = 0;
      const auto at = [&](int64_t c) { return scores.realAt((s * channels + c) * inner + p); };
      for (int64_t c = 1; c < channels; ++c) {
        if (at(c) > at(best)) best = c;
      }
      classes.push_back(best);
    }
  }
  return classes;
}

std::vector<int64_t> integersOf(const Tensor& tensor) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < tensor.numElements(); ++i) values.push_back(tensor.integerAt(i));
  return values;
}

class CameraOn : public Cli, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    auto read = require(readNpz(dataDir() / "camera" / "scene.npz"));
    const NamedTensors& arrays = read;
    frames_ = *findTensor(arrays, "frames");
    numbers_ = *findTensor(arrays, "numbers");
    map_ = *findTensor(arrays, "map");
    scores_ = *findTensor(arrays, "scores");
    pictures_ = Tensor::uninitialized(DType::Float32, frames_.shape());
    const auto to = pictures_.mutableAs<float>();
    for (int64_t i = 0; i < frames_.numElements(); ++i) {
      const auto c = static_cast<size_t>(i / (frames_.dim(3) * frames_.dim(4)) % 3);
      to[static_cast<size_t>(i)] = static_cast<float>((frames_.realAt(i) / 255 - kMean[c]) / kDeviation[c]);
    }
    write("calibration.npz", {{"calib0", pictures_}, {"calib1", numbers_}});
    write("floats.npz", {{"in0", pictures_}, {"in1", numbers_}});
  }

  bool onCpu() const { return std::string(GetParam()) == "cpu"; }
  bool onEthosU() const { return std::string(GetParam()).starts_with("ethos-u"); }

  void write(const std::string& name, const NamedTensors& arrays) const {
    ASSERT_TRUE(writeFile(path(name), formatNpz(arrays)).ok());
  }

  std::string command(const std::string& options, const std::string& output) const {
    return "compile " + (dataDir() / "camera" / "scene.pt2").string() + " --target " + GetParam() +
           (onCpu() ? " --quantize int8" : "") + " --calibrate " + path("calibration.npz") + " " + options +
           " -o " + path(output) + " --json " + path(output + ".json") + " --io-header " +
           path(output + ".h");
  }

  /// Compiles, and returns the inputs and outputs that the report lists.
  Codes compile(const std::string& options, const std::string& output) const {
    const Outcome result = run(command(options, output));
    EXPECT_EQ(result.status, 0) << options << "\n" << result.err;
    Codes codes;
    if (result.status != 0) return codes;
    const auto report = nlohmann::json::parse(contentsOf(path(output + ".json")));
    const auto take = [](const nlohmann::json& ports, std::vector<Port>& into) {
      for (const auto& port : ports) {
        into.push_back({port["type"], port["shape"].get<Shape>(), port.value("scale", 0.0),
                        port.value("zero_point", int64_t{0})});
      }
    };
    take(report["io"]["inputs"], codes.inputs);
    take(report["io"]["outputs"], codes.outputs);
    return codes;
  }

  NamedTensors outputs(const std::string& program, const std::string& input,
                       const std::string& options = "") const {
    const Outcome result = run("run " + path(program) + " --input " + path(input) + " --output " +
                               path("out.npz") + " " + options);
    EXPECT_EQ(result.status, 0) << program << "\n" << result.err;
    return require(result.status == 0 ? readNpz(path("out.npz")) : Result<NamedTensors>(NamedTensors()));
  }

  static void expectEqual(const NamedTensors& found, const NamedTensors& wanted) {
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t i = 0; i < found.size(); ++i)
      EXPECT_TRUE(found[i].second == wanted[i].second) << "output " << i;
  }

  Tensor frames_, numbers_, map_, scores_, pictures_;
};

/// Codes instead of floats: the rest of the program is the same.
TEST_P(CameraOn, IntegerInputsAreTheCodesOfTheFloats) {
  compile("", "plain.pte");
  const NamedTensors plain = outputs("plain.pte", "floats.npz");
  EXPECT_GT(decibels(plain[0].second, map_), 30);
  EXPECT_GT(decibels(plain[1].second, scores_), 30);
  for (const std::string type : {"int8", "uint8", "int16"}) {
    const Codes codes = compile("--io-inputs " + type, "codes.pte");
    ASSERT_EQ(codes.inputs.size(), 2u) << type;
    EXPECT_EQ(codes.inputs[1].type, type == "int8" ? "i8" : type == "uint8" ? "u8" : "i16");
    write("codes.npz",
          {{"in0", coded(pictures_, codes.inputs[0])}, {"in1", coded(numbers_, codes.inputs[1])}});
    const NamedTensors raw = outputs("codes.pte", "codes.npz", "--raw");
    expectEqual(outputs("codes.pte", "floats.npz"), raw);  // run quantizes the floats
    EXPECT_EQ(run("run " + path("codes.pte") + " --raw --input " + path("floats.npz")).status, 1);
    if (type == "int16") {
      EXPECT_GT(decibels(raw[0].second, map_), 30);
      EXPECT_GT(decibels(raw[1].second, scores_), 30);
    } else {
      expectEqual(raw, plain);
    }
  }
}

TEST_P(CameraOn, IntegerOutputsDecodeToTheFloats) {
  compile("", "plain.pte");
  const NamedTensors plain = outputs("plain.pte", "floats.npz");
  const Codes codes = compile("--io-outputs int8", "codes.pte");
  ASSERT_EQ(codes.outputs.size(), 2u);
  const NamedTensors integers = outputs("codes.pte", "floats.npz");
  expectEqual({{"", decoded(integers[0].second, codes.outputs[0])},
               {"", decoded(integers[1].second, codes.outputs[1])}},
              plain);
  expectEqual(outputs("codes.pte", "floats.npz", "--dequantize"), plain);
}

TEST_P(CameraOn, EveryInputAndOutputHasItsOwnType) {
  const Codes codes =
      compile("--io-inputs in0=uint8,numbers=int16 --io-outputs out0=int8,out1=float", "m.pte");
  ASSERT_EQ(codes.inputs.size(), 2u);
  EXPECT_EQ(codes.inputs[0].type + codes.inputs[1].type, "u8i16");
  EXPECT_EQ(codes.outputs[0].type + codes.outputs[1].type, "i8f32");
  const NamedTensors found = outputs("m.pte", "floats.npz", "--dequantize");
  EXPECT_GT(decibels(found[0].second, map_), 30);
  EXPECT_GT(decibels(found[1].second, scores_), 30);
}

TEST_P(CameraOn, ChannelsLastIsTheSameProgramWithOtherEnds) {
  const Codes first = compile("--io int8", "first.pte");
  const Codes last = compile("--io int8 --io-layout nhwc", "last.pte");
  compile("--io int8 --io-layout nchw", "same.pte");
  EXPECT_EQ(contentsOf(path("same.pte")), contentsOf(path("first.pte")));
  ASSERT_EQ(last.inputs.size(), 2u);
  EXPECT_EQ(last.inputs[0].shape, (Shape{1, 16, 16, 3}));
  EXPECT_EQ(last.outputs[0].shape, (Shape{1, 14, 14, 4}));
  const Tensor picture = coded(pictures_, first.inputs[0]), numbers = coded(numbers_, first.inputs[1]);
  write("first.npz", {{"in0", picture}, {"in1", numbers}});
  write("last.npz", {{"in0", rotated(picture)}, {"in1", numbers}});
  NamedTensors wanted = outputs("first.pte", "first.npz", "--raw");
  wanted[0].second = rotated(wanted[0].second);
  expectEqual(outputs("last.pte", "last.npz", "--raw"), wanted);
  expectEqual(outputs("last.pte", "floats.npz"), wanted);
}

/// The network's first layer takes the pixels: no additional operation, and no worse than normalising by
/// hand.
TEST_P(CameraOn, PixelsAreNormalisedInTheFirstLayer) {
  const Codes codes = compile(kPixels, "pixels.pte");
  ASSERT_EQ(codes.inputs.size(), 2u);
  EXPECT_EQ(codes.inputs[0].type, "u8");
  EXPECT_DOUBLE_EQ(codes.inputs[0].scale, 1.0 / 255);
  write("pixels.npz", {{"in0", frames_}, {"in1", numbers_}});
  const NamedTensors found = outputs("pixels.pte", "pixels.npz");
  EXPECT_GT(decibels(found[0].second, map_), 30);
  EXPECT_GT(decibels(found[1].second, scores_), 30);
  expectEqual(outputs("pixels.pte", "floats.npz"), found);  // run maps the floats to pixels

  compile(std::string(kPixels) + " --io-layout nhwc", "frames.pte");
  write("frames.npz", {{"in0", rotated(frames_)}, {"in1", numbers_}});
  NamedTensors wanted = found;
  wanted[0].second = rotated(wanted[0].second);
  expectEqual(outputs("frames.pte", "frames.npz"), wanted);
  if (onEthosU()) {
    compile("--io-inputs picture=uint8 --io-layout nhwc", "codes.pte");
    const auto operations = [&](const std::string& program) {
      const auto text = run("inspect " + path(program) + " --commands").out;
      size_t count = 0;
      for (size_t at = text.find("NPU_OP_CONV"); at != std::string::npos;
           at = text.find("NPU_OP_CONV", at + 1))
        ++count;
      return count;
    };
    EXPECT_GT(operations("codes.pte"), 0u);
    EXPECT_EQ(operations("frames.pte"), operations("codes.pte"));
  }
}

TEST_P(CameraOn, ArgmaxMatchesTheScores) {
  compile("--io int8", "plain.pte");
  compile("--io int8 --finish argmax", "classes.pte");
  const NamedTensors scores = outputs("plain.pte", "floats.npz");
  const NamedTensors classes = outputs("classes.pte", "floats.npz");
  for (const size_t i : {0, 1}) {
    EXPECT_EQ(classes[i].second.dtype(), DType::Int64);
    EXPECT_EQ(integersOf(classes[i].second), classesOf(scores[i].second)) << "output " << i;
  }
}

TEST_P(CameraOn, SoftmaxMatchesTheScores) {
  compile("--finish softmax", "shares.pte");
  const NamedTensors shares = outputs("shares.pte", "floats.npz");
  const Tensor& found = shares[1].second;
  EXPECT_EQ(classesOf(found), classesOf(scores_));
  for (int64_t s = 0; s < scores_.dim(0); ++s) {
    double sum = 0, most = 0;
    for (int64_t c = 0; c < 10; ++c) sum += std::exp(scores_.realAt(s * 10 + c));
    for (int64_t c = 0; c < 10; ++c) {
      const double wanted = std::exp(scores_.realAt(s * 10 + c)) / sum;
      most = std::max(most, std::abs(found.realAt(s * 10 + c) - wanted));
    }
    EXPECT_LT(most, 0.03) << "sample " << s;  // the scores have a scale of about 0.06
  }
}

/// From camera to class: all options at once equal the plain program on pixels, followed by argmax.
TEST_P(CameraOn, AllTogether) {
  const std::string camera = std::string(kPixels) + " --io-inputs numbers=int8 --io-layout nhwc ";
  const Codes codes = compile(camera + "--io-outputs int8", "plain.pte");
  compile(camera + "--finish argmax", "camera.pte");
  ASSERT_EQ(codes.inputs.size(), 2u);
  write("camera.npz", {{"in0", rotated(frames_)}, {"in1", coded(numbers_, codes.inputs[1])}});
  const NamedTensors scores = outputs("plain.pte", "camera.npz", "--raw");
  const NamedTensors classes = outputs("camera.pte", "camera.npz", "--raw");
  EXPECT_EQ(integersOf(classes[0].second), classesOf(rotated(scores[0].second, 2)));
  EXPECT_EQ(integersOf(classes[1].second), classesOf(scores[1].second));
  EXPECT_EQ(classesOf(scores[1].second), classesOf(scores_));
}

/// The report, check, inspect, the program's methods, the header and a .tflite state the same values.
TEST_P(CameraOn, ScalesAreTheSameWhereverTheyAreReported) {
  const Codes codes = compile("--io-inputs picture=uint8,numbers=int8 --io-outputs int8", "c.pte");
  ASSERT_EQ(codes.inputs.size(), 2u);
  const auto checked = nlohmann::json::parse(run("check " + path("c.pte") + " --json -").out)["methods"][0];
  const auto contained = nlohmann::json::parse(run("inspect " + path("c.pte") + " --json -").out)["program"];
  std::map<std::string, double> methods;
  for (const auto& method : contained["methods"]) {
    if (method["inputs"].empty()) methods[method["name"]] = method["values"][0]["value"].get<double>();
  }
  const std::string header = contentsOf(path("c.pte.h"));
  const std::string text = run("check " + path("c.pte")).out, listing = run("inspect " + path("c.pte")).out;
  const auto expectTold = [&](const std::string& kind, size_t i, const Port& port) {
    const std::string name = kind + std::to_string(i);
    EXPECT_GT(port.scale, 0) << name;
    const auto& told = checked[kind + "s"][i];
    EXPECT_EQ(told["scale"].get<double>(), port.scale) << name;
    EXPECT_EQ(told["zero_point"].get<int64_t>(), port.zeroPoint) << name;
    EXPECT_EQ(methods.at(name + "_scale"), port.scale);
    EXPECT_EQ(methods.at(name + "_zp"), static_cast<double>(port.zeroPoint));
    const std::string line = fmt::format("scale {:.6g}, zero point {}", port.scale, port.zeroPoint);
    EXPECT_THAT(text, HasSubstr(line));
    EXPECT_THAT(listing, HasSubstr(line));
    std::string define = kind == "input" ? "CARINA_INPUT" : "CARINA_OUTPUT";
    define += std::to_string(i);
    EXPECT_THAT(header, HasSubstr(fmt::format("#define {}_SCALE {:.9g}f\n", define, port.scale)));
    EXPECT_THAT(header, HasSubstr(fmt::format("#define {}_ZERO_POINT ({})\n", define, port.zeroPoint)));
  };
  for (size_t i = 0; i < 2; ++i) {
    expectTold("input", i, codes.inputs[i]);
    expectTold("output", i, codes.outputs[i]);
  }
  if (!onEthosU()) return;
  const Codes lite = compile("--io-inputs picture=uint8,numbers=int8 --io-outputs int8", "c.tflite");
  const std::string listed = run("inspect " + path("c.tflite")).out;
  const std::string tensors = listed.substr(0, listed.find("ethos-u("));
  for (const auto* ports : {&lite.inputs, &lite.outputs}) {
    for (const Port& port : *ports) {
      const std::string told =
          fmt::format("scale {} zero point {}", static_cast<float>(port.scale), port.zeroPoint);
      EXPECT_THAT(tensors, HasSubstr(told));
    }
  }
  expectEqual(outputs("c.tflite", "floats.npz"), outputs("c.pte", "floats.npz"));
}

INSTANTIATE_TEST_SUITE_P(Targets, CameraOn,
                         testing::Values("ethos-u55-128", "ethos-u65-512", "ethos-u85-256",
                                         "ethos-n78-1tops-4ple", "cpu"),
                         [](const auto& target) {
                           std::string name = target.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

class CameraInFloat : public CameraOn {};

/// Without quantization the same ends are float arithmetic: PyTorch's values.
TEST_P(CameraInFloat, PixelsLayoutAndFinish) {
  const std::string compile =
      "compile " + (dataDir() / "camera" / "scene.pt2").string() + " --target cpu -o " + path("f.pte") + " ";
  ASSERT_EQ(run(compile + kPixels + " --io-layout nhwc").status, 0);
  write("frames.npz", {{"in0", rotated(frames_)}, {"in1", numbers_}});
  const NamedTensors found = outputs("f.pte", "frames.npz");
  EXPECT_GT(decibels(rotated(found[0].second, 2), map_), 100);
  EXPECT_GT(decibels(found[1].second, scores_), 100);
  ASSERT_EQ(run(compile + kPixels + " --finish argmax").status, 0);
  const NamedTensors classes = outputs("f.pte", "floats.npz");
  EXPECT_EQ(integersOf(classes[1].second), classesOf(scores_));
  for (const char* codes : {"--io int8", "--io-inputs uint8", "--io-outputs int16", "--io-inputs in1=int8"}) {
    const Outcome refused = run(compile + codes);
    EXPECT_EQ(refused.status, 1) << codes;
    EXPECT_THAT(refused.err, HasSubstr("the program computes in float"));
    EXPECT_THAT(refused.err, HasSubstr("--quantize int8"));
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, CameraInFloat, testing::Values("cpu"));

class CameraKept : public Cli {};

/// Networks whose ends are fixed: options that match them are accepted, all others are refused.
TEST_F(CameraKept, ATfliteIsChannelsLast) {
  const std::string file = (dataDir() / "tflite" / "conv8_3.tflite").string();
  const std::string target = " --target ethos-u55-128 -o " + path("k.pte");
  EXPECT_EQ(run("compile " + file + target + " --io-layout nhwc").status, 0);
  for (const char* option : {"--io-layout nchw", "--io-inputs uint8", "--finish softmax", "--finish argmax",
                             "--io-inputs uint8 --mean 0.5", "--io-inputs in0=int16"})
    expectRefused(file, std::string("--target ethos-u55-128 ") + option, "cannot be changed");
  for (const char* option : {"--io float", "--io int8", "--io-outputs int16"})
    EXPECT_THAT(run(fmt::format("compile {}{} {}", file, target, option)).err,
                HasSubstr("--io has no effect"))
        << option;
}

TEST_F(CameraKept, ACompiledNetworkOfAnEthosNIsInt8) {
  const std::string compile = "compile " + model("digits8.pt2") + calibrate("digits8") +
                              " --target ethos-n78-1tops-4ple -o " + path("k.encn") + " ";
  for (const char* option : {"", "--io int8", "--io-inputs int8", "--io-inputs x=int8"})
    EXPECT_EQ(run(compile + option).status, 0) << option;
  for (const char* option :
       {"--io float", "--io int16", "--io-inputs uint8", "--io-outputs out0=int16",
        "--io-inputs uint8 --mean 0.5 --std 0.5", "--io-layout nhwc", "--finish argmax"}) {
    std::filesystem::remove(path("k.encn"));
    const Outcome refused = run(compile + option);
    EXPECT_EQ(refused.status, 1) << option;
    EXPECT_THAT(refused.err, HasSubstr("write a .pte"));
    EXPECT_FALSE(std::filesystem::exists(path("k.encn")));
  }
}

}  // namespace
}  // namespace carina
