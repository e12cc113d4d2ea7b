// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cases.hpp"

#include <numeric>

namespace carina::rt::test {

Shape Random::shape(int64_t leastRank, int64_t mostRank, int64_t largest, bool empty) {
  Shape shape(static_cast<size_t>(range(leastRank, mostRank)));
  for (int64_t& size : shape) size = range(1, largest);
  if (empty && !shape.empty() && coin(12))
    shape[static_cast<size_t>(range(0, static_cast<int64_t>(shape.size()) - 1))] = 0;
  if (coin(8) && !shape.empty()) shape.back() = range(33, 70);  // longer than the chunks that kernels convert
  return shape;
}

Shape Random::narrower(const Shape& shape) {
  Shape result(shape.begin() + range(0, coin() ? 0 : static_cast<int64_t>(shape.size())), shape.end());
  for (int64_t& size : result) {
    if (coin(3)) size = 1;
  }
  return result;
}

carina::Tensor Random::tensor(DType dtype, const Shape& shape, double low, double high) {
  carina::Tensor tensor = carina::Tensor::zeros(dtype, shape);
  for (int64_t i = 0; i < tensor.numElements(); ++i) {
    if (isFloat(dtype)) {
      tensor.mutableAs<float>()[static_cast<size_t>(i)] =
          static_cast<float>(std::uniform_real_distribution<double>(low, high)(engine));
    } else if (dtype == DType::Bool) {
      tensor.setIntegerAt(i, range(0, 1));
    } else {
      const auto least = std::max(static_cast<int64_t>(low), integerMin(dtype));
      tensor.setIntegerAt(i, range(least, std::min(static_cast<int64_t>(high), integerMax(dtype))));
    }
  }
  return tensor;
}

int64_t Random::dim(int64_t rank) {
  const int64_t limit = std::max<int64_t>(rank, 1);
  return range(-limit, limit - 1);
}

std::vector<int64_t> Random::dims(int64_t rank) {
  std::vector<int64_t> list(static_cast<size_t>(rank));
  std::iota(list.begin(), list.end(), 0);
  std::shuffle(list.begin(), list.end(), engine);
  if (rank > 0) list.resize(static_cast<size_t>(range(1, rank)));
  for (int64_t& d : list) d -= coin() ? rank : 0;
  return list;
}

std::string textOf(const std::vector<int64_t>& list) {
  std::string text = "[";
  for (size_t i = 0; i < list.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(list[i]);
  return text + "]";
}

const Generators& generators() {
  static const Generators all = [] {
    Generators table;
    addPointwise(table);
    addMovement(table);
    addQuantized(table);
    addReduce(table);
    addWindow(table);
    addInt8(table);
    return table;
  }();
  return all;
}

}  // namespace carina::rt::test
