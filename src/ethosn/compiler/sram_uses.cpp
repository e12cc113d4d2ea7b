// SPDX-License-Identifier: Apache-2.0
#include "ethosn/compiler/sram_uses.hpp"

#include <algorithm>

namespace carina::ethosn::compiler {
namespace {

void join(Until& to, const Until& with) {
  for (size_t i = 0; i < to.size(); ++i) to[i] = std::max(to[i], with[i]);
}

}  // namespace

/// Splits a range so that none extends across the address.
void SramUses::splitAt(int64_t address) {
  auto after = ranges_.lower_bound(address);
  if (after == ranges_.begin()) return;
  Range& range = std::prev(after)->second;
  if (range.to <= address) return;
  ranges_.emplace_hint(after, address, range);
  range.to = address;
}

Until SramUses::until(int64_t from, int64_t to) const {
  Until out{};
  auto range = ranges_.upper_bound(from);
  if (range != ranges_.begin()) --range;
  for (; range != ranges_.end() && range->first < to; ++range) {
    if (range->second.to > from) join(out, range->second.until);
  }
  return out;
}

void SramUses::put(int64_t from, int64_t to, const Until& until, bool keep) {
  if (from >= to) return;
  splitAt(from);
  splitAt(to);
  Until all = until;
  if (keep) join(all, this->until(from, to));
  ranges_.erase(ranges_.lower_bound(from), ranges_.lower_bound(to));
  ranges_[from] = {to, all};
}

}  // namespace carina::ethosn::compiler
