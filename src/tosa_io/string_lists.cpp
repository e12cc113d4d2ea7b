// SPDX-License-Identifier: Apache-2.0
#include "tosa_io/string_lists.hpp"

#include <cstring>
#include <optional>

#include "base/budget.hpp"

namespace carina::tosa_io {
namespace {

class Counter {
 public:
  Counter(ByteSpan file, const ListFields& fields)
      : file_(file), fields_(fields), budget_(Budget::ofFile(file.size(), kFree, kPerByte)) {}

  /// Whether the budget suffices.
  bool counts() {
    return each(target(0), fields_.regions, [&](uint64_t region) {
      return each(region, fields_.blocks, [&](uint64_t block) {
        return names(block, fields_.blockInputs) && names(block, fields_.blockOutputs) &&
               each(block, fields_.operators, [&](uint64_t op) {
                 return names(op, fields_.operatorInputs) && names(op, fields_.operatorOutputs);
               });
      });
    });
  }

 private:
  /// Each listing of an operator or a name occupies at least 4 bytes: lists that are not shared hold less
  /// than one element per 4 bytes.
  static constexpr uint64_t kFree = uint64_t{1} << 22, kPerByte = 8;

  template <typename T>
  std::optional<T> read(uint64_t at) const {
    if (at > file_.size() || file_.size() - at < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, file_.data() + at, sizeof(T));
    return value;
  }

  /// Target of the offset stored here.
  std::optional<uint64_t> target(uint64_t at) const {
    const auto offset = read<uint32_t>(at);
    return offset ? std::optional(at + *offset) : std::nullopt;
  }

  struct List {
    uint64_t first = 0, count = 0;
  };
  List list(uint64_t table, uint16_t field) const {
    const auto back = read<int32_t>(table);
    if (!back || static_cast<int64_t>(table) < *back) return {};
    const uint64_t vtable = static_cast<uint64_t>(static_cast<int64_t>(table) - *back);
    const auto size = read<uint16_t>(vtable);
    const auto place = size && field < *size ? read<uint16_t>(vtable + field) : std::nullopt;
    const auto start = place && *place != 0 ? target(table + *place) : std::nullopt;
    const auto count = start ? read<uint32_t>(*start) : std::nullopt;
    // A list that extends past the end is ignored: the verifier stops there.
    if (!count || uint64_t{*count} * 4 > file_.size()) return {};
    return {*start + 4, *count};
  }

  bool names(uint64_t table, uint16_t field) { return budget_.take(list(table, field).count); }

  template <typename F>
  bool each(std::optional<uint64_t> table, uint16_t field, F f) {
    const List all = table ? list(*table, field) : List{};
    for (uint64_t i = 0; i < all.count; ++i) {
      if (!budget_.take(1)) return false;
      const auto element = target(all.first + 4 * i);
      if (element && !f(*element)) return false;
    }
    return true;
  }

  ByteSpan file_;
  ListFields fields_;
  Budget budget_;
};

}  // namespace

Status checkStringLists(ByteSpan file, const ListFields& fields) {
  if (Counter(file, fields).counts()) return {};
  return fail(Code::Excessive, "too many operators of the file share their lists of names")
      .withRemedy("the file may have been crafted to exhaust memory; write it again");
}

}  // namespace carina::tosa_io
