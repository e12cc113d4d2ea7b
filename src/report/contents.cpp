// SPDX-License-Identifier: Apache-2.0
#include "report/contents.hpp"

#include <nlohmann/json.hpp>

#include "pte/tensor_data.hpp"
#include "report/document.hpp"

namespace carina::report {
namespace {

using Json = nlohmann::ordered_json;

Json archiveJson(const std::vector<pt2::ExportedProgram>& programs) {
  Json all = Json::array();
  for (const pt2::ExportedProgram& program : programs) {
    Json warnings = Json::array();
    for (const Diagnostic& warning : program.warnings) warnings.push_back(warning.str());
    all.push_back({{"model", program.model},
                   {"container", pt2::containerText(program.container)},
                   {"torch", program.torchVersion},
                   {"schema_version", {program.schemaMajor, program.schemaMinor}},
                   {"warnings", std::move(warnings)},
                   {"graph", graphJson(program.graph)}});
  }
  return all;
}

Json arraysJson(const NamedTensors& arrays) {
  Json all = Json::array();
  for (const auto& [name, tensor] : arrays)
    all.push_back({{"name", name}, {"type", dtypeName(tensor.dtype())}, {"shape", tensor.shape()}});
  return all;
}

Json testValueJson(const pte::BundleValue& value) {
  struct Visitor {
    Json operator()(const pte::None&) const { return nullptr; }
    Json operator()(const pte::BundleTensor& tensor) const {
      return {{"type", pte::scalarTypeName(tensor.type)}, {"shape", tensor.sizes}};
    }
    Json operator()(int64_t number) const { return number; }
    Json operator()(bool flag) const { return flag; }
    Json operator()(double number) const { return finiteNumber(number); }
  };
  return std::visit(Visitor{}, value);
}

Json testValuesJson(const std::vector<pte::BundleValue>& values) {
  Json all = Json::array();
  for (const pte::BundleValue& value : values) all.push_back(testValueJson(value));
  return all;
}

Json bundleJson(const pte::Bundle& bundle) {
  Json suites = Json::array();
  for (const pte::BundleSuite& suite : bundle.suites) {
    Json cases = Json::array();
    for (const pte::BundleCase& one : suite.cases)
      cases.push_back({{"inputs", testValuesJson(one.inputs)}, {"expected", testValuesJson(one.expected)}});
    suites.push_back({{"method", suite.method}, {"cases", std::move(cases)}});
  }
  return {
      {"version", bundle.version}, {"program_bytes", bundle.program.size()}, {"suites", std::move(suites)}};
}

Json tensorDataJson(const pte::TensorData& data) {
  Json entries = Json::array();
  for (const pte::DataEntry& entry : data.entries) {
    Json one = {{"key", entry.key}, {"bytes", entry.bytes.size()}};
    if (entry.layout) {
      one["type"] = pte::scalarTypeName(entry.layout->type);
      one["shape"] = entry.layout->sizes;
    }
    entries.push_back(std::move(one));
  }
  return entries;
}

Json imageJson(const pipeline::ImageContents& contents) {
  const platform::ElfImage& image = contents.image;
  Json json = {{"entry", image.entry}};
  if (const auto& note = contents.note) {
    json["built_for"] = {{"platform", note->platform},
                         {"core", note->core},
                         {"target", note->target},
                         {"system_config", note->systemConfig},
                         {"memory_mode", note->memoryMode}};
  }
  json["core"] = image.attributes.cpuName;
  json["segments"] = Json::array();
  for (const platform::ElfSegment& segment : image.segments)
    json["segments"].push_back({{"address", segment.address}, {"bytes", segment.bytes.size()}});
  json["functions"] = image.functions.size();
  return json;
}

/// The member that holds the contents of a file of this kind; none for files that contain only commands.
struct MemberOf {
  Json& json;
  void operator()(const pipeline::Commands&) const {}
  void operator()(const std::vector<pt2::ExportedProgram>& programs) const {
    json["exported"] = archiveJson(programs);
  }
  void operator()(const ir::Graph& graph) const { json["graph"] = graphJson(graph); }
  void operator()(const NamedTensors& arrays) const { json["arrays"] = arraysJson(arrays); }
  void operator()(const pipeline::ProgramContents& program) const { json["program"] = programJson(program); }
  void operator()(const pipeline::BundleContents& bundle) const {
    json["bundle"] = bundleJson(bundle.bundle);
    json["program"] = programJson(bundle.inside);
  }
  void operator()(const pte::TensorData& data) const { json["tensor_data"] = tensorDataJson(data); }
  void operator()(const tflite::Model& model) const { json["tflite"] = tfliteJson(model); }
  void operator()(const pte::DelegateBlob& blob) const { json["blob"] = blobJson(blob); }
  void operator()(const pipeline::EthosNProgram& program) const { json["ethos_n"] = networkJson(program); }
  void operator()(const pipeline::ImageContents& image) const { json["image"] = imageJson(image); }
};

}  // namespace

std::string contentsJson(const pipeline::FileContents& contents) {
  Json json = document("contents");
  json["kind"] = pipeline::fileKindName(contents.kind);
  json["bytes"] = contents.file->bytes().size();
  std::visit(MemberOf{json}, contents.value);
  json["command_streams"] = Json::array();
  for (const pipeline::CommandStream& stream : contents.streams)
    json["command_streams"].push_back(streamJson(stream));
  return documentText(json);
}

}  // namespace carina::report
