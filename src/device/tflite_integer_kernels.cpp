// SPDX-License-Identifier: Apache-2.0
// Integer operators of TensorFlow Lite that are not in the tfl dialect.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "device/tflite_kernels.hpp"
#include "lower_tfl/fixed_point.hpp"

namespace carina::device {
namespace {

using lower_tfl::Multiplier;
using Types = tflite::TensorType;
using Results = Result<std::vector<Tensor>>;

/// An operator in a supported form: its tensors, and the sources of its operands.
class Bound {
 public:
  /// Nothing if operands are omitted, are variables or have an unsupported element type, or if there is not
  /// exactly one result.
  static std::optional<Bound> of(const tflite::Subgraph& graph, const tflite::Operator& op, size_t operands) {
    if (op.inputs.size() != operands || op.outputs.size() != 1 || op.outputs[0] < 0) return std::nullopt;
    Bound bound;
    std::vector<int32_t> given;
    for (const int32_t index : op.inputs) {
      if (index < 0) return std::nullopt;
      const tflite::Tensor& tensor = graph.tensors[static_cast<size_t>(index)];
      const auto bytes = tflite::tensorBytes(tensor);
      if (!bytes || tensor.isVariable) return std::nullopt;
      Operand& operand = bound.operands_.emplace_back();
      bound.tensors_.push_back(tensor);
      if (!tensor.data.empty()) {
        if (tensor.data.size() < static_cast<size_t>(*bytes)) return std::nullopt;
        operand.constant = Tensor::uninitialized(*tflite::toDType(tensor.type), tensor.shape);
        std::copy_n(tensor.data.begin(), *bytes, operand.constant->mutableBytes().begin());
        continue;
      }
      const auto known = std::find(given.begin(), given.end(), index);
      operand.position = static_cast<size_t>(known - given.begin());
      if (known == given.end()) given.push_back(index);
    }
    bound.output_ = graph.tensors[static_cast<size_t>(op.outputs[0])];
    if (!tflite::tensorBytes(bound.output_)) return std::nullopt;
    return bound;
  }

  const tflite::Tensor& input(size_t i) const { return tensors_[i]; }
  const tflite::Tensor& output() const { return output_; }
  const Tensor* constant(size_t i) const { return operands_[i].constant ? &*operands_[i].constant : nullptr; }
  const Tensor& value(std::span<const Tensor> given, size_t i) const {
    return operands_[i].constant ? *operands_[i].constant : given[operands_[i].position];
  }
  Tensor result() const { return Tensor::uninitialized(*tflite::toDType(output_.type), output_.shape); }

 private:
  struct Operand {
    std::optional<Tensor> constant;
    size_t position = 0;  // among those passed to the kernel
  };
  std::vector<Operand> operands_;
  std::vector<tflite::Tensor> tensors_;
  tflite::Tensor output_;
};

struct Quantum {
  float scale = 1;
  int64_t zero = 0;
};
std::optional<Quantum> quantumOf(const tflite::Tensor& tensor) {
  if (tensor.scales.size() != 1 || !(tensor.scales[0] > 0) || !std::isfinite(tensor.scales[0]))
    return std::nullopt;
  return Quantum{tensor.scales[0], tensor.zeroPoints.empty() ? 0 : tensor.zeroPoints[0]};
}

double optionOf(const tflite::Operator& op, std::string_view name) {
  for (const tflite::Option& option : op.options) {
    if (option.name == name) return option.value;
  }
  return 0;
}

/// Offset of an operand's element for each element of the result, with broadcasting.
std::vector<int64_t> stretched(const Shape& from, const Shape& to) {
  std::vector<int64_t> strides(to.size(), 0);
  int64_t stride = 1;
  for (size_t i = 0; i < from.size(); ++i) {
    const size_t axis = from.size() - 1 - i;
    if (from[axis] > 1) strides[to.size() - 1 - i] = stride;
    stride *= from[axis];
  }
  std::vector<int64_t> offsets(static_cast<size_t>(numElements(to)));
  for (size_t i = 0; i < offsets.size(); ++i) {
    auto rest = static_cast<int64_t>(i);
    for (size_t axis = to.size(); axis > 0; --axis) {
      offsets[i] += rest % to[axis - 1] * strides[axis - 1];
      rest /= to[axis - 1];
    }
  }
  return offsets;
}

// DIV
// -------------------------------------------------------------------------------------------------------------

/// The range to which the fused activation limits a result.
std::optional<std::pair<int64_t, int64_t>> activationRange(const tflite::Operator& op, DType dtype,
                                                           const Quantum& to) {
  const int64_t low = integerMin(dtype), high = integerMax(dtype);
  const auto limit = [&](float x) {
    const double code = std::round(x / to.scale) + static_cast<double>(to.zero);
    return static_cast<int64_t>(std::clamp(code, static_cast<double>(low), static_cast<double>(high)));
  };
  switch (static_cast<int>(optionOf(op, "fused_activation_function"))) {
    case 0:
      return std::pair(low, high);
    case 1:
      return std::pair(limit(0), high);
    case 2:
      return std::pair(limit(-1), limit(1));
    case 3:
      return std::pair(limit(0), limit(6));
    default:
      return std::nullopt;
  }
}

/// a / b times the factor between the scales; b is not 0.
int64_t quotient(int32_t a, int32_t b, const Multiplier& factor) {
  if (b < 0) {
    a = -a;
    b = -b;
  }
  // 1 / b as 2^-above / (1 + rest).
  const int leading = std::countl_zero(static_cast<uint32_t>(b)), above = 31 - leading;
  const auto rest = static_cast<int32_t>((static_cast<uint32_t>(b) << leading) - (uint32_t{1} << 31));
  const int headroom = std::countl_zero(static_cast<uint32_t>(a < 0 ? 2 * -a - 1 : a)) - (a < 0 ? 0 : 1);
  const auto raised = static_cast<int32_t>(static_cast<uint32_t>(a) << headroom);
  const int32_t unscaled = lower_tfl::highMul(raised, lower_tfl::oneOverOnePlus(rest));
  const int right = above + headroom - factor.shift;
  // The kernel's shift is undefined beyond 31 bits, where the quotient is far below one code.
  if (right > 31) return 0;
  return lower_tfl::roundingDivide(lower_tfl::highMul(unscaled, factor.value), std::max(right, 0));
}

std::optional<TfliteKernel> divOf(const tflite::Subgraph& graph, const tflite::Operator& op) {
  const auto bound = Bound::of(graph, op, 2);
  if (!bound) return std::nullopt;
  const Types type = bound->output().type;
  const auto both = broadcastShapes(bound->input(0).shape, bound->input(1).shape);
  if ((type != Types::Int8 && type != Types::UInt8 && type != Types::Int32) || bound->input(0).type != type ||
      bound->input(1).type != type || both != bound->output().shape)
    return std::nullopt;
  const auto a = quantumOf(bound->input(0)), b = quantumOf(bound->input(1)), to = quantumOf(bound->output());
  const bool plain = type == Types::Int32;
  if (plain ? (a || b || to) : !(a && b && to)) return std::nullopt;
  const auto range = activationRange(op, *tflite::toDType(type), to.value_or(Quantum()));
  if (!range) return std::nullopt;
  Multiplier factor;
  if (!plain) {
    factor = lower_tfl::quantizeMultiplier(static_cast<double>(a->scale) /
                                           (static_cast<double>(b->scale) * static_cast<double>(to->scale)));
    if (factor.shift > 20) return std::nullopt;
  }
  return [=, zeroA = plain ? 0 : a->zero, zeroB = plain ? 0 : b->zero,
          zero = plain ? 0 : to->zero](std::span<const Tensor> given) -> Results {
    const Tensor &x = bound->value(given, 0), &y = bound->value(given, 1);
    Tensor result = bound->result();
    const auto fromX = stretched(x.shape(), result.shape()), fromY = stretched(y.shape(), result.shape());
    for (int64_t i = 0; i < result.numElements(); ++i) {
      const auto at = static_cast<size_t>(i);
      const int64_t above = x.integerAt(fromX[at]) - zeroA, below = y.integerAt(fromY[at]) - zeroB;
      if (below == 0) return fail(Code::UnsupportedProgram, "element {} is divided by 0", i);
      const int64_t code =
          plain ? above / below
                : quotient(static_cast<int32_t>(above), static_cast<int32_t>(below), factor) + zero;
      result.setIntegerAt(i, std::clamp(code, range->first, range->second));
    }
    return std::vector<Tensor>{std::move(result)};
  };
}

// LOG_SOFTMAX
// ---------------------------------------------------------------------------------------------------------

/// Log-softmax of one row, from the differences to its largest element, in Q5 after `factor`.
struct LogSoftmax {
  Multiplier factor, back;
  int32_t least = 0;  // differences below this count as infinite

  explicit LogSoftmax(double scale) {
    constexpr int kIntegerBits = 5;
    factor = lower_tfl::quantizeMultiplier(std::min(std::ldexp(scale, 31 - kIntegerBits), 2147483647.0));
    back = lower_tfl::quantizeMultiplier(std::ldexp(1.0, 31 - factor.shift) / factor.value);
    least = -lower_tfl::inputRadius(kIntegerBits, factor.shift);
  }

  void run(const Tensor& from, Tensor& to, int64_t begin, int64_t count) const {
    constexpr int kIntegerBits = 5, kSumBits = 12, kOutputShift = 22;
    int64_t most = from.integerAt(begin);
    for (int64_t i = 1; i < count; ++i) most = std::max(most, from.integerAt(begin + i));
    int32_t sum = 0;
    for (int64_t i = 0; i < count; ++i) {
      const auto difference = static_cast<int32_t>(from.integerAt(begin + i) - most);
      if (difference < least) continue;
      const int32_t one = lower_tfl::expOnNegative(lower_tfl::multiply(difference, factor), kIntegerBits);
      sum += lower_tfl::roundingDivide(one, kSumBits);
    }
    const int32_t logarithm = lower_tfl::logOf(sum);
    const int32_t lowest =
        std::max(least - 1, lower_tfl::multiply(logarithm + std::numeric_limits<int32_t>::min(), back));
    for (int64_t i = 0; i < count; ++i) {
      const auto difference = static_cast<int32_t>(from.integerAt(begin + i) - most);
      int32_t code = -128;
      if (difference > lowest) {
        const int32_t scaled = lower_tfl::multiply(difference, factor);
        code = std::clamp(lower_tfl::roundingDivide(scaled - logarithm, kOutputShift) + 127, -128, 127);
      }
      to.setIntegerAt(begin + i, code);
    }
  }
};

std::optional<TfliteKernel> logSoftmaxOf(const tflite::Subgraph& graph, const tflite::Operator& op) {
  constexpr int64_t kMaxClasses = 4095;  // the most whose sum fits
  const auto bound = Bound::of(graph, op, 1);
  if (!bound) return std::nullopt;
  const tflite::Tensor &from = bound->input(0), &to = bound->output();
  const auto in = quantumOf(from), out = quantumOf(to);
  if (from.type != Types::Int8 || to.type != Types::Int8 || from.shape != to.shape || from.shape.empty() ||
      !in || !out || out->scale != 0.0625F || out->zero != 127 || in->scale < 0x1p-26F ||
      from.shape.back() < 1 || from.shape.back() > kMaxClasses)
    return std::nullopt;
  const LogSoftmax row(in->scale);
  return [=, classes = from.shape.back()](std::span<const Tensor> given) -> Results {
    Tensor result = bound->result();
    for (int64_t i = 0; i < result.numElements(); i += classes)
      row.run(bound->value(given, 0), result, i, classes);
    return std::vector<Tensor>{std::move(result)};
  };
}

// L2_NORMALIZATION
// ---------------------------------------------------------------------------------------------------------

/// Rows of int8 divided by their L2 norms, in units of 1/128.
std::optional<TfliteKernel> l2NormalizationOf(const tflite::Subgraph& graph, const tflite::Operator& op) {
  constexpr int kResultBits = 7;
  const auto bound = Bound::of(graph, op, 1);
  if (!bound || bound->input(0).type != Types::Int8 || bound->output().type != Types::Int8 ||
      bound->input(0).shape != bound->output().shape || bound->output().shape.empty())
    return std::nullopt;
  const auto from = quantumOf(bound->input(0)), to = quantumOf(bound->output());
  const int64_t depth = bound->output().shape.back();
  // Sums of squares are int32.
  if (!from || !to || to->scale != 1.0F / 128 || to->zero != 0 || depth < 1 ||
      depth > INT32_MAX / (255 * 255))
    return std::nullopt;
  return [=, zero = from->zero](std::span<const Tensor> given) -> Results {
    const Tensor& x = bound->value(given, 0);
    Tensor result = bound->result();
    for (int64_t row = 0; row < x.numElements(); row += depth) {
      int64_t sum = 0;
      for (int64_t i = row; i < row + depth; ++i) sum += (x.integerAt(i) - zero) * (x.integerAt(i) - zero);
      Multiplier factor = lower_tfl::inverseSqrt(static_cast<int32_t>(std::max<int64_t>(sum, 1)));
      factor.shift += kResultBits;
      for (int64_t i = row; i < row + depth; ++i) {
        const int64_t code = lower_tfl::multiply(static_cast<int32_t>(x.integerAt(i) - zero), factor);
        result.setIntegerAt(i, std::clamp<int64_t>(code, -128, 127));
      }
    }
    return std::vector<Tensor>{std::move(result)};
  };
}

// CAST, SCATTER_ND, REDUCE_ALL, REDUCE_ANY
// ------------------------------------------------------------------------------------

bool isWhole(Types type) {
  return type == Types::Int8 || type == Types::UInt8 || type == Types::Int16 || type == Types::Int32 ||
         type == Types::UInt32 || type == Types::Int64;
}

/// The low bits of an integer, which a conversion between integer types keeps.
int64_t wrapped(int64_t value, Types type) {
  switch (type) {
    case Types::Int8:
      return static_cast<int8_t>(value);
    case Types::UInt8:
      return static_cast<uint8_t>(value);
    case Types::Int16:
      return static_cast<int16_t>(value);
    case Types::Int32:
      return static_cast<int32_t>(value);
    case Types::UInt32:
      return static_cast<uint32_t>(value);
    default:
      return value;
  }
}

/// Integers keep their low bits; floats are truncated and saturate at the limits of the type.
std::optional<TfliteKernel> castOf(const tflite::Subgraph& graph, const tflite::Operator& op) {
  const auto bound = Bound::of(graph, op, 1);
  if (!bound || bound->input(0).shape != bound->output().shape) return std::nullopt;
  const auto known = [](Types type) {
    return isWhole(type) || type == Types::Bool || type == Types::Float32;
  };
  const Types from = bound->input(0).type, to = bound->output().type;
  if (!known(from) || !known(to)) return std::nullopt;
  return [=](std::span<const Tensor> given) -> Results {
    const Tensor& x = bound->value(given, 0);
    Tensor result = bound->result();
    for (int64_t i = 0; i < result.numElements(); ++i) {
      if (to == Types::Float32) {
        result.mutableAs<float>()[static_cast<size_t>(i)] = from == Types::Float32
                                                                ? x.as<float>()[static_cast<size_t>(i)]
                                                                : static_cast<float>(x.integerAt(i));
      } else if (to == Types::Bool) {
        result.setIntegerAt(i, from == Types::Float32 ? x.realAt(i) != 0 : x.integerAt(i) != 0);
      } else if (from == Types::Float32) {
        const double low = static_cast<double>(integerMin(result.dtype())),
                     high = static_cast<double>(integerMax(result.dtype()));
        const double whole = std::trunc(x.realAt(i));
        const bool above = whole >= high;
        result.setIntegerAt(i, std::isnan(whole) ? 0
                               : above           ? integerMax(result.dtype())
                                                 : static_cast<int64_t>(std::max(whole, low)));
      } else {
        result.setIntegerAt(i, wrapped(x.integerAt(i), to));
      }
    }
    return std::vector<Tensor>{std::move(result)};
  };
}

/// A zero tensor with slices added at the indices.
std::optional<TfliteKernel> scatterOf(const tflite::Subgraph& graph, const tflite::Operator& op) {
  const auto bound = Bound::of(graph, op, 3);
  if (!bound) return std::nullopt;
  const tflite::Tensor &indices = bound->input(0), &updates = bound->input(1), &to = bound->output();
  const Tensor* const sizes = bound->constant(2);
  if (indices.type != Types::Int32 || indices.shape.empty() || updates.type != to.type || !isWhole(to.type) ||
      !sizes || sizes->numElements() != static_cast<int64_t>(to.shape.size()))
    return std::nullopt;
  for (int64_t i = 0; i < sizes->numElements(); ++i) {
    if (sizes->integerAt(i) != to.shape[static_cast<size_t>(i)]) return std::nullopt;
  }
  // updates: [..., axes that are not indexed], indices: [..., number of indexed axes].
  const auto named = static_cast<size_t>(indices.shape.back());
  if (named > to.shape.size()) return std::nullopt;
  Shape expected(indices.shape.begin(), indices.shape.end() - 1);
  expected.insert(expected.end(), to.shape.begin() + static_cast<std::ptrdiff_t>(named), to.shape.end());
  if (expected != updates.shape) return std::nullopt;
  const int64_t slice =
      numElements(Shape(to.shape.begin() + static_cast<std::ptrdiff_t>(named), to.shape.end()));
  return [=](std::span<const Tensor> given) -> Results {
    const tflite::Tensor& whole = bound->output();
    const Tensor &at = bound->value(given, 0), &add = bound->value(given, 1);
    Tensor result = Tensor::zeros(*tflite::toDType(whole.type), whole.shape);
    const int64_t slices = slice == 0 ? 0 : add.numElements() / slice;
    for (int64_t s = 0; s < slices; ++s) {
      int64_t row = 0;
      for (size_t axis = 0; axis < named; ++axis) {
        const int64_t index = at.integerAt(s * static_cast<int64_t>(named) + static_cast<int64_t>(axis));
        if (index < 0 || index >= whole.shape[axis])
          return fail(Code::UnsupportedProgram, "index {} of axis {} is beyond {}", index, axis,
                      whole.shape[axis]);
        row = row * whole.shape[axis] + index;
      }
      for (int64_t i = 0; i < slice; ++i) {
        const int64_t k = row * slice + i;
        result.setIntegerAt(k, wrapped(result.integerAt(k) + add.integerAt(s * slice + i), whole.type));
      }
    }
    return std::vector<Tensor>{std::move(result)};
  };
}

std::optional<TfliteKernel> truthOf(const tflite::Subgraph& graph, const tflite::Operator& op) {
  const auto bound = Bound::of(graph, op, 2);
  if (!bound || !bound->constant(1)) return std::nullopt;
  const tflite::Tensor &from = bound->input(0), &to = bound->output();
  if (from.type != Types::Bool || to.type != Types::Bool || bound->input(1).type != Types::Int32)
    return std::nullopt;
  const auto rank = static_cast<int64_t>(from.shape.size());
  std::vector<bool> reduced(from.shape.size());
  for (int64_t i = 0; i < bound->constant(1)->numElements(); ++i) {
    const int64_t axis = bound->constant(1)->integerAt(i);
    if (axis < -rank || axis >= rank) return std::nullopt;
    reduced[static_cast<size_t>(axis < 0 ? axis + rank : axis)] = true;
  }
  Shape kept, shape;
  for (size_t i = 0; i < from.shape.size(); ++i) {
    kept.push_back(reduced[i] ? 1 : from.shape[i]);
    if (!reduced[i] || optionOf(op, "keep_dims") != 0) shape.push_back(kept.back());
  }
  if (shape != to.shape) return std::nullopt;
  return
      [=, all = op.name == "REDUCE_ALL", fromShape = from.shape](std::span<const Tensor> given) -> Results {
        const Tensor& x = bound->value(given, 0);
        Tensor result = bound->result();
        for (int64_t i = 0; i < result.numElements(); ++i) result.setIntegerAt(i, all ? 1 : 0);
        const auto offsets = stretched(kept, fromShape);
        for (int64_t i = 0; i < x.numElements(); ++i) {
          if ((x.integerAt(i) != 0) != all) result.setIntegerAt(offsets[static_cast<size_t>(i)], all ? 0 : 1);
        }
        return std::vector<Tensor>{std::move(result)};
      };
}

}  // namespace

std::optional<TfliteKernel> integerKernelOf(const tflite::Subgraph& graph, const tflite::Operator& op) {
  if (op.custom) return std::nullopt;
  if (op.name == "DIV") return divOf(graph, op);
  if (op.name == "LOG_SOFTMAX") return logSoftmaxOf(graph, op);
  if (op.name == "L2_NORMALIZATION") return l2NormalizationOf(graph, op);
  if (op.name == "CAST") return castOf(graph, op);
  if (op.name == "SCATTER_ND") return scatterOf(graph, op);
  if (op.name == "REDUCE_ALL" || op.name == "REDUCE_ANY") return truthOf(graph, op);
  return std::nullopt;
}

}  // namespace carina::device
