// SPDX-License-Identifier: Apache-2.0
// What ExecuTorch's loader requires of a program, checked on the value.
#include <algorithm>
#include <set>

#include "format/pte_schema.hpp"
#include "pte/program.hpp"

namespace carina::pte {
namespace {

namespace schema = carina::format::pte;

class MethodVerifier {
 public:
  MethodVerifier(const Program& program, const Method& method) : program_(program), method_(method) {}

  Status run() {
    if (method_.name.empty()) return fail(Code::InvalidProgram, "a method has no name");
    if (method_.pools.empty() || method_.pools[0] != 0)
      return fail(Code::InvalidProgram, "the first memory pool is reserved and must be 0");
    for (size_t i = 0; i < method_.pools.size(); ++i) {
      if (method_.pools[i] < 0)
        return fail(Code::InvalidProgram, "memory pool {} has {} bytes", i, method_.pools[i]);
    }
    for (size_t i = 0; i < method_.values.size(); ++i) {
      CARINA_RETURN_IF_ERROR(named(checkValue(static_cast<int32_t>(i)), "value", i));
    }
    CARINA_RETURN_IF_ERROR(checkIndices(method_.inputs, "input"));
    CARINA_RETURN_IF_ERROR(checkIndices(method_.outputs, "output"));
    for (const Operator& op : method_.operators) {
      if (op.name.empty() || op.str().size() > schema::kMaxKernelName)
        return fail(Code::InvalidProgram, "operator name \"{}\" is empty or longer than 99 characters",
                    op.str());
    }
    for (const Delegate& delegate : method_.delegates) {
      if (delegate.id.empty()) return fail(Code::InvalidProgram, "a delegate has no backend name");
    }
    if (method_.chains.empty()) return fail(Code::InvalidProgram, "the method has no chain of instructions");
    for (const Chain& chain : method_.chains) {
      for (size_t i = 0; i < chain.instructions.size(); ++i) {
        CARINA_RETURN_IF_ERROR(named(checkInstruction(chain, chain.instructions[i]), "instruction", i));
      }
    }
    return {};
  }

 private:
  static Status named(Status status, const char* what, size_t i) {
    if (status.ok()) return status;
    return std::move(status).error().at(fmt::format("{} {}", what, i));
  }

  bool isValue(int64_t i) const { return i >= 0 && i < static_cast<int64_t>(method_.values.size()); }
  Status checkIndices(const std::vector<int32_t>& indices, const char* what) const {
    for (int32_t i : indices) {
      if (!isValue(i))
        return fail(Code::InvalidProgram, "{} names value {}, but there are {}", what, i,
                    method_.values.size());
    }
    return {};
  }
  Status checkTensors(const std::vector<int32_t>& items, int32_t self, bool optional) const {
    for (int32_t item : items) {
      if (optional && item == -1) continue;
      if (item < 0 || item >= self ||
          !std::holds_alternative<Tensor>(method_.values[static_cast<size_t>(item)])) {
        return fail(Code::InvalidProgram, "a tensor list names value {}, which is not an earlier tensor",
                    item);
      }
    }
    return {};
  }

  Status checkValue(int32_t i) const {
    const Value& value = method_.values[static_cast<size_t>(i)];
    if (const auto* tensor = std::get_if<Tensor>(&value)) return checkTensor(*tensor);
    if (const auto* list = std::get_if<TensorList>(&value)) return checkTensors(list->items, i, false);
    if (const auto* list = std::get_if<OptionalTensorList>(&value)) return checkTensors(list->items, i, true);
    if (const auto* list = std::get_if<IntList>(&value)) {
      for (int64_t item : list->items) {
        if (!isValue(item) || !std::holds_alternative<int64_t>(method_.values[static_cast<size_t>(item)])) {
          return fail(Code::InvalidProgram, "an integer list names value {}, which is not an integer", item);
        }
      }
    }
    return {};
  }

  Status checkTensor(const Tensor& tensor) const {
    const auto bytes = tensorBytes(tensor);
    if (!bytes)
      return fail(Code::InvalidProgram,
                  "tensor {} has negative or too large sizes, or an unknown element type", tensor.str());
    if (tensor.sizes.size() > schema::kMaxRank)
      return fail(Code::InvalidProgram, "a tensor has {} dimensions, more than 16", tensor.sizes.size());
    std::vector<uint8_t> sorted = tensor.dimOrder;
    std::sort(sorted.begin(), sorted.end());
    bool permutation = sorted.size() == tensor.sizes.size();
    for (size_t d = 0; permutation && d < sorted.size(); ++d) permutation = sorted[d] == d;
    if (!permutation)
      return fail(Code::InvalidProgram,
                  "the dimension order of tensor {} is not a permutation of its dimensions", tensor.str());
    if (tensor.dynamism == ShapeDynamism::DynamicUnbound)
      return fail(Code::InvalidProgram, "tensor {} has an unbounded shape", tensor.str());
    const bool external = tensor.extra && tensor.extra->external;
    if (external && tensor.extra->name.empty())
      return fail(Code::InvalidProgram, "tensor {} has its data in another file, but no name", tensor.str());
    if (tensor.dataIndex != 0 && !external) {
      const auto& stored = tensor.allocation ? program_.mutableData : program_.constants;
      if (tensor.dataIndex >= stored.size())
        return fail(Code::InvalidProgram, "tensor {} names stored data {}, but there are {}", tensor.str(),
                    tensor.dataIndex, stored.size());
      if (*bytes > static_cast<int64_t>(stored[tensor.dataIndex].size())) {
        return fail(Code::InvalidProgram, "tensor {} needs {} bytes, but its stored data has {}",
                    tensor.str(), *bytes, stored[tensor.dataIndex].size());
      }
    }
    if (!tensor.allocation) return {};
    const Allocation& place = *tensor.allocation;
    if (place.memoryId == 0 || place.memoryId >= method_.pools.size())
      return fail(Code::InvalidProgram, "tensor {} is in memory pool {}, which does not exist", tensor.str(),
                  place.memoryId);
    const auto pool = static_cast<uint64_t>(method_.pools[place.memoryId]);
    if (place.offset > pool || static_cast<uint64_t>(*bytes) > pool - place.offset) {
      return fail(Code::InvalidProgram,
                  "tensor {} at offset {} reaches beyond the {} bytes of memory pool {}", tensor.str(),
                  place.offset, pool, place.memoryId);
    }
    if (place.offset % static_cast<uint64_t>(scalarTypeSize(tensor.type)) != 0) {
      return fail(Code::InvalidProgram, "tensor {} at offset {} is not aligned to its elements", tensor.str(),
                  place.offset);
    }
    return {};
  }

  Status checkInstruction(const Chain& chain, const Instruction& instruction) const {
    if (const auto* kernel = std::get_if<KernelCall>(&instruction)) {
      if (kernel->op < 0 || kernel->op >= static_cast<int64_t>(method_.operators.size()))
        return fail(Code::InvalidProgram, "calls operator {}, but there are {}", kernel->op,
                    method_.operators.size());
      return checkIndices(kernel->arguments, "argument");
    }
    if (const auto* call = std::get_if<DelegateCall>(&instruction)) {
      if (call->delegate < 0 || call->delegate >= static_cast<int64_t>(method_.delegates.size()))
        return fail(Code::InvalidProgram, "calls delegate {}, but there are {}", call->delegate,
                    method_.delegates.size());
      return checkIndices(call->arguments, "argument");
    }
    if (const auto* move = std::get_if<MoveCall>(&instruction))
      return checkIndices({move->from, move->to}, "move");
    if (const auto* jump = std::get_if<JumpFalseCall>(&instruction)) {
      if (jump->destination < 0 || jump->destination > static_cast<int64_t>(chain.instructions.size()))
        return fail(Code::InvalidProgram, "jumps to instruction {} of {}", jump->destination,
                    chain.instructions.size());
      return checkIndices({jump->condition}, "condition");
    }
    return checkIndices({std::get<FreeCall>(instruction).value}, "free");
  }

  const Program& program_;
  const Method& method_;
};

}  // namespace

Status verifyProgram(const Program& program) {
  if (program.methods.empty()) return fail(Code::InvalidProgram, "the program has no methods");
  if (program.constants.empty() || !program.constants[0].empty())
    return fail(Code::InvalidProgram, "constant 0 is reserved and must be empty");
  if (!program.mutableData.empty() && !program.mutableData[0].empty())
    return fail(Code::InvalidProgram, "initial value 0 is reserved and must be empty");
  std::set<std::string> names;
  for (const Method& method : program.methods) {
    if (!names.insert(method.name).second)
      return fail(Code::InvalidProgram, "two methods are named {}", method.name);
    auto status = MethodVerifier(program, method).run();
    if (status.ok()) continue;
    const std::string place = status.error().diagnostics().front().place;
    Diagnostic diagnostic = status.error().diagnostics().front();
    diagnostic.place = place.empty() ? fmt::format("method {}", method.name)
                                     : fmt::format("method {}, {}", method.name, place);
    return Error(std::move(diagnostic));
  }
  return {};
}

}  // namespace carina::pte
