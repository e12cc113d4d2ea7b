// SPDX-License-Identifier: Apache-2.0
// The smallest program that uses all the runtime a delegated network needs: what it links to is the runtime's
// footprint.
#include "carina/kernels.hpp"
#include "carina/runtime.hpp"

using namespace carina::rt;

extern "C" {
extern const uint8_t programBytes[];
extern const uint32_t programSize;
alignas(16) uint8_t methodMemory[4096];
alignas(16) uint8_t poolMemory[4096];
alignas(16) uint8_t temporaryMemory[4096];
alignas(16) const uint8_t programBytes[16] = {};
const uint32_t programSize = 16;
void* _sbrk(int) {
  __builtin_trap();
}  // nothing here may ask for heap
}

namespace {

/// An NPU in the address space.
class MemoryMapped final : public Device {
 public:
  ~MemoryMapped() = default;
  uint32_t read32(uint32_t offset) override { return *at(offset); }
  void write32(uint32_t offset, uint32_t value) override { *at(offset) = value; }
  bool map(const void* host, size_t, Access, uint64_t* address) override {
    *address = reinterpret_cast<uintptr_t>(host);
    return true;
  }
  void unmap(const void*, size_t) override {}
  Wait wait(uint32_t) override {
    while ((*at(4) & 2u) == 0) {
    }
    return Wait::Interrupt;
  }

 private:
  static volatile uint32_t* at(uint32_t offset) {
    return reinterpret_cast<volatile uint32_t*>(0x48102000u + offset);
  }
};

constexpr Kernel kKernels[] = {
    {"cortex_m::dequantize_per_tensor.out", kernels::dequantizePerTensor},
    {"cortex_m::quantize_per_tensor.out", kernels::quantizePerTensor},
};

Status run() {
  Program program;
  CARINA_RT_TRY(Program::load(Bytes(programBytes, programSize), &program));
  MemoryMapped device;
  EthosUDriver driver(device);
  CARINA_RT_TRY(driver.open());
  EthosUDelegate npu(&driver);
  Backend* const backends[] = {&npu};
  Environment environment;
  environment.kernels = KernelTable(kKernels);
  environment.backends = Span<Backend* const>(backends);
  MutableBytes pools[] = {MutableBytes(poolMemory)};
  Method method;
  CARINA_RT_TRY(
      method.load(program, 0, environment,
                  {MutableBytes(methodMemory), Span<MutableBytes>(pools), MutableBytes(temporaryMemory)}));
  CARINA_RT_TRY(method.setInput(0, Bytes(poolMemory, 16)));
  return method.execute();
}

}  // namespace

extern "C" [[noreturn]] void _start() {
  static char text[128];
  statusText(run(), text, sizeof(text));
  for (;;) {
  }
}
