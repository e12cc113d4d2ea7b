// SPDX-License-Identifier: Apache-2.0
// The runtime's loader and executor on arbitrary bytes: programs come from files that nobody vouches for.
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "carina/runtime.hpp"

namespace {

using namespace carina::rt;

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

Status exercise(Bytes file) {
  Program program;
  const Others others(file);
  CARINA_RT_TRY(Program::load(file, &program));
  EthosUDelegate npu(nullptr);
  Backend* const backends[] = {&npu};
  Environment environment;
  environment.kernels = allKernels();
  environment.backends = Span<Backend* const>(backends);
  environment.external = &others;
  environment.maxInstructions = 1000;
  constexpr size_t kMost = 1 << 20;
  for (uint32_t index = 0; index < program.methodCount() && index < 4; ++index) {
    Requirements needs;
    CARINA_RT_TRY(Method::require(program, index, environment, &needs));
    if (needs.methodBytes > kMost || needs.temporaryBytes > kMost || needs.poolCount > 8) return Status{};
    const Memory64 methodMemory = aligned(needs.methodBytes), temporary = aligned(needs.temporaryBytes);
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
    CARINA_RT_TRY(method.execute());
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
