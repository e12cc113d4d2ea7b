// SPDX-License-Identifier: Apache-2.0
// From schedules to the words of a command stream, with a record of each operation.
#pragma once

#include <string>
#include <vector>

#include "compiler/compiler.hpp"
#include "compiler/emit/emit.hpp"
#include "npu/isa/stream.hpp"

namespace carina::compiler {

/// The NPU's command register QSIZE limits a stream to this size.
inline constexpr size_t kMaxCommandBytes = size_t{16} << 20;

/// Writes one stream, schedule after schedule, with branches between them.
class ProgramWriter {
 public:
  /// Operations, values and the commands go to `program`.
  ProgramWriter(const npu::Machine& machine, const Options& options, CompiledProgram& program)
      : options_(options), program_(program), writer_(*machine.target), timeline_(machine) {}

  /// Adds all operations of a schedule. `graph`: the one that its values belong to (ValuePlacement::graph).
  Status add(const Schedule& schedule, size_t graph = 0);
  /// Adds a copy of bytes of the arena, or of a constant to the arena. `name`: of the destination.
  Status add(const npu::DmaOperation& copy, std::string name);
  /// Waits until everything before is complete.
  Status addWaits();

  /// A position in the stream that branches go to.
  using Label = size_t;
  Label newLabel();
  /// Puts the label here. Nothing is known about registers after it.
  void place(Label label);
  /// Branches to the label, always or if the result flag is set.
  Status branch(Label label, bool ifResult);

  /// The latest operation of the stream, if it writes one element and so sets the result flag; else null.
  const npu::KernelOperation* flagSetter() const;
  uint32_t position() const { return writer_.position(); }
  /// Cycles of everything so far, counting each operation once.
  npu::Cycles cycles() const { return timeline_.total(); }

  /// Adds STOP; the stream is complete.
  Status finish();

 private:
  Status addOperation(const EmittedOperation& emitted, const Schedule* schedule, size_t graph);
  void recordKernel(const npu::KernelOperation& op, const EmittedOperation& emitted, const Schedule& schedule,
                    size_t graph, OperationRecord& record);

  const Options& options_;
  CompiledProgram& program_;
  npu::StreamWriter writer_;
  npu::Timeline timeline_;
  npu::Operation latest_ = npu::Stop{};
  std::vector<uint32_t> labels_;                      // byte offsets
  std::vector<std::pair<uint32_t, Label>> branches_;  // byte offset of the command
};

/// Where an input or output of a compiled graph is.
IoTensor ioTensor(const Schedule& schedule, const ir::Value* npuValue, const ir::Value* tosaValue);

/// Adds the buffers and steps of a schedule of the graph `npu`, which was derived from `tosa`.
void addMemoryRecords(const Schedule& schedule, const ir::Graph& npu, const ir::Graph& tosa,
                      CompiledProgram& program);

}  // namespace carina::compiler
