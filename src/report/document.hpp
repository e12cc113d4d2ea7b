// SPDX-License-Identifier: Apache-2.0
// The common part of all JSON outputs: they record their schema (docs/schema) and its version.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace carina::report {

// Objects must be created by Json::object(): a null value that becomes one in operator[] is left broken if
// memory runs out there (nlohmann::json 3.11.2), and its destructor then terminates the program.

/// An object whose first member is "schema": "carina.NAME/VERSION". The version is incremented when a member
/// is removed or changes its meaning, not when one is added.
nlohmann::ordered_json document(std::string_view name, int version = 1);

/// As written to files: indented, with a newline at the end.
std::string documentText(const nlohmann::ordered_json& json);

/// A document with many rows, written piece by piece: as text, values and rows take a tenth of the memory
/// that they take as objects.
class JsonText {
 public:
  /// Begins an object or array; a member if it has a name.
  void open(char bracket, std::string_view name = "");
  void close(char bracket);
  /// Writes all members of `object` to the object that is open.
  void members(const nlohmann::ordered_json& object);
  /// An array of objects, one on each line.
  template <typename List, typename MakeRow>
  void rows(std::string_view name, const List& list, const MakeRow& makeRow) {
    open('[', name);
    for (const auto& entry : list) row(makeRow(entry));
    close(']');
  }
  /// Ends with a newline.
  std::string str() &&;

 private:
  /// Begins the next value: after a comma if another one precedes it, on its own line.
  void next();
  void row(const nlohmann::ordered_json& value);

  std::string text_;
  size_t depth_ = 0;
  bool empty_ = true;  // of the innermost open object or array
};

/// A number, or null for values that JSON cannot represent (infinities, NaN).
nlohmann::ordered_json finiteNumber(double value);

}  // namespace carina::report
