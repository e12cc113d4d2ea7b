// SPDX-License-Identifier: Apache-2.0
// Reading and writing by index tensors: index, index_put, index_select, embedding, gather, scatter, one_hot.
#include <algorithm>

#include "aten/kernels/cast.hpp"
#include "aten/kernels/dispatch.hpp"
#include "aten/kernels/kernel.hpp"
#include "aten/kernels/number.hpp"
#include "aten/kernels/numeric.hpp"
#include "aten/kernels/strided_copy.hpp"

namespace carina::aten {
namespace {

/// Index values as int64, checked against [-size, size) or, without `negative`, [0, size).
Result<std::vector<int64_t>> indexValues(const Tensor& tensor, int64_t size, bool negative) {
  std::vector<int64_t> values(static_cast<size_t>(tensor.numElements()));
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t raw = tensor.integerAt(static_cast<int64_t>(i));
    values[i] = raw < 0 && negative ? raw + size : raw;
    if (values[i] < 0 || values[i] >= size)
      return fail(Code::NoResult, "index {} is out of range for a dimension of size {}", raw, size)
          .withRemedy(fmt::format(
              "the input data, including calibration data, must contain indices from 0 to {} here",
              size - 1));
  }
  return values;
}

/// self[indices]: the index in self of each element of the result.
Result<std::vector<int64_t>> indexedElements(const Call& call, const Shape& self) {
  const ir::Node& node = call.node();
  const auto group = node.operandGroup(1);
  const Shape strides = rowMajorStrides(self);
  Shape joint;
  std::vector<size_t> indexed;
  bool adjacent = true;
  size_t flat = 1;
  std::vector<size_t> operandOf(group.size());
  for (size_t d = 0; d < group.size(); ++d) operandOf[d] = flat++;
  for (size_t d = 0; d < group.size(); ++d) {
    if (!group[d]) continue;
    const DType dtype = call.operand(operandOf[d]).dtype();
    if (dtype == DType::Bool || dtype == DType::UInt8)
      return fail(Code::UnsupportedForm, "indexing with a mask is not supported; use where() instead");
    if (!indexed.empty() && indexed.back() + 1 != d) adjacent = false;
    indexed.push_back(d);
    auto broadcast = broadcastShapes(joint, call.operand(operandOf[d]).shape());
    if (!broadcast) return fail(Code::NoResult, "the indices do not broadcast");
    joint = *broadcast;
  }
  // Offsets of the joint index, summed over the indexed dimensions.
  std::vector<int64_t> jointOffsets(static_cast<size_t>(numElements(joint)), 0);
  for (size_t d : indexed) {
    const Tensor& tensor = call.operand(operandOf[d]);
    CARINA_TRY(const auto values, indexValues(tensor, self[d], true));
    walkStrided(joint, broadcastStrides(tensor.shape(), joint),
                [&](int64_t first, int64_t n, int64_t at, int64_t step) {
                  for (int64_t i = 0; i < n; ++i) {
                    jointOffsets[static_cast<size_t>(first + i)] +=
                        values[static_cast<size_t>(at + i * step)] * strides[d];
                  }
                });
  }
  // Result dimensions: kept ones before the indexed ones, the joint index, kept ones after them; the joint
  // index comes first if the indexed dimensions are not adjacent.
  Shape beforeShape, beforeStrides, afterShape, afterStrides;
  for (size_t d = 0; d < self.size(); ++d) {
    if (std::find(indexed.begin(), indexed.end(), d) != indexed.end()) continue;
    const bool before = adjacent && !indexed.empty() && d < indexed.front();
    (before ? beforeShape : afterShape).push_back(self[d]);
    (before ? beforeStrides : afterStrides).push_back(strides[d]);
  }
  const auto offsets = [](const Shape& shape, const Shape& steps) {
    std::vector<int64_t> list;
    walkStrided(shape, steps, [&](int64_t, int64_t n, int64_t at, int64_t step) {
      for (int64_t i = 0; i < n; ++i) list.push_back(at + i * step);
    });
    return list;
  };
  std::vector<int64_t> elements;
  const auto before = offsets(beforeShape, beforeStrides), after = offsets(afterShape, afterStrides);
  for (int64_t b : before) {
    for (int64_t j : jointOffsets) {
      for (int64_t a : after) elements.push_back(b + j + a);
    }
  }
  return elements;
}

Result<Kernel> prepareIndex(const ir::Node&) {
  return Kernel([](Call& call) -> Status {
    const Tensor& self = call.operand(0);
    CARINA_TRY(const auto elements, indexedElements(call, self.shape()));
    return forSize(self.dtype(), [&](auto tag) -> Status {
      using T = decltype(tag);
      const T* in = self.as<T>().data();
      T* out = call.allocate().mutableAs<T>().data();
      for (size_t i = 0; i < elements.size(); ++i) out[i] = in[elements[i]];
      return {};
    });
  });
}

/// Shape of self[indices], which the values of index_put broadcast to.
Shape indexedShape(const Call& call) {
  const auto group = call.node().operandGroup(1);
  const Shape& self = call.operand(0).shape();
  Shape joint, before, after;
  bool adjacent = true, seen = false, ended = false;
  for (size_t d = 0; d < self.size(); ++d) {
    if (d >= group.size() || !group[d]) {
      ended = seen;
      (seen ? after : before).push_back(self[d]);
      continue;
    }
    if (ended) adjacent = false;
    seen = true;
    joint = *broadcastShapes(joint, call.operand(1 + d).shape());
  }
  Shape shape = adjacent ? before : Shape{};
  shape.insert(shape.end(), joint.begin(), joint.end());
  if (!adjacent) shape.insert(shape.end(), before.begin(), before.end());
  shape.insert(shape.end(), after.begin(), after.end());
  return shape;
}

/// A mask as the only index and a single value: where(mask, value, self).
Status putMasked(Call& call, const Tensor& mask, const Tensor& value, bool accumulate) {
  Tensor& result = call.copyOf(0);
  if (mask.shape() != result.shape() || value.numElements() != 1) {
    return fail(Code::InvalidOperator,
                "index_put with a mask takes one value and a mask of the tensor's shape");
  }
  return forNumber(
      result.dtype(),
      [&](auto tag) -> Status {
        using T = decltype(tag);
        const auto out = result.mutableAs<T>();
        const T one = castTo(value, call.type().dtype).template as<T>()[0];
        const auto selected = mask.as<uint8_t>();
        for (size_t i = 0; i < out.size(); ++i) {
          if (selected[i]) out[i] = accumulate ? wrapAdd(out[i], one) : one;
        }
        return {};
      },
      true);
}

Result<Kernel> prepareIndexPut(const ir::Node& node) {
  const bool accumulate = Arguments(node).boolean("accumulate");
  return Kernel([accumulate](Call& call) -> Status {
    const size_t indices = call.node().operandGroup(1).size();
    const Tensor& values = call.operand(1 + indices);
    if (indices == 1 && call.present(1) && call.operand(1).dtype() == DType::Bool) {
      const Tensor mask = call.operand(1);
      return putMasked(call, mask, values, accumulate);
    }
    CARINA_TRY(const auto elements, indexedElements(call, call.operand(0).shape()));
    const Shape shape = indexedShape(call);
    if (broadcastShapes(values.shape(), shape) != shape)
      return fail(Code::NoResult, "values {} do not fit {}", shapeText(values.shape()), shapeText(shape));
    const Tensor source = stridedCopy(castTo(values, call.type().dtype),
                                      {0, shape, broadcastStrides(values.shape(), shape), 0, shape});
    Tensor& result = call.copyOf(0);
    return forNumber(
        result.dtype(),
        [&](auto tag) -> Status {
          using T = decltype(tag);
          T* out = result.mutableAs<T>().data();
          const T* in = source.as<T>().data();
          for (size_t i = 0; i < elements.size(); ++i) {
            out[elements[i]] = accumulate ? wrapAdd(out[elements[i]], in[i]) : in[i];
          }
          return {};
        },
        true);
  });
}

/// Selects whole slices of dimension `dim` by an index vector.
Kernel selectRows(size_t table, size_t indices, int64_t dim) {
  return [=](Call& call) -> Status {
    const Tensor& self = call.operand(table);
    int64_t outer = 1, inner = dtypeSize(self.dtype());
    for (int64_t d = 0; d < self.rank(); ++d) {
      if (d != dim) (d < dim ? outer : inner) *= self.dim(d);
    }
    const int64_t size = self.rank() ? self.dim(dim) : 1;
    CARINA_TRY(const auto rows, indexValues(call.operand(indices), size, false));
    const std::byte* in = self.bytes().data();
    std::byte* out = call.allocate().mutableBytes().data();
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t row : rows) {
        std::copy_n(in + (o * size + row) * inner, inner, out);
        out += inner;
      }
    }
    return {};
  };
}
Result<Kernel> prepareIndexSelect(const ir::Node& node) {
  CARINA_TRY(const int64_t dim, wrapDim(Arguments(node).integer("dim"), node.operand(0)->rank()));
  return selectRows(0, 1, dim);
}
Result<Kernel> prepareEmbedding(const ir::Node&) {
  return selectRows(0, 1, 0);
}

/// The element that each element of `index` selects along `dim` in a tensor of shape `self`.
Result<std::vector<int64_t>> namedElements(const Tensor& index, const Shape& self, int64_t dim) {
  const Shape strides = rowMajorStrides(self);
  if (index.rank() != static_cast<int64_t>(self.size()))
    return fail(Code::NoResult, "the index and the tensor have different ranks");
  Shape others = strides;
  if (!others.empty()) others[static_cast<size_t>(dim)] = 0;
  for (int64_t d = 0; d < index.rank(); ++d) {
    if (d != dim && index.dim(d) > self[static_cast<size_t>(d)]) {
      return fail(Code::NoResult, "an index of shape {} exceeds a tensor of shape {}",
                  shapeText(index.shape()), shapeText(self));
    }
  }
  CARINA_TRY(std::vector<int64_t> elements,
             indexValues(index, self.empty() ? 1 : self[static_cast<size_t>(dim)], false));
  const int64_t stride = self.empty() ? 1 : strides[static_cast<size_t>(dim)];
  walkStrided(index.shape(), others, [&](int64_t first, int64_t n, int64_t at, int64_t step) {
    for (int64_t i = 0; i < n; ++i) {
      int64_t& element = elements[static_cast<size_t>(first + i)];
      element = element * stride + at + i * step;
    }
  });
  return elements;
}

Result<Kernel> prepareGather(const ir::Node& node) {
  CARINA_TRY(const int64_t dim, wrapDim(Arguments(node).integer("dim"), node.operand(0)->rank()));
  return Kernel([dim](Call& call) -> Status {
    const Tensor& self = call.operand(0);
    CARINA_TRY(const auto elements, namedElements(call.operand(1), self.shape(), dim));
    return forSize(self.dtype(), [&](auto tag) -> Status {
      using T = decltype(tag);
      const T* in = self.as<T>().data();
      T* out = call.allocate().mutableAs<T>().data();
      for (size_t i = 0; i < elements.size(); ++i) out[i] = in[elements[i]];
      return {};
    });
  });
}

/// scatter, scatter_add, scatter_reduce: combine(old, new) at each named element; mean divides by the counts
/// afterwards.
enum class ScatterMode : uint8_t { Replace, Sum, Prod, Mean, Max, Min };

Result<ScatterMode> scatterMode(const ir::Node& node) {
  if (node.opName() == "aten.scatter_add.default") return ScatterMode::Sum;
  const std::string reduce = Arguments(node).text("reduce");
  if (reduce.empty()) return ScatterMode::Replace;
  if (reduce == "sum") return ScatterMode::Sum;
  if (reduce == "prod") return ScatterMode::Prod;
  if (reduce == "mean") return ScatterMode::Mean;
  if (reduce == "amax") return ScatterMode::Max;
  if (reduce == "amin") return ScatterMode::Min;
  return fail(Code::UnsupportedForm, "reduction '{}' is not known", reduce);
}

template <typename T>
T combined(ScatterMode mode, T old, T value) {
  switch (mode) {
    case ScatterMode::Replace:
      return value;
    case ScatterMode::Sum:
    case ScatterMode::Mean:
      return wrapAdd(old, value);
    case ScatterMode::Prod:
      return wrapMul(old, value);
    case ScatterMode::Max:
      return maximumOf(old, value);
    case ScatterMode::Min:
      return minimumOf(old, value);
  }
  return value;
}

template <typename T>
T meanOf(T sum, T count) {
  if constexpr (std::is_floating_point_v<T>) {
    return sum / count;
  } else {
    return floorQuotient(sum, count);
  }
}

/// The elements of `source` at the positions that `index` covers (source may be larger).
Tensor underIndex(const Tensor& source, const Shape& index) {
  return stridedCopy(source, {0, index, rowMajorStrides(source.shape()), 0, index});
}

Result<Kernel> prepareScatter(const ir::Node& node) {
  const Arguments a(node);
  CARINA_TRY(const int64_t dim, wrapDim(a.integer("dim"), node.operand(0)->rank()));
  CARINA_TRY(const ScatterMode mode, scatterMode(node));
  const bool includeSelf = a.boolean("include_self", true);
  const ir::Attribute& value = a.at("value");
  return Kernel([=](Call& call) -> Status {
    const Tensor& index = call.operand(1);
    CARINA_TRY(const auto elements, namedElements(index, call.type().shape, dim));
    const bool constant = !std::holds_alternative<std::monostate>(value);
    Tensor source;
    if (constant) {
      source = numberTensor(value, call.type().dtype);
    } else {
      for (int64_t d = 0; d < index.rank(); ++d) {
        if (call.operand(2).rank() != index.rank() || call.operand(2).dim(d) < index.dim(d))
          return fail(Code::NoResult, "the source is smaller than the index");
      }
      source = underIndex(castTo(call.operand(2), call.type().dtype), index.shape());
    }
    Tensor& result = call.copyOf(0);
    return forNumber(
        result.dtype(),
        [&](auto tag) -> Status {
          using T = decltype(tag);
          T* out = result.mutableAs<T>().data();
          const T* in = source.as<T>().data();
          std::vector<int64_t> counts(
              mode == ScatterMode::Mean || !includeSelf ? static_cast<size_t>(result.numElements()) : 0, 0);
          for (size_t i = 0; i < elements.size(); ++i) {
            const int64_t at = elements[i];
            const T x = in[constant ? 0 : i];
            const bool first = !counts.empty() && counts[static_cast<size_t>(at)]++ == 0;
            out[at] = first && !includeSelf ? x : combined(mode, out[at], x);
          }
          if (mode == ScatterMode::Mean) {
            for (size_t i = 0; i < counts.size(); ++i) {
              if (counts[i]) out[i] = meanOf(out[i], static_cast<T>(counts[i] + (includeSelf ? 1 : 0)));
            }
          }
          return {};
        },
        true);
  });
}

/// index_add (accumulates alpha * source) and index_copy for whole rows along `dim`.
template <bool kAdd>
Result<Kernel> prepareIndexRows(const ir::Node& node) {
  const Arguments a(node);
  CARINA_TRY(const int64_t dim, wrapDim(a.integer("dim"), node.operand(0)->rank()));
  const ir::Attribute& alpha = a.at("alpha");
  return Kernel([=](Call& call) -> Status {
    const Shape& shape = call.type().shape;
    int64_t outer = 1, inner = 1;
    for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d) {
      if (d != dim) (d < dim ? outer : inner) *= shape[static_cast<size_t>(d)];
    }
    const int64_t size = shape.empty() ? 1 : shape[static_cast<size_t>(dim)];
    CARINA_TRY(const auto rows, indexValues(call.operand(1), size, false));
    const Tensor source = castTo(call.operand(2), call.type().dtype);
    if (source.numElements() != outer * inner * static_cast<int64_t>(rows.size()))
      return fail(Code::NoResult, "the source does not fit the index");
    Tensor& result = call.copyOf(0);
    return forNumber(
        result.dtype(),
        [&](auto tag) -> Status {
          using T = decltype(tag);
          const T factor = !kAdd                         ? T{1}
                           : std::is_floating_point_v<T> ? static_cast<T>(ir::scalarReal(alpha))
                                                         : static_cast<T>(ir::scalarInt(alpha));
          T* out = result.mutableAs<T>().data();
          const T* in = source.as<T>().data();
          for (int64_t o = 0; o < outer; ++o) {
            for (int64_t row : rows) {
              T* to = out + (o * size + row) * inner;
              for (int64_t i = 0; i < inner; ++i, ++in)
                to[i] = kAdd ? wrapAdd(to[i], wrapMul(factor, *in)) : *in;
            }
          }
          return {};
        },
        true);
  });
}

Result<Kernel> prepareOneHot(const ir::Node& node) {
  const int64_t classes = Arguments(node).integer("num_classes");
  return Kernel([classes](Call& call) -> Status {
    CARINA_TRY(const auto values, indexValues(call.operand(0), classes, false));
    call.result() = Tensor::zeros(DType::Int64, call.type().shape);
    int64_t* out = call.result().mutableAs<int64_t>().data();
    for (size_t i = 0; i < values.size(); ++i) out[static_cast<int64_t>(i) * classes + values[i]] = 1;
    return {};
  });
}

constexpr KernelEntry kIndexKernels[] = {
    {"aten.index.Tensor", prepareIndex},
    {"aten.index_put.default", prepareIndexPut},
    {"aten.index_select.default", prepareIndexSelect},
    {"aten.embedding.default", prepareEmbedding},
    {"aten.gather.default", prepareGather},
    {"aten.scatter.src", prepareScatter},
    {"aten.scatter.value", prepareScatter},
    {"aten.scatter_add.default", prepareScatter},
    {"aten.scatter_reduce.two", prepareScatter},
    {"aten.index_add.default", prepareIndexRows<true>},
    {"aten.index_copy.default", prepareIndexRows<false>},
    {"aten.one_hot.default", prepareOneHot},
};

}  // namespace

std::span<const KernelEntry> indexKernels() {
  return kIndexKernels;
}

}  // namespace carina::aten
