// SPDX-License-Identifier: Apache-2.0
// Source of the registers: the public documentation of Arm Virtual Hardware (audio, video and vStream drivers
// for the virtual streaming interface).
#include "platform/stream_files.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "base/file.hpp"

namespace carina::platform {
namespace {

/// Limits on what a stream keeps.
constexpr size_t kMostStreamBytes = size_t{256} << 20;
constexpr size_t kMaxStreamFrames = 1000;
constexpr uint64_t kMaxFramePixels = 1 << 22;

/// The registers of a driver, and the bits whose positions differ between drivers.
struct Layout {
  uint32_t control, status, continuous, endOfStream;  // two registers, a bit of each
  uint32_t name;                                      // receives the name of a file, a character at a time
  uint32_t first, second, third;  // channels, bits and rate of sound; width, height and colours of images
  uint32_t grey;                  // the number of the first colour format
};
constexpr uint32_t kNone = StreamPeer::kRegisters;
constexpr Layout kAudio{0, kNone, 0, 0, kNone, 1, 2, 3, 0};
constexpr Layout kVideo{1, 2, 2, 0x20, 4, 6, 7, 8, 1};
constexpr Layout kVStreamAudio{0, 1, 4, 4, 3, 4, 6, 5, 0};
constexpr Layout kVStreamVideo{0, 1, 4, 4, 3, 4, 5, 7, 0};

constexpr uint32_t kStreamOn = 1, kStreamFlush = 4, kStreamActive = 1;
// Of video_drv: the fill level of its queue.
constexpr uint32_t kEmpty = 2, kFull = 4, kOverflow = 8, kUnderflow = 16;
constexpr uint32_t kVideoNameValid = 5, kFrameIndex = 10, kFrameCount = 11, kMaxFrameCount = 12;
// Of vStream.
constexpr uint32_t kBlockDone = 2, kNameGiven = 8, kNameValid = 16;

enum Colour : uint32_t { kGrey, kRgb888, kRgb565 };

/// Raw data. Enabling a stream (bit 0 of register 0, as in the audio driver) restarts its file.
class Bytes : public StreamPeer {
 public:
  Bytes(std::vector<uint8_t> source, bool output) : source_(std::move(source)), output_(output) {}
  void write(uint32_t reg, uint32_t value) override {
    if (reg == 0 && (value & ~registers_[0] & kStreamOn) != 0) rewind();
    StreamPeer::write(reg, value);
  }
  void deliver(std::span<uint8_t> block) override {
    const size_t n = std::min(block.size(), source_.size() - at_);
    std::copy_n(source_.begin() + static_cast<ptrdiff_t>(at_), n, block.begin());
    at_ += n;
  }
  void take(std::span<const uint8_t> block) override {
    if (output_ && taken_.size() + block.size() <= kMostStreamBytes)
      taken_.insert(taken_.end(), block.begin(), block.end());
  }
  std::vector<std::string> files() const override {
    if (taken_.empty()) return {};
    return {std::string(reinterpret_cast<const char*>(taken_.data()), taken_.size())};
  }

 protected:
  void rewind() { at_ = 0; }
  bool atEnd() const { return at_ == source_.size(); }
  std::vector<uint8_t> taken_;

 private:
  std::vector<uint8_t> source_;
  size_t at_ = 0;
  bool output_;
};

/// Sound, with the format in registers.
class SoundPeer : public Bytes {
 public:
  SoundPeer(const Layout& layout, Wave source, bool output)
      : Bytes(source.data, output), layout_(layout), source_(std::move(source)) {}
  void write(uint32_t reg, uint32_t value) override {
    if (reg == layout_.control && (value & ~registers_[reg] & kStreamOn) != 0) checkFormat();
    Bytes::write(reg, value);
  }
  std::vector<std::string> files() const override {
    const uint32_t channels = registers_[layout_.first], bits = (registers_[layout_.second] + 7) / 8 * 8;
    if (taken_.empty() || channels == 0 || channels > 32 || bits < 8 || bits > 32) return Bytes::files();
    return {wavOf({channels, registers_[layout_.third], bits, taken_})};
  }

 protected:
  const Layout& layout_;

 private:
  /// Samples are delivered to the firmware as they are in the file.
  void checkFormat() {
    const uint32_t channels = registers_[layout_.first], bits = registers_[layout_.second],
                   rate = registers_[layout_.third];
    if (source_.data.empty() ||
        (channels == source_.channels && bits == source_.bits && rate == source_.rate))
      return;
    trouble_ = fmt::format(
        "the program expects {} channels of {} bits at {} Hz, the file has {} of {} bits at {} Hz: its "
        "samples are passed unchanged",
        channels, bits, rate, source_.channels, source_.bits, source_.rate);
  }
  Wave source_;
};

/// Registers that both kinds of vStream drivers have: status with a flag that reading clears, and a name,
/// which is always reported as valid.
class VStreamStatus {
 public:
  uint32_t readStatus() { return std::exchange(status_, status_ & ~kBlockDone); }
  void nameByte(uint32_t byte) {
    if (byte == 0)
      status_ |= kNameGiven | kNameValid;
    else
      status_ &= ~(kNameGiven | kNameValid);
  }
  uint32_t status_ = 0;
};

class VStreamSound final : public SoundPeer {
 public:
  VStreamSound(Wave source, bool output) : SoundPeer(kVStreamAudio, std::move(source), output) {}
  uint32_t read(uint32_t reg) override {
    return reg == layout_.status ? status_.readStatus() : SoundPeer::read(reg);
  }
  void write(uint32_t reg, uint32_t value) override {
    if (reg == layout_.status) return;
    if (reg == layout_.name) status_.nameByte(value);
    if (reg == layout_.control) {
      status_.status_ &= ~kStreamActive;
      if ((value & kStreamOn) != 0)
        status_.status_ = (status_.status_ & ~layout_.endOfStream) | kStreamActive;
    }
    SoundPeer::write(reg, value);
  }
  void deliver(std::span<uint8_t> block) override {
    if ((status_.status_ & kStreamActive) != 0) SoundPeer::deliver(block);
    status_.status_ |= kBlockDone | (atEnd() ? layout_.endOfStream : 0);
  }
  void take(std::span<const uint8_t> block) override {
    if ((status_.status_ & kStreamActive) != 0) SoundPeer::take(block);
    status_.status_ |= kBlockDone;
  }
  uint32_t tick() override {
    if ((registers_[layout_.control] & layout_.continuous) == 0)
      write(layout_.control, registers_[layout_.control] & ~kStreamOn);
    return 0;
  }

 private:
  VStreamStatus status_;
};

/// Images, in the size and colour format that registers request.
class PicturePeer : public StreamPeer {
 public:
  PicturePeer(const Layout& layout, std::vector<Picture> source, bool output)
      : layout_(layout), source_(std::move(source)), output_(output) {}

  void deliver(std::span<uint8_t> block) override {
    if (!active_ || next_ == source_.size()) return;
    const Picture picture = fitted(source_[next_++], width(), height());
    const uint32_t step = pixelBytes();
    for (size_t i = 0; i < size_t{width()} * height() && (i + 1) * step <= block.size(); ++i)
      store(picture.rgb.data() + i * 3, block.data() + i * step);
    if (next_ == source_.size()) status_ |= layout_.endOfStream;
  }
  void take(std::span<const uint8_t> block) override {
    if (!active_ || !output_ || taken_.size() == kMaxStreamFrames) return;
    Picture picture{width(), height(), std::vector<uint8_t>(size_t{width()} * height() * 3)};
    const uint32_t step = pixelBytes();
    for (size_t i = 0; i < size_t{width()} * height() && (i + 1) * step <= block.size(); ++i)
      load(block.data() + i * step, picture.rgb.data() + i * 3);
    taken_.push_back(pngOf(picture));
  }
  std::vector<std::string> files() const override { return taken_; }

 protected:
  uint32_t width() const { return registers_[layout_.first]; }
  uint32_t height() const { return registers_[layout_.second]; }
  uint32_t colour() const { return registers_[layout_.third] - layout_.grey; }
  uint32_t pixelBytes() const { return colour() == kGrey ? 1 : colour() == kRgb888 ? 3 : 2; }

  void enable(bool on) {
    active_ = false;
    if (!on) return;
    if (width() == 0 || height() == 0 || uint64_t{width()} * height() > kMaxFramePixels)
      trouble_ = fmt::format("frames of {} x {} pixels are not supported", width(), height());
    else if (colour() > kRgb565)
      trouble_ = fmt::format("unknown colour format {}: expected grey, RGB888 or BGR565", colour());
    else
      active_ = true;
    if (active_) status_ &= ~layout_.endOfStream;
    if (next_ == source_.size()) next_ = 0;
  }
  bool hasFile() const { return output_ || !source_.empty(); }

  const Layout& layout_;
  uint32_t status_ = 0;
  bool active_ = false;

 private:
  void store(const uint8_t* rgb, uint8_t* to) const {
    if (colour() == kGrey) {
      *to = static_cast<uint8_t>((299 * rgb[0] + 587 * rgb[1] + 114 * rgb[2] + 500) / 1000);
    } else if (colour() == kRgb888) {
      std::copy_n(rgb, 3, to);
    } else {
      const uint16_t pixel = Pixel565::from(rgb);
      to[0] = static_cast<uint8_t>(pixel);
      to[1] = static_cast<uint8_t>(pixel >> 8);
    }
  }
  void load(const uint8_t* from, uint8_t* rgb) const {
    if (colour() == kRgb565)
      Pixel565::to(static_cast<uint16_t>(from[0] | from[1] << 8), rgb);
    else
      for (int i = 0; i < 3; ++i) rgb[i] = from[colour() == kGrey ? 0 : i];
  }

  std::vector<Picture> source_;
  bool output_;
  size_t next_ = 0;
  std::vector<std::string> taken_;
};

class VideoPeer final : public PicturePeer {
 public:
  VideoPeer(std::vector<Picture> source, bool output) : PicturePeer(kVideo, std::move(source), output) {}
  uint32_t read(uint32_t reg) override {
    if (reg == kVideoNameValid) return hasFile() ? 1 : 0;
    if (reg != kVideo.status) return registers_[reg];
    const uint32_t seen = status_ | (active_ ? kStreamActive : 0);
    status_ &= ~(kOverflow | kUnderflow | kVideo.endOfStream);
    return seen;
  }
  void write(uint32_t reg, uint32_t value) override {
    if (reg == kVideo.status || reg == kFrameCount) return;
    const uint32_t before = std::exchange(registers_[reg], value);
    if (reg == kVideo.control) {
      if (((value ^ before) & kStreamOn) != 0) {
        enable((value & kStreamOn) != 0);
        if (active_) status_ &= ~(kOverflow | kUnderflow);
      }
      if ((value & kStreamFlush) != 0) flush();
    } else if (reg == kFrameIndex) {
      moveOn();
    }
  }
  void deliver(std::span<uint8_t> block) override {
    if (!active_) return;
    PicturePeer::deliver(block);
    uint32_t& count = registers_[kFrameCount];
    if (count < registers_[kMaxFrameCount])
      ++count;
    else
      status_ |= kOverflow;
    updateFill();
  }
  void take(std::span<const uint8_t> block) override {
    if (!active_) return;
    PicturePeer::take(block);
    uint32_t& count = registers_[kFrameCount];
    if (count > 0)
      --count;
    else
      status_ |= kUnderflow;
    updateFill();
  }
  uint32_t tick() override {
    const uint32_t causes = ((status_ & kOverflow) != 0 ? 2 : 0) | ((status_ & kUnderflow) != 0 ? 4 : 0) |
                            ((status_ & kVideo.endOfStream) != 0 ? 8 : 0);
    if ((registers_[kVideo.control] & kVideo.continuous) == 0) {
      registers_[kVideo.control] &= ~kStreamOn;
      enable(false);
    }
    return causes;
  }

 private:
  bool isOutput() const { return (registers_[0] & 1) != 0; }
  void updateFill() {
    status_ &= ~(kEmpty | kFull);
    if (registers_[kFrameCount] == 0) status_ |= kEmpty;
    if (registers_[kFrameCount] == registers_[kMaxFrameCount]) status_ |= kFull;
  }
  void flush() {
    index_ = registers_[kFrameIndex] = registers_[kFrameCount] = 0;
    status_ = (status_ & ~kFull) | kEmpty;
  }
  /// The firmware has consumed a frame, or has queued one.
  void moveOn() {
    uint32_t &count = registers_[kFrameCount], &index = registers_[kFrameIndex];
    index = index_ + 1 < registers_[kMaxFrameCount] ? index_ + 1 : 0;
    index_ = index;
    if (isOutput() && count < registers_[kMaxFrameCount]) ++count;
    if (!isOutput() && count > 0) --count;
    updateFill();
  }
  uint32_t index_ = 0;  // of the frame that the firmware reads or fills
};

class VStreamPictures final : public PicturePeer {
 public:
  VStreamPictures(std::vector<Picture> source, bool output)
      : PicturePeer(kVStreamVideo, std::move(source), output) {}
  uint32_t read(uint32_t reg) override {
    return reg == kVStreamVideo.status ? vstream_.readStatus() | flags() : registers_[reg];
  }
  void write(uint32_t reg, uint32_t value) override {
    if (reg == kVStreamVideo.status) return;
    if (reg == kVStreamVideo.name) vstream_.nameByte(value);
    const uint32_t before = std::exchange(registers_[reg], value);
    if (reg == kVStreamVideo.control && ((value ^ before) & kStreamOn) != 0) enable((value & kStreamOn) != 0);
  }
  void deliver(std::span<uint8_t> block) override {
    PicturePeer::deliver(block);
    vstream_.status_ |= kBlockDone;
  }
  void take(std::span<const uint8_t> block) override {
    PicturePeer::take(block);
    vstream_.status_ |= kBlockDone;
  }
  uint32_t tick() override {
    if ((registers_[kVStreamVideo.control] & kVStreamVideo.continuous) == 0)
      write(kVStreamVideo.control, registers_[kVStreamVideo.control] & ~kStreamOn);
    return 0;
  }

 private:
  uint32_t flags() const { return status_ | (active_ ? kStreamActive : 0); }
  VStreamStatus vstream_;
};

template <typename Kind>
Kind takeSource(StreamSource source) {
  Kind* const held = std::get_if<Kind>(&source);
  return held == nullptr ? Kind{} : std::move(*held);
}

}  // namespace

const char* streamDriverName(StreamDriver driver) {
  constexpr const char* kNames[] = {"data", "audio", "video", "vstream"};
  return kNames[static_cast<size_t>(driver)];
}

std::unique_ptr<StreamPeer> makeStreamPeer(const StreamChoice& choice) {
  const auto sound = [&] { return takeSource<Wave>(choice.source); };
  const auto pictures = [&] { return takeSource<std::vector<Picture>>(choice.source); };
  switch (choice.driver) {
    case StreamDriver::Audio:
      return std::make_unique<SoundPeer>(kAudio, sound(), choice.output);
    case StreamDriver::Video:
      return std::make_unique<VideoPeer>(pictures(), choice.output);
    case StreamDriver::VStream:
      if (choice.pictures) return std::make_unique<VStreamPictures>(pictures(), choice.output);
      return std::make_unique<VStreamSound>(sound(), choice.output);
    case StreamDriver::Data:
      break;
  }
  return std::make_unique<Bytes>(takeSource<std::vector<uint8_t>>(choice.source), choice.output);
}

}  // namespace carina::platform
