// SPDX-License-Identifier: Apache-2.0
// The runtime's loader and executor on arbitrary bytes, with the NPU model behind the delegate, because
// programs come from untrusted files. Streams that the driver's validator accepts must not make the model
// leave its regions.
#include <sanitizer/asan_interface.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "carina/ethosu_validator.hpp"
#include "carina/runtime.hpp"
#include "device/host_device.hpp"
#include "target.hpp"

namespace carina::rt::runtime_program_fuzz {

namespace {

namespace npu = carina::npu;

/// Memory that is reused for every input, so that an input allocates no pages. Unused memory is poisoned, as
/// around separate allocations.
class Arena64 {
 public:
  Arena64() { ASAN_POISON_MEMORY_REGION(bytes_, sizeof(bytes_)); }

  void reset() {
    ASAN_POISON_MEMORY_REGION(bytes_, used_);
    used_ = 0;
  }
  /// Aligned to 64 bytes and followed by poisoned memory; null if memory is exhausted.
  uint8_t* take(size_t size) {
    const size_t whole = (size + 127) / 64 * 64;
    if (size > sizeof(bytes_) || whole > sizeof(bytes_) - used_) return nullptr;
    uint8_t* const result = bytes_ + used_;
    used_ += whole;
    ASAN_UNPOISON_MEMORY_REGION(result, size);
    return result;
  }

 private:
  alignas(64) uint8_t bytes_[16 << 20];
  size_t used_ = 0;
};
Arena64 memory64;

/// `size` bytes of one value; empty if memory is exhausted.
MutableBytes filled(size_t size, int value) {
  uint8_t* const bytes = memory64.take(size);
  if (bytes == nullptr) return {};
  std::memset(bytes, value, size);
  return MutableBytes(bytes, size);
}

/// Data of other files: the first bytes of the program itself; the name's first character is their number.
struct Others final : NamedData {
  explicit Others(Bytes file) : file(file) {}
  ~Others() = default;
  Status find(Text key, Bytes* bytes) const override {
    const size_t size = key.size == 0 ? 0 : static_cast<uint8_t>(key.data[0]);
    if (size > file.size) return failure(Code::NotFound, "longer than the file at hand");
    *bytes = Bytes(file.data, size);
    return Status{};
  }
  Bytes file;
};

npu::ModelOptions modelOptions() {
  npu::ModelOptions options;
  options.timing = false;
  options.parallel = false;
  options.maxOperationWork = 1 << 16;
  options.maxOperationBytes = 1 << 20;
  options.maxCommands = 500;
  return options;
}

/// NPU work per input: sufficient to find a fault in a command, so that inputs run quickly.
carina::WorkBudget budget(1 << 17);

bool validated = false;  // whether the validator accepted the current job

/// Only records the validator's result: the model runs the commands in any case.
Status noteValidity(uint32_t config, Span<const uint32_t> stream, Span<const Region> regions) {
  validated = validateStream(config, stream, regions).ok();
  return Status{};
}

/// One NPU with its driver.
struct Unit {
  explicit Unit(const char* target)
      : machine(*npu::makeMachine(target, "", "")),
        device(machine, modelOptions()),
        driver(device, options()) {
    if (!driver.open().ok()) __builtin_trap();
    device.share(budget);
  }
  static DriverOptions options() {
    DriverOptions options;
    options.validate = noteValidity;
    return options;
  }
  npu::Machine machine;
  carina::device::HostDevice device;
  EthosUDriver driver;
};

/// Traps on bus faults of a valid job, except those caused by indices of a gather or scatter, which are data.
void expectInside(const std::vector<std::unique_ptr<Unit>>& units, const Status& status) {
  if (status.code != Code::DeviceFault || !validated) return;
  for (const auto& unit : units) {
    const auto& fault = unit->device.fault();
    if (!unit->driver.fault().busError() || !fault || fault->kind != npu::FaultKind::Bus) continue;
    if (fault->reason.find("DMA index") == std::string::npos) __builtin_trap();
  }
}

Status exercise(Bytes file) {
  // U55, U65 and U85: each delegate runs on the NPU for which it was compiled, or on the first.
  static const std::vector<std::unique_ptr<Unit>> units = [] {
    std::vector<std::unique_ptr<Unit>> all;
    for (const char* target : {"ethos-u55-128", "ethos-u65-512", "ethos-u85-256"})
      all.push_back(std::make_unique<Unit>(target));
    return all;
  }();
  alignas(16) static uint8_t fast[1 << 14];
  EthosUDriver* const drivers[] = {&units[0]->driver, &units[1]->driver, &units[2]->driver};
  EthosUDelegate npu{Span<EthosUDriver* const>(drivers), MutableBytes(fast)};
  Program program;
  const Others others(file);
  CARINA_RT_TRY(Program::load(file, &program));
  Backend* const backends[] = {&npu};
  Environment environment;
  environment.kernels = allKernels();
  environment.backends = Span<Backend* const>(backends);
  environment.external = &others;
  environment.maxInstructions = 100;
  constexpr size_t kMost = 1 << 20;
  for (uint32_t index = 0; index < program.methodCount() && index < 4; ++index) {
    Requirements needs;
    CARINA_RT_TRY(Method::require(program, index, environment, &needs));
    if (needs.methodBytes > kMost || needs.temporaryBytes > kMost || needs.poolCount > 8) return Status{};
    const MutableBytes methodMemory = filled(needs.methodBytes, 0),
                       temporary = filled(needs.temporaryBytes, 0);
    MutableBytes pools[8];
    for (uint32_t i = 0; i < needs.poolCount; ++i) {
      size_t bytes = 0;
      CARINA_RT_TRY(Method::poolBytes(program, index, i, &bytes));
      if (bytes > kMost) return Status{};
      pools[i] = filled(bytes, 0);
      if (pools[i].data == nullptr) return Status{};
    }
    if (methodMemory.data == nullptr || temporary.data == nullptr) return Status{};
    Method method;
    CARINA_RT_TRY(method.load(program, index, environment,
                              {methodMemory, Span<MutableBytes>(pools, needs.poolCount), temporary}));
    // Twice, as callers do: state left by the first run may affect the second.
    for (int run = 0; run < 2; ++run) {
      for (uint32_t i = 0; i < method.inputCount() && i < 8; ++i) {
        const Value& value = method.input(i);
        if (value.kind != ValueKind::Tensor || value.tensor.bytes > kMost) continue;
        const MutableBytes given = filled(value.tensor.bytes, 1);
        if (given.data == nullptr) return Status{};
        CARINA_RT_TRY(method.setInput(i, given));
      }
      for (uint32_t i = 0; i < method.outputCount() && i < 8; ++i) {
        const Value& value = method.output(i);
        if (value.kind != ValueKind::Tensor || value.tensor.bytes > kMost || value.tensor.data != nullptr)
          continue;
        const MutableBytes given = filled(value.tensor.bytes, 1);
        if (given.data == nullptr) return Status{};
        CARINA_RT_TRY(method.bindOutput(i, given));
      }
      const Status status = method.execute();
      expectInside(units, status);
      CARINA_RT_TRY(status);
      volatile uint8_t sum = 0;
      for (uint32_t i = 0; i < method.outputCount() && i < 8; ++i) {
        const Value& value = method.output(i);
        if (value.kind != ValueKind::Tensor || value.tensor.data == nullptr) continue;
        for (size_t at = 0; at < value.tensor.bytes; ++at)
          sum = static_cast<uint8_t>(sum + value.tensor.as<const uint8_t>()[at]);
      }
    }
  }
  return program.verify();
}

}  // namespace

CARINA_FUZZ_TARGET(runtime_program) {
  memory64.reset();
  budget.renew();
  uint8_t* const file = memory64.take(size);
  if (file == nullptr) return 0;
  if (size != 0) std::memcpy(file, data, size);
  char text[64];
  carina::rt::statusText(exercise(carina::rt::Bytes(file, size)), text, sizeof(text));
  return 0;
}

}  // namespace carina::rt::runtime_program_fuzz
