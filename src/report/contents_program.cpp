// SPDX-License-Identifier: Apache-2.0
// Programs, delegate blobs and TensorFlow Lite models as JSON.
#include <nlohmann/json.hpp>

#include "report/contents.hpp"
#include "report/document.hpp"
#include "report/program_io.hpp"

namespace carina::report {
namespace {

using Json = nlohmann::ordered_json;

Json layoutJson(const pte::FileLayout& layout) {
  Json segments = Json::array();
  for (const pte::FileLayout::Segment& segment : layout.segments)
    segments.push_back({{"offset", layout.segmentBase + segment.offset}, {"bytes", segment.size}});
  return {{"file_bytes", layout.fileBytes},
          {"flatbuffer_bytes", layout.programBytes},
          {"extended_header", layout.extendedHeader},
          {"constants_in_flatbuffer", layout.deprecatedConstants},
          {"segments", std::move(segments)}};
}

Json tensorJson(const pte::Tensor& tensor) {
  Json json = {{"kind", "tensor"},
               {"type", pte::scalarTypeName(tensor.type)},
               {"shape", tensor.sizes},
               {"dim_order", tensor.dimOrder}};
  if (tensor.dynamism == pte::ShapeDynamism::DynamicBound) json["dynamic"] = "up to shape";
  if (tensor.dynamism == pte::ShapeDynamism::DynamicUnbound) json["dynamic"] = "any";
  if (tensor.allocation)
    json["memory"] = {{"pool", tensor.allocation->memoryId}, {"offset", tensor.allocation->offset}};
  if (tensor.dataIndex != 0) json[tensor.allocation ? "initial_value" : "constant"] = tensor.dataIndex;
  if (tensor.extra) {
    if (!tensor.extra->name.empty()) json["name"] = tensor.extra->name;
    if (tensor.extra->external) json["external"] = true;
    if (tensor.extra->deviceType != 0)
      json["device"] = {{"type", tensor.extra->deviceType}, {"index", tensor.extra->deviceIndex}};
  }
  return json;
}

Json valueJson(const pte::Value& value) {
  struct Visitor {
    static Json of(const char* kind, Json content) { return {{"kind", kind}, {"value", std::move(content)}}; }
    Json operator()(const pte::None&) const { return {{"kind", "none"}}; }
    Json operator()(const pte::Null&) const { return {{"kind", "null"}}; }
    Json operator()(int64_t number) const { return of("int", number); }
    Json operator()(bool flag) const { return of("bool", flag); }
    Json operator()(double number) const { return of("double", finiteNumber(number)); }
    Json operator()(const pte::Tensor& tensor) const { return tensorJson(tensor); }
    Json operator()(const std::string& text) const { return of("string", text); }
    Json operator()(const pte::IntList& list) const { return of("ints of values", list.items); }
    Json operator()(const pte::DoubleList& list) const {
      Json items = Json::array();
      for (const double item : list.items) items.push_back(finiteNumber(item));
      return of("doubles", std::move(items));
    }
    Json operator()(const pte::BoolList& list) const { return of("bools", list.items); }
    Json operator()(const pte::TensorList& list) const { return of("tensors", list.items); }
    Json operator()(const pte::OptionalTensorList& list) const { return of("optional tensors", list.items); }
  };
  return std::visit(Visitor{}, value);
}

Json instructionJson(const pte::Method& method, const pte::Instruction& instruction) {
  struct Visitor {
    const pte::Method& method;
    Json operator()(const pte::KernelCall& call) const {
      const bool known = call.op >= 0 && static_cast<size_t>(call.op) < method.operators.size();
      return {{"kernel", known ? Json(method.operators[static_cast<size_t>(call.op)].str()) : Json()},
              {"arguments", call.arguments}};
    }
    Json operator()(const pte::DelegateCall& call) const {
      return {{"delegate", call.delegate}, {"arguments", call.arguments}};
    }
    Json operator()(const pte::MoveCall& move) const { return {{"move", {move.from, move.to}}}; }
    Json operator()(const pte::JumpFalseCall& jump) const {
      return {{"jump_unless", jump.condition}, {"to", jump.destination}};
    }
    Json operator()(const pte::FreeCall& call) const { return {{"free", call.value}}; }
  };
  return std::visit(Visitor{method}, instruction);
}

Json chainJson(const pte::Method& method, const pte::Chain& chain) {
  Json instructions = Json::array();
  for (size_t i = 0; i < chain.instructions.size(); ++i) {
    Json one = instructionJson(method, chain.instructions[i]);
    if (i < chain.stacktraces.size()) {
      Json frames = Json::array();
      for (const pte::Frame& frame : chain.stacktraces[i])
        frames.push_back({{"file", frame.filename}, {"line", frame.line}, {"name", frame.name}});
      one["stack"] = std::move(frames);
    }
    instructions.push_back(std::move(one));
  }
  return instructions;
}

Json delegateJson(const pte::Delegate& delegate) {
  Json specs = Json::array();
  for (const pte::CompileSpec& spec : delegate.specs)
    specs.push_back({{"key", spec.key}, {"value", spec.value}});
  Json json = {{"id", delegate.id},
               {"bytes", delegate.blob.size()},
               {"in_segment", delegate.inSegment},
               {"specs", std::move(specs)}};
  if (delegate.id != pte::kEthosUBackend) return json;
  const auto blob = pte::parseDelegateBlob(delegate.blob);
  if (blob)
    json["blob"] = blobJson(*blob);
  else
    json["problem"] = blob.error().message();
  return json;
}

Json portsJson(const std::vector<pipeline::PortCodes>& ports) {
  Json all = Json::array();
  for (const pipeline::PortCodes& port : ports) {
    Json one = Json::object();
    addCodes(port, one);
    all.push_back(std::move(one));
  }
  return all;
}

Json methodJson(const pte::Method& method) {
  Json json = {{"name", method.name}, {"inputs", method.inputs}, {"outputs", method.outputs}};
  json["pools"] = Json::array();
  for (size_t i = 1; i < method.pools.size(); ++i) json["pools"].push_back(method.pools[i]);
  json["pool_devices"] = Json::array();
  for (const pte::PoolDevice& device : method.poolDevices)
    json["pool_devices"].push_back({{"pool", device.pool}, {"type", device.type}, {"index", device.index}});
  json["values"] = Json::array();
  for (const pte::Value& value : method.values) json["values"].push_back(valueJson(value));
  json["delegates"] = Json::array();
  for (const pte::Delegate& delegate : method.delegates) json["delegates"].push_back(delegateJson(delegate));
  json["chains"] = Json::array();
  for (const pte::Chain& chain : method.chains) json["chains"].push_back(chainJson(method, chain));
  return json;
}

Json blobIoJson(const std::vector<pte::BlobIo>& all) {
  Json json = Json::array();
  for (const pte::BlobIo& io : all) {
    json.push_back({{"shape", io.shape},
                    {"element_bytes", io.elementBytes},
                    {"offset", io.offset},
                    {"region", io.region}});
  }
  return json;
}

Json tfliteTensorJson(const tflite::Tensor& tensor) {
  Json json = {{"name", tensor.name},
               {"type", tflite::tensorTypeName(tensor.type)},
               {"shape", tensor.shape},
               {"stored_bytes", tensor.data.size()},
               {"variable", tensor.isVariable}};
  if (!tensor.scales.empty()) {
    Json scales = Json::array();
    for (const float scale : tensor.scales) scales.push_back(finiteNumber(static_cast<double>(scale)));
    json["quantization"] = {{"scales", std::move(scales)}, {"zero_points", tensor.zeroPoints}};
    if (tensor.scales.size() > 1) json["quantization"]["axis"] = tensor.quantizedDimension;
  }
  return json;
}

Json tfliteOperatorJson(const tflite::Operator& op) {
  Json options = Json::object();
  for (const tflite::Option& option : op.options)
    options[std::string(option.name)] = !option.list.empty()   ? Json(option.list)
                                        : !option.text.empty() ? Json(std::string(option.text))
                                                               : finiteNumber(option.value);
  return {{"name", op.name},     {"custom", op.custom},   {"version", op.version},
          {"inputs", op.inputs}, {"outputs", op.outputs}, {"options", std::move(options)}};
}

}  // namespace

Json programJson(const pipeline::ProgramContents& contents) {
  const pte::Program& program = contents.program;
  Json json = {{"layout", layoutJson(contents.layout)}};
  json["constants"] = Json::array();
  for (size_t i = 1; i < program.constants.size(); ++i)
    json["constants"].push_back(program.constants[i].size());
  json["initial_values"] = Json::array();
  for (size_t i = 1; i < program.mutableData.size(); ++i)
    json["initial_values"].push_back(program.mutableData[i].size());
  json["named_data"] = Json::array();
  for (const pte::NamedData& named : program.namedData)
    json["named_data"].push_back({{"key", named.key}, {"bytes", named.bytes.size()}});
  json["methods"] = Json::array();
  for (const pte::Method& method : program.methods) json["methods"].push_back(methodJson(method));
  const pipeline::ProgramCodes codes = pipeline::codesOf(program);
  json["codes"] = {{"inputs", portsJson(codes.inputs)}, {"outputs", portsJson(codes.outputs)}};
  return json;
}

Json blobJson(const pte::DelegateBlob& blob) {
  Json json = {{"payload_bytes", blob.payload.size()},
               {"constant_bytes", blob.constants.size()},
               {"scratch_bytes", blob.scratchBytes}};
  if (!blob.payloadKey.empty()) json["payload_key"] = blob.payloadKey;
  if (!blob.constantsKey.empty()) json["constants_key"] = blob.constantsKey;
  json["inputs"] = blobIoJson(blob.inputs);
  json["outputs"] = blobIoJson(blob.outputs);
  return json;
}

Json tfliteJson(const tflite::Model& model) {
  Json json = {{"version", model.version}, {"description", model.description}};
  json["metadata"] = Json::array();
  for (const tflite::Metadata& entry : model.metadata)
    json["metadata"].push_back({{"name", entry.name}, {"bytes", entry.data.size()}});
  json["subgraphs"] = Json::array();
  for (const tflite::Subgraph& subgraph : model.subgraphs) {
    Json one = {{"name", subgraph.name}, {"inputs", subgraph.inputs}, {"outputs", subgraph.outputs}};
    one["tensors"] = Json::array();
    for (const tflite::Tensor& tensor : subgraph.tensors) one["tensors"].push_back(tfliteTensorJson(tensor));
    one["operators"] = Json::array();
    for (const tflite::Operator& op : subgraph.operators) one["operators"].push_back(tfliteOperatorJson(op));
    json["subgraphs"].push_back(std::move(one));
  }
  return json;
}

}  // namespace carina::report
