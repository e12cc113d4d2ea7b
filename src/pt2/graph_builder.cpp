// SPDX-License-Identifier: Apache-2.0
#include "pt2/graph_builder.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "aten/control_flow.hpp"
#include "ir/invalid_node.hpp"
#include "pt2/build_complex.hpp"
#include "pt2/build_node.hpp"
#include "pt2/complex_numbers.hpp"
#include "pt2/copies.hpp"
#include "pt2/fourier.hpp"
#include "pt2/numbers.hpp"
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
        viewBudget_(viewBudget(archive.fileBytes())),
        fourier_(archive.fileBytes(), &built_.graph) {
    built_.graph = ir::Graph(model);
  }

  Result<BuiltProgram> run() {
    collectUses();
    Scope scope{program_.graph, built_.graph, names_, {}, false, {}, &fourier_};
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
        return fail(Code::InvalidGraph, "input {} of the graph and of its signature differ", i);
      }
      switch (spec.kind) {
        case Kind::Token:
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
    if (!scope.values.emplace(name, value).second)
      return fail(Code::InvalidGraph, "the value '{}' is defined twice", name);
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
    const bool complex = isComplex(program_.graph, name);
    CARINA_TRY(ir::Type type, recordedType(program_.graph, complex ? partName(name, Part::Real) : name));
    if (complex) type.shape.push_back(2);
    ir::Value* value = built_.graph.addInput(std::move(type), names_.claim(name));
    built_.inputs.push_back({name, value, ""});
    if (!complex) return define(scope, name, value);
    const Parts parts = splitParts(ir::Builder(built_.graph), value);
    parts.real->name = names_.claim(partName(name, Part::Real));
    parts.imag->name = names_.claim(partName(name, Part::Imag));
    return defineParts(scope, name, parts);
  }

  Status stateInput(const InputSpec& spec, Scope& scope) {
    using Kind = InputSpec::Kind;
    const StateKind kind = spec.kind == Kind::Parameter ? StateKind::Parameter
                           : spec.kind == Kind::Buffer  ? StateKind::Buffer
                                                        : StateKind::Constant;
    const std::string& name = spec.argument.names[0];
    StateTensor state{spec.target, kind, spec.persistent, nullptr};
    if (!used_.contains(name) && !writtenTargets_.contains(spec.target)) return addState(std::move(state));
    const bool constant = kind == StateKind::Constant || (kind == StateKind::Buffer && !spec.persistent);
    CARINA_TRY(const StoredTensor stored, (constant ? constants_ : weights_).find(spec.target));
    if (!isComplex(program_.graph, name)) return readState(std::move(state), stored, name, scope);
    if (!stored.type->name.starts_with("complex"))
      return fail(Code::InvalidGraph, "is {} in the archive, but complex in the graph", stored.type->name);
    for (const Part part : {Part::Real, Part::Imag}) {
      CARINA_TRY(const StoredTensor half, partOf(stored, part));
      StateTensor partState = state;
      partState.name = partName(state.name, part);
      CARINA_RETURN_IF_ERROR(readState(std::move(partState), half, partName(name, part), scope));
    }
    return {};
  }

  Status readState(StateTensor state, const StoredTensor& stored, const std::string& name, Scope& scope) {
    CARINA_TRY(state.value, constantFor(stored, state.name, name));
    CARINA_TRY(const ir::Type type, recordedType(program_.graph, name));
    if (state.value->type != type) {
      return fail(Code::InvalidGraph, "is {} in the archive, but {} in the graph",
                  ir::typeText(state.value->type), ir::typeText(type));
    }
    CARINA_RETURN_IF_ERROR(define(scope, name, state.value));
    return addState(std::move(state));
  }

  Status addState(StateTensor state) {
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
      auto status = region                       ? inlineRegion(node, scope, depth)
                    : isControlFlow(node.target) ? controlFlow(node, scope, depth)
                    : isNumber(node)             ? buildNumber(node, scope)
                                                 : operation(node, scope);
      if (!status.ok()) return std::move(status).error().at(scope.path + where(node));
      if (!region) noteCopy(node, scope);
    }
    return {};
  }

  Status operation(const NodeDocument& node, Scope& scope) {
    if (!computesWithComplex(scope.document, node)) return buildNode(node, scope);
    return ir::rejectInvalidNodes(node.name, [&] { return buildComplexNode(node, scope); });
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
    for (const std::string& copy : {name, partName(name, Part::Real), partName(name, Part::Imag)}) {
      if (const auto value = scope.values.find(copy); value != scope.values.end())
        built_.copies.insert(value->second);
    }
  }

  /// The arguments after the subgraph are bound to its inputs in order.
  Status inlineRegion(const NodeDocument& node, Scope& scope, int depth) {
    const auto graphAt = std::find_if(node.inputs.begin(), node.inputs.end(),
                                      [](const NamedArgument& a) { return a.value.tag == Tag::Graph; });
    if (graphAt == node.inputs.end()) return fail(Code::InvalidGraph, "{} has no subgraph", node.target);
    const GraphDocument& region = *graphAt->value.graph;
    Scope inner{region,     scope.graph,  scope.names, {}, scope.autocast || isAutocastRegion(node.target),
                scope.path, scope.fourier};
    const size_t given = static_cast<size_t>(node.inputs.end() - graphAt) - 1;
    if (given != region.inputs.size())
      return fail(Code::InvalidGraph, "a subgraph with {} inputs gets {}", region.inputs.size(), given);
    for (size_t i = 0; i < given; ++i) {
      const Argument& outside = (graphAt + 1 + static_cast<std::ptrdiff_t>(i))->value;
      const Argument& inside = region.inputs[i];
      if (outside.tag != Tag::Tensor || inside.tag != Tag::Tensor)
        return fail(Code::InvalidGraph, "a subgraph has an input that is not a tensor");
      const bool complex = isComplex(region, inside.names[0]);
      CARINA_TRY(const Parts value, findParts(scope, outside.names[0]));
      CARINA_TRY(const ir::Type type,
                 recordedType(region, complex ? partName(inside.names[0], Part::Real) : inside.names[0]));
      if (complex != isComplex(scope.document, outside.names[0]))
        return fail(Code::InvalidGraph, "a subgraph takes {} numbers but gets {} ones",
                    complex ? "complex" : "real", complex ? "real" : "complex");
      if (type != value.real->type) {
        return fail(Code::InvalidGraph, "a subgraph takes {} but gets {}", ir::typeText(type),
                    ir::typeText(value.real->type));
      }
      CARINA_RETURN_IF_ERROR(bind(inner, inside.names[0], value));
    }
    CARINA_RETURN_IF_ERROR(nodes(inner, depth + 1));
    if (node.outputs.size() != region.outputs.size()) {
      return fail(Code::InvalidGraph, "a subgraph with {} outputs returns {}", region.outputs.size(),
                  node.outputs.size());
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i].tag != Tag::Tensor || region.outputs[i].tag != Tag::Tensor) continue;
      const std::string &inside = region.outputs[i].names[0], &outside = node.outputs[i].names[0];
      CARINA_TRY(const Parts value, findParts(inner, inside));
      if (isComplex(region, inside) != isComplex(scope.document, outside))
        return fail(Code::InvalidGraph, "a subgraph returns {} numbers in place of {} ones",
                    isComplex(region, inside) ? "complex" : "real",
                    isComplex(region, inside) ? "real" : "complex");
      CARINA_RETURN_IF_ERROR(bind(scope, outside, value));
    }
    return {};
  }

  Status bind(Scope& scope, const std::string& name, const Parts& value) {
    return isComplex(scope.document, name) ? defineParts(scope, name, value)
                                           : define(scope, name, value.real);
  }

  // Control flow
  // -------------------------------------------------------------------------------------------------------

  static bool isNumber(const NodeDocument& node) {
    return givesNumber(node.target) && node.outputs.size() == 1 && node.outputs[0].tag == Tag::Symbolic;
  }

  /// cond(pred, graph, graph, [operands]) or while_loop(graph, graph, [carried], [additional]).
  Status controlFlow(const NodeDocument& node, Scope& scope, int depth) {
    const bool loop = operatorName(node.target) == aten::whileLoopDef().name;
    const size_t firstGraph = loop ? 0 : 1;
    const auto given = [&](size_t i) -> const Argument& { return node.inputs[i].value; };
    const bool fits = node.inputs.size() == 4 && given(firstGraph).tag == Tag::Graph &&
                      given(firstGraph + 1).tag == Tag::Graph;
    if (!fits)
      return fail(Code::InvalidGraph, "{} has arguments that torch.export does not write", node.target);
    ir::NodeSpec spec;
    spec.def = loop ? &aten::whileLoopDef() : &aten::condDef();
    spec.location = placed(node.location, scope);
    if (loop) {
      CARINA_TRY(auto carried, valuesOf(given(2), scope));
      spec.operands.push_back(std::move(carried));
    } else {
      CARINA_TRY(ir::Value* const predicate, predicateOf(given(0), node, scope));
      spec.operands.push_back({predicate});
    }
    CARINA_TRY(auto rest, valuesOf(given(3), scope));
    spec.operands.push_back(std::move(rest));
    for (const Argument& output : node.outputs) {
      if (output.tag != Tag::Tensor)
        return fail(Code::InvalidGraph, "a result of {} is not a tensor", node.target);
      CARINA_TRY(ir::Type type, recordedType(scope.document, output.names[0]));
      spec.types.push_back(std::move(type));
    }
    CARINA_TRY(ir::Node* const created, scope.graph.create(std::move(spec)));
    for (size_t i = 0; i < 2; ++i) {
      CARINA_TRY(ir::Graph region, regionOf(node, given(firstGraph + i), scope, depth));
      created->setRegion(i, std::move(region));
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const std::string& name = node.outputs[i].names[0];
      created->result(i)->name = names_.claim(name);
      CARINA_RETURN_IF_ERROR(define(scope, name, created->result(i)));
    }
    return {};
  }

  /// A predicate is a tensor, a computed number, or a constant.
  Result<ir::Value*> predicateOf(const Argument& argument, const NodeDocument& node, Scope& scope) {
    if (argument.tag == Tag::Bool)
      return scope.graph.addConstant(convert(Tensor::scalar(argument.ints[0]), DType::Bool),
                                     names_.claim(node.name + "_pred"));
    if ((argument.tag != Tag::Tensor && argument.tag != Tag::Symbolic) || argument.names.size() != 1)
      return fail(Code::InvalidGraph, "the predicate is {}, expected a tensor", argument.kind);
    return findValue(scope, argument.names[0]);
  }

  static Result<std::vector<ir::Value*>> valuesOf(const Argument& argument, const Scope& scope) {
    const bool none = argument.tag == Tag::None || (argument.tag == Tag::Ints && argument.ints.empty());
    if (argument.tag != Tag::Tensors && !none)
      return fail(Code::InvalidGraph, "expected tensors, got {}", argument.kind);
    std::vector<ir::Value*> values;
    for (const std::string& name : argument.names) {
      CARINA_TRY(ir::Value* const value, findValue(scope, name));
      values.push_back(value);
    }
    return values;
  }

  Result<ir::Graph> regionOf(const NodeDocument& node, const Argument& argument, const Scope& outside,
                             int depth) {
    const GraphDocument& document = *argument.graph;
    ir::Graph graph(argument.names[0]);
    Scope scope{document,         graph,
                names_,           {},
                outside.autocast, outside.path + node.name + "." + argument.names[0] + ".",
                outside.fourier};
    for (const Argument& input : document.inputs) {
      if (input.tag != Tag::Tensor)
        return fail(Code::InvalidGraph, "{} has an input that is not a tensor", graph.name);
      const std::string& name = input.names[0];
      CARINA_TRY(ir::Type type, recordedType(document, name));
      CARINA_RETURN_IF_ERROR(define(scope, name, graph.addInput(std::move(type), names_.claim(name))));
    }
    CARINA_RETURN_IF_ERROR(nodes(scope, depth + 1));
    std::vector<ir::Value*> outputs;
    for (const Argument& output : document.outputs) {
      const bool value = output.tag == Tag::Tensor || output.tag == Tag::Symbolic;
      if (!value || output.names.size() != 1)
        return fail(Code::InvalidGraph, "{} returns {}", graph.name, output.kind);
      CARINA_TRY(ir::Value* const result, findValue(scope, output.names[0]));
      outputs.push_back(result);
    }
    graph.setOutputs(std::move(outputs));
    return graph;
  }

  // Outputs
  // ------------------------------------------------------------------------------------------------------------

  Status outputs(Scope& scope) {
    using Kind = OutputSpec::Kind;
    std::vector<ir::Value*> values;
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      const OutputSpec& spec = program_.outputs[i];
      if (spec.argument.names != program_.graph.outputs[i].names)
        return fail(Code::InvalidGraph, "output {} of the graph and of its signature differ", i);
      switch (spec.kind) {
        case Kind::User: {
          if (spec.argument.tag != Tag::Tensor) {
            built_.outputs.push_back(
                {fmt::format("output{}", built_.outputs.size()), std::nullopt, argumentText(spec.argument)});
            break;
          }
          const std::string& name = spec.argument.names[0];
          CARINA_TRY(const Parts value, findParts(scope, name));
          built_.outputs.push_back({name, values.size(), ""});
          const bool complex = isComplex(program_.graph, name);
          values.push_back(complex ? joinParts(ir::Builder(built_.graph), value) : value.real);
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
    const std::string& name = spec.argument.names[0];
    if (!isComplex(program_.graph, name)) return signatureWrite(spec, name, spec.target, scope);
    if (spec.kind == OutputSpec::Kind::InputMutation) return {};  // such writes are left out
    for (const Part part : {Part::Real, Part::Imag})
      CARINA_RETURN_IF_ERROR(signatureWrite(spec, partName(name, part), partName(spec.target, part), scope));
    return {};
  }

  Status signatureWrite(const OutputSpec& spec, const std::string& written, const std::string& name,
                        Scope& scope) {
    CARINA_TRY(ir::Value * value, findValue(scope, written));
    ir::Value* target = nullptr;
    if (spec.kind == OutputSpec::Kind::InputMutation) {
      CARINA_TRY(target, findValue(scope, name));
    } else {
      const auto it = std::find_if(built_.state.begin(), built_.state.end(),
                                   [&](const StateTensor& s) { return s.name == name; });
      if (it == built_.state.end() || !it->value)
        return fail(Code::InvalidGraph, "the signature writes '{}', which the program does not have", name);
      target = it->value;
    }
    if (value->type != target->type) {
      return fail(Code::InvalidGraph, "'{}' is {}, but {} is written to it", name, ir::typeText(target->type),
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
  Fourier fourier_;
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
