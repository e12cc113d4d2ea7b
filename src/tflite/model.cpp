// SPDX-License-Identifier: Apache-2.0
#include "tflite/model.hpp"

namespace carina::tflite {

std::string tensorTypeName(TensorType type) {
  switch (type) {
    case TensorType::Float32:
      return "float32";
    case TensorType::Float16:
      return "float16";
    case TensorType::Int32:
      return "int32";
    case TensorType::UInt8:
      return "uint8";
    case TensorType::Int64:
      return "int64";
    case TensorType::String:
      return "string";
    case TensorType::Bool:
      return "bool";
    case TensorType::Int16:
      return "int16";
    case TensorType::Complex64:
      return "complex64";
    case TensorType::Int8:
      return "int8";
    case TensorType::Float64:
      return "float64";
    case TensorType::Complex128:
      return "complex128";
    case TensorType::UInt64:
      return "uint64";
    case TensorType::Resource:
      return "resource";
    case TensorType::Variant:
      return "variant";
    case TensorType::UInt32:
      return "uint32";
    case TensorType::UInt16:
      return "uint16";
    case TensorType::Int4:
      return "int4";
    case TensorType::BFloat16:
      return "bfloat16";
  }
  return fmt::format("type {}", static_cast<int>(type));
}

std::optional<DType> toDType(TensorType type) {
  switch (type) {
    case TensorType::Float32:
      return DType::Float32;
    case TensorType::Float16:
      return DType::Float16;
    case TensorType::Int32:
      return DType::Int32;
    case TensorType::UInt8:
      return DType::UInt8;
    case TensorType::Int64:
      return DType::Int64;
    case TensorType::Bool:
      return DType::Bool;
    case TensorType::Int16:
      return DType::Int16;
    case TensorType::Int8:
      return DType::Int8;
    case TensorType::Float64:
      return DType::Float64;
    case TensorType::UInt32:
      return DType::UInt32;
    case TensorType::UInt16:
      return DType::UInt16;
    case TensorType::BFloat16:
      return DType::BFloat16;
    default:
      return std::nullopt;
  }
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
