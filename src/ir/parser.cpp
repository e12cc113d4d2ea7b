// SPDX-License-Identifier: Apache-2.0
#include "ir/parser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <unordered_map>

#include "base/budget.hpp"
#include "base/nearest.hpp"
#include "ir/extents.hpp"
#include "ir/scanner.hpp"

namespace carina::ir {
namespace {

constexpr int kDeepestNesting = 32;  // of regions

constexpr std::string_view kPrintInFull = "print the graph in full: 'carina opt FILE -o OUT.ir' does";

/// How an attribute of this kind is written, for errors.
std::string kindText(const AttributeDef& def) {
  switch (def.kind) {
    case AttributeKind::Bool:
      return "True or False";
    case AttributeKind::Int:
      return "an integer";
    case AttributeKind::Real:
      return "a number";
    case AttributeKind::Scalar:
      return "a number, True or False";
    case AttributeKind::String:
      return "a string in double quotes";
    case AttributeKind::Type:
      return "an element type";
    case AttributeKind::Ints:
      return "a list of integers";
    case AttributeKind::Reals:
      return "a list of numbers";
    case AttributeKind::Strings:
      return "a list of strings";
    case AttributeKind::Enum:
      return fmt::format("one of {}", fmt::join(def.enumerators, ", "));
    case AttributeKind::Tensor:
      return "a type and the contents of a tensor";
  }
  return "a value";
}

template <typename T>
bool readNumber(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

int hexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// Elements of one type, appended from text.
class Elements {
 public:
  explicit Elements(DType dtype) : dtype_(dtype) {}

  /// Whether the text is an element of the type.
  bool add(std::string_view text) {
    if (dtype_ == DType::Float64) return addAs(text, reals_);
    if (isFloat(dtype_)) return addAs(text, floats_);
    if (!addAs(text, integers_)) return false;
    return integers_.back() >= integerMin(dtype_) && integers_.back() <= integerMax(dtype_);
  }
  size_t size() const { return reals_.size() + floats_.size() + integers_.size(); }

  Tensor tensor(const Shape& shape) const {
    if (dtype_ == DType::Float64) return Tensor::from(shape, reals_);
    if (isFloat(dtype_)) return convert(Tensor::from(shape, floats_), dtype_);
    Tensor tensor = Tensor::uninitialized(dtype_, shape);
    for (size_t i = 0; i < integers_.size(); ++i) tensor.setIntegerAt(static_cast<int64_t>(i), integers_[i]);
    return tensor;
  }

 private:
  template <typename T>
  static bool addAs(std::string_view text, std::vector<T>& values) {
    return readNumber(text, values.emplace_back());
  }

  DType dtype_;
  std::vector<double> reals_;
  std::vector<float> floats_;
  std::vector<int64_t> integers_;
};

class Parser {
 public:
  Parser(std::string_view text, const OperatorSet& operators)
      : scanner_(text), operators_(operators), splat_(static_cast<uint64_t>(kMaxSplatBytes)) {}

  Result<Graph> wholeText() {
    CARINA_TRY(Graph graph, this->graph(0));
    if (scanner_.atEnd()) return graph;
    return scanner_.expected("the end of the text after the graph")
        .withRemedy("a file holds one graph: put each graph into its own file");
  }

 private:
  /// The values of one graph by their labels.
  using Scope = std::unordered_map<std::string, Value*>;

  struct Label {
    size_t at = 0;
    std::string text;  // as messages show it
    std::string key;   // in a Scope
    std::string name;  // "" for a numbered value
  };
  /// A value at its definition.
  struct Definition {
    Label label;
    bool typed = false;
    Type type;
    std::optional<Quantization> quantization;
  };

  // Values
  // ---------------------------------------------------------------------------------------------------

  /// %name, %"name", %name#2 (the second value of that name), %0 (a value without a name).
  Result<Label> label() {
    Label label;
    label.at = scanner_.position();
    CARINA_RETURN_IF_ERROR(scanner_.expect('%', "and the name of a value"));
    const bool isQuoted = scanner_.peek() == '"';
    CARINA_TRY(label.name, scanner_.name("the name of a value after '%'"));
    if (label.name.empty()) {
      return scanner_.errorAt(label.at, fail(Code::BadText, "the name of a value cannot be empty")
                                            .withRemedy("values without a name are written %0, %1, ..."));
    }
    label.text = label.name;
    const bool isNumber = !isQuoted && std::all_of(label.name.begin(), label.name.end(),
                                                   [](char c) { return c >= '0' && c <= '9'; });
    label.key = (isNumber ? '0' : '%') + label.name;
    if (isNumber) label.name.clear();
    if (!isNumber && scanner_.take('#')) {
      CARINA_TRY(const std::string_view copy, scanner_.word("a number after '#'"));
      label.text += fmt::format("#{}", copy);
      label.key += fmt::format("\n#{}", copy);
    }
    return label;
  }

  Result<int64_t> integer(std::string_view what) {
    const size_t at = scanner_.position();
    CARINA_TRY(const std::string_view word, scanner_.word(what));
    int64_t value = 0;
    if (!readNumber(word, value))
      return scanner_.errorAt(at, fail(Code::BadText, "expected {}, found '{}'", what, word));
    return value;
  }

  Result<double> real(std::string_view what) {
    const size_t at = scanner_.position();
    CARINA_TRY(const std::string_view word, scanner_.word(what));
    double value = 0;
    if (!readNumber(word, value))
      return scanner_.errorAt(at, fail(Code::BadText, "expected {}, found '{}'", what, word));
    return value;
  }

  Result<Type> type() {
    const size_t at = scanner_.position();
    CARINA_TRY(const std::string_view word, scanner_.word("a type such as f32[1,8]"));
    const auto dtype = dtypeFromName(word);
    if (!dtype) {
      return scanner_.errorAt(at, fail(Code::BadText, "expected a type such as f32[1,8], found '{}'", word)
                                      .withRemedy("the element types are bool, i4, i8, u8, i16, u16, i32, "
                                                  "u32, i48, i64, f16, bf16, f32, f64 and shape"));
    }
    Type type{*dtype, {}};
    CARINA_RETURN_IF_ERROR(scanner_.expect('[', "and the sizes of the type"));
    while (scanner_.peek() != ']') {
      if (!type.shape.empty()) CARINA_RETURN_IF_ERROR(scanner_.expect(',', "or ']' after a size"));
      CARINA_TRY(const int64_t size, integer("a size"));
      type.shape.push_back(size);
    }
    CARINA_RETURN_IF_ERROR(scanner_.expect(']', "after the sizes"));
    if (Status status = checkExtents(type); !status.ok()) return scanner_.errorAt(at, status.error());
    return type;
  }

  /// <0.5:-3>, <[0.5, 0.25]:[0, 0], axis 0>
  Result<std::optional<Quantization>> quantization() {
    if (!scanner_.take('<')) return std::optional<Quantization>();
    Quantization q;
    const auto item = [&](auto& list, auto read) -> Status {
      CARINA_TRY(const auto value, read());
      list.push_back(value);
      return {};
    };
    const auto oneOrList = [&](auto& list, auto read) -> Status {
      if (!scanner_.take('[')) return item(list, read);
      while (scanner_.peek() != ']') {
        if (!list.empty()) CARINA_RETURN_IF_ERROR(scanner_.expect(',', "or ']' in the list"));
        CARINA_RETURN_IF_ERROR(item(list, read));
      }
      return scanner_.expect(']', "after the list");
    };
    const size_t at = scanner_.position();
    CARINA_RETURN_IF_ERROR(oneOrList(q.scales, [&] { return real("a scale"); }));
    if (scanner_.peekWord() == "scales") {
      return scanner_.errorAt(at,
                              fail(Code::BadText, "the scales and zero points of the value are left out here")
                                  .withRemedy(kPrintInFull));
    }
    CARINA_RETURN_IF_ERROR(scanner_.expect(':', "and a zero point"));
    CARINA_RETURN_IF_ERROR(oneOrList(q.zeroPoints, [&] { return integer("a zero point"); }));
    if (scanner_.take(',')) {
      if (!scanner_.takeWord("axis")) return scanner_.expected("'axis'");
      const size_t axisAt = scanner_.position();
      CARINA_TRY(const int64_t axis, integer("an axis"));
      if (axis < 0 || axis > INT32_MAX)
        return scanner_.errorAt(axisAt, fail(Code::BadText, "an axis cannot be {}", axis));
      q.axis = static_cast<int>(axis);
    }
    CARINA_RETURN_IF_ERROR(scanner_.expect('>', "after scale and zero point"));
    return std::optional<Quantization>(std::move(q));
  }

  /// %x: f32[2]<0.5:0>; the type is optional if `typed` is false.
  Result<Definition> definition(bool typed) {
    Definition definition;
    CARINA_TRY(definition.label, label());
    if (!typed && scanner_.peek() != ':') return definition;
    CARINA_RETURN_IF_ERROR(scanner_.expect(':', "and the type of the value"));
    definition.typed = true;
    CARINA_TRY(definition.type, type());
    CARINA_TRY(definition.quantization, quantization());
    return definition;
  }

  Status define(Scope& scope, Definition& definition, Value* value) {
    if (!scope.emplace(definition.label.key, value).second) {
      return scanner_.errorAt(definition.label.at,
                              fail(Code::BadText, "value %{} is defined twice", definition.label.text)
                                  .withRemedy("give one of them another name; values that share a name "
                                              "are written %name and %name#2"));
    }
    value->name = std::move(definition.label.name);
    value->quantization = std::move(definition.quantization);
    return {};
  }

  Result<Value*> use(const Scope& scope, const Label& label) {
    const auto found = scope.find(label.key);
    if (found != scope.end()) return found->second;
    return scanner_.errorAt(
        label.at, fail(Code::BadText, "value %{} is used before it is defined", label.text)
                      .withRemedy("define it as an input, a constant or the result of an earlier node"));
  }

  // Constants
  // ------------------------------------------------------------------------------------------------

  Result<Tensor> contents(const Type& type) {
    const size_t at = scanner_.position();
    if (scanner_.peek() == '#') {
      return scanner_.errorAt(
          at, fail(Code::BadText, "the contents of the constant are left out here; '#' begins a checksum")
                  .withRemedy(kPrintInFull));
    }
    if (scanner_.peek() == '[') return list(type);
    const std::string_view word = scanner_.peekWord();
    if (word == "splat") return splat(type);
    if (word.substr(0, 2) == "0x") return hex(type);
    return scanner_.expected("the contents of a constant: [...], 0x..., or splat and a number");
  }

  Status element(Elements& elements, DType dtype) {
    const size_t at = scanner_.position();
    CARINA_TRY(const std::string_view word, scanner_.word("an element"));
    if (elements.add(word)) return {};
    return scanner_.errorAt(
        at, fail(Code::BadText, "expected an element of type {}, found '{}'", dtypeName(dtype), word));
  }

  Result<Tensor> list(const Type& type) {
    const size_t at = scanner_.position();
    const int64_t count = numElements(type.shape);
    Elements elements(type.dtype);
    CARINA_RETURN_IF_ERROR(scanner_.expect('[', "and elements"));
    while (scanner_.peek() != ']') {
      if (elements.size() > 0) CARINA_RETURN_IF_ERROR(scanner_.expect(',', "or ']' after an element"));
      CARINA_RETURN_IF_ERROR(element(elements, type.dtype));
    }
    CARINA_RETURN_IF_ERROR(scanner_.expect(']', "after the elements"));
    if (static_cast<int64_t>(elements.size()) != count) {
      return scanner_.errorAt(at, fail(Code::BadText, "the constant has {} elements, but its type {} has {}",
                                       elements.size(), typeText(type), count));
    }
    return elements.tensor(type.shape);
  }

  Result<Tensor> splat(const Type& type) {
    const size_t at = scanner_.position();
    scanner_.takeWord("splat");
    Elements elements(type.dtype);
    CARINA_RETURN_IF_ERROR(element(elements, type.dtype));
    const int64_t count = numElements(type.shape);
    const int64_t size = dtypeSize(type.dtype);
    if (!splat_.take(static_cast<uint64_t>(count) * static_cast<uint64_t>(size))) {
      return scanner_.errorAt(
          at, fail(Code::Excessive, "splat constants may take {} MiB per file, which this one exceeds",
                   kMaxSplatBytes >> 20)
                  .withRemedy("make the constant smaller, or write its bytes as 0x..."));
    }
    const Tensor one = elements.tensor({1});
    Tensor tensor = Tensor::uninitialized(type.dtype, type.shape);
    std::byte* bytes = tensor.mutableBytes().data();
    for (int64_t i = 0; i < count; ++i)
      std::memcpy(bytes + i * size, one.bytes().data(), static_cast<size_t>(size));
    return tensor;
  }

  /// The bytes of the elements, little-endian and in order.
  Result<Tensor> hex(const Type& type) {
    const size_t at = scanner_.position();
    CARINA_TRY(std::string_view digits, scanner_.word("bytes"));
    digits.remove_prefix(2);
    const auto wanted =
        static_cast<uint64_t>(numElements(type.shape)) * static_cast<uint64_t>(dtypeSize(type.dtype));
    if (digits.size() % 2 != 0 || digits.size() / 2 != wanted) {
      return scanner_.errorAt(
          at, fail(Code::BadText,
                   "the constant has {} hexadecimal digits, but its type {} has {} bytes of two digits",
                   digits.size(), typeText(type), wanted));
    }
    Tensor tensor = Tensor::uninitialized(type.dtype, type.shape);
    const std::span<std::byte> bytes = tensor.mutableBytes();
    for (size_t i = 0; i < bytes.size(); ++i) {
      const int high = hexDigit(digits[2 * i]), low = hexDigit(digits[2 * i + 1]);
      if (high < 0 || low < 0) {
        return scanner_.errorAt(at + 2 + 2 * i, fail(Code::BadText, "expected hexadecimal digits, found '{}'",
                                                     digits.substr(2 * i, 2)));
      }
      bytes[i] = static_cast<std::byte>(high * 16 + low);
    }
    // Types for which not every bit pattern is an element.
    const bool narrow = type.dtype == DType::Bool || type.dtype == DType::Int4 || type.dtype == DType::Int48;
    for (int64_t i = 0; narrow && i < tensor.numElements(); ++i) {
      const int64_t value = type.dtype == DType::Bool
                                ? static_cast<int64_t>(tensor.as<uint8_t>()[static_cast<size_t>(i)])
                                : tensor.integerAt(i);
      if (value < integerMin(type.dtype) || value > integerMax(type.dtype))
        return scanner_.errorAt(at, fail(Code::BadText, "element {} is {}, which is not a valid {}", i, value,
                                         dtypeName(type.dtype)));
    }
    return tensor;
  }

  // Nodes
  // ----------------------------------------------------------------------------------------------------

  Result<const OpDef*> operatorName() {
    const size_t at = scanner_.position();
    CARINA_TRY(const std::string_view name, scanner_.word("the name of an operator"));
    if (const OpDef* def = operators_.find(name)) return def;
    const std::string nearest = operators_.names ? nearestWord(name, operators_.names()) : "";
    return scanner_.errorAt(
        at, fail(Code::UnknownName, "there is no operator '{}'", name)
                .withRemedy(nearest.empty() ? "operators are written with their dialect: aten.relu.default, "
                                              "tosa.CONV2D, npu.CONV"
                                            : fmt::format("did you mean '{}'?", nearest)));
  }

  /// A value, or '_' for none.
  Result<Value*> operand(const Scope& scope, const OpDef& def, const OperandDef& operand, bool mayMiss) {
    const size_t at = scanner_.position();
    if (scanner_.takeWord("_")) {
      if (mayMiss) return static_cast<Value*>(nullptr);
      return scanner_.errorAt(
          at, fail(Code::BadText, "operand '{}' of {} cannot be left out", operand.name, def.name));
    }
    if (scanner_.peek() != '%')
      return scanner_.expected(fmt::format("operand '{}' of {}", operand.name, def.name));
    CARINA_TRY(const Label label, this->label());
    return use(scope, label);
  }

  Status operands(const Scope& scope, NodeSpec& spec) {
    const OpDef& def = *spec.def;
    CARINA_RETURN_IF_ERROR(scanner_.expect('(', "and operands"));
    bool any = false;
    for (const OperandDef& operandDef : def.operands) {
      auto& group = spec.operands.emplace_back();
      const bool optional = operandDef.arity == Arity::Optional;
      if (scanner_.peek() == ')' && optional) continue;
      if (any)
        CARINA_RETURN_IF_ERROR(
            scanner_.expect(',', fmt::format("and operand '{}' of {}", operandDef.name, def.name)));
      any = true;
      if (operandDef.arity == Arity::Variadic) {
        CARINA_RETURN_IF_ERROR(scanner_.expect(
            '[', fmt::format("and the list of operands '{}' of {}", operandDef.name, def.name)));
        while (scanner_.peek() != ']') {
          if (!group.empty()) CARINA_RETURN_IF_ERROR(scanner_.expect(',', "or ']' in the list of operands"));
          CARINA_TRY(Value * value, operand(scope, def, operandDef, operandDef.nullable));
          group.push_back(value);
        }
        CARINA_RETURN_IF_ERROR(scanner_.expect(']', "after the list of operands"));
        continue;
      }
      CARINA_TRY(Value * value, operand(scope, def, operandDef, optional || operandDef.nullable));
      if (value || !optional) group.push_back(value);
    }
    return scanner_.expect(')', fmt::format("after the operands of {}", def.name));
  }

  Result<Attribute> attributeValue(const AttributeDef& def) {
    const size_t at = scanner_.position();
    if (def.optional && scanner_.takeWord("None")) return Attribute(std::monostate{});
    const std::string what = fmt::format("{} for attribute '{}'", kindText(def), def.name);
    if (def.kind == AttributeKind::String) {
      CARINA_TRY(std::string text, scanner_.string(what));
      return Attribute(std::move(text));
    }
    if (def.kind == AttributeKind::Tensor) {
      CARINA_TRY(const Type type, this->type());
      CARINA_TRY(Tensor tensor, contents(type));
      return Attribute(std::move(tensor));
    }
    const bool list = def.kind == AttributeKind::Ints || def.kind == AttributeKind::Reals ||
                      def.kind == AttributeKind::Strings;
    if (!list) {
      CARINA_TRY(const std::string_view word, scanner_.word(what));
      auto value = parseAttribute(def, word);
      if (!value) return scanner_.errorAt(at, fail(Code::BadText, "expected {}, found '{}'", what, word));
      return value;
    }
    if (!scanner_.take('[')) return scanner_.expected(what);
    Ints ints;
    Reals reals;
    Strings strings;
    for (bool first = true; scanner_.peek() != ']'; first = false) {
      if (!first) CARINA_RETURN_IF_ERROR(scanner_.expect(',', "or ']' in the list"));
      if (def.kind == AttributeKind::Ints) {
        CARINA_TRY(const int64_t value, integer(what));
        ints.push_back(value);
      } else if (def.kind == AttributeKind::Reals) {
        CARINA_TRY(const double value, real(what));
        reals.push_back(value);
      } else {
        CARINA_TRY(std::string value, scanner_.string(what));
        strings.push_back(std::move(value));
      }
    }
    CARINA_RETURN_IF_ERROR(scanner_.expect(']', "after the list"));
    if (def.kind == AttributeKind::Ints) return Attribute(std::move(ints));
    if (def.kind == AttributeKind::Reals) return Attribute(std::move(reals));
    return Attribute(std::move(strings));
  }

  /// {name = value, ...}; missing ones take their defaults. `at`: of the node.
  Status attributes(NodeSpec& spec, size_t at) {
    const OpDef& def = *spec.def;
    std::vector<std::optional<Attribute>> given(def.attributes.size());
    if (scanner_.take('{')) {
      for (bool first = true; scanner_.peek() != '}'; first = false) {
        if (!first) CARINA_RETURN_IF_ERROR(scanner_.expect(',', "or '}' after an attribute"));
        const size_t nameAt = scanner_.position();
        CARINA_TRY(const std::string_view name, scanner_.word("the name of an attribute"));
        const int index = def.attributeIndex(name);
        if (index < 0) {
          std::vector<std::string> known;
          for (const AttributeDef& attribute : def.attributes) known.emplace_back(attribute.name);
          return scanner_.errorAt(
              nameAt,
              fail(Code::BadText, "{} has no attribute '{}'", def.name, name)
                  .withRemedy(known.empty() ? std::string("it has none; leave '{...}' out")
                                            : fmt::format("its attributes are {}", fmt::join(known, ", "))));
        }
        auto& slot = given[static_cast<size_t>(index)];
        if (slot) return scanner_.errorAt(nameAt, fail(Code::BadText, "attribute '{}' is given twice", name));
        CARINA_RETURN_IF_ERROR(scanner_.expect('=', "and the value of the attribute"));
        CARINA_TRY(slot, attributeValue(def.attributes[static_cast<size_t>(index)]));
      }
      CARINA_RETURN_IF_ERROR(scanner_.expect('}', "after the attributes"));
    }
    for (size_t i = 0; i < given.size(); ++i) {
      const AttributeDef& attribute = def.attributes[i];
      if (!given[i] && attribute.defaultText.empty()) {
        return scanner_.errorAt(
            at,
            fail(Code::BadText, "attribute '{}' of {} is missing", attribute.name, def.name)
                .withRemedy(fmt::format("write {{{} = ...}} with {}", attribute.name, kindText(attribute))));
      }
      if (!given[i]) {
        CARINA_TRY(given[i], parseAttribute(attribute, attribute.defaultText));
      }
      spec.attributes.push_back(std::move(*given[i]));
    }
    return {};
  }

  /// loc("name", "module", "source"); trailing parts may be missing.
  Result<LocationRef> location() {
    if (!scanner_.takeWord("loc")) return LocationRef();
    CARINA_RETURN_IF_ERROR(scanner_.expect('(', "after 'loc'"));
    Location location;
    std::string* const parts[] = {&location.name, &location.modulePath, &location.source};
    for (size_t i = 0; i < 3 && scanner_.peek() != ')'; ++i) {
      if (i) CARINA_RETURN_IF_ERROR(scanner_.expect(',', "or ')' in the location"));
      CARINA_TRY(*parts[i], scanner_.string("a name, a module path or a source line in double quotes"));
    }
    CARINA_RETURN_IF_ERROR(scanner_.expect(')', "after the location"));
    const bool same = lastLocation_ && lastLocation_->name == location.name &&
                      lastLocation_->modulePath == location.modulePath &&
                      lastLocation_->source == location.source;
    if (!same) lastLocation_ = std::make_shared<const Location>(std::move(location));
    return lastLocation_;
  }

  /// The checks of ir::verify(), with the node's place in the text.
  Status check(const Node& node, size_t at) {
    const OpDef& def = node.def();
    if (def.infer) {
      auto types = def.infer(node);
      if (!types) return scanner_.errorAt(at, types.error());
      for (size_t i = 0; i < node.results().size() && i < types->size(); ++i) {
        if (node.result(i)->type == (*types)[i]) continue;
        return scanner_.errorAt(
            at, fail(Code::BadText, "result {} of {} is written as {}, but its operands imply {}", i,
                     def.name, typeText(node.result(i)->type), typeText((*types)[i]))
                    .withRemedy("write that type, or leave the type out"));
      }
    }
    if (!def.verify) return {};
    Status status = def.verify(node);
    if (!status.ok()) return scanner_.errorAt(at, status.error());
    return {};
  }

  Status regions(Node& node, int depth) {
    for (size_t i = 0; i < node.def().regions; ++i) {
      if (scanner_.takeWord("_")) continue;
      if (scanner_.peekWord() != "graph") break;
      CARINA_TRY(Graph region, graph(depth + 1));
      node.setRegion(i, std::move(region));
    }
    return {};
  }

  /// `results = operator(operands) {attributes} loc(...)`, then the regions.
  Status node(Graph& graph, Scope& scope, std::vector<Definition> results, size_t at, int depth) {
    const size_t nameAt = scanner_.position();
    NodeSpec spec;
    CARINA_TRY(spec.def, operatorName());
    const OpDef& def = *spec.def;
    CARINA_RETURN_IF_ERROR(operands(scope, spec));
    CARINA_RETURN_IF_ERROR(attributes(spec, nameAt));
    CARINA_TRY(spec.location, location());
    const auto untyped = std::find_if(results.begin(), results.end(), [](const auto& r) { return !r.typed; });
    if (untyped == results.end()) {
      for (const Definition& result : results) spec.types.push_back(result.type);
    } else if (!def.infer) {
      return scanner_.errorAt(untyped->label.at,
                              fail(Code::BadText, "the results of {} need their types", def.name)
                                  .withRemedy("write %name: TYPE, such as %x: f32[1,8]"));
    }
    auto created = graph.create(std::move(spec));
    if (!created) return scanner_.errorAt(nameAt, created.error());
    Node& node = **created;
    if (node.results().size() != results.size()) {
      return scanner_.errorAt(
          at, fail(Code::BadText, "{} has {} result{}, but {} are named here", def.name,
                   node.results().size(), node.results().size() == 1 ? "" : "s", results.size()));
    }
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i].typed) node.result(i)->type = results[i].type;
      CARINA_RETURN_IF_ERROR(define(scope, results[i], node.result(i)));
    }
    CARINA_RETURN_IF_ERROR(regions(node, depth));
    return check(node, nameAt);
  }

  /// A constant or a node.
  Status statement(Graph& graph, Scope& scope, int depth) {
    const size_t at = scanner_.position();
    std::vector<Definition> definitions;
    if (scanner_.peek() == '%') {
      do {
        CARINA_TRY(Definition next, definition(false));
        definitions.push_back(std::move(next));
      } while (scanner_.take(','));
      CARINA_RETURN_IF_ERROR(scanner_.expect('=', "and a constant or an operator"));
      const std::string_view word = scanner_.peekWord();
      const char next = scanner_.peek();
      if (next == '[' || next == '#' || word == "splat" || word.substr(0, 2) == "0x") {
        if (definitions.size() > 1)
          return scanner_.errorAt(
              at, fail(Code::BadText, "a constant is one value, but {} are named", definitions.size()));
        if (!definitions[0].typed)
          return scanner_.errorAt(at,
                                  fail(Code::BadText, "a constant needs its type")
                                      .withRemedy("write %name: TYPE = ..., such as %w: f32[2] = [1, 2]"));
        CARINA_TRY(Tensor tensor, contents(definitions[0].type));
        return define(scope, definitions[0], graph.addConstant(std::move(tensor)));
      }
    } else if (scanner_.peekWord().empty()) {
      return scanner_.expected("a constant, a node, or '}' at the end of the graph");
    }
    return node(graph, scope, std::move(definitions), at, depth);
  }

  /// graph @name(%x: f32[2]) -> (%y) { ... }
  Result<Graph> graph(int depth) {
    const size_t at = scanner_.position();
    if (!scanner_.takeWord("graph")) return scanner_.expected("'graph'");
    if (depth > kDeepestNesting) {
      return scanner_.errorAt(at,
                              fail(Code::BadText, "graphs are nested more than {} deep", kDeepestNesting));
    }
    CARINA_RETURN_IF_ERROR(scanner_.expect('@', "and the name of the graph"));
    // The name of a graph may be empty.
    std::string name;
    if (scanner_.peek() != '(') {
      CARINA_TRY(name, scanner_.name("the name of the graph after '@'"));
    }
    Graph graph(std::move(name));
    Scope scope;
    CARINA_RETURN_IF_ERROR(scanner_.expect('(', "and the graph's inputs"));
    while (scanner_.peek() != ')') {
      if (!graph.inputs().empty()) CARINA_RETURN_IF_ERROR(scanner_.expect(',', "or ')' after an input"));
      CARINA_TRY(Definition input, definition(true));
      CARINA_RETURN_IF_ERROR(define(scope, input, graph.addInput(input.type)));
    }
    CARINA_RETURN_IF_ERROR(scanner_.expect(')', "after the inputs"));
    if (!scanner_.takeWord("-") || !scanner_.take('>'))
      return scanner_.expected("'->' and the graph's outputs");
    CARINA_RETURN_IF_ERROR(scanner_.expect('(', "and the graph's outputs"));
    std::vector<Label> outputs;
    while (scanner_.peek() != ')') {
      if (!outputs.empty()) CARINA_RETURN_IF_ERROR(scanner_.expect(',', "or ')' after an output"));
      CARINA_TRY(Label output, label());
      outputs.push_back(std::move(output));
    }
    CARINA_RETURN_IF_ERROR(scanner_.expect(')', "after the outputs"));
    CARINA_RETURN_IF_ERROR(scanner_.expect('{', "and the graph's nodes"));
    while (!scanner_.take('}')) CARINA_RETURN_IF_ERROR(statement(graph, scope, depth));
    std::vector<Value*> values;
    for (const Label& output : outputs) {
      const auto found = scope.find(output.key);
      if (found == scope.end()) {
        return scanner_.errorAt(output.at, fail(Code::BadText, "the output %{} is not defined in graph @{}",
                                                output.text, graph.name));
      }
      values.push_back(found->second);
    }
    graph.setOutputs(std::move(values));
    return graph;
  }

  Scanner scanner_;
  const OperatorSet& operators_;
  Budget splat_;
  LocationRef lastLocation_;
};

}  // namespace

Result<Graph> parse(std::string_view text, const OperatorSet& operators) {
  return Parser(text, operators).wholeText();
}

}  // namespace carina::ir
