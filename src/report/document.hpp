// SPDX-License-Identifier: Apache-2.0
// What all JSON outputs have in common: they say which schema they follow (docs/schema), and in what version.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace carina::report {

// Objects begin as Json::object(): a null value that turns into one in operator[] is left broken when memory
// runs out there (nlohmann::json 3.11.2), and its destructor ends the program.

/// An object whose first member is "schema": "carina.NAME/VERSION". The version grows when a member is
/// removed or changes its meaning; new members do not change it.
nlohmann::ordered_json document(std::string_view name, int version = 1);

/// As files hold it: indented, with a newline at the end.
std::string documentText(const nlohmann::ordered_json& json);

/// A document with many rows, written piece by piece: values and rows as text take a tenth of the memory that
/// they take as objects.
class JsonText {
 public:
  /// Begins an object or array, which is a member where it has a name.
  void open(char bracket, std::string_view name = "");
  void close(char bracket);
  /// All members of an object, in the object that is open.
  void members(const nlohmann::ordered_json& object);
  /// An array of objects, one on each line.
  template <typename List, typename MakeRow>
  void rows(std::string_view name, const List& list, const MakeRow& makeRow) {
    open('[', name);
    for (const auto& entry : list) row(makeRow(entry));
    close(']');
  }
  /// With a newline at the end.
  std::string str() &&;

 private:
  /// Where the next value begins: behind a comma if one comes before it, on a line of its own.
  void next();
  void row(const nlohmann::ordered_json& value);

  std::string text_;
  size_t depth_ = 0;
  bool empty_ = true;  // what was opened last
};

/// A number, or null for what JSON has no number for (infinite, NaN).
nlohmann::ordered_json finiteNumber(double value);

}  // namespace carina::report
