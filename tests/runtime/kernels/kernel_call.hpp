// SPDX-License-Identifier: Apache-2.0
// A call of one runtime kernel with everything it points to; each tensor is surrounded by guard bytes.
#pragma once

#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "aten/one_op.hpp"
#include "carina/kernels.hpp"

namespace carina::rt::test {

/// The runtime's equivalent of an element type, which must exist.
ScalarType scalarType(DType dtype);

class KernelCall {
 public:
  /// Adds a tensor whose elements are laid out in `order`, which lists the dimensions from outermost to
  /// innermost in memory; empty is row-major.
  KernelCall& tensor(const carina::Tensor& tensor, std::vector<uint8_t> order = {});
  /// The tensors of one list argument.
  KernelCall& tensors(const std::vector<std::optional<carina::Tensor>>& list, bool optional = false);
  KernelCall& integer(int64_t value);
  KernelCall& real(double value);
  KernelCall& boolean(bool value);
  KernelCall& null();
  KernelCall& text(const std::string& value);
  KernelCall& integers(const std::vector<int64_t>& values);
  KernelCall& reals(const std::vector<double>& values);
  /// An output of this type, filled with garbage. `order` as above.
  KernelCall& output(DType dtype, const Shape& shape, std::vector<uint8_t> order = {});
  KernelCall& outputs(const std::vector<ir::Type>& types);

  /// Runs the kernel; the return value repeats the last argument, as in programs.
  Status run(KernelFunction function);
  /// Output i in row-major order.
  carina::Tensor result(size_t i = 0) const;
  /// Whether nothing was written outside any tensor.
  bool guardsHold() const;

  // For tests that corrupt calls.
  std::vector<Value>& values() { return values_; }
  std::vector<int32_t>& arguments() { return arguments_; }

 private:
  struct Storage {
    std::vector<int32_t> sizes;
    std::vector<uint8_t> order;
    std::vector<uint64_t> bytes;
    size_t used = 0;
    DType dtype = DType::Float32;
    std::vector<uint64_t> items;
    std::string text;
  };
  static constexpr size_t kGuard = 8;  // words on each side
  Value store(const carina::Tensor& tensor, std::vector<uint8_t> order);
  KernelCall& add(const Value& value);
  Storage& fresh() { return *storage_.emplace_back(std::make_unique<Storage>()); }

  std::vector<std::unique_ptr<Storage>> storage_;
  std::vector<Value> values_;
  std::vector<int32_t> arguments_;
  std::vector<std::pair<int32_t, size_t>> outputs_;  // value, storage
};

/// A call of a kernel and its expected outputs.
struct KernelCase {
  std::string kernel;
  KernelCall call;
  bool refused = false;  // the reference refuses it, so the kernel must as well
  std::vector<carina::Tensor> expected;
  int64_t tolerance = 0;  // of integers
  std::string text;       // how to reproduce it
};

/// A case for an operator of the aten dialect: the kernel's schema determines the arguments, aten::Executor
/// the expected outputs. With `layouts`, tensors get random memory orders.
KernelCase fromAten(const std::string& kernel, const aten::test::Groups& groups,
                    const aten::test::Attributes& attributes = {}, std::mt19937* layouts = nullptr,
                    const char* aten = nullptr);

}  // namespace carina::rt::test
