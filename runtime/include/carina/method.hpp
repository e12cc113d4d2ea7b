// SPDX-License-Identifier: Apache-2.0
// A method of a program, loaded into caller-provided memory: set inputs, execute, read outputs.
#pragma once

#include "carina/backend.hpp"
#include "carina/kernel.hpp"
#include "carina/program.hpp"

namespace carina::rt {

/// Profiling events. `name` is the operator or delegate, `instruction` its index.
enum class EventKind : uint8_t {
  KernelBegin,
  KernelEnd,
  DelegateBegin,
  DelegateEnd,
  ExecuteBegin,
  ExecuteEnd
};
class Profiler {
 public:
  virtual void event(EventKind kind, uint32_t instruction, Text name) = 0;

 protected:
  ~Profiler() = default;
};

/// Dependencies of a method; all of them must outlive it.
struct Environment {
  KernelTable kernels;
  Span<Backend* const> backends;
  const NamedData* external = nullptr;  // named data beyond the program's own
  Profiler* profiler = nullptr;
  uint32_t maxInstructions = 10000000;  // per execution; ends endless loops
};

/// Exact memory requirements of a method: with these sizes, loading does not fail for lack of memory. Pools
/// and temporary memory are aligned to 16, method memory to 8.
struct Requirements {
  size_t methodBytes = 0;
  size_t temporaryBytes = 0;  // largest single instruction: delegate scratch
  uint32_t poolCount = 0;     // planned pools, see Method::poolBytes()
};

struct Memory {
  MutableBytes method;
  Span<MutableBytes> pools;  // pool i is memory id i + 1 of the program
  MutableBytes temporary;
};

class Method {
 public:
  /// Verifies method `index` of `program` and reports the memory that load() needs. Needs the backends, not
  /// the kernels, of `environment`; delegates of unknown backends count as needing nothing.
  static Status require(const Program& program, uint32_t index, const Environment& environment,
                        Requirements* needs);
  /// Size of planned pool `pool` (0-based) of method `index`.
  static Status poolBytes(const Program& program, uint32_t index, uint32_t pool, size_t* bytes);
  /// Requirements::methodBytes from counts, for memory that is laid out when an image is built. `states` is
  /// the sum of Backend::stateBytes() over the delegates, each rounded up to 8.
  static constexpr size_t memoryBytes(size_t values, size_t operators, size_t delegates, size_t states) {
    return rounded(values * sizeof(Value)) + rounded(operators * sizeof(KernelFunction)) +
           rounded(delegates * sizeof(Delegate)) + states;
  }

  /// Verifies, resolves kernels and backends, builds the values. `program` outlives the method.
  Status load(const Program& program, uint32_t index, const Environment& environment, const Memory& memory);

  uint32_t inputCount() const { return inputs_.count; }
  uint32_t outputCount() const { return outputs_.count; }
  /// Inputs and outputs in program order. `index` is in range.
  const Value& input(uint32_t index) const { return values_[static_cast<size_t>(inputs_.i32(index))]; }
  const Value& output(uint32_t index) const { return values_[static_cast<size_t>(outputs_.i32(index))]; }

  /// Copies `bytes` into the input's planned memory. If it has none, the input points to `bytes`, which must
  /// stay valid until execute() returns. The size must be exactly that of the tensor.
  Status setInput(uint32_t index, Bytes bytes);
  /// Memory of an input, to be filled in place: its planned memory, or the bytes given to setInput().
  Status inputMemory(uint32_t index, MutableBytes* bytes);
  /// Sets the memory of an output without planned memory; Code::InvalidState for planned ones.
  Status bindOutput(uint32_t index, MutableBytes bytes);

  Status execute();

  Span<Value> values() { return values_; }
  /// Temporary bytes actually used by the last execute().
  size_t temporaryHighest() const { return temporary_.highest(); }

 private:
  struct Delegate {
    Backend* backend;
    void* state;
  };
  static constexpr size_t rounded(size_t bytes) { return (bytes + 7) & ~size_t{7}; }

  Status inputTensor(uint32_t index, Tensor** tensor);
  Status checkDelegateCalls(const FbTable& plan, const FbVector& chains) const;
  static Span<const int32_t> argumentsOf(const FbTable& call);
  Status runChain(const FbTable& chain);
  Status runKernel(const FbTable& call, uint32_t instruction);
  Status runDelegate(const FbTable& call, uint32_t instruction);
  Status isFalse(const Value& value, uint32_t instruction, bool* result) const;
  void report(EventKind kind, uint32_t instruction, Text name);

  const Program* program_ = nullptr;
  Environment environment_;
  FbTable plan_;
  Span<Value> values_;
  Span<KernelFunction> operators_;
  Span<Delegate> delegates_;
  FbVector inputs_, outputs_, chains_, operatorTable_, delegateTable_;
  Arena temporary_;
  uint32_t steps_ = 0;
};

}  // namespace carina::rt
