// SPDX-License-Identifier: Apache-2.0
#include "pt2/graph_builder.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "pt2/build_node.hpp"
#include "pt2/copies.hpp"
#include "pt2/refusals.hpp"

namespace carina::pt2 {
namespace {

using Tag = Argument::Tag;

std::string where(const NodeDocument& node) {
  const std::string& module = node.location->modulePath;
  return module.empty() ? node.name : fmt::format("{} (module {})", node.name, module);
}

class GraphBuilder {
 public:
  GraphBuilder(const ProgramDocument& program, const Archive& archive, const std::string& model)
      : program_(program),
        weights_(archive, model, StateDict::Section::Weights),
        constants_(archive, model, StateDict::Section::Constants),
        viewBudget_(viewBudget(archive.fileBytes())) {
    built_.graph = ir::Graph(model);
  }

  Result<BuiltProgram> run() {
    collectUses();
    Scope scope{program_.graph, built_.graph, names_, {}, false};
    CARINA_RETURN_IF_ERROR(inputs(scope));
    CARINA_RETURN_IF_ERROR(nodes(scope, 0));
    CARINA_RETURN_IF_ERROR(outputs(scope));
    findSharedStorage();
    return std::move(built_);
  }

 private:
  // Inputs and state
  // ---------------------------------------------------------------------------------------------------

  void collectUses() {
    for (const NodeDocument& node : program_.graph.nodes) {
      if (isAssertion(node.target)) continue;
      for (const NamedArgument& input : node.inputs)
        used_.insert(input.value.names.begin(), input.value.names.end());
    }
    for (const Argument& output : program_.graph.outputs)
      used_.insert(output.names.begin(), output.names.end());
    for (const OutputSpec& spec : program_.outputs) writtenTargets_.insert(spec.target);
    for (const auto& entry : program_.graph.tensors) documentNames_.insert(entry.first);
  }

  Status inputs(Scope& scope) {
    using Kind = InputSpec::Kind;
    for (size_t i = 0; i < program_.inputs.size(); ++i) {
      const InputSpec& spec = program_.inputs[i];
      const Argument& declared = program_.graph.inputs[i];
      if (spec.kind != Kind::Constant && (spec.argument.names != declared.names ||
                                          (spec.argument.tag != declared.tag && spec.kind == Kind::User))) {
        return fail("input {} of the graph and of its signature differ", i);
      }
      switch (spec.kind) {
        case Kind::Token:
          break;
        case Kind::CustomObject:
          break;
        case Kind::Constant:
          built_.inputs.push_back({spec.target, nullptr, argumentText(spec.argument)});
          break;
        case Kind::User:
          CARINA_RETURN_IF_ERROR(userInput(spec, scope));
          break;
        case Kind::Parameter:
        case Kind::Buffer:
        case Kind::TensorConstant: {
          if (auto status = stateInput(spec, scope); !status.ok())
            return std::move(status).error().at("'" + spec.target + "'");
          break;
        }
      }
    }
    return {};
  }

  Status define(Scope& scope, const std::string& name, ir::Value* value) {
    if (!scope.values.emplace(name, value).second) return fail("the value '{}' is defined twice", name);
    return {};
  }

  Status userInput(const InputSpec& spec, Scope& scope) {
    if (spec.argument.tag != Tag::Tensor) {
      const std::string name =
          spec.argument.names.empty() ? fmt::format("input{}", built_.inputs.size()) : spec.argument.names[0];
      built_.inputs.push_back({name, nullptr, argumentText(spec.argument)});
      return {};
    }
    const std::string& name = spec.argument.names[0];
    CARINA_TRY(ir::Type type, recordedType(program_.graph, name));
    ir::Value* value = built_.graph.addInput(std::move(type), names_.claim(name));
    built_.inputs.push_back({name, value, ""});
    return define(scope, name, value);
  }

  Status stateInput(const InputSpec& spec, Scope& scope) {
    using Kind = InputSpec::Kind;
    const StateKind kind = spec.kind == Kind::Parameter ? StateKind::Parameter
                           : spec.kind == Kind::Buffer  ? StateKind::Buffer
                                                        : StateKind::Constant;
    StateTensor state{spec.target, kind, spec.persistent, nullptr};
    const std::string& name = spec.argument.names[0];
    if (used_.contains(name) || writtenTargets_.contains(spec.target)) {
      const bool constant = kind == StateKind::Constant || (kind == StateKind::Buffer && !spec.persistent);
      CARINA_TRY(const StoredTensor stored, (constant ? constants_ : weights_).find(spec.target));
      CARINA_TRY(state.value, constantFor(stored, spec.target, name));
      CARINA_TRY(const ir::Type type, recordedType(program_.graph, name));
      if (state.value->type != type) {
        return fail("is {} in the archive, but {} in the graph", ir::typeText(state.value->type),
                    ir::typeText(type));
      }
      CARINA_RETURN_IF_ERROR(define(scope, name, state.value));
    }
    built_.stateNames.push_back(state.value ? state.value->name : "");
    built_.state.push_back(std::move(state));
    return {};
  }

  /// Equal views of one storage are one value: tied weights are encoded once.
  Result<ir::Value*> constantFor(const StoredTensor& stored, const std::string& fqn,
                                 const std::string& argument) {
    const ViewKey key{stored.storage.data(), stored.type, stored.offset, stored.sizes, stored.strides};
    const bool shareable = !stored.storage.empty();
    if (const auto it = views_.find(key); shareable && it != views_.end()) return it->second;
    CARINA_TRY(Tensor tensor, denseTensor(stored, viewBudget_));
    const bool clash = fqn.empty() || documentNames_.contains(fqn);
    ir::Value* value = built_.graph.addConstant(std::move(tensor), names_.claim(clash ? argument : fqn));
    if (shareable) views_.emplace(key, value);
    return value;
  }

  void findSharedStorage() {
    for (auto it = views_.begin(); it != views_.end(); ++it) {
      const auto next = std::next(it);
      if (next == views_.end() || std::get<0>(next->first) != std::get<0>(it->first)) continue;
      built_.sharedStorage.push_back(it->second);
      built_.sharedStorage.push_back(next->second);
    }
  }

  // Nodes
  // --------------------------------------------------------------------------------------------------------------

  Status nodes(Scope& scope, int depth) {
    for (const NodeDocument& node : scope.document.nodes) {
      if (isAssertion(node.target)) continue;
      const bool region = isGradRegion(node.target) || isAutocastRegion(node.target);
      auto status = region ? inlineRegion(node, scope, depth) : buildNode(node, scope);
      if (!status.ok()) return std::move(status).error().at(where(node));
      if (!region) noteCopy(node, scope);
    }
    return {};
  }

  void noteCopy(const NodeDocument& node, const Scope& scope) {
    if (node.inputs.empty() || node.outputs.size() != 1 || node.inputs[0].value.tag != Tag::Tensor ||
        node.outputs[0].tag != Tag::Tensor)
      return;
    const auto& tensors = scope.document.tensors;
    const std::string& name = node.outputs[0].names[0];
    const auto from = tensors.find(node.inputs[0].value.names[0]), to = tensors.find(name);
    if (from == tensors.end() || to == tensors.end() || !copied(node.target, from->second, to->second))
      return;
    if (const auto value = scope.values.find(name); value != scope.values.end())
      built_.copies.insert(value->second);
  }

  /// The arguments after the subgraph are bound to its inputs in order.
  Status inlineRegion(const NodeDocument& node, Scope& scope, int depth) {
    const auto graphAt = std::find_if(node.inputs.begin(), node.inputs.end(),
                                      [](const NamedArgument& a) { return a.value.tag == Tag::Graph; });
    if (graphAt == node.inputs.end()) return fail("{} has no subgraph", node.target);
    const GraphDocument& region = *graphAt->value.graph;
    Scope inner{region, scope.graph, scope.names, {}, scope.autocast || isAutocastRegion(node.target)};
    const size_t given = static_cast<size_t>(node.inputs.end() - graphAt) - 1;
    if (given != region.inputs.size())
      return fail("a subgraph with {} inputs is given {}", region.inputs.size(), given);
    for (size_t i = 0; i < given; ++i) {
      const Argument& outside = (graphAt + 1 + static_cast<std::ptrdiff_t>(i))->value;
      const Argument& inside = region.inputs[i];
      if (outside.tag != Tag::Tensor || inside.tag != Tag::Tensor)
        return fail("a subgraph takes something else than tensors");
      CARINA_TRY(ir::Value * value, findValue(scope, outside.names[0]));
      CARINA_TRY(const ir::Type type, recordedType(region, inside.names[0]));
      if (type != value->type) {
        return fail("a subgraph takes {} but is given {}", ir::typeText(type), ir::typeText(value->type));
      }
      CARINA_RETURN_IF_ERROR(define(inner, inside.names[0], value));
    }
    CARINA_RETURN_IF_ERROR(nodes(inner, depth + 1));
    if (node.outputs.size() != region.outputs.size()) {
      return fail("a subgraph with {} outputs gives {}", region.outputs.size(), node.outputs.size());
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i].tag != Tag::Tensor || region.outputs[i].tag != Tag::Tensor) continue;
      CARINA_TRY(ir::Value * value, findValue(inner, region.outputs[i].names[0]));
      CARINA_RETURN_IF_ERROR(define(scope, node.outputs[i].names[0], value));
    }
    return {};
  }

  // Outputs
  // ------------------------------------------------------------------------------------------------------------

  Status outputs(Scope& scope) {
    using Kind = OutputSpec::Kind;
    std::vector<ir::Value*> values;
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      const OutputSpec& spec = program_.outputs[i];
      if (spec.argument.names != program_.graph.outputs[i].names)
        return fail("output {} of the graph and of its signature differ", i);
      switch (spec.kind) {
        case Kind::User: {
          if (spec.argument.tag != Tag::Tensor) {
            built_.outputs.push_back(
                {fmt::format("output{}", built_.outputs.size()), std::nullopt, argumentText(spec.argument)});
            break;
          }
          const std::string& name = spec.argument.names[0];
          CARINA_TRY(ir::Value * value, findValue(scope, name));
          built_.outputs.push_back({name, values.size(), ""});
          values.push_back(value);
          break;
        }
        case Kind::BufferMutation:
        case Kind::ParameterMutation:
        case Kind::InputMutation:
          CARINA_RETURN_IF_ERROR(signatureWrite(spec, scope));
          break;
        case Kind::Token:
        case Kind::Training:
          break;
      }
    }
    built_.graph.setOutputs(std::move(values));
    return {};
  }

  Status signatureWrite(const OutputSpec& spec, Scope& scope) {
    CARINA_TRY(ir::Value * value, findValue(scope, spec.argument.names[0]));
    ir::Value* target = nullptr;
    if (spec.kind == OutputSpec::Kind::InputMutation) {
      CARINA_TRY(target, findValue(scope, spec.target));
    } else {
      const auto it = std::find_if(built_.state.begin(), built_.state.end(),
                                   [&](const StateTensor& s) { return s.name == spec.target; });
      if (it == built_.state.end() || !it->value)
        return fail("the signature writes '{}', which the program does not have", spec.target);
      target = it->value;
    }
    if (value->type != target->type) {
      return fail("'{}' is {}, but {} is written to it", spec.target, ir::typeText(target->type),
                  ir::typeText(value->type));
    }
    built_.writes.push_back({target, value});
    return {};
  }

  using ViewKey = std::tuple<const std::byte*, const ScalarType*, int64_t, Shape, Shape>;

  const ProgramDocument& program_;
  StateDict weights_, constants_;
  Budget viewBudget_;
  BuiltProgram built_;
  ValueNames names_;
  std::unordered_set<std::string> used_, writtenTargets_, documentNames_;
  std::map<ViewKey, ir::Value*> views_;
};

}  // namespace

Result<BuiltProgram> buildGraph(const ProgramDocument& program, const Archive& archive,
                                const std::string& model) {
  return GraphBuilder(program, archive, model).run();
}

}  // namespace carina::pt2
