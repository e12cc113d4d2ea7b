// SPDX-License-Identifier: Apache-2.0
// Calibration data, inputs and quantization: warnings about unsuitable data, and about what does not run on
// the NPU.
#include <algorithm>
#include <cmath>

#include "base/file.hpp"
#include "base/npy.hpp"
#include "cli.hpp"

namespace carina {
namespace {

using test::model;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class CliData : public test::Cli {
 protected:
  void writeArray(const std::string& file, const std::string& name, const Tensor& tensor) const {
    ASSERT_TRUE(writeFile(path(file), formatNpz({{name, tensor}})).ok());
  }
  Outcome compileDigits(const std::string& calibration, const std::string& more = "") const {
    return run("compile " + model("digits8.pt2") + " --target ethos-u55-128 -o " + path("d.pte") +
               " --calibrate " + path(calibration) + " " + more);
  }
  /// The calibration samples of digits8: f32[n,1,8,8].
  static Tensor samples() {
    auto arrays = readNpz(model("digits8.npz"));
    return *findTensor(*arrays, "calib0");
  }
};

TEST_F(CliData, BytesDoNotCalibrateAFloatNetwork) {
  writeArray("u8.npz", "calib0", convert(samples(), DType::UInt8));
  const Outcome result = compileDigits("u8.npz");
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("u8.npz: calib0 holds u8, but input 0"), HasSubstr("is f32"),
                                HasSubstr("after all preprocessing")));
  EXPECT_FALSE(std::filesystem::exists(path("d.pte")));
}

TEST_F(CliData, WarnsAboutConstantCalibration) {
  writeArray("zero.npz", "calib0", Tensor::zeros(DType::Float32, samples().shape()));
  const Outcome result = compileDigits("zero.npz");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.err, AllOf(HasSubstr("zero.npz: input 0"), HasSubstr("is 0 everywhere")));
  writeArray("real.npz", "calib0", samples());
  EXPECT_THAT(compileDigits("real.npz").err, IsEmpty());
}

TEST_F(CliData, WarnsAboutBytesAsFloats) {
  Tensor bytes = samples();
  const auto [low, high] = std::minmax_element(bytes.as<float>().begin(), bytes.as<float>().end());
  const float scale = 255 / (*high - *low), zero = *low;
  for (float& value : bytes.mutableAs<float>()) value = std::nearbyint((value - zero) * scale);
  writeArray("bytes.npz", "calib0", bytes);
  const Outcome result = compileDigits("bytes.npz");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.err, AllOf(HasSubstr("warning: "), HasSubstr("bytes.npz: input 0 ('x')"),
                                HasSubstr("integers from 0 to 255"), HasSubstr("exported with")));
}

TEST_F(CliData, ArraysOfOtherNamesAndLayoutsAreRecognised) {
  writeArray("key.npz", "x", samples());
  EXPECT_THAT(compileDigits("key.npz").err, AllOf(HasSubstr("key.npz: no calibration data for input 0"),
                                                  HasSubstr("; rename it to calib0?")));
  ASSERT_EQ(run("compile " + model("digits8.pt2") + " --target ethos-u55-128 -o " + path("d.pte") +
                calibrate("digits8"))
                .status,
            0);
  EXPECT_THAT(run("run " + path("d.pte") + " --input " + path("key.npz")).err,
              AllOf(HasSubstr("key.npz: array 'in0' is missing"), HasSubstr("; rename it to in0?")));

  const auto count = samples().dim(0);
  writeArray("nhwc.npz", "calib0", Tensor::zeros(DType::Float32, {count, 8, 8, 1}));
  EXPECT_THAT(compileDigits("nhwc.npz").err, HasSubstr("looks channels-last (NHWC): transpose it"));
  writeArray("nhwc_in.npz", "in0", Tensor::zeros(DType::Float32, {1, 8, 8, 1}));
  EXPECT_THAT(run("run " + path("d.pte") + " --input " + path("nhwc_in.npz")).err,
              AllOf(HasSubstr("nhwc_in.npz: in0: has shape"), HasSubstr("looks channels-last (NHWC)")));
}

TEST_F(CliData, CompileReportsItsQuality) {
  const Outcome result = run("compile " + model("digits8.pt2") + " --target ethos-u55-128 -o " +
                             path("d.pte") + calibrate("digits8"));
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, testing::ContainsRegex("quality about [0-9.]+ dB against float"));
  EXPECT_THAT(run("compile " + model("digits8.pt2") + " --target cpu -o " + path("c.pte")).out,
              Not(HasSubstr("quality")));
}

TEST_F(CliData, WarnsAboutFunctionsThatTablesDoNotFollow) {
  CARINA_NEED_FIXTURES(fixtures);
  const std::string base = "compile " + (fixtures / "fixtures/ops/tan.pt2").string() +
                           " --target ethos-u55-128 --quantize int16x8 -o " + path("t.pte") + " --calibrate ";
  Tensor manyPeriods = Tensor::uninitialized(DType::Float32, {1, 6, 11, 9});  // away from the poles
  for (int i = 0; i < manyPeriods.numElements(); ++i)
    manyPeriods.mutableAs<float>()[static_cast<size_t>(i)] =
        3.14159265f * static_cast<float>(i % 15 - 7) + 1.2f * std::cos(static_cast<float>(i));
  writeArray("many.npz", "calib0", manyPeriods);
  const Outcome coarse = run(base + path("many.npz") + " --min-sqnr 40");
  EXPECT_EQ(coarse.status, 3) << "the simulation without tables has more: " << coarse.out;
  EXPECT_THAT(coarse.err, AllOf(HasSubstr("warning: "), HasSubstr("aten.tan.default has more bends or poles"),
                                HasSubstr("precision none")));
  EXPECT_THAT(run(base + (fixtures / "fixtures/ops/tan.npz").string()).err, IsEmpty());
}

TEST_F(CliData, WarnsAboutAnIdleNpu) {
  const std::string base =
      "compile " + model("dense.pt2") + " --target ethos-u55-128 --quantize none -o " + path("d.pte");
  const Outcome idle = run(base);
  EXPECT_EQ(idle.status, 0) << idle.err;
  EXPECT_THAT(idle.err, AllOf(HasSubstr("carina: warning[E0504]: " + model("dense.pt2") +
                                        ": no part of the network runs on"),
                              HasSubstr("leave out --quantize none")));
  std::filesystem::remove(path("d.pte"));
  const Outcome required = run(base + " --require-npu");
  EXPECT_EQ(required.status, 3);
  EXPECT_THAT(required.err, HasSubstr("gate missed: dense.pt2: --require-npu"));
  EXPECT_FALSE(std::filesystem::exists(path("d.pte")));
}

TEST_F(CliData, WarnsAboutOptionsThatQuantizeNothing) {
  const auto warnings = [&](const std::string& arguments) {
    const Outcome result = run("compile " + arguments + " -o " + path("idle.pte"));
    EXPECT_EQ(result.status, 0) << result.err;
    return result.err;
  };
  const std::string qdq = (test::dataDir() / "qdq").string();
  const std::string closed = qdq + "/linear.pt2 --target ethos-u55-128", open = qdq + "/lstm.pt2";
  EXPECT_THAT(warnings(model("dense.pt2") + " --target ethos-u55-128 --quantize none" + calibrate("dense")),
              AllOf(HasSubstr("warning: --calibrate: has no effect"), HasSubstr("nothing is quantized"),
                    HasSubstr("leave out --quantize none")));
  EXPECT_THAT(warnings(model("dense.pt2") + " --target cpu" + calibrate("dense")),
              HasSubstr("warning: --calibrate: has no effect"));
  EXPECT_THAT(warnings(closed + " --quantize int8"),
              HasSubstr("warning: --quantize: has no effect: the network is already quantized"));
  EXPECT_THAT(warnings(closed + " --calibrate " + qdq + "/linear.npz"),
              HasSubstr("warning: --calibrate: has no effect: the network is already quantized"));
  EXPECT_EQ(warnings(open + " --target ethos-u55-128 --calibrate " + qdq + "/lstm.npz"), "")
      << "the inner values need ranges";
  EXPECT_EQ(warnings(closed + " --quantize none"), "");
}

TEST_F(CliData, QuantizedWeightsAloneDoNotRunOnTheNpu) {
  const Outcome result =
      run("compile " + test::odd("weight_only.pt2") + " --target ethos-u85-256 -o " + path("w.pte"));
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.err, AllOf(HasSubstr("warning[E0504]: "), HasSubstr("only its weights are quantized")));
}

TEST_F(CliData, RequireNpuRefusesCpuWork) {
  const std::string base =
      "compile " + model("residual.pt2") + calibrate("residual") + " --require-npu -o " + path("r.pte");
  const Outcome part = run(base + " --target ethos-u55-128 --cpu-op add");
  EXPECT_EQ(part.status, 3);
  EXPECT_THAT(part.err, HasSubstr("kept off the NPU on request"));
  EXPECT_FALSE(std::filesystem::exists(path("r.pte")));
  EXPECT_EQ(run(base + " --target cpu").status, 3);
  EXPECT_FALSE(std::filesystem::exists(path("r.pte")));
  const Outcome whole = run(base + " --target ethos-u55-128");
  EXPECT_EQ(whole.status, 0) << whole.err;
}

}  // namespace
}  // namespace carina
