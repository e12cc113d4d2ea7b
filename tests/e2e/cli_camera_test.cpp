// SPDX-License-Identifier: Apache-2.0
// Programs with adapted ends, from the command line: pixels, layout, finish, and how they are reported.
#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "base/npy.hpp"
#include "cli.hpp"

namespace carina {
namespace {

using testing::HasSubstr;
using testing::Not;
using namespace test;

class CliCamera : public Cli {
 protected:
  std::string compileDigits(const std::string& options, const std::string& output) const {
    return "compile " + model("digits8.pt2") + " --target ethos-u55-128" + calibrate("digits8") + " " +
           options + " -o " + path(output);
  }
};

constexpr const char* kCamera = "--io-inputs uint8 --mean 0.5 --std 0.5 --io-layout nhwc";

TEST_F(CliCamera, PixelsKeepTheAccuracyAndVerify) {
  const Outcome compiled = run(compileDigits(std::string(kCamera) + " --finish argmax", "c.pte"));
  ASSERT_EQ(compiled.status, 0) << compiled.err;
  EXPECT_THAT(compiled.out, HasSubstr("u8[1,8,8,1], scale 0.00392157, zero point 0, pixels with mean 0.5 "
                                      "and std 0.5, nhwc"));
  EXPECT_THAT(compiled.out, Not(HasSubstr("quantize_per_tensor")));
  const Outcome ran = run("run " + path("c.pte") + " --input " + model("digits8_eval.npz"));
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("top-1   99.5 % (199 of 200)"));
  const Outcome verified = run("verify " + model("digits8.pt2") + " --target ethos-u85-256" +
                               calibrate("digits8") + " " + kCamera);
  EXPECT_EQ(verified.status, 0) << verified.err;
  EXPECT_THAT(verified.out, HasSubstr("agree bit for bit"));
}

/// The advice states how many CPU cycles pixels save, and following it saves as many; it is given if an input
/// can be an image.
TEST_F(CliCamera, AdvisesPixelsForImages) {
  Tensor frames = Tensor::uninitialized(DType::UInt8, {4, 3, 32, 32});
  for (int64_t i = 0; i < frames.numElements(); ++i) frames.setIntegerAt(i, i * 37 % 256);
  ASSERT_TRUE(writeFile(path("frames.npz"), formatNpz({{"calib0", frames}})).ok());
  const std::string compile =
      "compile " + model("mobile.pt2") + " --target ethos-u85-256 -o " + path("m.pte") + " --calibrate ";
  const auto inference = [&](const std::string& options) {
    const Outcome result = run(compile + options + " --json");
    EXPECT_EQ(result.status, 0) << result.err;
    return nlohmann::json::parse(result.out)["inference"];
  };
  const std::string floats = model("mobile.npz");
  const Outcome text = run(compile + floats);
  EXPECT_THAT(text.out,
              HasSubstr("if input 0 is an image, passing its pixels (--io-inputs uint8 --mean M --std S"));
  const nlohmann::json before = inference(floats);
  const nlohmann::json after =
      inference(path("frames.npz") + " --io-inputs uint8 --mean 0.5 --std 0.25 --io-layout nhwc");
  EXPECT_EQ(before["picture_input"], 0);
  EXPECT_NEAR(before["cpu_cycles"].get<double>() - after["cpu_cycles"].get<double>(),
              before["picture_cycles"].get<double>(), 1);
  EXPECT_FALSE(after.contains("picture_cycles"));
  EXPECT_FALSE(inference(floats + " --io int8").contains("picture_cycles"));
  // 8 x 8 elements are too few for an image.
  EXPECT_THAT(run(compileDigits("", "d.pte")).out, Not(HasSubstr("is an image")));
}

TEST_F(CliCamera, RemediesNameTheTypesAsTheOptionsDo) {
  const Outcome refused = run("compile " + (dataDir() / "qdq" / "add.pt2").string() +
                              " --target ethos-u55-128 --io int16 -o " + path("q.pte"));
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err, HasSubstr("use --io int8 or --io float"));
}

TEST_F(CliCamera, QuantizationIsReportedEverywhere) {
  const Outcome compiled =
      run(compileDigits("--io int8 --io-header " + path("io.h") + " --report " + path("report"), "i.pte"));
  ASSERT_EQ(compiled.status, 0) << compiled.err;
  for (const std::string& text :
       {compiled.out, run("check " + path("i.pte")).out, run("inspect " + path("i.pte")).out}) {
    EXPECT_THAT(text, HasSubstr("input"));
    EXPECT_THAT(text, HasSubstr("zero point"));
  }
  EXPECT_THAT(run("inspect " + path("i.pte")).out, HasSubstr("method output0_scale"));
  EXPECT_THAT(run("check " + path("i.pte") + " --json -").out, HasSubstr("\"zero_point\""));
  EXPECT_THAT(contentsOf(path("report/report.json")), HasSubstr("\"zero_point\""));
  const std::string header = contentsOf(path("io.h"));
  EXPECT_THAT(header, HasSubstr("#define CARINA_INPUT0_TYPE int8_t\n"));
  EXPECT_THAT(header, HasSubstr("#define CARINA_OUTPUT0_ELEMENTS 10\n"));
  EXPECT_THAT(header, HasSubstr("#define CARINA_INPUT0_ZERO_POINT ("));
  if (std::system("command -v cc >/dev/null 2>&1") == 0) {
    writeText("use.c",
              "#include \"io.h\"\nCARINA_INPUT0_TYPE frame[CARINA_INPUT0_BYTES];\n"
              "const float scale = CARINA_INPUT0_SCALE;\nint zero = CARINA_OUTPUT0_ZERO_POINT;\n"
              "const int shape[] = CARINA_INPUT0_SHAPE;\n");
    const Outcome built =
        shell("cc -std=c99 -Wall -Wextra -Werror -c " + path("use.c") + " -o " + path("use.o"));
    EXPECT_EQ(built.status, 0) << built.err;
  }
}

TEST_F(CliCamera, ATfliteFileHasTheScales) {
  const Outcome compiled = run(compileDigits("--io int8", "i.tflite"));
  ASSERT_EQ(compiled.status, 0) << compiled.err;
  const Outcome ran = run("run " + path("i.tflite") + " --input " + model("digits8_eval.npz") +
                          " --dequantize --output " + path("out.npz"));
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("top-1   99.5 %"));
  const auto outputs = readArrays(path("out.npz"));
  ASSERT_TRUE(outputs.ok());
  EXPECT_EQ(outputs->front().second.dtype(), DType::Float32);
}

TEST_F(CliCamera, RawArraysAreNotQuantized) {
  ASSERT_EQ(run(compileDigits("--io int8", "i.pte")).status, 0);
  const std::string input = " --input " + model("digits8_eval.npz");
  EXPECT_EQ(run("run " + path("i.pte") + input).status, 0);
  const Outcome raw = run("run " + path("i.pte") + input + " --raw");
  EXPECT_EQ(raw.status, 1);
  EXPECT_THAT(raw.err, HasSubstr("holds f32, the program takes i8"));
}

TEST_F(CliCamera, IncompatibleOptionsAreRefused) {
  const std::string digits = "--target ethos-u55-128" + calibrate("digits8");
  expectRefused(model("digits8.pt2"), digits + " --mean 0.5", "no input of the program is uint8");
  expectRefused(model("digits8.pt2"), digits + " --io-inputs uint8 --mean 127.5 --std 127.5",
                "means are those of pixel / 255");
  expectRefused(model("digits8.pt2"), digits + " --io-inputs uint8 --mean 0 --std 1",
                "which --mean and --std map to pixel");
  expectRefused(model("digits8.pt2"), digits + " --io-inputs picture=uint8",
                "the program has no input 'picture'");
  expectRefused(model("digits8.pt2"), digits + " --finish softmax:4", "has no dimension 4");
  EXPECT_EQ(run(compileDigits("--io-inputs uint4", "x.pte")).status, 2);
  EXPECT_EQ(run(compileDigits("--io-outputs uint8", "x.pte")).status, 2);
  EXPECT_EQ(run(compileDigits("--finish maximum", "x.pte")).status, 2);
}

}  // namespace
}  // namespace carina
