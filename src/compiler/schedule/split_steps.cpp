// SPDX-License-Identifier: Apache-2.0
#include "compiler/schedule/split_steps.hpp"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <vector>

#include "compiler/storage/storage.hpp"

namespace carina::compiler {
namespace {

using Positions = std::unordered_map<const ir::Node*, size_t>;

/// A VIEW of rows [begin, end) of the result, and the first of its readers.
struct Read {
  ir::Node* view = nullptr;
  int64_t begin = 0, end = 0;
  ir::Node* first = nullptr;
};

/// Rows [begin, end) and their readers.
struct Part {
  int64_t begin = 0, end = 0;
  std::vector<Read> reads;
};

/// The axis of a rank-3 shape along which positions follow each other.
size_t stepAxis(const Shape& shape) {
  return shape[0] > 1 ? 0 : 1;
}

bool isPointwise(const ir::Node* node) {
  if (!ir::isa<npu_ir::Conv>(node)) return false;
  const npu_ir::Window window = npu_ir::window(node);
  const ir::Ints ones{1, 1};
  return window.kernel == ones && window.stride == ones && window.pad == ir::Ints{0, 0, 0, 0} &&
         window.upscale == npu_ir::Upscale::NONE;
}

/// The first operation after views and joins that reads a value; null if it is an output of the graph or part
/// of a join.
ir::Node* firstReader(const ir::Value* value, const Positions& positions) {
  ir::Node* first = nullptr;
  std::vector<const ir::Value*> behind{value};
  while (!behind.empty()) {
    const ir::Value* seen = behind.back();
    behind.pop_back();
    if (seen->isGraphOutput()) return nullptr;
    for (const ir::Use& use : seen->uses()) {
      if (ir::isa<npu_ir::View>(use.node)) {
        behind.push_back(use.node->result());
      } else if (ir::isa<npu_ir::Join>(use.node)) {
        return nullptr;  // needed as a whole
      } else if (!first || positions.at(use.node) < positions.at(first)) {
        first = use.node;
      }
    }
  }
  return first;
}

/// All reads of a result; empty if something reads it other than by rows.
std::vector<Read> readsOf(const ir::Value* result, int64_t rowElements, const Positions& positions) {
  std::vector<Read> reads;
  std::vector<const ir::Value*> whole{result};
  while (!whole.empty()) {
    const ir::Value* value = whole.back();
    whole.pop_back();
    if (value->isGraphOutput()) return {};
    for (const ir::Use& use : value->uses()) {
      const auto view = ir::dynCast<npu_ir::View>(use.node);
      if (!view || dtypeSize(view->result()->dtype()) != dtypeSize(result->dtype())) return {};
      if (isReshape(view)) {
        whole.push_back(use.node->result());
        continue;
      }
      int64_t low = view.offset(), high = low;
      const Shape& shape = use.node->result()->shape();
      for (size_t d = 0; d < shape.size(); ++d) {
        const int64_t span = view.strides()[d] * (shape[d] - 1);
        (span < 0 ? low : high) += span;
      }
      ir::Node* first = firstReader(use.node->result(), positions);
      if (!first) return {};
      reads.push_back({use.node, low / rowElements, high / rowElements + 1, first});
    }
  }
  return reads;
}

/// The smallest parts that divide no read, in the order of their rows.
std::vector<Part> smallestParts(std::vector<Read> reads) {
  std::stable_sort(reads.begin(), reads.end(),
                   [](const Read& a, const Read& b) { return a.begin < b.begin; });
  std::vector<Part> parts;
  for (const Read& read : reads) {
    if (parts.empty() || read.begin >= parts.back().end) parts.push_back({read.begin, read.begin, {}});
    parts.back().end = std::max(parts.back().end, read.end);
    parts.back().reads.push_back(read);
  }
  return parts;
}

/// At most `most` parts, by merging neighbours.
std::vector<Part> merged(const std::vector<Part>& parts, int64_t most) {
  const auto count = static_cast<int64_t>(parts.size());
  const int64_t together = ceilDiv(count, std::min(most, count));
  std::vector<Part> result;
  for (int64_t i = 0; i < count; ++i) {
    const Part& part = parts[static_cast<size_t>(i)];
    if (i % together == 0) result.push_back({part.begin, part.end, {}});
    result.back().end = part.end;
    result.back().reads.insert(result.back().reads.end(), part.reads.begin(), part.reads.end());
  }
  return result;
}

void split(ir::Node* node, const std::vector<Part>& parts, const Positions& positions) {
  const npu_ir::Conv conv(node);
  const ir::Value* whole = node->result();
  const size_t axis = stepAxis(whole->shape());
  const int64_t row = whole->numElements() / whole->shape()[axis];
  for (const Part& part : parts) {
    ir::Node* first = part.reads.front().first;
    for (const Read& read : part.reads) {
      if (positions.at(read.first) < positions.at(first)) first = read.first;
    }
    ir::Builder builder(node->graph(), first, node->location());
    Shape start{0, 0, 0}, size = conv.ifm()->shape();
    start[axis] = part.begin;
    size[axis] = part.end - part.begin;
    ir::Value* rows = npu_ir::createSlice(builder, conv.ifm(), start, size);
    ir::Value* result = npu_ir::createConv(builder, rows, conv.weight(), conv.bias(), npu_ir::window(node),
                                           conv.weightZp(), npu_ir::outputStage(node), whole->dtype());
    result->quantization = whole->quantization;
    for (const Read& read : part.reads) {
      const npu_ir::View view(read.view);
      ir::Value* old = read.view->result();
      ir::Value* seen = npu_ir::createView(builder, result, old->dtype(), old->shape(),
                                           view.offset() - part.begin * row, view.strides());
      seen->quantization = old->quantization;
      std::swap(seen->name, old->name);
      // Views of the view keep their position, which may be before the part.
      node->graph().replaceAllUses(old, seen);
      std::vector<ir::Node*> behind;
      for (const ir::Use& use : seen->uses()) behind.push_back(use.node);
      while (!behind.empty()) {
        ir::Node* moved = behind.back();
        behind.pop_back();
        const auto place = positions.find(moved);
        if (!ir::isa<npu_ir::View>(moved) || place == positions.end() || place->second >= positions.at(first))
          continue;
        node->graph().moveBefore(moved, first);
        for (const ir::Use& use : moved->result()->uses()) behind.push_back(use.node);
      }
    }
  }
}

}  // namespace

int64_t splitSteps(ir::Graph& graph, int64_t most) {
  Positions positions;
  std::vector<ir::Node*> layers;
  for (ir::Node* node : graph.nodes()) {
    positions.emplace(node, positions.size());
    if (isPointwise(node)) layers.push_back(node);
  }
  int64_t largest = 0;
  for (ir::Node* node : layers) {
    const Shape& shape = node->result()->shape();
    const int64_t row = node->result()->numElements() / shape[stepAxis(shape)];
    const std::vector<Part> parts = smallestParts(readsOf(node->result(), row, positions));
    if (parts.size() < 2) continue;
    largest = std::max(largest, static_cast<int64_t>(parts.size()));
    const std::vector<Part> few = merged(parts, most);
    if (few.size() > 1) split(node, few, positions);
  }
  graph.eraseDeadNodes();
  return largest;
}

}  // namespace carina::compiler
