// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cases.hpp"

namespace carina::rt::test {
namespace {

using aten::test::Attributes;
using aten::test::Groups;

/// A tensor of any type; the attributes depend on its shape.
Generator moved(const std::function<Attributes(Random&, const Shape&)>& attributes, int64_t leastRank = 1,
                int64_t mostRank = 4, const char* aten = nullptr) {
  return [=](const std::string& kernel, Random& random) {
    const Shape shape = random.shape(leastRank, mostRank);
    return fromAten(kernel, {{random.tensor(random.pick(kAll), shape, -90, 90)}}, attributes(random, shape),
                    random.layouts(), aten);
  };
}

int64_t rankOf(const Shape& shape) {
  return static_cast<int64_t>(shape.size());
}
size_t wrapped(int64_t dim, const Shape& shape) {
  return static_cast<size_t>(dim < 0 ? dim + rankOf(shape) : dim);
}

Attributes none(Random&, const Shape&) {
  return {};
}
Attributes sliceAttributes(Random& random, const Shape& shape) {
  const int64_t dim = random.dim(rankOf(shape));
  Attributes attributes = {{"dim", std::to_string(dim)}, {"step", std::to_string(random.range(1, 3))}};
  if (random.coin()) attributes.emplace_back("start", std::to_string(random.range(-7, 7)));
  if (random.coin()) attributes.emplace_back("end", std::to_string(random.range(-7, 9)));
  return attributes;
}

/// Tensors whose shapes differ only in one dimension; occasionally an empty one of rank 1.
KernelCase catCase(const std::string& kernel, Random& random) {
  Shape shape = random.shape(1);
  const int64_t dim = random.dim(rankOf(shape));
  Groups groups(1);
  const DType dtype = random.pick(kAll);
  const int64_t count = random.range(1, 4);
  for (int64_t i = 0; i < count; ++i) {
    shape[wrapped(dim, shape)] = random.range(0, 4);
    groups[0].emplace_back(random.tensor(random.coin(4) ? random.pick(kAll) : dtype, shape));
  }
  if (random.coin(6)) groups[0].emplace_back(random.tensor(dtype, {0}));
  return fromAten(kernel, groups, {{"dim", std::to_string(dim)}}, random.layouts());
}

KernelCase stackCase(const std::string& kernel, Random& random) {
  const Shape shape = random.shape(0, 3);
  Groups groups(1);
  const DType dtype = random.pick(kAll);
  const int64_t count = random.range(1, 4);
  for (int64_t i = 0; i < count; ++i) groups[0].emplace_back(random.tensor(dtype, shape));
  return fromAten(kernel, groups, {{"dim", std::to_string(random.dim(rankOf(shape) + 1))}}, random.layouts());
}

KernelCase splitWithSizesCase(const std::string& kernel, Random& random) {
  Shape shape = random.shape(1);
  const int64_t dim = random.dim(rankOf(shape));
  std::vector<int64_t> sizes;
  int64_t total = 0;
  for (int64_t i = random.range(1, 4); i > 0; --i) sizes.push_back(random.range(0, 3));
  for (const int64_t size : sizes) total += size;
  shape[wrapped(dim, shape)] = total;
  return fromAten(kernel, {{random.tensor(random.pick(kAll), shape)}},
                  {{"split_sizes", textOf(sizes)}, {"dim", std::to_string(dim)}}, random.layouts());
}

KernelCase selectScatterCase(const std::string& kernel, Random& random) {
  const Shape shape = random.shape(1, 4, 5, false);
  const int64_t dim = random.dim(rankOf(shape)), size = shape[wrapped(dim, shape)];
  Shape part = shape;
  part.erase(part.begin() + static_cast<ptrdiff_t>(wrapped(dim, shape)));
  const DType dtype = random.pick(kAll);
  return fromAten(kernel, {{random.tensor(dtype, shape)}, {random.tensor(dtype, part)}},
                  {{"dim", std::to_string(dim)}, {"index", std::to_string(random.range(-size, size - 1))}},
                  random.layouts());
}

KernelCase sliceScatterCase(const std::string& kernel, Random& random) {
  const Shape shape = random.shape(1, 4, 5, false);
  const int64_t dim = random.dim(rankOf(shape)), size = shape[wrapped(dim, shape)];
  const int64_t start = random.range(0, size), end = random.range(start, size), step = random.range(1, 3);
  Shape part = shape;
  part[wrapped(dim, shape)] = (end - start + step - 1) / step;
  const DType dtype = random.pick(kAll);
  return fromAten(kernel, {{random.tensor(dtype, shape)}, {random.tensor(dtype, part)}},
                  {{"dim", std::to_string(dim)},
                   {"start", std::to_string(random.coin() || start == size ? start : start - size)},
                   {"end", end == size ? "None" : std::to_string(end)},
                   {"step", std::to_string(step)}},
                  random.layouts());
}

KernelCase expandCase(const std::string& kernel, Random& random) {
  const Shape shape = random.shape();
  Shape self = random.narrower(shape);
  return fromAten(kernel, {{random.tensor(random.pick(kAll), self)}}, {{"size", textOf(shape)}},
                  random.layouts());
}

KernelCase shuffleCase(const std::string& kernel, Random& random) {
  const bool up = kernel.find("unshuffle") == std::string::npos;
  const int64_t factor = random.range(1, 3);
  Shape shape = random.shape(3, 5, 3, false);
  const size_t rank = shape.size();
  if (up) {
    shape[rank - 3] *= factor * factor;
  } else {
    shape[rank - 2] *= factor;
    shape[rank - 1] *= factor;
  }
  return fromAten(kernel, {{random.tensor(random.pick(kAll), shape)}},
                  {{up ? "upscale_factor" : "downscale_factor", std::to_string(factor)}}, random.layouts());
}

KernelCase asStridedCase(const std::string& kernel, Random& random) {
  const Shape shape = random.shape(1, 3, 6, false);
  const int64_t count = numElements(shape);
  const int64_t offset = random.range(0, count - 1);
  std::vector<int64_t> sizes, steps;
  int64_t left = count - 1 - offset;
  for (int64_t i = random.range(0, 3); i > 0; --i) {
    const int64_t size = random.range(1, 3), step = random.range(0, size > 1 ? left / (size - 1) : 9);
    sizes.push_back(size);
    steps.push_back(step);
    left -= (size - 1) * step;
  }
  return fromAten(
      kernel, {{random.tensor(random.pick(kAll), shape)}},
      {{"size", textOf(sizes)}, {"stride", textOf(steps)}, {"storage_offset", std::to_string(offset)}});
}

Generator padded(int64_t dims, bool reflects) {
  return [=](const std::string& kernel, Random& random) {
    const Shape shape = random.shape(dims + 1, dims + 2, 5, false);
    std::vector<int64_t> pads;
    for (int64_t i = 0; i < dims; ++i) {
      const int64_t size = shape[shape.size() - 1 - static_cast<size_t>(i)];
      for (int side = 0; side < 2; ++side)
        pads.push_back(random.range(0, reflects ? std::min<int64_t>(size - 1, 4) : 4));
    }
    return fromAten(kernel, {{random.tensor(random.pick(kNumbers), shape)}}, {{"padding", textOf(pads)}},
                    random.layouts());
  };
}

/// Attributes only.
Generator created(const std::function<Attributes(Random&)>& attributes) {
  return [=](const std::string& kernel, Random& random) { return fromAten(kernel, {}, attributes(random)); };
}

std::string anyType(Random& random) {
  return std::string(dtypeName(random.pick(kAll)));
}

void addCopiesAndParts(Generators& g) {
  g["aten::_to_copy.out"] = g["dim_order_ops::_to_dim_order_copy.out"] = moved(
      [](Random& random, const Shape&) {
        return Attributes{{"dtype", anyType(random)}};
      },
      0, 4, "aten._to_copy.default");
  for (const char* name : {"aten::clone.out", "dim_order_ops::_clone_dim_order.out"})
    g[name] = moved(none, 0, 4, "aten.clone.default");
  for (const char* name : {"aten::alias_copy.out", "aten::detach_copy.out", "aten::lift_fresh_copy.out"})
    g[name] = moved(none, 0);
  g["aten::squeeze_copy.dim_out"] = moved([](Random& random, const Shape& shape) {
    return Attributes{{"dim", std::to_string(random.dim(rankOf(shape)))}};
  });
  g["aten::squeeze_copy.dims_out"] = moved([](Random& random, const Shape& shape) {
    return Attributes{{"dim", textOf(random.dims(rankOf(shape)))}};
  });
  g["aten::unsqueeze_copy.out"] = moved(
      [](Random& random, const Shape& shape) {
        return Attributes{{"dim", std::to_string(random.dim(rankOf(shape) + 1))}};
      },
      0);
  g["aten::permute_copy.out"] = moved([](Random& random, const Shape& shape) {
    std::vector<int64_t> dims;
    for (int64_t d = 0; d < rankOf(shape); ++d) dims.push_back(random.coin() ? d : d - rankOf(shape));
    std::shuffle(dims.begin(), dims.end(), random.engine);
    return Attributes{{"dims", textOf(dims)}};
  });
  g["aten::transpose_copy.int_out"] = moved([](Random& random, const Shape& shape) {
    return Attributes{{"dim0", std::to_string(random.dim(rankOf(shape)))},
                      {"dim1", std::to_string(random.dim(rankOf(shape)))}};
  });
  g["aten::t_copy.out"] = moved(none, 1, 2);
  g["aten::view_copy.out"] =
      g["executorch_prim::et_view.default"] = [](const std::string& kernel, Random& random) {
        Shape shape = random.shape(1);
        const carina::Tensor tensor = random.tensor(random.pick(kAll), shape);
        std::shuffle(shape.begin(), shape.end(), random.engine);
        return fromAten(kernel, {{tensor}}, {{"size", textOf(shape)}}, nullptr, "aten.view.default");
      };
  g["aten::select_copy.int_out"] = [](const std::string& kernel, Random& random) {
    const Shape shape = random.shape(1, 4, 5, false);
    const int64_t dim = random.dim(rankOf(shape)), size = shape[wrapped(dim, shape)];
    return fromAten(kernel, {{random.tensor(random.pick(kAll), shape)}},
                    {{"dim", std::to_string(dim)}, {"index", std::to_string(random.range(-size, size - 1))}},
                    random.layouts());
  };
  g["aten::slice_copy.Tensor_out"] = moved(sliceAttributes);
  g["aten::narrow_copy.out"] = moved([](Random& random, const Shape& shape) {
    const int64_t dim = random.dim(rankOf(shape)), size = shape[wrapped(dim, shape)],
                  start = random.range(0, size);
    return Attributes{{"dim", std::to_string(dim)},
                      {"start", std::to_string(random.coin() || start == size ? start : start - size)},
                      {"length", std::to_string(random.range(0, size - start))}};
  });
  g["aten::split_copy.Tensor_out"] = [](const std::string& kernel, Random& random) {
    const Shape shape = random.shape(1, 4, 5, false);
    return fromAten(kernel, {{random.tensor(random.pick(kAll), shape)}},
                    {{"split_size", std::to_string(random.range(1, 9))},
                     {"dim", std::to_string(random.dim(rankOf(shape)))}},
                    random.layouts());
  };
  g["aten::split_with_sizes_copy.out"] = splitWithSizesCase;
  g["aten::unbind_copy.int_out"] = [](const std::string& kernel, Random& random) {
    const Shape shape = random.shape(1, 4, 5, false);
    return fromAten(kernel, {{random.tensor(random.pick(kAll), shape)}},
                    {{"dim", std::to_string(random.dim(rankOf(shape)))}}, random.layouts());
  };
  g["aten::unfold_copy.out"] = moved([](Random& random, const Shape& shape) {
    const int64_t dim = random.dim(rankOf(shape));
    return Attributes{{"dimension", std::to_string(dim)},
                      {"size", std::to_string(random.range(0, shape[wrapped(dim, shape)]))},
                      {"step", std::to_string(random.range(1, 4))}};
  });
  g["aten::diagonal_copy.out"] = moved(
      [](Random& random, const Shape& shape) {
        const int64_t first = random.range(0, rankOf(shape) - 1);
        const int64_t second = (first + random.range(1, rankOf(shape) - 1)) % rankOf(shape);
        return Attributes{{"offset", std::to_string(random.range(-5, 5))},
                          {"dim1", std::to_string(first)},
                          {"dim2", std::to_string(second - (random.coin() ? rankOf(shape) : 0))}};
      },
      2);
  g["aten::as_strided_copy.out"] = asStridedCase;
}

void addJoinsAndRepeats(Generators& g) {
  g["aten::cat.out"] = catCase;
  g["aten::stack.out"] = stackCase;
  g["aten::select_scatter.out"] = selectScatterCase;
  g["aten::slice_scatter.out"] = sliceScatterCase;
  g["aten::expand_copy.out"] = expandCase;
  g["aten::repeat.out"] = moved([](Random& random, const Shape& shape) {
    std::vector<int64_t> repeats(shape.size() + static_cast<size_t>(random.range(0, 1)));
    for (int64_t& times : repeats) times = random.range(random.coin(8) ? 0 : 1, 3);
    return Attributes{{"repeats", textOf(repeats)}};
  });
  g["aten::flip.out"] = moved([](Random& random, const Shape& shape) {
    return Attributes{{"dims", textOf(random.dims(rankOf(shape)))}};
  });
  g["aten::roll.out"] = [](const std::string& kernel, Random& random) {
    const Shape shape = random.shape(1);
    const carina::Tensor tensor = random.tensor(random.pick(kAll), shape);
    if (random.coin(4))
      return fromAten(kernel, {{tensor}}, {{"shifts", textOf({random.range(-20, 20)})}, {"dims", "[]"}});
    std::vector<int64_t> dims = random.dims(rankOf(shape)), shifts;
    for (size_t i = 0; i < dims.size(); ++i) shifts.push_back(random.range(-9, 9));
    return fromAten(kernel, {{tensor}}, {{"shifts", textOf(shifts)}, {"dims", textOf(dims)}},
                    random.layouts());
  };
  g["aten::pixel_shuffle.out"] = g["aten::pixel_unshuffle.out"] = shuffleCase;
  g["aten::tril.out"] = moved(
      [](Random& random, const Shape&) {
        return Attributes{{"diagonal", std::to_string(random.range(-5, 5))}};
      },
      2);
  g["aten::constant_pad_nd.out"] = [](const std::string& kernel, Random& random) {
    const Shape shape = random.shape(1, 4, 5, false);
    std::vector<int64_t> pads;
    for (int64_t d = random.range(0, rankOf(shape)), i = 0; i < d; ++i) {
      const int64_t size = shape[shape.size() - 1 - static_cast<size_t>(i)];
      pads.push_back(random.range(random.coin(3) ? -size : 0, 4));
      pads.push_back(random.range(random.coin(3) ? -size - std::min<int64_t>(pads.back(), 0) : 0, 4));
    }
    const DType dtype = random.pick(kNumbers);
    return fromAten(kernel, {{random.tensor(dtype, shape)}},
                    {{"pad", textOf(pads)}, {"value", isFloat(dtype) ? "-1.25" : "7"}}, random.layouts());
  };
  for (int64_t n = 1; n <= 3; ++n) {
    g["aten::reflection_pad" + std::to_string(n) + "d.out"] = padded(n, true);
    g["aten::replication_pad" + std::to_string(n) + "d.out"] = padded(n, false);
  }
}

void addCreations(Generators& g) {
  g["aten::full.out"] = created([](Random& random) {
    return Attributes{{"size", textOf(random.shape())},
                      {"fill_value", random.coin() ? "2.5" : "3"},
                      {"dtype", anyType(random)}};
  });
  g["aten::zeros.out"] = g["aten::ones.out"] = created([](Random& random) {
    return Attributes{{"size", textOf(random.shape())}, {"dtype", anyType(random)}};
  });
  g["aten::full_like.out"] = moved(
      [](Random& random, const Shape&) {
        return Attributes{{"fill_value", random.coin() ? "1.5" : "1"}};
      },
      0);
  g["aten::fill.Scalar_out"] = moved(
      [](Random& random, const Shape&) {
        return Attributes{{"value", random.coin() ? "1.5" : "1"}};
      },
      0);
  g["aten::fill.Tensor_out"] = [](const std::string& kernel, Random& random) {
    return fromAten(
        kernel, {{random.tensor(random.pick(kAll), random.shape())}, {random.tensor(random.pick(kAll), {})}},
        {}, random.layouts());
  };
  g["aten::scalar_tensor.out"] = created([](Random& random) {
    return Attributes{{"s", random.coin() ? "1.5" : "7"}, {"dtype", anyType(random)}};
  });
  g["aten::arange.out"] = created([](Random& random) {
    return Attributes{{"end", random.coin() ? "7.5" : std::to_string(random.range(0, 50))},
                      {"dtype", random.pick(std::vector<std::string>{"None", "i64", "i32", "f32"})}};
  });
  g["aten::arange.start_out"] = created([](Random& random) {
    const bool real = random.coin();
    return Attributes{{"start", real ? "-1.25" : std::to_string(random.range(-9, 9))},
                      {"end", real ? "6.5" : std::to_string(random.range(10, 30))},
                      {"step", real ? "0.3" : std::to_string(random.range(1, 4))},
                      {"dtype", real ? "f32" : random.pick(std::vector<std::string>{"None", "i32", "f32"})}};
  });
}

}  // namespace

void addMovement(Generators& g) {
  addCopiesAndParts(g);
  addJoinsAndRepeats(g);
  addCreations(g);
}

}  // namespace carina::rt::test
