// SPDX-License-Identifier: Apache-2.0
// Versions 1.0 and 1.1: from the flatbuffer to a WireFile.
#include <algorithm>
#include <cstring>

#include "base/float16.hpp"
#include "base/pairs.hpp"
#include "tosa/ops.hpp"
#include "tosa_1_x_generated.h"
#include "tosa_io/string_lists.hpp"
#include "tosa_io/wire_copies.hpp"
#include "tosa_io/wire_graph.hpp"

namespace carina::tosa_io {
namespace {

using Attributes = std::vector<ir::Attribute>;

constexpr std::pair<wire::DType, DType> kElementTypes[] = {
    {wire::DType::BOOL, DType::Bool},    {wire::DType::INT4, DType::Int4},
    {wire::DType::INT8, DType::Int8},    {wire::DType::INT16, DType::Int16},
    {wire::DType::INT32, DType::Int32},  {wire::DType::INT48, DType::Int48},
    {wire::DType::INT64, DType::Int64},  {wire::DType::FP32, DType::Float32},
    {wire::DType::FP16, DType::Float16}, {wire::DType::BF16, DType::BFloat16}};

std::optional<DType> elementType(wire::DType dtype) {
  return secondOf(kElementTypes, dtype);
}

std::string typeName(wire::DType dtype) {
  const std::string_view name = wire::EnumNameDType(dtype);
  return name.empty() ? fmt::format("number {}", static_cast<uint32_t>(dtype)) : std::string(name);
}

ByteSpan byteSpan(const flatbuffers::Vector<uint8_t>* data) {
  if (!data) return {};
  return {reinterpret_cast<const std::byte*>(data->data()), data->size()};
}

/// One element of a bound of CLAMP; the vector may be padded.
Result<ir::Attribute> bound(const flatbuffers::Vector<uint8_t>* data, DType dtype, std::string_view name) {
  const ByteSpan bytes = byteSpan(data);
  if (static_cast<int64_t>(bytes.size()) < dtypeSize(dtype)) {
    return fail(Code::Damaged, "{} has {} bytes, expected one element of {} (ClampBoundMissing)", name,
                bytes.size(), dtypeName(dtype));
  }
  const auto read = [&](auto value) {
    std::memcpy(&value, bytes.data(), sizeof(value));
    return value;
  };
  switch (dtype) {
    case DType::Int8:
      return ir::Attribute(int64_t{read(int8_t{})});
    case DType::Int16:
      return ir::Attribute(int64_t{read(int16_t{})});
    case DType::Int32:
      return ir::Attribute(int64_t{read(int32_t{})});
    case DType::Float32:
      return ir::Attribute(double{read(float{})});
    case DType::Float16:
      return ir::Attribute(double{halfToFloat(read(uint16_t{}))});
    case DType::BFloat16:
      return ir::Attribute(double{bfloat16ToFloat(read(uint16_t{}))});
    default:
      return fail(Code::InvalidGraph, "CLAMP does not support {} (WrongInputType)", dtypeName(dtype));
  }
}

template <typename Table>
const Table& as(const wire::TosaOperator& op) {
  return *static_cast<const Table*>(op.attribute());
}

/// Attribute `i` of the operator's row: the format's tables have the same fields in the same order.
/// `inputType`: element type of the first operand.
Result<ir::Attribute> attributeOf(const flatbuffers::Table& table, const ir::OpDef& def, size_t i,
                                  std::optional<DType> inputType, Copies& copies) {
  const ir::AttributeDef& attribute = def.attributes[i];
  const auto field = flatbuffers::FieldIndexToOffset(static_cast<flatbuffers::voffset_t>(i));
  using Bytes = flatbuffers::Vector<uint8_t>;
  switch (attribute.kind) {
    case ir::AttributeKind::Bool:
      return ir::Attribute(table.GetField<uint8_t>(field, 0) != 0);
    case ir::AttributeKind::Int:
      return ir::Attribute(int64_t{table.GetField<int32_t>(field, 0)});
    case ir::AttributeKind::Enum: {
      // The reference model rejects UNKNOWN; the specification's default is to propagate NaN.
      const auto value = table.GetField<uint32_t>(field, 0);
      if (value == 0 && !attribute.defaultText.empty())
        return ir::parseAttribute(attribute, attribute.defaultText);
      return ir::Attribute(int64_t{value});
    }
    case ir::AttributeKind::Type: {
      const auto dtype = static_cast<wire::DType>(table.GetField<uint32_t>(field, 0));
      if (const auto type = elementType(dtype)) return ir::Attribute(*type);
      return fail(Code::UnsupportedForm, "{} {} is not supported (WrongAccumulatorType)", attribute.name,
                  typeName(dtype));
    }
    case ir::AttributeKind::Ints: {
      const auto* values = table.GetPointer<const flatbuffers::Vector<int32_t>*>(field);
      if (!values)
        return fail(Code::InvalidGraph, "attribute '{}' is missing (AttributeMissing)", attribute.name);
      return ir::Attribute(ir::Ints(values->begin(), values->end()));
    }
    case ir::AttributeKind::Scalar:
      if (!inputType)
        return fail(Code::InvalidGraph, "the type of the operand is not known (WrongInputType)");
      return bound(table.GetPointer<const Bytes*>(field), *inputType, attribute.name);
    default: {
      // Names, and bytes that only the operator's author understands: both are vectors of bytes.
      if (attribute.name != "implementation_attrs")
        return ir::Attribute(copies.text(table.GetPointer<const flatbuffers::String*>(field)));
      const ByteSpan bytes = byteSpan(table.GetPointer<const Bytes*>(field));
      return ir::Attribute(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    }
  }
}

Result<Attributes> attributesOf(const wire::TosaOperator& op, const ir::OpDef* def,
                                std::optional<DType> inputType, Copies& copies) {
  Attributes attributes;
  if (def == nullptr || op.attribute() == nullptr) return attributes;
  for (size_t i = 0; i < def->attributes.size(); ++i) {
    CARINA_TRY(ir::Attribute value, attributeOf(as<flatbuffers::Table>(op), *def, i, inputType, copies));
    attributes.push_back(std::move(value));
  }
  return attributes;
}

class Reader {
 public:
  Reader(ByteSpan bytes, const wire::TosaGraph& graph)
      : bytes_(bytes), mayBeSnapshot_(graph.version()->draft()), graph_(graph), copies_(bytes.size()) {}

  Result<WireFile> file() {
    WireFile file;
    if (!graph_.regions()) return fail(Code::Damaged, "the file has no regions");
    for (const auto* region : *graph_.regions()) {
      WireRegion& target = file.regions.emplace_back();
      target.name = copies_.text(region->name());
      if (!region->blocks()) continue;
      for (const auto* source : *region->blocks()) {
        CARINA_TRY(WireBlock read, block(*source));
        target.blocks.push_back(std::move(read));
      }
    }
    return file;
  }

 private:
  Result<WireBlock> block(const wire::TosaBasicBlock& source) {
    WireBlock block;
    block.name = copies_.text(source.name());
    block.inputs = copies_.texts(source.inputs());
    block.outputs = copies_.texts(source.outputs());
    std::unordered_map<std::string, std::optional<DType>> types;
    if (source.tensors()) {
      for (const auto* entry : *source.tensors()) {
        CARINA_TRY(WireTensor tensor, this->tensor(*entry));
        CARINA_RETURN_IF_ERROR(copies_.check());
        types[tensor.name] = tensor.dtype;
        block.tensors.push_back(std::move(tensor));
      }
    }
    if (source.shapes()) {
      for (const auto* entry : *source.shapes()) {
        WireTensor tensor;
        tensor.name = copies_.text(entry->name());
        tensor.shape = {int64_t{entry->rank()}};
        tensor.dtype = DType::Shape;
        tensor.data = byteSpan(entry->data());
        tensor.hasData = !tensor.data.empty() || entry->rank() == 0;
        copies_.charge(sizeof(WireTensor));
        CARINA_RETURN_IF_ERROR(copies_.check());
        block.tensors.push_back(std::move(tensor));
      }
    }
    if (source.operators()) {
      for (const auto* entry : *source.operators()) {
        auto op = operation(*entry, types);
        if (!op.ok()) return advise(std::move(op).error().at(placeOf(*entry)));
        block.operators.push_back(std::move(*op));
      }
    }
    return block;
  }

  Result<WireTensor> tensor(const wire::TosaTensor& source) {
    WireTensor tensor;
    tensor.name = copies_.text(source.name());
    copies_.charge(sizeof(WireTensor) + (source.shape() ? source.shape()->size() * sizeof(int64_t) : 0));
    if (source.shape()) tensor.shape.assign(source.shape()->begin(), source.shape()->end());
    tensor.dtype = elementType(source.type());
    tensor.typeName = typeName(source.type());
    tensor.unranked = source.is_unranked();
    tensor.data = byteSpan(source.data());
    if (source.offset() > 1) {  // data outside the flatbuffer, for files beyond 2 GiB
      if (source.offset() > bytes_.size() || source.size() > bytes_.size() - source.offset()) {
        return fail(Code::Damaged, "data at {} with {} bytes is outside the file", source.offset(),
                    source.size())
            .at("tensor " + tensor.name);
      }
      tensor.data = bytes_.subspan(source.offset(), source.size());
    }
    tensor.hasData = !tensor.data.empty();
    return tensor;
  }

  Result<WireOperator> operation(const wire::TosaOperator& source,
                                 const std::unordered_map<std::string, std::optional<DType>>& types) {
    WireOperator op;
    op.op = wire::EnumNameOp(source.op());
    if (op.op.empty() || source.op() == wire::Op::UNKNOWN) {
      return fail(Code::UnknownOperator, "operator number {} is not known (UnknownOperator)",
                  static_cast<uint32_t>(source.op()));
    }
    op.inputs = copies_.texts(source.inputs());
    op.outputs = copies_.texts(source.outputs());
    CARINA_RETURN_IF_ERROR(copies_.check());
    if (source.location()) op.location = copies_.text(source.location()->text());
    const ir::OpDef* def = tosa::findOperator("tosa." + op.op);
    const bool needsTable = (def && !def->attributes.empty()) || source.op() == wire::Op::COND_IF ||
                            source.op() == wire::Op::WHILE_LOOP;
    const auto tag = static_cast<uint32_t>(source.attribute_type());
    if (tag != static_cast<uint32_t>(source.op()) && (needsTable || tag != 0)) {
      return fail(Code::InvalidGraph, "the attributes are those of operator {} (AttributeTagMismatch)", tag);
    }
    if (needsTable && !source.attribute())
      return fail(Code::InvalidGraph, "{} has no attributes (AttributeMissing)", op.op);
    if (source.op() == wire::Op::COND_IF) {
      const auto& a = as<wire::CondIfAttributes>(source);
      op.subGraphs = {copies_.text(a.then_graph()), copies_.text(a.else_graph())};
    } else if (source.op() == wire::Op::WHILE_LOOP) {
      const auto& a = as<wire::WhileLoopAttributes>(source);
      op.subGraphs = {copies_.text(a.cond_graph()), copies_.text(a.body_graph())};
    }
    std::optional<DType> inputType;
    if (!op.inputs.empty()) {
      if (auto it = types.find(op.inputs[0]); it != types.end()) inputType = it->second;
    }
    CARINA_TRY(op.attributes, attributesOf(source, def, inputType, copies_));
    copies_.chargeLists(op);
    CARINA_RETURN_IF_ERROR(copies_.check());
    return op;
  }

  static std::string placeOf(const wire::TosaOperator& op) {
    if (!op.outputs() || op.outputs()->size() == 0) return wire::EnumNameOp(op.op());
    return op.outputs()->Get(0)->str();
  }

  /// Development snapshots of 2024 are marked 1.1.0 draft but differ from the final 1.1.
  Error advise(Error error) const {
    if (!mayBeSnapshot_) return error;
    return std::move(error).withRemedy(
        "the file is marked as a draft; if a development version before TOSA 1.0 wrote it, "
        "write it again with a released one");
  }

  ByteSpan bytes_;
  bool mayBeSnapshot_;
  const wire::TosaGraph& graph_;
  Copies copies_;
};

}  // namespace

Result<WireFile> readVersion1(ByteSpan bytes) {
  const size_t size = std::min<size_t>(bytes.size(), FLATBUFFERS_MAX_BUFFER_SIZE - 1);
  CARINA_RETURN_IF_ERROR(checkStringLists(
      bytes.first(size),
      listFieldsOf<wire::TosaGraph, wire::TosaRegion, wire::TosaBasicBlock, wire::TosaOperator>()));
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(bytes.data()), size);
  if (!wire::VerifyTosaGraphBuffer(verifier)) {
    return fail(Code::Damaged, "the file is damaged: it contains an offset or a size that is out of bounds")
        .withRemedy("copy or export the file again");
  }
  return Reader(bytes, *wire::GetTosaGraph(bytes.data())).file();
}

}  // namespace carina::tosa_io
