// SPDX-License-Identifier: Apache-2.0
#include "pt2/build_complex.hpp"

#include <algorithm>
#include <unordered_map>

#include "aten/ops.hpp"
#include "decompose/composites.hpp"
#include "pt2/build_fourier.hpp"
#include "pt2/complex_node.hpp"
#include "pt2/refusals.hpp"

namespace carina::pt2 {
namespace {

using Tag = Argument::Tag;

std::string_view withoutUnderscore(std::string_view base) {
  return isInPlace(base) ? base.substr(0, base.size() - 1) : base;
}

/// Operators that treat real and imaginary parts alike, and independently of each other.
bool appliesToEachPart(std::string_view base) {
  constexpr std::string_view kNames =
      " _unsafe_view alias broadcast_to cat chunk clone concat concatenate constant_pad_nd contiguous"
      " copy cumsum detach diag diagonal diff dstack expand expand_as flatten flip fliplr flipud gather"
      " hstack index index_put index_select lift_fresh lift_fresh_copy masked_fill mean moveaxis"
      " movedim narrow neg numpy_T pad permute ravel repeat repeat_interleave reshape reshape_as roll"
      " rot90 select select_scatter slice slice_scatter split split_with_sizes squeeze stack sum"
      " swapaxes swapdims t take_along_dim tensor_split tile transpose tril triu unbind unflatten"
      " unfold unsqueeze view view_as vstack where ";
  return !base.empty() && kNames.find(fmt::format(" {} ", base)) != std::string_view::npos;
}

class ComplexBuilder : public ComplexNode {
 public:
  using Handler = Status (ComplexBuilder::*)();
  using ComplexNode::ComplexNode;

  static Handler handlerOf(std::string_view base);

  Status run() {
    const std::string_view base = withoutUnderscore(base_);
    if (appliesToEachPart(base)) return eachPart();
    const Handler handler = handlerOf(base);
    CARINA_CHECK(handler, "unknown operators are refused before graphs are built");
    if (node_.outputs.size() != 1 || node_.outputs[0].tag != Tag::Tensor)
      return fail(Code::InvalidGraph, "{} has another result than a tensor", operatorName(node_.target));
    return (this->*handler)();
  }

 private:
  // Operators on each part
  // -------------------------------------------------------------------------------------------------------

  /// Builds the node once for the real parts and once for the imaginary parts.
  Status eachPart() {
    for (const Part part : {Part::Real, Part::Imag}) {
      NodeDocument copy = node_;
      if (isInPlace(base_) && part == Part::Imag) {  // another view of it would not see new imaginary parts
        CARINA_TRY(const Parts self, parts("self"));
        if (!self.imag) return unsupported("a destination that was real");
      }
      for (NamedArgument& input : copy.inputs) CARINA_RETURN_IF_ERROR(toPart(input, part));
      for (Argument& output : copy.outputs) {
        for (std::string& name : output.names) name = partName(name, part);
      }
      CARINA_RETURN_IF_ERROR(buildNode(copy, scope_));
    }
    return {};
  }

  /// Numbers and floats are data: their imaginary part is zero. Booleans and integers are conditions and
  /// indices.
  Status toPart(NamedArgument& input, Part part) {
    Argument& argument = input.value;
    const bool data = input.name == "self" || input.name == "other" || input.name == "value";
    if (data && part == Part::Imag && argument.isNumber()) {
      argument.tag = Tag::Int;
      argument.ints = {0};
    }
    if (argument.tag == Tag::ScalarType) argument.ints[0] = partType(argument.ints[0]);
    if (argument.tag != Tag::Tensor && argument.tag != Tag::Tensors) return {};
    for (std::string& name : argument.names) {
      if (name.empty()) continue;
      const bool complex = isComplex(scope_.document, name);
      const std::string wanted = partName(name, part);
      if (complex && scope_.values.contains(wanted)) {
        name = wanted;
        continue;
      }
      CARINA_TRY(const Parts known, findParts(scope_, name));
      if (!complex && (part == Part::Real || !isFloat(known.real->dtype()))) continue;
      scope_.values.emplace(wanted, aten::ZerosLike::create(builder_, known.real));
      name = wanted;
    }
    return {};
  }

  // Arithmetic
  // -----------------------------------------------------------------------------------------------------

  ir::Value* product(ir::Value* x, ir::Value* y) {
    return x && y ? aten::MulTensor::create(builder_, x, y).output() : nullptr;
  }
  ir::Value* sum(ir::Value* x, ir::Value* y) {
    return x && y ? aten::AddTensor::create(builder_, x, y).output() : (x ? x : y);
  }
  ir::Value* difference(ir::Value* x, ir::Value* y) {
    if (!y) return x;
    return x ? aten::SubTensor::create(builder_, x, y).output() : negative(y);
  }
  ir::Value* negative(ir::Value* x) { return x ? aten::Neg::create(builder_, x).output() : nullptr; }
  ir::Value* quotient(ir::Value* x, ir::Value* y) {
    return x ? aten::DivTensor::create(builder_, x, y).output() : nullptr;
  }
  Parts product(const Parts& x, const Parts& y) {
    return {difference(product(x.real, y.real), product(x.imag, y.imag)),
            sum(product(x.real, y.imag), product(x.imag, y.real))};
  }
  Parts conjugate(const Parts& x) { return {x.real, negative(x.imag)}; }
  ir::Value* squaredMagnitude(const Parts& x) {
    return sum(product(x.real, x.real), product(x.imag, x.imag));
  }
  Parts quotient(const Parts& x, const Parts& y) {
    if (!y.imag) return {quotient(x.real, y.real), quotient(x.imag, y.real)};
    const Parts top = product(x, conjugate(y));
    ir::Value* bottom = squaredMagnitude(y);
    return {quotient(top.real, bottom), quotient(top.imag, bottom)};
  }
  Parts polar(ir::Value* radius, ir::Value* angle) {
    return {product(radius, aten::Cos::create(builder_, angle)),
            product(radius, aten::Sin::create(builder_, angle))};
  }
  ir::Value* angle(const Parts& x) {
    ir::Value* imag = x.imag ? x.imag : aten::ZerosLike::create(builder_, x.real);
    return aten::Atan2::create(builder_, imag, x.real);
  }

  Status addition() {
    CARINA_TRY(const Parts self, parts("self"));
    CARINA_TRY(Parts other, parts("other"));
    if (const Argument* alpha = find("alpha"); alpha && !(alpha->tag == Tag::Int && alpha->ints[0] == 1)) {
      CARINA_TRY(const Parts factor, parts("alpha"));
      other = product(other, factor);
    }
    const std::string_view base = withoutUnderscore(base_);
    if (base == "add") return define(sum(self.real, other.real), sum(self.imag, other.imag));
    const bool reverse = base == "rsub";
    const Parts &from = reverse ? other : self, &what = reverse ? self : other;
    return define(difference(from.real, what.real), difference(from.imag, what.imag));
  }
  Status multiplication() {
    CARINA_TRY(const Parts self, parts("self"));
    CARINA_TRY(const Parts other, parts("other"));
    return define(product(self, other));
  }
  Status division() {
    if (find("rounding_mode")) return unsupported("a rounding mode");
    CARINA_TRY(const Parts self, parts("self"));
    CARINA_TRY(const Parts other, parts("other"));
    return define(quotient(self, other));
  }
  Status power() {
    const Argument* exponent = find("exponent");
    const bool number = exponent && (exponent->tag == Tag::Int || exponent->tag == Tag::Real);
    if (base_.starts_with("pow") &&
        !(number && (exponent->tag == Tag::Int ? exponent->ints[0] == 2 : exponent->reals[0] == 2)))
      return unsupported("an exponent other than 2");
    CARINA_TRY(const Parts self, parts("self"));
    return define(product(self, self));
  }
  Status reciprocal() {
    CARINA_TRY(const Parts self, parts("self"));
    ir::Value* square = squaredMagnitude(self);
    const Parts top = conjugate(self);
    return define(quotient(top.real, square), quotient(top.imag, square));
  }
  Status exponential() {
    CARINA_TRY(const Parts self, parts("self"));
    ir::Value* radius = aten::Exp::create(builder_, self.real);
    return self.imag ? define(polar(radius, self.imag)) : define(radius, nullptr);
  }
  Status logarithm() {
    CARINA_TRY(const Parts self, parts("self"));
    ir::Value* log = aten::Log::create(builder_, squaredMagnitude(self));
    return define(aten::MulScalar::create(builder_, log, 0.5), angle(self));
  }
  Status conjugation() {
    CARINA_TRY(const Parts self, parts("self"));
    return define(conjugate(self));
  }

  // Products of matrices
  // ----------------------------------------------------------------------------------------------------

  /// Operators that are linear in two operands. (a + bi) (c + di) = (ac - bd) + (ad + bc) i.
  Status bilinear() {
    NodeDocument terms = node_;
    std::optional<Parts> added;
    const auto take = [&](std::string_view name) -> Status {
      const auto it = std::find_if(terms.inputs.begin(), terms.inputs.end(),
                                   [&](const NamedArgument& a) { return a.name == name; });
      if (it == terms.inputs.end() || it->value.tag != Tag::Tensor) return {};
      CARINA_TRY(added, findParts(scope_, it->value.names[0]));
      terms.inputs.erase(it);
      return {};
    };
    if (base_ == "addmm" || base_ == "baddbmm") {
      if (find("alpha") || find("beta")) return unsupported("alpha or beta");
      CARINA_RETURN_IF_ERROR(take("self"));
      for (NamedArgument& input : terms.inputs) {
        if (input.name.ends_with("1")) input.name = "self";
        if (input.name.ends_with("2")) input.name = "mat2";
      }
      terms.target = base_ == "addmm" ? "torch.ops.aten.mm.default" : "torch.ops.aten.bmm.default";
    } else {
      CARINA_RETURN_IF_ERROR(take("bias"));
    }
    std::vector<std::string*> operands;
    for (NamedArgument& input : terms.inputs) {
      if (input.value.tag != Tag::Tensor && input.value.tag != Tag::Tensors) continue;
      for (std::string& name : input.value.names) operands.push_back(&name);
    }
    if (operands.empty() || operands.size() > 2) return unsupported("more than two operands");
    const std::string left = *operands.front(), right = *operands.back();
    CARINA_TRY(const Parts x, findParts(scope_, left));
    CARINA_TRY(const Parts y, findParts(scope_, right));
    const auto term = [&](Part a, Part b, const char* suffix) -> Result<ir::Value*> {
      const bool absent =
          (a == Part::Imag && !x.imag) || (operands.size() == 2 && b == Part::Imag && !y.imag);
      if (absent) return nullptr;
      *operands.back() = isComplex(scope_.document, right) ? partName(right, b) : right;
      *operands.front() = isComplex(scope_.document, left) ? partName(left, a) : left;
      terms.outputs[0].names[0] = resultName() + suffix;
      CARINA_RETURN_IF_ERROR(buildNode(terms, scope_));
      return scope_.values.at(terms.outputs[0].names[0]);
    };
    CARINA_TRY(ir::Value* const rr, term(Part::Real, Part::Real, ".rr"));
    CARINA_TRY(ir::Value* const ir, term(Part::Imag, Part::Real, ".ir"));
    Parts result{rr, ir};
    if (operands.size() == 2) {
      CARINA_TRY(ir::Value* const ii, term(Part::Imag, Part::Imag, ".ii"));
      CARINA_TRY(ir::Value* const ri, term(Part::Real, Part::Imag, ".ri"));
      result = {difference(rr, ii), sum(ri, ir)};
    }
    if (added) result = {sum(result.real, added->real), sum(result.imag, added->imag)};
    return define(result);
  }

  // Between real and complex numbers
  // ---------------------------------------------------------------------------------------------------

  Status combine() {
    CARINA_TRY(const Parts real, parts("real"));
    CARINA_TRY(const Parts imag, parts("imag"));
    return define(real.real, imag.real);
  }
  Status fromPolar() {
    CARINA_TRY(const Parts radius, parts("abs"));
    CARINA_TRY(const Parts turned, parts("angle"));
    return define(polar(radius.real, turned.real));
  }
  Status fromPairs() {
    CARINA_TRY(const Parts pairs, parts("self"));
    return define(splitParts(builder_, pairs.real));
  }
  Status toPairs() {
    CARINA_TRY(const Parts self, parts("self"));
    return define(joinParts(builder_, self), nullptr);
  }
  Status realPart() {
    CARINA_TRY(const Parts self, parts("self"));
    return define(self.real, nullptr);
  }
  Status imaginaryPart() {
    CARINA_TRY(const Parts self, parts("self"));
    return define(self.imag ? self.imag : aten::ZerosLike::create(builder_, self.real).output(), nullptr);
  }
  Status unchanged() {
    CARINA_TRY(const Parts self, parts("self"));
    return define(self);
  }
  Status magnitude() {
    CARINA_TRY(const Parts self, parts("self"));
    if (!self.imag) return define(aten::Abs::create(builder_, self.real), nullptr);
    return define(aten::Sqrt::create(builder_, squaredMagnitude(self)), nullptr);
  }
  Status argument() {
    CARINA_TRY(const Parts self, parts("self"));
    return define(angle(self), nullptr);
  }

  /// A conversion between real and complex numbers, or of the precision. The result may be the operand.
  Status conversion() {
    CARINA_TRY(Parts self, parts("self"));
    const bool complex = isComplex(scope_.document, resultName());
    const bool copies = base_ == "_to_copy" || (complex && !self.imag);
    const DType dtype = complex ? partDType() : self.real->dtype();
    for (ir::Value** value : {&self.real, &self.imag}) {
      if (*value && ((*value)->dtype() != dtype || copies))
        *value = aten::PrivateToCopy::create(builder_, *value, dtype);
    }
    if (!complex) self.imag = nullptr;
    return define(self);
  }

  /// Tensors of one number.
  Status filled() {
    CARINA_TRY(const ir::Type type, recordedType(scope_.document, partName(resultName(), Part::Real)));
    const std::string_view base = withoutUnderscore(base_);
    Parts value{number(base.starts_with("ones") || base == "new_ones" ? 1 : 0), number(0)};
    if (find("fill_value")) {
      CARINA_TRY(value, parts("fill_value"));
    } else if (find("value")) {
      CARINA_TRY(value, parts("value"));
    }
    if (!value.imag) value.imag = number(0);
    // Copies, because later nodes may write to them.
    const auto spread = [&](ir::Value* v) {
      return aten::Clone::create(builder_, aten::Expand::create(builder_, v, type.shape));
    };
    return define(spread(value.real), spread(value.imag));
  }
};

ComplexBuilder::Handler ComplexBuilder::handlerOf(std::string_view base) {
  using C = ComplexBuilder;
  static const std::unordered_map<std::string_view, Handler> kHandlers = {
      {"_conj", &C::conjugation},
      {"_conj_physical", &C::conjugation},
      {"_to_copy", &C::conversion},
      {"abs", &C::magnitude},
      {"add", &C::addition},
      {"addmm", &C::bilinear},
      {"angle", &C::argument},
      {"baddbmm", &C::bilinear},
      {"bmm", &C::bilinear},
      {"complex", &C::combine},
      {"conj", &C::conjugation},
      {"conj_physical", &C::conjugation},
      {"div", &C::division},
      {"dot", &C::bilinear},
      {"einsum", &C::bilinear},
      {"empty", &C::filled},
      {"empty_like", &C::filled},
      {"exp", &C::exponential},
      {"fill", &C::filled},
      {"full", &C::filled},
      {"full_like", &C::filled},
      {"imag", &C::imaginaryPart},
      {"linear", &C::bilinear},
      {"log", &C::logarithm},
      {"matmul", &C::bilinear},
      {"mm", &C::bilinear},
      {"mul", &C::multiplication},
      {"mv", &C::bilinear},
      {"new_ones", &C::filled},
      {"new_zeros", &C::filled},
      {"ones", &C::filled},
      {"ones_like", &C::filled},
      {"outer", &C::bilinear},
      {"polar", &C::fromPolar},
      {"pow", &C::power},
      {"real", &C::realPart},
      {"reciprocal", &C::reciprocal},
      {"resolve_conj", &C::unchanged},
      {"resolve_neg", &C::unchanged},
      {"rsub", &C::addition},
      {"square", &C::power},
      {"sub", &C::addition},
      {"to", &C::conversion},
      {"view_as_complex", &C::fromPairs},
      {"view_as_real", &C::toPairs},
      {"zero", &C::filled},
      {"zeros", &C::filled},
      {"zeros_like", &C::filled},
  };
  const auto it = kHandlers.find(base);
  return it == kHandlers.end() ? nullptr : it->second;
}

bool anyComplex(const GraphDocument& document, const Argument& argument) {
  if (argument.tag == Tag::Complex) return true;
  return std::any_of(argument.names.begin(), argument.names.end(),
                     [&](const std::string& name) { return isComplex(document, name); });
}

}  // namespace

bool computesWithComplex(const GraphDocument& document, const NodeDocument& node) {
  return isFourier(node) ||
         std::any_of(node.inputs.begin(), node.inputs.end(),
                     [&](const NamedArgument& input) { return anyComplex(document, input.value); }) ||
         std::any_of(node.outputs.begin(), node.outputs.end(),
                     [&](const Argument& output) { return anyComplex(document, output); });
}

bool knownForComplex(const NodeDocument& node) {
  if (isFourier(node)) return knownFourier(node);
  const std::string_view base = withoutUnderscore(baseOf(node.target));
  if (appliesToEachPart(base)) return decompose::findReadable(operatorName(node.target)) != nullptr;
  return ComplexBuilder::handlerOf(base) != nullptr;
}

Status buildComplexNode(const NodeDocument& node, Scope& scope) {
  if (isFourier(node)) return buildFourierNode(node, scope);
  ComplexBuilder builder(node, scope);
  CARINA_RETURN_IF_ERROR(builder.checkArguments());
  return builder.run();
}

}  // namespace carina::pt2
