// SPDX-License-Identifier: Apache-2.0
#include "delivery/shared_weights.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "base/file.hpp"

namespace carina::delivery {
namespace {

/// Whether TOSA accepts any tensor for this operand: weights and biases, rows that are looked up.
bool mayBeInput(const ir::Use& use) {
  const std::string_view op = use.node->opName();
  if (op == "tosa.GATHER") return use.operand == 0;
  return (op == "tosa.CONV2D" || op == "tosa.CONV3D" || op == "tosa.DEPTHWISE_CONV2D" ||
          op == "tosa.TRANSPOSE_CONV2D") &&
         (use.operand == 1 || use.operand == 2);
}

bool canBeShared(const ir::Value& constant) {
  const DType dtype = constant.dtype();
  return (dtype == DType::Int8 || dtype == DType::Int16 || dtype == DType::Int32) &&
         static_cast<int64_t>(constant.constant().bytes().size()) >= kMinSharedBytes &&
         std::all_of(constant.uses().begin(), constant.uses().end(), mayBeInput);
}

/// The program's constants by their bytes; adds those that are missing.
class ProgramConstants {
 public:
  explicit ProgramConstants(pte::Program& program) : program_(program) {
    for (size_t i = 1; i < program.constants.size(); ++i) enter(i);
  }
  uint32_t indexOf(ByteSpan bytes) {
    const auto known = indices_.find(asText(bytes));
    if (known != indices_.end()) return known->second;
    program_.constants.emplace_back(bytes.begin(), bytes.end());
    enter(program_.constants.size() - 1);
    return static_cast<uint32_t>(program_.constants.size() - 1);
  }

 private:
  void enter(size_t i) { indices_.emplace(asText(program_.constants[i]), static_cast<uint32_t>(i)); }

  pte::Program& program_;
  std::map<std::string_view, uint32_t> indices_;  // into the program's constants, which do not move
};

pte::Tensor describe(const ir::Value& constant, uint32_t index) {
  pte::Tensor tensor;
  tensor.type = pte::fromDType(constant.dtype());
  for (const int64_t size : constant.shape()) {
    tensor.dimOrder.push_back(static_cast<uint8_t>(tensor.sizes.size()));
    tensor.sizes.push_back(static_cast<int32_t>(size));
  }
  tensor.dataIndex = index;
  return tensor;
}

template <typename Visit>
void forEachCall(pte::Method& method, size_t delegate, const Visit& visit) {
  for (pte::Chain& chain : method.chains) {
    for (pte::Instruction& instruction : chain.instructions) {
      auto* call = std::get_if<pte::DelegateCall>(&instruction);
      if (call && call->delegate == static_cast<int32_t>(delegate)) visit(*call);
    }
  }
}

/// Which values the inputs, outputs, instructions or lists of the method refer to.
std::vector<bool> usedValues(const pte::Method& method) {
  std::vector<bool> used(method.values.size());
  const auto use = [&](const std::vector<int32_t>& ids) {
    for (const int32_t id : ids) {
      if (id >= 0 && static_cast<size_t>(id) < used.size()) used[static_cast<size_t>(id)] = true;
    }
  };
  use(method.inputs);
  use(method.outputs);
  for (const pte::Chain& chain : method.chains) {
    for (const pte::Instruction& instruction : chain.instructions) {
      if (const auto* kernel = std::get_if<pte::KernelCall>(&instruction)) use(kernel->arguments);
      if (const auto* call = std::get_if<pte::DelegateCall>(&instruction)) use(call->arguments);
      if (const auto* move = std::get_if<pte::MoveCall>(&instruction)) use({move->from, move->to});
      if (const auto* jump = std::get_if<pte::JumpFalseCall>(&instruction)) use({jump->condition});
      if (const auto* freed = std::get_if<pte::FreeCall>(&instruction)) use({freed->value});
    }
  }
  for (const pte::Value& value : method.values) {
    if (const auto* list = std::get_if<pte::TensorList>(&value)) use(list->items);
    if (const auto* list = std::get_if<pte::OptionalTensorList>(&value)) use(list->items);
  }
  return used;
}

}  // namespace

void shareConstantsOfGraphs(pte::Program& program, std::span<ir::Graph> graphs) {
  std::map<std::string_view, std::set<size_t>> users;
  for (size_t g = 0; g < graphs.size(); ++g) {
    for (const auto& constant : graphs[g].constants()) {
      if (canBeShared(*constant)) users[asText(constant->constant().bytes())].insert(g);
    }
  }
  ProgramConstants constants(program);
  size_t g = 0;
  for (pte::Method& method : program.methods) {
    for (size_t d = 0; d < method.delegates.size() && g < graphs.size(); ++d, ++g) {
      ir::Graph& graph = graphs[g];
      std::vector<ir::Value*> shared;
      for (const auto& constant : graph.constants()) {
        if (canBeShared(*constant) && users.at(asText(constant->constant().bytes())).size() > 1)
          shared.push_back(constant.get());
      }
      const auto inputs = static_cast<ptrdiff_t>(graph.inputs().size());
      std::vector<int32_t> arguments;
      for (ir::Value* constant : shared) {
        arguments.push_back(static_cast<int32_t>(method.values.size()));
        method.values.emplace_back(describe(*constant, constants.indexOf(constant->constant().bytes())));
        graph.replaceAllUses(constant, graph.addInput(constant->type, constant->name));
      }
      forEachCall(method, d, [&](pte::DelegateCall& call) {
        call.arguments.insert(call.arguments.begin() + inputs, arguments.begin(), arguments.end());
      });
    }
  }
  for (ir::Graph& graph : graphs) graph.eraseUnusedConstants();
}

Result<bool> takeSharedConstants(const pte::Program& program, pte::Method& method, size_t index,
                                 ir::Graph& graph) {
  std::vector<std::optional<uint32_t>> given(graph.inputs().size());
  bool first = true, fits = true;
  forEachCall(method, index, [&](const pte::DelegateCall& call) {
    for (size_t i = 0; i < given.size() && fits; ++i) {
      fits = i < call.arguments.size() && call.arguments[i] >= 0 &&
             static_cast<size_t>(call.arguments[i]) < method.values.size();
      if (!fits) return;
      const auto* tensor = std::get_if<pte::Tensor>(&method.values[static_cast<size_t>(call.arguments[i])]);
      const bool constant = tensor && !tensor->allocation && !tensor->extra && tensor->dataIndex > 0 &&
                            tensor->dataIndex < program.constants.size();
      const std::optional<uint32_t> data = constant ? std::optional(tensor->dataIndex) : std::nullopt;
      if (first) given[i] = data;
      if (given[i] != data) given[i] = std::nullopt;
    }
    first = false;
  });
  if (!fits || first) return false;  // the runtime reports what is wrong with the call
  if (std::none_of(given.begin(), given.end(), [](const auto& data) { return data.has_value(); }))
    return false;
  for (size_t i = given.size(); i-- > 0;) {
    if (!given[i]) continue;
    ir::Value* const input = graph.inputs()[i];
    const ByteSpan bytes(program.constants[*given[i]]);
    const int64_t wanted = input->numBytes();
    if (static_cast<int64_t>(bytes.size()) < wanted) {
      return fail(Code::Damaged, "argument {} has {} bytes, but the graph takes {}", i, bytes.size(), wanted);
    }
    Tensor tensor = Tensor::uninitialized(input->dtype(), input->shape());
    std::copy_n(bytes.begin(), wanted, tensor.mutableBytes().begin());
    graph.replaceAllUses(input, graph.addConstant(std::move(tensor), input->name));
    graph.removeInput(i);
  }
  forEachCall(method, index, [&](pte::DelegateCall& call) {
    std::vector<int32_t> left;
    for (size_t i = 0; i < call.arguments.size(); ++i) {
      if (i >= given.size() || !given[i]) left.push_back(call.arguments[i]);
    }
    call.arguments = std::move(left);
  });
  return true;
}

void dropUnusedConstants(pte::Program& program) {
  std::vector<bool> used(program.constants.size());
  for (pte::Method& method : program.methods) {
    const std::vector<bool> values = usedValues(method);
    for (size_t i = 0; i < values.size(); ++i) {
      const auto* tensor = std::get_if<pte::Tensor>(&method.values[i]);
      if (!tensor || tensor->allocation || tensor->dataIndex == 0 || tensor->dataIndex >= used.size())
        continue;
      if (values[i]) {
        used[tensor->dataIndex] = true;
      } else {
        method.values[i] = pte::None{};
      }
    }
  }
  for (size_t i = 1; i < used.size(); ++i) {
    if (!used[i]) program.constants[i].clear();
  }
}

}  // namespace carina::delivery
