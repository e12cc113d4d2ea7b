// SPDX-License-Identifier: Apache-2.0
// Result types of matrix products, attention and recurrent operators.
#include "aten/arguments.hpp"
#include "aten/infer.hpp"
#include "aten/promotion.hpp"

namespace carina::aten::infer {

Error mismatch(const ir::Node& node) {
  std::string shapes;
  for (const ir::Value* operand : node.operands())
    shapes += (shapes.empty() ? "" : ", ") + (operand ? shapeText(operand->shape()) : "none");
  return fail(Code::InvalidOperator, "{}: the shapes {} do not match", node.opName(), shapes);
}

namespace {

Result<Shape> product(const ir::Node& node, const Shape& a, const Shape& b) {
  const size_t n = a.size();
  if (n != b.size() || (n != 2 && n != 3) || a[n - 1] != b[n - 2] || (n == 3 && a[0] != b[0]))
    return mismatch(node);
  Shape result = a;
  result[n - 1] = b[n - 1];
  return result;
}

}  // namespace

Types mm(const ir::Node& node) {
  CARINA_RETURN_IF_ERROR(checkFactors(node));
  CARINA_TRY(Shape shape, product(node, node.operand(0)->shape(), node.operand(1)->shape()));
  return oneResult(node.operand(0)->dtype(), std::move(shape));
}

Types addmm(const ir::Node& node) {
  CARINA_RETURN_IF_ERROR(checkFactors(node));
  CARINA_TRY(Shape shape, product(node, node.operand(1)->shape(), node.operand(2)->shape()));
  if (broadcastShapes(node.operand(0)->shape(), shape) != shape) return mismatch(node);
  return oneResult(node.operand(0)->dtype(), std::move(shape));
}

Types matmul(const ir::Node& node) {
  CARINA_RETURN_IF_ERROR(checkFactors(node));
  Shape a = node.operand(0)->shape(), b = node.operand(1)->shape();
  if (a.empty() || b.empty()) return mismatch(node);
  const bool vectorA = a.size() == 1, vectorB = b.size() == 1;
  if (vectorA) a.insert(a.begin(), 1);
  if (vectorB) b.push_back(1);
  if (a.back() != b[b.size() - 2]) return mismatch(node);
  auto batch = broadcastShapes({a.begin(), a.end() - 2}, {b.begin(), b.end() - 2});
  if (!batch) return mismatch(node);
  Shape shape = *batch;
  if (!vectorA) shape.push_back(a[a.size() - 2]);
  if (!vectorB) shape.push_back(b.back());
  return oneResult(node.operand(0)->dtype(), std::move(shape));
}

Types linear(const ir::Node& node) {
  CARINA_RETURN_IF_ERROR(checkFactors(node));
  Shape shape = node.operand(0)->shape();
  const Shape& weight = node.operand(1)->shape();
  if (shape.empty() || weight.empty() || weight.size() > 2 || weight.back() != shape.back())
    return mismatch(node);
  shape.pop_back();
  if (weight.size() == 2) shape.push_back(weight[0]);
  const ir::Value* bias = node.operand(2);
  if (bias && broadcastShapes(bias->shape(), shape) != shape) return mismatch(node);
  return oneResult(node.operand(0)->dtype(), std::move(shape));
}

Types dot(const ir::Node& node) {
  CARINA_RETURN_IF_ERROR(checkFactors(node));
  const Shape &a = node.operand(0)->shape(), &b = node.operand(1)->shape();
  if (a.size() != 1 || a != b) return mismatch(node);
  return oneResult(node.operand(0)->dtype(), {});
}
Types mv(const ir::Node& node) {
  CARINA_RETURN_IF_ERROR(checkFactors(node));
  const Shape &a = node.operand(0)->shape(), &b = node.operand(1)->shape();
  if (a.size() != 2 || b.size() != 1 || a[1] != b[0]) return mismatch(node);
  return oneResult(node.operand(0)->dtype(), {a[0]});
}
Types outer(const ir::Node& node) {
  const Shape &a = node.operand(0)->shape(), &b = node.operand(1)->shape();
  if (a.size() != 1 || b.size() != 1) return mismatch(node);
  CARINA_TRY(const DType dtype, Promotion().add(node.operand(0)).add(node.operand(1)).type());
  return std::vector<ir::Type>{{dtype, {a[0], b[0]}}};
}

Types attention(const ir::Node& node) {
  const Shape &q = node.operand(0)->shape(), &k = node.operand(1)->shape(), &v = node.operand(2)->shape();
  const size_t n = q.size();
  if (n < 2 || k.size() != n || v.size() != n || q[n - 1] != k[n - 1] || k[n - 2] != v[n - 2])
    return mismatch(node);
  const Arguments arguments(node);
  if (arguments.real("dropout_p") != 0)
    return fail(Code::TrainingOnly, "the attention applies dropout: export the model in eval mode");
  if (arguments.boolean("is_causal") && node.operand(3))
    return fail(Code::InvalidOperator, "the attention has both a mask and is_causal");
  Shape leadQ(q.begin(), q.end() - 2), leadK(k.begin(), k.end() - 2), leadV(v.begin(), v.end() - 2);
  if (arguments.boolean("enable_gqa")) {
    if (n < 3 || k[n - 3] <= 0 || q[n - 3] % k[n - 3] != 0 || v[n - 3] != k[n - 3]) return mismatch(node);
    leadK.back() = leadV.back() = q[n - 3];
  }
  auto lead = broadcastShapes(leadQ, leadK);
  if (lead) lead = broadcastShapes(*lead, leadV);
  if (!lead) return mismatch(node);
  if (const ir::Value* mask = node.operand(3)) {
    Shape scores = *lead;
    scores.insert(scores.end(), {q[n - 2], k[n - 2]});
    if (broadcastShapes(mask->shape(), scores) != scores) return mismatch(node);
  }
  Shape shape = *lead;
  shape.insert(shape.end(), {q[n - 2], v[n - 1]});
  return oneResult(node.operand(0)->dtype(), std::move(shape));
}

namespace {

/// Result types of a recurrent layer; `states` is 2 for an LSTM.
Types recurrent(const ir::Node& node, size_t states) {
  const Arguments arguments(node);
  const Shape& input = node.operand(0)->shape();
  const auto initial = node.operandGroup(1);
  const auto parameters = node.operandGroup(2);
  const int64_t layers = arguments.integer("num_layers");
  const int64_t directions = arguments.boolean("bidirectional") ? 2 : 1;
  const auto perCell = checkedMul(layers, directions);
  if (input.size() != 3 || initial.size() != states || layers <= 0 || !perCell || *perCell > 4096)
    return mismatch(node);
  if (arguments.boolean("train") && arguments.real("dropout") != 0)
    return fail(Code::TrainingOnly, "the layer applies dropout: export the model in eval mode");
  const size_t biases = arguments.boolean("has_biases") ? 4 : 2;
  // An additional matrix projects the cell outputs of an LSTM to its hidden state.
  const bool projects = states == 2 && parameters.size() == static_cast<size_t>(*perCell) * (biases + 1);
  const size_t each = biases + (projects ? 1 : 0);
  if (parameters.size() != static_cast<size_t>(*perCell) * each) return mismatch(node);
  const int64_t batch = input[arguments.boolean("batch_first") ? 0 : 1];
  const Shape& hidden = initial[0]->shape();
  if (hidden.size() != 3 || hidden[0] != *perCell || hidden[1] != batch) return mismatch(node);
  const int64_t gates = states == 2 ? 4 : node.opName().starts_with("aten.gru") ? 3 : 1;
  Shape inner = hidden;  // of the cell states
  if (projects) {
    const Shape& projection = parameters[each - 1]->shape();
    if (projection.size() != 2) return mismatch(node);
    inner[2] = projection[1];
  }
  for (size_t cell = 0; cell < static_cast<size_t>(*perCell); ++cell) {
    const int64_t features = cell < static_cast<size_t>(directions) ? input[2] : hidden[2] * directions;
    const auto rows = checkedMul(gates, inner[2]);
    if (!rows) return mismatch(node);
    if (parameters[cell * each]->shape() != Shape{*rows, features} ||
        parameters[cell * each + 1]->shape() != Shape{*rows, hidden[2]}) {
      return mismatch(node);
    }
    for (size_t i = 2; i < biases; ++i) {
      if (parameters[cell * each + i]->shape() != Shape{*rows}) return mismatch(node);
    }
    if (projects && parameters[cell * each + biases]->shape() != Shape{hidden[2], inner[2]})
      return mismatch(node);
  }
  Shape output = input;
  output[2] = hidden[2] * directions;
  const DType dtype = node.operand(0)->dtype();
  std::vector<ir::Type> types{{dtype, output}};
  for (size_t i = 0; i < states; ++i) {
    const Shape& state = i == 0 ? hidden : inner;
    if (initial[i]->shape() != state) return mismatch(node);
    types.push_back({dtype, state});
  }
  return types;
}

Types cell(const ir::Node& node, size_t states) {
  const Shape& input = node.operand(0)->shape();
  const auto initial = node.operandGroup(1);
  if (initial.size() != states) return mismatch(node);
  const Shape& hidden = initial[0]->shape();
  const int64_t gates = states == 2 ? 4 : node.opName().starts_with("aten.gru") ? 3 : 1;
  if (input.size() != 2 || hidden.size() != 2 || hidden[0] != input[0] || initial.back()->shape() != hidden)
    return mismatch(node);
  const int64_t rows = gates * hidden[1];
  if (node.operand(2)->shape() != Shape{rows, input[1]} ||
      node.operand(3)->shape() != Shape{rows, hidden[1]}) {
    return mismatch(node);
  }
  for (size_t i : {4u, 5u}) {
    if (node.operand(i) && node.operand(i)->shape() != Shape{rows}) return mismatch(node);
  }
  return std::vector<ir::Type>(states, {node.operand(0)->dtype(), hidden});
}

}  // namespace

Types lstm(const ir::Node& node) {
  return recurrent(node, 2);
}
Types rnn(const ir::Node& node) {
  return recurrent(node, 1);
}
Types lstmCell(const ir::Node& node) {
  return cell(node, 2);
}
Types rnnCell(const ir::Node& node) {
  return cell(node, 1);
}

}  // namespace carina::aten::infer
