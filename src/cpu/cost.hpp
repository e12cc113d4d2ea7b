// SPDX-License-Identifier: Apache-2.0
// Cost of the CPU part of an inference: cycles of kernel calls and of the runtime between them, by formulas
// that scripts/fit_cpu_costs.py fits to runs on the virtual platform (kernel_costs.json).
#pragma once

#include <span>

#include "base/result.hpp"
#include "cpu/call_work.hpp"
#include "ir/graph.hpp"

namespace carina::cpu {

/// A core, and what its kernels are compiled for. `carina firmware` builds code without Helium by default;
/// --core cortex-m55 selects Helium.
enum class Core : uint8_t { M33, M55, M55Helium, M85, M85Helium };
constexpr size_t kCores = 5;

struct CoreInfo {
  Core core;
  std::string_view name;  // as in GCC: "cortex-m55+nomve"
  std::string_view text;  // "Cortex-M55 without Helium"
};
/// All of them, in the order of Core.
std::span<const CoreInfo> coreInfos();
const CoreInfo& coreInfo(Core core);
/// The error lists the known names.
Result<Core> findCore(std::string_view name);
/// The same core with vector code; the core itself if it has none.
Core withHelium(Core core);

/// Cycles, and their possible error: the largest relative difference from measurements, over shapes and over
/// data (some kernels branch on values).
struct Cost {
  double cycles = 0;
  double error = 0;      // 0.05: 5 %
  bool measured = true;  // false: the kernel was not measured on such types, a guess by its kind
};
Cost costOf(const CallWork& work, Core core);

/// Estimated cycles of one execution of a node in kernel form; for other nodes, a guess by their kind. 0 for
/// a reshape.
int64_t estimateCycles(const ir::Node& node, Core core = Core::M55);

}  // namespace carina::cpu
