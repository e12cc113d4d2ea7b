// SPDX-License-Identifier: Apache-2.0
// External events of a board and their times: touch screen, pins, buttons, switches.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "platform/clock.hpp"

namespace carina::platform {

struct BoardEvent {
  enum class Kind : uint8_t { Press, Release, Pin, Button, Switch, Signal };
  uint64_t time = 0;  // cycles
  Kind kind = Kind::Release;
  uint32_t a = 0, b = 0;  // x and y; port * 16 + pin, number of the button, switch or signal, and its level
};

/// A file of events, one per line, as `MILLISECONDS WHAT` in chronological order; '#' starts a comment. WHAT
/// is one of `touch X Y` (0 to 4095), `release`, `gpio PORT.PIN LEVEL`, `button N LEVEL`, `switch N LEVEL`
/// and `signal N LEVEL`. Errors name the line.
Result<std::vector<BoardEvent>> readBoardEvents(std::string_view text);

/// Applies events when they are due.
class BoardEvents final : public Timed {
 public:
  BoardEvents(std::vector<BoardEvent> events, std::function<void(const BoardEvent&)> apply)
      : events_(std::move(events)), apply_(std::move(apply)) {}
  uint64_t nextEvent() const override { return next_ < events_.size() ? events_[next_].time : kNever; }
  void advance(uint64_t now) override {
    while (nextEvent() <= now) apply_(events_[next_++]);
  }

 private:
  std::vector<BoardEvent> events_;
  std::function<void(const BoardEvent&)> apply_;
  size_t next_ = 0;
};

}  // namespace carina::platform
