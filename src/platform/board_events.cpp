// SPDX-License-Identifier: Apache-2.0
#include "platform/board_events.hpp"

#include <optional>

#include "platform/parse_number.hpp"

namespace carina::platform {
namespace {

using Kind = BoardEvent::Kind;

constexpr uint32_t kLargest = 4095, kPorts = 4, kPinsOfPort = 16;
constexpr double kMaxMilliseconds = 1e12, kCyclesPerMillisecond = kCoreHz * 1e-3;

/// The form of a line: a word, and the largest value of each number after it.
struct Form {
  std::string_view word;
  Kind kind;
  std::vector<uint32_t> largest;
};
const Form kForms[] = {{"touch", Kind::Press, {kLargest, kLargest}},
                       {"release", Kind::Release, {}},
                       {"gpio", Kind::Pin, {kPorts * kPinsOfPort - 1, 1}},
                       {"button", Kind::Button, {7, 1}},
                       {"switch", Kind::Switch, {7, 1}},
                       {"signal", Kind::Signal, {31, 1}}};

std::vector<std::string_view> wordsOf(std::string_view line) {
  std::vector<std::string_view> words;
  constexpr std::string_view kSpace = " \t\r";
  for (size_t at = line.find_first_not_of(kSpace); at != std::string_view::npos;
       at = line.find_first_not_of(kSpace, at)) {
    const size_t end = std::min(line.find_first_of(kSpace, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

/// "1.12" is pin 12 of port 1.
std::optional<uint32_t> pinOf(std::string_view text) {
  const size_t dot = text.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const auto port = parseNumber<uint32_t>(text.substr(0, dot)),
             pin = parseNumber<uint32_t>(text.substr(dot + 1));
  if (!port || !pin || *port >= kPorts || *pin >= kPinsOfPort) return std::nullopt;
  return *port * kPinsOfPort + *pin;
}

std::optional<BoardEvent> eventOf(const std::vector<std::string_view>& words) {
  const auto time = parseNumber<double>(words[0]);
  if (!time || !(*time >= 0) || *time > kMaxMilliseconds || words.size() < 2) return std::nullopt;
  for (const Form& form : kForms) {
    if (form.word != words[1] || words.size() != 2 + form.largest.size()) continue;
    BoardEvent event{static_cast<uint64_t>(*time * kCyclesPerMillisecond), form.kind, 0, 0};
    for (size_t i = 0; i < form.largest.size(); ++i) {
      const bool isPin = form.kind == Kind::Pin && i == 0;
      const auto value = isPin ? pinOf(words[2]) : parseNumber<uint32_t>(words[2 + i]);
      if (!value || *value > form.largest[i]) return std::nullopt;
      (i == 0 ? event.a : event.b) = *value;
    }
    return event;
  }
  return std::nullopt;
}

}  // namespace

Result<std::vector<BoardEvent>> readBoardEvents(std::string_view text) {
  std::vector<BoardEvent> events;
  for (size_t number = 1; !text.empty(); ++number) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const auto words = wordsOf(line.substr(0, line.find('#')));
    if (words.empty()) continue;
    const auto event = eventOf(words);
    const std::string where = fmt::format("line {}", number);
    if (!event)
      return fail(Code::BadOption, "'{}' is not a board event", line)
          .at(where)
          .withRemedy(
              "write MILLISECONDS and one of: touch X Y (0 to 4095); release; gpio PORT.PIN LEVEL; button, "
              "switch or signal N LEVEL");
    if (!events.empty() && event->time < events.back().time)
      return fail(Code::BadOption, "'{}' happens before the line above it", line)
          .at(where)
          .withRemedy("sort the lines by time");
    events.push_back(*event);
  }
  return events;
}

}  // namespace carina::platform
