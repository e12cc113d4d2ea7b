// SPDX-License-Identifier: Apache-2.0
#include "platform/media_files.hpp"

#include <algorithm>
#include <optional>

namespace carina::platform {
namespace {

namespace fs = std::filesystem;

constexpr const char* kInput = "--vsi";
constexpr const char* kOutput = "--vsi-out";

/// The parsed value of an option.
struct Entry {
  uint32_t stream = 0;
  StreamDriver driver = StreamDriver::Data;
  bool pictures = false;
  fs::path file;
};

std::string lowerEnding(const fs::path& file) {
  std::string ending = file.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; });
  return ending;
}

bool isImageInput(const fs::path& file) {
  constexpr std::string_view kEndings[] = {".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".pgm"};
  const std::string ending = lowerEnding(file);
  return std::find(std::begin(kEndings), std::end(kEndings), ending) != std::end(kEndings);
}

Result<Entry> entryOf(const std::string& text, const char* option) {
  const auto wrong = [&](std::string_view what) {
    return fail(Code::BadOption, "'{}' {}", text, what)
        .at(option)
        .withRemedy(
            "write N=FILE or N=DRIVER:FILE, where N is 0 to 7 and DRIVER is audio, video, vstream or data");
  };
  if (text.size() < 3 || text[0] < '0' || text[0] > '7' || text[1] != '=')
    return wrong("does not name a stream");
  Entry entry;
  entry.stream = static_cast<uint32_t>(text[0] - '0');
  entry.file = text.substr(2);
  bool said = false;
  for (const StreamDriver driver :
       {StreamDriver::Data, StreamDriver::Audio, StreamDriver::Video, StreamDriver::VStream}) {
    const std::string begin = std::string(streamDriverName(driver)) + ":";
    if (text.compare(2, begin.size(), begin) != 0) continue;
    entry.driver = driver;
    entry.file = text.substr(2 + begin.size());
    said = true;
  }
  const bool sound = lowerEnding(entry.file) == ".wav";
  entry.pictures = isImageInput(entry.file);
  if (!said) entry.driver = sound ? StreamDriver::Audio : entry.pictures ? StreamDriver::Video : entry.driver;
  if ((entry.driver == StreamDriver::Audio && !sound) ||
      (entry.driver == StreamDriver::Video && !entry.pictures) ||
      (entry.driver == StreamDriver::VStream && !sound && !entry.pictures))
    return wrong(
        "names a file that the driver does not accept: .wav for audio, .png, .jpg, .bmp or .ppm for video, "
        "either for vstream");
  if (entry.driver == StreamDriver::Data) entry.pictures = false;
  return entry;
}

Result<StreamSource> sourceOf(const Entry& entry) {
  CARINA_TRY(const auto mapped, MappedFile::open(entry.file));
  if (entry.driver == StreamDriver::Data) {
    const auto* first = reinterpret_cast<const uint8_t*>(mapped->bytes().data());
    return StreamSource(std::vector<uint8_t>(first, first + mapped->bytes().size()));
  }
  if (entry.pictures) {
    auto picture = readPicture(mapped->bytes());
    if (!picture.ok()) return std::move(picture).error().inFile(entry.file.string());
    return StreamSource(std::vector<Picture>{std::move(*picture)});
  }
  auto wave = readWave(mapped->bytes());
  if (!wave.ok()) return std::move(wave).error().inFile(entry.file.string());
  return StreamSource(std::move(*wave));
}

StreamChoice* find(std::vector<StreamChoice>& choices, uint32_t stream) {
  const auto it = std::find_if(choices.begin(), choices.end(),
                               [&](const StreamChoice& choice) { return choice.stream == stream; });
  return it == choices.end() ? nullptr : &*it;
}

Status addInput(std::vector<StreamChoice>& choices, const std::string& text) {
  CARINA_TRY(const Entry entry, entryOf(text, kInput));
  CARINA_TRY(StreamSource source, sourceOf(entry));
  StreamChoice* const given = find(choices, entry.stream);
  if (given == nullptr) {
    choices.push_back({entry.stream, entry.driver, false, entry.pictures, std::move(source)});
    return {};
  }
  if (!given->pictures || !entry.pictures || given->driver != entry.driver)
    return fail(Code::BadOption, "stream {} already has a file", entry.stream)
        .at(kInput)
        .withRemedy("pass one file per stream; only images can follow each other");
  auto& pictures = std::get<std::vector<Picture>>(given->source);
  pictures.push_back(std::move(std::get<std::vector<Picture>>(source)[0]));
  return {};
}

Status addOutput(std::vector<StreamChoice>& choices, const std::string& text) {
  CARINA_TRY(const Entry entry, entryOf(text, kOutput));
  StreamChoice* const given = find(choices, entry.stream);
  if (given == nullptr) {
    choices.push_back({entry.stream, entry.driver, true, entry.pictures, {}});
    return {};
  }
  if (given->output || given->driver != entry.driver || given->pictures != entry.pictures)
    return fail(Code::BadOption, "stream {} already has another kind of file, or an output", entry.stream)
        .at(kOutput)
        .withRemedy("pass one output per stream, of the same kind as its input");
  given->output = true;
  return {};
}

Result<Wave> waveOf(const fs::path& file) {
  CARINA_TRY(const auto mapped, MappedFile::open(file));
  auto wave = readWave(mapped->bytes());
  if (!wave.ok()) return std::move(wave).error().inFile(file.string());
  return wave;
}

/// "a/b.png" with 3 is "a/b-0003.png".
fs::path numbered(const fs::path& file, size_t number) {
  return file.parent_path() /
         fmt::format("{}-{:04}{}", file.stem().string(), number, file.extension().string());
}

}  // namespace

Result<MediaOptions> MediaFiles::read() const {
  MediaOptions options;
  options.frames = !frames.empty();
  options.soundOut = !soundOut.empty();
  if (!events.empty()) {
    CARINA_TRY(const auto mapped, MappedFile::open(events));
    auto read = readBoardEvents(asText(mapped->bytes()));
    if (!read.ok()) return std::move(read).error().inFile(events.string());
    options.events = std::move(*read);
  }
  if (!soundIn.empty()) {
    CARINA_TRY(options.soundIn, waveOf(soundIn));
  }
  for (const std::string& text : streams) CARINA_RETURN_IF_ERROR(addInput(options.streams, text));
  for (const std::string& text : streamOutputs) CARINA_RETURN_IF_ERROR(addOutput(options.streams, text));
  return options;
}

Status MediaFiles::addTo(OutputFiles& files, const MediaOutcome& outcome) const {
  for (size_t i = 0; i < outcome.frames.size(); ++i) {
    CARINA_RETURN_IF_ERROR(
        files.add(frames / fmt::format("frame-{:04}.png", i + 1), outcome.frames[i], true));
  }
  if (!soundOut.empty()) CARINA_RETURN_IF_ERROR(files.add(soundOut, wavOf(outcome.sound)));
  for (const std::string& text : streamOutputs) {
    CARINA_TRY(const Entry entry, entryOf(text, kOutput));
    for (const StreamOutput& output : outcome.streams) {
      if (output.stream != entry.stream) continue;
      for (size_t i = 0; i < output.files.size(); ++i)
        CARINA_RETURN_IF_ERROR(
            files.add(entry.pictures ? numbered(entry.file, i + 1) : entry.file, output.files[i]));
    }
  }
  return {};
}

}  // namespace carina::platform
