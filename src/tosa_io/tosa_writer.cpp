// SPDX-License-Identifier: Apache-2.0
#include "tosa_io/tosa_writer.hpp"

#include <cstring>
#include <unordered_set>

#include "base/float16.hpp"
#include "base/pairs.hpp"
#include "tosa/tosa.hpp"
#include "tosa_1_x_generated.h"

namespace carina::tosa_io {
namespace {

using flatbuffers::Offset;

template <typename T>
using Offsets = std::vector<Offset<T>>;

constexpr std::pair<DType, wire::DType> kWireTypes[] = {
    {DType::Bool, wire::DType::BOOL},    {DType::Int4, wire::DType::INT4},
    {DType::Int8, wire::DType::INT8},    {DType::Int16, wire::DType::INT16},
    {DType::Int32, wire::DType::INT32},  {DType::Int48, wire::DType::INT48},
    {DType::Float32, wire::DType::FP32}, {DType::Float16, wire::DType::FP16},
    {DType::BFloat16, wire::DType::BF16}};

Result<wire::DType> wireType(DType dtype) {
  if (const auto type = secondOf(kWireTypes, dtype)) return *type;
  return fail(Code::NotRepresentable, "TOSA 1.0 has no element type {}", dtypeName(dtype));
}

/// Elements packed as the format requires.
std::vector<uint8_t> packed(const Tensor& tensor) {
  const auto bytes = tensor.bytes();
  const auto* first = reinterpret_cast<const uint8_t*>(bytes.data());
  if (tensor.dtype() == DType::Int4) {
    const auto values = tensor.as<int8_t>();
    std::vector<uint8_t> data((values.size() + 1) / 2, 0);
    for (size_t i = 0; i < values.size(); ++i) {
      data[i / 2] = static_cast<uint8_t>(data[i / 2] | (values[i] & 0xf) << (i % 2 * 4));
    }
    return data;
  }
  if (tensor.dtype() == DType::Int48) {
    const auto values = tensor.as<int64_t>();
    std::vector<uint8_t> data(values.size() * 6);
    for (size_t i = 0; i < values.size(); ++i) std::memcpy(data.data() + 6 * i, &values[i], 6);
    return data;
  }
  return {first, first + bytes.size()};
}

/// One bound of CLAMP as bytes of the element type.
std::vector<uint8_t> boundBytes(const ir::Attribute& value, DType dtype) {
  const auto bytesOf = [](auto element) {
    std::vector<uint8_t> bytes(sizeof(element));
    std::memcpy(bytes.data(), &element, sizeof(element));
    return bytes;
  };
  switch (dtype) {
    case DType::Int8:
      return bytesOf(static_cast<int8_t>(ir::scalarInt(value)));
    case DType::Int16:
      return bytesOf(static_cast<int16_t>(ir::scalarInt(value)));
    case DType::Int32:
      return bytesOf(static_cast<int32_t>(ir::scalarInt(value)));
    case DType::Float16:
      return bytesOf(floatToHalf(static_cast<float>(ir::scalarReal(value))));
    case DType::BFloat16:
      return bytesOf(floatToBfloat16(static_cast<float>(ir::scalarReal(value))));
    default:
      return bytesOf(static_cast<float>(ir::scalarReal(value)));
  }
}

/// Names that are unique in the whole file.
class Names {
 public:
  std::string unique(const std::string& wanted) {
    const std::string base = wanted.empty() ? "v" : wanted;
    std::string name = wanted.empty() ? fmt::format("v{}", next_++) : wanted;
    while (!taken_.insert(name).second) name = fmt::format("{}_{}", base, next_++);
    return name;
  }

 private:
  std::unordered_set<std::string> taken_;
  int next_ = 0;
};

class Writer {
 public:
  Result<std::string> write(const ir::Graph& graph) {
    CARINA_RETURN_IF_ERROR(region(graph, regionNames_.unique(graph.name.empty() ? "main" : graph.name)));
    // Sub-graphs were appended while their users were written; the main graph is the first region.
    std::rotate(regions_.begin(), regions_.end() - 1, regions_.end());
    const auto version = wire::CreateVersion(builder_, 1, 0, 0, false);
    const auto root = wire::CreateTosaGraph(builder_, version, builder_.CreateVector(regions_));
    wire::FinishTosaGraphBuffer(builder_, root);
    return std::string(reinterpret_cast<const char*>(builder_.GetBufferPointer()), builder_.GetSize());
  }

 private:
  using ValueNames = std::unordered_map<const ir::Value*, std::string>;
  using OptionalStrings = Offset<flatbuffers::Vector<Offset<flatbuffers::String>>>;

  struct Block {
    ValueNames names;
    Offsets<wire::TosaOperator> operators;
    Offsets<wire::TosaTensor> tensors;
    Offsets<wire::TosaShape> shapes;
  };

  void nameValues(const ir::Graph& graph, Block& block) {
    const auto give = [&](const ir::Value* value) { block.names[value] = valueNames_.unique(value->name); };
    for (const ir::Value* input : graph.inputs()) give(input);
    for (const auto& constant : graph.constants()) give(constant.get());
    for (const ir::Node* node : graph.nodes()) {
      for (const ir::Value* result : node->results()) give(result);
    }
  }

  Status region(const ir::Graph& graph, const std::string& name) {
    Block block;
    nameValues(graph, block);  // before any sub-graph uses a name
    std::vector<std::string> inputs, outputs;
    for (const ir::Value* input : graph.inputs()) {
      CARINA_RETURN_IF_ERROR(tensor(block, *input, nullptr));
      inputs.push_back(block.names.at(input));
    }
    for (const auto& constant : graph.constants()) CARINA_RETURN_IF_ERROR(this->constant(block, *constant));
    for (const ir::Node* node : graph.nodes()) {
      if (auto status = operation(block, *node); !status.ok())
        return std::move(status).error().at(node->where());
    }
    for (const ir::Value* output : graph.outputs()) outputs.push_back(block.names.at(output));
    const auto blockOffset = wire::CreateTosaBasicBlock(
        builder_, builder_.CreateString(name), builder_.CreateVector(block.operators),
        builder_.CreateVector(block.tensors), builder_.CreateVectorOfStrings(inputs),
        builder_.CreateVectorOfStrings(outputs), builder_.CreateVector(block.shapes));
    const Offsets<wire::TosaBasicBlock> blocks{blockOffset};
    regions_.push_back(
        wire::CreateTosaRegion(builder_, builder_.CreateString(name), builder_.CreateVector(blocks)));
    return {};
  }

  Offset<flatbuffers::Vector<uint8_t>> data(const std::vector<uint8_t>& bytes) {
    builder_.ForceVectorAlignment(bytes.size(), 1, 8);
    return builder_.CreateVector(bytes);
  }

  Status tensor(Block& block, const ir::Value& value, const Tensor* contents) {
    CARINA_TRY(const wire::DType dtype, wireType(value.dtype()));
    std::vector<int32_t> shape;
    for (int64_t size : value.shape()) {
      if (size > INT32_MAX) return fail(Code::NotRepresentable, "dimension {} does not fit the format", size);
      shape.push_back(static_cast<int32_t>(size));
    }
    const std::string& name = block.names.at(&value);
    Offset<flatbuffers::Vector<uint8_t>> bytes;
    if (contents) bytes = data(packed(*contents));
    block.tensors.push_back(wire::CreateTosaTensor(builder_, builder_.CreateString(name),
                                                   builder_.CreateVector(shape), dtype, bytes));
    return {};
  }

  Status constant(Block& block, const ir::Value& value) {
    if (value.dtype() != DType::Shape) {
      CARINA_RETURN_IF_ERROR(tensor(block, value, &value.constant()));
      emit(block, wire::Op::CONST, emptyAttributes(), {}, {block.names.at(&value)}, "");
      return {};
    }
    const std::string& name = block.names.at(&value);
    const auto bytes = data(packed(value.constant()));
    block.shapes.push_back(wire::CreateTosaShape(
        builder_, builder_.CreateString(name), static_cast<uint32_t>(value.constant().numElements()), bytes));
    emit(block, wire::Op::CONST_SHAPE, emptyAttributes(), {}, {name}, "");
    return {};
  }

  void emit(Block& block, wire::Op op, Offset<void> attributes, const std::vector<std::string>& inputs,
            const std::vector<std::string>& outputs, const std::string& location) {
    Offset<wire::OpLocation> where;
    if (!location.empty()) where = wire::CreateOpLocation(builder_, builder_.CreateString(location));
    const auto tag = static_cast<wire::Attributes>(static_cast<uint32_t>(op));
    const OptionalStrings operands =
        inputs.empty() ? OptionalStrings() : builder_.CreateVectorOfStrings(inputs);
    block.operators.push_back(wire::CreateTosaOperator(builder_, op, tag, attributes, operands,
                                                       builder_.CreateVectorOfStrings(outputs), where));
  }

  Status operation(Block& block, const ir::Node& node) {
    if (!tosa::isOperator(&node)) {
      return fail(Code::NotRepresentable, "{} is not a TOSA operator", node.opName())
          .withRemedy("lower the whole graph to TOSA first");
    }
    const std::string name(node.opName().substr(node.opName().find('.') + 1));
    wire::Op op = wire::Op::UNKNOWN;
    for (wire::Op candidate : wire::EnumValuesOp()) {
      if (name == wire::EnumNameOp(candidate)) op = candidate;
    }
    std::vector<std::string> inputs, outputs;
    for (const ir::Value* operand : node.operands()) inputs.push_back(block.names.at(operand));
    for (const ir::Value* result : node.results()) {
      CARINA_RETURN_IF_ERROR(tensor(block, *result, nullptr));
      outputs.push_back(block.names.at(result));
    }
    CARINA_TRY(const Offset<void> attributes, attributesOf(node));
    const std::string location =
        node.location() && node.location()->name != node.result(0)->name ? node.location()->name : "";
    emit(block, op, attributes, inputs, outputs, location);
    return {};
  }

  Offset<void> emptyAttributes() { return wire::CreateEmptyAttributes(builder_).Union(); }

  /// Lists of 32-bit numbers: the verifier rejects wider ones.
  Offset<flatbuffers::Vector<int32_t>> ints(const ir::Ints& values) {
    for (const int64_t value : values)
      CARINA_CHECK(value >= INT32_MIN && value <= INT32_MAX, "a TOSA attribute is wider than 32 bits");
    return builder_.CreateVector(std::vector<int32_t>(values.begin(), values.end()));
  }

  Result<std::array<std::string, 2>> subGraphs(const ir::Node& node) {
    std::array<std::string, 2> names;
    for (size_t i = 0; i < 2; ++i) {
      const ir::Graph& graph = node.region(i);
      names[i] = regionNames_.unique(graph.name.empty() ? "graph" : graph.name);
      CARINA_RETURN_IF_ERROR(region(graph, names[i]));
    }
    return names;
  }

  /// The table of an operator's attributes: the format's tables have the fields of its row in the row's
  /// order.
  Result<Offset<void>> attributesOf(const ir::Node& node) {
    switch (tosa::opId(&node)) {
      case tosa::OpId::CondIf: {
        CARINA_TRY(const auto names, subGraphs(node));
        return wire::CreateCondIfAttributes(builder_, builder_.CreateString(names[0]),
                                            builder_.CreateString(names[1]))
            .Union();
      }
      case tosa::OpId::WhileLoop: {
        CARINA_TRY(const auto names, subGraphs(node));
        return wire::CreateWhileLoopAttributes(builder_, builder_.CreateString(names[0]),
                                               builder_.CreateString(names[1]))
            .Union();
      }
      case tosa::OpId::Variable:
      case tosa::OpId::VariableRead:
      case tosa::OpId::VariableWrite:
        return fail(Code::NotRepresentable,
                    "{} cannot be written: the format leaves open how variables are bound", node.opName())
            .withRemedy("make the state an input and an output of the graph");
      default:
        return table(node);
    }
  }

  Result<Offset<void>> table(const ir::Node& node) {
    const auto attributes = node.def().attributes;
    // Data outside the table is written first, in reverse order.
    std::vector<Offset<void>> outside(attributes.size());
    for (size_t i = attributes.size(); i-- > 0;) outside[i] = outsideOf(node, i);
    const auto start = builder_.StartTable();
    // Wide fields first, like flatc.
    for (const bool wide : {true, false}) {
      for (size_t i = attributes.size(); i-- > 0;) {
        if ((attributes[i].kind != ir::AttributeKind::Bool) == wide)
          CARINA_RETURN_IF_ERROR(addField(node.attribute(i), attributes[i], i, outside[i]));
      }
    }
    return Offset<void>(builder_.EndTable(start));
  }

  /// Vectors and strings; nothing for values stored in the table itself.
  Offset<void> outsideOf(const ir::Node& node, size_t i) {
    const ir::Attribute& value = node.attribute(i);
    switch (node.def().attributes[i].kind) {
      case ir::AttributeKind::Ints:
        return ints(std::get<ir::Ints>(value)).Union();
      case ir::AttributeKind::Scalar:
        return data(boundBytes(value, node.operand(0)->dtype())).Union();
      case ir::AttributeKind::String: {
        const std::string& text = std::get<std::string>(value);
        if (node.def().attributes[i].name != "implementation_attrs")
          return builder_.CreateString(text).Union();
        return data({text.begin(), text.end()}).Union();
      }
      default:
        return {};
    }
  }

  Status addField(const ir::Attribute& value, const ir::AttributeDef& attribute, size_t i,
                  Offset<void> outside) {
    const auto field = flatbuffers::FieldIndexToOffset(static_cast<flatbuffers::voffset_t>(i));
    switch (attribute.kind) {
      case ir::AttributeKind::Bool:
        builder_.AddElement<uint8_t>(field, std::get<bool>(value) ? 1 : 0, 0);
        return {};
      case ir::AttributeKind::Int:
        builder_.AddElement<int32_t>(field, static_cast<int32_t>(std::get<int64_t>(value)), 0);
        return {};
      case ir::AttributeKind::Enum:
        builder_.AddElement<uint32_t>(field, static_cast<uint32_t>(std::get<int64_t>(value)), 0);
        return {};
      case ir::AttributeKind::Type: {
        CARINA_TRY(const wire::DType dtype, wireType(std::get<DType>(value)));
        builder_.AddElement<uint32_t>(field, static_cast<uint32_t>(dtype), 0);
        return {};
      }
      default:
        builder_.AddOffset(field, outside);
        return {};
    }
  }

  flatbuffers::FlatBufferBuilder builder_{1024};
  Offsets<wire::TosaRegion> regions_;
  Names valueNames_, regionNames_;
};

}  // namespace

Result<std::string> writeTosa(const ir::Graph& graph) {
  return Writer().write(graph);
}

}  // namespace carina::tosa_io
