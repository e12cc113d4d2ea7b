// SPDX-License-Identifier: Apache-2.0
#include "pt2/refusals.hpp"

#include <algorithm>
#include <unordered_set>

#include "decompose/composites.hpp"
#include "ir/extents.hpp"
#include "pt2/build_complex.hpp"
#include "pt2/complex_node.hpp"
#include "pt2/numbers.hpp"
#include "pt2/scalar_type.hpp"
#include "pt2/size_expression.hpp"
#include "pt2/specialize.hpp"

namespace carina::pt2 {
namespace {

using Tag = Argument::Tag;

constexpr size_t kMaxDiagnostics = 20;
constexpr std::string_view kDataRemedy =
    "Sizes must not depend on values: rewrite this part with torch.where, masks or torch.topk of a fixed "
    "size.";

const Argument* argumentNamed(const NodeDocument& node, std::string_view name) {
  const auto it = std::find_if(node.inputs.begin(), node.inputs.end(),
                               [&](const NamedArgument& a) { return a.name == name; });
  return it == node.inputs.end() ? nullptr : &it->value;
}
bool isTrue(const Argument* argument) {
  return argument && argument->tag == Tag::Bool && argument->ints[0] != 0;
}
bool isPositive(const Argument* argument) {
  return argument && argument->tag == Tag::Real && argument->reals[0] > 0;
}
bool isGiven(const Argument* argument) {
  return argument && argument->tag == Tag::Tensor;
}

std::string baseName(std::string_view target) {
  const std::string_view name = operatorName(target);
  const size_t first = name.find('.');
  if (first == std::string_view::npos) return std::string(name);
  const size_t second = name.find('.', first + 1);
  std::string base(name.substr(first + 1, second == std::string_view::npos ? second : second - first - 1));
  if (base.size() > 1 && base.back() == '_') base.pop_back();
  return base;
}

class Checker {
 public:
  explicit Checker(const ProgramDocument& program) : program_(program) {}

  Status run() {
    for (size_t i = 0; i < program_.inputs.size(); ++i) input(program_.inputs[i]);
    outputs();
    if (!dynamic_) nodes(program_.graph);
    if (diagnostics_.empty()) return {};
    return Error(std::move(diagnostics_));
  }

 private:
  void add(Code code, std::string place, std::string message, std::string remedy) {
    if (diagnostics_.size() < kMaxDiagnostics)
      diagnostics_.push_back({std::move(message), std::move(remedy), "", std::move(place), code});
  }
  std::string where(const NodeDocument& node) const {
    const std::string module = node.location ? node.location->modulePath : std::string();
    const std::string name = path_ + node.name;
    return module.empty() ? name : fmt::format("{} (module {})", name, module);
  }

  // Inputs and outputs
  // -----------------------------------------------------------------------------------------

  void input(const InputSpec& spec) {
    using Kind = InputSpec::Kind;
    if (spec.kind == Kind::CustomObject) {
      return add(Code::UnsupportedForm, spec.target, "is a custom object (TorchBind)",
                 "Only tensors can be inputs and attributes of an exported model.");
    }
    if (spec.kind != Kind::User) return;
    const std::string place =
        spec.argument.names.empty() ? std::string("input") : "input " + spec.argument.names[0];
    if (spec.argument.tag == Tag::Symbolic) {
      dynamic_ = true;
      return add(Code::DependsOnValues, place, "is a number that is known only when the program runs",
                 "Pass it as a constant at export.");
    }
    if (spec.argument.tag != Tag::Tensor) return;
    const auto it = program_.graph.tensors.find(spec.argument.names[0]);
    if (it == program_.graph.tensors.end()) return;
    if (!it->second.isStatic()) {
      dynamic_ = true;
      return add(Code::DependsOnValues, place, dynamicText(it->second), sizesRemedy());
    }
    if (auto type = typeOf(partMeta(it->second)); !type.ok()) refuse(place, type.error());
  }

  std::string dynamicText(const TensorMeta& meta) const {
    std::string text;
    for (size_t d = 0; d < meta.sizes.size(); ++d) {
      const SymbolicSize& size = meta.sizes[d];
      if (size.isConstant()) continue;
      text += fmt::format("{}dimension {} is dynamic: {}", text.empty() ? "" : "; ", d,
                          sizeText(size.expression));
      const std::vector<std::string> symbols = symbolsIn(size.expression);
      for (const SizeSymbol& symbol : symbols_) {
        if (std::find(symbols.begin(), symbols.end(), symbol.name) == symbols.end()) continue;
        const bool alone = sizeText(size.expression) == symbol.name;
        text += alone ? symbol.str().substr(symbol.name.size()) : ", " + symbol.str();
      }
      if (size.hint) text += fmt::format(", {} at export", *size.hint);
    }
    return text;
  }

  /// The options that would fix the sizes of all inputs.
  std::string sizesRemedy() const {
    std::string options;
    for (const SizeSymbol& symbol : symbols_) {
      if (!symbol.max) {
        return "Export with a range (dynamic_shapes={\"x\": {1: Dim(\"size\", min=2, max=256)}}) and choose "
               "sizes with --specialize, or without dynamic_shapes.";
      }
      const int64_t least = symbol.min.value_or(1);
      options += fmt::format(" --specialize {}=", symbol.name);
      if (least > 0 && least < *symbol.max) options += fmt::format("{},", least);
      options += std::to_string(*symbol.max);
    }
    return fmt::format("Choose sizes, for instance{}; or export without dynamic_shapes.", options);
  }

  void outputs() {
    for (const OutputSpec& spec : program_.outputs) {
      if (spec.kind == OutputSpec::Kind::Training) {
        add(Code::TrainingOnly, "",
            fmt::format("is a training graph (it has an output of kind {})", spec.tag),
            "Export the model for inference: torch.export.export(model.eval(), ...).");
      }
      if (spec.kind == OutputSpec::Kind::User &&
          (spec.argument.tag == Tag::Other || spec.argument.tag == Tag::Graph)) {
        add(Code::UnsupportedForm, "",
            fmt::format("has an output that is neither a tensor nor a number ({})", spec.argument.kind),
            "Return tensors.");
      }
    }
  }

  // Nodes
  // ------------------------------------------------------------------------------------------------------

  void nodes(const GraphDocument& graph) {
    const std::unordered_set<std::string> outside = std::exchange(numbers_, decidingNumbers(graph));
    std::unordered_set<std::string> pairs;  // results of torch.view_as_real() and views of them
    std::unordered_set<std::string>
        tainted;  // values derived from a rejected node: what they cause is not reported again
    for (const NodeDocument& node : graph.nodes) {
      bool consequence = false;
      for (const NamedArgument& input : node.inputs) {
        for (const std::string& name : input.value.names) consequence = consequence || tainted.contains(name);
      }
      const size_t before = diagnostics_.size();
      if (!consequence) this->node(graph, node);
      if (diagnostics_.size() == before) writesToPairs(node, pairs);
      if (consequence || diagnostics_.size() > before || isTransform(node)) {
        for (const Argument& output : node.outputs) tainted.insert(output.names.begin(), output.names.end());
      }
    }
    numbers_ = outside;
  }

  void node(const GraphDocument& graph, const NodeDocument& node) {
    if (isAssertion(node.target)) return;
    if (isGradRegion(node.target) || isAutocastRegion(node.target)) {
      for (const NamedArgument& input : node.inputs) {
        if (input.value.graph) nodes(*input.value.graph);
      }
      return;
    }
    if (isControlFlow(node.target)) return controlFlow(graph, node);
    if (isDecidingNumber(node)) return;
    if (computesWithComplex(graph, node)) return complexNode(graph, node);
    if (!target(node)) return;
    if (!training(node)) return;
    for (const Argument& output : node.outputs) {
      if (!result(graph, node, output)) return;
    }
    for (const NamedArgument& input : node.inputs) {
      if (!argument(graph, node, input)) return;
    }
  }

  /// Real and imaginary parts are tensors of their own, so that a write to a view of both would be lost.
  void writesToPairs(const NodeDocument& node, std::unordered_set<std::string>& pairs) {
    if (node.inputs.empty() || node.inputs[0].value.tag != Tag::Tensor) return;
    const bool made = node.target.starts_with("torch.ops.aten.view_as_real.");
    if (!made && !pairs.contains(node.inputs[0].value.names[0])) return;
    const ir::OpDef* def = decompose::findReadable(operatorName(node.target));
    if (!made && isInPlace(baseOf(node.target))) {
      return add(Code::UnsupportedForm, where(node),
                 "writes to complex numbers as pairs of real numbers (torch.view_as_real)",
                 "Write to the complex tensor, or to its real or imag.");
    }
    if (!made && (!def || !def->has(ir::kView))) return;
    for (const Argument& output : node.outputs) pairs.insert(output.names.begin(), output.names.end());
  }

  bool isDecidingNumber(const NodeDocument& node) const {
    return givesNumber(node.target) && node.outputs.size() == 1 && node.outputs[0].names.size() == 1 &&
           numbers_.contains(node.outputs[0].names[0]);
  }

  /// Checks the results and the regions, whose inputs are values that were already checked.
  void controlFlow(const GraphDocument& graph, const NodeDocument& node) {
    if (computesWithComplex(graph, node)) {
      return add(Code::WrongElementType, where(node), "complex numbers are arguments or results of a region",
                 "Pass real and imaginary parts (torch.view_as_real).");
    }
    for (const Argument& output : node.outputs) {
      if (!result(graph, node, output)) return;
    }
    for (const NamedArgument& input : node.inputs) {
      if (!input.value.graph) continue;
      const std::string outside = path_;
      path_ += node.name + "." + input.value.names[0] + ".";
      nodes(*input.value.graph);
      path_ = outside;
    }
  }

  /// Nodes that compute with complex numbers: the operator and sizes that are known.
  void complexNode(const GraphDocument& graph, const NodeDocument& node) {
    if (!knownForComplex(node)) {
      return add(Code::WrongElementType, where(node),
                 fmt::format("{} of complex numbers is not supported", baseName(node.target)),
                 "Compute it from real and imaginary parts (torch.view_as_real).");
    }
    for (const Argument& output : node.outputs) {
      if (!result(graph, node, output)) return;
    }
    for (const NamedArgument& input : node.inputs) {
      if (!argument(graph, node, input)) return;
    }
  }

  static bool isTransform(const NodeDocument& node) { return node.target.starts_with("torch._functorch."); }

  /// A remaining transform of torch.func affects every operator below it: reported once.
  void transform(const NodeDocument& node) {
    if (transformed_) return;
    transformed_ = true;
    add(Code::UnknownOperator, where(node),
        fmt::format("torch.vmap or another transform of torch.func is not resolved ({})", node.target),
        "Call program.run_decompositions() before saving.");
  }

  /// Whether the target is an operator in the table.
  bool target(const NodeDocument& node) {
    constexpr std::string_view kOps = "torch.ops.", kHigherOrder = "torch.ops.higher_order.";
    if (node.target.starts_with(kHigherOrder)) {
      const std::string name = node.target.substr(kHigherOrder.size());
      if (name == "map_impl" || name == "scan") {
        add(Code::UnsupportedForm, where(node),
            fmt::format("a loop over slices of tensors ({}) is not supported", name),
            name == "scan" ? "Use a Python loop, which export unrolls, or torch.while_loop."
                           : "Use an operator on the whole tensor, or a Python loop, which export unrolls.");
      } else if (name == "executorch_call_delegate") {
        add(Code::UnsupportedForm, where(node), "is a part that was already compiled for another backend",
            "Export the original model.");
      } else {
        add(Code::UnknownOperator, where(node),
            fmt::format("the higher-order operator {} is not supported", name),
            "Call program.run_decompositions() before saving.");
      }
      return false;
    }
    if (isTransform(node)) {
      transform(node);
      return false;
    }
    if (!node.target.starts_with(kOps)) {
      const bool number = node.target.starts_with("_operator.") || node.target.starts_with("math.") ||
                          node.target.starts_with("torch.sym_");
      add(Code::UnknownOperator, where(node),
          number ? fmt::format("computes a number ({}) when the program runs", node.target)
                 : fmt::format("calls {}, which is not a torch operator", node.target),
          number ? std::string(kDataRemedy) : "Call program.run_decompositions() before saving.");
      return false;
    }
    const std::string_view name = operatorName(node.target);
    if (decompose::findReadable(name)) return true;
    if (name.starts_with("aten.") || name.starts_with("quantized_decomposed.")) {
      add(Code::UnknownOperator, where(node), fmt::format("the operator {} is unknown", name),
          "Call program.run_decompositions() before saving; if it remains, replace it with other operators.");
    } else if (name.starts_with("torchvision.")) {
      add(Code::UnknownOperator, where(node),
          fmt::format("{} is a torchvision operator, which is not supported", name),
          baseName(node.target) == "deform_conv2d"
              ? "Replace it with torch operators: torch.nn.functional.grid_sample for each tap, and a "
                "convolution."
              : "Replace it with torch operators, or leave this part out of the network and compute it on "
                "its outputs.");
    } else {
      add(Code::UnknownOperator, where(node), fmt::format("{} is a custom operator", name),
          name.starts_with("transformers.grouped_mm")
              ? "Export with experts_implementation=\"batched_mm\" in the model's configuration."
              : "Replace it with torch operators, or register a decomposition and call "
                "program.run_decompositions().");
    }
    return false;
  }

  /// Operators whose result in training mode is random or depends on earlier calls.
  bool training(const NodeDocument& node) {
    static const std::unordered_set<std::string> kRandom = {
        "rand",   "rand_like",  "randn",     "randn_like", "randint",          "randint_like", "randperm",
        "normal", "bernoulli",  "uniform",   "random",     "exponential",      "multinomial",  "poisson",
        "cauchy", "log_normal", "geometric", "binomial",   "normal_functional"};
    static const std::unordered_set<std::string> kBatchNorm = {"batch_norm",
                                                               "native_batch_norm",
                                                               "_native_batch_norm_legit",
                                                               "_native_batch_norm_legit_functional",
                                                               "cudnn_batch_norm",
                                                               "_batch_norm_with_update"};
    static const std::unordered_set<std::string> kDropout = {"dropout", "feature_dropout", "alpha_dropout",
                                                             "feature_alpha_dropout", "native_dropout"};
    constexpr std::string_view kEval = "Call model.eval() before torch.export.export().";
    const std::string base = baseName(node.target);
    if (kBatchNorm.contains(base) && isGiven(argumentNamed(node, "running_mean")) &&
        (base == "_batch_norm_with_update" || isTrue(argumentNamed(node, "training")))) {
      add(Code::TrainingOnly, where(node),
          "batch norm in training mode: it uses the statistics of each batch and updates the running ones",
          std::string(kEval));
      return false;
    }
    if ((kDropout.contains(base) && isTrue(argumentNamed(node, "train"))) ||
        (base.starts_with("rrelu") && isTrue(argumentNamed(node, "training"))) ||
        (base == "scaled_dot_product_attention" && isPositive(argumentNamed(node, "dropout_p")))) {
      add(Code::TrainingOnly, where(node), fmt::format("{} in training mode returns random results", base),
          std::string(kEval));
      return false;
    }
    if (kRandom.contains(base)) {
      add(Code::TrainingOnly, where(node), fmt::format("{} returns random numbers", base),
          "Generate the random numbers outside the model and pass them as an input.");
      return false;
    }
    return true;
  }

  bool result(const GraphDocument& graph, const NodeDocument& node, const Argument& output) {
    if (output.tag == Tag::Symbolic || output.isNumber()) {
      add(Code::DependsOnValues, where(node),
          fmt::format("{} turns a tensor into a number when the program runs", operatorName(node.target)),
          std::string(kDataRemedy));
      return false;
    }
    for (const std::string& name : output.names) {
      const auto it = graph.tensors.find(name);
      if (it == graph.tensors.end()) continue;
      if (!it->second.isStatic()) {
        add(Code::DependsOnValues, where(node),
            fmt::format("the size of the result of {} depends on the values of its operands",
                        operatorName(node.target)),
            std::string(kDataRemedy));
        return false;
      }
      if (auto type = typeOf(partMeta(it->second)); !type.ok()) {
        refuse(where(node), type.error());
        return false;
      }
    }
    return true;
  }

  bool argument(const GraphDocument& graph, const NodeDocument& node, const NamedArgument& input) {
    if (input.value.tag == Tag::Symbolic) {
      add(Code::DependsOnValues, where(node),
          fmt::format("the argument '{}' of {} is known only when the program runs", input.name,
                      operatorName(node.target)),
          std::string(kDataRemedy));
      return false;
    }
    if (input.value.tag == Tag::Other) {
      add(Code::UnsupportedForm, where(node),
          fmt::format("the argument '{}' of {} has a value of an unsupported kind ({})", input.name,
                      operatorName(node.target), input.value.kind),
          "Replace the operator.");
      return false;
    }
    for (const std::string& name : input.value.names) {
      const auto it = graph.tensors.find(name);
      if (it == graph.tensors.end()) continue;
      if (auto type = typeOf(partMeta(it->second)); !type.ok()) {
        refuse(where(node), type.error());
        return false;
      }
    }
    return true;
  }

  void refuse(const std::string& place, const Error& error) {
    for (const Diagnostic& diagnostic : error.diagnostics())
      add(diagnostic.code, place, diagnostic.message, diagnostic.remedy);
  }

  const ProgramDocument& program_;
  const std::vector<SizeSymbol> symbols_ = sizeSymbolsOf(program_);
  bool dynamic_ = false, transformed_ = false;
  std::vector<Diagnostic> diagnostics_;
  std::string path_;                         // of the current region
  std::unordered_set<std::string> numbers_;  // of the current graph that determine control flow
};

}  // namespace

Status checkServable(const ProgramDocument& program) {
  return Checker(program).run();
}

std::string_view operatorName(std::string_view target) {
  constexpr std::string_view kOps = "torch.ops.";
  return target.starts_with(kOps) ? target.substr(kOps.size()) : target;
}

bool isAssertion(std::string_view target) {
  static constexpr std::string_view kAssertions[] = {
      "torch.ops.aten._assert_tensor_metadata.default", "torch.ops.aten._assert_scalar.default",
      "torch.ops.aten._assert_async.default",           "torch.ops.aten._assert_async.msg",
      "torch.ops.aten.sym_constrain_range.default",     "torch.ops.aten.sym_constrain_range_for_size.default",
  };
  return std::find(std::begin(kAssertions), std::end(kAssertions), target) != std::end(kAssertions);
}

bool isControlFlow(std::string_view target) {
  return target == "torch.ops.higher_order.cond" || target == "torch.ops.higher_order.while_loop";
}

bool isGradRegion(std::string_view target) {
  return target == "torch.ops.higher_order.wrap_with_set_grad_enabled";
}
bool isAutocastRegion(std::string_view target) {
  return target == "torch.ops.higher_order.wrap_with_autocast";
}

Result<ir::Type> typeOf(const TensorMeta& meta) {
  const ScalarType* scalar = scalarTypeByNumber(meta.scalarType);
  if (!scalar) return fail(Code::UnknownVersion, "has the unknown element type {}", meta.scalarType);
  CARINA_TRY(const DType dtype, supportedType(*scalar));
  if (meta.layout != 7)
    return fail(Code::UnsupportedForm, "is not a dense tensor (layout {})", meta.layout)
        .withRemedy("Call to_dense() first.");
  if (!meta.isStatic())
    return fail(Code::DependsOnValues, "has a size that is known only when the program runs");
  Shape shape = meta.shape();
  ir::Type type{dtype, std::move(shape)};
  if (const Status extents = ir::checkExtents(type); !extents.ok()) {
    const Diagnostic& why = extents.error().diagnostics().front();
    return fail(why.code, "is {}", why.message).withRemedy(why.remedy);
  }
  return type;
}

}  // namespace carina::pt2
