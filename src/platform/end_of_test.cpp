// SPDX-License-Identifier: Apache-2.0
#include "platform/end_of_test.hpp"

#include <charconv>
#include <string_view>

namespace carina::platform {
namespace {
constexpr char kEndOfTransmission = 0x04;
constexpr std::string_view kExitCode = "Application exit code: ";
constexpr size_t kLongestLine = 1024;
}  // namespace

void EndOfTest::look() {
  if (const size_t at = line_.find(kExitCode); at != std::string::npos) {
    int code = 0;
    const char* begin = line_.data() + at + kExitCode.size();
    if (std::from_chars(begin, line_.data() + line_.size(), code).ec == std::errc{}) code_ = code;
  }
  if (line_.find("Hard fault.") != std::string::npos) failed_ = true;
  if (line_.find("Test_result: FAIL") != std::string::npos) failed_ = true;
}

bool EndOfTest::feed(char byte) {
  if (byte == kEndOfTransmission) {
    look();
    return eot_;
  }
  if (byte == '\n') {
    look();
    line_.clear();
    return false;
  }
  if (line_.size() < kLongestLine) line_.push_back(byte);
  return !tag_.empty() && line_.size() >= tag_.size() &&
         line_.compare(line_.size() - tag_.size(), tag_.size(), tag_) == 0;
}

}  // namespace carina::platform
