// SPDX-License-Identifier: Apache-2.0
// The "EthosNBackend" delegate on the host: reads the NPU part of a program and runs it on a device.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "carina/backend.hpp"
#include "device/run.hpp"
#include "ethosn/driver/model_device.hpp"
#include "ethosn/stream/program_blob.hpp"

namespace carina::device {

class EthosNBackend final : public rt::Backend {
 public:
  /// `hazards`: look for accesses that no wait orders. `keepIo`: keep inputs and outputs. Runs take their
  /// steps from `budget`, which must outlive the backend.
  EthosNBackend(bool hazards, bool keepIo, WorkBudget& budget)
      : hazards_(hazards), keepIo_(keepIo), budget_(budget) {}
  ~EthosNBackend() = default;

  const char* id() const override { return ethosn::kProgramBackend.data(); }
  size_t stateBytes() const override { return sizeof(uint64_t); }
  rt::Status prepare(rt::Bytes blob, const rt::NamedData& named, void* state,
                     size_t* temporaryBytes) override;
  rt::Status checkCall(const void* state, rt::Span<const rt::Value> values,
                       rt::Span<const int32_t> arguments) const override;
  rt::Status execute(void* state, rt::Span<rt::Value> values, rt::Span<const int32_t> arguments,
                     rt::Arena& temporary) override;

  std::vector<EthosNDelegateRun>& runs() { return runs_; }
  /// Sets the index of the next instruction.
  void setInstruction(uint32_t instruction) { instruction_ = instruction; }
  /// Details of the last failure, which a status cannot hold; empty if there was none.
  const std::optional<Error>& why() const { return why_; }

 private:
  struct Part {
    const uint8_t* bytes = nullptr;  // of the blob in the program
    ethosn::ProgramBlob blob;
    std::unique_ptr<ethosn::ModelDevice> device;
    std::unique_ptr<ethosn::DeviceNetwork> network;
    std::vector<std::unique_ptr<ethosn::DeviceBuffer>> inputs, outputs;
  };
  Result<std::unique_ptr<Part>> open(ByteSpan bytes) const;
  static Status makeBuffers(Part& part);
  Status run(Part& part, rt::Span<rt::Value> values, rt::Span<const int32_t> arguments);
  const Part& partOf(const void* state) const;

  bool hazards_, keepIo_;
  WorkBudget& budget_;
  std::vector<std::unique_ptr<Part>> parts_;
  std::vector<EthosNDelegateRun> runs_;
  uint32_t instruction_ = 0;
  std::optional<Error> why_;
};

/// The target of a program's first Ethos-N delegate; empty if there is none.
std::string ethosNTarget(const pte::Program& program);

}  // namespace carina::device
