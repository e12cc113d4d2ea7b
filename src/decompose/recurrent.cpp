// SPDX-License-Identifier: Apache-2.0
// LSTM, GRU and simple recurrent layers and cells, unrolled over time. One linear computes the input products
// of many steps.
#include <algorithm>

#include "aten/ops.hpp"
#include "decompose/rewrites.hpp"

namespace carina::decompose {
namespace {

/// Graph fragments with short names.
struct Parts {
  ir::Builder& b;

  ir::Value* linear(ir::Value* x, ir::Value* w, ir::Value* bias) {
    return aten::Linear::create(b, x, w, bias);
  }
  ir::Value* add(ir::Value* x, ir::Value* y) { return aten::AddTensor::create(b, x, y); }
  ir::Value* sub(ir::Value* x, ir::Value* y) { return aten::SubTensor::create(b, x, y); }
  ir::Value* mul(ir::Value* x, ir::Value* y) { return aten::MulTensor::create(b, x, y); }
  ir::Value* sigmoid(ir::Value* x) { return aten::Sigmoid::create(b, x); }
  ir::Value* tanh(ir::Value* x) { return aten::Tanh::create(b, x); }
  ir::Value* select(ir::Value* x, int64_t dim, int64_t i) { return aten::SelectInt::create(b, x, dim, i); }
  /// Elements [i * size, (i + count) * size) of a dimension.
  ir::Value* gates(ir::Value* x, int64_t i, int64_t size, int64_t count = 1, int64_t dim = -1) {
    return aten::SliceTensor::create(b, x, dim, i * size, (i + count) * size);
  }
  ir::Value* stack(std::vector<ir::Value*> x, int64_t dim) {
    return aten::Stack::create(b, std::move(x), dim);
  }
  ir::Value* cat(std::vector<ir::Value*> x, int64_t dim) { return aten::Cat::create(b, std::move(x), dim); }
};

enum class Kind : uint8_t { Lstm, Gru, Tanh, Relu };

/// Hidden and (LSTM) cell state, [N, H].
struct State {
  ir::Value* h = nullptr;
  ir::Value* c = nullptr;
};

struct Weights {
  ir::Value* input = nullptr;
  ir::Value* hidden = nullptr;
  ir::Value* inputBias = nullptr;
  ir::Value* hiddenBias = nullptr;
  ir::Value* projection = nullptr;  // LSTM: [P, H], projects cell outputs to the hidden state [N, P]
  bool sigmoidsFirst = false;       // LSTM: rows i, f, o, g instead of PyTorch's i, f, g, o
};

/// The weights of an LSTM layer with the rows of its three sigmoids adjacent, so that these become one
/// sigmoid.
Weights sigmoidsFirst(Parts& p, const Weights& w, int64_t size) {
  const auto reordered = [&](ir::Value* x) -> ir::Value* {
    return x ? p.cat({p.gates(x, 0, size, 2, 0), p.gates(x, 3, size, 1, 0), p.gates(x, 2, size, 1, 0)}, 0)
             : nullptr;
  };
  return {reordered(w.input),      reordered(w.hidden), reordered(w.inputBias),
          reordered(w.hiddenBias), w.projection,        true};
}

/// One step; `fromInput` is W_ih x + b_ih. Gate rows: LSTM i, f, g, o; GRU r, z, n. Gates are sliced before
/// they are added, so that each sum feeds a single function and both are one operation.
State step(Parts& p, Kind kind, ir::Value* fromInput, const State& before, const Weights& w) {
  ir::Value* fromHidden = p.linear(before.h, w.hidden, w.hiddenBias);
  const int64_t size = (before.c ? before.c : before.h)->shape().back();
  const auto sum = [&](int64_t first, int64_t count) {
    return p.add(p.gates(fromInput, first, size, count), p.gates(fromHidden, first, size, count));
  };
  if (kind == Kind::Lstm) {
    ir::Value* open = p.sigmoid(sum(0, w.sigmoidsFirst ? 3 : 2));
    ir::Value *in = p.gates(open, 0, size), *forget = p.gates(open, 1, size);
    ir::Value* out = w.sigmoidsFirst ? p.gates(open, 2, size) : p.sigmoid(sum(3, 1));
    ir::Value* candidate = p.tanh(sum(w.sigmoidsFirst ? 3 : 2, 1));
    ir::Value* c = p.add(p.mul(forget, before.c), p.mul(in, candidate));
    ir::Value* given = p.mul(out, p.tanh(c));
    return {w.projection ? p.linear(given, w.projection, nullptr) : given, c};
  }
  if (kind == Kind::Gru) {
    ir::Value* open = p.sigmoid(sum(0, 2));
    ir::Value *reset = p.gates(open, 0, size), *update = p.gates(open, 1, size);
    ir::Value* candidate =
        p.tanh(p.add(p.gates(fromInput, 2, size), p.mul(reset, p.gates(fromHidden, 2, size))));
    return {p.add(p.mul(p.sub(before.h, candidate), update), candidate), nullptr};
  }
  ir::Value* z = p.add(fromInput, fromHidden);
  return {kind == Kind::Tanh ? p.tanh(z) : aten::Relu::create(p.b, z), nullptr};
}

struct Layer {
  ir::Value* output = nullptr;  // [T, N, H]
  State last;
};

/// One direction of one layer over x [T, N, I].
Layer runLayer(Parts& p, Kind kind, ir::Value* x, State state, const Weights& w, bool reverse) {
  // One linear computes the products of this many steps, so that memory need not hold those of all steps.
  constexpr int64_t kStepsAtOnce = 256;
  const int64_t steps = x->dim(0);
  ir::Value* products = nullptr;
  std::vector<ir::Value*> outputs(static_cast<size_t>(steps));
  for (int64_t i = 0; i < steps; ++i) {
    const int64_t t = reverse ? steps - 1 - i : i;
    const int64_t first = t / kStepsAtOnce * kStepsAtOnce, end = std::min(first + kStepsAtOnce, steps);
    if (i == 0 || t == (reverse ? end - 1 : first)) {
      ir::Value* some = steps <= kStepsAtOnce ? x : p.gates(x, first, 1, end - first, 0);
      products = p.linear(some, w.input, w.inputBias);
    }
    state = step(p, kind, p.select(products, 0, t - first), state, w);
    outputs[static_cast<size_t>(t)] = state.h;
  }
  return {p.stack(std::move(outputs), 0), state};
}

template <typename Op, Kind kind>
Result<bool> rewriteLayers(ir::Node* node) {
  const Op op = ir::dynCast<Op>(node);
  if (!op || isQuantizedAsUnit(*node) || op.input()->rank() != 3) return false;
  // Training applies dropout between layers.
  if (op.train() && op.dropout() > 0 && op.numLayers() > 1) return false;
  const int64_t directions = op.bidirectional() ? 2 : 1;
  const size_t plain = op.hasBiases() ? 4 : 2;
  const size_t perCell = op.params().size() / static_cast<size_t>(op.numLayers() * directions);
  ir::Builder b = ir::Builder::beforeNode(node);
  Parts p{b};
  std::vector<ir::Value*> states;
  if constexpr (std::is_same_v<Op, aten::LstmInput>)
    states.assign(op.hx().begin(), op.hx().end());
  else
    states = {op.hx()};
  ir::Value* x =
      op.batchFirst() ? aten::TransposeInt::create(b, op.input(), int64_t{0}, int64_t{1}) : op.input();
  std::vector<ir::Value*> lastHidden, lastCell;
  for (int64_t layer = 0; layer < op.numLayers(); ++layer) {
    std::vector<ir::Value*> outputs;
    for (int64_t direction = 0; direction < directions; ++direction) {
      const int64_t cell = layer * directions + direction;
      const auto* params = op.params().data() + static_cast<size_t>(cell) * perCell;
      Weights w{params[0], params[1], plain == 4 ? params[2] : nullptr, plain == 4 ? params[3] : nullptr,
                perCell > plain ? params[plain] : nullptr};
      if (kind == Kind::Lstm) w = sigmoidsFirst(p, w, w.hidden->dim(0) / 4);
      const State start{p.select(states[0], 0, cell),
                        kind == Kind::Lstm ? p.select(states[1], 0, cell) : nullptr};
      const Layer run = runLayer(p, kind, x, start, w, direction == 1);
      outputs.push_back(run.output);
      lastHidden.push_back(run.last.h);
      lastCell.push_back(run.last.c);
    }
    x = outputs.size() == 1 ? outputs[0] : p.cat(std::move(outputs), -1);
  }
  ir::Value* output = op.batchFirst() ? aten::TransposeInt::create(b, x, int64_t{0}, int64_t{1}) : x;
  std::vector<ir::Value*> results{output, p.stack(lastHidden, 0)};
  if (kind == Kind::Lstm) results.push_back(p.stack(lastCell, 0));
  ir::Graph& graph = node->graph();
  for (size_t i = 0; i < results.size(); ++i) graph.replaceAllUses(node->result(i), results[i]);
  graph.erase(node);
  graph.eraseDeadNodes();
  return true;
}

template <typename Op, Kind kind>
Result<bool> rewriteCell(ir::Node* node) {
  const Op op = ir::dynCast<Op>(node);
  if (!op || isQuantizedAsUnit(*node)) return false;
  ir::Builder b = ir::Builder::beforeNode(node);
  Parts p{b};
  State before;
  if constexpr (std::is_same_v<Op, aten::LstmCell>)
    before = {op.hx()[0], op.hx()[1]};
  else
    before = {op.hx(), nullptr};
  const Weights w{op.wIh(), op.wHh(), op.bIh(), op.bHh()};
  const State after = step(p, kind, p.linear(op.input(), w.input, w.inputBias), before, w);
  ir::Graph& graph = node->graph();
  graph.replaceAllUses(node->result(0), after.h);
  if (kind == Kind::Lstm) graph.replaceAllUses(node->result(1), after.c);
  graph.erase(node);
  return true;
}

}  // namespace

void addRecurrentRewrites(std::vector<ir::Rewrite>& rewrites) {
  addRewrites(rewrites, rewriteLayers<aten::LstmInput, Kind::Lstm>, rewriteLayers<aten::GruInput, Kind::Gru>,
              rewriteLayers<aten::RnnTanhInput, Kind::Tanh>, rewriteLayers<aten::RnnReluInput, Kind::Relu>,
              rewriteCell<aten::LstmCell, Kind::Lstm>, rewriteCell<aten::GruCell, Kind::Gru>,
              rewriteCell<aten::RnnTanhCell, Kind::Tanh>, rewriteCell<aten::RnnReluCell, Kind::Relu>);
}

}  // namespace carina::decompose
