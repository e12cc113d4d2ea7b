// SPDX-License-Identifier: Apache-2.0
// Shared by the compositions of composites.cpp: a composite node and the operators that are inserted before
// it.
#pragma once

#include <algorithm>
#include <map>
#include <string_view>

#include "aten/arguments.hpp"
#include "aten/ops.hpp"
#include "base/shape.hpp"
#include "decompose/dims.hpp"

namespace carina::decompose::composite {

using namespace aten;

using ir::Ints;
using ir::Value;

/// Values for the node's results: one each, null (or missing) for results that must be unused.
using Results = std::vector<Value*>;

/// One composite: operands and attributes by name, and the operators that are inserted before it.
class Composite {
 public:
  explicit Composite(ir::Node* node)
      : node_(node), arguments_(*node), builder_(ir::Builder::beforeNode(node)) {}

  ir::Builder& b() { return builder_; }
  const ir::Node& node() const { return *node_; }
  const Arguments& arguments() const { return arguments_; }
  /// An operand by name; null if absent.
  Value* operand(std::string_view name) const {
    const int index = node_->def().operandIndex(name);
    const auto group =
        index < 0 ? std::span<Value* const>{} : node_->operandGroup(static_cast<size_t>(index));
    return group.empty() ? nullptr : group.front();
  }

  Value* view(Value* x, Ints shape) { return View::create(builder_, x, std::move(shape)); }
  /// View if the layout permits, a copy otherwise.
  Value* reshape(Value* x, Ints shape) { return Reshape::create(builder_, x, std::move(shape)); }
  Value* flat(Value* x) { return reshape(x, {x->numElements()}); }
  Value* permute(Value* x, Ints order) { return Permute::create(builder_, x, std::move(order)); }
  Value* expand(Value* x, const Shape& shape) {
    return x->shape() == shape ? x : Expand::create(builder_, x, shape);
  }
  /// Pads with zeros; `pads` has two values per dimension, from the last dimension to the first.
  Value* padded(Value* x, const Ints& pads) {
    const bool any = std::any_of(pads.begin(), pads.end(), [](int64_t pad) { return pad != 0; });
    return any ? ConstantPadNd::create(builder_, x, pads) : x;
  }
  Value* slice(Value* x, int64_t dim, int64_t from, int64_t to) {
    return SliceTensor::create(builder_, x, dim, from, to);
  }
  Value* add(Value* x, Value* y) { return AddTensor::create(builder_, x, y); }
  Value* sub(Value* x, Value* y) { return SubTensor::create(builder_, x, y); }
  Value* mul(Value* x, Value* y) { return MulTensor::create(builder_, x, y); }
  Value* sum(Value* x, Ints dims, bool keep) {
    return SumDimIntList::create(builder_, x, std::move(dims), keep);
  }
  Value* converted(Value* x, DType dtype) {
    return x->dtype() == dtype ? x : PrivateToCopy::create(builder_, x, dtype);
  }
  /// 0, 1, ... in a tensor of this shape.
  Value* numbered(const Shape& shape) {
    return builder_.constant(Tensor::from(shape, numbersBelow(numElements(shape))));
  }
  Value* number(double value, DType dtype) {
    return builder_.constant(convert(Tensor::scalar(value), dtype));
  }

 private:
  ir::Node* node_;
  Arguments arguments_;
  ir::Builder builder_;
};

inline Results none() {
  return {};
}

/// Returns the values that replace a composite's results; empty if it is kept.
using Composition = Result<Results> (*)(Composite&);
/// Composites that move, select or replace elements, by operator name.
const std::map<std::string_view, Composition>& movingComposites();
/// Pooling of lines, unpooling, grids of positions.
const std::map<std::string_view, Composition>& windowComposites();
/// Windows of signals, which are constants.
const std::map<std::string_view, Composition>& signalWindows();
/// Fake quantization, as quantize and dequantize.
const std::map<std::string_view, Composition>& fakeQuantization();

}  // namespace carina::decompose::composite
