// SPDX-License-Identifier: Apache-2.0
// Calls the kernels that have Helium variants on pseudo-random data and prints a checksum per call, for a
// bare Cortex-M55. The output must be the same when built with and without Helium.
#include "carina/kernels.hpp"

#include <initializer_list>

using namespace carina::rt;

extern "C" {
void _sbrk() {
  __builtin_trap();  // nothing here may allocate
}
}

namespace {

int semihost(int operation, const void* argument) {
  register int r0 asm("r0") = operation;
  register const void* r1 asm("r1") = argument;
  asm volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

void print(const char* name, uint32_t size, uint32_t checksum) {
  char line[64];
  size_t at = 0;
  for (; name[at] != 0; ++at) line[at] = name[at];
  for (const uint32_t number : {size, checksum}) {
    line[at++] = ' ';
    for (int digit = 28; digit >= 0; digit -= 4) line[at++] = "0123456789abcdef"[number >> digit & 15];
  }
  line[at++] = '\n';
  line[at] = 0;
  semihost(4, line);  // SYS_WRITE0
}

uint32_t state = 12345;
uint32_t random() {
  state = state * 1664525u + 1013904223u;
  return state >> 8;
}
int32_t between(int32_t low, int32_t high) {
  return low + static_cast<int32_t>(random() % static_cast<uint32_t>(high - low + 1));
}

alignas(16) uint8_t memory[96 * 1024];
int32_t shapes[64];
const uint8_t kRowMajor[] = {0, 1, 2, 3};
const uint8_t kChannelsLast[] = {0, 2, 3, 1};

/// The arguments of one call.
class Arguments {
 public:
  Tensor& tensor(ScalarType type, uint8_t rank, const int32_t* sizes, bool channelsLast = false) {
    Value& value = add(ValueKind::Tensor);
    size_t count = 1;
    for (uint32_t d = 0; d < rank; ++d) {
      shapes[shapeCount_ + d] = sizes[d];
      count *= static_cast<size_t>(sizes[d]);
    }
    value.tensor = Tensor{memory + used_,
                          shapes + shapeCount_,
                          count * elementSize(type),
                          channelsLast ? kChannelsLast : kRowMajor,
                          type,
                          rank,
                          false,
                          false};
    shapeCount_ += rank;
    used_ += (value.tensor.bytes + 31) & ~size_t{15};
    if (used_ > sizeof(memory)) __builtin_trap();
    for (size_t i = 0; i < value.tensor.bytes; ++i)
      value.tensor.as<uint8_t>()[i] = static_cast<uint8_t>(random());
    return value.tensor;
  }
  Tensor& line(ScalarType type, int32_t count) { return tensor(type, 1, &count); }
  Tensor& image(int32_t count, int32_t channels, int32_t height, int32_t width) {
    const int32_t sizes[] = {count, channels, height, width};
    return tensor(ScalarType::Int8, 4, sizes, true);
  }
  Arguments& integer(int64_t number) {
    add(ValueKind::Int).integer = number;
    return *this;
  }
  Arguments& boolean(bool truth) {
    add(ValueKind::Bool).boolean = truth;
    return *this;
  }
  Arguments& real(double number) {
    add(ValueKind::Double).real = number;
    return *this;
  }
  Arguments& null() {
    add(ValueKind::Null);
    return *this;
  }
  Arguments& integers(int64_t first, int64_t second, uint32_t count = 2) {
    int64_t* items = items_[lists_++];
    for (uint32_t i = 0; i < count; ++i) {
      items[i] = valueCount_;
      values_[valueCount_].kind = ValueKind::Int;
      values_[valueCount_++].integer = i == 0 ? first : second;
    }
    add(ValueKind::IntList).list = List{reinterpret_cast<const uint8_t*>(items), count};
    return *this;
  }
  void run(const char* name, KernelFunction kernel) {
    arguments_[count_] = arguments_[count_ - 1];
    Arena temporary;
    KernelContext context(Span<Value>(values_), arguments_, count_ + 1, &temporary);
    const Status status = kernel(context);
    const Tensor& output = values_[arguments_[count_]].tensor;
    uint32_t checksum = status.ok() ? 0x811c9dc5u : 0xdeadu;
    for (size_t i = 0; status.ok() && i < output.bytes; ++i)
      checksum = (checksum ^ output.as<uint8_t>()[i]) * 16777619u;
    print(name, static_cast<uint32_t>(output.bytes), checksum);
  }

 private:
  Value& add(ValueKind kind) {
    arguments_[count_++] = valueCount_;
    values_[valueCount_].kind = kind;
    return values_[valueCount_++];
  }
  Value values_[48] = {};
  int32_t arguments_[24];
  int64_t items_[4][2];
  uint32_t count_ = 0, lists_ = 0, shapeCount_ = 0;
  int32_t valueCount_ = 0;
  size_t used_ = 0;
};

template <typename T>
void fill(Tensor& tensor, int32_t low, int32_t high) {
  for (size_t i = 0; i < tensor.elements(); ++i) tensor.as<T>()[i] = static_cast<T>(between(low, high));
}

void quantizing(ScalarType type, int32_t count, int32_t low, int32_t high) {
  Arguments quantize;
  Tensor& input = quantize.line(ScalarType::Float32, count);
  for (int32_t i = 0; i < count; ++i) {
    if (i % 7 != 0)
      input.as<float>()[i] = static_cast<float>(between(-4000, 4000)) * 0.03125f;  // else any bits, NaN too
  }
  quantize.real(0.0625)
      .integer(between(low, high))
      .integer(low)
      .integer(high)
      .integer(static_cast<int64_t>(type));
  quantize.line(type, count);
  quantize.run("quantize", kernels::quantizePerTensor);
  Arguments dequantize;
  dequantize.line(type, count);
  dequantize.real(0.1f)
      .integer(between(low, high))
      .integer(low)
      .integer(high)
      .integer(static_cast<int64_t>(type));
  dequantize.line(ScalarType::Float32, count);
  dequantize.run("dequantize", kernels::dequantizePerTensor);
}

void elementwise(int32_t count) {
  Arguments sum;
  const auto scale = [&](Arguments& call, int32_t least, int32_t most) {
    call.integer(between(1 << 30, INT32_MAX)).integer(between(least, most));
  };
  sum.line(ScalarType::Int8, count);
  sum.integer(between(-128, 127));
  scale(sum, -4, 1);
  sum.line(ScalarType::Int8, count);
  sum.integer(between(-128, 127));
  scale(sum, -4, 1);
  sum.integer(between(-128, 127));
  scale(sum, -22, -17);
  sum.integer(-120).integer(120).line(ScalarType::Int8, count);
  sum.run("quantized_add", kernels::quantizedAdd);
  Arguments product;
  product.line(ScalarType::Int8, count);
  product.integer(between(-128, 127)).line(ScalarType::Int8, count);
  product.integer(between(-128, 127)).integer(between(-128, 127));
  scale(product, -9, -3);
  product.line(ScalarType::Int8, count);
  product.run("quantized_mul", kernels::quantizedMul);
  Arguments table;
  table.line(ScalarType::Int8, count);
  table.line(ScalarType::Int8, 256);
  table.line(ScalarType::Int8, count);
  table.run("quantized_activation", kernels::quantizedActivation);
}

/// Lines of `length` elements with scales from 2^-8 to 1, for which 26 fraction bits are a shift of 18 to 26.
void softmax(int32_t length) {
  const int32_t sizes[] = {3, length};
  Arguments call;
  call.tensor(ScalarType::Int8, 2, sizes);
  const int32_t shift = between(18, 26);
  call.integer(-1).integer(between(-128, 127)).integer(-128).integer(between(1 << 30, INT32_MAX));
  call.integer(shift).integer(-(31 << (26 - shift)));
  call.tensor(ScalarType::Int8, 2, sizes);
  call.run("softmax", kernels::quantizedSoftmax);
}

void linear(int32_t depth, int32_t columns) {
  const int32_t in[] = {3, depth}, weights[] = {columns, depth}, out[] = {3, columns};
  Arguments call;
  call.tensor(ScalarType::Int8, 2, in);
  call.tensor(ScalarType::Int8, 2, weights);
  fill<int32_t>(call.line(ScalarType::Int32, columns), -9000, 9000);
  call.null().integer(between(-127, 128)).integer(between(0, 1)).integer(3);
  call.integers(between(1 << 30, INT32_MAX), 0, 1)
      .integers(between(-10, -5), 0, 1)
      .integer(127)
      .integer(-128);
  call.tensor(ScalarType::Int8, 2, out);
  call.run("quantized_linear", kernels::quantizedLinear);
}

void convolution(bool depthwise, int32_t channels) {
  const int32_t outs = depthwise ? channels : 5;
  const int32_t deep[] = {1, 3, 3, outs}, full[] = {outs, 3, 3, channels};
  Arguments call;
  call.image(1, channels, 7, 6);
  call.tensor(ScalarType::Int8, 4, depthwise ? deep : full);
  fill<int32_t>(call.line(ScalarType::Int32, outs), -9000, 9000);
  call.integers(1, 2).integers(1, 1).integers(1, 1);
  if (depthwise) call.integer(1);
  call.integer(between(-127, 128)).integer(-3);
  fill<int32_t>(call.line(ScalarType::Int32, outs), 1 << 30, INT32_MAX);
  fill<int32_t>(call.line(ScalarType::Int32, outs), -11, -6);
  call.integer(-128).integer(127).line(ScalarType::Int8, 0);
  call.image(1, outs, 7, 3);
  if (depthwise)
    call.run("quantized_depthwise_conv2d", kernels::quantizedDepthwiseConv2d);
  else
    call.run("quantized_conv2d", kernels::quantizedConv2d);
}

void pools(int32_t channels) {
  Arguments average;
  average.image(1, channels, 6, 6);
  average.integers(3, 3).integers(2, 2).integers(1, 1).boolean(false).integer(0).integer(1).integer(0);
  average.line(ScalarType::Int8, 0);
  average.image(1, channels, 3, 3);
  average.run("quantized_avg_pool2d", kernels::quantizedAvgPool2d);
  Arguments largest;
  largest.image(1, channels, 6, 6);
  largest.integers(3, 3).integers(2, 2).integers(1, 1).integers(1, 1).boolean(false).integer(0).integer(0);
  largest.integer(-100).integer(100).image(1, channels, 3, 3);
  largest.run("quantized_max_pool2d", kernels::quantizedMaxPool2d);
}

}  // namespace

extern "C" [[noreturn]] void start() {
  *reinterpret_cast<volatile uint32_t*>(0xe000ed88) |= 0xfu << 20;  // CPACR: floating point and Helium
  asm volatile("dsb\n isb");
  for (const int32_t count : {0, 1, 3, 4, 5, 15, 16, 17, 33, 100, 257}) {
    quantizing(ScalarType::Int8, count, -128, 127);
    quantizing(ScalarType::UInt8, count, 0, 255);
    quantizing(ScalarType::Int16, count, -32768, 32767);
    quantizing(ScalarType::UInt16, count, 0, 65535);
    elementwise(count);
  }
  for (int32_t length = 1; length < 40; ++length) softmax(length);
  for (const int32_t size : {1, 2, 15, 16, 17, 31, 33, 70}) {
    linear(size, 1 + size % 7);
    convolution(false, size);
    convolution(true, size);
    pools(size);
  }
  semihost(0x18, reinterpret_cast<const void*>(0x20026));  // SYS_EXIT: the application is done
  for (;;) {
  }
}

extern "C" [[noreturn]] void fault() {
  semihost(4, "fault\n");
  semihost(0x18, reinterpret_cast<const void*>(0x20023));
  for (;;) {
  }
}

extern "C" char stackTop;
/// Initial stack pointer, reset, and the first fault handlers.
__attribute__((section(".vectors"), used)) const void* const vectors[] = {
    &stackTop,
    reinterpret_cast<const void*>(start),
    reinterpret_cast<const void*>(fault),
    reinterpret_cast<const void*>(fault),
    reinterpret_cast<const void*>(fault),
    reinterpret_cast<const void*>(fault),
    reinterpret_cast<const void*>(fault),
    reinterpret_cast<const void*>(fault),
};
