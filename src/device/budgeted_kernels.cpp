// SPDX-License-Identifier: Apache-2.0
#include "device/budgeted_kernels.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.hpp"
#include "cpu/cost.hpp"

namespace carina::device {
namespace {

/// Minimum number of Cortex-M55 cycles (without Helium) whose work a host core does in a nanosecond.
constexpr double kCyclesPerStep = 20;
constexpr double kCall = 300;  // steps of any call, including its bookkeeping

/// The pending kernel call of this thread.
struct Pending {
  WorkBudget* budget = nullptr;
  int64_t steps = 0;
  std::string_view name;
};
thread_local Pending pending;

constexpr size_t kMaxKernels = 512;

rt::Status runWithinBudget(size_t kernel, rt::KernelContext& context) {
  const Pending now = std::exchange(pending, {});
  if (now.budget != nullptr && !now.budget->take(now.steps, now.name))
    return rt::failure(rt::Code::InstructionLimit, "the program asks for too much work");
  return rt::allKernels()[kernel].run(context);
}

template <size_t kKernel>
rt::Status budgeted(rt::KernelContext& context) {
  return runWithinBudget(kKernel, context);
}

template <size_t... kKernels>
constexpr std::array<rt::KernelFunction, sizeof...(kKernels)> functions(std::index_sequence<kKernels...>) {
  return {budgeted<kKernels>...};
}

}  // namespace

rt::KernelTable BudgetedKernels::table() {
  static const std::vector<rt::Kernel> kernels = [] {
    constexpr auto kFunctions = functions(std::make_index_sequence<kMaxKernels>());
    const rt::KernelTable all = rt::allKernels();
    CARINA_CHECK(all.size <= kMaxKernels, "as many functions as kernels");
    std::vector<rt::Kernel> result;
    for (size_t i = 0; i < all.size; ++i) result.push_back({all[i].name, kFunctions[i]});
    return result;
  }();
  return {kernels.data(), kernels.size()};
}

void BudgetedKernels::list(const pte::Method& method) {
  for (const pte::Chain& chain : method.chains) {
    steps_.resize(std::max(steps_.size(), chain.instructions.size()), 0);
    for (size_t i = 0; i < chain.instructions.size(); ++i) {
      const auto* call = std::get_if<pte::KernelCall>(&chain.instructions[i]);
      if (call == nullptr) continue;
      const double cycles = cpu::costOf(cpu::workOf(method, *call), cpu::Core::M55).cycles;
      const double steps = std::min(kCall + cycles / kCyclesPerStep, 4.6e18);
      steps_[i] = std::max(steps_[i], static_cast<int64_t>(steps));
    }
  }
}

void BudgetedKernels::begin(uint32_t instruction, rt::Text name) {
  pending = {&budget_, instruction < steps_.size() ? steps_[instruction] : 0,
             std::string_view(name.data, name.size)};
}

}  // namespace carina::device
