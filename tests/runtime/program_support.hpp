// SPDX-License-Identifier: Apache-2.0
// Support for loading programs in tests: aligned memory, and a backend that adds one to every byte.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "carina/kernels.hpp"
#include "carina/runtime.hpp"

namespace carina::rt {

/// Bytes at a 64-byte aligned address, allocated exactly so that sanitizers detect overruns.
class Aligned {
 public:
  explicit Aligned(size_t size, size_t shift = 0)
      : size_(size), shift_(shift), data_(new (std::align_val_t{64}) uint8_t[size + shift]) {
    std::memset(data_.get(), 0, size + shift);
  }
  explicit Aligned(const std::string& bytes, size_t shift = 0) : Aligned(bytes.size(), shift) {
    std::memcpy(data(), bytes.data(), bytes.size());
  }
  uint8_t* data() const { return data_.get() + shift_; }
  MutableBytes span() const { return {data(), size_}; }

 private:
  struct Free {
    void operator()(uint8_t* data) const { ::operator delete[](data, std::align_val_t{64}); }
  };
  size_t size_, shift_;
  std::unique_ptr<uint8_t[], Free> data_;
};

/// Output byte = input byte + 1, for one input and one output; needs 32 temporary bytes.
class PlusOne final : public Backend {
 public:
  ~PlusOne() = default;
  const char* id() const override { return "PlusOne"; }
  size_t stateBytes() const override { return 24; }
  Status prepare(Bytes blob, const NamedData&, void* state, size_t* temporaryBytes) override {
    std::memset(state, 0x5a, stateBytes());
    if (blob.size != 0 && blob[0] == 0xff) return failure(Code::CorruptDelegate, "refused");
    *temporaryBytes = 32;
    return Status{};
  }
  Status checkCall(const void*, Span<const Value>, Span<const int32_t> arguments) const override {
    return arguments.size == 2 ? Status{} : failure(Code::ShapeMismatch, "one input and one output");
  }
  Status execute(void* state, Span<Value> values, Span<const int32_t> arguments, Arena& temporary) override {
    ++calls;
    if (*static_cast<uint8_t*>(state) != 0x5a || temporary.allocate(32, 16) == nullptr)
      return failure(Code::InvalidState, "state or memory lost");
    const Tensor& in = values[static_cast<size_t>(arguments[0])].tensor;
    const Tensor& out = values[static_cast<size_t>(arguments[1])].tensor;
    for (size_t i = 0; i < in.bytes; ++i)
      out.as<uint8_t>()[i] = static_cast<uint8_t>(in.as<uint8_t>()[i] + 1);
    return Status{};
  }
  int calls = 0;
};

/// A loaded program with exactly the memory that it requires.
class Loaded {
 public:
  explicit Loaded(const std::string& bytes) : file_(bytes) {
    loadStatus = Program::load(file_.span(), &program);
  }

  /// Loads the method with that many bytes less than required of method memory, temporary memory or pools.
  Status open(uint32_t index = 0, size_t lessMethod = 0, size_t lessTemporary = 0, size_t lessPool = 0) {
    if (!loadStatus.ok()) return loadStatus;
    if (withPlusOne) backends_.push_back(&plusOne);
    if (other != nullptr) backends_.push_back(other);
    environment.kernels = allKernels();
    environment.backends = Span<Backend* const>(backends_.data(), backends_.size());
    CARINA_RT_TRY(Method::require(program, index, environment, &needs));
    if (needs.methodBytes > kLimit || needs.temporaryBytes > kLimit)
      return failure(Code::OutOfMemory, "more than a test gives");
    method_ = std::make_unique<Aligned>(needs.methodBytes - lessMethod);
    temporary_ = std::make_unique<Aligned>(needs.temporaryBytes - lessTemporary);
    for (uint32_t i = 0; i < needs.poolCount; ++i) {
      size_t bytes = 0;
      CARINA_RT_TRY(Method::poolBytes(program, index, i, &bytes));
      if (bytes > kLimit) return failure(Code::OutOfMemory, "more than a test gives");
      pools_.push_back(std::make_unique<Aligned>(bytes - lessPool));
      spans_.push_back(pools_.back()->span());
    }
    return method.load(
        program, index, environment,
        {method_->span(), Span<MutableBytes>(spans_.data(), spans_.size()), temporary_->span()});
  }

  static constexpr size_t kLimit = 1 << 20;
  Program program;
  Method method;
  Status loadStatus;
  Environment environment;
  Requirements needs;
  PlusOne plusOne;
  bool withPlusOne = true;
  Backend* other = nullptr;

 private:
  Aligned file_;
  std::vector<Backend*> backends_;
  std::unique_ptr<Aligned> method_, temporary_;
  std::vector<std::unique_ptr<Aligned>> pools_;
  std::vector<MutableBytes> spans_;
};

inline std::string textOf(const Status& status) {
  char text[256];
  statusText(status, text, sizeof(text));
  return text;
}

}  // namespace carina::rt
