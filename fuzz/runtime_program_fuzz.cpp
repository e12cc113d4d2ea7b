// SPDX-License-Identifier: Apache-2.0
// The runtime's loader and executor on arbitrary bytes, with the NPU model behind the delegate: programs come
// from files that nobody vouches for. What the driver's validator lets through must not make the model leave
// its regions.
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "carina/ethosu_validator.hpp"
#include "carina/runtime.hpp"
#include "device/host_device.hpp"

namespace {

using namespace carina::rt;
namespace npu = carina::npu;

struct Free {
  void operator()(uint8_t* data) const { ::operator delete[](data, std::align_val_t{64}); }
};
using Memory64 = std::unique_ptr<uint8_t[], Free>;
Memory64 aligned(size_t size) {
  return Memory64(new (std::align_val_t{64}) uint8_t[size]);
}

/// Data of other files: as many bytes of the file at hand as the name's first character says.
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

bool validated = false;  // what the validator said of the job under way

/// Only notes its opinion: the model runs the commands all the same.
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

/// A bus fault of a job that was valid: only indices of a gather or scatter, which are data, may cause one.
void expectInside(const std::vector<std::unique_ptr<Unit>>& units, const Status& status) {
  if (status.code != Code::DeviceFault || !validated) return;
  for (const auto& unit : units) {
    const auto& fault = unit->device.fault();
    if (!unit->driver.fault().busError() || !fault || fault->kind != npu::FaultKind::Bus) continue;
    if (fault->reason.find("DMA index") == std::string::npos) __builtin_trap();
  }
}

Status exercise(Bytes file) {
  // U55, U65 and U85: each delegate goes to the one that it was compiled for, or the first.
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
    const Memory64 methodMemory = aligned(needs.methodBytes), temporary = aligned(needs.temporaryBytes);
    std::memset(temporary.get(), 0, needs.temporaryBytes);
    std::vector<Memory64> pools;
    std::vector<MutableBytes> spans;
    for (uint32_t i = 0; i < needs.poolCount; ++i) {
      size_t bytes = 0;
      CARINA_RT_TRY(Method::poolBytes(program, index, i, &bytes));
      if (bytes > kMost) return Status{};
      pools.push_back(aligned(bytes));
      std::memset(pools.back().get(), 0, bytes);
      spans.emplace_back(pools.back().get(), bytes);
    }
    Method method;
    CARINA_RT_TRY(method.load(
        program, index, environment,
        {MutableBytes(methodMemory.get(), needs.methodBytes), Span<MutableBytes>(spans.data(), spans.size()),
         MutableBytes(temporary.get(), needs.temporaryBytes)}));
    std::vector<Memory64> given;
    const auto take = [&](size_t bytes) {
      given.push_back(aligned(bytes));
      std::memset(given.back().get(), 1, bytes);
      return MutableBytes(given.back().get(), bytes);
    };
    // Twice, as callers do: what the first run left may be in the way of the second.
    for (int run = 0; run < 2; ++run) {
      for (uint32_t i = 0; i < method.inputCount() && i < 8; ++i) {
        const Value& value = method.input(i);
        if (value.kind != ValueKind::Tensor || value.tensor.bytes > kMost) continue;
        CARINA_RT_TRY(method.setInput(i, take(value.tensor.bytes)));
      }
      for (uint32_t i = 0; i < method.outputCount() && i < 8; ++i) {
        const Value& value = method.output(i);
        if (value.kind != ValueKind::Tensor || value.tensor.bytes > kMost || value.tensor.data != nullptr)
          continue;
        CARINA_RT_TRY(method.bindOutput(i, take(value.tensor.bytes)));
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

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Memory64 file = aligned(size);
  std::memcpy(file.get(), data, size);
  char text[64];
  carina::rt::statusText(exercise(carina::rt::Bytes(file.get(), size)), text, sizeof(text));
  return 0;
}
