// SPDX-License-Identifier: Apache-2.0
// JSON as torch.export writes it, over simdjson: checked access, with messages that name what was expected.
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace carina::pt2 {

using JsonValue = simdjson::dom::element;
using JsonArray = simdjson::dom::array;

/// A parsed text. Values refer into it.
class JsonText {
 public:
  /// Bare Infinity, -Infinity and NaN outside strings (torch 2.6) are treated as the strings that later
  /// releases write. Rejects nesting deeper than 100 levels and objects with duplicate keys.
  static Result<JsonText> parse(std::string_view text);

  JsonValue root() const { return root_; }

 private:
  std::unique_ptr<simdjson::dom::parser> parser_;
  JsonValue root_;
};

/// Conversions; `what` names the value in messages ("the name of a node").
Result<int64_t> jsonInt(JsonValue value, std::string_view what);
Result<double> jsonReal(JsonValue value,
                        std::string_view what);  // also "Infinity", "-Infinity", "NaN" and integers
Result<bool> jsonBool(JsonValue value, std::string_view what);
Result<std::string_view> jsonString(JsonValue value, std::string_view what);
Result<JsonArray> jsonArray(JsonValue value, std::string_view what);

/// An object with its name for messages.
class JsonObject {
 public:
  static Result<JsonObject> of(JsonValue value, std::string_view what);

  Result<JsonValue> get(std::string_view key) const;
  /// Empty if the key is absent or null.
  std::optional<JsonValue> find(std::string_view key) const;
  Result<int64_t> getInt(std::string_view key) const;
  Result<bool> getBool(std::string_view key) const;
  /// A name: at most 4 KiB, because everything derived from a node repeats its name.
  Result<std::string> getName(std::string_view key) const;
  Result<JsonArray> getArray(std::string_view key) const;
  Result<JsonObject> getObject(std::string_view key) const;
  simdjson::dom::object entries() const { return object_; }

 private:
  JsonObject(simdjson::dom::object object, std::string_view what) : object_(object), what_(what) {}
  simdjson::dom::object object_;
  std::string what_;
};

/// The only entry of an object that represents a tagged union.
struct JsonTagged {
  std::string_view tag;
  JsonValue value;
};
Result<JsonTagged> jsonTagged(JsonValue value, std::string_view what);

}  // namespace carina::pt2
