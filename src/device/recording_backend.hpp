// SPDX-License-Identifier: Apache-2.0
// Wraps the Ethos-U delegate on the host and records what each call did.
#pragma once

#include <map>
#include <vector>

#include "carina/ethosu_delegate.hpp"
#include "device/host_device.hpp"
#include "device/run.hpp"
#include "pte/delegate_blob.hpp"

namespace carina::device {

/// A Carina tensor with the bytes of a runtime tensor, rearranged to row-major order.
Result<Tensor> copyOut(const rt::Tensor& tensor);
/// The reverse; types and shapes must be equal, and the runtime tensor must have memory.
void copyIn(const Tensor& tensor, const rt::Tensor& into);
/// Locations of a delegate's inputs: the memory that holds data before its commands run.
std::vector<npu::InitializedRange> inputRanges(const pte::DelegateBlob& blob);
/// Type and logical shape of a runtime tensor.
Result<Runner::Io> describe(const rt::Tensor& tensor);

class RecordingBackend final : public rt::Backend {
 public:
  RecordingBackend(rt::EthosUDelegate& delegate, rt::EthosUDriver& driver, HostDevice& device, bool keepIo)
      : delegate_(delegate), driver_(driver), device_(device), keepIo_(keepIo) {}
  ~RecordingBackend() = default;

  const char* id() const override { return delegate_.id(); }
  size_t stateBytes() const override { return delegate_.stateBytes(); }
  rt::Status prepare(rt::Bytes blob, const rt::NamedData& named, void* state,
                     size_t* temporaryBytes) override;
  rt::Status checkCall(const void* state, rt::Span<const rt::Value> values,
                       rt::Span<const int32_t> arguments) const override {
    return delegate_.checkCall(state, values, arguments);
  }
  rt::Status execute(void* state, rt::Span<rt::Value> values, rt::Span<const int32_t> arguments,
                     rt::Arena& temporary) override;

  std::vector<DelegateRun>& runs() { return runs_; }
  /// Sets the index of the next instruction.
  void setInstruction(uint32_t instruction) { instruction_ = instruction; }

 private:
  rt::EthosUDelegate& delegate_;
  rt::EthosUDriver& driver_;
  HostDevice& device_;
  bool keepIo_;
  uint32_t instruction_ = 0;
  std::map<const void*, std::vector<npu::InitializedRange>> inputs_;  // by delegate state, for the checker
  std::vector<DelegateRun> runs_;
};

}  // namespace carina::device
