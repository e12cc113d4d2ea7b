// SPDX-License-Identifier: Apache-2.0
// Builds an ir::Graph from names.
#include <algorithm>
#include <cstring>
#include <set>

#include "ir/extents.hpp"
#include "tosa/tosa.hpp"
#include "tosa_io/wire_graph.hpp"

namespace carina::tosa_io {

std::optional<int64_t> wireBytes(DType dtype, int64_t count) {
  if (dtype == DType::Int4) return count / 2 + count % 2;
  return checkedMul(count, dtype == DType::Int48 ? 6 : dtypeSize(dtype));
}

namespace {

Result<Tensor> unpackInt4(const Shape& shape, ByteSpan bytes) {
  Tensor tensor = Tensor::uninitialized(DType::Int4, shape);
  const auto values = tensor.mutableAs<int8_t>();
  for (size_t i = 0; i < values.size(); ++i) {
    const auto byte = static_cast<int8_t>(bytes[i / 2]);
    values[i] = static_cast<int8_t>(i % 2 == 0 ? static_cast<int8_t>(byte << 4) >> 4 : byte >> 4);
    if (values[i] == -8) return fail(Code::InvalidGraph, "element {} is -8, but int4 ranges from -7 to 7", i);
  }
  return tensor;
}

Tensor unpackInt48(const Shape& shape, ByteSpan bytes) {
  Tensor tensor = Tensor::uninitialized(DType::Int48, shape);
  const auto values = tensor.mutableAs<int64_t>();
  for (size_t i = 0; i < values.size(); ++i) {
    uint64_t value = 0;
    std::memcpy(&value, bytes.data() + 6 * i, 6);
    values[i] = static_cast<int64_t>(value << 16) >> 16;
  }
  return tensor;
}

Result<Tensor> decode(const WireTensor& source, const std::shared_ptr<const void>& owner) {
  const auto count = checkedNumElements(source.shape);
  const auto size = count ? wireBytes(*source.dtype, *count) : std::nullopt;
  if (!size || *size > static_cast<int64_t>(source.data.size())) {
    return fail(Code::InvalidGraph, "{} bytes of data are too few for {}", source.data.size(),
                ir::typeText({*source.dtype, source.shape}));
  }
  const ByteSpan bytes = source.data.first(static_cast<size_t>(*size));
  switch (*source.dtype) {
    case DType::Int4:
      return unpackInt4(source.shape, bytes);
    case DType::Int48:
      return unpackInt48(source.shape, bytes);
    case DType::Bool: {
      const bool plain =
          std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b <= std::byte{1}; });
      if (plain) return Tensor::borrow(DType::Bool, source.shape, bytes, owner);
      Tensor tensor = Tensor::uninitialized(DType::Bool, source.shape);
      std::transform(bytes.begin(), bytes.end(), tensor.mutableBytes().begin(),
                     [](std::byte b) { return std::byte{b != std::byte{0}}; });
      return tensor;
    }
    default:
      return Tensor::borrow(*source.dtype, source.shape, bytes, owner);
  }
}

bool isZeroPointOperator(const ir::OpDef& def) {
  return std::any_of(def.operands.begin(), def.operands.end(),
                     [](const auto& operand) { return operand.name.ends_with("_zp"); });
}

constexpr int kMaxSubGraphs = 4096;

class BlockBuilder {
 public:
  /// `subGraphsLeft` limits how often sub-graphs are instantiated in total, whatever the file's references.
  /// `inputRule` is the rule broken by inputs that cannot match any operand.
  BlockBuilder(const WireFile& file, const WireRegion& region, const WireBlock& block,
               const BlockBuilder* parent, int& subGraphsLeft, std::string_view inputRule = "UndefinedShape")
      : file_(file),
        region_(region),
        block_(block),
        parent_(parent),
        subGraphsLeft_(subGraphsLeft),
        inputRule_(inputRule),
        graph_(block.name) {}

  Result<ir::Graph> build() {
    for (const WireTensor& tensor : block_.tensors) {
      // Tensors of the main block may be repeated in others, but never within one.
      if (!tensors_.emplace(tensor.name, &tensor).second)
        return fail(Code::InvalidGraph, "two tensors have this name (DuplicateName)").at(tensor.name);
    }
    for (const std::string& name : block_.inputs) {
      if (auto status = input(name); !status.ok()) return std::move(status).error().at(name);
    }
    for (const WireOperator& op : block_.operators) {
      if (auto status = operation(op); !status.ok()) return std::move(status).error().at(placeOf(op));
    }
    std::vector<ir::Value*> outputs;
    for (const std::string& name : block_.outputs) {
      auto value = resolve(name);
      if (!value.ok()) return std::move(value).error().at("output " + name);
      outputs.push_back(*value);
    }
    graph_.setOutputs(std::move(outputs));
    return std::move(graph_);
  }

 private:
  static std::string placeOf(const WireOperator& op) {
    return op.outputs.empty() ? op.op : op.outputs[0] + " (" + op.op + ")";
  }

  const WireTensor* find(const std::string& name) const {
    const auto it = tensors_.find(name);
    return it == tensors_.end() ? nullptr : it->second;
  }

  Result<ir::Type> typeOf(const std::string& name, std::string_view rule = "UndefinedShape") const {
    const WireTensor* tensor = find(name);
    if (!tensor) return fail(Code::InvalidGraph, "no tensor is named '{}' (UndefinedName)", name);
    if (tensor->unranked)
      return fail(Code::InvalidGraph, "tensor '{}' has no rank", name)
          .withRemedy("export with static shapes");
    if (!tensor->dtype)
      return fail(Code::UnsupportedForm, "tensor '{}' has type {}, which is not supported", name,
                  tensor->typeName);
    for (int64_t size : tensor->shape) {
      if (size < 0) {
        return fail(Code::DependsOnValues, "tensor '{}' has the dynamic shape {} ({})", name,
                    shapeText(tensor->shape), rule)
            .withRemedy("export with static shapes");
      }
    }
    ir::Type type{*tensor->dtype, tensor->shape};
    if (auto status = ir::checkExtents(type); !status.ok())
      return std::move(status).error().at(fmt::format("tensor '{}'", name));
    return type;
  }

  Status input(const std::string& name) {
    CARINA_TRY(ir::Type type, typeOf(name, inputRule_));
    if (type.dtype == DType::Shape) return fail(Code::InvalidGraph, "a shape value cannot be an input");
    return define(name, graph_.addInput(std::move(type)));
  }

  Status define(const std::string& name, ir::Value* value) {
    if (!values_.emplace(name, value).second)
      return fail(Code::InvalidGraph, "'{}' is defined twice (DuplicateName)", name);
    value->name = name;
    return {};
  }

  /// A constant of this block or of an enclosing one; null if there is none.
  Result<ir::Value*> constant(const std::string& name) {
    for (const BlockBuilder* scope = this; scope; scope = scope->parent_) {
      const WireTensor* tensor = scope->find(name);
      if (!tensor || !tensor->hasData) continue;
      CARINA_RETURN_IF_ERROR(scope->typeOf(name));
      auto contents = decode(*tensor, file_.owner);
      if (!contents.ok()) return std::move(contents).error().at("constant " + name);
      ir::Value* value = graph_.addConstant(std::move(*contents));
      CARINA_RETURN_IF_ERROR(define(name, value));
      return value;
    }
    return static_cast<ir::Value*>(nullptr);
  }

  Result<ir::Value*> resolve(const std::string& name) {
    if (const auto it = values_.find(name); it != values_.end()) return it->second;
    CARINA_TRY(ir::Value * value, constant(name));
    if (value) return value;
    if (find(name))
      return fail(Code::InvalidGraph, "'{}' is used before it is computed (UndefinedName)", name);
    for (const BlockBuilder* scope = parent_; scope; scope = scope->parent_) {
      if (!scope->find(name)) continue;
      return fail(Code::InvalidGraph, "the sub-graph uses '{}' of the enclosing graph (UndefinedName)", name)
          .withRemedy("pass it as an input of the sub-graph");
    }
    return fail(Code::InvalidGraph, "no tensor is named '{}' (UndefinedName)", name);
  }

  Status operation(const WireOperator& op) {
    if (op.op == "CONST" || op.op == "CONST_SHAPE") return constantOperator(op);
    const ir::OpDef* def = tosa::findOperator("tosa." + op.op);
    if (!def || op.op.starts_with("VARIABLE")) {
      return fail(Code::UnknownOperator, "operator {} is not supported (UnknownOperator)", op.op)
          .withRemedy(def ? "make the state an input and an output of the graph"
                          : "export with operators of TOSA 1.0");
    }
    ir::NodeSpec spec;
    spec.def = def;
    CARINA_RETURN_IF_ERROR(operands(op, spec));
    spec.attributes = op.attributes;
    if (def->results.size() != op.outputs.size() &&
        (def->results.empty() || def->results[0].arity != ir::Arity::Variadic)) {
      return fail(Code::InvalidGraph, "{} has {} results, not {} (WrongOutputList)", op.op,
                  def->results.size(), op.outputs.size());
    }
    std::optional<Error> openShape;
    for (const std::string& name : op.outputs) {
      auto found = typeOf(name);
      if (!found.ok()) {
        openShape = std::move(found).error();
        break;
      }
      ir::Type type = std::move(*found);
      if (type.dtype == DType::Shape)
        return fail(Code::InvalidGraph, "the result '{}' cannot be a shape value (WrongOutputType)", name);
      spec.types.push_back(std::move(type));
    }
    ir::Location location;
    location.name = !op.location.empty() ? op.location : op.outputs.empty() ? op.op : op.outputs[0];
    spec.location = std::make_shared<const ir::Location>(std::move(location));
    if (openShape) {  // errors of the operands are more specific than that of the resulting shape
      spec.types.clear();
      if (def->infer) {
        auto created = graph_.create(std::move(spec));
        if (!created.ok()) return std::move(created).error();
      }
      return *std::move(openShape);
    }
    CARINA_TRY(ir::Node * node, graph_.create(std::move(spec)));
    for (size_t i = 0; i < op.outputs.size(); ++i)
      CARINA_RETURN_IF_ERROR(define(op.outputs[i], node->result(i)));
    if (def->regions == 0) return {};
    for (size_t i = 0; i < 2; ++i) {
      static constexpr std::string_view kIfRules[] = {"CondIfInputListThenGraphMismatch",
                                                      "CondIfInputListElseGraphMismatch"};
      static constexpr std::string_view kLoopRules[] = {"InputListCondGraphMismatch",
                                                        "InputListBodyGraphInputMismatch"};
      const std::string_view rule = (node->is(tosa::CondIf::def()) ? kIfRules : kLoopRules)[i];
      CARINA_TRY(ir::Graph graph, subGraph(op.subGraphs[i], rule));
      node->setRegion(i, std::move(graph));
    }
    return {};
  }

  Status constantOperator(const WireOperator& op) {
    if (op.outputs.size() != 1)
      return fail(Code::InvalidGraph, "{} has {} results (WrongOutputList)", op.op, op.outputs.size());
    if (!op.inputs.empty()) return fail(Code::InvalidGraph, "{} has operands (WrongInputList)", op.op);
    if (values_.contains(op.outputs[0])) return {};  // already used by name
    const WireTensor* tensor = find(op.outputs[0]);
    if (!tensor) return fail(Code::InvalidGraph, "no tensor is named '{}' (UndefinedName)", op.outputs[0]);
    if (!tensor->hasData) return fail(Code::InvalidGraph, "constant '{}' has no data", op.outputs[0]);
    CARINA_TRY(ir::Value * value, constant(op.outputs[0]));
    (void)value;
    return {};
  }

  Status operands(const WireOperator& op, ir::NodeSpec& spec) {
    const ir::OpDef& def = *spec.def;
    const size_t given = op.inputs.size() + op.constants.size();
    const bool list = !def.operands.empty() && def.operands.back().arity == ir::Arity::Variadic;
    const size_t fixed = def.operands.size() - (list ? 1 : 0);
    if (given < fixed || (!list && given > fixed)) {
      const char* rule = given < fixed && isZeroPointOperator(def) ? "MissingZeroPoints" : "WrongInputList";
      return fail(Code::InvalidGraph, "{} takes {}{} operands, got {} ({})", op.op, list ? "at least " : "",
                  fixed, given, rule);
    }
    std::vector<ir::Value*> values;
    for (const std::string& name : op.inputs) {
      CARINA_TRY(ir::Value * value, resolve(name));
      values.push_back(value);
    }
    for (const Tensor& tensor : op.constants) values.push_back(graph_.addConstant(tensor));
    for (size_t i = 0; i < fixed; ++i) spec.operands.push_back({values[i]});
    if (list) spec.operands.emplace_back(values.begin() + static_cast<std::ptrdiff_t>(fixed), values.end());
    return {};
  }

  /// By region name, then by block name within the region.
  Result<ir::Graph> subGraph(const std::string& name, std::string_view inputRule) {
    int depth = 0;
    for (const BlockBuilder* scope = this; scope; scope = scope->parent_) ++depth;
    if (depth > tosa::kLevel8K.maxNesting)
      return fail(Code::Excessive, "sub-graphs are nested deeper than {} (LevelCheck)",
                  tosa::kLevel8K.maxNesting);
    if (--subGraphsLeft_ < 0)
      return fail(Code::Excessive, "the file uses more than {} sub-graphs", kMaxSubGraphs);
    for (const WireRegion& region : file_.regions) {
      if (region.name == name && !region.blocks.empty())
        return BlockBuilder(file_, region, region.blocks[0], this, subGraphsLeft_, inputRule).build();
    }
    for (const WireBlock& block : region_.blocks) {
      if (block.name == name)
        return BlockBuilder(file_, region_, block, this, subGraphsLeft_, inputRule).build();
    }
    return fail(Code::InvalidGraph, "no graph is named '{}' (UndefinedName)", name);
  }

  const WireFile& file_;
  const WireRegion& region_;
  const WireBlock& block_;
  const BlockBuilder* parent_;
  int& subGraphsLeft_;
  std::string_view inputRule_;
  ir::Graph graph_;
  std::unordered_map<std::string, const WireTensor*> tensors_;
  std::unordered_map<std::string, ir::Value*> values_;
};

}  // namespace

Result<ir::Graph> buildGraph(const WireFile& file) {
  if (file.regions.empty() || file.regions[0].blocks.empty())
    return fail(Code::InvalidGraph, "the file holds no graph");
  int subGraphsLeft = kMaxSubGraphs;
  const WireRegion& main = file.regions[0];
  CARINA_TRY(ir::Graph graph, BlockBuilder(file, main, main.blocks[0], nullptr, subGraphsLeft).build());
  graph.eraseUnusedConstants();
  CARINA_RETURN_IF_ERROR(tosa::verify(graph));
  return graph;
}

}  // namespace carina::tosa_io
