// SPDX-License-Identifier: Apache-2.0
#include "report/document.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace carina::report {

nlohmann::ordered_json document(std::string_view name, int version) {
  return {{"schema", fmt::format("carina.{}/{}", name, version)}};
}

namespace {

/// Names in a network may not be valid UTF-8.
std::string dumped(const nlohmann::ordered_json& json, int indent) {
  return json.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

std::string documentText(const nlohmann::ordered_json& json) {
  return dumped(json, 2) + "\n";
}

void JsonText::next() {
  if (!empty_) text_ += ',';
  if (!text_.empty()) text_ += '\n';
  text_.append(2 * depth_, ' ');
  empty_ = false;
}

void JsonText::open(char bracket, std::string_view name) {
  next();
  if (!name.empty()) text_ += fmt::format("{}: ", dumped(std::string(name), -1));
  text_ += bracket;
  ++depth_;
  empty_ = true;
}

void JsonText::close(char bracket) {
  --depth_;
  if (!empty_) {
    text_ += '\n';
    text_.append(2 * depth_, ' ');
  }
  text_ += bracket;
  empty_ = false;
}

void JsonText::members(const nlohmann::ordered_json& object) {
  for (const auto& [name, value] : object.items()) {
    next();
    text_ += fmt::format("{}: ", dumped(name, -1));
    // Strings contain no line breaks: all of them are formatting.
    for (const char c : dumped(value, 2)) {
      text_ += c;
      if (c == '\n') text_.append(2 * depth_, ' ');
    }
  }
}

void JsonText::row(const nlohmann::ordered_json& value) {
  next();
  text_ += dumped(value, -1);
}

std::string JsonText::str() && {
  return std::move(text_) + "\n";
}

nlohmann::ordered_json finiteNumber(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}

}  // namespace carina::report
