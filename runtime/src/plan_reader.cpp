// SPDX-License-Identifier: Apache-2.0
// Verification of one method: the requirements of ExecuTorch's loader, and of memory safety.
#include "plan_reader.hpp"

#include <string.h>

#include "format/delegate_blob.hpp"
#include "format/pte_schema.hpp"

namespace carina::rt {

namespace schema = carina::format::pte;
using schema::InstructionType;
using schema::ValueType;

namespace {

/// Bytes of a tensor of these sizes; false if a size is negative or the result exceeds PTRDIFF_MAX.
bool tensorBytes(const int32_t* sizes, uint32_t rank, size_t element, size_t* bytes) {
  size_t total = element;
  for (uint32_t d = 0; d < rank; ++d) {
    if (sizes[d] < 0 || __builtin_mul_overflow(total, static_cast<size_t>(sizes[d]), &total)) return false;
  }
  *bytes = total;
  return total <= PTRDIFF_MAX;
}

// Bytes that count as one step (Walker::charge()): of blobs, which backends read in prepare(), of initial
// values, which are copied, and of names, which are compared.
constexpr size_t kBlobBytesPerStep = 4;
constexpr size_t kStoredBytesPerStep = 16;
constexpr size_t kNameBytesPerStep = 16;

bool isPermutation(const uint8_t* order, uint32_t rank) {
  uint32_t seen = 0;
  for (uint32_t d = 0; d < rank; ++d) {
    if (order[d] >= rank || (seen & (1u << order[d])) != 0) return false;
    seen |= 1u << order[d];
  }
  return true;
}

}  // namespace

Status PlanReader::charge(size_t steps) const {
  program_->walker_.charge(steps);
  return program_->walker_.status();
}

Status PlanReader::chargeSearch(size_t nameBytes) const {
  return charge(program_->namedDataCount() * (1 + nameBytes / kNameBytesPerStep));
}

/// Two blocks of a blob may be named data.
Status PlanReader::chargeBlob(const Bytes& blob) const {
  CARINA_RT_TRY(chargeSearch(2 * carina::format::blob::kExternalKeyBytes));
  return charge(blob.size / kBlobBytesPerStep);
}

Status PlanReader::openPools(const Program& program, uint32_t index) {
  program_ = &program;
  if (index >= program.methodCount()) return failure(Code::NotFound, "a method index is out of range", index);
  plan = program.plan(index);
  pools = plan.vector(schema::kPlanBufferSizes, 8);
  return program.walker_.status();
}

Status PlanReader::open(const Program& program, uint32_t index) {
  CARINA_RT_TRY(openPools(program, index));
  values = plan.tables(schema::kPlanValues);
  inputs = plan.vector(schema::kPlanInputs, 4);
  outputs = plan.vector(schema::kPlanOutputs, 4);
  chains = plan.tables(schema::kPlanChains);
  operators = plan.tables(schema::kPlanOperators);
  delegates = plan.tables(schema::kPlanDelegates);
  const Text name = plan.string(schema::kPlanName);
  CARINA_RT_TRY(program.walker_.status());
  if (name.data == nullptr || !values.present() || !inputs.present() || !outputs.present() ||
      !chains.present() || !pools.present()) {
    return failure(Code::Corrupt, "a method lacks a required part", plan.position());
  }
  CARINA_RT_TRY(charge(pools.count));
  for (uint32_t i = 0; i < poolCount(); ++i) {
    size_t unused = 0;
    CARINA_RT_TRY(checkPool(i, &unused));
  }
  for (uint32_t i = 0; i < values.count; ++i) {
    Value unused;
    CARINA_RT_TRY(value(i, {}, nullptr, &unused));
  }
  CARINA_RT_TRY(checkIndices(inputs, values.count, "an input is not a value of the method"));
  CARINA_RT_TRY(checkIndices(outputs, values.count, "an output is not a value of the method"));
  for (uint32_t i = 0; i < inputs.count; ++i) {
    if (isConstant(static_cast<uint32_t>(inputs.i32(i))))
      return failure(Code::Corrupt, "an input of the method is a constant of the program", i);
  }
  for (uint32_t i = 0; i < operators.count; ++i) {
    CARINA_RT_TRY(charge(1));
    const FbTable entry = plan.tableAt(operators, i);
    const size_t base = entry.string(schema::kOperatorName).size;
    const size_t overload = entry.string(schema::kOperatorOverload).size;
    CARINA_RT_TRY(program.walker_.status());
    if (base == 0 || base + overload > schema::kMaxKernelName)
      return failure(Code::Corrupt, "an operator name is empty or too long", i);
  }
  for (uint32_t i = 0; i < delegates.count; ++i) {
    Bytes blob;
    CARINA_RT_TRY(delegateBlob(i, &blob));
  }
  for (uint32_t i = 0; i < chains.count; ++i) CARINA_RT_TRY(checkInstructions(plan.tableAt(chains, i)));
  return program.walker_.status();
}

Status PlanReader::checkPool(uint32_t pool, size_t* bytes) const {
  const int64_t stated = pools.i64(pool + 1);
  if (stated < 0 || static_cast<uint64_t>(stated) > PTRDIFF_MAX)
    return failure(Code::Corrupt, "the size of a memory pool is out of range", pool + 1);
  *bytes = static_cast<size_t>(stated);
  return Status{};
}

Status PlanReader::checkIndices(const FbVector& indices, uint32_t limit, const char* what) const {
  CARINA_RT_TRY(charge(indices.count));
  for (uint32_t i = 0; i < indices.count; ++i) {
    if (static_cast<uint32_t>(indices.i32(i)) >= limit) return failure(Code::Corrupt, what, i);
  }
  return Status{};
}

Status PlanReader::checkInstructions(const FbTable& chain) const {
  const FbVector instructions = chain.tables(schema::kChainInstructions);
  CARINA_RT_TRY(program_->walker_.status());
  if (!instructions.present())
    return failure(Code::Corrupt, "a chain has no instructions vector", chain.position());
  for (uint32_t i = 0; i < instructions.count; ++i) {
    CARINA_RT_TRY(charge(1));
    const FbTable entry = plan.tableAt(instructions, i);
    const FbTable call = entry.table(schema::kInstructionContent);
    const InstructionType type = static_cast<InstructionType>(entry.u8(schema::kInstructionType));
    CARINA_RT_TRY(program_->walker_.status());
    if (!call.present()) return failure(Code::Corrupt, "an instruction has no content", i);
    const uint32_t first = call.u32(0);
    const uint32_t second = call.u32(1);
    switch (type) {
      case InstructionType::Kernel:
      case InstructionType::Delegate: {
        const bool kernel = type == InstructionType::Kernel;
        const FbVector arguments = call.vector(schema::kCallArguments, 4);
        CARINA_RT_TRY(program_->walker_.status());
        if (first >= (kernel ? operators.count : delegates.count)) {
          return failure(Code::Corrupt, "an instruction calls an operator or delegate that does not exist",
                         i);
        }
        CARINA_RT_TRY(checkIndices(arguments, values.count, "an argument is not a value of the method"));
        break;
      }
      case InstructionType::Move:
        if (first >= values.count || second >= values.count)
          return failure(Code::Corrupt, "a move names no value", i);
        CARINA_RT_TRY(checkMove(second, i));
        break;
      case InstructionType::JumpFalse:
        if (first >= values.count || second > instructions.count)
          return failure(Code::Corrupt, "a jump leads outside its chain", i);
        break;
      case InstructionType::Free:
        if (first >= values.count) return failure(Code::Corrupt, "a free names no value", i);
        break;
      default:
        return failure(Code::Unsupported, "an instruction of unknown type", i);
    }
  }
  return Status{};
}

/// A move replaces a value. The caller has been told the method's inputs and outputs and their addresses, and
/// that constants are not written, so a move must not replace any of these.
Status PlanReader::checkMove(uint32_t to, uint32_t instruction) const {
  CARINA_RT_TRY(charge(size_t{inputs.count} + outputs.count));
  if (contains(inputs, to))
    return failure(Code::Unsupported, "a move overwrites an input of the method", instruction);
  if (contains(outputs, to))
    return failure(Code::Unsupported, "a move overwrites an output of the method; return a copy of the value",
                   instruction);
  if (isConstant(to)) return failure(Code::Corrupt, "a move overwrites a constant", instruction);
  return program_->walker_.status();
}

bool PlanReader::contains(const FbVector& indices, uint32_t value) const {
  for (uint32_t i = 0; i < indices.count; ++i) {
    if (static_cast<uint32_t>(indices.i32(i)) == value) return true;
  }
  return false;
}

bool PlanReader::isConstant(uint32_t i) const {
  const FbTable entry = plan.tableAt(values, i);
  if (entry.u8(schema::kValueType) != static_cast<uint8_t>(ValueType::Tensor)) return false;
  const FbTable content = entry.table(schema::kValueContent);
  if (content.table(schema::kTensorAllocation).present()) return false;
  return content.u32(schema::kTensorData) != 0 ||
         content.table(schema::kTensorExtra).u8(schema::kExtraLocation) != 0;
}

bool PlanReader::isTensor(int64_t value) const {
  return value >= 0 && value < static_cast<int64_t>(values.count) &&
         plan.tableAt(values, static_cast<uint32_t>(value)).u8(schema::kValueType) ==
             static_cast<uint8_t>(ValueType::Tensor);
}

Status PlanReader::list(const FbTable& content, uint32_t i, uint32_t width, List* list) const {
  const FbVector items = content.vector(schema::kContent, width);
  CARINA_RT_TRY(program_->walker_.status());
  if (!items.present()) return failure(Code::Corrupt, "a list value has no items vector", i);
  *list = List{items.data, items.count};
  // Strings and lists of bytes are not inspected.
  return width == 1 ? Status{} : charge(items.count);
}

Status PlanReader::value(uint32_t i, Span<MutableBytes> memory, const NamedData* named, Value* value) const {
  const FbTable entry = plan.tableAt(values, i);
  const FbTable content = entry.table(schema::kValueContent);
  const ValueType type = static_cast<ValueType>(entry.u8(schema::kValueType));
  CARINA_RT_TRY(charge(1));
  *value = Value{};
  if (type == ValueType::None || type == ValueType::Null) return Status{};
  if (!content.present()) return failure(Code::Corrupt, "a value has no content", i);
  switch (type) {
    case ValueType::Int:
      value->kind = ValueKind::Int;
      value->integer = content.i64(schema::kContent);
      break;
    case ValueType::Bool:
      value->kind = ValueKind::Bool;
      value->boolean = content.u8(schema::kContent) != 0;
      break;
    case ValueType::Double:
      value->kind = ValueKind::Double;
      value->real = content.f64(schema::kContent);
      break;
    case ValueType::Tensor:
      value->kind = ValueKind::Tensor;
      value->tensor = Tensor{};
      return tensor(content, i, memory, named, &value->tensor);
    case ValueType::String:
      value->kind = ValueKind::String;
      return list(content, i, 1, &value->list);
    case ValueType::BoolList:
      value->kind = ValueKind::BoolList;
      return list(content, i, 1, &value->list);
    case ValueType::DoubleList:
      value->kind = ValueKind::DoubleList;
      return list(content, i, 8, &value->list);
    case ValueType::IntList: {
      value->kind = ValueKind::IntList;
      CARINA_RT_TRY(list(content, i, 8, &value->list));
      const FbVector items = content.vector(schema::kContent, 8);
      for (uint32_t k = 0; k < items.count; ++k) {
        const int64_t item = items.i64(k);
        if (item < 0 || item >= static_cast<int64_t>(values.count) ||
            plan.tableAt(values, static_cast<uint32_t>(item)).u8(schema::kValueType) !=
                static_cast<uint8_t>(ValueType::Int)) {
          return failure(Code::Corrupt, "an integer list names a value that is no integer", i);
        }
      }
      break;
    }
    case ValueType::TensorList:
    case ValueType::OptionalTensorList: {
      const bool optional = type == ValueType::OptionalTensorList;
      value->kind = optional ? ValueKind::OptionalTensorList : ValueKind::TensorList;
      CARINA_RT_TRY(list(content, i, 4, &value->list));
      const FbVector items = content.vector(schema::kContent, 4);
      for (uint32_t k = 0; k < items.count; ++k) {
        const int32_t item = items.i32(k);
        if (optional && item == -1) continue;
        if (item >= static_cast<int64_t>(i) || !isTensor(item)) {
          return failure(Code::Corrupt, "a tensor list names a value that is no earlier tensor", i);
        }
      }
      break;
    }
    default:
      return failure(Code::Unsupported, "a value of unknown type", i);
  }
  return program_->walker_.status();
}

Status PlanReader::tensor(const FbTable& content, uint32_t i, Span<MutableBytes> memory,
                          const NamedData* named, Tensor* tensor) const {
  const FbVector sizes = content.vector(schema::kTensorSizes, 4);
  const FbVector order = content.vector(schema::kTensorDimOrder, 1);
  const uint8_t device = content.table(schema::kTensorExtra).u8(schema::kExtraDeviceType);
  CARINA_RT_TRY(program_->walker_.status());
  if (device != 0) return failure(Code::Unsupported, "a tensor that lives on another device than the CPU", i);
  if (!sizes.present() || !order.present() || order.count != sizes.count || sizes.count > schema::kMaxRank ||
      !isPermutation(order.data, order.count)) {
    return failure(Code::Corrupt, "a tensor's sizes or dimension order are missing or wrong", i);
  }
  if (content.i32(schema::kTensorStorageOffset) != 0)
    return failure(Code::Unsupported, "a tensor with a storage offset", i);
  if (content.u8(schema::kTensorDynamism) != 0) {
    return failure(Code::Unsupported, "a tensor of dynamic shape; export with fixed shapes", i);
  }
  tensor->type = static_cast<ScalarType>(content.u8(schema::kTensorType));
  const size_t element = elementSize(tensor->type);
  if (element == 0) return failure(Code::Unsupported, "a tensor of an unknown element type", i);
  tensor->sizes = reinterpret_cast<const int32_t*>(sizes.data);
  tensor->dimOrder = order.data;
  tensor->rank = static_cast<uint8_t>(sizes.count);
  CARINA_RT_TRY(charge(sizes.count));
  if (!tensorBytes(tensor->sizes, tensor->rank, element, &tensor->bytes)) {
    return failure(Code::Corrupt, "a tensor's sizes are negative or too large", i);
  }
  return tensorMemory(content, i, memory, named, tensor);
}

/// Initial bytes of the tensor: from another file, the program's initial value for planned memory, or a
/// constant.
Status PlanReader::storedBytes(const FbTable& content, uint32_t i, const NamedData* named,
                               const Tensor& tensor, Bytes* stored, bool* hasStored) const {
  const FbTable extra = content.table(schema::kTensorExtra);
  const bool external = extra.u8(schema::kExtraLocation) != 0;
  const uint32_t dataIndex = content.u32(schema::kTensorData);
  CARINA_RT_TRY(program_->walker_.status());
  *hasStored = external || dataIndex != 0;
  if (external) {
    const Text key = extra.string(schema::kExtraName);
    CARINA_RT_TRY(program_->walker_.status());
    if (key.size == 0)
      return failure(Code::Corrupt, "a tensor whose data are in another file has no name", i);
    if (named == nullptr) return Status{};
    CARINA_RT_TRY(chargeSearch(key.size));
    if (!named->find(key, stored).ok())
      return failureNamed(Code::NotFound, "the data of a tensor are in another file, which was not given",
                          key.data, key.size, i);
    if (stored->size != tensor.bytes)
      return failure(Code::Corrupt, "a tensor has another size than its data in another file", i);
    return Status{};
  }
  if (dataIndex == 0) return Status{};
  CARINA_RT_TRY(content.table(schema::kTensorAllocation).present() ? program_->mutableData(dataIndex, stored)
                                                                   : program_->constant(dataIndex, stored));
  if (tensor.bytes > stored->size)
    return failure(Code::Corrupt, "a tensor is larger than its stored data", i);
  return Status{};
}

Status PlanReader::tensorMemory(const FbTable& content, uint32_t i, Span<MutableBytes> memory,
                                const NamedData* named, Tensor* tensor) const {
  const FbTable allocation = content.table(schema::kTensorAllocation);
  CARINA_RT_TRY(program_->walker_.status());
  Bytes stored;
  bool hasStored = false;
  CARINA_RT_TRY(storedBytes(content, i, named, *tensor, &stored, &hasStored));
  if (!allocation.present()) {
    if (!hasStored) return Status{};
    if (!isAligned(stored.data, elementSize(tensor->type)))
      return failure(Code::Misaligned, "a constant is not aligned to its elements", i);
    tensor->data = const_cast<uint8_t*>(stored.data);  // kernels refuse to write to constant tensors
    tensor->constant = true;
    return Status{};
  }
  const uint32_t id = allocation.u32(schema::kAllocationId);
  const uint64_t offset = allocation.u32(schema::kAllocationLow) |
                          static_cast<uint64_t>(allocation.u32(schema::kAllocationHigh)) << 32;
  CARINA_RT_TRY(program_->walker_.status());
  if (id == 0 || id >= pools.count)
    return failure(Code::Corrupt, "a tensor lies in a memory pool that does not exist", i);
  const uint64_t pool = static_cast<uint64_t>(pools.i64(id));
  if (offset > pool || tensor->bytes > pool - offset)
    return failure(Code::Corrupt, "a tensor reaches beyond its memory pool", i);
  if (offset % elementSize(tensor->type) != 0)
    return failure(Code::Misaligned, "a tensor's planned memory is not aligned to its elements", i);
  tensor->planned = true;
  if (memory.empty()) return Status{};
  tensor->data = memory[id - 1].data + static_cast<size_t>(offset);
  if (!hasStored || tensor->bytes == 0) return Status{};
  CARINA_RT_TRY(charge(tensor->bytes / kStoredBytesPerStep));
  memcpy(tensor->data, stored.data, tensor->bytes);
  return Status{};
}

Status PlanReader::delegateBlob(uint32_t i, Bytes* blob) const {
  const FbTable entry = plan.tableAt(delegates, i);
  const Text id = entry.string(schema::kDelegateId);
  const FbTable reference = entry.table(schema::kDelegateProcessed);
  const uint32_t index = reference.u32(schema::kReferenceIndex);
  const uint8_t location = reference.u8(schema::kReferenceLocation);
  CARINA_RT_TRY(program_->walker_.status());
  if (id.size == 0 || !reference.present())
    return failure(Code::Corrupt, "a delegate without name or data", i);
  if (location == schema::kLocationSegment) {
    CARINA_RT_TRY(program_->segment(index, blob));
    return chargeBlob(*blob);
  }
  if (location != schema::kLocationInline || index >= program_->inlineData_.count) {
    return failure(Code::Corrupt, "a delegate's data do not exist", i);
  }
  const FbVector data = program_->root_.tableAt(program_->inlineData_, index).vector(schema::kInlineBytes, 1);
  CARINA_RT_TRY(program_->walker_.status());
  *blob = Bytes(data.data, data.count);
  return chargeBlob(*blob);
}

}  // namespace carina::rt
