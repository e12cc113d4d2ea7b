// SPDX-License-Identifier: Apache-2.0
#include "tosa/node_checker.hpp"

#include "tosa/tosa.hpp"

namespace carina::tosa {
namespace {

bool isZeroPoint(std::string_view operand) {
  return operand.ends_with("_zp");
}

/// The rule for an operand that must be a compile-time constant.
std::string_view constantRule(std::string_view operand) {
  if (isZeroPoint(operand)) return "ZeroPointNotConstant";
  if (operand == "multiplier") return "MultiplierNotConstant";
  if (operand == "shift") return "ShiftNotConstant";
  if (operand == "table") return "TableNotConstant";
  if (operand == "pad_const") return "PadConstNotConstant";
  return "ShapeNotConstant";
}

std::string_view typeRule(std::string_view operand) {
  if (isZeroPoint(operand)) return "WrongZeroPointType";
  if (operand == "bias") return "WrongBiasType";
  if (operand == "pad_const") return "WrongPadConstType";
  return "WrongInputType";
}

bool fits(uint8_t code, DType dtype) {
  return code == TypeRow::kAny || code == static_cast<uint8_t>(dtype);
}

}  // namespace

std::span<const int64_t> shapeValues(const ir::Value* value) {
  return value->constant().as<int64_t>();
}

std::string NodeChecker::typesText() const {
  std::string text = fmt::format("{} does not support the types", node_.def().name);
  for (const ir::Value* operand : node_.operands()) text += fmt::format(" {}", dtypeName(operand->dtype()));
  if (const int acc = node_.def().attributeIndex("acc_type"); acc >= 0) {
    text += fmt::format(" (accumulator {})", dtypeName(node_.attributeAs<DType>(static_cast<size_t>(acc))));
  }
  if (!node_.results().empty()) text += " ->";
  for (const ir::Value* result : node_.results()) text += fmt::format(" {}", dtypeName(result->dtype()));
  return text;
}

Status NodeChecker::rank(const ir::Value& value, size_t operand) const {
  const OperandFact& fact = facts_.operands[operand];
  const std::string_view name = node_.def().operands[operand].name;
  if (isZeroPoint(name) && value.shape() != Shape{1}) {
    return broken("ZeroPointNotSingleElement", "{} has shape {}, expected [1]", name,
                  shapeText(value.shape()));
  }
  const int64_t rank = value.rank();
  if (rank < fact.minRank || (fact.maxRank != OperandFact::kMaxRank && rank > fact.maxRank)) {
    const bool list = fact.minRank == 1 && fact.maxRank == 1;
    return broken(list ? "InputRank1WrongRank" : "WrongRank", "operand '{}' of {} has rank {}", name,
                  node_.def().name, rank);
  }
  if (value.dtype() == DType::Shape) return {};
  for (int64_t size : value.shape()) {
    if (size < 1)
      return broken("DimensionSmallerOne", "operand '{}' has shape {}", name, shapeText(value.shape()));
  }
  if (!checkedNumElements(value.shape())) {
    return broken("MaxDimExceeded", "operand '{}' has impossible shape {}", name, shapeText(value.shape()));
  }
  return {};
}

/// Only int8 operands may have a zero point other than 0; RESCALE has its own rules.
Status NodeChecker::zeroPoint(const ir::Value& value, size_t operand) const {
  const std::string_view name = node_.def().operands[operand].name;
  if (!isZeroPoint(name) || value.dtype() == DType::Int8 || node_.is(Rescale::def())) return {};
  if (value.constant().realAt(0) == 0) return {};
  const std::string_view rule = name == "weight_zp"   ? "WeightZeroPointNotZero"
                                : name == "output_zp" ? "OutputZeroPointNotZero"
                                                      : "InputZeroPointNotZero";
  return broken(rule, "{} is {}, but must be 0 for data other than int8", name, value.constant().realAt(0));
}

Status NodeChecker::types() {
  for (const TypeRow& row : facts_.types) rows_.push_back(&row);
  for (size_t i = 0; i < facts_.operands.size(); ++i) {
    for (const ir::Value* value : node_.operandGroup(i)) {
      const bool wantsShape = facts_.types[0].operands[i] == static_cast<uint8_t>(DType::Shape);
      const std::string_view rule =
          wantsShape ? "ShapeOperandExpected" : typeRule(node_.def().operands[i].name);
      CARINA_RETURN_IF_ERROR(
          keepRows([&](const TypeRow& row) { return fits(row.operands[i], value->dtype()); }, rule));
    }
  }
  if (const int acc = node_.def().attributeIndex("acc_type"); acc >= 0) {
    const DType dtype = node_.attributeAs<DType>(static_cast<size_t>(acc));
    return keepRows([&](const TypeRow& row) { return fits(row.accumulator, dtype); }, "WrongAccumulatorType");
  }
  return {};
}

Status NodeChecker::operands() {
  for (size_t i = 0; i < facts_.operands.size(); ++i) {
    const std::string_view name = node_.def().operands[i].name;
    for (const ir::Value* value : node_.operandGroup(i)) {
      if (facts_.operands[i].compileTimeConstant && !value->isConstant()) {
        return broken(constantRule(name), "operand '{}' of {} must be a constant", name, node_.def().name);
      }
      CARINA_RETURN_IF_ERROR(rank(*value, i));
    }
  }
  CARINA_RETURN_IF_ERROR(types());
  for (size_t i = 0; i < facts_.operands.size(); ++i) {
    for (const ir::Value* value : node_.operandGroup(i)) CARINA_RETURN_IF_ERROR(zeroPoint(*value, i));
  }
  return {};
}

Result<std::vector<ir::Type>> NodeChecker::results(std::vector<Shape> shapes, std::string_view rule,
                                                   std::string_view rankRule) {
  const auto& recorded = node_.results();
  std::vector<ir::Type> types;
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (!checkedNumElements(shapes[i])) {
      return broken("MaxDimExceeded", "{} has a result of impossible shape {}", node_.def().name,
                    shapeText(shapes[i]));
    }
    if (i < recorded.size()) {
      const ir::Value& result = *recorded[i];
      CARINA_RETURN_IF_ERROR(keepRows(
          [&](const TypeRow& row) { return fits(row.results[i], result.dtype()); }, "WrongOutputType"));
      if (result.shape() != shapes[i]) {
        const std::string_view broke = result.shape().size() != shapes[i].size() ? rankRule : rule;
        return broken(broke, "{} has the result shape {}, but its operands imply {}", node_.def().name,
                      shapeText(result.shape()), shapeText(shapes[i]));
      }
      types.push_back(result.type);
      continue;
    }
    CARINA_CHECK(!rows_.empty(), "results() comes after operands()");
    const uint8_t code = rows_.front()->results[i];
    if (code == TypeRow::kAny || node_.is(Cast::def())) {
      return broken("WrongOutputType", "{} needs an explicit result type", node_.def().name);
    }
    types.push_back({static_cast<DType>(code), shapes[i]});
  }
  return types;
}

}  // namespace carina::tosa
