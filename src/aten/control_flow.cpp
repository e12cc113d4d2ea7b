// SPDX-License-Identifier: Apache-2.0
#include "aten/control_flow.hpp"

#include <algorithm>
#include <limits>

namespace carina::aten {
namespace {

std::string listText(std::span<ir::Value* const> values) {
  std::string text = "(";
  for (const ir::Value* value : values) text += (text.size() > 1 ? ", " : "") + ir::typeText(value->type);
  return text + ")";
}

Status sameTypes(std::span<ir::Value* const> wanted, std::span<ir::Value* const> found,
                 std::string_view role) {
  bool same = wanted.size() == found.size();
  for (size_t i = 0; same && i < wanted.size(); ++i) same = wanted[i]->type == found[i]->type;
  if (same) return {};
  return fail(Code::InvalidOperator, "{} {}, expected {}", role, listText(found), listText(wanted));
}

bool isTruth(const ir::Value& value) {
  return value.dtype() == DType::Bool && checkedNumElements(value.shape()) == 1;
}

Status checkRegions(const ir::Node& node, std::span<ir::Value* const> taken) {
  for (size_t i = 0; i < node.regions().size(); ++i) {
    if (!node.regions()[i])
      return fail(Code::InvalidOperator, "{} has no {}", node.opName(), regionRole(node, i));
    CARINA_RETURN_IF_ERROR(
        sameTypes(taken, node.region(i).inputs(), fmt::format("the {} takes", regionRole(node, i))));
  }
  return {};
}

Status checkCond(const ir::Node& node) {
  if (!isTruth(*node.operand(0)))
    return fail(Code::InvalidOperator, "the predicate is {}, expected one bool",
                ir::typeText(node.operand(0)->type));
  CARINA_RETURN_IF_ERROR(checkRegions(node, node.operandGroup(1)));
  for (size_t i = 0; i < 2; ++i) {
    CARINA_RETURN_IF_ERROR(sameTypes(node.results(), node.region(i).outputs(),
                                     fmt::format("the {} returns", regionRole(node, i))));
  }
  return {};
}

Status checkWhileLoop(const ir::Node& node) {
  CARINA_RETURN_IF_ERROR(sameTypes(node.operandGroup(0), node.results(), "the results are"));
  CARINA_RETURN_IF_ERROR(checkRegions(node, node.operands()));
  const auto& condition = node.region(0).outputs();
  if (condition.size() != 1 || !isTruth(*condition[0]))
    return fail(Code::InvalidOperator, "the {} returns {}, expected one bool", regionRole(node, 0),
                listText(condition));
  return sameTypes(node.operandGroup(0), node.region(1).outputs(),
                   fmt::format("the {} returns", regionRole(node, 1)));
}

/// The types of one slice of each value.
Result<std::vector<ir::Type>> slicesOf(std::span<ir::Value* const> values, const Scan& scan) {
  std::vector<ir::Type> types;
  for (const ir::Value* value : values) {
    if (scan.turns < 1 || value->rank() <= scan.dim || value->dim(scan.dim) != scan.turns * scan.chunk)
      return fail(Code::InvalidOperator, "{} has no {} slices of {} along dimension {}",
                  ir::typeText(value->type), scan.turns, scan.chunk, scan.dim);
    types.push_back(value->type);
    types.back().shape[static_cast<size_t>(scan.dim)] = scan.chunk;
  }
  return types;
}

bool haveTypes(std::span<ir::Value* const> values, std::span<const ir::Type> types) {
  return std::equal(values.begin(), values.end(), types.begin(), types.end(),
                    [](const ir::Value* value, const ir::Type& type) { return value->type == type; });
}

Status checkScan(const ir::Node& node) {
  const Scan scan(node);
  const auto carried = node.operandGroup(0), additional = node.operandGroup(2);
  const std::span<ir::Value* const> results = node.results();
  if (results.size() < scan.carried)
    return fail(Code::InvalidOperator, "{} results for {} carried values", results.size(), scan.carried);
  CARINA_RETURN_IF_ERROR(sameTypes(carried, results.first(scan.carried), "the first results are"));
  CARINA_TRY(std::vector<ir::Type> taken, slicesOf(node.operandGroup(1), scan));
  CARINA_TRY(std::vector<ir::Type> given, slicesOf(results.subspan(scan.carried), scan));
  std::vector<ir::Type> carriedTypes;
  for (const ir::Value* value : carried) carriedTypes.push_back(value->type);
  taken.insert(taken.begin(), carriedTypes.begin(), carriedTypes.end());
  given.insert(given.begin(), carriedTypes.begin(), carriedTypes.end());
  for (const ir::Value* value : additional) taken.push_back(value->type);
  if (!node.regions()[0]) return fail(Code::InvalidOperator, "{} has no body", node.opName());
  const ir::Graph& body = node.region(0);
  if (!haveTypes(body.inputs(), taken))
    return fail(Code::InvalidOperator, "the loop body takes {}, which are not carried values and slices",
                listText(body.inputs()));
  if (!haveTypes(body.outputs(), given))
    return fail(Code::InvalidOperator, "the loop body returns {}, which are not carried values and slices",
                listText(body.outputs()));
  return {};
}

// An id that no operator of the aten table has.
constexpr uint16_t kNoId = std::numeric_limits<uint16_t>::max();

}  // namespace

const ir::OpDef& condDef() {
  static constexpr ir::OperandDef kOperands[] = {{"pred", ir::Arity::One, false},
                                                 {"operands", ir::Arity::Variadic, false}};
  static constexpr ir::ResultDef kResults[] = {{"results", ir::Arity::Variadic}};
  static constexpr ir::OpDef kDef{
      "higher_order.cond", kNoId, 2, ir::kPure, kOperands, kResults, {}, nullptr, checkCond};
  return kDef;
}

const ir::OpDef& whileLoopDef() {
  static constexpr ir::OperandDef kOperands[] = {{"carried", ir::Arity::Variadic, false},
                                                 {"additional", ir::Arity::Variadic, false}};
  static constexpr ir::ResultDef kResults[] = {{"results", ir::Arity::Variadic}};
  static constexpr ir::OpDef kDef{
      "higher_order.while_loop", kNoId, 2, ir::kPure, kOperands, kResults, {}, nullptr, checkWhileLoop};
  return kDef;
}

const ir::OpDef& scanDef() {
  static constexpr ir::OperandDef kOperands[] = {{"carried", ir::Arity::Variadic, false},
                                                 {"xs", ir::Arity::Variadic, false},
                                                 {"additional", ir::Arity::Variadic, false}};
  static constexpr ir::ResultDef kResults[] = {{"results", ir::Arity::Variadic}};
  static constexpr ir::AttributeDef kAttributes[] = {{"dim", ir::AttributeKind::Int, false, "0", {}},
                                                     {"chunk", ir::AttributeKind::Int, false, "1", {}},
                                                     {"reverse", ir::AttributeKind::Bool, false, "False", {}},
                                                     {"unroll", ir::AttributeKind::Bool, false, "False", {}}};
  static constexpr ir::OpDef kDef{"higher_order.scan", kNoId,   1,        ir::kPure, kOperands, kResults,
                                  kAttributes,         nullptr, checkScan};
  return kDef;
}

Scan::Scan(const ir::Node& node)
    : carried(node.operandGroup(0).size()),
      sliced(node.operandGroup(1).size()),
      dim(node.attributeAs<int64_t>(0)),
      chunk(node.attributeAs<int64_t>(1)),
      reverse(node.attributeAs<bool>(2)),
      unroll(node.attributeAs<bool>(3)) {
  const ir::Value* x = sliced > 0 ? node.operand(1) : nullptr;
  if (x && dim >= 0 && dim < x->rank() && chunk > 0 && x->dim(dim) % chunk == 0) turns = x->dim(dim) / chunk;
}

namespace {

/// Location of a slice in the bytes of a tensor: `runs` runs of `each` bytes, interleaved with other slices.
struct Stretches {
  Stretches(const Tensor& slice, const Scan& scan, int64_t turn) : row(scan.turns) {
    for (int64_t d = 0; d < scan.dim; ++d) runs *= slice.dim(d);
    each = slice.numBytes() / std::max<int64_t>(runs, 1);
    at = scan.sliceOf(turn);
  }
  std::ptrdiff_t inWhole(int64_t run) const { return static_cast<std::ptrdiff_t>((run * row + at) * each); }
  std::ptrdiff_t inSlice(int64_t run) const { return static_cast<std::ptrdiff_t>(run * each); }
  int64_t runs = 1, each = 0, row = 1, at = 0;
};

}  // namespace

Tensor sliceOf(const Tensor& tensor, const Scan& scan, int64_t turn) {
  Shape shape = tensor.shape();
  shape[static_cast<size_t>(scan.dim)] = scan.chunk;
  Tensor slice = Tensor::uninitialized(tensor.dtype(), shape);
  const Stretches stretches(slice, scan, turn);
  const std::span<std::byte> to = slice.mutableBytes();
  for (int64_t run = 0; run < stretches.runs; ++run)
    std::copy_n(tensor.bytes().begin() + stretches.inWhole(run), stretches.each,
                to.begin() + stretches.inSlice(run));
  return slice;
}

void putSlice(Tensor& tensor, const Scan& scan, int64_t turn, const Tensor& slice) {
  const Stretches stretches(slice, scan, turn);
  const std::span<std::byte> to = tensor.mutableBytes();
  for (int64_t run = 0; run < stretches.runs; ++run)
    std::copy_n(slice.bytes().begin() + stretches.inSlice(run), stretches.each,
                to.begin() + stretches.inWhole(run));
}

bool isControlFlow(const ir::Node& node) {
  return node.is(condDef()) || node.is(whileLoopDef()) || node.is(scanDef());
}

const ir::OpDef* findControlFlow(std::string_view name) {
  for (const ir::OpDef* def : {&condDef(), &whileLoopDef(), &scanDef()}) {
    if (def->name == name) return def;
  }
  return nullptr;
}

std::string_view regionRole(const ir::Node& node, size_t region) {
  if (node.is(scanDef())) return "loop body";
  if (node.is(condDef())) return region == 0 ? "true branch" : "false branch";
  return region == 0 ? "loop condition" : "loop body";
}

Status forEachGraph(ir::Graph& graph, const std::function<Status(ir::Graph&)>& visit) {
  CARINA_RETURN_IF_ERROR(visit(graph));
  for (ir::Node* node : graph.nodes()) {
    if (!isControlFlow(*node)) continue;
    for (const auto& region : node->regions()) {
      Status status = region ? forEachGraph(*region, visit) : Status();
      if (!status.ok()) return std::move(status).error().at(node->where());
    }
  }
  return {};
}

void forEachNode(const ir::Graph& graph, const std::function<void(const ir::Node&)>& visit) {
  for (const ir::Node* node : graph.nodes()) {
    visit(*node);
    if (!isControlFlow(*node)) continue;
    for (const auto& region : node->regions()) {
      if (region) forEachNode(*region, visit);
    }
  }
}

}  // namespace carina::aten
