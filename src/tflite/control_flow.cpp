// SPDX-License-Identifier: Apache-2.0
#include "tflite/control_flow.hpp"

#include <algorithm>
#include <array>

namespace carina::tflite {
namespace {

constexpr size_t kDeepest = 64;

int64_t subgraphOption(const Operator& op, std::string_view name) {
  const auto option =
      std::find_if(op.options.begin(), op.options.end(), [&](const Option& one) { return one.name == name; });
  return option == op.options.end() ? 0 : static_cast<int64_t>(option->value);
}

class Finder {
 public:
  explicit Finder(const Model& model) : model_(model), heights_(model.subgraphs.size(), kUnknown) {}

  Result<std::vector<size_t>> run() {
    CARINA_TRY([[maybe_unused]] const size_t height, heightOf(0, 0));
    std::vector<size_t> found;
    for (size_t i = 0; i < heights_.size(); ++i) {
      if (heights_[i] != kUnknown) found.push_back(i);
    }
    return found;
  }

 private:
  static constexpr size_t kUnknown = SIZE_MAX, kOpen = SIZE_MAX - 1;

  /// Levels of nesting from this subgraph (included) downwards, if it is itself nested `depth` levels deep.
  Result<size_t> heightOf(size_t index, size_t depth) {
    if (heights_[index] == kOpen)
      return fail(Code::UnsupportedForm, "subgraph {} is recursive", index)
          .withRemedy("express the recursion as a WHILE");
    const auto tooDeep = [&]() -> Error {
      return Error(fail(Code::Excessive, "subgraphs are nested more than {} deep", kDeepest));
    };
    if (heights_[index] != kUnknown) {
      if (depth + heights_[index] > kDeepest) return tooDeep();
      return heights_[index];
    }
    if (depth >= kDeepest) return tooDeep();
    heights_[index] = kOpen;
    size_t height = 0;
    const auto& operators = model_.subgraphs[index].operators;
    for (size_t i = 0; i < operators.size(); ++i) {
      const auto flow = controlFlowOf(operators[i]);
      if (!flow) continue;
      for (const int64_t called : flow->subgraphs) {
        if (called < 0 || static_cast<size_t>(called) >= model_.subgraphs.size())
          return fail(Code::Damaged, "operator {} ({}) of subgraph {} runs subgraph {}, but there are {}", i,
                      operators[i].name, index, called, model_.subgraphs.size());
        CARINA_TRY(const size_t inner, heightOf(static_cast<size_t>(called), depth + 1));
        height = std::max(height, inner);
      }
    }
    return heights_[index] = height + 1;
  }

  const Model& model_;
  std::vector<size_t> heights_;  // by subgraph
};

}  // namespace

std::optional<ControlFlow> controlFlowOf(const Operator& op) {
  if (op.custom) return std::nullopt;
  const auto of = [&](ControlFlow::Kind kind, std::initializer_list<std::string_view> names) {
    ControlFlow flow{kind, {}};
    for (const std::string_view name : names) flow.subgraphs.push_back(subgraphOption(op, name));
    return flow;
  };
  if (op.name == "IF") return of(ControlFlow::Kind::If, {"then_subgraph_index", "else_subgraph_index"});
  if (op.name == "WHILE") return of(ControlFlow::Kind::While, {"cond_subgraph_index", "body_subgraph_index"});
  if (op.name == "CALL_ONCE") return of(ControlFlow::Kind::CallOnce, {"init_subgraph_index"});
  return std::nullopt;
}

Result<std::vector<size_t>> runningSubgraphs(const Model& model) {
  return Finder(model).run();
}

}  // namespace carina::tflite
