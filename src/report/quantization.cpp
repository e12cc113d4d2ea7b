// SPDX-License-Identifier: Apache-2.0
#include "report/quantization.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "report/text.hpp"

namespace carina::report {

namespace {

bool isNarrow(const quantize::TensorReport& tensor) {
  return tensor.weightBits < quantize::kMaxWeightBits;
}

std::string typeText(const quantize::TensorReport& tensor) {
  return std::string(dtypeName(tensor.dtype)) + (tensor.perChannel ? " per channel" : "") +
         (isNarrow(tensor) ? fmt::format(", {} bits", tensor.weightBits) : "");
}

}  // namespace

std::string quantizationText(const quantize::Report& report) {
  TextTable table({"value", "module", "type", "min", "max", "scale", "zero", "SQNR"}, 3);
  for (const quantize::TensorReport& tensor : report.tensors) {
    table.add({tensor.name.empty() ? "constant" : tensor.name, tensor.modulePath, typeText(tensor),
               fmt::format("{:.6g}", tensor.min), fmt::format("{:.6g}", tensor.max),
               fmt::format("{:.6g}", tensor.scale), std::to_string(tensor.zeroPoint),
               decibelText(tensor.sqnr.decibels())});
  }
  return table.str();
}

nlohmann::ordered_json quantizationJson(const quantize::Report& report) {
  auto json = nlohmann::ordered_json::array();
  for (const quantize::TensorReport& tensor : report.tensors) {
    const double decibels = tensor.sqnr.decibels();
    json.push_back(
        {{"name", tensor.name},
         {"module", tensor.modulePath},
         {"kind", tensor.isConstant ? "constant" : "activation"},
         {"type", std::string(dtypeName(tensor.dtype))},
         {"per_channel", tensor.perChannel},
         {"min", tensor.min},
         {"max", tensor.max},
         {"scale", tensor.scale},
         {"zero_point", tensor.zeroPoint},
         {"sqnr_db", std::isfinite(decibels) ? nlohmann::ordered_json(decibels) : nlohmann::ordered_json()}});
    if (isNarrow(tensor)) json.back()["weight_bits"] = tensor.weightBits;
  }
  return json;
}

}  // namespace carina::report
