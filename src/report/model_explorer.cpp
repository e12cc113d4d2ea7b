// SPDX-License-Identifier: Apache-2.0
#include "report/model_explorer.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "report/document.hpp"

namespace carina::report {
namespace {

using Json = nlohmann::ordered_json;

std::string placeText(pipeline::NodePlace place) {
  switch (place) {
    case pipeline::NodePlace::Npu:
      return "NPU";
    case pipeline::NodePlace::Cpu:
      return "CPU";
    case pipeline::NodePlace::Folded:
      return "folded";
  }
  return {};
}

/// "features.3.conv" as a path.
std::string namespaceOf(const std::string& modulePath) {
  std::string path = modulePath;
  std::replace(path.begin(), path.end(), '.', '/');
  return path;
}

Json nodeJson(const pipeline::NetworkNode& node, size_t index, const pipeline::Layer* layer) {
  Json attributes = Json::array();
  const auto add = [&](const char* key, const std::string& value) {
    if (!value.empty()) attributes.push_back({{"key", key}, {"value", value}});
  };
  add("operator", node.op);
  add("place", placeText(node.place));
  if (layer != nullptr) {
    add("NPU cycles", fmt::format("{}", layer->cycles));
    add("limited by", std::string(npu::boundByName(layer->bound)));
  }
  if (node.sqnr) add("SQNR against float, dB", fmt::format("{:.1f}", *node.sqnr));
  add("reason", node.reason);
  add("remedy", node.remedy);
  add("source", node.source);
  Json edges = Json::array();
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    edges.push_back({{"sourceNodeId", fmt::format("{}", node.inputs[i])},
                     {"sourceNodeOutputId", "0"},
                     {"targetNodeInputId", fmt::format("{}", i)}});
  }
  return {{"id", fmt::format("{}", index)},
          {"label", node.name},
          {"namespace", namespaceOf(node.modulePath)},
          {"attrs", std::move(attributes)},
          {"incomingEdges", std::move(edges)}};
}

}  // namespace

Result<std::string> modelExplorerJson(const pipeline::TimedProfile& timed) {
  const pipeline::Profile& profile = timed.profile;
  if (profile.network.empty()) {
    return fail(Code::OptionDoesNotApply,
                "a finished program or TOSA graph does not say which network it came from")
        .at("--model-explorer")
        .withRemedy("give the network (.pt2)");
  }
  std::map<std::string, const pipeline::Layer*> layers;
  for (const pipeline::ProfiledPart& part : profile.parts) {
    for (const pipeline::Layer& layer : part.layers) layers.emplace(layer.name, &layer);
  }
  Json nodes = Json::array();
  for (size_t i = 0; i < profile.network.size(); ++i) {
    const auto layer = layers.find(profile.network[i].name);
    nodes.push_back(nodeJson(profile.network[i], i, layer == layers.end() ? nullptr : layer->second));
  }
  Json graph = {{"id", "network"}, {"nodes", std::move(nodes)}};
  return documentText(
      {{"label", profile.file.filename().string()}, {"graphs", Json::array({std::move(graph)})}});
}

}  // namespace carina::report
