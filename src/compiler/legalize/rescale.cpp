// SPDX-License-Identifier: Apache-2.0
// RESCALE, CLAMP, TABLE and CAST: fused into the operation that computes their input if that is exact,
// operations of their own otherwise. RESCALE and the hardware's scaling are the same formula (ethosu-numerics
// 2 and 11).
#include <algorithm>

#include "compiler/dialect/wide_function.hpp"
#include "compiler/legalize/legalizer.hpp"
#include "npu/timing/output_rate.hpp"

namespace carina::compiler {

using npu_ir::ElementwiseMode;
using npu_ir::OutputStage;
using npu_ir::TableKind;

namespace {

constexpr int64_t kSignedOffset = 128;  // of codes: uint8 minus int8

DType unsignedType(DType type) {
  return type == DType::Int8 ? DType::UInt8 : type == DType::Int16 ? DType::UInt16 : type;
}

/// Zero points are stored as bit patterns.
int64_t zeroPoint(const ir::Value* value, bool isUnsigned) {
  const int64_t zero = constantValue(value);
  if (!isUnsigned || zero >= 0) return zero;
  return zero + (int64_t{1} << (8 * dtypeSize(value->dtype())));
}

std::pair<int64_t, int64_t> range(DType type) {
  return {integerMin(type), integerMax(type)};
}

bool isElementwise(const ir::Node* node) {
  return ir::isa<npu_ir::Elementwise>(node);
}

}  // namespace

namespace {

/// Whether an operation with a table takes less time than one without and a copy.
bool looksUpQuickly(const npu::Target& target) {
  npu::KernelOperation plain;
  plain.kind = npu::OperationKind::Depthwise;
  plain.ifm.type = plain.ofm.type = npu::ElementType::Int8;
  plain.activation.min = npu::elementMin(npu::ElementType::Int8);
  plain.activation.max = npu::elementMax(npu::ElementType::Int8);
  npu::KernelOperation looking = plain;
  looking.activation.table = npu::Table::Lut8;
  return npu::timing::outputCyclesPerElement(target, looking) <
         2 * npu::timing::outputCyclesPerElement(target, plain);
}

/// A table that is 1 for codes above a limit, or for those below, and 0 for the others.
struct CodeTest {
  int64_t limit = 0;
  bool above = false;
};

std::optional<CodeTest> testIn(const Tensor& table) {
  const auto codes = table.as<int8_t>();
  const bool rises = std::is_sorted(codes.begin(), codes.end());
  if (!rises && !std::is_sorted(codes.rbegin(), codes.rend())) return std::nullopt;
  if (codes.front() != (rises ? 0 : 1) || codes.back() != (rises ? 1 : 0)) return std::nullopt;
  const auto change = std::find(codes.begin(), codes.end(), codes.back());
  const int64_t code = integerMin(DType::Int8) + (change - codes.begin());
  return CodeTest{rises ? code - 1 : code, rises};
}

}  // namespace

RescaleNumbers rescaleNumbers(const tosa::Rescale& node) {
  RescaleNumbers numbers;
  numbers.multipliers = constantValues(node.multiplier());
  numbers.shifts = constantValues(node.shift());
  if (!node.perChannel()) {
    numbers.multipliers.resize(1);
    numbers.shifts.resize(1);
  }
  numbers.inputZeroPoint = zeroPoint(node.inputZp(), node.inputUnsigned());
  numbers.outputZeroPoint = zeroPoint(node.outputZp(), node.outputUnsigned());
  numbers.rounding = node.roundingMode() == tosa::RoundingMode::DOUBLE_ROUND
                         ? npu_ir::Rounding::DOUBLE_SYMMETRIC
                         : npu_ir::Rounding::NATURAL;
  numbers.inputType = node.inputUnsigned() ? unsignedType(node.input()->dtype()) : node.input()->dtype();
  numbers.outputType = node.outputUnsigned() ? unsignedType(node.output()->dtype()) : node.output()->dtype();
  return numbers;
}

std::optional<int64_t> RescaleNumbers::wholeFactor() const {
  if (perChannel() || shifts[0] > 62 || multipliers[0] == 0) return std::nullopt;
  const int64_t unit = int64_t{1} << shifts[0];
  if (multipliers[0] % unit != 0) return std::nullopt;
  return multipliers[0] / unit;
}

void reduceScale(int64_t& multiplier, int64_t& shift, npu_ir::Rounding rounding) {
  while (multiplier != 0 && multiplier % 2 == 0 && shift > 0) {
    if (rounding == npu_ir::Rounding::DOUBLE_SYMMETRIC && shift > 31) break;
    multiplier /= 2;
    --shift;
  }
}

RescaleNumbers Legalizer::channelNumbers(const ir::Node* operation, const RescaleNumbers& numbers) const {
  const auto found = firstChannel_.find(operation);
  if (!numbers.perChannel() || found == firstChannel_.end()) return numbers;
  const auto first = static_cast<size_t>(found->second);
  const size_t end =
      std::min(first + static_cast<size_t>(operation->result()->dim(2)), numbers.shifts.size());
  RescaleNumbers part = numbers;
  const auto cut = [&](const ir::Ints& all) {
    return ir::Ints(all.begin() + static_cast<std::ptrdiff_t>(std::min(first, end)),
                    all.begin() + static_cast<std::ptrdiff_t>(end));
  };
  part.multipliers = cut(numbers.multipliers);
  part.shifts = cut(numbers.shifts);
  return part;
}

bool Legalizer::narrowsProduct(const ir::Node* operation, const RescaleNumbers& numbers) {
  if (!isElementwise(operation) ||
      npu_ir::Elementwise(const_cast<ir::Node*>(operation)).mode() != ElementwiseMode::MUL)
    return false;
  const OutputStage stage = npu_ir::outputStage(operation);
  return stage.multipliers == ir::Ints{1} && stage.shifts.size() == 1 && stage.shifts[0] > 0 &&
         stage.zeroPoint == 0 && !stage.clamp && stage.tableKind == TableKind::NONE &&
         stage.rounding == npu_ir::Rounding::NATURAL && dtypeSize(operation->result()->dtype()) == 4 &&
         numbers.inputZeroPoint == 0 && dtypeSize(numbers.outputType) <= 2 && numbers.wholeFactor() == 1;
}

std::optional<OutputStage> Legalizer::shiftOf(const npu_ir::Resize& operation,
                                              const RescaleNumbers& numbers) {
  if (numbers.perChannel() || numbers.rounding != npu_ir::Rounding::NATURAL ||
      dtypeSize(numbers.outputType) > 2)
    return std::nullopt;
  int64_t multiplier = numbers.multipliers[0], shift = numbers.shifts[0];
  OutputStage stage;
  stage.zeroPoint = numbers.outputZeroPoint;
  // A multiplier slightly above a power of two rounds halves away from zero, and changes nothing else as long
  // as it adds less than one to a sum.
  const int64_t power = multiplier - 1, unit = operation.scale()[0] * operation.scale()[2];
  const auto largest = (integerMax(operation.ifm()->dtype()) + 1) * unit;
  if (multiplier > 2 && (power & (power - 1)) == 0 && largest < power && shift > 0) {
    multiplier = power;
    stage.rounding = npu_ir::Rounding::SYMMETRIC;
  }
  reduceScale(multiplier, shift, numbers.rounding);
  if (multiplier != 1) return std::nullopt;
  stage.shifts = {shift};
  return stage;
}

bool Legalizer::makesSigned(const tosa::Rescale& node) {
  if (!node.inputUnsigned() || node.input()->dtype() != DType::Int8 || node.output()->dtype() != DType::Int8)
    return false;
  const RescaleNumbers numbers = rescaleNumbers(node);
  return numbers.wholeFactor() == 1 && numbers.inputZeroPoint - numbers.outputZeroPoint == kSignedOffset;
}

Result<ir::Value*> Legalizer::unsignedCodes(const ir::Value* value) {
  if (const auto rescale = ir::producerAs<tosa::Rescale>(value)) {
    if (!makesSigned(rescale)) return nullptr;
    CARINA_TRY(ir::Value * bytes, get(rescale.input()));
    return npu_ir::createView(builder_, bytes, DType::UInt8, bytes->shape(), 0,
                              rowMajorStrides(bytes->shape()));
  }
  if (const auto reshape = ir::producerAs<tosa::Reshape>(value)) {
    CARINA_TRY(ir::Value * bytes, unsignedCodes(reshape.input1()));
    return bytes ? npu_ir::createReshape(builder_, bytes, value->shape()) : nullptr;
  }
  if (const auto slice = ir::producerAs<tosa::Slice>(value)) {
    CARINA_TRY(ir::Value * bytes, unsignedCodes(slice.input1()));
    return bytes ? npu_ir::createSlice(builder_, bytes, constantValues(slice.start()), value->shape())
                 : nullptr;
  }
  return nullptr;
}

Result<ir::Value*> Legalizer::codesOf(const ir::Value* input, int64_t& zero) {
  CARINA_TRY(ir::Value * bytes, unsignedCodes(input));
  if (!bytes) return get(input);
  zero += kSignedOffset;
  return bytes;
}

bool Legalizer::makesUnsigned(const ir::Node* operation, const RescaleNumbers& numbers) {
  const TableKind table = npu_ir::outputStage(operation).tableKind;
  if (operation->result()->dtype() != DType::Int8 || numbers.outputType != DType::UInt8 ||
      numbers.wholeFactor() != 1 || numbers.outputZeroPoint - numbers.inputZeroPoint != kSignedOffset ||
      (table != TableKind::NONE && table != TableKind::LUT8))
    return false;
  switch (npu_ir::opId(operation)) {
    case npu_ir::OpId::Conv:
    case npu_ir::OpId::Depthwise:
    case npu_ir::OpId::MatMul:
      return true;
    case npu_ir::OpId::Pool:
      return npu_ir::Pool(const_cast<ir::Node*>(operation)).mode() == npu_ir::PoolMode::SUM;
    case npu_ir::OpId::Elementwise: {
      const ElementwiseMode mode = npu_ir::Elementwise(const_cast<ir::Node*>(operation)).mode();
      return mode == ElementwiseMode::ADD || mode == ElementwiseMode::SUB || mode == ElementwiseMode::MUL;
    }
    default:
      return false;
  }
}

bool Legalizer::canFuse(const ir::Node* operation, const RescaleNumbers& numbers) const {
  if (makesUnsigned(operation, numbers)) return true;
  if (narrowsProduct(operation, numbers)) return true;
  const OutputStage stage = npu_ir::outputStage(operation);
  if (!stage.unitScale() || stage.zeroPoint != 0 || stage.clamp || stage.tableKind != TableKind::NONE)
    return false;
  if (numbers.inputZeroPoint != 0) return false;
  // Saturation to 8 or 16 bits cannot be undone.
  if (dtypeSize(operation->result()->dtype()) <= 2) return false;
  const DType output = numbers.outputType;
  if (dtypeSize(output) > 2 && numbers.outputZeroPoint != 0) return false;
  const auto pre = preShift_.find(operation);
  const int64_t preShift = pre == preShift_.end() ? 0 : pre->second;
  if (preShift > 0 && (numbers.perChannel() || numbers.shifts[0] - preShift < 1 ||
                       numbers.rounding != npu_ir::Rounding::NATURAL)) {
    return false;
  }
  const int64_t inputBits = 8 * dtypeSize(operation->operand(0)->dtype());
  int64_t multiplier = numbers.multipliers[0], shift = numbers.shifts[0];
  reduceScale(multiplier, shift, numbers.rounding);
  const bool shiftOnly = !numbers.perChannel() && multiplier == 1;
  const bool unit = shiftOnly && shift == 0;
  switch (npu_ir::opId(operation)) {
    case npu_ir::OpId::Conv:
    case npu_ir::OpId::Depthwise: {
      if (numbers.perChannel() &&
          static_cast<int64_t>(numbers.multipliers.size()) != operation->result()->dim(2))
        return false;
      // 48-bit accumulators of U85 support 15-bit multipliers only.
      if (npu().shortWideScales && inputBits == 16) {
        for (size_t i = 0; i < numbers.multipliers.size(); ++i) {
          int64_t m = numbers.multipliers[i], s = numbers.shifts[i];
          reduceScale(m, s, numbers.rounding);
          if (m > 32767) return false;
        }
      }
      return true;
    }
    case npu_ir::OpId::MatMul:
    case npu_ir::OpId::CodedConv:
      return !numbers.perChannel();
    case npu_ir::OpId::Resize:
      return shiftOf(npu_ir::Resize(const_cast<ir::Node*>(operation)), numbers).has_value();
    case npu_ir::OpId::Pool: {
      const npu_ir::Pool pool(const_cast<ir::Node*>(operation));
      if (numbers.perChannel()) return false;
      if (pool.mode() == npu_ir::PoolMode::SUM) return dtypeSize(output) == 1;
      if (pool.mode() != npu_ir::PoolMode::REDUCE_SUM) return false;
      return inputBits <= 16 || shiftOnly;
    }
    case npu_ir::OpId::Elementwise: {
      if (numbers.perChannel()) return false;
      const npu_ir::Elementwise ew(const_cast<ir::Node*>(operation));
      switch (ew.mode()) {
        case ElementwiseMode::MUL:
          if (inputBits <= 16 && (npu().wideScaling || dtypeSize(output) <= 2)) return true;
          return shiftOnly;
        case ElementwiseMode::ADD:
        case ElementwiseMode::SUB:
        case ElementwiseMode::ABS:
          if (npu().wideScaling) return true;
          return (inputBits <= 16 && dtypeSize(output) <= 2) || shiftOnly;
        case ElementwiseMode::MIN:
        case ElementwiseMode::MAX:
          return npu().scalesExtrema || (unit && inputBits <= 16 && dtypeSize(output) <= 2);
        case ElementwiseMode::SHR:
          return unit && numbers.rounding == stage.rounding;
        default:
          return false;
      }
    }
    default:
      return false;
  }
}

void Legalizer::fuse(ir::Node* operation, const RescaleNumbers& numbers) {
  OutputStage stage = npu_ir::outputStage(operation);
  if (makesUnsigned(operation, numbers)) {
    stage.zeroPoint += kSignedOffset;
    if (stage.clamp) stage.clamp = {stage.clamp->first + kSignedOffset, stage.clamp->second + kSignedOffset};
    if (stage.tableKind == TableKind::LUT8) {  // unsigned codes index the same entries
      const Tensor& entries = stage.table->constant();
      Tensor bytes = Tensor::zeros(DType::UInt8, entries.shape());
      for (int64_t n = 0; n < bytes.numElements(); ++n)
        bytes.setIntegerAt(n, entries.integerAt(n) + kSignedOffset);
      stage.table = constant(std::move(bytes));
    }
    npu_ir::setOutputStage(operation, stage);
    return;
  }
  if (narrowsProduct(operation, numbers)) {
    stage.zeroPoint = numbers.outputZeroPoint;
    npu_ir::setOutputStage(operation, stage);
    return;
  }
  if (npu_ir::opId(operation) == npu_ir::OpId::Resize) {
    npu_ir::setOutputStage(operation, *shiftOf(npu_ir::Resize(operation), numbers));
    return;
  }
  stage.multipliers = numbers.multipliers;
  stage.shifts = numbers.shifts;
  if (const auto pre = preShift_.find(operation); pre != preShift_.end()) {
    stage.shifts[0] -= pre->second;
    preShift_.erase(pre);
  }
  // Short multipliers if the hardware's are short, and only shifts if it has no multiplier.
  for (size_t i = 0; i < stage.multipliers.size(); ++i) {
    const bool shortRecord =
        npu().shortWideScales && dtypeSize(operation->operand(0)->dtype()) == 2 && !isElementwise(operation);
    int64_t m = stage.multipliers[i], s = stage.shifts[i];
    reduceScale(m, s, numbers.rounding);
    if (m == 1 || shortRecord) {
      stage.multipliers[i] = m;
      stage.shifts[i] = s;
    }
  }
  const bool shifts =
      isElementwise(operation) && npu_ir::Elementwise(operation).mode() == ElementwiseMode::SHR;
  if (!shifts) stage.rounding = numbers.rounding;
  stage.zeroPoint = numbers.outputZeroPoint;
  npu_ir::setOutputStage(operation, stage);
}

bool Legalizer::canFuseTable(const ir::Value* input, bool wide) const {
  const auto found = operations_.find(input);
  return found != operations_.end() && !found->second.empty() &&
         std::all_of(found->second.begin(), found->second.end(), [&](const ir::Node* op) {
           return npu_ir::outputStage(op).tableKind == TableKind::NONE &&
                  op->result()->dtype() == DType::Int8 &&
                  (!wide || isElementwise(op) || ir::isa<npu_ir::Pool>(op));
         });
}

bool Legalizer::canFuseCodeConversion(const tosa::Rescale& node, const RescaleNumbers& numbers) const {
  constexpr int64_t kFewest = 4096;  // elements that take longer than loading the table
  return looksUpQuickly(target_) && !numbers.perChannel() && numbers.inputType == DType::Int8 &&
         numbers.outputType == DType::Int8 && hasOneReader(node.input()) &&
         node.input()->numElements() >= kFewest && canFuseTable(node.input(), false);
}

Status Legalizer::lowerRescale(const tosa::Rescale& node) {
  const RescaleNumbers numbers = rescaleNumbers(node);
  const ir::Value* input = node.input();
  const ir::Value* output = node.output();
  if (auto* operations = fusable(input)) {
    if (std::all_of(operations->begin(), operations->end(),
                    [&](const ir::Node* op) { return canFuse(op, channelNumbers(op, numbers)); })) {
      for (ir::Node* op : *operations) fuse(op, channelNumbers(op, numbers));
      ir::Value* value = values_.at(input);
      retype(value, numbers.outputType);
      // In the graph the result is signless; only the operation knows that it writes unsigned values.
      std::vector<ir::Node*> ops = std::move(*operations);
      define(output, value, std::move(ops));
      return {};
    }
  }
  if (dtypeSize(input->dtype()) > 4) {
    return fail(Code::NoIntegerForm, "no operation can absorb this RESCALE of a 48-bit value")
        .withRemedy("place the RESCALE directly after the convolution or matrix product");
  }
  CARINA_TRY(ir::Value * value, get(input));
  if (numbers.inputType == numbers.outputType && numbers.inputZeroPoint == numbers.outputZeroPoint &&
      numbers.wholeFactor() == 1) {
    define(output, value);  // the same codes
    return {};
  }
  if (value->dtype() != numbers.inputType) {
    value = npu_ir::createView(builder_, value, numbers.inputType, value->shape(), 0,
                               rowMajorStrides(value->shape()));
  }
  OutputStage stage;
  stage.multipliers = numbers.multipliers;
  stage.shifts = numbers.shifts;
  stage.rounding = numbers.rounding;
  stage.zeroPoint = numbers.outputZeroPoint;
  const bool narrowIn = dtypeSize(input->dtype()) <= 2, narrowOut = dtypeSize(output->dtype()) <= 2;
  if (narrowIn && (narrowOut || npu().wideScaling)) {
    if (numbers.perChannel()) {
      // A depthwise convolution with weights of one has a scale per channel.
      const int64_t channels = value->shape().back();
      ir::Value* map = npu_ir::createReshape(builder_, value, {1, value->numElements() / channels, channels});
      if (map->dim(1) > kMaxAxis || channels > kMaxAxis)
        return fail(Code::HardwareLimit, "per-channel RESCALE of shape {} has an axis larger than {}",
                    shapeText(value->shape()), kMaxAxis)
            .withRemedy("split the tensor");
      Tensor ones = Tensor::zeros(DType::Int8, {1, 1, channels});
      for (int64_t c = 0; c < channels; ++c) ones.setIntegerAt(c, 1);
      npu_ir::Window window;
      window.ifmZeroPoint = numbers.inputZeroPoint;
      ir::Value* result = npu_ir::createDepthwise(builder_, map, constant(std::move(ones)),
                                                  constant(Tensor::zeros(DType::Int32, {channels})), window,
                                                  {0}, stage, numbers.outputType);
      define(output, result, {result->producer()});
      return {};
    }
    if (canFuseCodeConversion(node, numbers)) {
      if (auto table = byteTable({{node.node()}, input})) {
        OutputStage codes;
        codes.tableKind = TableKind::LUT8;
        codes.table = constant(std::move(*table));
        return lookUp(output, input, true, codes);
      }
    }
    return defineCopies(output, value, numbers.inputZeroPoint, stage, numbers.outputType);
  }
  if (!narrowIn && numbers.inputZeroPoint != 0)
    return fail(Code::NoIntegerForm, "RESCALE of int32 has a zero point").withRemedy("use a zero point of 0");
  const std::optional<int64_t> factor = numbers.wholeFactor();
  if (narrowIn && !narrowOut && factor && *factor > 0 && *factor <= integerMax(value->dtype())) {
    CARINA_TRY(value, widen(value, numbers.inputZeroPoint, *factor));
  } else {
    // 32 bits on one side: an exact product and a shift.
    if (narrowIn) {
      CARINA_TRY(value, widen(value, numbers.inputZeroPoint));
    }
    CARINA_TRY(value, scale32(value, numbers, output->shape()));
  }
  std::vector<ir::Node*> operations;
  if (npu_ir::hasOutputStage(value->producer())) operations = {value->producer()};
  define(output, value, std::move(operations));
  return {};
}

Result<ir::Value*> Legalizer::widen(ir::Value* value, int64_t zeroPoint, int64_t factor) {
  if (value->isConstant()) {
    Tensor wide = Tensor::zeros(DType::Int32, value->shape());
    for (int64_t i = 0; i < wide.numElements(); ++i)
      wide.setIntegerAt(i, (value->constant().integerAt(i) - zeroPoint) * factor);
    return constant(std::move(wide));
  }
  return perMap(value, [&](ir::Value* map) -> Result<ir::Value*> {
    ir::Value* number = scalarConstant(map->dtype(), factor);
    return npu_ir::createElementwise(builder_, ElementwiseMode::MUL, {map, zeroPoint}, {number},
                                     npu_ir::Rounding::NATURAL, {}, DType::Int32);
  });
}

Result<ir::Value*> Legalizer::scale32(ir::Value* value, const RescaleNumbers& numbers, const Shape& shape) {
  const auto stageOf = [&](int64_t shift) {
    OutputStage stage;
    stage.multipliers = {1};
    stage.shifts = {shift};
    stage.rounding = numbers.rounding;
    stage.zeroPoint = numbers.outputZeroPoint;
    return stage;
  };
  if (!numbers.perChannel()) {
    CARINA_TRY(ir::Value * result, perMap(value, [&](ir::Value* map) -> Result<ir::Value*> {
                 ir::Value* multiplier = scalarConstant(DType::Int32, numbers.multipliers[0]);
                 return npu_ir::createElementwise(builder_, ElementwiseMode::MUL, {map}, {multiplier},
                                                  npu_ir::Rounding::NATURAL, stageOf(numbers.shifts[0]),
                                                  numbers.outputType);
               }));
    return npu_ir::createReshape(builder_, result, shape);
  }
  // One operation for each run of channels with the same shift.
  const int64_t channels = shape.back(), rows = numElements(shape) / channels;
  ir::Value* map = npu_ir::createReshape(builder_, value, {1, rows, channels});
  std::vector<npu_ir::Piece> pieces;
  for (int64_t c = 0; c < channels;) {
    int64_t end = c + 1;
    while (end < channels && end - c < kMaxAxis &&
           numbers.shifts[static_cast<size_t>(end)] == numbers.shifts[static_cast<size_t>(c)])
      ++end;
    Tensor multipliers = Tensor::zeros(DType::Int32, {1, 1, end - c});
    for (int64_t i = c; i < end; ++i)
      multipliers.setIntegerAt(i - c, numbers.multipliers[static_cast<size_t>(i)]);
    ir::Value* factors = constant(std::move(multipliers));
    for (int64_t row = 0; row < rows; row += kMaxAxis) {
      const int64_t count = std::min(kMaxAxis, rows - row);
      ir::Value* part = npu_ir::createSlice(builder_, map, {0, row, c}, {1, count, end - c});
      ir::Value* result = npu_ir::createElementwise(
          builder_, ElementwiseMode::MUL, {part}, {factors}, npu_ir::Rounding::NATURAL,
          stageOf(numbers.shifts[static_cast<size_t>(c)]), numbers.outputType);
      pieces.push_back({result, row * channels + c, {rows * channels, channels, 1}});
    }
    c = end;
  }
  if (pieces.size() == 1) return npu_ir::createReshape(builder_, pieces[0].value, shape);
  return npu_ir::createJoin(builder_, pieces, {numbers.outputType, shape});
}

Status Legalizer::lowerClamp(const tosa::Clamp& node) {
  const int64_t low = ir::scalarInt(node.minVal()), high = ir::scalarInt(node.maxVal());
  const ir::Value* input = node.input();
  if (auto* operations = fusable(input)) {
    const bool possible = std::all_of(operations->begin(), operations->end(), [](const ir::Node* op) {
      return npu_ir::outputStage(op).tableKind == TableKind::NONE && dtypeSize(op->result()->dtype()) <= 2 &&
             !isUnsigned(op->result()->dtype());
    });
    if (possible) {
      for (ir::Node* op : *operations) {
        OutputStage stage = npu_ir::outputStage(op);
        const auto [a, b] = stage.clamp.value_or(range(op->result()->dtype()));
        stage.clamp = {std::clamp(a, low, high), std::clamp(b, low, high)};
        npu_ir::setOutputStage(op, stage);
      }
      std::vector<ir::Node*> ops = std::move(*operations);
      define(node.output(), values_.at(input), std::move(ops));
      return {};
    }
  }
  CARINA_TRY(ir::Value * value, get(input));
  OutputStage stage;
  stage.clamp = {low, high};
  return defineCopies(node.output(), value, 0, stage, value->dtype());
}

Status Legalizer::lowerTable(const tosa::Table& node) {
  const ir::Value* input = node.input1();
  const ir::Value* table = node.table();
  if (!table->isConstant())
    return fail(Code::NoIntegerForm, "the table of TABLE is computed, expected a constant")
        .withRemedy("make the table a constant");
  if (input->dtype() == DType::Int8) {
    OutputStage stage;
    stage.tableKind = TableKind::LUT8;
    stage.table = constant(table->constant());
    return lookUp(node.output(), input, hasOneReader(input), stage);
  }
  // 513 entries become 512 words of base and slope.
  Tensor words = Tensor::zeros(DType::Int32, {512});
  for (int64_t i = 0; i < 512; ++i) {
    // If a slope exceeds 16 bits, TOSA leaves the result open (reciprocals jump at zero, which their users
    // avoid).
    const int64_t base = table->constant().integerAt(i);
    const int64_t slope = std::clamp<int64_t>(table->constant().integerAt(i + 1) - base, -32768, 32767);
    words.setIntegerAt(i, static_cast<int32_t>((static_cast<uint32_t>(slope) << 16) |
                                               (static_cast<uint32_t>(base) & 0xffff)));
  }
  CARINA_TRY(ir::Value * value, get(input));
  OutputStage stage;
  stage.table = constant(std::move(words));
  // The 16-bit table gives the table's 23-bit result divided by 128.
  if (const auto rescale = consumingRescale(node.output())) {
    int64_t multiplier = rescale->multipliers[0], shift = rescale->shifts[0];
    reduceScale(multiplier, shift, rescale->rounding);
    if (!rescale->perChannel() && multiplier == 1 && shift == 7 && rescale->outputType == DType::Int16 &&
        rescale->outputZeroPoint == 0 && rescale->inputZeroPoint == 0) {
      stage.tableKind = TableKind::LUT16;
      return defineCopies(node.output()->uses().front().node->result(), value, 0, stage, DType::Int16);
    }
  }
  if (npu().wideTables) {
    stage.tableKind = TableKind::LUT16_TO_32;
    CARINA_TRY(ir::Value * result, perMap(value, [&](ir::Value* map) -> Result<ir::Value*> {
                 return npu_ir::createCopy(builder_, map, 0, stage, DType::Int32);
               }));
    define(node.output(), result);
    return {};
  }
  CARINA_TRY(ir::Value * result,
             perMap(value, [&](ir::Value* map) { return interpolated(map, table->constant()); }));
  std::vector<ir::Node*> operations;
  if (npu_ir::hasOutputStage(result->producer())) operations = {result->producer()};
  define(node.output(), result, std::move(operations));
  return {};
}

Status Legalizer::lookUp(const ir::Value* output, const ir::Value* input, bool alone,
                         const OutputStage& stage) {
  const DType type = output->dtype() == DType::Bool ? DType::Int8 : output->dtype();
  // 32-bit results only from pooling or elementwise operations: no convolution is known to have written them.
  if (alone && canFuseTable(input, stage.tableKind != TableKind::LUT8)) {
    const auto found = operations_.find(input);
    for (ir::Node* op : found->second) {
      OutputStage before = npu_ir::outputStage(op);
      before.tableKind = stage.tableKind;
      before.table = stage.table;
      npu_ir::setOutputStage(op, before);
    }
    ir::Value* value = values_.at(input);
    retype(value, type);
    std::vector<ir::Node*> ops = std::move(found->second);
    define(output, value, std::move(ops));
    return {};
  }
  CARINA_TRY(ir::Value * value, get(input));
  return defineCopies(output, value, 0, stage, type);
}

Status Legalizer::lowerByteFunction(const ir::Node& node, const ByteFunctionMatch& match) {
  const std::optional<CodeTest> test = testIn(match.table);
  if (test && !(match.alone && canFuseTable(match.input, false))) {
    // A clamped difference takes less time than a table.
    CARINA_TRY(ir::Value * value, get(match.input));
    ir::Value* limit = scalarConstant(DType::Int8, test->limit);
    if (!test->above) std::swap(value, limit);
    OutputStage stage;
    stage.clamp = {0, 1};
    CARINA_TRY(ir::Value * result, elementwise(ElementwiseMode::SUB, value, limit, DType::Int8, stage));
    define(node.result(), result);
    return {};
  }
  OutputStage stage;
  stage.tableKind = TableKind::LUT8;
  stage.table = constant(match.table);
  return lookUp(node.result(), match.input, match.alone, stage);
}

Status Legalizer::lowerWideTable(const ir::Node& node, const WideTableMatch& match) {
  OutputStage stage;
  stage.tableKind = TableKind::LUT8_TO_32;
  stage.table = constant(match.table);
  return lookUp(node.result(), match.input, match.alone, stage);
}

Status Legalizer::lowerWideFunction(const ir::Node& node, const WideFunctionMatch& match) {
  CARINA_TRY(ir::Value * value, get(match.input));
  OutputStage stage;
  stage.multipliers = {match.function.multiplier};
  stage.shifts = {match.function.shift};
  stage.tableKind = match.function.tanh ? TableKind::TANH : TableKind::SIGMOID;
  if (target_.architecture().wideTables) {
    const int64_t least = (integerMin(DType::Int16) * match.function.multiplier) >> match.function.shift;
    const bool end = !match.function.tanh && npu_ir::needsLogisticEnd(least);
    stage.table = constant(npu_ir::wideFunctionTable(end));
  }
  return defineCopies(node.result(), value, 0, stage, DType::Int16);
}

Result<ir::Value*> Legalizer::interpolated(ir::Value* map, const Tensor& entries) {
  // Without a 32-bit table: base, slope and fraction come from three 16-bit tables, base and slope as step
  // functions.
  const auto lookup = [&](auto&& word) {
    Tensor t = Tensor::zeros(DType::Int32, {512});
    for (int64_t i = 0; i < 512; ++i) t.setIntegerAt(i, static_cast<int32_t>(word(i)));
    OutputStage s;
    s.tableKind = TableKind::LUT16;
    s.table = constant(std::move(t));
    return npu_ir::createCopy(builder_, map, 0, s, DType::Int16);
  };
  const auto low = [](int64_t v) { return static_cast<uint32_t>(v) & 0xffff; };
  ir::Value* base = lookup([&](int64_t i) { return low(entries.integerAt(i)); });
  ir::Value* slope = lookup([&](int64_t i) { return low(entries.integerAt(i + 1) - entries.integerAt(i)); });
  ir::Value* fraction = lookup([](int64_t) { return uint32_t{128} << 16; });
  const auto multiply = [&](ir::Value* a, ir::Value* b) {
    return npu_ir::createElementwise(builder_, ElementwiseMode::MUL, {a}, {b}, npu_ir::Rounding::NATURAL, {},
                                     DType::Int32);
  };
  ir::Value* rise = multiply(slope, fraction);
  ir::Value* start = multiply(base, scalarConstant(DType::Int16, 128));
  return npu_ir::createElementwise(builder_, ElementwiseMode::ADD, {start}, {rise}, npu_ir::Rounding::NATURAL,
                                   {}, DType::Int32);
}

Status Legalizer::defineCopies(const ir::Value* output, ir::Value* value, int64_t zeroPoint,
                               const OutputStage& stage, DType type) {
  std::vector<ir::Node*> operations;
  CARINA_TRY(ir::Value * result, perMap(value, [&](ir::Value* map) -> Result<ir::Value*> {
               ir::Value* copy = npu_ir::createCopy(builder_, map, zeroPoint, stage, type);
               operations.push_back(copy->producer());
               return copy;
             }));
  define(output, result, std::move(operations));
  return {};
}

Status Legalizer::lowerCast(ir::Node* node) {
  const ir::Value* input = node->operand(0);
  const ir::Value* output = node->result();
  const int64_t from = dtypeSize(input->dtype()), to = dtypeSize(output->dtype());
  CARINA_TRY(ir::Value * value, get(input));
  if (input->dtype() == output->dtype()) {
    define(output, value);
    return {};
  }
  if (output->dtype() == DType::Bool) {
    CARINA_TRY(ir::Value * truth, truthOf(value));
    define(output, truth);
    return {};
  }
  if (input->dtype() == DType::Bool) {
    value =
        npu_ir::createView(builder_, value, DType::Int8, value->shape(), 0, rowMajorStrides(value->shape()));
  }
  if (from == to) {
    define(output, value);
    return {};
  }
  if (to > from) {
    if (to == 2) return defineCopies(output, value, 0, {}, DType::Int16);
    CARINA_TRY(ir::Value * result, widen(value, 0));
    define(output, result);
    return {};
  }
  // Narrowing keeps the low bytes.
  define(output, lowBytes(value, output->dtype()));
  return {};
}

}  // namespace carina::compiler
