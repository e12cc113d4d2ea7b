// SPDX-License-Identifier: Apache-2.0
#include "base/dtype.hpp"

#include <iterator>

namespace carina {

std::optional<DType> dtypeFromName(std::string_view name) {
  for (size_t i = 0; i < std::size(dtypes::kRows); ++i) {
    if (dtypes::kRows[i].text == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

}  // namespace carina
