// SPDX-License-Identifier: Apache-2.0
// Copies out of a flatbuffer, shared by the readers of the versions. Tables, vectors and texts of a
// flatbuffer can have any number of owners, so copies are charged to a budget that grows with the file.
#pragma once

#include <flatbuffers/flatbuffers.h>

#include <string>
#include <variant>
#include <vector>

#include "base/budget.hpp"
#include "tosa_io/wire_graph.hpp"

namespace carina::tosa_io {

class Copies {
 public:
  explicit Copies(size_t fileBytes) : budget_(Budget::ofFile(fileBytes, uint64_t{1} << 20, 32)) {}

  /// Empty if it is absent or the budget is spent.
  std::string text(const flatbuffers::String* string) {
    return string && charge(string->size()) ? string->str() : std::string();
  }

  std::vector<std::string> texts(
      const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>* strings) {
    std::vector<std::string> list;
    if (!strings || !charge(uint64_t{strings->size()} * sizeof(std::string))) return list;
    for (const auto* string : *strings) list.push_back(text(string));
    return list;
  }

  /// For data that was copied in other ways.
  bool charge(uint64_t bytes) {
    spent_ = spent_ || !budget_.take(bytes);
    return !spent_;
  }
  /// For constants and attributes of an operator.
  void chargeLists(const WireOperator& op) {
    uint64_t bytes = sizeof(WireOperator);
    for (const Tensor& constant : op.constants) bytes += static_cast<uint64_t>(constant.numBytes());
    for (const ir::Attribute& attribute : op.attributes) {
      if (const auto* ints = std::get_if<ir::Ints>(&attribute)) bytes += ints->size() * sizeof((*ints)[0]);
      if (const auto* text = std::get_if<std::string>(&attribute)) bytes += text->size();
    }
    charge(bytes);
  }

  /// Fails if the budget was overdrawn: data read since then is incomplete.
  Status check() const {
    if (!spent_) return {};
    return Error(fail(Code::Excessive, "too many parts of the file share their contents"))
        .withRemedy("the file may have been crafted to exhaust memory; write it again");
  }

 private:
  Budget budget_;
  bool spent_ = false;
};

}  // namespace carina::tosa_io
