// SPDX-License-Identifier: Apache-2.0
// The page (page.hpp): the template of src/report/page with the data of a profile in it.
#include "report/page.hpp"

#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>

#include "base/file.hpp"
#include "base/json.hpp"
#include "report/inference_time.hpp"
#include "report/page_template.hpp"
#include "report/profile.hpp"

namespace carina::report {
namespace {

using Json = nlohmann::ordered_json;

const char* placeKey(pipeline::NodePlace place) {
  switch (place) {
    case pipeline::NodePlace::Npu:
      return "npu";
    case pipeline::NodePlace::Cpu:
      return "cpu";
    case pipeline::NodePlace::Folded:
      return "folded";
  }
  return "";
}

Json machineJson(const npu::Machine& machine) {
  Json json{{"macs", machine.target->macs}, {"ports", Json::array()}};
  for (const npu::MemoryTiming& port : machine.system.ports) {
    json["ports"].push_back(
        {{"name", npu::memoryKindName(port.kind)},
         {"bytes_per_cycle", port.clockScale * port.ports * machine.target->architecture().axiBytes}});
  }
  return json;
}

Json networkJson(const std::vector<pipeline::NetworkNode>& network) {
  Json json = Json::array();
  for (const pipeline::NetworkNode& node : network) {
    json.push_back({{"name", node.name},
                    {"op", node.op},
                    {"module", node.modulePath},
                    {"source", node.source},
                    {"place", placeKey(node.place)},
                    {"reason", node.reason},
                    {"remedy", node.remedy},
                    {"inputs", node.inputs}});
    if (node.sqnr) json.back()["sqnr_db"] = *node.sqnr;
  }
  return json;
}

/// The profile's JSON, with additional data that only the page needs.
Json profileData(const pipeline::TimedProfile& timed) {
  const pipeline::Profile& profile = timed.profile;
  Json json = Json::parse(profileJson(timed));
  for (size_t i = 0; i < profile.parts.size(); ++i) {
    const pipeline::ProfiledPart& part = profile.parts[i];
    json["parts"][i]["steps"] = part.steps;
    for (size_t k = 0; k < part.operations.size(); ++k)
      json["parts"][i]["operations"][k]["layer_index"] = part.operations[k].layer;
  }
  return json;
}

/// An attached report; `fits` tests whether it is of the right kind.
template <typename Fits>
Result<Json> attachment(const std::filesystem::path& file, std::string_view command, const Fits& fits) {
  CARINA_TRY(const auto mapped, MappedFile::open(file));
  const auto parsed = parseJson(asText(mapped->bytes()));
  if (!parsed || !fits(*parsed)) {
    return fail(Code::WrongKind, "is not the JSON of carina {}", command)
        .inFile(file.string())
        .withRemedy(fmt::format("write it with carina {} ... --json {}", command, file.filename().string()));
  }
  return Json(*parsed);
}

bool isSweep(const nlohmann::json& json) {
  const nlohmann::json& rows = json.is_object() && json.contains("rows") ? json["rows"] : json;
  return rows.is_array() && !rows.empty() &&
         std::all_of(rows.begin(), rows.end(), [](const nlohmann::json& row) {
           return row.is_object() && row.contains("target") && row.contains("memory_mode");
         });
}

bool isProfile(const nlohmann::json& json) {
  if (!json.is_object() || !json.contains("parts") || !json["parts"].is_array() || !json.contains("target"))
    return false;
  return std::all_of(json["parts"].begin(), json["parts"].end(), [](const nlohmann::json& part) {
    return part.is_object() && part.contains("cycles") && part.contains("layers") &&
           part["layers"].is_array();
  });
}

/// The lines about the whole inference, as printed by other commands.
Json inferenceLines(const pipeline::InferenceTime& time) {
  Json lines = Json::array();
  std::istringstream text(inferenceLine(time) + inferenceAdvice(time, ""));
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

/// Escapes JSON so that no HTML parser mistakes it for the end of the enclosing element.
std::string scriptSafe(const Json& json) {
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace), safe;
  safe.reserve(text.size());
  for (const char c : text) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return safe;
}

}  // namespace

Result<std::string> profilePage(const pipeline::TimedProfile& timed, const PageAttachments& attachments) {
  const pipeline::Profile& profile = timed.profile;
  Json data{{"profile", profileData(timed)},
            {"machine", machineJson(profile.machine)},
            {"graph", networkJson(profile.network)}};
  if (timed.inference) data["inference"] = inferenceLines(*timed.inference);
  data["warnings"] = Json::array();
  for (const Diagnostic& warning : profile.warnings) data["warnings"].push_back(warning.str());
  if (!attachments.sweep.empty()) {
    CARINA_TRY(data["sweep"], attachment(attachments.sweep, "sweep", isSweep));
  }
  if (!attachments.against.empty()) {
    CARINA_TRY(data["against"], attachment(attachments.against, "profile", isProfile));
  }
  constexpr std::string_view kPlace = "@DATA@";
  const size_t at = kPage.find(kPlace);
  CARINA_CHECK(at != std::string_view::npos, "the page has a place for its data");
  std::string page(kPage.substr(0, at));
  page += scriptSafe(data);
  page += kPage.substr(at + kPlace.size());
  return page;
}

}  // namespace carina::report
