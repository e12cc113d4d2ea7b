// SPDX-License-Identifier: Apache-2.0
// Programs that draw, listen, play and watch (firmware/screen.c, firmware/streams.c).
#include "platform/media.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.hpp"
#include "platform/platform.hpp"
#include "support/require.hpp"

namespace carina::platform {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class MediaFirmware : public testing::Test {
 protected:
  MediaFirmware() {
    options.board = *findBoard("corstone-300");
    options.machine = *npu::makeMachine("ethos-u55-128", "", "");
    options.secondsLimit = 60;
    options.output = [this](uint32_t uart, char byte) {
      if (uart == 0) text += byte;
    };
  }
  Outcome run(const std::string& name) {
    text.clear();
    return require(runElf(std::filesystem::path(CARINA_IMAGES) / name, options));
  }
  static std::array<uint8_t, 3> pixel(const Picture& picture, uint32_t x, uint32_t y) {
    const uint8_t* at = picture.rgb.data() + (size_t{y} * picture.width + x) * 3;
    return {at[0], at[1], at[2]};
  }
  Options options;
  std::string text;
};

constexpr std::array<uint8_t, 3> kBlue{0, 0, 255}, kRed{255, 0, 0};

TEST_F(MediaFirmware, DisplayTouchAndPins) {
  options.media.frames = true;
  options.media.events = *readBoardEvents(
      "200 touch 1234 567\n"
      "210 release\n"
      "220 button 1 1\n"
      "220 switch 0 1\n"
      "220 switch 7 1\n"
      "220 signal 4 1\n"
      "220 signal 9 1\n"
      "230 gpio 0.3 1\n"
      "240 gpio 1.12 1\n");
  const Outcome outcome = run("screen-300.elf");
  EXPECT_EQ(outcome.exitCode, 0) << text;
  EXPECT_THAT(text, StartsWith("touch x 1234\ntouch y 567\ntouched\npins\n"));
  EXPECT_GE(outcome.cycles, 240u * 25'000);
  EXPECT_TRUE(outcome.unknownPeripherals.empty());
  // The screen in one colour, and then the box in it.
  ASSERT_EQ(outcome.media.frames.size(), 2u);
  const Picture first = *readPicture(asBytes(outcome.media.frames[0]));
  EXPECT_EQ(first.width, 320u);
  EXPECT_EQ(first.height, 240u);
  EXPECT_EQ(pixel(first, 0, 0), kBlue);
  EXPECT_EQ(pixel(first, 319, 239), kBlue);
  const Picture second = *readPicture(asBytes(outcome.media.frames[1]));
  EXPECT_EQ(pixel(second, 10, 20), kRed);
  EXPECT_EQ(pixel(second, 39, 59), kRed);
  EXPECT_EQ(pixel(second, 9, 20), kBlue);
  EXPECT_EQ(pixel(second, 40, 59), kBlue);
  EXPECT_EQ(pixel(second, 10, 19), kBlue);
  EXPECT_EQ(pixel(second, 10, 60), kBlue);
}

TEST_F(MediaFirmware, FramesInMemory) {
  for (const auto& [board, target] :
       {std::pair("corstone-320", "ethos-u85-256"), {"corstone-315", "ethos-u65-256"}}) {
    options.board = *findBoard(board);
    options.machine = *npu::makeMachine(target, "", "");
    options.media.frames = true;
    const Outcome outcome = run("hdlcd-320.elf");
    EXPECT_EQ(outcome.exitCode, 0) << text;
    EXPECT_THAT(text, StartsWith("shown\n"));
    EXPECT_TRUE(outcome.unknownPeripherals.empty());
    EXPECT_GE(outcome.cycles, 5u * 4000);
    // Blue, a red box in it, green, and a frame from unmapped memory.
    ASSERT_EQ(outcome.media.frames.size(), 4u);
    std::vector<Picture> shown;
    for (const std::string& frame : outcome.media.frames) shown.push_back(*readPicture(asBytes(frame)));
    EXPECT_EQ(shown[0].width, 64u);
    EXPECT_EQ(shown[0].height, 32u);
    EXPECT_EQ(pixel(shown[0], 10, 4), kBlue);
    EXPECT_EQ(pixel(shown[1], 10, 4), kRed);
    EXPECT_EQ(pixel(shown[1], 19, 7), kRed);
    EXPECT_EQ(pixel(shown[1], 20, 7), kBlue);
    EXPECT_EQ(pixel(shown[1], 10, 8), kBlue);
    EXPECT_EQ(pixel(shown[2], 63, 31), (std::array<uint8_t, 3>{0, 255, 0}));
    EXPECT_EQ(pixel(shown[3], 0, 0), (std::array<uint8_t, 3>{0, 0, 0}));
    options.media.mostPixels = 2 * 64 * 32;
    const Outcome limited = run("hdlcd-320.elf");
    EXPECT_EQ(limited.media.frames.size(), 2u);
    EXPECT_EQ(limited.media.framesLeftOut, 2u);
    options.media.mostPixels = MediaOptions{}.mostPixels;
    // The same run without capturing frames.
    options.media.frames = false;
    const Outcome blind = run("hdlcd-320.elf");
    EXPECT_EQ(blind.cycles, outcome.cycles);
    EXPECT_TRUE(blind.media.frames.empty());
  }
}

TEST_F(MediaFirmware, WithoutEventsThereIsNoTouch) {
  const Outcome outcome = run("screen-300.elf");
  EXPECT_EQ(outcome.reason, EndReason::Deadlock) << text;
  EXPECT_TRUE(outcome.media.frames.empty());
}

/// Samples 1, 2, 3, ...
Wave ramp(uint32_t channels, size_t frames) {
  Wave wave{channels, 16000, 16, {}};
  for (size_t i = 1; i <= frames * channels; ++i) {
    wave.data.push_back(static_cast<uint8_t>(i));
    wave.data.push_back(static_cast<uint8_t>(i >> 8));
  }
  return wave;
}

TEST_F(MediaFirmware, SoundAndStreams) {
  options.media.soundIn = ramp(2, 100);
  options.media.soundOut = true;
  Picture picture{32, 16, {}};
  for (size_t i = 0; i < 32 * 16; ++i) picture.rgb.insert(picture.rgb.end(), {200, 100, 50});
  auto& streams = options.media.streams;
  streams.push_back({0, StreamDriver::Audio, false, false, ramp(1, 80)});
  streams.push_back({1, StreamDriver::Audio, true, false, Wave{}});
  streams.push_back({2, StreamDriver::VStream, false, false, ramp(1, 10)});
  streams.push_back({4, StreamDriver::Video, false, true, std::vector<Picture>{picture}});
  streams.push_back({6, StreamDriver::Video, true, true, {}});
  const Outcome outcome = run("streams-300.elf");
  EXPECT_EQ(outcome.exitCode, 0) << text;
  EXPECT_THAT(text, StartsWith("sound\nstreams\nred 200\nblue 50\nvideo\nfirst 1\n"));
  EXPECT_THAT(outcome.media.notes, testing::IsEmpty());
  // What the interface received, twice as loud; the first frames of both channels.
  const Wave& sound = outcome.media.sound;
  EXPECT_EQ(sound.rate, 16000u);
  EXPECT_EQ(sound.channels, 2u);
  ASSERT_GE(sound.frames(), 30u);
  for (uint64_t i = 0; i < 30; ++i) {
    ASSERT_EQ(sound.sample16(i, 0), static_cast<int16_t>(2 * (2 * i + 1))) << i;
    ASSERT_EQ(sound.sample16(i, 1), static_cast<int16_t>(2 * (2 * i + 2))) << i;
  }
  // Stream 1 played what stream 0 had recorded: blocks of 32 samples.
  ASSERT_EQ(outcome.media.streams.size(), 2u);
  EXPECT_EQ(outcome.media.streams[0].stream, 1u);
  const Wave played = *readWave(asBytes(outcome.media.streams[0].files.at(0)));
  EXPECT_EQ(played.rate, 16000u);
  EXPECT_EQ(played.channels, 1u);
  ASSERT_EQ(played.frames(), 96u);
  for (uint64_t i = 0; i < 80; ++i) ASSERT_EQ(played.sample16(i, 0), static_cast<int16_t>(i + 1)) << i;
  // After the file's 80 samples there is silence.
  for (uint64_t i = 80; i < 96; ++i) ASSERT_EQ(played.sample16(i, 0), 0) << i;
  // Two grey pictures of 4 x 2.
  const StreamOutput& pictures = outcome.media.streams[1];
  EXPECT_EQ(pictures.stream, 6u);
  ASSERT_EQ(pictures.files.size(), 2u);
  const Picture grey = *readPicture(asBytes(pictures.files[0]));
  EXPECT_EQ(grey.width, 4u);
  EXPECT_EQ(grey.height, 2u);
  EXPECT_EQ(pixel(grey, 3, 1), (std::array<uint8_t, 3>{210, 210, 210}));
}

TEST_F(MediaFirmware, FormatMismatchesAreNoted) {
  options.media.soundIn = Wave{1, 8000, 8, {1, 2, 3}};
  options.media.streams.push_back({0, StreamDriver::Audio, false, false, Wave{2, 44100, 16, {0, 0, 0, 0}}});
  options.secondsLimit = 20;
  const Outcome outcome = run("streams-300.elf");
  ASSERT_GE(outcome.media.notes.size(), 2u) << text;
  EXPECT_THAT(outcome.media.notes[0], HasSubstr("runs at 16000 Hz"));
  EXPECT_THAT(outcome.media.notes[1],
              HasSubstr("expects 1 channels of 16 bits at 16000 Hz, the file has 2 of 16 bits at 44100 Hz"));
}

}  // namespace
}  // namespace carina::platform
