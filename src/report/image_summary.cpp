// SPDX-License-Identifier: Apache-2.0
#include "report/image_summary.hpp"

#include <nlohmann/json.hpp>

#include "report/document.hpp"
#include "report/text.hpp"

namespace carina::report {
namespace {

using Json = nlohmann::ordered_json;

Json sizeJson(const firmware::ComponentSize& size) {
  return {{"name", size.name}, {"text", size.text}, {"data", size.data}, {"bss", size.bss}};
}

}  // namespace

std::string imageText(const firmware::Image& image, const std::filesystem::path& output) {
  const firmware::Plan& plan = image.plan;
  std::string text = fmt::format(
      "{}  ({}, {}, {}{})\n\n", output.string(), plan.platform->name, image.core, plan.target,
      plan.machine ? fmt::format(", {}, {}", plan.machine->system.name, plan.machine->memory.name) : "");
  TextTable components({"component", "text", "data", "bss"});
  const auto row = [&](const firmware::ComponentSize& size) {
    components.add({size.name, countText(size.text), countText(size.data), countText(size.bss)});
  };
  for (const firmware::ComponentSize& size : image.sizes.components) row(size);
  row(image.sizes.total);
  text += components.str() + "\n";
  TextTable memory({"memory", "region", "bytes"}, 2);
  for (const firmware::Placement& placement : plan.placements) {
    if (placement.bytes > 0)
      memory.add({std::string(placement.what), std::string(placement.region), countText(placement.bytes)});
  }
  memory.add({"data, bss and stack", std::string(plan.platform->data), countText(image.sizes.ramBytes())});
  return text + memory.str();
}

std::string imageJson(const firmware::Image& image) {
  const firmware::Plan& plan = image.plan;
  Json json = document("firmware");
  json["platform"] = plan.platform->name;
  json["core"] = image.core;
  json["target"] = plan.target;
  json["kernels"] = plan.kernels;
  json["ram_bytes"] = image.sizes.ramBytes();
  json["stack_bytes"] = image.sizes.stackBytes;
  json["components"] = Json::array();
  for (const firmware::ComponentSize& size : image.sizes.components)
    json["components"].push_back(sizeJson(size));
  json["total"] = sizeJson(image.sizes.total);
  json["memory"] = Json::array();
  for (const firmware::Placement& placement : plan.placements) {
    json["memory"].push_back(
        {{"what", placement.what}, {"region", placement.region}, {"bytes", placement.bytes}});
  }
  json["notes"] = plan.notes;
  return documentText(json);
}

}  // namespace carina::report
