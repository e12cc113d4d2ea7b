// SPDX-License-Identifier: Apache-2.0
#include "ir/verifier.hpp"

#include <cstdlib>
#include <unordered_set>

namespace carina::ir {
namespace {

class Verifier {
 public:
  void graph(const Graph& graph) {
    std::unordered_set<const Value*> defined;
    defined.reserve(graph.inputs().size() + graph.constants().size() + graph.numNodes());
    for (const Value* input : graph.inputs()) defined.insert(input);
    for (const auto& constant : graph.constants()) defined.insert(constant.get());
    for (const Node* node : graph.nodes()) {
      for (const Value* operand : node->operands()) {
        if (operand && !defined.contains(operand))
          add(*node, fail(Code::InvalidGraph, "operand is used before it is defined"));
      }
      if (errors_.size() >= kMaxErrors) return;
      check(*node);
      for (const Value* result : node->results()) defined.insert(result);
      for (const auto& region : node->regions()) {
        if (region) this->graph(*region);
      }
    }
    for (const Value* output : graph.outputs()) {
      if (!output || !defined.contains(output)) {
        errors_.push_back({fmt::format("an output of graph @{} is not defined in it", graph.name), "", "", "",
                           Code::InvalidGraph});
      }
    }
  }

  Status status() && {
    if (errors_.empty()) return {};
    return Error(std::move(errors_));
  }

 private:
  static constexpr size_t kMaxErrors = 20;

  void add(const Node& node, Error error) {
    for (const Diagnostic& diagnostic : std::move(error).at(node.where()).diagnostics()) {
      if (errors_.size() < kMaxErrors) errors_.push_back(diagnostic);
    }
  }

  void check(const Node& node) {
    const OpDef& def = node.def();
    for (size_t i = 0; i < def.attributes.size(); ++i) {
      if (!attributeFits(def.attributes[i], node.attribute(i))) {
        add(node, fail(Code::InvalidGraph, "attribute '{}' of {} has the wrong kind", def.attributes[i].name,
                       def.name));
        return;
      }
    }
    for (const Value* result : node.results()) {
      if (!checkedNumElements(result->shape())) {
        add(node, fail(Code::InvalidGraph, "{} has a result of impossible shape {}", def.name,
                       shapeText(result->shape())));
        return;
      }
    }
    if (def.infer) {
      auto types = def.infer(node);
      if (!types.ok()) {
        add(node, std::move(types).error());
        return;
      }
      for (size_t i = 0; i < node.results().size() && i < types->size(); ++i) {
        if ((*types)[i] != node.result(i)->type) {
          add(node, fail(Code::InvalidGraph, "result {} of {} is recorded as {}, but its operands imply {}",
                         i, def.name, typeText(node.result(i)->type), typeText((*types)[i])));
          return;
        }
      }
    }
    if (def.verify) {
      if (auto status = def.verify(node); !status.ok()) add(node, std::move(status).error());
    }
  }

  std::vector<Diagnostic> errors_;
};

}  // namespace

Status verify(const Graph& graph) {
  Verifier verifier;
  verifier.graph(graph);
  return std::move(verifier).status();
}

bool verifiesEachPass() {
#ifdef CARINA_SANITIZED
  return true;
#else
  static const bool asked = std::getenv("CARINA_VERIFY_EACH_PASS") != nullptr;
  return asked;
#endif
}

void checkVerified(const Graph& graph, std::string_view pass) {
  const Status status = verify(graph);
  if (status.ok()) return;
  const std::string why = fmt::format("'{}' left an invalid graph", pass);
  checkFailed(status.error().str().c_str(), __FILE__, __LINE__, why.c_str());
}

}  // namespace carina::ir
