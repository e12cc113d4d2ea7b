// SPDX-License-Identifier: Apache-2.0
#include "pt2/specialize.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_map>

#include "base/shape.hpp"
#include "pt2/refusals.hpp"
#include "pt2/size_expression.hpp"

namespace carina::pt2 {
namespace {

using Tag = Argument::Tag;

constexpr std::string_view kOption = "--specialize";

/// Python functions of numbers.
struct PythonFunction {
  std::string_view target;
  SizeOp op;
};
constexpr PythonFunction kPythonFunctions[] = {
    {"_operator.add", SizeOp::Add},
    {"_operator.sub", SizeOp::Sub},
    {"_operator.mul", SizeOp::Mul},
    {"_operator.floordiv", SizeOp::FloorDiv},
    {"_operator.truediv", SizeOp::TrueDiv},
    {"_operator.mod", SizeOp::Mod},
    {"_operator.pow", SizeOp::Pow},
    {"_operator.neg", SizeOp::Neg},
    {"_operator.pos", SizeOp::Pos},
    {"_operator.abs", SizeOp::Abs},
    {"_operator.eq", SizeOp::Equal},
    {"_operator.ne", SizeOp::NotEqual},
    {"_operator.lt", SizeOp::Less},
    {"_operator.le", SizeOp::LessEqual},
    {"_operator.gt", SizeOp::Greater},
    {"_operator.ge", SizeOp::GreaterEqual},
    {"_operator.and_", SizeOp::And},
    {"_operator.or_", SizeOp::Or},
    {"_operator.not_", SizeOp::Not},
    {"torch.sym_not", SizeOp::Not},
    {"torch.sym_min", SizeOp::Min},
    {"torch.sym_max", SizeOp::Max},
    {"torch.sym_float", SizeOp::ToReal},
    {"torch.sym_int", SizeOp::Trunc},
    {"torch._sym_sqrt", SizeOp::Sqrt},
    {"math.sqrt", SizeOp::Sqrt},
    {"math.trunc", SizeOp::Trunc},
    {"math.floor", SizeOp::Floor},
    {"math.ceil", SizeOp::Ceil},
};

std::string boundText(const std::optional<int64_t>& bound) {
  return bound ? std::to_string(*bound) : std::string("any");
}

class Specializer {
 public:
  Specializer(ProgramDocument& program, const std::map<std::string, int64_t>& values)
      : program_(program), values_(values) {}

  Status run(std::vector<Diagnostic>& warnings) {
    CARINA_RETURN_IF_ERROR(checkValues());
    CARINA_RETURN_IF_ERROR(numbersOfInputs());
    CARINA_RETURN_IF_ERROR(graph(program_.graph));
    for (InputSpec& spec : program_.inputs) CARINA_RETURN_IF_ERROR(resolve(spec.argument));
    for (OutputSpec& spec : program_.outputs) CARINA_RETURN_IF_ERROR(resolve(spec.argument));
    return conditions(warnings);
  }

 private:
  Status checkValues() const {
    const std::vector<SizeSymbol> symbols = sizeSymbolsOf(program_);
    for (const auto& [name, value] : values_) {
      if (std::any_of(symbols.begin(), symbols.end(),
                      [&, &wanted = name](const SizeSymbol& symbol) { return symbol.name == wanted; }))
        continue;
      std::vector<std::string> known;
      known.reserve(symbols.size());
      for (const SizeSymbol& symbol : symbols) known.push_back(symbol.str());
      return fail(Code::UnknownName, "no input has the size '{}'", name)
          .at(std::string(kOption))
          .withRemedy(known.empty() ? "all sizes of the program are fixed: leave the option out"
                                    : fmt::format("the sizes to choose are {}", fmt::join(known, ", ")));
    }
    for (const SizeSymbol& symbol : symbols) CARINA_RETURN_IF_ERROR(checkValue(symbol));
    return {};
  }

  Status checkValue(const SizeSymbol& symbol) const {
    if (!symbol.max) {
      return fail(Code::DependsOnValues, "{} has no largest value", symbol.name)
          .at(symbol.where)
          .withRemedy("Export with a range: dynamic_shapes={\"x\": {1: Dim(\"size\", min=2, max=256)}}.");
    }
    const auto value = values_.find(symbol.name);
    if (value == values_.end()) {
      return fail(Code::BadOption, "{} has no value", symbol.str())
          .at(symbol.where)
          .withRemedy(fmt::format("give {} {}={}", kOption, symbol.name, *symbol.max));
    }
    if (value->second >= symbol.min.value_or(0) && value->second <= *symbol.max) return {};
    return fail(Code::BadOption, "{}={} is outside the range that the program was exported for", symbol.name,
                value->second)
        .at(std::string(kOption))
        .withRemedy(fmt::format("choose {}", symbol.str()));
  }

  std::optional<SizeNumber> valueOf(std::string_view symbol) const {
    const auto found = values_.find(std::string(symbol));
    if (found == values_.end()) return std::nullopt;
    return SizeNumber::whole(found->second);
  }

  std::string choice() const {
    std::vector<std::string> all;
    for (const auto& [name, value] : values_) all.push_back(fmt::format("{}={}", name, value));
    return fmt::format("{}", fmt::join(all, ", "));
  }

  // Sizes
  // ----------------------------------------------------------------------------------------------------------

  /// The value of an expression; empty if it contains other symbols.
  Result<std::optional<SizeNumber>> computed(const std::string& expression) {
    if (const auto known = computed_.find(expression); known != computed_.end()) return known->second;
    const std::vector<std::string> symbols = symbolsIn(expression);
    std::optional<SizeNumber> value;
    if (std::all_of(symbols.begin(), symbols.end(),
                    [&](const std::string& s) { return values_.count(s) != 0; })) {
      CARINA_TRY(value, evaluate(expression, {[&](std::string_view s) { return valueOf(s); }, nullptr}));
    }
    computed_.emplace(expression, value);
    return value;
  }

  Status resolve(SymbolicSize& size, bool mayBeNegative) {
    if (size.isConstant()) return {};
    CARINA_TRY(const std::optional<SizeNumber> value, computed(size.expression));
    if (!value) return {};
    const auto whole = value->asWhole();
    if (!whole || (*whole < 0 && !mayBeNegative)) {
      return fail(Code::BadOption, "the size {} is {} for {}", sizeText(size.expression),
                  whole ? std::to_string(*whole) : fmt::format("{}", value->asReal()), choice())
          .withRemedy("choose other sizes");
    }
    size = {};
    size.value = *whole;
    return {};
  }

  Status resolve(TensorMeta& meta) {
    for (SymbolicSize& size : meta.sizes) CARINA_RETURN_IF_ERROR(resolve(size, false));
    for (SymbolicSize& stride : meta.strides) CARINA_RETURN_IF_ERROR(resolve(stride, true));
    return resolve(meta.offset, true);
  }

  // Numbers
  // --------------------------------------------------------------------------------------------------------

  /// Inputs of forward() that are numbers.
  Status numbersOfInputs() {
    for (const Argument& input : program_.graph.inputs) {
      if (input.tag != Tag::Symbolic) continue;
      const auto recorded = program_.graph.numbers.find(input.names[0]);
      if (recorded == program_.graph.numbers.end() || recorded->second.isConstant()) continue;
      CARINA_TRY(const auto value, computed(recorded->second.expression));
      if (value) numbers_.emplace(input.names[0], *value);
    }
    return {};
  }

  /// Replaces names by numbers if all of them are known.
  Status resolve(Argument& argument) {
    if (argument.graph) {
      auto region = std::make_shared<GraphDocument>(*argument.graph);
      auto outside = std::exchange(numbers_, {});
      CARINA_RETURN_IF_ERROR(graph(*region));
      numbers_ = std::move(outside);
      argument.graph = std::move(region);
      return {};
    }
    if (argument.tag != Tag::Symbolic) return {};
    std::vector<SizeNumber> values;
    for (const std::string& name : argument.names) {
      const auto known = numbers_.find(name);
      if (known == numbers_.end()) return {};
      values.push_back(known->second);
    }
    const bool list = argument.kind.ends_with('s');
    const bool reals = argument.kind.starts_with("as_sym_float");
    const bool truths = argument.kind.starts_with("as_sym_bool");
    for (size_t i = 0; i < values.size(); ++i) {
      const auto at = static_cast<std::ptrdiff_t>(argument.places[i]);
      if (reals) {
        argument.reals.insert(argument.reals.begin() + at, values[i].asReal());
        continue;
      }
      const auto whole = truths ? std::optional<int64_t>(values[i].isZero() ? 0 : 1) : values[i].asWhole();
      if (!whole) {
        return fail(Code::BadOption, "the number '{}' is {} for {}, expected an integer", argument.names[i],
                    values[i].asReal(), choice())
            .withRemedy("choose other sizes");
      }
      argument.ints.insert(argument.ints.begin() + at, *whole);
    }
    argument.tag = reals    ? (list ? Tag::Reals : Tag::Real)
                   : truths ? (list ? Tag::Bools : Tag::Bool)
                            : (list ? Tag::Ints : Tag::Int);
    argument.names.clear();
    argument.places.clear();
    return {};
  }

  static std::optional<std::vector<SizeNumber>> operands(const NodeDocument& node) {
    std::vector<SizeNumber> numbers;
    for (const NamedArgument& input : node.inputs) {
      const Argument& argument = input.value;
      if (argument.tag == Tag::Real) {
        numbers.push_back(SizeNumber::ofReal(argument.reals[0]));
      } else if (argument.tag == Tag::Int || argument.tag == Tag::Bool || argument.tag == Tag::Ints) {
        for (int64_t value : argument.ints) numbers.push_back(SizeNumber::whole(value));
      } else {
        return std::nullopt;
      }
    }
    return numbers;
  }

  /// The number that a node computes from known ones; empty if it cannot be determined.
  std::optional<SizeNumber> numberOf(const NodeDocument& node, const GraphDocument& graph) const {
    if (operatorName(node.target).starts_with("aten.sym_")) return propertyOf(node, graph);
    const auto numbers = operands(node);
    if (!numbers || numbers->empty()) return std::nullopt;
    std::optional<SizeNumber> result = numbers->front();
    if (node.target == "torch.sym_sum") {
      for (size_t i = 1; i < numbers->size() && result; ++i)
        result = compute(SizeOp::Add, *result, (*numbers)[i]);
      return result;
    }
    const auto* function = std::find_if(std::begin(kPythonFunctions), std::end(kPythonFunctions),
                                        [&](const PythonFunction& f) { return f.target == node.target; });
    if (function == std::end(kPythonFunctions) || numbers->size() != (takesTwo(function->op) ? 2u : 1u))
      return std::nullopt;
    return takesTwo(function->op) ? compute(function->op, *result, (*numbers)[1])
                                  : compute(function->op, *result);
  }

  /// sym_size, sym_stride, sym_numel of a tensor.
  static std::optional<SizeNumber> propertyOf(const NodeDocument& node, const GraphDocument& graph) {
    if (node.inputs.empty() || node.inputs[0].value.tag != Tag::Tensor) return std::nullopt;
    const auto found = graph.tensors.find(node.inputs[0].value.names[0]);
    if (found == graph.tensors.end()) return std::nullopt;
    const TensorMeta& meta = found->second;
    const std::string_view name = operatorName(node.target);
    if (name == "aten.sym_numel.default" && meta.isStatic()) {
      std::optional<int64_t> count = 1;
      for (const SymbolicSize& size : meta.sizes) count = count ? checkedMul(*count, size.value) : count;
      return count ? std::optional(SizeNumber::whole(*count)) : std::nullopt;
    }
    const bool size = name == "aten.sym_size.int";
    if ((!size && name != "aten.sym_stride.int") || node.inputs.size() != 2 ||
        node.inputs[1].value.tag != Tag::Int)
      return std::nullopt;
    const std::vector<SymbolicSize>& all = size ? meta.sizes : meta.strides;
    const auto rank = static_cast<int64_t>(all.size());
    int64_t dimension = node.inputs[1].value.ints[0];
    if (dimension < 0) dimension += rank;
    if (dimension < 0 || dimension >= rank || !all[static_cast<size_t>(dimension)].isConstant())
      return std::nullopt;
    return SizeNumber::whole(all[static_cast<size_t>(dimension)].value);
  }

  /// The recorded value of a number must be what its operands give.
  Status checkRecorded(const std::string& name, const SizeNumber& value, const GraphDocument& graph) {
    const auto recorded = graph.numbers.find(name);
    if (recorded == graph.numbers.end()) return {};
    std::optional<SizeNumber> expected = SizeNumber::whole(recorded->second.value);
    if (!recorded->second.isConstant()) {
      auto result = computed(recorded->second.expression);
      if (!result) return {};  // in another form than the sizes: nothing depends on it
      expected = *result;
    }
    if (!expected || expected->asReal() == value.asReal()) return {};
    return fail(Code::InvalidGraph, "the number '{}' is recorded as {}, but its operands imply {}", name,
                expected->asReal(), value.asReal());
  }

  // Graphs
  // ---------------------------------------------------------------------------------------------------------

  Status graph(GraphDocument& graph) {
    for (auto& [name, meta] : graph.tensors) {
      if (auto status = resolve(meta); !status.ok())
        return std::move(status).error().at(fmt::format("tensor {}", name));
    }
    std::vector<NodeDocument> kept;
    for (NodeDocument& node : graph.nodes) {
      auto isKept = this->node(node, graph);
      if (!isKept) return std::move(isKept).error().at(node.name);
      if (*isKept) kept.push_back(std::move(node));
    }
    graph.nodes = std::move(kept);
    for (Argument& input : graph.inputs) CARINA_RETURN_IF_ERROR(resolve(input));
    for (Argument& output : graph.outputs) CARINA_RETURN_IF_ERROR(resolve(output));
    return {};
  }

  /// Whether the node is kept.
  Result<bool> node(NodeDocument& node, const GraphDocument& graph) {
    for (NamedArgument& input : node.inputs) CARINA_RETURN_IF_ERROR(resolve(input.value));
    if (operatorName(node.target) == "aten._assert_scalar.default") {
      CARINA_RETURN_IF_ERROR(checkAssertion(node));
      return true;
    }
    const bool one =
        node.outputs.size() == 1 && node.outputs[0].tag == Tag::Symbolic && node.outputs[0].names.size() == 1;
    const auto value = one ? numberOf(node, graph) : std::nullopt;
    if (!value) return true;
    const std::string& name = node.outputs[0].names[0];
    CARINA_RETURN_IF_ERROR(checkRecorded(name, *value, graph));
    if (!numbers_.emplace(name, *value).second)
      return fail(Code::InvalidGraph, "the value '{}' is defined twice", name);
    return false;
  }

  Status checkAssertion(const NodeDocument& node) const {
    if (node.inputs.empty()) return {};
    const Argument& condition = node.inputs[0].value;
    if (!condition.isNumber() || condition.tag == Tag::Real || condition.ints[0] != 0) return {};
    const bool told = node.inputs.size() > 1 && node.inputs[1].value.tag == Tag::String;
    return fail(Code::BadOption, "{} does not fit the program{}", choice(),
                told ? ": " + node.inputs[1].value.strings[0] : "")
        .withRemedy("choose other sizes");
  }

  // Conditions
  // -----------------------------------------------------------------------------------------------------

  std::optional<SizeNumber> sizeOf(std::string_view input, int64_t dimension) const {
    const bool user = std::any_of(program_.inputs.begin(), program_.inputs.end(), [&](const InputSpec& spec) {
      return spec.kind == InputSpec::Kind::User && spec.argument.tag == Tag::Tensor &&
             spec.argument.names[0] == input;
    });
    const auto meta = program_.graph.tensors.find(std::string(input));
    if (!user || meta == program_.graph.tensors.end() || dimension < 0 ||
        static_cast<size_t>(dimension) >= meta->second.sizes.size())
      return std::nullopt;
    const SymbolicSize& size = meta->second.sizes[static_cast<size_t>(dimension)];
    return size.isConstant() ? std::optional(SizeNumber::whole(size.value)) : std::nullopt;
  }

  Status conditions(std::vector<Diagnostic>& warnings) const {
    const SizeLookup lookup{
        [&](std::string_view s) { return valueOf(s); },
        [&](std::string_view input, int64_t dimension) { return sizeOf(input, dimension); }};
    for (const std::string& condition : program_.conditions) {
      const auto holds = evaluate(condition, lookup);
      if (!holds) {
        warnings.push_back(
            {fmt::format("was exported under the condition {}, which cannot be evaluated for {}", condition,
                         choice()),
             "Compare results with torch.", "", ""});
      } else if (holds->isZero()) {
        return fail(Code::BadOption, "{} does not fit the program, which was exported under the condition {}",
                    choice(), condition)
            .at(std::string(kOption))
            .withRemedy("choose other sizes");
      }
    }
    return {};
  }

  ProgramDocument& program_;
  const std::map<std::string, int64_t>& values_;
  std::unordered_map<std::string, std::optional<SizeNumber>> computed_;  // by expression
  std::unordered_map<std::string, SizeNumber> numbers_;                  // of the current graph, by name
};

}  // namespace

std::string SizeSymbol::str() const {
  return fmt::format("{} from {} to {}", name, min.value_or(0), boundText(max));
}

std::vector<SizeSymbol> sizeSymbolsOf(const ProgramDocument& program) {
  std::vector<SizeSymbol> symbols;
  const auto add = [&](const SymbolicSize& size, const std::string& where) {
    if (size.isConstant()) return;
    for (const std::string& name : symbolsIn(size.expression)) {
      if (std::any_of(symbols.begin(), symbols.end(),
                      [&](const SizeSymbol& known) { return known.name == name; }))
        continue;
      const auto range = program.ranges.find(name);
      const SymbolRange bounds = range == program.ranges.end() ? SymbolRange{} : range->second;
      symbols.push_back({name, bounds.min, bounds.max, where});
    }
  };
  for (const InputSpec& spec : program.inputs) {
    if (spec.kind != InputSpec::Kind::User || spec.argument.names.size() != 1) continue;
    const std::string& name = spec.argument.names[0];
    if (spec.argument.tag == Tag::Tensor) {
      const auto meta = program.graph.tensors.find(name);
      if (meta == program.graph.tensors.end()) continue;
      for (size_t d = 0; d < meta->second.sizes.size(); ++d)
        add(meta->second.sizes[d], fmt::format("input {}, dimension {}", name, d));
    } else if (spec.argument.tag == Tag::Symbolic) {
      const auto number = program.graph.numbers.find(name);
      if (number != program.graph.numbers.end()) add(number->second, fmt::format("input {}", name));
    }
  }
  return symbols;
}

Status specialize(ProgramDocument& program, const std::map<std::string, int64_t>& values,
                  std::vector<Diagnostic>& warnings) {
  return Specializer(program, values).run(warnings);
}

}  // namespace carina::pt2
