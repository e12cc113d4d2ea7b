// SPDX-License-Identifier: Apache-2.0
// CPU kernels compared with their formulas, and calls that they refuse.
#include "carina/kernels.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

namespace carina::rt {
namespace {

/// The arguments of one call, with the storage of tensors and lists.
class Call {
 public:
  template <typename T>
  Call& tensor(ScalarType type, std::vector<int32_t> sizes, std::vector<T> data,
               std::vector<uint8_t> order = {}) {
    Storage& storage = *storage_.emplace_back(std::make_unique<Storage>());
    storage.sizes = std::move(sizes);
    storage.order = std::move(order);
    if (storage.order.empty()) {
      storage.order.resize(storage.sizes.size());
      std::iota(storage.order.begin(), storage.order.end(), uint8_t{0});
    }
    storage.bytes.resize(data.size() * sizeof(T) + 8);
    std::copy_n(reinterpret_cast<const uint8_t*>(data.data()), data.size() * sizeof(T),
                storage.bytes.begin());
    Value value{};
    value.kind = ValueKind::Tensor;
    value.tensor = Tensor{storage.bytes.data(),
                          storage.sizes.data(),
                          data.size() * sizeof(T),
                          storage.order.data(),
                          type,
                          static_cast<uint8_t>(storage.sizes.size()),
                          false,
                          false};
    return add(value);
  }
  Call& integer(int64_t v) {
    Value value{};
    value.kind = ValueKind::Int;
    value.integer = v;
    return add(value);
  }
  Call& real(double v) {
    Value value{};
    value.kind = ValueKind::Double;
    value.real = v;
    return add(value);
  }
  Call& null() { return add(Value{}); }
  Call& integers(const std::vector<int64_t>& items) {
    Storage& storage = *storage_.emplace_back(std::make_unique<Storage>());
    for (int64_t item : items) {
      storage.indices.push_back(static_cast<int64_t>(values_.size()));
      Value value{};
      value.kind = ValueKind::Int;
      value.integer = item;
      values_.push_back(value);
    }
    Value value{};
    value.kind = ValueKind::IntList;
    value.list =
        List{reinterpret_cast<const uint8_t*>(storage.indices.data()), static_cast<uint32_t>(items.size())};
    return add(value);
  }
  Call& constant() {
    values_.back().tensor.constant = true;
    return *this;
  }

  /// Runs the kernel; the last argument is repeated, as in programs.
  Status run(KernelFunction function) {
    std::vector<int32_t> arguments = arguments_;
    arguments.push_back(arguments.back());
    Arena arena;
    KernelContext context(Span<Value>(values_.data(), values_.size()), arguments.data(),
                          static_cast<uint32_t>(arguments.size()), &arena);
    return function(context);
  }
  template <typename T>
  std::vector<T> out() const {
    const Tensor& tensor = values_[static_cast<size_t>(arguments_.back())].tensor;
    return {tensor.as<const T>(), tensor.as<const T>() + tensor.bytes / sizeof(T)};
  }

 private:
  Call& add(const Value& value) {
    values_.push_back(value);
    arguments_.push_back(static_cast<int32_t>(values_.size() - 1));
    return *this;
  }
  struct Storage {
    std::vector<int32_t> sizes;
    std::vector<uint8_t> order;
    std::vector<uint8_t> bytes;
    std::vector<int64_t> indices;
  };
  std::vector<std::unique_ptr<Storage>> storage_;
  std::vector<Value> values_;
  std::vector<int32_t> arguments_;
};

Call quantizeCall(std::vector<float> input, double scale, int64_t zero, int64_t low, int64_t high) {
  const auto count = static_cast<int32_t>(input.size());
  Call call;
  call.tensor(ScalarType::Float32, {count}, std::move(input))
      .real(scale)
      .integer(zero)
      .integer(low)
      .integer(high)
      .integer(1);
  return call;
}

TEST(Kernels, QuantizeRoundsHalfToEvenAndSaturates) {
  const float infinity = std::numeric_limits<float>::infinity();
  Call call = quantizeCall({0.25f, 0.75f, -0.25f, 1000.0f, -1e30f, infinity, -infinity, std::nanf("")}, 0.5,
                           3, -128, 127);
  call.tensor(ScalarType::Int8, {8}, std::vector<int8_t>(8));
  ASSERT_TRUE(call.run(kernels::quantizePerTensor).ok());
  EXPECT_EQ(call.out<int8_t>(), (std::vector<int8_t>{3, 5, 3, 127, -128, 127, -128, 3}));
}

TEST(Kernels, QuantizeUsesTheReciprocal) {
  // At ties, the reciprocal's rounding decides: the kernel must not divide where division would give another
  // code.
  int differences = 0;
  for (int n = 1; n < 300; ++n) {
    const float scale = static_cast<float>(n) / 7.0f;
    for (int k = 0; k < 20; ++k) {
      const float value = (static_cast<float>(k) + 0.5f) * scale;
      const float reciprocal = std::nearbyintf(value * (1.0f / scale));
      if (reciprocal == std::nearbyintf(value / scale)) continue;
      ++differences;
      Call call = quantizeCall({value}, static_cast<double>(scale), 0, -128, 127);
      call.tensor(ScalarType::Int8, {1}, std::vector<int8_t>(1));
      ASSERT_TRUE(call.run(kernels::quantizePerTensor).ok());
      EXPECT_EQ(call.out<int8_t>()[0], static_cast<int8_t>(reciprocal));
    }
  }
  EXPECT_GT(differences, 10);
}

TEST(Kernels, QuantizeUsesPyTorchsReciprocalForInexactFloat32Scales) {
  // float(1 / scale) = 7950.303, 1 / float(scale) = 7950.3027.
  const double scale = 0.0001257813678624687;
  const float inverse = static_cast<float>(1.0 / scale);
  ASSERT_NE(inverse, 1.0f / static_cast<float>(scale));
  int differences = 0;
  for (int code = 1; code < 32767; ++code) {
    const float value = static_cast<float>((code + 0.5) * scale);
    const float expected = std::nearbyintf(value * inverse);
    if (expected == std::nearbyintf(value * (1.0f / static_cast<float>(scale)))) continue;
    ++differences;
    Call call = quantizeCall({value}, scale, 0, -32767, 32767);
    call.tensor(ScalarType::Int16, {1}, std::vector<int16_t>(1));
    ASSERT_TRUE(call.run(kernels::quantizePerTensor).ok());
    ASSERT_EQ(call.out<int16_t>()[0], static_cast<int16_t>(expected)) << code;
  }
  EXPECT_GT(differences, 10);
}

RC_GTEST_PROP(Kernels, QuantizeMatchesTheFormula, ()) {
  const auto raw = *rc::gen::container<std::vector<int>>(rc::gen::inRange(-2000000, 2000000));
  const float scale = static_cast<float>(*rc::gen::inRange(1, 4000)) / 977.0f;
  const int zero = *rc::gen::inRange(-128, 128);
  std::vector<float> input;
  input.reserve(raw.size());
  for (int r : raw) input.push_back(static_cast<float>(r) / 1013.0f);
  Call call = quantizeCall(input, scale, zero, -127, 127);
  call.tensor(ScalarType::Int16, {static_cast<int32_t>(input.size())}, std::vector<int16_t>(input.size()));
  RC_ASSERT(call.run(kernels::quantizePerTensor).ok());
  const auto out = call.out<int16_t>();
  for (size_t i = 0; i < input.size(); ++i) {
    const double rounded = std::nearbyint(static_cast<double>(input[i] * (1.0f / scale)));
    RC_ASSERT(out[i] == static_cast<int16_t>(std::clamp(rounded + zero, -127.0, 127.0)));
  }
}

TEST(Kernels, QuantizeInt32CoversTheWholeRange) {
  Call call = quantizeCall({2147483520.0f, -3e9f, 3e9f, 16777216.0f}, 1.0, 0, INT32_MIN, INT32_MAX);
  call.tensor(ScalarType::Int32, {4}, std::vector<int32_t>(4));
  ASSERT_TRUE(call.run(kernels::quantizePerTensor).ok());
  EXPECT_EQ(call.out<int32_t>(), (std::vector<int32_t>{2147483520, INT32_MIN, INT32_MAX, 16777216}));
}

TEST(Kernels, QuantizeRefusals) {
  {
    Call call = quantizeCall({1.0f}, 1.0, 0, -129, 127);
    call.tensor(ScalarType::Int8, {1}, std::vector<int8_t>(1));
    EXPECT_EQ(call.run(kernels::quantizePerTensor).code, Code::InvalidArgument);
  }
  {
    Call call = quantizeCall({1.0f, 2.0f}, 1.0, 0, -128, 127);
    call.tensor(ScalarType::Int8, {1}, std::vector<int8_t>(1));
    EXPECT_EQ(call.run(kernels::quantizePerTensor).code, Code::ShapeMismatch);
  }
  {
    Call call = quantizeCall({1.0f}, 1.0, 0, -128, 127);
    call.tensor(ScalarType::Int8, {1}, std::vector<int8_t>(1)).constant();
    EXPECT_EQ(call.run(kernels::quantizePerTensor).code, Code::InvalidArgument);
  }
  {
    Call call = quantizeCall({1.0f}, 1.0, 0, -128, 127);
    call.tensor(ScalarType::Float32, {1}, std::vector<float>(1));
    EXPECT_EQ(call.run(kernels::quantizePerTensor).code, Code::TypeMismatch);
  }
}

TEST(Kernels, Dequantize) {
  Call call;
  call.tensor(ScalarType::Int8, {3}, std::vector<int8_t>{-128, 0, 127})
      .real(static_cast<double>(0.1f))
      .integer(-128)
      .integer(-128)
      .integer(127)
      .integer(1)
      .null();
  call.tensor(ScalarType::Float32, {3}, std::vector<float>(3));
  ASSERT_TRUE(call.run(kernels::dequantizePerTensor).ok());
  EXPECT_EQ(call.out<float>(), (std::vector<float>{0.0f, 128.0f * 0.1f, 255.0f * 0.1f}));
}

TEST(Kernels, PerChannelFollowsTheAxisInMemoryOrder) {
  // [1, 2 channels, 2, 1] in NHWC memory: channels are innermost.
  const std::vector<float> memory = {1, 2, 3, 4};
  for (const bool channelsLast : {false, true}) {
    const std::vector<uint8_t> order =
        channelsLast ? std::vector<uint8_t>{0, 2, 3, 1} : std::vector<uint8_t>{0, 1, 2, 3};
    Call call;
    call.tensor(ScalarType::Float32, {1, 2, 2, 1}, memory, order)
        .tensor(ScalarType::Float32, {2}, std::vector<float>{1.0f, 0.5f});
    call.tensor(ScalarType::Int64, {2}, std::vector<int64_t>{0, 10})
        .integer(1)
        .integer(-128)
        .integer(127)
        .integer(1);
    call.tensor(ScalarType::Int8, {1, 2, 2, 1}, std::vector<int8_t>(4), order);
    ASSERT_TRUE(call.run(kernels::quantizePerChannel).ok());
    EXPECT_EQ(call.out<int8_t>(),
              channelsLast ? (std::vector<int8_t>{1, 14, 3, 18}) : (std::vector<int8_t>{1, 2, 16, 18}));
    Call back;
    back.tensor(ScalarType::Int8, {1, 2, 2, 1}, call.out<int8_t>(), order)
        .tensor(ScalarType::Float64, {2}, std::vector<double>{1.0, 0.5});
    back.tensor(ScalarType::Int64, {2}, std::vector<int64_t>{0, 10})
        .integer(1)
        .integer(-128)
        .integer(127)
        .integer(1)
        .null();
    back.tensor(ScalarType::Float32, {1, 2, 2, 1}, std::vector<float>(4), order);
    ASSERT_TRUE(back.run(kernels::dequantizePerChannel).ok());
    EXPECT_EQ(back.out<float>(), memory);
  }
}

TEST(Kernels, ConvertBetweenIntegerWidths) {
  Call call;
  call.tensor(ScalarType::Int64, {3}, std::vector<int64_t>{-5, 7, 2147483647}).null();
  call.tensor(ScalarType::Int32, {3}, std::vector<int32_t>(3));
  ASSERT_TRUE(call.run(kernels::convertCopy).ok());
  EXPECT_EQ(call.out<int32_t>(), (std::vector<int32_t>{-5, 7, 2147483647}));
  Call toBool;
  toBool.tensor(ScalarType::Float32, {3}, std::vector<float>{0.0f, 0.5f, -2.0f}).null();
  toBool.tensor(ScalarType::Bool, {3}, std::vector<uint8_t>(3));
  ASSERT_TRUE(toBool.run(kernels::convertCopy).ok());
  EXPECT_EQ(toBool.out<uint8_t>(), (std::vector<uint8_t>{0, 1, 1}));
  Call floats;
  floats.tensor(ScalarType::Float32, {2}, std::vector<float>{2.9f, -2.9f}).null();
  floats.tensor(ScalarType::Int8, {2}, std::vector<int8_t>(2));
  ASSERT_TRUE(floats.run(kernels::convertCopy).ok());
  EXPECT_EQ(floats.out<int8_t>(), (std::vector<int8_t>{2, -2}));
}

TEST(Kernels, ConvertChangesDimensionOrder) {
  std::vector<int8_t> rowMajor(12), channelsLast(12);
  for (int c = 0; c < 3; ++c) {
    for (int p = 0; p < 4; ++p) {
      rowMajor[static_cast<size_t>(c * 4 + p)] = static_cast<int8_t>(c * 4 + p);
      channelsLast[static_cast<size_t>(p * 3 + c)] = static_cast<int8_t>(c * 4 + p);
    }
  }
  Call call;
  call.tensor(ScalarType::Int8, {1, 3, 2, 2}, rowMajor)
      .tensor(ScalarType::Int8, {1, 3, 2, 2}, std::vector<int8_t>(12), {0, 2, 3, 1});
  ASSERT_TRUE(call.run(kernels::convertCopy).ok());
  EXPECT_EQ(call.out<int8_t>(), channelsLast);
  Call widen;
  widen.tensor(ScalarType::Int8, {1, 3, 2, 2}, channelsLast, {0, 2, 3, 1})
      .tensor(ScalarType::Int32, {1, 3, 2, 2}, std::vector<int32_t>(12));
  ASSERT_TRUE(widen.run(kernels::convertCopy).ok());
  EXPECT_EQ(widen.out<int32_t>(), std::vector<int32_t>(rowMajor.begin(), rowMajor.end()));
}

TEST(Kernels, Permute) {
  Call call;
  call.tensor(ScalarType::Int16, {2, 3}, std::vector<int16_t>{1, 2, 3, 4, 5, 6}).integers({1, -2});
  call.tensor(ScalarType::Int16, {3, 2}, std::vector<int16_t>(6));
  ASSERT_TRUE(call.run(kernels::permuteCopy).ok());
  EXPECT_EQ(call.out<int16_t>(), (std::vector<int16_t>{1, 4, 2, 5, 3, 6}));
  Call twice;
  twice.tensor(ScalarType::Int16, {2, 3}, std::vector<int16_t>(6))
      .integers({1, 1})
      .tensor(ScalarType::Int16, {3, 2}, std::vector<int16_t>(6));
  EXPECT_EQ(twice.run(kernels::permuteCopy).code, Code::InvalidArgument);
  Call transpose;
  transpose.tensor(ScalarType::Int8, {2, 3}, std::vector<int8_t>{1, 2, 3, 4, 5, 6})
      .integer(0)
      .integer(-1)
      .tensor(ScalarType::Int8, {3, 2}, std::vector<int8_t>(6));
  ASSERT_TRUE(transpose.run(kernels::transposeCopy).ok());
  EXPECT_EQ(transpose.out<int8_t>(), (std::vector<int8_t>{1, 4, 2, 5, 3, 6}));
}

TEST(Kernels, ClampKeepsNanAndAcceptsOpenBounds) {
  Call call;
  call.tensor(ScalarType::Float32, {4}, std::vector<float>{-1.0f, 3.0f, 9.0f, std::nanf("")})
      .real(0.0)
      .real(6.0);
  call.tensor(ScalarType::Float32, {4}, std::vector<float>(4));
  ASSERT_TRUE(call.run(kernels::clamp).ok());
  const std::vector<float> out = call.out<float>();
  EXPECT_EQ(std::vector<float>(out.begin(), out.begin() + 3), (std::vector<float>{0.0f, 3.0f, 6.0f}));
  EXPECT_TRUE(std::isnan(out[3]));
  Call open;
  open.tensor(ScalarType::Int8, {3}, std::vector<int8_t>{-128, 5, 127})
      .null()
      .integer(1000)
      .tensor(ScalarType::Int8, {3}, std::vector<int8_t>(3));
  ASSERT_TRUE(open.run(kernels::clamp).ok());
  EXPECT_EQ(open.out<int8_t>(), (std::vector<int8_t>{-128, 5, 127}));
}

TEST(Kernels, TableFindsEveryNameAndNothingElse) {
  const auto find = [](const char* name, const char* overload) {
    return findKernel(allKernels(), Text(name, textLength(name)), Text(overload, textLength(overload)));
  };
  EXPECT_EQ(find("cortex_m::quantize_per_tensor", "out"), &kernels::quantizePerTensor);
  EXPECT_EQ(find("aten::relu", "out"), &kernels::relu);
  EXPECT_EQ(find("aten::relu", "Tensor_out"), nullptr);
  EXPECT_EQ(find("aten::rel", "u.out"), nullptr);
  EXPECT_EQ(find("aten::relu", ""), nullptr);
  // Names in a file have a length and may continue after a zero.
  const char behind[] = "aten::relu\0.out and more than any name of the table has";
  EXPECT_EQ(findKernel(allKernels(), Text(behind, sizeof behind), Text("out", 3)), nullptr);
}

TEST(Kernels, ListIsSortedAndDescribesTheArguments) {
  const KernelTable table = allKernels();
  const Span<const KernelInfo> infos = kernelInfos();
  ASSERT_EQ(table.size, infos.size);
  for (size_t i = 0; i < infos.size; ++i) {
    const std::string name = infos[i].name, arguments = infos[i].arguments;
    EXPECT_EQ(name, table[i].name);
    EXPECT_TRUE(i == 0 || infos[i - 1].name < name) << name;
    EXPECT_EQ(findKernelInfo(Text(name.data(), name.size())), &infos[i]);
    EXPECT_NE(arguments.find("Tensor(a!)"), std::string::npos) << name;
    const size_t dot = name.find('.');
    ASSERT_NE(dot, std::string::npos) << name;
    EXPECT_TRUE(hasKernel(Text(name.data(), dot), Text(name.data() + dot + 1, name.size() - dot - 1)));
  }
}

}  // namespace
}  // namespace carina::rt
