// SPDX-License-Identifier: Apache-2.0
// Traverses the aten graph once and records the lowered form of every value.
#include "lower/lowering.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "aten/operator_facts.hpp"
#include "aten/ops.hpp"
#include "decompose/rewrites.hpp"
#include "ir/invalid_node.hpp"
#include "lower/lower.hpp"
#include "lower/quantize_rules.hpp"
#include "lower/wide.hpp"
#include "tosa/tosa.hpp"

namespace carina::lower {
namespace {

constexpr size_t kMostErrors = 20;

/// Arithmetic on uint8 values wraps; nodes that only convert them to other types can read int8 codes instead.
bool isOnlyConverted(const ir::Value& value) {
  return std::all_of(value.uses().begin(), value.uses().end(), [](const ir::Use& use) {
    return decompose::isConversion(*use.node) || ir::isa<aten::DequantizePerTensor>(use.node);
  });
}

}  // namespace

int64_t Codes::quantize(double x) const {
  const float inverse = static_cast<float>(1.0 / scale);
  const float code = std::nearbyint(static_cast<float>(x) * inverse) + static_cast<float>(zeroPoint);
  if (std::isnan(code)) return std::clamp(zeroPoint, min, max);
  return static_cast<int64_t>(
      std::clamp(static_cast<double>(code), static_cast<double>(min), static_cast<double>(max)));
}

Status checkInt32(int64_t number, std::string_view what) {
  if (number >= integerMin(DType::Int32) && number <= integerMax(DType::Int32)) return {};
  return fail(Code::NoIntegerForm, "{} is {}, but the NPU computes int64 in 32 bits", what, number)
      .withRemedy("use numbers within 32 bits");
}

namespace {

/// TOSA's level 8K.
Status checkRank(const ir::Value& value) {
  const int64_t most = tosa::kLevel8K.maxRank;
  if (value.rank() <= most) return {};
  return fail(Code::NoIntegerForm, "a tensor has shape {}: its rank {} exceeds {}", shapeText(value.shape()),
              value.rank(), most)
      .withRemedy("merge some of its dimensions before the operator");
}

Status checkRanks(const ir::Node& node) {
  for (const ir::Value* operand : node.operands()) {
    if (operand) CARINA_RETURN_IF_ERROR(checkRank(*operand));
  }
  for (const ir::Value* result : node.results()) CARINA_RETURN_IF_ERROR(checkRank(*result));
  return {};
}

}  // namespace

Lowering::Lowering(const ir::Graph& source, Level level)
    : source_(source), level_(level), target_(source.name), emitter_(target_) {}

Result<DType> Lowering::boundaryType(const ir::Value& value) const {
  switch (value.dtype()) {
    case DType::Int8:
    case DType::Int16:
    case DType::Int32:
    case DType::Bool:
      return value.dtype();
    case DType::Int64:
      if (level_ == Level::Region) return DType::Int32;
      break;
    default:
      break;
  }
  return fail(Code::NotQuantized, "{} {} enters or leaves {} as {}", value.isInput() ? "input" : "value",
              value.name, level_ == Level::Part ? "the NPU part" : "a side of control flow",
              dtypeName(value.dtype()))
      .withRemedy("quantize it: the NPU computes on int8, int16, int32 and bool tensors");
}

Result<ir::Graph> Lowering::run() {
  CARINA_RETURN_IF_ERROR(addInputs());
  std::vector<Diagnostic> problems;
  for (const ir::Node* node : source_.nodes()) {
    if (std::all_of(node->results().begin(), node->results().end(),
                    [](const ir::Value* v) { return v->unused(); }))
      continue;
    emitter_.setLocation(node->location());
    Status status = ir::rejectInvalidNodes(node->where(), [&] { return lowerNode(*node); });
    if (status.ok()) continue;
    const Error error = std::move(status).error().at(node->where());
    problems.insert(problems.end(), error.diagnostics().begin(), error.diagnostics().end());
    if (problems.size() >= kMostErrors) break;
  }
  if (!problems.empty()) return Error(std::move(problems));
  CARINA_RETURN_IF_ERROR(addOutputs());
  target_.eraseDeadNodes();
  // A rule may need more dimensions than its operator has.
  for (const ir::Node* node : target_.nodes()) {
    if (Status status = checkRanks(*node); !status.ok()) return std::move(status).error().at(node->where());
  }
  return std::move(target_);
}

Status Lowering::addInputs() {
  for (const ir::Value* input : source_.inputs()) {
    if (input->dtype() == DType::UInt8 && isOnlyConverted(*input)) {
      bytes_[input] = target_.addInput({DType::Int8, input->shape()}, input->name);
      continue;
    }
    CARINA_TRY(const DType dtype, boundaryType(*input));
    ir::Value* value = target_.addInput({dtype, input->shape()}, input->name);
    storedTensors_[input] = {value, Layout::rowMajor(input->shape())};
  }
  return {};
}

Status Lowering::addOutputs() {
  std::vector<ir::Value*> outputs;
  for (const ir::Value* output : source_.outputs()) {
    CARINA_RETURN_IF_ERROR(boundaryType(*output));
    CARINA_TRY(const StoredTensor data, integers(output));
    ir::Value* value = rowMajor(data);
    if (value->isInput() || std::find(outputs.begin(), outputs.end(), value) != outputs.end()) {
      value = emitter_.unary(Unary::Identity, value);  // outputs must be distinct values
    }
    if (!output->name.empty()) value->name = output->name;
    if (level_ == Level::Region) nameResult(*output, *value);
    outputs.push_back(value);
  }
  target_.setOutputs(std::move(outputs));
  return {};
}

void Lowering::nameResult(const ir::Value& output, ir::Value& codes) {
  const ir::Value* source = &output;
  while (source->name.empty() && source->producer() &&
         (ir::isa<aten::QuantizePerTensor>(source->producer()) ||
          ir::isa<aten::DequantizePerTensor>(source->producer())))
    source = source->producer()->operand(0);
  if (!codes.name.empty() || source->name.empty()) return;
  const int count = ++results_[source];
  codes.name = source->name + ".result" + (count == 1 ? "" : std::to_string(count));
}

void Lowering::nameAfter(const ir::Value& source, ir::Value& codes) {
  if (!codes.name.empty() || codes.isConstant() || source.name.empty()) return;
  const int count = ++named_[&source];
  codes.name = count == 1 ? source.name : fmt::format("{}:{}", source.name, count);
}

Status Lowering::lowerNode(const ir::Node& node) {
  CARINA_RETURN_IF_ERROR(checkRanks(node));
  if (const auto constant = quantizedConstantOf(node)) {
    if (!constant->ok()) return Error(constant->error());
    constants_[node.result()] = **constant;
    return {};
  }
  const Rule rule = isWide(*this, node) ? findWideRule(node.def()) : findRule(node.def());
  if (!rule) {
    const std::string_view instead = aten::factsOf(node).instead;
    return fail(Code::NoIntegerForm, "{} cannot be expressed in TOSA", node.opName())
        .withRemedy(instead.empty() ? "replace it in the network with supported operators"
                                    : std::string(instead));
  }
  return rule(*this, node);
}

const QuantizedConstant* Lowering::quantizedConstant(const ir::Value* value) const {
  const auto it = constants_.find(value);
  return it == constants_.end() ? nullptr : &it->second;
}

Result<QuantizedValue> Lowering::quantizedValue(const ir::Value* value) {
  if (const auto it = quantizedValues_.find(value); it != quantizedValues_.end()) return it->second;
  if (const QuantizedConstant* constant = quantizedConstant(value)) {
    if (constant->axis >= 0) {
      return fail(Code::UnusableQuantization,
                  "a constant with a scale per channel is used where one scale is needed")
          .withRemedy("quantize it per tensor");
    }
    QuantizedValue real{{emitter_.constant(constant->codes), Layout::rowMajor(constant->codes.shape())},
                        constant->scales,
                        constant->zeroPoints[0],
                        false,
                        {},
                        {},
                        {},
                        {}};
    quantizedValues_[value] = real;
    return real;
  }
  const std::string what = value->name.empty() ? "an operand" : "operand " + value->name;
  return fail(Code::NotQuantized, "{} is not quantized: no dequantize node produces it", what)
      .withRemedy("quantize the network with this operator included");
}

const QuantizedValue* Lowering::known(const ir::Value* value) const {
  const auto it = quantizedValues_.find(value);
  return it == quantizedValues_.end() ? nullptr : &it->second;
}

Result<QuantizedValue> Lowering::plainValue(const ir::Value* value) {
  CARINA_TRY(QuantizedValue found, quantizedValue(value));
  if (!found.plain()) {
    return fail(Code::NotQuantized, "operand {} of an unfused operator is not quantized between the two",
                value->name)
        .withRemedy("insert quantize/dequantize nodes there (the quantizer does)");
  }
  return found;
}

std::optional<StoredTensor> Lowering::bytes(const ir::Value* value) const {
  const auto bytes = bytes_.find(value);
  if (bytes == bytes_.end()) return std::nullopt;
  return StoredTensor{bytes->second, Layout::rowMajor(value->shape())};
}

std::optional<StoredTensor> Lowering::lessHalf(const ir::Value* value) {
  const auto bytes = bytes_.find(value);
  if (bytes == bytes_.end()) return std::nullopt;
  ir::Value*& codes = lessHalf_[value];
  if (!codes) codes = emitter_.lessHalf(bytes->second);
  return StoredTensor{codes, Layout::rowMajor(value->shape())};
}

Result<StoredTensor> Lowering::integers(const ir::Value* value) {
  if (const auto it = storedTensors_.find(value); it != storedTensors_.end()) return it->second;
  if (value->isConstant() && !isFloat(value->dtype())) {
    Tensor tensor = value->constant();
    if (tensor.dtype() == DType::Int64) {
      for (int64_t i = 0; i < tensor.numElements(); ++i)
        CARINA_RETURN_IF_ERROR(checkInt32(tensor.integerAt(i), "a constant"));
      tensor = convert(tensor, DType::Int32);
    }
    StoredTensor data{emitter_.constant(std::move(tensor)), Layout::rowMajor(value->shape())};
    storedTensors_[value] = data;
    return data;
  }
  return fail(Code::NotQuantized, "value {} is float where integers are needed", value->name)
      .withRemedy("quantize the network with this operator included");
}

Result<StoredTensor> Lowering::movable(const ir::Value* value) {
  if (!isFloatValue(value)) return integers(value);
  CARINA_TRY(QuantizedValue found, quantizedValue(value));
  if (found.accumulator) {
    return fail(Code::NotQuantized, "operand {} is not quantized before its elements are moved", value->name)
        .withRemedy("insert quantize/dequantize nodes there (the quantizer does)");
  }
  return found.data;
}

Status Lowering::defineMoved(const ir::Value* result, const ir::Value* source, StoredTensor data) {
  if (!isFloatValue(source)) {
    define(result, std::move(data));
    return {};
  }
  CARINA_TRY(QuantizedValue moved, quantizedValue(source));
  moved.data = std::move(data);
  define(result, std::move(moved));
  return {};
}

std::optional<Codes> Lowering::codesAfter(const ir::Value* value) const {
  while (value->hasOneUse()) {
    const ir::Node* user = value->uses()[0].node;
    if (const auto codes = quantizeCodes(*user)) return codes;
    if (!isClampRule(*user)) return std::nullopt;
    value = user->result();
  }
  return std::nullopt;
}

// Layouts
// ----------------------------------------------------------------------------------------------------------

std::vector<int> Lowering::channelLast(size_t rank) {
  std::vector<int> order{0};
  for (size_t d = 2; d < rank; ++d) order.push_back(static_cast<int>(d));
  order.push_back(1);
  return order;
}

namespace {

std::vector<int> identityOrder(size_t rank) {
  std::vector<int> order(rank);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

Shape shapeInOrder(const Shape& shape, const std::vector<int>& order) {
  Shape result;
  for (int d : order) result.push_back(shape[static_cast<size_t>(d)]);
  return result;
}

/// The permutation that takes an array of shape `from`, whose sizes > 1 are exactly the layout's axes, to
/// `to` with the axes in the order of `sequence`; nothing if the shapes do not match that way. Dimensions of
/// size 1 go where they are needed.
std::optional<std::vector<int>> directPermutation(const Shape& from, const Layout& layout,
                                                  const std::vector<int>& sequence, const Shape& to) {
  if (from.size() != to.size()) return std::nullopt;
  std::vector<int> positionOfAxis, ones;
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] == 1) {
      ones.push_back(static_cast<int>(i));
      continue;
    }
    const size_t axis = positionOfAxis.size();
    if (axis >= layout.axes.size() || layout.axes[axis] != from[i]) return std::nullopt;
    positionOfAxis.push_back(static_cast<int>(i));
  }
  if (positionOfAxis.size() != layout.axes.size()) return std::nullopt;
  std::vector<int> permutation;
  size_t next = 0, nextOne = 0;
  for (int64_t size : to) {
    if (size == 1) {
      if (nextOne >= ones.size()) return std::nullopt;
      permutation.push_back(ones[nextOne++]);
      continue;
    }
    if (next >= sequence.size() || layout.axes[static_cast<size_t>(sequence[next])] != size)
      return std::nullopt;
    permutation.push_back(positionOfAxis[static_cast<size_t>(sequence[next++])]);
  }
  return permutation;
}

/// The order of the dimensions in storage, if every dimension is a single axis. Dimensions of size 1 follow
/// their predecessor, or come first.
std::optional<std::vector<int>> storageOrder(const Layout& layout) {
  const auto rank = layout.dims.size();
  std::vector<std::vector<int>> candidates{identityOrder(rank)};
  if (rank >= 3) candidates.push_back(Lowering::channelLast(rank));
  const Shape shape = layout.shape();
  for (const auto& order : candidates) {
    if (layout == Layout::ordered(shape, order)) return order;
  }
  std::vector<int> order(rank, -1);
  std::vector<std::pair<int, int>> keyed;  // position of the axis, dimension
  int last = -1;
  for (size_t d = 0; d < rank; ++d) {
    if (layout.dims[d].size() > 1) return std::nullopt;
    if (!layout.dims[d].empty()) last = layout.dims[d][0];
    keyed.emplace_back(last, static_cast<int>(d));
  }
  std::stable_sort(keyed.begin(), keyed.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  order.clear();
  for (const auto& [axis, d] : keyed) order.push_back(d);
  return order;
}

/// Transposes a value viewed as `from`. While that has more dimensions than TOSA supports, an axis is moved
/// behind the one that precedes it in the result, and the two are merged.
ir::Value* permuted(Emitter& emit, ir::Value* value, Shape from, std::vector<int> permutation) {
  while (static_cast<int64_t>(from.size()) > tosa::kLevel8K.maxRank) {
    const auto front = static_cast<size_t>(permutation[0]), next = static_cast<size_t>(permutation[1]);
    const auto count = [&](size_t begin, size_t end) {
      return numElements(Shape(from.begin() + static_cast<std::ptrdiff_t>(begin),
                               from.begin() + static_cast<std::ptrdiff_t>(end)));
    };
    const Shape parts =
        front < next
            ? Shape{count(0, front + 1), count(front + 1, next), from[next], count(next + 1, from.size())}
            : Shape{count(0, next), from[next], count(next + 1, front + 1), count(front + 1, from.size())};
    value = emit.transpose(emit.reshape(value, parts), {0, 2, 1, 3});
    from[front] *= from[next];
    from.erase(from.begin() + static_cast<std::ptrdiff_t>(next));
    permutation.erase(permutation.begin() + 1);
    for (int& axis : permutation) axis -= axis > static_cast<int>(next) ? 1 : 0;
  }
  return emit.transpose(emit.reshape(value, from), permutation);
}

/// Prepends dimensions of size 1 up to `rank`.
StoredTensor withRank(StoredTensor data, size_t rank) {
  while (data.layout.dims.size() < rank)
    data.layout.dims.insert(data.layout.dims.begin(), std::vector<int>{});
  return data;
}

}  // namespace

ir::Value* Lowering::ordered(const StoredTensor& data, const std::vector<int>& order) {
  const std::vector<int> sequence = data.layout.axesOf(order);
  const Shape target = shapeInOrder(data.shape(), order);
  std::vector<int64_t> key(sequence.begin(), sequence.end());
  key.push_back(-1);
  key.insert(key.end(), data.layout.axes.begin(), data.layout.axes.end());
  key.push_back(-1);
  key.insert(key.end(), target.begin(), target.end());
  ir::Value*& known = reordered_[{data.value, key}];
  if (known) return known;
  const auto move = transposition(data.layout.axes, sequence);
  ir::Value* value = data.value;
  if (!move) {
    value = emitter_.reshape(value, target);
  } else if (const auto direct = directPermutation(value->shape(), data.layout, sequence, target)) {
    value = emitter_.transpose(value, *direct);
  } else {
    value = emitter_.reshape(permuted(emitter_, value, move->from, move->permutation), target);
  }
  return known = value;
}

ir::Value* Lowering::rowMajor(const StoredTensor& data) {
  return ordered(data, identityOrder(data.layout.dims.size()));
}

StoredTensor Lowering::viewed(const StoredTensor& data, const Shape& shape) {
  if (const auto layout = data.layout.viewed(shape)) return {data.value, *layout};
  return {rowMajor(data), Layout::rowMajor(shape)};
}

std::vector<int> Lowering::commonOrder(const std::vector<StoredTensor>& data) const {
  const size_t rank = data.front().layout.dims.size();
  // Many values share few layouts.
  std::vector<std::vector<int>> candidates;
  const auto before = [](const Layout* a, const Layout* b) {
    return std::tie(a->axes, a->dims) < std::tie(b->axes, b->dims);
  };
  std::map<const Layout*, int64_t, decltype(before)> layouts(before);  // with element counts
  std::set<std::vector<int>> seen;
  for (const StoredTensor& d : data) {
    if (d.value->isConstant()) continue;
    const auto [known, isNew] = layouts.try_emplace(&d.layout, 0);
    known->second += d.value->numElements();
    if (!isNew) continue;
    auto order = storageOrder(d.layout);
    if (order && seen.insert(*order).second) candidates.push_back(std::move(*order));
  }
  candidates.push_back(identityOrder(rank));
  const auto cost = [&](const std::vector<int>& order) {
    int64_t moved = 0;
    for (const auto& [layout, elements] : layouts) {
      if (transposition(layout->axes, layout->axesOf(order))) moved += elements;
    }
    return moved;
  };
  std::vector<int> best = candidates.front();
  int64_t least = cost(best);
  for (const auto& order : candidates) {
    const int64_t moved = cost(order);
    if (moved < least) {
      least = moved;
      best = order;
    }
  }
  return best;
}

Lowering::Aligned Lowering::align(std::vector<StoredTensor> operands, const Shape& shape) {
  const int64_t count = numElements(shape);
  const StoredTensor* first = nullptr;  // an operand with the full shape
  bool oneLayout = true;
  for (StoredTensor& operand : operands) {
    operand = withRank(std::move(operand), shape.size());
    const bool full = operand.shape() == shape;
    if (full && (!first || first->value->isConstant())) first = &operand;
  }
  for (const StoredTensor& operand : operands) {
    const bool full = operand.shape() == shape;
    oneLayout =
        oneLayout && first && (full ? operand.layout == first->layout : operand.value->numElements() == 1);
  }
  Aligned aligned;
  if (oneLayout && first) {
    // The TOSA shape of the first full operand is used for all.
    aligned.shape = first->value->shape();
    aligned.layout = first->layout;
    for (const StoredTensor& operand : operands) {
      const bool full = operand.value->numElements() == count;
      aligned.values.push_back(
          emitter_.reshape(operand.value, full ? aligned.shape : Shape(aligned.shape.size(), 1)));
    }
    return aligned;
  }
  const std::vector<int> order = commonOrder(operands);
  for (const StoredTensor& operand : operands) aligned.values.push_back(ordered(operand, order));
  aligned.layout = Layout::ordered(shape, order);
  aligned.shape = shapeInOrder(shape, order);
  return aligned;
}

Result<ir::Graph> lowerToTosa(const ir::Graph& partition) {
  CARINA_TRY(ir::Graph graph, Lowering(partition).run());
  return graph;
}

}  // namespace carina::lower
