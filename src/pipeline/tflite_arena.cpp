// SPDX-License-Identifier: Apache-2.0
#include "pipeline/tflite_arena.hpp"

#include <algorithm>
#include <map>

#include "tflite/arena_plan.hpp"
#include "tflite/control_flow.hpp"
#include "tflite/rewriter.hpp"

namespace carina::pipeline {
namespace {

constexpr int64_t kAlignment = 16;  // of tensors

// Memory of the interpreter, in pointers: for itself; for each subgraph, tensor and operator; and for each
// input and output. In addition, the bytes that an operator's options and kernel take.
constexpr int64_t kFixedWords = 48, kSubgraphWords = 2, kTensorWords = 3, kOperatorWords = 7, kEndWords = 14,
                  kResourceWords = 5;
constexpr int64_t kOperatorBytes = 72;

int64_t roundedUp(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// The lifetimes of the tensors of all subgraphs, in steps of an inference in which operators run their
/// subgraphs one after the other.
class Lives {
 public:
  struct Life {
    int32_t first = 0, last = 0;
  };

  explicit Lives(const tflite::Model& model) : model_(model) { subgraph(0); }
  const std::map<std::pair<size_t, int32_t>, Life>& all() const { return lives_; }

 private:
  void subgraph(size_t g) {
    const tflite::Subgraph& graph = model_.subgraphs[g];
    ++step_;
    for (const int32_t input : graph.inputs) use(g, input);
    for (const tflite::Operator& op : graph.operators) {
      ++step_;
      for (const int32_t tensor : op.inputs) use(g, tensor);
      for (const int32_t tensor : op.outputs) use(g, tensor);
      if (const auto flow = tflite::controlFlowOf(op)) {
        for (const int64_t called : flow->subgraphs) subgraph(static_cast<size_t>(called));
        ++step_;
        for (const int32_t tensor : op.inputs) use(g, tensor);
        for (const int32_t tensor : op.outputs) use(g, tensor);
      }
    }
    ++step_;
    for (const int32_t output : graph.outputs) use(g, output);
  }
  void use(size_t g, int32_t tensor) {
    if (tensor < 0) return;
    const auto [known, isNew] = lives_.emplace(std::pair(g, tensor), Life{step_, step_});
    if (!isNew) known->second.last = step_;
  }

  const tflite::Model& model_;
  std::map<std::pair<size_t, int32_t>, Life> lives_;
  int32_t step_ = 0;
};

int64_t tensorsOf(const tflite::Model& model, const tflite::NpuProgram* plan) {
  std::vector<tflite::ArenaBody> bodies;
  std::vector<int64_t> sizes;
  const Lives lives(model);
  for (const auto& [which, life] : lives.all()) {
    const auto [g, index] = which;
    const tflite::Tensor& tensor = model.subgraphs[g].tensors[static_cast<size_t>(index)];
    if (!tflite::liesInArena(tensor)) continue;
    if (plan && plan->subgraphs[g].offsets[static_cast<size_t>(index)]) continue;
    sizes.push_back(roundedUp(tflite::tensorBytes(tensor).value_or(0)));
    bodies.push_back({tflite::ArenaPiece{0, sizes.back(), life.first, life.last}});
  }
  const std::vector<int64_t> places = tflite::placeBodies(bodies);
  int64_t end = 0;
  for (size_t i = 0; i < places.size(); ++i) end = std::max(end, places[i] + sizes[i]);
  // Planned and unplanned tensors are counted one after the other.
  return end + (plan ? roundedUp(static_cast<int64_t>(plan->arenaBytes)) : 0);
}

const tflite::Tensor* tensorOf(const tflite::Subgraph& graph, const std::vector<int32_t>& list) {
  return list.empty() || list[0] < 0 ? nullptr : &graph.tensors[static_cast<size_t>(list[0])];
}

/// Bytes that the reference kernel of an operator keeps in addition to kOperatorBytes: a multiplier and a
/// shift per channel; two tables of 513 16-bit numbers.
int64_t kernelBytes(const tflite::Subgraph& graph, const tflite::Operator& op) {
  const bool scales = op.name == "CONV_2D" || op.name == "DEPTHWISE_CONV_2D" || op.name == "TRANSPOSE_CONV";
  const tflite::Tensor* const result = tensorOf(graph, op.outputs);
  if (scales && result && !result->shape.empty()) return 8 * std::max<int64_t>(result->shape.back(), 0);
  const tflite::Tensor* const input = tensorOf(graph, op.inputs);
  const bool wide = op.name == "SOFTMAX" && input && input->type == tflite::TensorType::Int16;
  return wide ? 2 * int64_t{513} * 2 : 0;
}

}  // namespace

Result<TfliteArena> tfliteArena(const tflite::Model& model, const tflite::NpuProgram* plan,
                                int64_t pointerBytes) {
  if (const auto running = tflite::runningSubgraphs(model); !running.ok()) return running.error();
  TfliteArena arena;
  arena.tensors = tensorsOf(model, plan);
  int64_t words = 0, bytes = 0;
  for (const tflite::Subgraph& graph : model.subgraphs) {  // includes records of graphs that nothing runs
    words += kSubgraphWords;
    for (const tflite::Tensor& tensor : graph.tensors) {
      words += kTensorWords;
      if (tensor.isVariable) bytes += roundedUp(tflite::tensorBytes(tensor).value_or(0));
    }
    for (const tflite::Operator& op : graph.operators) {
      words += kOperatorWords;
      bytes += kOperatorBytes + kernelBytes(graph, op);
      if (op.name == "VAR_HANDLE") words += kResourceWords;
    }
  }
  const tflite::Subgraph& main = model.subgraphs.front();
  words += kFixedWords + kEndWords * static_cast<int64_t>(main.inputs.size() + main.outputs.size());
  arena.interpreter = roundedUp(words * pointerBytes + bytes);
  return arena;
}

}  // namespace carina::pipeline
