// SPDX-License-Identifier: Apache-2.0
// Graphs as JSON, with the same names as in text form.
#include <nlohmann/json.hpp>

#include "ir/printer.hpp"
#include "report/contents.hpp"
#include "report/document.hpp"

namespace carina::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMostValues = 8;  // as in text form

class GraphWriter {
 public:
  Json graph(const ir::Graph& graph) {
    const ir::ValueNames::InnerGraph inner(names_);
    Json json = {{"name", graph.name},
                 {"inputs", Json::array()},
                 {"constants", Json::array()},
                 {"nodes", Json::array()},
                 {"outputs", Json::array()}};
    for (const ir::Value* input : graph.inputs()) json["inputs"].push_back(value(*input));
    for (const auto& constant : graph.constants()) {
      Json one = value(*constant);
      addContents(constant->constant(), one);
      json["constants"].push_back(std::move(one));
    }
    for (const ir::Node* node : graph.nodes()) json["nodes"].push_back(this->node(*node));
    for (const ir::Value* output : graph.outputs()) json["outputs"].push_back(names_.of(output));
    return json;
  }

 private:
  Json value(const ir::Value& value) {
    Json json = {{"name", names_.of(&value)}, {"type", dtypeName(value.dtype())}, {"shape", value.shape()}};
    if (value.quantization) {
      const ir::Quantization& q = *value.quantization;
      json["quantization"] = {{"scales", q.scales}, {"zero_points", q.zeroPoints}};
      if (q.perChannel()) json["quantization"]["axis"] = q.axis;
    }
    return json;
  }

  static void addContents(const Tensor& tensor, Json& json) {
    json["bytes"] = tensor.numBytes();
    if (tensor.numElements() > kMostValues) {
      json["checksum"] = fmt::format("{:016x}", ir::contentsChecksum(tensor.bytes()));
      return;
    }
    json["values"] = Json::array();
    for (int64_t i = 0; i < tensor.numElements(); ++i) {
      if (isFloat(tensor.dtype()))
        json["values"].push_back(finiteNumber(tensor.realAt(i)));
      else
        json["values"].push_back(tensor.integerAt(i));
    }
  }

  Json nameOf(const ir::Value* value) { return value == nullptr ? Json() : Json(names_.of(value)); }

  Json operands(const ir::Node& node) {
    Json json = Json::object();
    const ir::OpDef& def = node.def();
    for (size_t g = 0; g < def.operands.size(); ++g) {
      const auto group = node.operandGroup(g);
      Json& operand = json[std::string(def.operands[g].name)];
      if (def.operands[g].arity == ir::Arity::Variadic) {
        operand = Json::array();
        for (const ir::Value* value : group) operand.push_back(nameOf(value));
      } else {
        operand = nameOf(group.empty() ? nullptr : group.front());
      }
    }
    return json;
  }

  static Json attribute(const ir::AttributeDef& def, const ir::Attribute& value) {
    if (def.kind == ir::AttributeKind::Enum) return ir::attributeText(def, value);
    struct Visitor {
      Json operator()(std::monostate) const { return nullptr; }
      Json operator()(bool flag) const { return flag; }
      Json operator()(int64_t number) const { return number; }
      Json operator()(double number) const { return finiteNumber(number); }
      Json operator()(const std::string& text) const { return text; }
      Json operator()(DType type) const { return dtypeName(type); }
      Json operator()(const ir::Ints& list) const { return list; }
      Json operator()(const ir::Reals& list) const {
        Json json = Json::array();
        for (const double number : list) json.push_back(finiteNumber(number));
        return json;
      }
      Json operator()(const ir::Strings& list) const { return list; }
      Json operator()(const Tensor& tensor) const {
        Json json = {{"type", dtypeName(tensor.dtype())}, {"shape", tensor.shape()}};
        addContents(tensor, json);
        return json;
      }
    };
    return std::visit(Visitor{}, value);
  }

  Json node(const ir::Node& node) {
    Json json = {{"op", node.opName()}, {"operands", operands(node)}, {"attributes", Json::object()}};
    const ir::OpDef& def = node.def();
    for (size_t i = 0; i < def.attributes.size(); ++i)
      json["attributes"][std::string(def.attributes[i].name)] =
          attribute(def.attributes[i], node.attribute(i));
    json["results"] = Json::array();
    for (const ir::Value* result : node.results()) json["results"].push_back(value(*result));
    if (const ir::LocationRef& location = node.location()) {
      json["location"] = {
          {"name", location->name}, {"module", location->modulePath}, {"source", location->source}};
    }
    if (!node.regions().empty()) {
      json["regions"] = Json::array();
      for (const auto& region : node.regions()) json["regions"].push_back(region ? graph(*region) : Json());
    }
    return json;
  }

  ir::ValueNames names_;
};

}  // namespace

Json graphJson(const ir::Graph& graph) {
  return GraphWriter().graph(graph);
}

}  // namespace carina::report
