// SPDX-License-Identifier: Apache-2.0
// Strings of a flatbuffer, absent ones as empty: shared by the readers of the versions.
#pragma once

#include <flatbuffers/flatbuffers.h>

#include <string>
#include <vector>

namespace carina::tosa_io {

inline std::string text(const flatbuffers::String* string) {
  return string ? string->str() : std::string();
}

inline std::vector<std::string> texts(const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>* strings) {
  std::vector<std::string> list;
  if (strings) {
    for (const auto* string : *strings) list.push_back(text(string));
  }
  return list;
}

}  // namespace carina::tosa_io
