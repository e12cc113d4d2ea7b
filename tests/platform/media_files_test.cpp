// SPDX-License-Identifier: Apache-2.0
#include "platform/media_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "support/require.hpp"
#include "support/temp_dir.hpp"

namespace carina::platform {
namespace {

using testing::HasSubstr;

Wave someWave(uint32_t channels, uint32_t bits, size_t frames) {
  Wave wave{channels, 16000, bits, {}};
  for (size_t i = 0; i < frames * wave.frameBytes(); ++i) wave.data.push_back(static_cast<uint8_t>(i * 7));
  return wave;
}

RC_GTEST_PROP(Waves, AreReadAsTheyAreWritten, ()) {
  const Wave wave =
      someWave(*rc::gen::inRange(1u, 33u), 8 * *rc::gen::inRange(1u, 5u), *rc::gen::inRange(0, 50));
  const auto read = require(readWave(asBytes(wavOf(wave))));
  RC_ASSERT(read.channels == wave.channels && read.rate == wave.rate && read.bits == wave.bits);
  RC_ASSERT(read.data == wave.data);
}

RC_GTEST_PROP(Waves, TruncatedOnesAreReadOrRefused, ()) {
  const std::string file = wavOf(someWave(2, 24, 9));
  const auto read = readWave(asBytes(file).first(*rc::gen::inRange<size_t>(0, file.size())));
  if (read.ok()) RC_ASSERT(read->data.size() % read->frameBytes() == 0u);
}

TEST(Waves, SamplesOfAnyWidthAsSixteenBits) {
  EXPECT_EQ((Wave{1, 1, 8, {0}}.sample16(0, 0)), -32768);
  EXPECT_EQ((Wave{1, 1, 8, {128}}.sample16(0, 3)), 0);
  EXPECT_EQ((Wave{2, 1, 16, {1, 0, 0xff, 0xff}}.sample16(0, 1)), -1);
  EXPECT_EQ((Wave{1, 1, 24, {9, 0x34, 0x12}}.sample16(0, 0)), 0x1234);
  EXPECT_EQ((Wave{1, 1, 32, {0, 0, 0, 0, 9, 9, 0x34, 0x92}}.sample16(1, 0)), int16_t(0x9234));
}

TEST(Waves, FloatsAreRefused) {
  std::string file = wavOf(someWave(1, 32, 4));
  file[20] = 3;  // WAVE_FORMAT_IEEE_FLOAT
  EXPECT_THAT(errorOf(readWave(asBytes(file))), HasSubstr("convert it to integers"));
}

TEST(Pictures, RoundTripThroughPng) {
  const Picture picture{2, 1, {255, 0, 0, 1, 2, 3}};
  const auto read = require(readPicture(asBytes(pngOf(picture))));
  EXPECT_EQ(read.width, 2u);
  EXPECT_EQ(read.height, 1u);
  EXPECT_EQ(read.rgb, picture.rgb);
  EXPECT_FALSE(readPicture(asBytes("no picture")).ok());
}

TEST(Pictures, AreCroppedToTheNewAspectRatio) {
  // Red, green, blue from left to right: the middle remains.
  Picture picture{6, 2, {}};
  for (int y = 0; y < 2; ++y)
    for (int x = 0; x < 6; ++x)
      for (int c = 0; c < 3; ++c) picture.rgb.push_back(x / 2 == c ? 200 : 0);
  const Picture middle = fitted(picture, 4, 4);
  ASSERT_EQ(middle.rgb.size(), 48u);
  for (size_t i = 0; i < 16; ++i) EXPECT_EQ(middle.rgb[3 * i + 1], 200) << i;
  const Picture high = fitted(Picture{1, 3, {9, 9, 9, 1, 2, 3, 9, 9, 9}}, 1, 1);
  EXPECT_EQ(high.rgb, (std::vector<uint8_t>{1, 2, 3}));
}

TEST(Pixels565, FullScaleStaysFullScale) {
  const uint8_t white[] = {255, 255, 255};
  uint8_t back[3];
  Pixel565::to(Pixel565::from(white), back);
  EXPECT_EQ(back[0], 255);
  EXPECT_EQ(back[1], 255);
  EXPECT_EQ(back[2], 255);
  const uint8_t red[] = {0xf8, 0, 0};
  EXPECT_EQ(Pixel565::from(red), 0xf800);
}

class MediaFilesTest : public testing::Test {
 protected:
  MediaFilesTest() {
    EXPECT_TRUE(writeFile(folder / "a.png", pngOf({1, 1, {1, 2, 3}})).ok());
    EXPECT_TRUE(writeFile(folder / "a.wav", wavOf(someWave(1, 16, 3))).ok());
    EXPECT_TRUE(writeFile(folder / "a.bin", std::string("bytes")).ok());
  }
  std::string named(const std::string& before, const std::string& name) const {
    return before + (folder / name).string();
  }
  test::TempDir folder;
  MediaFiles files;
};

TEST_F(MediaFilesTest, DriversAreChosenByFile) {
  files.streams = {named("0=", "a.wav"), named("4=", "a.png"),         named("4=", "a.png"),
                   named("2=", "a.bin"), named("5=vstream:", "a.png"), named("6=data:", "a.wav")};
  files.streamOutputs = {"1=out.wav", "0=other.wav"};
  const auto options = require(files.read());
  const auto& streams = options.streams;
  ASSERT_EQ(streams.size(), 6u);
  EXPECT_EQ(streams[0].driver, StreamDriver::Audio);
  EXPECT_TRUE(streams[0].output);
  EXPECT_EQ(streams[1].driver, StreamDriver::Video);
  EXPECT_EQ(std::get<std::vector<Picture>>(streams[1].source).size(), 2u);
  EXPECT_EQ(std::get<std::vector<uint8_t>>(streams[2].source).size(), 5u);
  EXPECT_EQ(streams[3].driver, StreamDriver::VStream);
  EXPECT_EQ(streams[4].driver, StreamDriver::Data);
  EXPECT_TRUE(streams[5].output);
}

TEST_F(MediaFilesTest, ImpossibleCombinationsAreRefused) {
  const auto refused = [&](std::vector<std::string> in, std::vector<std::string> out, const char* what) {
    files.streams = std::move(in);
    files.streamOutputs = std::move(out);
    EXPECT_THAT(errorOf(files.read()), HasSubstr(what)) << what;
  };
  refused({"8=" + (folder / "a.wav").string()}, {}, "does not name a stream");
  refused({named("", "a.wav")}, {}, "does not name a stream");
  refused({named("0=audio:", "a.png")}, {}, "does not accept");
  refused({named("0=video:", "a.bin")}, {}, "does not accept");
  refused({named("0=", "a.wav"), named("0=", "a.wav")}, {}, "already has a file");
  refused({named("0=", "a.wav")}, {"0=out.png"}, "another kind");
  refused({}, {"0=out.wav", "0=more.wav"}, "another kind of file, or an output");
  refused({named("0=", "none.wav")}, {}, "none.wav");
  ASSERT_TRUE(writeFile(folder / "b.png", std::string("x")).ok());
  refused({named("0=", "b.png")}, {}, "b.png");
}

TEST_F(MediaFilesTest, PictureOutputsAreNumbered) {
  files.frames = folder / "shown";
  files.soundOut = folder / "sound.wav";
  files.streamOutputs = {named("6=", "p.png"), named("1=", "s.wav")};
  MediaOutcome outcome;
  outcome.frames = {"one", "two"};
  outcome.sound = someWave(2, 16, 2);
  outcome.streams = {{1, {"stream"}}, {6, {"first", "second"}}, {7, {"nobody wants this"}}};
  OutputFiles written;
  ASSERT_TRUE(files.addTo(written, outcome).ok());
  ASSERT_TRUE(written.commit().ok());
  const auto text = [&](const std::string& name) {
    const auto mapped = MappedFile::open(folder / name);
    return mapped.ok() ? std::string(asText((*mapped)->bytes())) : "";
  };
  EXPECT_EQ(text("shown/frame-0002.png"), "two");
  EXPECT_EQ(text("p-0001.png"), "first");
  EXPECT_EQ(text("p-0002.png"), "second");
  EXPECT_EQ(text("s.wav"), "stream");
  EXPECT_EQ(text("sound.wav"), wavOf(outcome.sound));
}

}  // namespace
}  // namespace carina::platform
