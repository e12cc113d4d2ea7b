// SPDX-License-Identifier: Apache-2.0
#include "cpu/cost.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "aten/conv_op.hpp"
#include "aten/geometry.hpp"
#include "aten/movement.hpp"
#include "aten/operator_facts.hpp"
#include "cpu/emit.hpp"

namespace carina::cpu {
namespace {

using aten::OpId;

/// The fit for a kernel on operands of some types: cycles per unit of work, and the error, on each core.
struct CostRow {
  std::string_view kernel, types;
  std::array<std::array<float, kWorks>, kCores> cycles;
  std::array<float, kCores> error;
};
constexpr CostRow kRows[] = {
#include "cpu/kernel_costs.inc"
};

using RowsByTypes = std::map<std::string_view, const CostRow*>;
const std::map<std::string_view, RowsByTypes>& rows() {
  static const auto kByKernel = [] {
    std::map<std::string_view, RowsByTypes> made;
    for (const CostRow& row : kRows) made[row.kernel].emplace(row.types, &row);
    return made;
  }();
  return kByKernel;
}

constexpr std::array<CoreInfo, kCores> kCoreInfos{{
    {Core::M33, "cortex-m33", "Cortex-M33"},
    {Core::M55, "cortex-m55+nomve", "Cortex-M55 without Helium"},
    {Core::M55Helium, "cortex-m55", "Cortex-M55 with Helium"},
    {Core::M85, "cortex-m85+nomve", "Cortex-M85 without Helium"},
    {Core::M85Helium, "cortex-m85", "Cortex-M85 with Helium"},
}};

// For kernels that were not measured: cycles by kind, and their possible error.
constexpr double kUnmeasuredError = 1.0, kOtherTypesError = 0.5;
// For kernels that were: the smallest error reported, because other shapes and data were not measured.
constexpr double kMinError = 0.05;
constexpr int64_t kPerMac = 3, kPerMove = 4, kPerArithmetic = 8, kPerConversion = 12, kPerFunction = 80;

int64_t elementsOf(const std::vector<ir::Value*>& values) {
  int64_t most = 0;
  for (const ir::Value* value : values) most = std::max(most, value ? value->numElements() : 0);
  return most;
}

/// Multiply-accumulates of products and convolutions; 0 for other nodes.
int64_t macsOf(const ir::Node& node) {
  if (const auto conv = aten::asConvolution(&node)) {
    const int64_t outputs = conv->transposed ? conv->input->numElements() : node.result()->numElements();
    const int64_t channels = conv->transposed ? conv->outputChannels() : conv->inputChannels();
    int64_t window = channels / std::max<int64_t>(conv->groups, 1);
    for (int64_t d = 2; d < conv->weight->rank(); ++d) window *= conv->weight->dim(d);
    return outputs * window;
  }
  switch (aten::opId(&node)) {
    case OpId::Linear:
    case OpId::Mm:
    case OpId::Bmm:
    case OpId::Matmul:
      return node.result()->numElements() * node.operands()[0]->shape().back();
    case OpId::Addmm:
      return node.result()->numElements() * node.operands()[1]->shape().back();
    default:
      return 0;
  }
}

int64_t perElement(const ir::Node& node) {
  switch (aten::factsOf(node).cost) {
    case aten::CostClass::Arithmetic:
      return kPerArithmetic;
    case aten::CostClass::Function:
      return kPerFunction;
    case aten::CostClass::Conversion:
      return kPerConversion;
  }
  return kPerArithmetic;
}

/// For nodes without measurements.
int64_t guessedCycles(const ir::Node& node) {
  if (const int64_t macs = macsOf(node); macs > 0) return macs * kPerMac;
  const int64_t elements = std::max(elementsOf(node.results()), elementsOf(node.operands()));
  if (ir::isa<aten::AvgPool2d>(&node) || ir::isa<aten::MaxPool2d>(&node) ||
      ir::isa<aten::MaxPool2dWithIndices>(&node)) {
    if (const auto pool = aten::poolGeometry(node)) {
      int64_t window = 1;
      for (int64_t k : pool->kernel) window *= k;
      return node.result()->numElements() * window * kPerArithmetic;
    }
  }
  if (const auto movements = aten::movements(node); movements && *movements) {
    const aten::Movement& first = (*movements)->front();
    const bool reshape =
        (*movements)->size() == 1 && first.isReshape(node.operands()[first.operand]->shape());
    return reshape ? 0 : elementsOf(node.results()) * kPerMove;
  }
  return elements * perElement(node);
}

/// Calls of the node's kernels, on placeholders; empty if it is not in kernel form.
std::optional<std::vector<CallWork>> callsOf(const ir::Node& node) {
  pte::Program program;
  pte::MethodBuilder builder(program);
  const auto valueOf = [&](const ir::Value* value) {
    return builder.activation(pte::fromDType(value->dtype()), sizesOf(*value));
  };
  if (!emitCall(builder, node, valueOf).ok() || !builder.finish().ok()) return std::nullopt;
  std::vector<CallWork> calls;
  const pte::Method& method = program.methods.front();
  for (const pte::Instruction& instruction : method.chains.front().instructions) {
    if (const auto* call = std::get_if<pte::KernelCall>(&instruction)) calls.push_back(workOf(method, *call));
  }
  return calls;
}

}  // namespace

std::span<const CoreInfo> coreInfos() {
  return kCoreInfos;
}

const CoreInfo& coreInfo(Core core) {
  return kCoreInfos[static_cast<size_t>(core)];
}

Result<Core> findCore(std::string_view name) {
  std::vector<std::string_view> names;
  for (const CoreInfo& info : kCoreInfos) {
    if (info.name == name) return info.core;
    names.push_back(info.name);
  }
  return fail(Code::UnknownName, "unknown core '{}'", name)
      .withRemedy(fmt::format("cores: {}", fmt::join(names, ", ")));
}

Core withHelium(Core core) {
  return core == Core::M55 ? Core::M55Helium : core == Core::M85 ? Core::M85Helium : core;
}

Cost costOf(const CallWork& work, Core core) {
  const auto at = static_cast<size_t>(core);
  const auto sum = [&](const CostRow& row) {
    double cycles = 0;
    for (size_t i = 0; i < kWorks; ++i) cycles += work.counts[i] * static_cast<double>(row.cycles[at][i]);
    return cycles;
  };
  const auto kernel = rows().find(work.kernel);
  if (kernel != rows().end()) {
    const auto row = kernel->second.find(work.types);
    if (row != kernel->second.end())
      return {sum(*row->second), std::max(kMinError, static_cast<double>(row->second->error[at])), true};
    // The most expensive of the measured types.
    Cost dearest{0, kOtherTypesError, false};
    for (const auto& [types, other] : kernel->second) dearest.cycles = std::max(dearest.cycles, sum(*other));
    return dearest;
  }
  const double each = work.kernel.starts_with("cortex_m::") ? kPerConversion : kPerArithmetic;
  return {work[Work::Element] * each + work[Work::Mac] * kPerMac, kUnmeasuredError, false};
}

int64_t estimateCycles(const ir::Node& node, Core core) {
  if (!aten::isOperator(&node) || node.results().empty()) return 0;
  const auto calls = callsOf(node);
  if (!calls) return guessedCycles(node);
  double cycles = 0;
  bool measured = true;
  for (const CallWork& call : *calls) {
    const Cost cost = costOf(call, core);
    cycles += cost.cycles;
    measured = measured && cost.measured;
  }
  return measured ? std::llround(cycles) : std::max<int64_t>(std::llround(cycles), guessedCycles(node));
}

}  // namespace carina::cpu
