// SPDX-License-Identifier: Apache-2.0
#include "pt2/state_writes.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "decompose/aliases.hpp"
#include "decompose/composites.hpp"
#include "decompose/functionalize.hpp"
#include "ir/verifier.hpp"

namespace carina::pt2 {
namespace {

/// A tensor from outside the graph that some node (or the signature) writes.
struct Written {
  ir::Value* target = nullptr;    // input or constant; a constant is replaced by an input
  std::string name;               // for messages
  std::string writer;             // where it is written
  std::optional<Tensor> initial;  // contents of a constant
  size_t output = 0;              // graph output that carries the new contents
};

/// Finds, in order of writing, the inputs and constants that in-place operators write, directly or through
/// views.
class WriteFinder {
 public:
  explicit WriteFinder(const ir::Graph& graph) {
    for (const ir::Node* node : graph.nodes()) visit(*node);
  }
  const std::vector<std::pair<ir::Value*, const ir::Node*>>& writes() const { return writes_; }

 private:
  ir::Value* rootOf(ir::Value* value) const {
    const auto it = roots_.find(value);
    return it == roots_.end() ? value : it->second;
  }
  void visit(const ir::Node& node) {
    const bool writes = node.def().has(ir::kInPlace);
    if ((!writes && !node.def().has(ir::kView)) || node.operands().empty() || !node.operands()[0]) return;
    ir::Value* root = rootOf(node.operands()[0]);
    for (ir::Value* result : node.results()) {
      if (result->dtype() == node.operands()[0]->dtype()) roots_[result] = root;  // a conversion copies
    }
    // operators such as detach_ and squeeze_ change the view, not the contents
    if (!writes || changesViewOnly(node.opName()) || root->kind() == ir::Value::Kind::Result) return;
    const bool known =
        std::any_of(writes_.begin(), writes_.end(), [&](const auto& write) { return write.first == root; });
    if (!known) writes_.emplace_back(root, &node);
  }
  static bool changesViewOnly(std::string_view op) {
    static constexpr std::string_view kViews[] = {"aten.detach_",    "aten.squeeze_", "aten.unsqueeze_",
                                                  "aten.transpose_", "aten.t_",       "aten.requires_grad_"};
    return std::any_of(std::begin(kViews), std::end(kViews), [&](std::string_view view) {
      return op.substr(0, view.size()) == view && op.size() > view.size() && op[view.size()] == '.';
    });
  }

  std::unordered_map<const ir::Value*, ir::Value*> roots_;
  std::vector<std::pair<ir::Value*, const ir::Node*>> writes_;
};

/// Operators that replace the entire contents of operand 0.
bool overwrites(std::string_view op) {
  static constexpr std::string_view kOps[] = {"aten.copy.default", "aten.fill.Scalar", "aten.fill.Tensor",
                                              "aten.zero.default"};
  return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
}

/// Whether `value` is computed from the contents of `source`.
bool dependsOn(const ir::Value* value, const ir::Value* source) {
  std::vector<const ir::Value*> open{value};
  std::unordered_set<const ir::Value*> seen;
  while (!open.empty()) {
    const ir::Value* current = open.back();
    open.pop_back();
    if (current == source) return true;
    if (!current->producer() || !seen.insert(current).second) continue;
    const auto& operands = current->producer()->operands();
    for (size_t i = overwrites(current->producer()->opName()) ? 1 : 0; i < operands.size(); ++i) {
      if (operands[i]) open.push_back(operands[i]);
    }
  }
  return false;
}

class Resolver {
 public:
  Resolver(BuiltProgram& program, const ReadOptions& options, std::vector<Diagnostic>& warnings)
      : program_(program), options_(options), warnings_(warnings) {
    userOutputs_ = program.graph.outputs();
  }

  Status run(ExportedProgram& exported) {
    CARINA_RETURN_IF_ERROR(collect());
    for (const Written& written : written_) exported.written.push_back(written.name);
    CARINA_RETURN_IF_ERROR(collectShared());
    carryNewContents();
    CARINA_RETURN_IF_ERROR(decompose::replaceAliases(program_.graph, decompose::Copies::Keep));
    CARINA_RETURN_IF_ERROR(decompose::functionalize(program_.graph, program_.copies));
    CARINA_RETURN_IF_ERROR(verifyPass());
    const size_t results = userOutputs_.size();
    const std::vector<size_t> state = observable(results);
    if (!state.empty() && options_.state == StatePolicy::Refuse) return refusal(state);
    settle(results, state, exported.exposedBuffers);
    CARINA_RETURN_IF_ERROR(decompose::replaceAliases(program_.graph, decompose::Copies::Replace));
    CARINA_RETURN_IF_ERROR(verifyPass());
    return decompose::replaceComposites(program_.graph);
  }

 private:
  /// The reader verifies the graph at its end in any case: invalid contents of a file are an error.
  Status verifyPass() const { return ir::verifiesEachPass() ? ir::verify(program_.graph) : Status(); }

  std::string nameOf(const ir::Value* value) const {
    for (size_t i = 0; i < program_.state.size(); ++i) {
      if (!value->name.empty() && program_.stateNames[i] == value->name) return program_.state[i].name;
    }
    return value->name;
  }

  Status collect() {
    const WriteFinder finder(program_.graph);
    for (const auto& [root, node] : finder.writes()) {
      CARINA_RETURN_IF_ERROR(add(root, fmt::format("{} at {}", node->opName(), node->where())));
    }
    for (const SignatureWrite& write : program_.writes) {
      CARINA_RETURN_IF_ERROR(add(write.target, "the program's signature"));
    }
    return {};
  }

  bool isShared(const std::string& name) const {
    const auto& shared = options_.sharedState;
    return options_.state == StatePolicy::Expose &&
           std::find(shared.begin(), shared.end(), name) != shared.end();
  }

  /// State that only other methods write.
  Status collectShared() {
    for (const auto& constant : program_.graph.constants()) {
      if (isShared(nameOf(constant.get())))
        CARINA_RETURN_IF_ERROR(add(constant.get(), "another method of the program"));
    }
    return {};
  }

  Status add(ir::Value* target, std::string writer) {
    const bool known =
        std::any_of(written_.begin(), written_.end(), [&](const Written& w) { return w.target == target; });
    if (known) return {};
    const std::string name = nameOf(target);
    if (target->isInput()) {
      warnings_.push_back({fmt::format("is written by {}; the caller's tensor keeps its contents", writer),
                           "", "", "input " + name});
      return {};
    }
    const auto& shared = program_.sharedStorage;
    if (std::find(shared.begin(), shared.end(), target) != shared.end()) {
      return fail(
                 Code::UnsupportedForm,
                 "is written by {} and shares its storage with another tensor that is a different view of it",
                 writer)
          .at("'" + name + "'")
          .withRemedy("Give the buffer its own storage: register_buffer(name, tensor.clone()).");
    }
    written_.push_back({target, name, std::move(writer), target->constant(), 0});
    return {};
  }

  /// Turns each written constant into an input, with an output for its final contents.
  void carryNewContents() {
    std::vector<ir::Value*> outputs = userOutputs_;
    for (Written& written : written_) {
      ir::Value* constant = written.target;
      std::string name = std::move(constant->name);
      constant->name.clear();
      written.target = program_.graph.addInput(constant->type, std::move(name));
      program_.graph.replaceAllUses(constant, written.target);
      for (ir::Value*& output : outputs) {
        if (output == constant) output = written.target;
      }
      ir::Value* end = written.target;
      for (const SignatureWrite& write : program_.writes) {
        if (write.target == constant) end = write.newValue == constant ? written.target : write.newValue;
      }
      written.output = outputs.size();
      outputs.push_back(end);
    }
    program_.graph.setOutputs(std::move(outputs));
    program_.graph.eraseUnusedConstants();
  }

  /// Written tensors on which a result of this call or, through another one, of a later call depends, and
  /// those that other methods share.
  std::vector<size_t> observable(size_t results) const {
    const auto& outputs = program_.graph.outputs();
    std::vector<const ir::Value*> seen(outputs.begin(),
                                       outputs.begin() + static_cast<std::ptrdiff_t>(results));
    std::vector<bool> is(written_.size(), false);
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = 0; i < written_.size(); ++i) {
        if (is[i]) continue;
        is[i] = isShared(written_[i].name) || std::any_of(seen.begin(), seen.end(), [&](const ir::Value* v) {
                  return dependsOn(v, written_[i].target);
                });
        if (!is[i]) continue;
        changed = true;
        seen.push_back(outputs[written_[i].output]);
      }
    }
    std::vector<size_t> state;
    for (size_t i = 0; i < is.size(); ++i) {
      if (is[i]) state.push_back(i);
    }
    return state;
  }

  Error refusal(const std::vector<size_t>& state) const {
    std::vector<Diagnostic> diagnostics;
    diagnostics.reserve(state.size());
    for (size_t i : state) {
      diagnostics.push_back(
          {fmt::format("keeps state from call to call: {} writes it, and the results depend on it",
                       written_[i].writer),
           "Make it an input of forward() and return its new value, so that the caller keeps the state.", "",
           "'" + written_[i].name + "'"});
    }
    return Error(std::move(diagnostics));
  }

  /// Exposes the state; everything else becomes a constant again that nothing writes.
  void settle(size_t results, const std::vector<size_t>& state, std::vector<ExposedBuffer>& exposed) {
    const std::vector<ir::Value*> all = program_.graph.outputs();
    std::vector<ir::Value*> outputs(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(results));
    for (size_t i : state) outputs.push_back(all[written_[i].output]);
    program_.graph.setOutputs(outputs);
    program_.graph.eraseDeadNodes();
    for (size_t i = written_.size(); i-- > 0;) {
      if (std::find(state.begin(), state.end(), i) == state.end()) restore(written_[i]);
    }
    for (size_t k = 0; k < state.size(); ++k) {
      const Written& written = written_[state[k]];
      const auto& inputs = program_.graph.inputs();
      const auto at = std::find(inputs.begin(), inputs.end(), written.target) - inputs.begin();
      exposed.push_back({written.name, static_cast<size_t>(at), results + k, *written.initial});
    }
  }

  void restore(const Written& written) {
    warnings_.push_back(
        {fmt::format("is written by {}, but no result depends on it; the write was left out", written.writer),
         "", "", "'" + written.name + "'"});
    if (!written.target->unused()) {
      ir::Value* value = program_.graph.addConstant(*written.initial, std::move(written.target->name));
      program_.graph.replaceAllUses(written.target, value);
    }
    const auto& inputs = program_.graph.inputs();
    program_.graph.removeInput(
        static_cast<size_t>(std::find(inputs.begin(), inputs.end(), written.target) - inputs.begin()));
  }

  BuiltProgram& program_;
  const ReadOptions& options_;
  std::vector<Diagnostic>& warnings_;
  std::vector<ir::Value*> userOutputs_;
  std::vector<Written> written_;
};

}  // namespace

Status resolveWrites(BuiltProgram& program, const ReadOptions& options, ExportedProgram& exported) {
  return Resolver(program, options, exported.warnings).run(exported);
}

}  // namespace carina::pt2
