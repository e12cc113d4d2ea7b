// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cases.hpp"

namespace carina::rt::test {
namespace {

using aten::test::Attributes;

std::string truth(bool value) {
  return value ? "True" : "False";
}

struct Reduced {
  std::vector<DType> dtypes;
  bool empty = true;      // a reduction of an empty tensor has a value
  bool list = true;       // a list of dims, otherwise one dim
  bool optional = false;  // dims may be omitted: all dimensions
  bool keeps = true;
  bool truths = false;  // the result may have dtype=torch.bool
  Attributes attributes = {};
};

Generator reduced(const Reduced& what) {
  return [=](const std::string& kernel, Random& random) {
    const Shape shape = random.shape(1, 4, 5, what.empty);
    const auto rank = static_cast<int64_t>(shape.size());
    Attributes attributes = what.attributes;
    if (what.optional && random.coin(4)) {
      attributes.emplace_back("dim", "None");
    } else {
      attributes.emplace_back("dim",
                              what.list ? textOf(random.dims(rank)) : std::to_string(random.dim(rank)));
    }
    if (what.keeps) attributes.emplace_back("keepdim", truth(random.coin()));
    if (what.truths && random.coin(4)) attributes.emplace_back("dtype", "bool");
    return fromAten(kernel, {{random.tensor(random.pick(what.dtypes), shape, -9, 9)}}, attributes,
                    random.layouts());
  };
}

Generator whole(const std::vector<DType>& dtypes, bool empty = true, double low = -9, double high = 9) {
  return [=](const std::string& kernel, Random& random) {
    return fromAten(kernel, {{random.tensor(random.pick(dtypes), random.shape(0, 4, 4, empty), low, high)}},
                    {}, random.layouts());
  };
}

Generator alongDim(const std::vector<DType>& dtypes, const Attributes& attributes = {}) {
  return [=](const std::string& kernel, Random& random) {
    const Shape shape = random.shape();
    Attributes all = attributes;
    all.emplace_back("dim", std::to_string(random.dim(static_cast<int64_t>(shape.size()))));
    return fromAten(kernel, {{random.tensor(random.pick(dtypes), shape, -9, 9)}}, all, random.layouts());
  };
}

/// Distinct values, as the order of equal ones is unspecified.
KernelCase topkCase(const std::string& kernel, Random& random) {
  const Shape shape = random.shape(1, 3, 17, false);
  const DType dtype = random.pick(std::vector<DType>{DType::Float32, DType::Int32, DType::Int64});
  carina::Tensor tensor = carina::Tensor::zeros(dtype, shape);
  std::vector<int64_t> values(static_cast<size_t>(tensor.numElements()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int64_t>(i) - 5;
  std::shuffle(values.begin(), values.end(), random.engine);
  for (size_t i = 0; i < values.size(); ++i) {
    if (isFloat(dtype)) {
      tensor.mutableAs<float>()[i] = static_cast<float>(values[i]);
    } else {
      tensor.setIntegerAt(static_cast<int64_t>(i), values[i]);
    }
  }
  const int64_t dim = random.dim(static_cast<int64_t>(shape.size()));
  const int64_t size = shape[static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(shape.size()) : dim)];
  return fromAten(kernel, {{tensor}},
                  {{"k", std::to_string(random.range(0, size))},
                   {"dim", std::to_string(dim)},
                   {"largest", truth(random.coin())}},
                  random.layouts());
}

KernelCase productCase(const std::string& kernel, Random& random) {
  const DType dtype =
      random.pick(std::vector<DType>{DType::Float32, DType::Float32, DType::Int32, DType::Int64});
  const int64_t rows = random.range(0, 5), depth = random.range(random.coin(8) ? 0 : 1, 40),
                columns = random.range(1, 6);
  const bool batched = kernel == "aten::bmm.out";
  const auto matrix = [&](int64_t a, int64_t b) {
    return random.tensor(dtype, batched ? Shape{3, a, b} : Shape{a, b}, -9, 9);
  };
  if (kernel != "aten::addmm.out") {
    const carina::Tensor left = matrix(rows, depth);
    return fromAten(kernel, {{left}, {matrix(depth, columns)}}, {}, random.layouts());
  }
  const carina::Tensor added = random.tensor(dtype, random.narrower({rows, columns}));
  const carina::Tensor left = matrix(rows, depth);
  Attributes attributes;
  if (random.coin())
    attributes = {{"alpha", std::to_string(random.range(-2, 2))},
                  {"beta", std::to_string(random.range(-2, 2))}};
  return fromAten(kernel, {{added}, {left}, {matrix(depth, columns)}}, attributes, random.layouts());
}

KernelCase floatLinearCase(const std::string& kernel, Random& random) {
  const int64_t depth = random.range(1, 40), columns = random.range(1, 6);
  Shape shape = random.shape(0, 3, 4);
  shape.push_back(depth);
  aten::test::Groups groups = {{random.tensor(DType::Float32, shape)},
                               {random.tensor(DType::Float32, {columns, depth})}};
  groups.emplace_back();
  if (random.coin()) groups[2].emplace_back(random.tensor(DType::Float32, {columns}));
  return fromAten(kernel, groups);
}

}  // namespace

void addReduce(Generators& g) {
  const std::vector<DType> reals = {DType::Float32};
  g["aten::sum.IntList_out"] = reduced({.dtypes = kAll, .optional = true, .truths = true});
  g["aten::mean.out"] = reduced({.dtypes = reals, .optional = true});
  g["aten::mean.dtype_out"] = whole(reals);
  g["aten::prod.int_out"] = reduced({.dtypes = kAll, .list = false, .truths = true});
  g["aten::prod.out"] = whole(kAll, true, -2, 2);
  g["aten::amax.out"] = g["aten::amin.out"] = reduced({.dtypes = kAll, .empty = false});
  g["aten::any.out"] = reduced({.dtypes = kAll, .list = false});
  g["aten::any.dims_out"] = reduced({.dtypes = kAll, .optional = true});
  g["aten::any.all_out"] = whole(kAll);
  g["aten::max.dim_max"] = g["aten::min.dim_min"] =
      reduced({.dtypes = kNumbers, .empty = false, .list = false});
  g["aten::max.unary_out"] = g["aten::min.unary_out"] = whole(kNumbers, false);
  g["aten::argmax.out"] = g["aten::argmin.out"] =
      reduced({.dtypes = kNumbers, .empty = false, .list = false, .optional = true});
  g["aten::var.out"] =
      reduced({.dtypes = reals, .empty = false, .optional = true, .attributes = {{"unbiased", "False"}}});
  g["aten::var.correction_out"] = g["aten::var_mean.correction_out"] =
      reduced({.dtypes = reals, .empty = false, .optional = true, .attributes = {{"correction", "0"}}});
  g["aten::_softmax.out"] = g["aten::_log_softmax.out"] = alongDim(reals, {{"half_to_float", "False"}});
  g["aten::cumsum.out"] = alongDim(kAll);
  g["aten::topk.values"] = topkCase;
  g["aten::mm.out"] = g["aten::bmm.out"] = g["aten::addmm.out"] = productCase;
  g["aten::linear.out"] = floatLinearCase;
}

}  // namespace carina::rt::test
