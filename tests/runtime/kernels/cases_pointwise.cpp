// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cases.hpp"

namespace carina::rt::test {
namespace {

Generator unary(const std::vector<DType>& dtypes, double low, double high) {
  return [=](const std::string& kernel, Random& random) {
    return fromAten(kernel, {{random.tensor(random.pick(dtypes), random.shape(), low, high)}}, {},
                    random.layouts());
  };
}

struct Domain {
  double low = -4, high = 4;  // of the first operand
  double otherLow = -4, otherHigh = 4;
  bool mixed = true;  // operands of different types
  aten::test::Attributes attributes = {};
};

Generator tensors(const std::vector<DType>& dtypes, const Domain& domain = {}) {
  return [=](const std::string& kernel, Random& random) {
    const Shape shape = random.shape();
    const DType first = random.pick(dtypes),
                second = domain.mixed && random.coin() ? random.pick(dtypes) : first;
    const bool swapped = random.coin();
    const Shape other = random.narrower(shape);
    aten::test::Groups groups = {
        {random.tensor(first, swapped ? other : shape, domain.low, domain.high)},
        {random.tensor(second, swapped ? shape : other, domain.otherLow, domain.otherHigh)}};
    aten::test::Attributes attributes = domain.attributes;
    if (!attributes.empty() && attributes[0].second == "?") {  // alpha
      const bool real = isFloat(first) || isFloat(second);
      attributes[0].second = real && random.coin() ? "-1.5" : std::to_string(random.range(-3, 3));
    }
    return fromAten(kernel, groups, attributes, random.layouts());
  };
}

/// A tensor and a scalar, the attribute `name`.
Generator withNumber(const std::vector<DType>& dtypes, const Domain& domain = {},
                     const std::string& name = "other", bool reals = true) {
  return [=](const std::string& kernel, Random& random) {
    const DType dtype = random.pick(dtypes);
    aten::test::Attributes attributes = domain.attributes;
    const int64_t number =
        random.range(static_cast<int64_t>(domain.otherLow), static_cast<int64_t>(domain.otherHigh));
    const bool real = reals && random.coin();
    attributes.emplace_back(
        name, real ? std::to_string(static_cast<double>(number) + 0.5) : std::to_string(number));
    if (attributes[0].second == "?") attributes[0].second = std::to_string(random.range(-3, 3));
    return fromAten(kernel, {{random.tensor(dtype, random.shape(), domain.low, domain.high)}}, attributes,
                    random.layouts());
  };
}

KernelCase clampCase(const std::string& kernel, Random& random) {
  const DType dtype = random.pick(kNumbers);
  aten::test::Attributes attributes;
  const int which = static_cast<int>(random.range(0, 2));
  const bool real = isFloat(dtype) || random.coin(4);
  const auto number = [&](int64_t low, int64_t high) {
    const int64_t value = random.range(low, high);
    return real ? std::to_string(static_cast<double>(value) + 0.25) : std::to_string(value);
  };
  if (which != 1) attributes.emplace_back("min", number(dtype == DType::UInt8 ? 0 : -60, 40));
  if (which != 0) attributes.emplace_back("max", number(dtype == DType::UInt8 ? 0 : -40, 60));
  return fromAten(kernel, {{random.tensor(dtype, random.shape(), -90, 90)}}, attributes, random.layouts());
}

KernelCase clampTensorCase(const std::string& kernel, Random& random) {
  const DType dtype = random.pick(kNumbers);
  const Shape shape = random.shape();
  aten::test::Groups groups = {{random.tensor(dtype, shape)}, {}, {}};
  const int which = static_cast<int>(random.range(0, 2));
  if (which != 1) groups[1] = {random.tensor(dtype, random.narrower(shape), -3, 2)};
  if (which != 0) groups[2] = {random.tensor(dtype, random.narrower(shape), -2, 3)};
  return fromAten(kernel, groups, {}, random.layouts());
}

KernelCase whereCase(const std::string& kernel, Random& random) {
  const Shape shape = random.shape();
  const DType first = random.pick(kAll), second = random.coin() ? first : random.pick(kAll);
  aten::test::Groups groups = {{random.tensor(DType::Bool, random.narrower(shape))},
                               {random.tensor(first, shape)},
                               {random.tensor(second, random.narrower(shape))}};
  return fromAten(kernel, groups, {}, random.layouts());
}

KernelCase maskedFillCase(const std::string& kernel, Random& random) {
  const Shape shape = random.shape();
  const DType dtype = random.pick(kNumbers);
  return fromAten(kernel,
                  {{random.tensor(dtype, shape)}, {random.tensor(DType::Bool, random.narrower(shape))}},
                  {{"value", isFloat(dtype) && random.coin() ? "-0.75" : std::to_string(random.range(0, 9))}},
                  random.layouts());
}

KernelCase gluCase(const std::string& kernel, Random& random) {
  Shape shape = random.shape(1);
  const int64_t dim = random.dim(static_cast<int64_t>(shape.size()));
  shape[static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(shape.size()) : dim)] *= 2;
  return fromAten(kernel, {{random.tensor(DType::Float32, shape)}}, {{"dim", std::to_string(dim)}},
                  random.layouts());
}

}  // namespace

void addPointwise(Generators& g) {
  const std::vector<DType> reals = {DType::Float32};
  for (const char* name : {"acosh", "asinh", "atan", "cos", "cosh", "erf", "exp", "expm1", "sigmoid", "sin",
                           "sinh", "tan", "tanh"})
    g["aten::" + std::string(name) + ".out"] = unary(kAll, std::string(name) == "acosh" ? 1 : -4, 4);
  for (const char* name : {"acos", "asin", "atanh"})
    g["aten::" + std::string(name) + ".out"] = unary(reals, -0.99, 0.99);
  for (const char* name : {"log", "log10", "log1p", "log2", "reciprocal", "rsqrt", "sqrt"})
    g["aten::" + std::string(name) + ".out"] = unary(kNumbers, 1, 9);
  for (const char* name : {"abs", "ceil", "floor", "neg", "relu", "round", "sign", "trunc"})
    g["aten::" + std::string(name) + ".out"] = unary(kNumbers, -140, 140);
  for (const char* name : {"isinf", "isnan", "logical_not"})
    g["aten::" + std::string(name) + ".out"] = unary(kAll, -1, 1);
  std::vector<DType> bits = kIntegers;
  bits.push_back(DType::Bool);
  g["aten::bitwise_not.out"] = unary(bits, -128, 127);
  g["aten::gelu.out"] = [](const std::string& kernel, Random& random) {
    return fromAten(kernel, {{random.tensor(DType::Float32, random.shape())}},
                    {{"approximate", random.coin() ? "tanh" : "none"}}, random.layouts());
  };
  g["aten::elu.out"] = [](const std::string& kernel, Random& random) {
    return fromAten(kernel, {{random.tensor(DType::Float32, random.shape())}},
                    {{"alpha", "1.25"}, {"scale", random.coin() ? "1" : "0.5"}, {"input_scale", "2"}},
                    random.layouts());
  };
  g["aten::leaky_relu.out"] = [](const std::string& kernel, Random& random) {
    return fromAten(kernel, {{random.tensor(DType::Float32, random.shape())}}, {{"negative_slope", "0.125"}},
                    random.layouts());
  };
  g["aten::logit.out"] = [](const std::string& kernel, Random& random) {
    return fromAten(kernel, {{random.tensor(DType::Float32, random.shape(), 0.01, 0.99)}},
                    {{"eps", random.coin() ? "0.125" : "None"}}, random.layouts());
  };
  g["aten::glu.out"] = gluCase;
  g["aten::clamp.out"] = clampCase;
  g["aten::clamp.Tensor_out"] = clampTensorCase;
  g["aten::hardtanh.out"] = [](const std::string& kernel, Random& random) {
    return fromAten(
        kernel,
        {{random.tensor(random.pick(std::vector<DType>{DType::Float32, DType::Int8}), random.shape())}},
        {{"min_val", "-2"}, {"max_val", "3"}}, random.layouts());
  };

  const Domain wide{-100, 100, -100, 100, true, {}};
  Domain alpha = wide;
  alpha.attributes = {{"alpha", "?"}};
  g["aten::add.out"] = g["aten::sub.out"] = tensors(kNumbers, alpha);
  g["aten::add.Scalar_out"] = g["aten::sub.Scalar_out"] = g["aten::rsub.Scalar_out"] =
      withNumber(kNumbers, alpha);
  g["aten::mul.out"] = tensors(kAll, wide);
  g["aten::mul.Scalar_out"] = withNumber(kNumbers, wide);
  const Domain divisor{-100, 100, 1, 100, true, {}};
  g["aten::div.out"] = tensors(kNumbers, divisor);
  g["aten::div.Scalar_out"] = withNumber(kNumbers, divisor);
  for (const char* mode : {"floor", "trunc", "None"}) {
    Domain domain = divisor;
    domain.attributes = {{"rounding_mode", mode}};
    const Generator both = tensors(kNumbers, domain), number = withNumber(kNumbers, domain);
    // All modes: each new table entry chooses at random between its mode and the entry it replaces.
    const Generator before = g["aten::div.out_mode"], beforeNumber = g["aten::div.Scalar_mode_out"];
    g["aten::div.out_mode"] = [=](const std::string& kernel, Random& random) {
      return before && random.coin() ? before(kernel, random) : both(kernel, random);
    };
    g["aten::div.Scalar_mode_out"] = [=](const std::string& kernel, Random& random) {
      return beforeNumber && random.coin() ? beforeNumber(kernel, random) : number(kernel, random);
    };
  }
  for (const char* name : {"fmod", "remainder"}) {
    g["aten::" + std::string(name) + ".Tensor_out"] = tensors(kNumbers, {-100, 100, -9, 9, true, {}});
    g["aten::" + std::string(name) + ".Scalar_out"] = withNumber(kNumbers, {-100, 100, 1, 9, true, {}});
  }
  g["aten::floor_divide.out"] = tensors(kNumbers, {-100, 100, -9, 9, true, {}});
  g["aten::atan2.out"] = tensors(reals);
  g["aten::maximum.out"] = g["aten::minimum.out"] = tensors(kAll, wide);
  for (const char* name : {"eq", "ne", "lt", "le", "gt", "ge"}) {
    g["aten::" + std::string(name) + ".Tensor_out"] = tensors(kAll, {-3, 3, -3, 3, true, {}});
    g["aten::" + std::string(name) + ".Scalar_out"] = withNumber(kNumbers, {-3, 3, 0, 300, true, {}});
  }
  g["aten::pow.Tensor_Tensor_out"] = [=](const std::string& kernel, Random& random) {
    return random.coin() ? tensors(reals, {0.1, 4, -3, 3, false, {}})(kernel, random)
                         : tensors(kIntegers, {-4, 4, 0, 4, false, {}})(kernel, random);
  };
  g["aten::pow.Tensor_Scalar_out"] = [=](const std::string& kernel, Random& random) {
    return random.coin() ? withNumber(reals, {0.1, 4, -3, 3, false, {}}, "exponent")(kernel, random)
                         : withNumber(kIntegers, {-4, 4, 0, 4, false, {}}, "exponent", false)(kernel, random);
  };
  g["aten::pow.Scalar_out"] = [=](const std::string& kernel, Random& random) {
    return withNumber(reals, {-3, 3, 1, 4, false, {}}, "self")(kernel, random);
  };
  for (const char* name : {"and", "or", "xor"}) {
    const std::string text = name;
    g["aten::logical_" + text + ".out"] = tensors(kAll, {-1, 1, -1, 1, true, {}});
    g["aten::bitwise_" + text + ".Tensor_out"] = tensors(bits, wide);
    g["aten::bitwise_" + text + ".Scalar_out"] =
        withNumber(bits, {-100, 100, 0, 100, true, {}}, "other", false);
  }
  for (const char* name : {"left", "right"}) {
    const std::string text = "aten::bitwise_" + std::string(name) + "_shift.";
    g[text + "Tensor_out"] = tensors(kIntegers, {-100, 100, 0, 70, false, {}});
    g[text + "Tensor_Scalar_out"] = withNumber(kIntegers, {-100, 100, 0, 70, false, {}}, "other", false);
  }
  g["aten::where.self_out"] = whereCase;
  g["aten::masked_fill.Scalar_out"] = maskedFillCase;
}

}  // namespace carina::rt::test
