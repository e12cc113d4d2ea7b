// SPDX-License-Identifier: Apache-2.0
// Builds one method of a program: typed values, kernel and delegate calls in execution order, memory planned
// at the end. For fully, partly and non-delegated programs alike.
#pragma once

#include <map>
#include <span>

#include "pte/memory_plan.hpp"
#include "pte/program.hpp"

namespace carina::pte {

/// Index of a value in its method.
using ValueId = int32_t;

/// Affine quantization of one tensor: real = (q - zeroPoint) * scale.
struct QuantParams {
  double scale = 1.0;  // a float32 value, widened
  int64_t zeroPoint = 0, min = -128, max = 127;
  ScalarType type = ScalarType::Int8;
};

/// Which kernels convert between float and integer: `quantized_decomposed::*` or, as ExecuTorch's Arm scripts
/// write it, `cortex_m::*` (int8 and int16 only).
enum class QuantKernels : uint8_t { QuantizedDecomposed, CortexM };

/// Memory of state that persists between calls: pool kMemoryId, with the same bytes in every method that has
/// a variable of the same name.
class StatePool {
 public:
  static constexpr uint32_t kMemoryId = 2;

  /// `program` must outlive the pool; it receives the initial contents.
  explicit StatePool(Program& program) : program_(program) {}

  /// The tensor of a variable, row-major. Fails if another method has a variable of this name with another
  /// type, shape or initial contents.
  Result<Tensor> variable(const std::string& name, ScalarType type, std::vector<int32_t> sizes,
                          ByteSpan initial);
  /// Sets the size of the pool in every method of the program.
  void finish();

 private:
  Program& program_;
  std::map<std::string, Tensor> variables_;
  int64_t bytes_ = 0;
};

class MethodBuilder {
 public:
  /// `program` must outlive the builder; it receives the constants.
  explicit MethodBuilder(Program& program, std::string name = "forward") : program_(program) {
    method_.name = std::move(name);
  }

  /// Tensors. Row-major unless `dimOrder` says otherwise. Activations and inputs get planned memory in
  /// finish().
  ValueId input(ScalarType type, std::vector<int32_t> sizes, std::vector<uint8_t> dimOrder = {});
  ValueId activation(ScalarType type, std::vector<int32_t> sizes, std::vector<uint8_t> dimOrder = {});
  /// A variable of StatePool.
  ValueId state(Tensor variable) { return add(std::move(variable)); }
  ValueId constant(ScalarType type, std::vector<int32_t> sizes, ByteSpan bytes);  // equal bytes are shared
  /// Another name for the bytes of `of`, with another shape of the same size.
  ValueId view(ValueId of, std::vector<int32_t> sizes);

  /// Scalars; every call creates a separate value, as kernels expect.
  ValueId integer(int64_t value);
  ValueId real(double value);
  ValueId boolean(bool value);
  ValueId null();
  ValueId text(std::string value);
  ValueId integers(std::span<const int64_t> values);
  ValueId reals(std::span<const double> values);
  ValueId tensors(std::span<const ValueId> values);
  ValueId optionalTensors(std::span<const ValueId> values);  // -1: absent

  /// `op` is "namespace::name.overload"; `arguments` as in its out-variant schema, `out` last: the repeated
  /// return value is added here.
  void kernel(std::string_view op, std::vector<ValueId> arguments);
  /// The same with any number of outputs after `arguments`: several are repeated as a list.
  void kernel(std::string_view op, std::vector<ValueId> arguments, std::span<const ValueId> outputs);
  void delegate(Delegate delegate, std::span<const ValueId> inputs, std::span<const ValueId> outputs);
  /// float32 -> integer activation, and back. Return the new value.
  ValueId quantize(ValueId real, const QuantParams& params, QuantKernels kernels);
  ValueId dequantize(ValueId integer, const QuantParams& params, QuantKernels kernels);
  /// Same elements in another type (int64 <-> int32 at program boundaries), or as a copy.
  ValueId convert(ValueId from, ScalarType type);

  /// Overwrites `to` with the contents of `from`, a tensor of the same shape, converted to the type of `to`.
  void copyInto(ValueId to, ValueId from);

  /// Control flow. Instructions are numbered from 0.
  int32_t position() const;
  /// Jumps forward if `condition` (a bool tensor or boolean()) is false; land() sets the target. Returns the
  /// jump.
  int32_t jumpIfFalse(ValueId condition);
  /// Makes the jump go to the next instruction.
  void land(int32_t jump);
  /// Jumps back to the instruction `first`. Values created since then are local to an iteration of this loop:
  /// they must be written before they are read.
  void jumpBack(int32_t first);
  /// The same while `done`, a bool tensor, is false.
  void jumpBack(int32_t first, ValueId done);
  /// Places `value`, an activation of the same size that owns its memory, where `at` is.
  void placeAt(ValueId value, ValueId at);
  /// Whether the value has memory of its own that finish() plans: not a constant, input, state or view.
  bool ownsMemory(ValueId value) const;

  void output(ValueId value) { method_.outputs.push_back(value); }
  const Tensor& tensor(ValueId id) const;
  /// The value whose bytes a view shares, through all views; `id` itself if it is not a view.
  ValueId storage(ValueId id) const;

  /// Plans memory and appends the method to the program.
  Status finish(const MemoryPlanOptions& options = {});

 private:
  ValueId add(Value value);

  Program& program_;
  Method method_;
  std::map<ValueId, ValueId> aliases_;    // view -> whose bytes it shares
  std::vector<int64_t> creationIndices_;  // for each value, the instructions before its creation
};

}  // namespace carina::pte
