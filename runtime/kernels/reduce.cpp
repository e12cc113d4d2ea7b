// SPDX-License-Identifier: Apache-2.0
// Reductions: sum, mean, prod, amax, amin, any, max, min, argmax, argmin, var.
#include "carina/kernels.hpp"
#include "functions.hpp"
#include "reduction.hpp"

namespace carina::rt::kernels {
namespace {

/// State of a fold: a float with a correction, or an integer, and the position of the extreme for
/// arg-reductions.
struct State {
  RealSum real;
  int64_t integer = 0;
  int64_t index = -1, seen = 0;
};
using RealStep = void (*)(void* state, const float* values, size_t count);
using IntegerStep = void (*)(void* state, const int64_t* values, size_t count);

struct Fold {
  RealStep real;
  IntegerStep integer;
  float realStart;
  int64_t integerStart;
  bool needsElements;  // undefined for zero elements
  /// The fold for a Bool result: of truth values, a sum is whether any, a product whether all are true.
  const Fold* ofTruths = nullptr;
};

void sumReals(void* state, const float* values, size_t count) {
  for (size_t i = 0; i < count; ++i) static_cast<State*>(state)->real.add(values[i]);
}
void sumIntegers(void* state, const int64_t* values, size_t count) {
  int64_t& sum = static_cast<State*>(state)->integer;
  for (size_t i = 0; i < count; ++i) sum = wrapAdd(sum, values[i]);
}
void multiplyReals(void* state, const float* values, size_t count) {
  for (size_t i = 0; i < count; ++i) static_cast<State*>(state)->real.sum *= values[i];
}
void multiplyIntegers(void* state, const int64_t* values, size_t count) {
  int64_t& product = static_cast<State*>(state)->integer;
  for (size_t i = 0; i < count; ++i) product = wrapMul(product, values[i]);
}
void anyReal(void* state, const float* values, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (values[i] != 0.0f) static_cast<State*>(state)->real.sum = 1.0f;
  }
}
void anyInteger(void* state, const int64_t* values, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (values[i] != 0) static_cast<State*>(state)->integer = 1;
  }
}
void allReal(void* state, const float* values, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (values[i] == 0.0f) static_cast<State*>(state)->real.sum = 0.0f;
  }
}
void allInteger(void* state, const int64_t* values, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (values[i] == 0) static_cast<State*>(state)->integer = 0;
  }
}
/// The first largest or smallest, or the first NaN.
template <bool Largest>
void extremeReals(void* state, const float* values, size_t count) {
  State& s = *static_cast<State*>(state);
  for (size_t i = 0; i < count; ++i) {
    const float value = values[i], best = s.real.sum;
    const bool wins = Largest ? value > best : value < best;
    if (s.index < 0 || (best == best && (wins || value != value))) {
      s.real.sum = value;
      s.index = s.seen + static_cast<int64_t>(i);
    }
  }
  s.seen += static_cast<int64_t>(count);
}
template <bool Largest>
void extremeIntegers(void* state, const int64_t* values, size_t count) {
  State& s = *static_cast<State*>(state);
  for (size_t i = 0; i < count; ++i) {
    if (s.index < 0 || (Largest ? values[i] > s.integer : values[i] < s.integer)) {
      s.integer = values[i];
      s.index = s.seen + static_cast<int64_t>(i);
    }
  }
  s.seen += static_cast<int64_t>(count);
}

constexpr Fold kAny = {anyReal, anyInteger, 0.0f, 0, false};
constexpr Fold kAll = {allReal, allInteger, 1.0f, 1, false};
constexpr Fold kSum = {sumReals, sumIntegers, 0.0f, 0, false, &kAny};
constexpr Fold kProduct = {multiplyReals, multiplyIntegers, 1.0f, 1, false, &kAll};
constexpr Fold kLargest = {extremeReals<true>, extremeIntegers<true>, 0.0f, 0, true};
constexpr Fold kSmallest = {extremeReals<false>, extremeIntegers<false>, 0.0f, 0, true};

/// Writes results to `values` and positions to `indices`; either may be null. `mean` divides by the count.
Status run(Reduction& reduction, const Tensor& input, const Fold& given, const Tensor* values,
           const Tensor* indices, bool mean) {
  const bool ofTruths = values != nullptr && values->type == ScalarType::Bool && given.ofTruths != nullptr;
  const Fold& fold = ofTruths ? *given.ofTruths : given;
  const bool real = isReal(input.type) || (values != nullptr && isReal(values->type));
  if (real && values != nullptr && !isReal(values->type) && values->type != ScalarType::Bool)
    return typesDiffer();
  if (fold.needsElements && reduction.count() == 0 && !reduction.done())
    return failure(Code::InvalidArgument, "the extreme of no elements");
  for (; !reduction.done(); reduction.next()) {
    State state;
    state.real.sum = fold.realStart;
    state.integer = fold.integerStart;
    if (real)
      reduction.reals(fold.real, &state);
    else
      reduction.integers(fold.integer, &state);
    if (mean) state.real.sum /= static_cast<float>(reduction.count());
    if (values != nullptr && real) storeReals(*values, reduction.out(), 1, 1, &state.real.sum);
    if (values != nullptr && !real) storeIntegers(*values, reduction.out(), 1, 1, &state.integer);
    if (indices != nullptr) storeIntegers(*indices, reduction.out(), 1, 1, &state.index);
  }
  return Status{};
}

/// (self, dims, keepdim, ..., out). With `emptyIsAll`, an empty list means all dimensions.
Status reduce(KernelContext& context, uint32_t arguments, const Fold& fold, bool mean = false,
              bool emptyIsAll = true) {
  Call call(context, arguments);
  const Tensor* self = call.tensor(0);
  IntegerList dims;
  if (call.ok() && !call.isNull(1) && context.argument(1).kind == ValueKind::Int) {
    dims.items[dims.count++] = call.integer(1);
    dims.given = true;
  } else {
    dims = call.integers(1);
  }
  const bool keep = call.boolean(2);
  Tensor* output = call.output(arguments - 1);
  if (!call.ok()) return call.status();
  if (mean && !isReal(output->type)) return typesDiffer();
  const bool all = !dims.given || (emptyIsAll && dims.count == 0);
  if (all && keep) {
    for (uint32_t d = 0; d < self->rank; ++d) dims.items[d] = d;
    dims.count = self->rank;
  }
  Reduction reduction;
  CARINA_RT_TRY(all && !keep ? reduction.openAll(*self, *output)
                             : reduction.open(*self, dims, keep, *output));
  return run(reduction, *self, fold, output, nullptr, mean);
}

/// (self, ..., out): all dimensions.
Status reduceAll(KernelContext& context, uint32_t arguments, const Fold& fold, bool mean = false) {
  Call call(context, arguments);
  const Tensor* self = call.tensor(0);
  Tensor* output = call.output(arguments - 1);
  if (!call.ok()) return call.status();
  if (mean && !isReal(output->type)) return typesDiffer();
  Reduction reduction;
  CARINA_RT_TRY(reduction.openAll(*self, *output));
  return run(reduction, *self, fold, output, nullptr, mean);
}

/// (self, dim, keepdim, values, indices)
Status extremeWithIndex(KernelContext& context, const Fold& fold) {
  Call call(context, 5);
  const Tensor* self = call.tensor(0);
  IntegerList dims;
  dims.items[0] = call.integer(1);
  dims.count = 1;
  const bool keep = call.boolean(2);
  Tensor* values = call.output(3);
  Tensor* indices = call.output(4);
  if (!call.ok()) return call.status();
  if (values->type != self->type || indices->type != ScalarType::Int64) return typesDiffer();
  if (!sameLayout(*values, *indices)) return shapesDiffer();
  Reduction reduction;
  CARINA_RT_TRY(reduction.open(*self, dims, keep && self->rank > 0, *values));
  return run(reduction, *self, fold, values, indices, false);
}

/// (self, dim or null, keepdim, out)
Status indexOf(KernelContext& context, const Fold& fold) {
  Call call(context, 4);
  const Tensor* self = call.tensor(0);
  IntegerList dims;
  if (call.ok() && !call.isNull(1)) dims.items[dims.count++] = call.integer(1);
  const bool keep = call.boolean(2);
  Tensor* output = call.output(3);
  if (!call.ok()) return call.status();
  if (output->type != ScalarType::Int64) return typesDiffer();
  Reduction reduction;
  if (dims.count == 0)
    CARINA_RT_TRY(reduction.openAll(*self, *output));
  else
    CARINA_RT_TRY(reduction.open(*self, dims, keep && self->rank > 0, *output));
  return run(reduction, *self, fold, nullptr, output, false);
}

/// Sum of squared distances from a mean.
struct Spread {
  float mean;
  RealSum sum;
};
void addSquares(void* state, const float* values, size_t count) {
  Spread& spread = *static_cast<Spread*>(state);
  for (size_t i = 0; i < count; ++i) {
    const float distance = values[i] - spread.mean;
    spread.sum.add(distance * distance);
  }
}

/// Variance and, unless null, mean over `dims` (all if absent or empty); divides by count - correction.
Status variance(Call& call, const IntegerList& given, double correction, bool keep, const Tensor* variances,
                const Tensor* means) {
  const Tensor* self = call.tensor(0);
  if (!call.ok()) return call.status();
  if (!isReal(self->type) || !isReal(variances->type) || (means != nullptr && !isReal(means->type)))
    return typesDiffer();
  if (means != nullptr && !sameLayout(*variances, *means)) return shapesDiffer();
  IntegerList dims = given;
  if (dims.count == 0) {
    for (uint32_t d = 0; d < self->rank; ++d) dims.items[d] = d;
    dims.count = self->rank;
  }
  Reduction reduction;
  CARINA_RT_TRY(reduction.open(*self, dims, keep, *variances));
  const float count = static_cast<float>(reduction.count());
  const float divisor = count - static_cast<float>(correction);
  for (; !reduction.done(); reduction.next()) {
    State sum;
    reduction.reals(sumReals, &sum);
    Spread spread{sum.real.sum / count, {}};
    reduction.reals(addSquares, &spread);
    variances->as<float>()[reduction.out()] = spread.sum.sum / (divisor > 0.0f ? divisor : 0.0f);
    if (means != nullptr) means->as<float>()[reduction.out()] = spread.mean;
  }
  return Status{};
}

}  // namespace

Status sum(KernelContext& context) {
  return reduce(context, 5, kSum);
}
Status mean(KernelContext& context) {
  return reduce(context, 5, kSum, true);
}
Status meanAll(KernelContext& context) {
  return reduceAll(context, 3, kSum, true);
}
Status prod(KernelContext& context) {
  return reduce(context, 5, kProduct);
}
Status prodAll(KernelContext& context) {
  return reduceAll(context, 3, kProduct);
}
Status amax(KernelContext& context) {
  return reduce(context, 4, kLargest);
}
Status amin(KernelContext& context) {
  return reduce(context, 4, kSmallest);
}
Status maxAll(KernelContext& context) {
  return reduceAll(context, 2, kLargest);
}
Status minAll(KernelContext& context) {
  return reduceAll(context, 2, kSmallest);
}
Status any(KernelContext& context) {
  return reduce(context, 4, kAny, false, false);
}
Status anyAll(KernelContext& context) {
  return reduceAll(context, 2, kAny);
}
Status maxDim(KernelContext& context) {
  return extremeWithIndex(context, kLargest);
}
Status minDim(KernelContext& context) {
  return extremeWithIndex(context, kSmallest);
}
Status argmax(KernelContext& context) {
  return indexOf(context, kLargest);
}
Status argmin(KernelContext& context) {
  return indexOf(context, kSmallest);
}

Status var(KernelContext& context) {
  Call call(context, 5);
  const IntegerList dims = call.integers(1);
  const bool unbiased = call.boolean(2), keep = call.boolean(3);
  Tensor* output = call.output(4);
  return variance(call, dims, unbiased ? 1.0 : 0.0, keep, output, nullptr);
}
Status varCorrection(KernelContext& context) {
  Call call(context, 5);
  const IntegerList dims = call.integers(1);
  const double correction = call.real(2, 1.0);
  const bool keep = call.boolean(3);
  Tensor* output = call.output(4);
  return variance(call, dims, correction, keep, output, nullptr);
}
Status varMean(KernelContext& context) {
  Call call(context, 6);
  const IntegerList dims = call.integers(1);
  const double correction = call.real(2, 1.0);
  const bool keep = call.boolean(3);
  Tensor* variances = call.output(4);
  Tensor* means = call.output(5);
  return variance(call, dims, correction, keep, variances, means);
}

}  // namespace carina::rt::kernels
