// SPDX-License-Identifier: Apache-2.0
// Version 0.80: from the flatbuffer to a WireFile in 1.0 terms. Attributes of 0.80 that are operands in 1.0
// (zero points, shifts, tables, shapes) become constants; FULLY_CONNECTED becomes a 1x1 convolution; unsigned
// element types become signless ones, with the unsigned flags of RESCALE.
#include <algorithm>
#include <cstring>

#include "base/pairs.hpp"
#include "tosa/infer.hpp"
#include "tosa/ops.hpp"
#include "tosa_0_80_generated.h"
#include "tosa_io/string_lists.hpp"
#include "tosa_io/wire_copies.hpp"
#include "tosa_io/wire_graph.hpp"

namespace carina::tosa_io {
namespace {

namespace fb = wire080;

constexpr std::pair<fb::DType, DType> kTypesOf080[] = {
    {fb::DType::BOOL, DType::Bool},    {fb::DType::INT4, DType::Int4},    {fb::DType::UINT8, DType::Int8},
    {fb::DType::INT8, DType::Int8},    {fb::DType::UINT16, DType::Int16}, {fb::DType::INT16, DType::Int16},
    {fb::DType::INT32, DType::Int32},  {fb::DType::INT48, DType::Int48},  {fb::DType::FP32, DType::Float32},
    {fb::DType::FP16, DType::Float16}, {fb::DType::BF16, DType::BFloat16}};

std::optional<DType> elementType(fb::DType dtype) {
  return secondOf(kTypesOf080, dtype);
}

template <typename Vector>
Result<ir::Ints> ints(const Vector* values, std::string_view name) {
  if (!values) return fail(Code::InvalidGraph, "attribute '{}' is missing (AttributeMissing)", name);
  return ir::Ints(values->begin(), values->end());
}

/// Truncated to the type's bits, so that unsigned zero points keep their pattern.
Tensor integers(DType dtype, const ir::Ints& values) {
  Tensor tensor = Tensor::zeros(dtype, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) {
    int64_t value = values[i];
    if (dtype == DType::Int8) value = static_cast<int8_t>(value);
    if (dtype == DType::Int16) value = static_cast<int16_t>(value);
    if (!isFloat(dtype)) tensor.setIntegerAt(static_cast<int64_t>(i), value);
  }
  return tensor;
}

Result<double> floatValue(const flatbuffers::Vector<uint8_t>* bytes, std::string_view name) {
  float value = 0;
  if (!bytes || bytes->size() < sizeof(value)) return fail(Code::Damaged, "{} needs 4 bytes", name);
  std::memcpy(&value, bytes->data(), sizeof(value));
  return double{value};
}

struct ElementInfo {
  DType dtype;
  bool isUnsigned;
  Shape shape;
  ByteSpan data;  // of a constant
};

class BlockReader {
 public:
  BlockReader(const fb::TosaBasicBlock& source, Copies& copies) : source_(source), copies_(copies) {}

  Result<WireBlock> read() {
    block_.name = copies_.text(source_.name());
    block_.inputs = copies_.texts(source_.inputs());
    block_.outputs = copies_.texts(source_.outputs());
    if (source_.tensors()) {
      for (const auto* entry : *source_.tensors()) {
        tensor(*entry);
        CARINA_RETURN_IF_ERROR(copies_.check());
      }
    }
    if (source_.operators()) {
      for (const auto* entry : *source_.operators()) {
        auto status = operation(*entry);
        if (!status.ok()) {
          const bool named = entry->outputs() && entry->outputs()->size() > 0;
          return std::move(status).error().at(named ? entry->outputs()->Get(0)->str()
                                                    : fb::EnumNameOp(entry->op()));
        }
      }
    }
    return std::move(block_);
  }

 private:
  void tensor(const fb::TosaTensor& source) {
    WireTensor tensor;
    tensor.name = copies_.text(source.name());
    copies_.charge(sizeof(WireTensor) + (source.shape() ? source.shape()->size() * sizeof(int64_t) : 0));
    if (source.shape()) tensor.shape.assign(source.shape()->begin(), source.shape()->end());
    tensor.dtype = elementType(source.type());
    tensor.typeName = fb::EnumNameDType(source.type());
    tensor.unranked = source.is_unranked();
    if (source.data())
      tensor.data = {reinterpret_cast<const std::byte*>(source.data()->data()), source.data()->size()};
    tensor.hasData = !tensor.data.empty();
    if (tensor.dtype) {
      const bool isUnsigned = source.type() == fb::DType::UINT8 || source.type() == fb::DType::UINT16;
      elements_[tensor.name] = {*tensor.dtype, isUnsigned, tensor.shape, tensor.data};
    }
    block_.tensors.push_back(std::move(tensor));
  }

  Result<ElementInfo> element(const std::vector<std::string>& names, size_t i) const {
    if (i >= names.size())
      return fail(Code::InvalidGraph, "operand or result {} is missing (WrongInputList)", i);
    const auto it = elements_.find(names[i]);
    if (it == elements_.end())
      return fail(Code::InvalidGraph, "no tensor of a known type is named '{}' (UndefinedName)", names[i]);
    return it->second;
  }

  Status operation(const fb::TosaOperator& source) {
    WireOperator op;
    op.op = fb::EnumNameOp(source.op());
    if (op.op.empty())
      return fail(Code::UnknownOperator, "operator number {} is not known (UnknownOperator)",
                  static_cast<uint32_t>(source.op()));
    op.inputs = copies_.texts(source.inputs());
    op.outputs = copies_.texts(source.outputs());
    CARINA_RETURN_IF_ERROR(copies_.check());
    CARINA_RETURN_IF_ERROR(translate(source, op));
    copies_.chargeLists(op);
    CARINA_RETURN_IF_ERROR(copies_.check());
    if (source.op() == fb::Op::FULLY_CONNECTED) return fullyConnected(std::move(op));
    block_.operators.push_back(std::move(op));
    return {};
  }

  template <typename Table>
  static Result<const Table*> table(const fb::TosaOperator& source) {
    if (source.attribute_type() != fb::AttributeTraits<Table>::enum_value || !source.attribute()) {
      return fail(Code::InvalidGraph, "{} has the attributes of another operator (AttributeTagMismatch)",
                  fb::EnumNameOp(source.op()));
    }
    return static_cast<const Table*>(source.attribute());
  }

  /// Attributes and constant operands in 1.0 terms.
  Status translate(const fb::TosaOperator& source, WireOperator& op) {
    using Op = fb::Op;
    switch (source.op()) {
      case Op::CONV2D:
      case Op::CONV3D:
      case Op::DEPTHWISE_CONV2D:
        return convolution(source, op);
      case Op::TRANSPOSE_CONV2D:
        return transposeConvolution(source, op);
      case Op::FULLY_CONNECTED: {
        CARINA_TRY(const auto* a, table<fb::FullyConnectedAttribute>(source));
        CARINA_RETURN_IF_ERROR(zeroPoints(op, {{0, a->input_zp()}, {1, a->weight_zp()}}));
        CARINA_TRY(const DType acc, accumulator(op));
        op.attributes = {ir::Ints{0, 0, 0, 0}, ir::Ints{1, 1}, ir::Ints{1, 1}, false, acc};
        return {};
      }
      case Op::AVG_POOL2D:
      case Op::MAX_POOL2D:
        return pooling(source, op);
      case Op::ARGMAX:
      case Op::REDUCE_MAX:
      case Op::REDUCE_MIN: {
        CARINA_TRY(const auto* a, table<fb::AxisAttribute>(source));
        op.attributes = {int64_t{a->axis()}, propagate()};
        return {};
      }
      case Op::REDUCE_ALL:
      case Op::REDUCE_ANY:
      case Op::REDUCE_PRODUCT:
      case Op::REDUCE_SUM:
      case Op::CONCAT:
      case Op::REVERSE: {
        CARINA_TRY(const auto* a, table<fb::AxisAttribute>(source));
        op.attributes = {int64_t{a->axis()}};
        return {};
      }
      case Op::MAXIMUM:
      case Op::MINIMUM:
        op.attributes = {propagate()};
        return {};
      case Op::PAD:
        return pad(source, op);
      case Op::RESHAPE:
      case Op::SLICE:
      case Op::TILE:
      case Op::RESIZE:
        return shapeOperands(source, op);
      case Op::CLAMP:
        return clamp(source, op);
      case Op::RESCALE:
        return rescale(source, op);
      case Op::MUL: {
        CARINA_TRY(const auto* a, table<fb::MulAttribute>(source));
        op.constants = {integers(DType::Int8, {a->shift()})};
        return {};
      }
      case Op::ARITHMETIC_RIGHT_SHIFT: {
        CARINA_TRY(const auto* a, table<fb::ArithmeticRightShiftAttribute>(source));
        op.attributes = {a->round()};
        return {};
      }
      case Op::COND_IF: {
        CARINA_TRY(const auto* a, table<fb::CondIfAttribute>(source));
        op.subGraphs = {copies_.text(a->then_branch()), copies_.text(a->else_branch())};
        return {};
      }
      case Op::WHILE_LOOP: {
        CARINA_TRY(const auto* a, table<fb::WhileLoopAttribute>(source));
        op.subGraphs = {copies_.text(a->cond_branch()), copies_.text(a->body_branch())};
        return {};
      }
      case Op::TRANSPOSE: {
        CARINA_TRY(const auto* a, table<fb::TransposeAttribute>(source));
        CARINA_TRY(ir::Ints perms, ints(a->perms(), "perms"));
        op.attributes = {std::move(perms)};
        return {};
      }
      case Op::TABLE:
        return lookup(source, op);
      case Op::MATMUL: {
        CARINA_TRY(const auto* a, table<fb::MatMulAttribute>(source));
        return zeroPoints(op, {{0, a->a_zp()}, {1, a->b_zp()}});
      }
      case Op::NEGATE: {
        CARINA_TRY(const auto* a, table<fb::NegateAttribute>(source));
        return zeroPoints(op, {{0, a->input1_zp()}, {0, a->output_zp()}});
      }
      case Op::CUSTOM: {
        CARINA_TRY(const auto* a, table<fb::CustomAttribute>(source));
        std::string bytes;
        if (a->implementation_attrs())
          bytes.assign(a->implementation_attrs()->begin(), a->implementation_attrs()->end());
        op.attributes = {copies_.text(a->operator_name()), copies_.text(a->domain_name()), std::move(bytes)};
        return {};
      }
      case Op::FFT2D: {
        CARINA_TRY(const auto* a, table<fb::FFTAttribute>(source));
        op.attributes = {a->inverse(), a->local_bound()};
        return {};
      }
      case Op::RFFT2D:
        op.attributes = {false};
        return {};
      default:
        return {};
    }
  }

  /// Operators whose shape values were attributes.
  Status shapeOperands(const fb::TosaOperator& source, WireOperator& op) {
    using Op = fb::Op;
    switch (source.op()) {
      case Op::RESHAPE: {
        CARINA_TRY(const auto* a, table<fb::ReshapeAttribute>(source));
        CARINA_TRY(const ir::Ints shape, ints(a->new_shape(), "new_shape"));
        op.constants = {tosa::shapeTensor(shape)};
        return {};
      }
      case Op::SLICE: {
        CARINA_TRY(const auto* a, table<fb::SliceAttribute>(source));
        CARINA_TRY(const ir::Ints start, ints(a->start(), "start"));
        CARINA_TRY(const ir::Ints size, ints(a->size(), "size"));
        op.constants = {tosa::shapeTensor(start), tosa::shapeTensor(size)};
        return {};
      }
      case Op::TILE: {
        CARINA_TRY(const auto* a, table<fb::TileAttribute>(source));
        CARINA_TRY(const ir::Ints multiples, ints(a->multiples(), "multiples"));
        op.constants = {tosa::shapeTensor(multiples)};
        return {};
      }
      case Op::RESIZE: {
        CARINA_TRY(const auto* a, table<fb::ResizeAttribute>(source));
        CARINA_TRY(const ir::Ints scale, ints(a->scale(), "scale"));
        CARINA_TRY(const ir::Ints offset, ints(a->offset(), "offset"));
        CARINA_TRY(const ir::Ints border, ints(a->border(), "border"));
        op.constants = {tosa::shapeTensor(scale), tosa::shapeTensor(offset), tosa::shapeTensor(border)};
        op.attributes = {static_cast<int64_t>(a->mode())};
        return {};
      }
      default:
        CARINA_UNREACHABLE("operator without shape operands");
    }
  }

  Status lookup(const fb::TosaOperator& source, WireOperator& op) {
    CARINA_TRY(const auto* a, table<fb::TableAttribute>(source));
    CARINA_TRY(const ir::Ints entries, ints(a->table(), "table"));
    CARINA_TRY(const ElementInfo input, element(op.inputs, 0));
    op.constants = {integers(input.dtype == DType::Int8 ? DType::Int8 : DType::Int16, entries)};
    return {};
  }

  static ir::Attribute propagate() { return static_cast<int64_t>(tosa::NanMode::PROPAGATE); }

  /// Appends one constant per pair (operand that determines the element type, value).
  Status zeroPoints(WireOperator& op, std::initializer_list<std::pair<size_t, int64_t>> zeros) {
    for (const auto& [operand, value] : zeros) {
      CARINA_TRY(const ElementInfo info, element(op.inputs, operand));
      op.constants.push_back(integers(info.dtype, {value}));
    }
    return {};
  }

  Result<DType> accumulator(const WireOperator& op) const {
    CARINA_TRY(const ElementInfo input, element(op.inputs, 0));
    switch (input.dtype) {
      case DType::Int8:
        return DType::Int32;
      case DType::Int16:
        return DType::Int48;
      case DType::BFloat16:
        return DType::Float32;
      default:
        return input.dtype;
    }
  }

  Status convolution(const fb::TosaOperator& source, WireOperator& op) {
    CARINA_TRY(const auto* a, table<fb::ConvAttribute>(source));
    CARINA_TRY(ir::Ints pad, ints(a->pad(), "pad"));
    CARINA_TRY(ir::Ints stride, ints(a->stride(), "stride"));
    CARINA_TRY(ir::Ints dilation, ints(a->dilation(), "dilation"));
    CARINA_TRY(const DType acc, accumulator(op));
    op.attributes = {std::move(pad), std::move(stride), std::move(dilation), a->local_bound(), acc};
    return zeroPoints(op, {{0, a->input_zp()}, {1, a->weight_zp()}});
  }

  Status transposeConvolution(const fb::TosaOperator& source, WireOperator& op) {
    CARINA_TRY(const auto* a, table<fb::TransposeConvAttribute>(source));
    CARINA_TRY(ir::Ints pad, ints(a->out_pad(), "out_pad"));
    CARINA_TRY(ir::Ints stride, ints(a->stride(), "stride"));
    CARINA_TRY(const DType acc, accumulator(op));
    op.attributes = {std::move(pad), std::move(stride), a->local_bound(), acc};
    return zeroPoints(op, {{0, a->input_zp()}, {1, a->weight_zp()}});
  }

  Status pooling(const fb::TosaOperator& source, WireOperator& op) {
    CARINA_TRY(const auto* a, table<fb::PoolAttribute>(source));
    CARINA_TRY(ir::Ints kernel, ints(a->kernel(), "kernel"));
    CARINA_TRY(ir::Ints stride, ints(a->stride(), "stride"));
    CARINA_TRY(ir::Ints pad, ints(a->pad(), "pad"));
    if (source.op() == fb::Op::MAX_POOL2D) {
      op.attributes = {std::move(kernel), std::move(stride), std::move(pad), propagate()};
      return {};
    }
    const auto acc = elementType(a->accum_dtype());
    if (!acc)
      return fail(Code::UnsupportedForm, "accum_dtype {} is not supported (WrongAccumulatorType)",
                  fb::EnumNameDType(a->accum_dtype()));
    op.attributes = {std::move(kernel), std::move(stride), std::move(pad), *acc};
    return zeroPoints(op, {{0, a->input_zp()}, {0, a->output_zp()}});
  }

  Status pad(const fb::TosaOperator& source, WireOperator& op) {
    CARINA_TRY(const auto* a, table<fb::PadAttribute>(source));
    CARINA_TRY(const ir::Ints padding, ints(a->padding(), "padding"));
    CARINA_TRY(const ElementInfo input, element(op.inputs, 0));
    Tensor constant = integers(input.dtype, {a->pad_const_int()});
    if (isFloat(input.dtype)) {
      CARINA_TRY(const double value, floatValue(a->pad_const_fp(), "pad_const_fp"));
      constant =
          convert(Tensor::from<float>({1}, std::vector<float>{static_cast<float>(value)}), input.dtype);
    }
    op.constants = {tosa::shapeTensor(padding), std::move(constant)};
    return {};
  }

  Status clamp(const fb::TosaOperator& source, WireOperator& op) {
    CARINA_TRY(const auto* a, table<fb::ClampAttribute>(source));
    CARINA_TRY(const ElementInfo input, element(op.inputs, 0));
    if (isFloat(input.dtype)) {
      CARINA_TRY(const double low, floatValue(a->min_fp(), "min_fp"));
      CARINA_TRY(const double high, floatValue(a->max_fp(), "max_fp"));
      op.attributes = {low, high, propagate()};
    } else {
      op.attributes = {int64_t{a->min_int()}, int64_t{a->max_int()}, propagate()};
    }
    return {};
  }

  Status rescale(const fb::TosaOperator& source, WireOperator& op) {
    CARINA_TRY(const auto* a, table<fb::RescaleAttribute>(source));
    CARINA_TRY(const ir::Ints multiplier, ints(a->multiplier(), "multiplier"));
    CARINA_TRY(const ir::Ints shift, ints(a->shift(), "shift"));
    CARINA_TRY(const ElementInfo input, element(op.inputs, 0));
    CARINA_TRY(const ElementInfo output, element(op.outputs, 0));
    op.constants = {integers(a->scale32() ? DType::Int32 : DType::Int16, multiplier),
                    integers(DType::Int8, shift), integers(input.dtype, {a->input_zp()}),
                    integers(output.dtype, {a->output_zp()})};
    const auto mode = a->double_round() ? tosa::RoundingMode::DOUBLE_ROUND : tosa::RoundingMode::SINGLE_ROUND;
    op.attributes = {a->scale32(), static_cast<int64_t>(mode), a->per_channel(),
                     a->input_unsigned() || input.isUnsigned, a->output_unsigned() || output.isUnsigned};
    return {};
  }

  /// Input and weight as [N,1,1,IC] and [OC,1,1,IC] (a constant weight without an operator), CONV2D, RESHAPE
  /// to [N,OC].
  Status fullyConnected(WireOperator op) {
    CARINA_TRY(const ElementInfo input, element(op.inputs, 0));
    CARINA_TRY(const ElementInfo weight, element(op.inputs, 1));
    CARINA_TRY(const ElementInfo output, element(op.outputs, 0));
    if (input.shape.size() != 2 || weight.shape.size() != 2 || output.shape.size() != 2) {
      return fail(Code::InvalidGraph, "operands and result of FULLY_CONNECTED must have rank 2 (WrongRank)");
    }
    const std::string result = op.outputs[0];
    const auto wide = [](const Shape& shape) { return Shape{shape[0], 1, 1, shape[1]}; };
    const auto reshape = [&](const std::string& from, const std::string& to, const Shape& shape) {
      WireOperator node;
      node.op = "RESHAPE";
      node.inputs = {from};
      node.outputs = {to};
      node.constants = {tosa::shapeTensor(shape)};
      block_.operators.push_back(std::move(node));
    };
    const auto declare = [&](const std::string& name, const ElementInfo& info, ByteSpan data = {}) {
      WireTensor tensor;
      tensor.data = data;
      tensor.hasData = !data.empty();
      tensor.name = name;
      tensor.dtype = info.dtype;
      tensor.shape = wide(info.shape);
      block_.tensors.push_back(std::move(tensor));
    };
    const ByteSpan weightData = weight.data;
    declare(result + "__input", input);
    declare(result + "__weight", weight, weightData);
    declare(result + "__product", output);
    reshape(op.inputs[0], result + "__input", wide(input.shape));
    if (weightData.empty()) reshape(op.inputs[1], result + "__weight", wide(weight.shape));
    op.op = "CONV2D";
    op.inputs[0] = result + "__input";
    op.inputs[1] = result + "__weight";
    op.outputs[0] = result + "__product";
    block_.operators.push_back(std::move(op));
    reshape(result + "__product", result, output.shape);
    return {};
  }

  const fb::TosaBasicBlock& source_;
  Copies& copies_;
  WireBlock block_;
  std::unordered_map<std::string, ElementInfo> elements_;
};

}  // namespace

Result<WireFile> readVersion080(ByteSpan bytes) {
  const size_t size = std::min<size_t>(bytes.size(), FLATBUFFERS_MAX_BUFFER_SIZE - 1);
  CARINA_RETURN_IF_ERROR(
      checkStringLists(bytes.first(size),
                       listFieldsOf<fb::TosaGraph, fb::TosaRegion, fb::TosaBasicBlock, fb::TosaOperator>()));
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(bytes.data()), size);
  if (!fb::VerifyTosaGraphBuffer(verifier)) {
    return fail(Code::Damaged, "the file is damaged: it contains an offset or a size that is out of bounds")
        .withRemedy("copy or export the file again");
  }
  WireFile file;
  const fb::TosaGraph& graph = *fb::GetTosaGraph(bytes.data());
  if (!graph.regions()) return fail(Code::Damaged, "the file has no regions");
  Copies copies(bytes.size());
  for (const auto* region : *graph.regions()) {
    WireRegion& target = file.regions.emplace_back();
    target.name = copies.text(region->name());
    if (!region->blocks()) continue;
    for (const auto* block : *region->blocks()) {
      CARINA_TRY(WireBlock read, BlockReader(*block, copies).read());
      target.blocks.push_back(std::move(read));
    }
  }
  return file;
}

}  // namespace carina::tosa_io
