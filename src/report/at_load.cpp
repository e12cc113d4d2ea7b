// SPDX-License-Identifier: Apache-2.0
#include "report/at_load.hpp"

#include <fmt/format.h>

namespace carina::report {

std::string atLoadText(const delivery::AtLoad& done) {
  const std::string floats = done.inFloat == 0 ? ""
                                               : fmt::format("{} float graph{} for the interpreter",
                                                             done.inFloat, done.inFloat == 1 ? "" : "s");
  if (done.parts == 0) return "load    " + floats;
  std::string text = fmt::format("load    {} NPU part{} compiled for {} in {:.3f} s", done.parts,
                                 done.parts == 1 ? "" : "s", done.target, done.seconds);
  if (!floats.empty()) text += ", " + floats;
  if (done.fromCache > 0 && done.fromCache == done.parts) return text + ", from the cache";
  if (done.fromCache > 0) text += fmt::format(", {} from the cache", done.fromCache);
  return text;
}

nlohmann::ordered_json atLoadJson(const delivery::AtLoad& done) {
  nlohmann::ordered_json json{{"target", done.target},
                              {"parts", done.parts},
                              {"from_cache", done.fromCache},
                              {"seconds", done.seconds}};
  if (done.inFloat > 0) json["in_float"] = done.inFloat;
  return json;
}

}  // namespace carina::report
