// SPDX-License-Identifier: Apache-2.0
// torch.cond, torch.while_loop and loops over slices as COND_IF and WHILE_LOOP. Regions are lowered like
// parts: their inputs and outputs are integers, with the types of the surrounding graph's values, in
// row-major order.
#include "aten/control_flow.hpp"
#include "lower/rules.hpp"
#include "tosa/tosa.hpp"

namespace carina::lower {
namespace {

using Values = std::vector<ir::Value*>;

Result<ir::Graph> lowered(const ir::Graph& region) {
  return Lowering(region, Level::Region).run();
}

Result<Values> rowMajor(Lowering& lowering, std::span<ir::Value* const> values) {
  Values result;
  for (const ir::Value* value : values) {
    CARINA_TRY(const StoredTensor data, lowering.integers(value));
    result.push_back(lowering.rowMajor(data));
  }
  return result;
}

void define(Lowering& lowering, const ir::Value* result, ir::Value* value) {
  if (value->name.empty()) value->name = result->name;
  lowering.define(result, StoredTensor{value, Layout::rowMajor(result->shape())});
}

/// Copies a region into another graph, with `values` as its inputs; returns the copies of its outputs.
Values inlined(const ir::Graph& region, ir::Graph& into, const Values& values) {
  std::unordered_map<const ir::Value*, ir::Value*> mapping;
  for (size_t i = 0; i < values.size(); ++i) mapping[region.inputs()[i]] = values[i];
  for (const auto& constant : region.constants())
    mapping[constant.get()] = into.addConstant(constant->constant(), constant->name);
  for (const ir::Node* node : region.nodes()) {
    const auto copy = ir::cloneNode(*node, into, mapping);
    CARINA_CHECK(copy.ok(), "a node of a verified graph can be copied");
  }
  Values outputs;
  for (const ir::Value* output : region.outputs()) outputs.push_back(mapping.at(output));
  return outputs;
}

Status lowerCond(Lowering& lowering, const ir::Node& node) {
  CARINA_TRY(const Values predicate, rowMajor(lowering, node.operandGroup(0)));
  CARINA_TRY(Values operands, rowMajor(lowering, node.operandGroup(1)));
  CARINA_TRY(ir::Graph yes, lowered(node.region(0)));
  CARINA_TRY(ir::Graph no, lowered(node.region(1)));
  const Values results = lowering.emit().controlFlow(tosa::CondIf::def(), {predicate, std::move(operands)},
                                                     std::move(yes), std::move(no));
  for (size_t i = 0; i < results.size(); ++i) define(lowering, node.result(i), results[i]);
  return {};
}

/// Values that the loop only reads are carried unchanged.
Status lowerWhileLoop(Lowering& lowering, const ir::Node& node) {
  CARINA_TRY(const Values carried, rowMajor(lowering, node.operandGroup(0)));
  CARINA_TRY(const Values additional, rowMajor(lowering, node.operandGroup(1)));
  CARINA_TRY(ir::Graph test, lowered(node.region(0)));
  CARINA_TRY(ir::Graph body, lowered(node.region(1)));
  Values state = carried, outputs = body.outputs();
  state.insert(state.end(), additional.begin(), additional.end());
  outputs.insert(outputs.end(), body.inputs().begin() + static_cast<std::ptrdiff_t>(carried.size()),
                 body.inputs().end());
  body.setOutputs(std::move(outputs));
  const Values results = lowering.emit().controlFlow(tosa::WhileLoop::def(), {std::move(state)},
                                                     std::move(test), std::move(body));
  for (size_t i = 0; i < carried.size(); ++i) define(lowering, node.result(i), results[i]);
  return {};
}

/// A loop over slices as a counting loop: sliced tensors are stored as rows, one per iteration, which GATHER
/// reads and SCATTER writes.
class SliceLoop {
 public:
  SliceLoop(Lowering& lowering, const ir::Node& node, ir::Graph region)
      : lowering_(lowering), node_(node), scan_(node), region_(std::move(region)) {}

  Status run() {
    CARINA_TRY(Values state, rowMajor(lowering_, node_.operandGroup(0)));
    CARINA_TRY(Values sliced, rowMajor(lowering_, node_.operandGroup(1)));
    CARINA_TRY(const Values additional, rowMajor(lowering_, node_.operandGroup(2)));
    Emitter& emit = lowering_.emit();
    state.insert(state.begin(), emit.constant(Tensor::zeros(DType::Int32, {1, 1})));
    for (ir::Value* whole : sliced) {
      if (whole->dtype() == DType::Bool)
        return fail(Code::NoIntegerForm, "slices of bool tensors cannot be read by index")
            .withRemedy("pass them to the loop as numbers");
      state.push_back(asRows(emit, whole));
    }
    state.insert(state.end(), additional.begin(), additional.end());
    const size_t given = node_.results().size() - scan_.carried, before = state.size();
    for (size_t i = 0; i < given; ++i) {
      const ir::Value* slice = region_.outputs()[scan_.carried + i];
      if (slice->dtype() == DType::Bool)
        return fail(Code::NoIntegerForm, "slices of bool tensors cannot be written by index")
            .withRemedy("return them from the loop as numbers");
      state.push_back(emit.constant(Tensor::zeros(slice->dtype(), {1, scan_.turns, slice->numElements()})));
    }
    ir::Graph test = testOf(state), body = bodyOf(state, before);
    const Values results =
        emit.controlFlow(tosa::WhileLoop::def(), {std::move(state)}, std::move(test), std::move(body));
    for (size_t i = 0; i < scan_.carried; ++i) define(lowering_, node_.result(i), results[i + 1]);
    for (size_t i = 0; i < given; ++i) {
      const ir::Value* result = node_.result(scan_.carried + i);
      define(lowering_, result, fromRows(emit, results[before + i], result->shape()));
    }
    return {};
  }

 private:
  /// Number of elements in the dimensions before the sliced one.
  int64_t leading(const Shape& shape) const {
    return numElements(Shape(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(scan_.dim)));
  }

  ir::Value* asRows(Emitter& emit, ir::Value* whole) const {
    const int64_t lead = leading(whole->shape()), count = whole->numElements();
    if (lead > 1)
      whole = emit.transpose(emit.reshape(whole, {lead, scan_.turns, count / lead / scan_.turns}), {1, 0, 2});
    return emit.reshape(whole, {1, scan_.turns, count / scan_.turns});
  }

  ir::Value* fromRows(Emitter& emit, ir::Value* rows, const Shape& shape) const {
    const int64_t lead = leading(shape), count = rows->numElements();
    if (lead > 1)
      rows = emit.transpose(emit.reshape(rows, {scan_.turns, lead, count / lead / scan_.turns}), {1, 0, 2});
    return emit.reshape(rows, shape);
  }

  static Values inputsLike(ir::Graph& graph, const Values& state) {
    for (const ir::Value* value : state) graph.addInput(value->type);
    return graph.inputs();
  }

  ir::Graph testOf(const Values& state) const {
    ir::Graph test("turns");
    const Values inputs = inputsLike(test, state);
    Emitter emit(test);
    emit.setLocation(node_.location());
    test.setOutputs({emit.binary(Binary::Greater, emit.number(scan_.turns, inputs[0]), inputs[0])});
    return test;
  }

  /// `before`: number of state values that precede the rows to be written.
  ir::Graph bodyOf(const Values& state, size_t before) const {
    ir::Graph body(region_.name);
    const Values inputs = inputsLike(body, state);
    Emitter emit(body);
    emit.setLocation(node_.location());
    ir::Value* counter = inputs[0];
    ir::Value* at =
        scan_.reverse ? emit.binary(Binary::Sub, emit.number(scan_.turns - 1, counter), counter) : counter;
    Values values(inputs.begin() + 1, inputs.begin() + static_cast<std::ptrdiff_t>(before));
    for (size_t i = scan_.carried; i < scan_.carried + scan_.sliced; ++i)
      values[i] = emit.reshape(emit.gather(values[i], at), region_.inputs()[i]->shape());
    const Values made = inlined(region_, body, values);
    Values outputs{emit.binary(Binary::Add, counter, emit.number(1, counter))};
    outputs.insert(outputs.end(), made.begin(), made.begin() + static_cast<std::ptrdiff_t>(scan_.carried));
    for (size_t i = outputs.size(); i < before; ++i) outputs.push_back(inputs[i]);
    for (size_t i = before; i < inputs.size(); ++i) {
      ir::Value* slice = made[scan_.carried + i - before];
      outputs.push_back(emit.scatter(inputs[i], at, emit.reshape(slice, {1, 1, slice->numElements()})));
    }
    body.setOutputs(std::move(outputs));
    return body;
  }

  Lowering& lowering_;
  const ir::Node& node_;
  const aten::Scan scan_;
  const ir::Graph region_;
};

Status lowerScan(Lowering& lowering, const ir::Node& node) {
  CARINA_TRY(ir::Graph region, lowered(node.region(0)));
  return SliceLoop(lowering, node, std::move(region)).run();
}

}  // namespace

void addControlFlowRules(Rules& rules) {
  rules[&aten::condDef()] = lowerCond;
  rules[&aten::whileLoopDef()] = lowerWhileLoop;
  rules[&aten::scanDef()] = lowerScan;
}

}  // namespace carina::lower
