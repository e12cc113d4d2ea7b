// SPDX-License-Identifier: Apache-2.0
// Corrupted calls: a program is an untrusted file, so kernels may refuse such calls or compute anything, but
// must stay within their tensors.
#include <limits>

#include "runtime/kernels/cases.hpp"

namespace carina::rt::test {
namespace {

constexpr int64_t kExtremes[] = {0,         1,        -1, 2, 7, -9, INT32_MAX, INT32_MIN, int64_t{1} << 33,
                                 INT64_MAX, INT64_MIN};

int64_t extreme(Random& random) {
  return kExtremes[random.range(0, static_cast<int64_t>(std::size(kExtremes)) - 1)];
}

/// A value of any kind, owned by `donor`.
Value anything(KernelCall& donor, Random& random) {
  switch (random.range(0, 9)) {
    case 0:
      donor.null();
      break;
    case 1:
      donor.real(random.coin() ? std::numeric_limits<double>::quiet_NaN()
                               : static_cast<double>(extreme(random)));
      break;
    case 2:
      donor.boolean(random.coin());
      break;
    case 3:
      donor.text(random.coin() ? "floor" : "");
      break;
    case 4:
      donor.integer(extreme(random));
      break;
    case 5: {  // huge sizes, but no elements
      const std::vector<Shape> shapes = {
          {0, INT32_MAX, INT32_MAX}, {INT32_MAX, 0}, {1, 0, INT32_MAX, 1}, {0}};
      donor.tensor(carina::Tensor::zeros(random.pick(kAll), random.pick(shapes)));
      break;
    }
    default: {
      std::vector<DType> types = kAll;
      types.push_back(DType::Float64);
      carina::Tensor tensor = carina::Tensor::zeros(random.pick(types), random.shape(0, 5));
      for (std::byte& byte : tensor.mutableBytes()) byte = static_cast<std::byte>(random.range(0, 255));
      std::vector<uint8_t> order(tensor.shape().size());
      for (size_t d = 0; d < order.size(); ++d) order[d] = static_cast<uint8_t>(d);
      std::shuffle(order.begin(), order.end(), random.engine);
      donor.tensor(tensor, order);
      break;
    }
  }
  return donor.values().back();
}

void spoil(KernelCall& call, KernelCall& donor, Random& random) {
  std::vector<Value>& values = call.values();
  std::vector<int32_t>& arguments = call.arguments();
  if (arguments.empty()) return;
  const auto at = static_cast<size_t>(random.range(0, static_cast<int64_t>(arguments.size()) - 1));
  Value& value = values[static_cast<size_t>(arguments[at])];
  switch (random.range(0, 6)) {
    case 0:
    case 1:
      value = anything(donor, random);
      break;
    case 2:
      arguments[at] =
          arguments[static_cast<size_t>(random.range(0, static_cast<int64_t>(arguments.size()) - 1))];
      break;
    case 3:
      arguments.resize(at);
      break;
    case 4:  // including the elements of lists
      for (Value& any : values) {
        if (any.kind == ValueKind::Int && random.coin(3)) any.integer = extreme(random);
      }
      break;
    case 5:
      if (value.kind == ValueKind::Tensor && random.coin()) value.tensor.data = nullptr;
      if (value.kind == ValueKind::Tensor) value.tensor.constant = true;
      if (value.kind >= ValueKind::String && value.list.count > 0) --value.list.count;
      break;
    default:
      for (Value& any : values) {  // moves may have replaced the integers or tensors of a list by any value
        if (random.coin(4)) any = anything(donor, random);
      }
      break;
  }
}

TEST(CorruptedCalls, StayWithinTheirTensors) {
  int refused = 0, served = 0;
  const KernelTable table = allKernels();
  for (const Kernel& kernel : table) {
    const Generator& generator = generators().at(kernel.name);
    for (uint32_t seed = 0; seed < 60; ++seed) {
      Random random(seed * 104729 + 3);
      KernelCase sample = generator(kernel.name, random);
      KernelCall donor;
      for (int64_t times = random.range(1, 2); times > 0; --times) spoil(sample.call, donor, random);
      // The call refers to values of the donor, so the donor's guards are checked as well.
      const Status status = sample.call.run(kernel.run);
      ASSERT_TRUE(sample.call.guardsHold() && donor.guardsHold())
          << kernel.name << " seed " << seed << " " << sample.text;
      ASSERT_TRUE(status.ok() || status.what != nullptr);
      ++(status.ok() ? served : refused);
    }
  }
  EXPECT_GT(refused, served / 4);
  EXPECT_GT(served, 0);
}

}  // namespace
}  // namespace carina::rt::test
