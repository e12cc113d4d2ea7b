// SPDX-License-Identifier: Apache-2.0
// Indices that a network computes in float: (floor(y) * width + floor(x)).long(). Sums and products of whole
// numbers are computed as integers, because codes of floats only hold small ones exactly.
#include <algorithm>
#include <cmath>
#include <optional>

#include "aten/ops.hpp"
#include "decompose/rewrites.hpp"

namespace carina::decompose {
namespace {

// Beyond this nesting, integers are converted where they are.
constexpr int kDeepestSum = 16;

std::optional<int64_t> integerIn(const ir::Attribute& number) {
  constexpr double kMost = 0x1p31;
  if (std::holds_alternative<std::monostate>(number)) return std::nullopt;
  const double real = ir::scalarReal(number);
  if (real != std::floor(real) || std::abs(real) > kMost) return std::nullopt;
  return static_cast<int64_t>(real);
}

bool isWhole(const Tensor& tensor) {
  const auto numbers = tensor.as<float>();
  return std::all_of(numbers.begin(), numbers.end(),
                     [](float x) { return x == std::floor(x) && std::abs(x) < 0x1p24F; });
}

bool rounds(const ir::Value* value) {
  return ir::producerAs<aten::Floor>(value) || ir::producerAs<aten::Ceil>(value) ||
         ir::producerAs<aten::Round>(value) || ir::producerAs<aten::Trunc>(value);
}

class Integers {
 public:
  Integers(ir::Builder& b, DType dtype) : b_(b), dtype_(dtype) {}

  /// The whole numbers of a float tensor, computed as integers; null if not all of them are known to be
  /// whole.
  ir::Value* of(ir::Value* value, int depth = 0) {
    if (value->dtype() != DType::Float32 || depth > kDeepestSum) return nullptr;
    if (value->isConstant())
      return isWhole(value->constant()) ? b_.constant(convert(value->constant(), dtype_)) : nullptr;
    if (rounds(value)) return cast(value);
    if (const ir::Node* producer = value->producer(); producer && isConversion(*producer)) {
      ir::Value* from = producer->operands()[0];
      return isInteger(from->dtype()) ? cast(from) : nullptr;
    }
    if (ir::Value* moved = ofMoved(value, depth + 1)) return moved;
    ir::Value* result = ofPair(value, depth + 1);
    return result ? result : ofNumber(value, depth + 1);
  }

 private:
  ir::Value* cast(ir::Value* value) {
    return value->dtype() == dtype_ ? value : aten::PrivateToCopy::create(b_, value, dtype_).output();
  }

  ir::Value* ofMoved(ir::Value* value, int depth) {
    const bool moves = ir::producerAs<aten::View>(value) || ir::producerAs<aten::Reshape>(value) ||
                       ir::producerAs<aten::Unsqueeze>(value) || ir::producerAs<aten::Expand>(value);
    if (!moves) return nullptr;
    ir::Value* from = of(value->producer()->operands()[0], depth);
    if (!from) return nullptr;
    if (ir::producerAs<aten::Expand>(value)) return aten::Expand::create(b_, from, value->shape());
    return aten::Reshape::create(b_, from, value->shape());
  }

  ir::Value* ofPair(ir::Value* value, int depth) {
    const auto sum = ir::producerAs<aten::AddTensor>(value);
    const auto difference = ir::producerAs<aten::SubTensor>(value);
    const bool plain = (sum && ir::scalarReal(sum.alpha()) == 1) ||
                       (difference && ir::scalarReal(difference.alpha()) == 1) ||
                       ir::producerAs<aten::MulTensor>(value) || ir::producerAs<aten::Maximum>(value) ||
                       ir::producerAs<aten::Minimum>(value);
    if (!plain) return nullptr;
    ir::Value* x = of(value->producer()->operands()[0], depth);
    ir::Value* y = x ? of(value->producer()->operands()[1], depth) : nullptr;
    if (!y) return nullptr;
    if (sum) return aten::AddTensor::create(b_, x, y);
    if (difference) return aten::SubTensor::create(b_, x, y);
    if (ir::producerAs<aten::MulTensor>(value)) return aten::MulTensor::create(b_, x, y);
    if (ir::producerAs<aten::Maximum>(value)) return aten::Maximum::create(b_, x, y);
    return aten::Minimum::create(b_, x, y);
  }

  ir::Value* ofNumber(ir::Value* value, int depth) {
    const auto from = [&](ir::Value* self) { return of(self, depth); };
    if (const auto sum = ir::producerAs<aten::AddScalar>(value)) {
      const auto number = integerIn(sum.other());
      ir::Value* x = number && ir::scalarReal(sum.alpha()) == 1 ? from(sum.self()) : nullptr;
      return x ? aten::AddScalar::create(b_, x, *number).output() : nullptr;
    }
    if (const auto difference = ir::producerAs<aten::SubScalar>(value)) {
      const auto number = integerIn(difference.other());
      ir::Value* x = number && ir::scalarReal(difference.alpha()) == 1 ? from(difference.self()) : nullptr;
      return x ? aten::SubScalar::create(b_, x, *number).output() : nullptr;
    }
    if (const auto product = ir::producerAs<aten::MulScalar>(value)) {
      const auto number = integerIn(product.other());
      ir::Value* x = number ? from(product.self()) : nullptr;
      return x ? aten::MulScalar::create(b_, x, *number).output() : nullptr;
    }
    if (const auto clamp = ir::producerAs<aten::Clamp>(value)) {
      const auto low = integerIn(clamp.min()), high = integerIn(clamp.max());
      ir::Value* x = low && high ? from(clamp.self()) : nullptr;
      return x ? aten::Clamp::create(b_, x, *low, *high).output() : nullptr;
    }
    return nullptr;
  }

  ir::Builder& b_;
  DType dtype_;
};

ir::Value* rewriteWholeToInteger(ir::Builder& b, ir::Node* node) {
  if (!isConversion(*node)) return nullptr;
  const DType dtype = node->result()->dtype();
  ir::Value* value = node->operands()[0];
  if ((dtype != DType::Int64 && dtype != DType::Int32) || value->isConstant() || rounds(value))
    return nullptr;
  return Integers(b, dtype).of(value);
}

}  // namespace

void addWholeNumberRewrites(std::vector<ir::Rewrite>& rewrites) {
  addRewrites(rewrites, rewriteWholeToInteger);
}

}  // namespace carina::decompose
