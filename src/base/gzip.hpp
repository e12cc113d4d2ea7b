// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace carina {

/// A gzip file with these contents; deterministic.
std::string gzipped(std::string_view contents);

}  // namespace carina
