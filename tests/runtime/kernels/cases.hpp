// SPDX-License-Identifier: Apache-2.0
// Generators of random calls for each kernel, one table per family.
#pragma once

#include <functional>
#include <map>

#include "runtime/kernels/kernel_call.hpp"

namespace carina::rt::test {

/// Random shapes, tensors and numbers; equal seeds give equal cases.
class Random {
 public:
  explicit Random(uint32_t seed) : engine(seed) {}
  int64_t range(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine);
  }
  bool coin(int oneIn = 2) { return range(1, oneIn) == 1; }
  template <typename T>
  T pick(const std::vector<T>& list) {
    return list[static_cast<size_t>(range(0, static_cast<int64_t>(list.size()) - 1))];
  }
  /// Sizes are 1..largest; occasionally one is 0 unless `empty` is false.
  Shape shape(int64_t leastRank = 0, int64_t mostRank = 4, int64_t largest = 5, bool empty = true);
  /// A shape that broadcasts to `shape`.
  Shape narrower(const Shape& shape);
  carina::Tensor tensor(DType dtype, const Shape& shape, double low = -4, double high = 4);
  /// A dimension of a tensor of this rank, possibly negative.
  int64_t dim(int64_t rank);
  /// Distinct dimensions, at least one.
  std::vector<int64_t> dims(int64_t rank);
  std::mt19937* layouts() { return coin(3) ? &engine : nullptr; }

  std::mt19937 engine;
};

std::string textOf(const std::vector<int64_t>& list);  // "[1, 2]"

using Generator = std::function<KernelCase(const std::string& kernel, Random& random)>;
using Generators = std::map<std::string, Generator>;

inline const std::vector<DType> kIntegers = {DType::UInt8, DType::Int8, DType::Int16, DType::Int32,
                                             DType::Int64};
inline const std::vector<DType> kNumbers = {DType::Float32, DType::Float32, DType::UInt8, DType::Int8,
                                            DType::Int16,   DType::Int32,   DType::Int64};
inline const std::vector<DType> kAll = {DType::Float32, DType::Float32, DType::UInt8, DType::Int8,
                                        DType::Int16,   DType::Int32,   DType::Int64, DType::Bool};

void addPointwise(Generators& generators);
void addMovement(Generators& generators);
void addQuantized(Generators& generators);
void addReduce(Generators& generators);
void addWindow(Generators& generators);
void addInt8(Generators& generators);

/// Generators of every kernel.
const Generators& generators();

}  // namespace carina::rt::test
