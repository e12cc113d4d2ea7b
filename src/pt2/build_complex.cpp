// SPDX-License-Identifier: Apache-2.0
#include "pt2/build_complex.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "aten/ops.hpp"
#include "decompose/composites.hpp"
#include "pt2/complex_numbers.hpp"
#include "pt2/fourier.hpp"
#include "pt2/refusals.hpp"
#include "pt2/scalar_type.hpp"

namespace carina::pt2 {
namespace {

using Tag = Argument::Tag;

/// "torch.ops.aten.mul_.Tensor" -> "mul_".
std::string_view baseOf(std::string_view target) {
  constexpr std::string_view kPrefix = "torch.ops.aten.";
  if (!target.starts_with(kPrefix)) return {};
  target.remove_prefix(kPrefix.size());
  return target.substr(0, target.find('.'));
}

bool isInPlace(std::string_view base) {
  return base.size() > 1 && base.back() == '_' && base.front() != '_';
}

std::string_view withoutUnderscore(std::string_view base) {
  return isInPlace(base) ? base.substr(0, base.size() - 1) : base;
}

/// Operators that treat real and imaginary parts alike, and independently of each other.
bool appliesToEachPart(std::string_view base) {
  static const std::unordered_set<std::string_view> kEach = {
      "_unsafe_view", "alias",         "broadcast_to",   "cat",  "constant_pad_nd", "masked_fill", "pad",
      "chunk",        "clone",         "concat",         "concatenate",
      "contiguous",   "copy",          "cumsum",         "detach",
      "diag",         "diagonal",      "diff",           "dstack",
      "expand",       "expand_as",     "flatten",        "flip",
      "fliplr",       "flipud",        "gather",         "hstack",
      "index",        "index_put",     "index_select",   "lift_fresh",
      "movedim",      "moveaxis",      "lift_fresh_copy", "mean",
      "narrow",       "neg",           "numpy_T",        "permute",
      "ravel",        "repeat",        "repeat_interleave", "reshape",
      "reshape_as",   "roll",
      "rot90",        "select",        "select_scatter", "slice",
      "slice_scatter", "split",        "split_with_sizes", "squeeze",
      "stack",        "sum",           "swapaxes",       "swapdims",
      "t",            "take_along_dim", "tensor_split",  "tile",
      "transpose",    "tril",          "triu",           "unbind",
      "unflatten",    "unfold",        "unsqueeze",      "view",
      "view_as",      "vstack",        "where"};
  return kEach.contains(base);
}

struct TransformRow {
  Spectrum::Kind kind;
  bool inverse;
  int dims;  // 0: any number
  bool conjugated = false;
};

const TransformRow* transformRow(std::string_view base) {
  using Kind = Spectrum::Kind;
  static const std::unordered_map<std::string_view, TransformRow> kRows = {
      {"fft_fft", {Kind::Complex, false, 1}},   {"fft_ifft", {Kind::Complex, true, 1}},
      {"fft_fft2", {Kind::Complex, false, 2}},  {"fft_ifft2", {Kind::Complex, true, 2}},
      {"fft_fftn", {Kind::Complex, false, 0}},  {"fft_ifftn", {Kind::Complex, true, 0}},
      {"fft_rfft", {Kind::Half, false, 1}},     {"fft_irfft", {Kind::Real, true, 1}},
      {"fft_rfft2", {Kind::Half, false, 2}},    {"fft_irfft2", {Kind::Real, true, 2}},
      {"fft_rfftn", {Kind::Half, false, 0}},    {"fft_irfftn", {Kind::Real, true, 0}},
      {"fft_ihfft", {Kind::Half, true, 1}},     {"fft_hfft", {Kind::Real, false, 1}}};
  const auto it = kRows.find(base);
  return it == kRows.end() ? nullptr : &it->second;
}

class ComplexBuilder {
 public:
  using Handler = Status (ComplexBuilder::*)();

  ComplexBuilder(const NodeDocument& node, Scope& scope)
      : node_(node),
        scope_(scope),
        base_(baseOf(node.target)),
        builder_(scope.graph, nullptr, placed(node.location, scope)) {}

  static Handler handlerOf(std::string_view base);

  Status run() {
    for (const NamedArgument& input : node_.inputs) {
      if (!hasArgument(input.name))
        return fail(Code::InvalidGraph, "{} has no argument '{}'", operatorName(node_.target), input.name);
    }
    const std::string_view base = withoutUnderscore(base_);
    if (appliesToEachPart(base)) return eachPart();
    if (transformRow(base)) return transform();
    const Handler handler = handlerOf(base);
    CARINA_CHECK(handler, "unknown operators are refused before graphs are built");
    return (this->*handler)();
  }

 private:
  // Arguments
  // ------------------------------------------------------------------------------------------------------

  /// An argument that is not known could change the result.
  bool hasArgument(std::string_view name) const {
    if (const ir::OpDef* def = decompose::findReadable(operatorName(node_.target)))
      return def->operandIndex(name) >= 0 || def->attributeIndex(name) >= 0;
    static const std::unordered_set<std::string_view> kFourier = {
        "self", "n", "s", "dim", "norm", "normalization", "onesided", "forward", "last_dim_size"};
    return kFourier.contains(name);
  }

  const Argument* find(std::string_view name) const {
    const auto it = std::find_if(node_.inputs.begin(), node_.inputs.end(),
                                 [&](const NamedArgument& a) { return a.name == name; });
    return it == node_.inputs.end() || it->value.tag == Tag::None ? nullptr : &it->value;
  }
  int64_t integer(std::string_view name, int64_t otherwise) const {
    const Argument* argument = find(name);
    return argument && !argument->ints.empty() ? argument->ints[0] : otherwise;
  }
  std::string text(std::string_view name, std::string otherwise) const {
    const Argument* argument = find(name);
    return argument && argument->tag == Tag::String ? argument->strings[0] : otherwise;
  }
  ir::Ints ints(std::string_view name) const {
    const Argument* argument = find(name);
    return argument ? ir::Ints(argument->ints) : ir::Ints{};
  }
  Error missing(std::string_view name) const {
    return fail(Code::InvalidGraph, "{} needs the argument '{}'", operatorName(node_.target), name);
  }
  Error unsupported(std::string_view what) const {
    return fail(Code::WrongElementType, "{} of complex numbers is not supported with {}",
                operatorName(node_.target), what)
        .withRemedy("Compute it from real and imaginary parts (torch.view_as_real).");
  }

  /// A tensor or a number as complex numbers.
  Result<Parts> parts(std::string_view name) {
    const Argument* argument = find(name);
    if (!argument) return missing(name);
    if (argument->tag == Tag::Tensor) return findParts(scope_, argument->names[0]);
    if (argument->tag == Tag::Complex) return Parts{number(argument->reals[0]), number(argument->reals[1])};
    if (!argument->isNumber()) return missing(name);
    const bool real = argument->tag == Tag::Real;
    return Parts{number(real ? argument->reals[0] : static_cast<double>(argument->ints[0])), nullptr};
  }
  ir::Value* number(double value) {
    return builder_.constant(convert(Tensor::scalar(value), partDType()),
                             scope_.names.claim(node_.name + "_number"));
  }

  // Results
  // --------------------------------------------------------------------------------------------------------

  const std::string& resultName() const { return node_.outputs[0].names[0]; }
  const TensorMeta& resultMeta() const { return scope_.document.tensors.at(resultName()); }
  /// Of real numbers that are combined with the complex numbers of this node.
  DType partDType() const {
    const ScalarType* type = scalarTypeByNumber(partType(resultMeta().scalarType));
    return type && type->dtype ? *type->dtype : DType::Float32;
  }

  /// Defines the only result, after writing it to the first operand if the operator is in-place.
  Status define(Parts result) {
    const bool complex = isComplex(scope_.document, resultName());
    if (complex && isInPlace(base_)) {
      CARINA_TRY(const Parts self, parts("self"));
      CARINA_TRY(result, written(self, result));
    }
    CARINA_TRY(const ir::Type type, recordedType(scope_.document, partName(resultName(), Part::Real)));
    for (ir::Value** value : {&result.real, &result.imag}) {
      if (*value && (*value)->type.shape != type.shape)
        *value = aten::Expand::create(builder_, *value, type.shape);
      if (*value && (*value)->type != type) {
        return fail(Code::InvalidGraph, "the result of {} is recorded as {}, but its operands imply {}",
                    operatorName(node_.target), ir::typeText(type), ir::typeText((*value)->type));
      }
    }
    if (complex) {
      rename(result.real, partName(resultName(), Part::Real));
      rename(result.imag, partName(resultName(), Part::Imag));
      return defineParts(scope_, resultName(), result);
    }
    if (result.imag) return fail(Code::InvalidGraph, "{} has a complex result", operatorName(node_.target));
    rename(result.real, resultName());
    if (!scope_.values.emplace(resultName(), result.real).second)
      return fail(Code::InvalidGraph, "the value '{}' is defined twice", resultName());
    return {};
  }
  Status define(ir::Value* real, ir::Value* imag) { return define(Parts{real, imag}); }

  void rename(ir::Value* value, const std::string& name) {
    if (value && value->name.empty()) value->name = scope_.names.claim(name);
  }

  Result<Parts> written(const Parts& self, const Parts& value) {
    if (!self.imag) return unsupported("a destination that was real");
    ir::Value* imag = value.imag ? value.imag : aten::ZerosLike::create(builder_, self.imag);
    return Parts{aten::CopyInplace::create(builder_, self.real, value.real),
                 aten::CopyInplace::create(builder_, self.imag, imag)};
  }

  // Operators on each part
  // -------------------------------------------------------------------------------------------------------

  /// Builds the node once for the real parts and once for the imaginary parts.
  Status eachPart() {
    for (const Part part : {Part::Real, Part::Imag}) {
      NodeDocument copy = node_;
      if (base_ == "copy_" && part == Part::Imag) {
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
      const bool absent = (a == Part::Imag && !x.imag) || (operands.size() == 2 && b == Part::Imag && !y.imag);
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

  // Fourier transforms
  // ---------------------------------------------------------------------------------------------------

  Result<ir::Ints> dimensions(const char* name, int64_t rank) const {
    ir::Ints dims = ints(name);
    for (int64_t& dim : dims) {
      if (dim < 0) dim += rank;
      if (dim < 0 || dim >= rank || std::count(dims.begin(), dims.end(), dim) > 1)
        return fail(Code::InvalidGraph, "{} has invalid dimensions", operatorName(node_.target));
    }
    return dims;
  }

  /// 1 / N ^ p for a transform of N elements.
  static double scaleOf(const ir::Ints& sizes, double power) {
    double count = 1;
    for (const int64_t size : sizes) count *= static_cast<double>(size);
    return std::pow(count, -power);
  }

  Status transformed(const Parts& x, Spectrum spectrum, double power) {
    if (spectrum.dims.empty() || spectrum.sizes.size() != spectrum.dims.size() ||
        std::any_of(spectrum.sizes.begin(), spectrum.sizes.end(), [](int64_t n) { return n < 1; }))
      return fail(Code::InvalidGraph, "{} has invalid sizes", operatorName(node_.target));
    if (x.real->numElements() == 0 || !isFloat(x.real->dtype()))
      return unsupported("a tensor that is empty or has no floats");
    spectrum.scale = scaleOf(spectrum.sizes, power);
    CARINA_TRY(const Parts result, scope_.fourier->spectrum(builder_, x, spectrum));
    return define(result);
  }

  /// torch.fft.*: lengths, dimensions and norm are optional.
  Status transform() {
    const TransformRow& row = *transformRow(base_);
    CARINA_TRY(const Parts x, parts("self"));
    const int64_t rank = x.real->rank();
    const ir::Ints lengths = ints(row.dims == 1 ? "n" : "s");
    Spectrum spectrum{row.kind, row.inverse, {}, {}, 1};
    CARINA_TRY(spectrum.dims, dimensions("dim", rank));
    if (spectrum.dims.empty()) {
      int64_t count = row.dims > 0 ? row.dims : rank;
      if (row.dims == 0 && !lengths.empty()) count = static_cast<int64_t>(lengths.size());
      for (int64_t dim = std::max<int64_t>(rank - count, 0); dim < rank; ++dim) spectrum.dims.push_back(dim);
    }
    if (!lengths.empty() && lengths.size() != spectrum.dims.size())
      return fail(Code::InvalidGraph, "{} has invalid sizes", operatorName(node_.target));
    for (size_t i = 0; i < spectrum.dims.size(); ++i) {
      const bool mirrored = row.kind == Spectrum::Kind::Real && i + 1 == spectrum.dims.size();
      const int64_t size = x.real->dim(spectrum.dims[i]);
      const bool given = !lengths.empty() && lengths[i] != -1;
      spectrum.sizes.push_back(given ? lengths[i] : (mirrored ? 2 * (size - 1) : size));
    }
    const std::string norm = text("norm", "backward");
    const double power = norm == "ortho" ? 0.5 : (norm == "forward") != row.inverse ? 1 : 0;
    return transformed(x, std::move(spectrum), power);
  }

  /// What run_decompositions() leaves: every dimension is given, and a number for the norm.
  Status loweredTransform() {
    CARINA_TRY(const Parts x, parts("self"));
    const bool real = base_ == "_fft_r2c", toReal = base_ == "_fft_c2r";
    const bool half = real && integer("onesided", 1) != 0;
    Spectrum spectrum;
    spectrum.kind = toReal ? Spectrum::Kind::Real : half ? Spectrum::Kind::Half : Spectrum::Kind::Complex;
    spectrum.inverse = toReal || (base_ == "_fft_c2c" && integer("forward", 1) == 0);
    CARINA_TRY(spectrum.dims, dimensions("dim", x.real->rank()));
    for (const int64_t dim : spectrum.dims) spectrum.sizes.push_back(x.real->dim(dim));
    if (toReal && !spectrum.sizes.empty()) spectrum.sizes.back() = integer("last_dim_size", 0);
    const int64_t norm = integer("normalization", 0);  // none, by the root of N, by N
    return transformed(x, std::move(spectrum), static_cast<double>(norm) / 2);
  }

  Status shifted() {
    CARINA_TRY(const Parts x, parts("self"));
    CARINA_TRY(ir::Ints dims, dimensions("dim", x.real->rank()));
    if (dims.empty()) {
      dims.resize(static_cast<size_t>(x.real->rank()));
      std::iota(dims.begin(), dims.end(), int64_t{0});
    }
    ir::Ints shifts;
    for (const int64_t dim : dims)
      shifts.push_back((x.real->dim(dim) + (base_ == "fft_ifftshift" ? 1 : 0)) / 2);
    const auto rolled = [&](ir::Value* v) {
      return v ? aten::Roll::create(builder_, v, shifts, dims).output() : nullptr;
    };
    return define(rolled(x.real), rolled(x.imag));
  }

  // Short-time Fourier transforms
  // ---------------------------------------------------------------------------------------------------

  /// Frame length, hop and window; the bins and the scale are left to the caller.
  Result<Frames> frameArguments(DType dtype) {
    Frames frames;
    frames.length = integer("n_fft", 0);
    frames.hop = integer("hop_length", frames.length / 4);
    const int64_t length = integer("win_length", frames.length);
    if (frames.length < 1 || frames.hop < 1 || length < 1 || length > frames.length)
      return fail(Code::InvalidGraph, "{} has invalid lengths", operatorName(node_.target));
    if (find("window")) {
      CARINA_TRY(const Parts window, parts("window"));
      if (window.imag || window.real->type != ir::Type{dtype, {length}})
        return unsupported("a window of another type or length");
      frames.window = window.real;
    } else if (length < frames.length) {
      frames.window = builder_.constant(
          convert(Tensor::from({length}, std::vector<float>(static_cast<size_t>(length), 1)), dtype));
    }
    if (const int64_t missing = frames.length - length; missing > 0)
      frames.window = aten::ConstantPadNd::create(builder_, frames.window,
                                                  ir::Ints{missing / 2, missing - missing / 2});
    return frames;
  }

  Status shortTimeTransform() {
    CARINA_TRY(const Parts self, parts("self"));
    ir::Value* signal = self.real;
    if (self.imag || !isFloat(signal->dtype())) return unsupported("a complex signal");
    if (signal->rank() != 1 && signal->rank() != 2)
      return fail(Code::InvalidGraph, "{} has a signal of rank {}", operatorName(node_.target), signal->rank());
    CARINA_TRY(Frames frames, frameArguments(signal->dtype()));
    const bool batch = signal->rank() == 2;
    if (!batch) signal = firstOf(signal, true);
    if (node_.target.ends_with(".center") && integer("center", 1) != 0) {
      const int64_t pad = frames.length / 2;
      signal = aten::Pad::create(builder_, signal, ir::Ints{pad, pad}, text("pad_mode", "reflect"));
    }
    if (signal->dim(1) < frames.length)
      return fail(Code::InvalidGraph, "{} has a signal that is shorter than a frame",
                  operatorName(node_.target));
    frames.bins = integer("onesided", 1) != 0 ? frames.length / 2 + 1 : frames.length;
    frames.scale = scaleOf({frames.length}, integer("normalized", 0) != 0 ? 0.5 : 0);
    CARINA_TRY(Parts result, scope_.fourier->frames(builder_, signal, frames));
    if (!batch) result = {firstOf(result.real, false), firstOf(result.imag, false)};
    if (!isComplex(scope_.document, resultName())) return define(joinParts(builder_, result), nullptr);
    return define(result);
  }

  Status inverseShortTimeTransform() {
    CARINA_TRY(Parts self, parts("self"));
    if (self.real->rank() != 2 && self.real->rank() != 3)
      return fail(Code::InvalidGraph, "{} has a spectrum of rank {}", operatorName(node_.target),
                  self.real->rank());
    if (isComplex(scope_.document, resultName())) return unsupported("a complex result");
    const bool batch = self.real->rank() == 3;
    if (!batch) self = {firstOf(self.real, true), firstOf(self.imag, true)};
    CARINA_TRY(Frames frames, frameArguments(self.real->dtype()));
    frames.bins = self.real->dim(1);
    if (frames.bins != frames.length && frames.bins != frames.length / 2 + 1)
      return fail(Code::InvalidGraph, "{} has {} bins for frames of {} samples", operatorName(node_.target),
                  frames.bins, frames.length);
    frames.scale = scaleOf({frames.length}, integer("normalized", 0) != 0 ? 0.5 : 1);
    const int64_t all = (self.real->dim(2) - 1) * frames.hop + frames.length;
    const bool center = integer("center", 1) != 0;
    const int64_t begin = center ? frames.length / 2 : 0;
    const int64_t wanted = integer("length", center ? all - 2 * begin : all);
    const int64_t end = std::min(all, begin + wanted);
    if (begin >= end) return fail(Code::InvalidGraph, "{} has no samples", operatorName(node_.target));
    CARINA_TRY(ir::Value * signal, scope_.fourier->overlapped(builder_, self, frames, begin, end));
    if (const int64_t silent = wanted - (end - begin); silent > 0)
      signal = aten::ConstantPadNd::create(builder_, signal, ir::Ints{0, silent});
    return define(batch ? signal : firstOf(signal, false), nullptr);
  }

  /// Adds or removes a first dimension of one element.
  ir::Value* firstOf(ir::Value* x, bool add) {
    if (!x) return nullptr;
    if (add) return aten::Unsqueeze::create(builder_, x, int64_t{0});
    return aten::SelectInt::create(builder_, x, int64_t{0}, int64_t{0});
  }

  const NodeDocument& node_;
  Scope& scope_;
  std::string_view base_;
  ir::Builder builder_;
};

ComplexBuilder::Handler ComplexBuilder::handlerOf(std::string_view base) {
  using C = ComplexBuilder;
  static const std::unordered_map<std::string_view, Handler> kHandlers = {
      {"_conj", &C::conjugation},
      {"_conj_physical", &C::conjugation},
      {"_fft_c2c", &C::loweredTransform},
      {"_fft_c2r", &C::loweredTransform},
      {"_fft_r2c", &C::loweredTransform},
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
      {"fft_fftshift", &C::shifted},
      {"fft_ifftshift", &C::shifted},
      {"fill", &C::filled},
      {"full", &C::filled},
      {"full_like", &C::filled},
      {"imag", &C::imaginaryPart},
      {"istft", &C::inverseShortTimeTransform},
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
      {"stft", &C::shortTimeTransform},
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
  const std::string_view base = baseOf(node.target);
  if (base.starts_with("fft_") || base.starts_with("_fft_") || base == "stft" || base == "istft") return true;
  return std::any_of(node.inputs.begin(), node.inputs.end(),
                     [&](const NamedArgument& input) { return anyComplex(document, input.value); }) ||
         std::any_of(node.outputs.begin(), node.outputs.end(),
                     [&](const Argument& output) { return anyComplex(document, output); });
}

bool knownForComplex(const NodeDocument& node) {
  const std::string_view base = withoutUnderscore(baseOf(node.target));
  if (appliesToEachPart(base)) return decompose::findReadable(operatorName(node.target)) != nullptr;
  if (transformRow(base)) return true;
  return ComplexBuilder::handlerOf(base) != nullptr;
}

Status buildComplexNode(const NodeDocument& node, Scope& scope) {
  return ComplexBuilder(node, scope).run();
}

}  // namespace carina::pt2
