// SPDX-License-Identifier: Apache-2.0
#include "report/document.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace carina::report {

nlohmann::ordered_json document(std::string_view name, int version) {
  return {{"schema", fmt::format("carina.{}/{}", name, version)}};
}

std::string documentText(const nlohmann::ordered_json& json) {
  // Names in a network are bytes that may be no UTF-8.
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

nlohmann::ordered_json finiteNumber(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}

}  // namespace carina::report
