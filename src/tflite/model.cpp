// SPDX-License-Identifier: Apache-2.0
#include "tflite/model.hpp"

#include "base/pairs.hpp"

namespace carina::tflite {
namespace {

constexpr std::pair<TensorType, std::string_view> kTypeNames[] = {
    {TensorType::Float32, "float32"},     {TensorType::Float16, "float16"},
    {TensorType::Int32, "int32"},         {TensorType::UInt8, "uint8"},
    {TensorType::Int64, "int64"},         {TensorType::String, "string"},
    {TensorType::Bool, "bool"},           {TensorType::Int16, "int16"},
    {TensorType::Complex64, "complex64"}, {TensorType::Int8, "int8"},
    {TensorType::Float64, "float64"},     {TensorType::Complex128, "complex128"},
    {TensorType::UInt64, "uint64"},       {TensorType::Resource, "resource"},
    {TensorType::Variant, "variant"},     {TensorType::UInt32, "uint32"},
    {TensorType::UInt16, "uint16"},       {TensorType::Int4, "int4"},
    {TensorType::BFloat16, "bfloat16"}};
constexpr std::pair<TensorType, DType> kElementTypes[] = {
    {TensorType::Float32, DType::Float32}, {TensorType::Float16, DType::Float16},
    {TensorType::Int32, DType::Int32},     {TensorType::UInt8, DType::UInt8},
    {TensorType::Int64, DType::Int64},     {TensorType::Bool, DType::Bool},
    {TensorType::Int16, DType::Int16},     {TensorType::Int8, DType::Int8},
    {TensorType::Float64, DType::Float64}, {TensorType::UInt32, DType::UInt32},
    {TensorType::UInt16, DType::UInt16},   {TensorType::BFloat16, DType::BFloat16}};

}  // namespace

std::string tensorTypeName(TensorType type) {
  const auto name = secondOf(kTypeNames, type);
  return name ? std::string(*name) : fmt::format("type {}", static_cast<int>(type));
}

std::optional<DType> toDType(TensorType type) {
  return secondOf(kElementTypes, type);
}

std::string Tensor::str() const {
  return tensorTypeName(type) + shapeText(shape);
}

std::optional<int64_t> tensorBytes(const Tensor& tensor) {
  const auto dtype = toDType(tensor.type);
  const auto elements = checkedNumElements(tensor.shape);
  if (!dtype || !elements) return std::nullopt;
  return checkedMul(*elements, dtypeSize(*dtype));
}

const Metadata* Model::findMetadata(std::string_view name) const {
  for (const Metadata& entry : metadata) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

namespace {

std::string tensorText(size_t index, const Tensor& tensor) {
  std::string line = fmt::format("  %{} = {}", index, tensor.str());
  if (!tensor.name.empty()) line += fmt::format(" \"{}\"", tensor.name);
  if (!tensor.scales.empty()) {
    line += tensor.scales.size() == 1 ? fmt::format(" scale {}", tensor.scales[0])
                                      : fmt::format(" {} scales", tensor.scales.size());
    if (tensor.zeroPoints.size() == 1) line += fmt::format(" zero point {}", tensor.zeroPoints[0]);
  }
  if (!tensor.data.empty()) line += fmt::format(", {} bytes stored", tensor.data.size());
  if (tensor.isVariable) line += ", variable";
  return line + "\n";
}

std::string listText(const std::vector<int32_t>& tensors) {
  std::string text;
  for (const int32_t tensor : tensors) {
    text += text.empty() ? "" : ", ";
    text += tensor < 0 ? "none" : fmt::format("%{}", tensor);
  }
  return text;
}

}  // namespace

std::string printModel(const Model& model) {
  std::string text = fmt::format("TensorFlow Lite model: version {}", model.version);
  if (!model.description.empty()) text += fmt::format(", \"{}\"", model.description);
  text += "\n";
  for (const Metadata& entry : model.metadata)
    text += fmt::format("metadata {}: {} bytes\n", entry.name, entry.data.size());
  for (size_t g = 0; g < model.subgraphs.size(); ++g) {
    const Subgraph& subgraph = model.subgraphs[g];
    text += fmt::format("subgraph {}", g);
    if (!subgraph.name.empty()) text += " " + subgraph.name;
    text +=
        fmt::format(": inputs [{}] outputs [{}]\n", listText(subgraph.inputs), listText(subgraph.outputs));
    for (size_t i = 0; i < subgraph.tensors.size(); ++i) text += tensorText(i, subgraph.tensors[i]);
    for (size_t i = 0; i < subgraph.operators.size(); ++i) {
      const Operator& op = subgraph.operators[i];
      text += fmt::format("  {:>3}: {} = {}({})\n", i, listText(op.outputs), op.name, listText(op.inputs));
    }
  }
  return text;
}

}  // namespace carina::tflite
