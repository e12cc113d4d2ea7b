// SPDX-License-Identifier: Apache-2.0
// Loading and executing a method.
#include "carina/method.hpp"

#include <string.h>

#include <new>

#include "format/pte_schema.hpp"
#include "plan_reader.hpp"

namespace carina::rt {

namespace schema = carina::format::pte;
using schema::InstructionType;

namespace {

/// Looks in the program first, then in the application's data.
class ProgramData final : public NamedData {
 public:
  ProgramData(const Program& program, const NamedData* external) : program_(program), external_(external) {}
  Status find(Text key, Bytes* bytes) const override {
    const Status own = program_.namedData(key, bytes);
    return own.ok() || external_ == nullptr || own.code != Code::NotFound ? own : external_->find(key, bytes);
  }

 private:
  const Program& program_;
  const NamedData* external_;
};

Backend* findBackend(const Environment& environment, Text id) {
  for (Backend* backend : environment.backends) {
    if (equals(id, backend->id())) return backend;
  }
  return nullptr;
}

/// Method memory consists of blocks in the order in which load() allocates them, padded to this alignment.
constexpr size_t kMemoryAlignment = 8;
constexpr size_t kTemporaryAlignment = 16;

bool addBlock(size_t bytes, size_t* total) {
  size_t rounded = 0;
  return alignUp(bytes, kMemoryAlignment, &rounded) && !__builtin_add_overflow(*total, rounded, total);
}

}  // namespace

Status Method::require(const Program& program, uint32_t index, const Environment& environment,
                       Requirements* needs) {
  *needs = Requirements();
  program.walker_.beginWork(program.size());
  PlanReader reader;
  CARINA_RT_TRY(reader.open(program, index));
  needs->poolCount = reader.poolCount();
  size_t bytes = 0;
  bool fits = addBlock(size_t{reader.values.count} * sizeof(Value), &bytes) &&
              addBlock(size_t{reader.operators.count} * sizeof(KernelFunction), &bytes) &&
              addBlock(size_t{reader.delegates.count} * sizeof(Delegate), &bytes);
  size_t largestState = 0;
  for (uint32_t i = 0; i < reader.delegates.count && fits; ++i) {
    const Backend* backend = findBackend(environment, reader.delegateId(i));
    if (backend == nullptr) continue;
    fits = addBlock(backend->stateBytes(), &bytes);
    if (backend->stateBytes() > largestState) largestState = backend->stateBytes();
  }
  if (!fits) return failure(Code::OutOfMemory, "the method needs more memory than can be addressed");
  needs->methodBytes = bytes;
  // Delegates derive their needs from their blobs; their states are discarded here.
  constexpr size_t kStateLimit = 256;
  alignas(16) uint8_t state[kStateLimit];
  if (largestState > kStateLimit)
    return failure(Code::Unsupported, "a backend keeps more than 256 bytes of state per delegate");
  const ProgramData named(program, environment.external);
  for (uint32_t i = 0; i < reader.values.count; ++i) {
    Value unused;
    CARINA_RT_TRY(reader.value(i, {}, &named, &unused));
  }
  for (uint32_t i = 0; i < reader.delegates.count; ++i) {
    Backend* backend = findBackend(environment, reader.delegateId(i));
    if (backend == nullptr) continue;
    Bytes blob;
    size_t temporary = 0;
    CARINA_RT_TRY(reader.delegateBlob(i, &blob));
    CARINA_RT_TRY(backend->prepare(blob, named, state, &temporary));
    if (temporary > needs->temporaryBytes) needs->temporaryBytes = temporary;
  }
  return Status{};
}

Status Method::poolBytes(const Program& program, uint32_t index, uint32_t pool, size_t* bytes) {
  PlanReader reader;
  CARINA_RT_TRY(reader.openPools(program, index));
  if (pool >= reader.poolCount()) return failure(Code::InvalidArgument, "a pool index is out of range", pool);
  return reader.checkPool(pool, bytes);
}

Status Method::load(const Program& program, uint32_t index, const Environment& environment,
                    const Memory& memory) {
  program_ = nullptr;
  program.walker_.beginWork(program.size());
  PlanReader reader;
  CARINA_RT_TRY(reader.open(program, index));
  if (!isAligned(memory.method.data, kMemoryAlignment) ||
      !isAligned(memory.temporary.data, kTemporaryAlignment)) {
    return failure(Code::Misaligned, "method memory must be aligned to 8, temporary memory to 16");
  }
  if (memory.pools.size < reader.poolCount()) {
    return failure(Code::OutOfMemory, "the program plans more memory pools than were given",
                   reader.poolCount());
  }
  for (uint32_t i = 0; i < reader.poolCount(); ++i) {
    if (memory.pools[i].size < reader.poolBytes(i))
      return failure(Code::OutOfMemory, "a memory pool is too small", i);
    if (!isAligned(memory.pools[i].data, kTemporaryAlignment))
      return failure(Code::Misaligned, "a memory pool is not aligned to 16", i);
  }
  Arena arena(memory.method);
  values_ = Span<Value>(
      static_cast<Value*>(arena.allocate(size_t{reader.values.count} * sizeof(Value), kMemoryAlignment)),
      reader.values.count);
  operators_ =
      Span<KernelFunction>(static_cast<KernelFunction*>(arena.allocate(
                               size_t{reader.operators.count} * sizeof(KernelFunction), kMemoryAlignment)),
                           reader.operators.count);
  delegates_ = Span<Delegate>(static_cast<Delegate*>(arena.allocate(
                                  size_t{reader.delegates.count} * sizeof(Delegate), kMemoryAlignment)),
                              reader.delegates.count);
  const bool short1 = values_.data == nullptr && values_.size != 0;
  const bool short2 = operators_.data == nullptr && operators_.size != 0;
  const bool short3 = delegates_.data == nullptr && delegates_.size != 0;
  if (short1 || short2 || short3)
    return failure(Code::OutOfMemory, "method memory is smaller than Method::require() says");

  const Span<MutableBytes> pools(memory.pools.data, reader.poolCount());
  const ProgramData named(program, environment.external);
  for (uint32_t i = 0; i < reader.values.count; ++i) {
    new (&values_[i]) Value{};
    CARINA_RT_TRY(reader.value(i, pools, &named, &values_[i]));
  }
  for (uint32_t i = 0; i < reader.operators.count; ++i) {
    const FbTable entry = reader.plan.tableAt(reader.operators, i);
    const Text name = entry.string(schema::kOperatorName);
    operators_[i] = findKernel(environment.kernels, name, entry.string(schema::kOperatorOverload));
    if (operators_[i] == nullptr)
      return failureNamed(Code::MissingKernel, "the kernel table has no kernel for an operator", name.data,
                          name.size, i);
  }
  for (uint32_t i = 0; i < reader.delegates.count; ++i) {
    const Text id = reader.delegateId(i);
    Backend* backend = findBackend(environment, id);
    if (backend == nullptr)
      return failureNamed(Code::MissingBackend, "no backend of this name was given", id.data, id.size, i);
    void* state = arena.allocate(backend->stateBytes(), kMemoryAlignment);
    if (state == nullptr)
      return failure(Code::OutOfMemory, "method memory is smaller than Method::require() says");
    Bytes blob;
    size_t temporary = 0;
    CARINA_RT_TRY(reader.delegateBlob(i, &blob));
    CARINA_RT_TRY(backend->prepare(blob, named, state, &temporary));
    if (temporary > memory.temporary.size)
      return failure(Code::OutOfMemory, "temporary memory is smaller than a delegate's scratch", i);
    new (&delegates_[i]) Delegate{backend, state};
  }
  CARINA_RT_TRY(checkDelegateCalls(reader.plan, reader.chains));
  inputs_ = reader.inputs;
  outputs_ = reader.outputs;
  chains_ = reader.chains;
  operatorTable_ = reader.operators;
  delegateTable_ = reader.delegates;
  plan_ = reader.plan;
  environment_ = environment;
  temporary_ = Arena(memory.temporary);
  program_ = &program;
  return Status{};
}

Status Method::checkDelegateCalls(const FbTable& plan, const FbVector& chains) const {
  for (uint32_t c = 0; c < chains.count; ++c) {
    const FbVector instructions = plan.tableAt(chains, c).tables(schema::kChainInstructions);
    for (uint32_t i = 0; i < instructions.count; ++i) {
      const FbTable entry = plan.tableAt(instructions, i);
      if (static_cast<InstructionType>(entry.u8(schema::kInstructionType)) != InstructionType::Delegate)
        continue;
      const FbTable call = entry.table(schema::kInstructionContent);
      const Delegate& delegate = delegates_[call.u32(schema::kCallTarget)];
      CARINA_RT_TRY(delegate.backend->checkCall(delegate.state, values_, argumentsOf(call)));
    }
  }
  return Status{};
}

Span<const int32_t> Method::argumentsOf(const FbTable& call) {
  const FbVector arguments = call.vector(schema::kCallArguments, 4);
  return Span<const int32_t>(reinterpret_cast<const int32_t*>(arguments.data), arguments.count);
}

Status Method::inputTensor(uint32_t index, Tensor** tensor) {
  if (program_ == nullptr) return failure(Code::InvalidState, "no method is loaded");
  if (index >= inputCount()) return failure(Code::InvalidArgument, "an input index is out of range", index);
  Value& value = values_[static_cast<size_t>(inputs_.i32(index))];
  if (value.kind != ValueKind::Tensor)
    return failure(Code::TypeMismatch, "the input is no tensor: its value was fixed by the export", index);
  if (value.tensor.constant)
    return failure(Code::InvalidArgument, "the input is a constant of the program", index);
  *tensor = &value.tensor;
  return Status{};
}

Status Method::setInput(uint32_t index, Bytes bytes) {
  Tensor* tensor = nullptr;
  CARINA_RT_TRY(inputTensor(index, &tensor));
  if (bytes.size != tensor->bytes)
    return failure(Code::ShapeMismatch, "an input has another number of bytes than the program's", index);
  if (!tensor->planned) {
    tensor->data = const_cast<uint8_t*>(bytes.data);
  } else if (bytes.size != 0) {
    memmove(tensor->data, bytes.data, bytes.size);
  }
  return Status{};
}

Status Method::inputMemory(uint32_t index, MutableBytes* bytes) {
  Tensor* tensor = nullptr;
  CARINA_RT_TRY(inputTensor(index, &tensor));
  if (tensor->data == nullptr && tensor->bytes != 0)
    return failure(Code::InvalidState, "an input has no memory: setInput() brings it", index);
  *bytes = MutableBytes(tensor->as<uint8_t>(), tensor->bytes);
  return Status{};
}

Status Method::bindOutput(uint32_t index, MutableBytes bytes) {
  if (program_ == nullptr) return failure(Code::InvalidState, "no method is loaded");
  if (index >= outputCount()) return failure(Code::InvalidArgument, "an output index is out of range", index);
  Value& value = values_[static_cast<size_t>(outputs_.i32(index))];
  if (value.kind != ValueKind::Tensor) return failure(Code::TypeMismatch, "the output is no tensor", index);
  if (value.tensor.planned || value.tensor.constant)
    return failure(Code::InvalidState, "the output has memory of its own", index);
  if (bytes.size < value.tensor.bytes)
    return failure(Code::ShapeMismatch, "the memory for an output is too small", index);
  value.tensor.data = bytes.data;
  return Status{};
}

void Method::report(EventKind kind, uint32_t instruction, Text name) {
  if (environment_.profiler != nullptr) environment_.profiler->event(kind, instruction, name);
}

Status Method::execute() {
  if (program_ == nullptr) return failure(Code::InvalidState, "no method is loaded");
  for (uint32_t i = 0; i < inputCount(); ++i) {
    const Value& value = input(i);
    if (value.kind == ValueKind::Tensor && value.tensor.data == nullptr && value.tensor.bytes != 0) {
      return failure(Code::InvalidState, "an input was not set", i);
    }
  }
  steps_ = 0;
  temporary_ = Arena(MutableBytes(temporary_.base(), temporary_.capacity()));
  report(EventKind::ExecuteBegin, 0, plan_.string(schema::kPlanName));
  for (uint32_t i = 0; i < chains_.count; ++i) CARINA_RT_TRY(runChain(plan_.tableAt(chains_, i)));
  report(EventKind::ExecuteEnd, 0, plan_.string(schema::kPlanName));
  return Status{};
}

Status Method::runChain(const FbTable& chain) {
  const FbVector instructions = chain.tables(schema::kChainInstructions);
  uint32_t next = 0;
  while (next < instructions.count) {
    if (++steps_ > environment_.maxInstructions)
      return failure(Code::InstructionLimit, "the program does not come to an end", next);
    const uint32_t at = next++;
    const FbTable entry = plan_.tableAt(instructions, at);
    const FbTable call = entry.table(schema::kInstructionContent);
    switch (static_cast<InstructionType>(entry.u8(schema::kInstructionType))) {
      case InstructionType::Kernel:
        CARINA_RT_TRY(runKernel(call, at));
        break;
      case InstructionType::Delegate:
        CARINA_RT_TRY(runDelegate(call, at));
        break;
      case InstructionType::Move:
        values_[call.u32(schema::kMoveTo)] = values_[call.u32(schema::kMoveFrom)];
        break;
      case InstructionType::JumpFalse: {
        bool jump = false;
        CARINA_RT_TRY(isFalse(values_[call.u32(schema::kJumpCondition)], at, &jump));
        if (jump) next = call.u32(schema::kJumpDestination);
        break;
      }
      default:
        break;  // Free: nothing here is allocated at run time
    }
    temporary_.reset();
  }
  return Status{};
}

Status Method::isFalse(const Value& value, uint32_t instruction, bool* result) const {
  if (value.kind == ValueKind::Bool) {
    *result = !value.boolean;
    return Status{};
  }
  if (value.kind != ValueKind::Tensor || value.tensor.type != ScalarType::Bool ||
      (value.tensor.data == nullptr && value.tensor.bytes != 0)) {
    return failure(Code::TypeMismatch, "a jump condition is no boolean", instruction);
  }
  const uint8_t* elements = value.tensor.as<const uint8_t>();
  for (size_t i = 0; i < value.tensor.bytes; ++i) *result = *result || elements[i] == 0;
  return Status{};
}

Status Method::runKernel(const FbTable& call, uint32_t instruction) {
  const Span<const int32_t> arguments = argumentsOf(call);
  const uint32_t op = call.u32(schema::kCallTarget);
  const Text name = plan_.tableAt(operatorTable_, op).string(schema::kOperatorName);
  report(EventKind::KernelBegin, instruction, name);
  KernelContext context(values_, arguments.data, static_cast<uint32_t>(arguments.size), &temporary_);
  Status status = operators_[op](context);
  if (!status.ok() && status.name == nullptr) {
    status.name = name.data;
    status.nameLength = static_cast<uint8_t>(name.size < 255 ? name.size : 255);
  }
  report(EventKind::KernelEnd, instruction, name);
  return status;
}

Status Method::runDelegate(const FbTable& call, uint32_t instruction) {
  const uint32_t index = call.u32(schema::kCallTarget);
  const Delegate& delegate = delegates_[index];
  const Text name = plan_.tableAt(delegateTable_, index).string(schema::kDelegateId);
  report(EventKind::DelegateBegin, instruction, name);
  const Status status = delegate.backend->execute(delegate.state, values_, argumentsOf(call), temporary_);
  report(EventKind::DelegateEnd, instruction, name);
  return status;
}

}  // namespace carina::rt
