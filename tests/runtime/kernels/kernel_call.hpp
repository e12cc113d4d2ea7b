// SPDX-License-Identifier: Apache-2.0
// A call of one runtime kernel with all that it points to, each tensor between guard bytes.
#pragma once

#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "aten/one_op.hpp"
#include "carina/kernels.hpp"

namespace carina::rt::test {

/// The runtime's number for an element type that it has.
ScalarType scalarType(DType dtype);

class KernelCall {
 public:
  /// `order` lists dimensions from outermost to innermost in memory; empty is row-major. The tensor's
  /// elements are laid out so.
  KernelCall& tensor(const carina::Tensor& tensor, std::vector<uint8_t> order = {});
  /// Tensors of one list argument.
  KernelCall& tensors(const std::vector<std::optional<carina::Tensor>>& list, bool optional = false);
  KernelCall& integer(int64_t value);
  KernelCall& real(double value);
  KernelCall& boolean(bool value);
  KernelCall& null();
  KernelCall& text(const std::string& value);
  KernelCall& integers(const std::vector<int64_t>& values);
  KernelCall& reals(const std::vector<double>& values);
  /// The output: garbage of this type. `orders` as above.
  KernelCall& output(DType dtype, const Shape& shape, std::vector<uint8_t> order = {});
  KernelCall& outputs(const std::vector<ir::Type>& types);

  /// Runs with the return value repeated, as programs have it.
  Status run(KernelFunction function);
  /// Output i in row-major order.
  carina::Tensor result(size_t i = 0) const;
  /// Whether nothing was written beside any tensor.
  bool guardsHold() const;

  // For tests that spoil calls.
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

/// One way to call a kernel, and what comes out.
struct KernelCase {
  std::string kernel;
  KernelCall call;
  bool refused = false;  // the reference refuses it, so shall the kernel
  std::vector<carina::Tensor> expected;
  int64_t tolerance = 0;  // of integers
  std::string text;       // how to make it again
};

/// The case of an operator of the aten dialect: arguments by the kernel's schema, expectations by
/// aten::Executor. With `layouts`, tensors get memory orders of their own at random.
KernelCase fromAten(const std::string& kernel, const aten::test::Groups& groups,
                    const aten::test::Attributes& attributes = {}, std::mt19937* layouts = nullptr,
                    const char* aten = nullptr);

}  // namespace carina::rt::test
