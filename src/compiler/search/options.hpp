// SPDX-License-Identifier: Apache-2.0
// Options of the compiler.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace carina::compiler {

class KnownWeights;

/// Performance: fewest cycles; cascades only if the arena would not fit otherwise. Size: the smallest arena.
enum class Optimize : uint8_t { Performance, Size };

struct Options {
  int64_t arenaLimit = 0;  // limit on arena bytes, 0: what the memory system offers
  int64_t cacheLimit = 0;  // limit on bytes in a dedicated mode's cache, 0: what the mode offers
  Optimize optimize = Optimize::Performance;
  /// Search effort: 1 (few memory limits are tried, weights are encoded quickly), 2, or 3 (finer limits, the
  /// best few schedules are completed and timed, weights are encoded as compactly as possible). The result is
  /// deterministic at every effort.
  int effort = 2;
  /// Weights that other programs hold: they are read in the same order where that costs little, so that they
  /// can be stored once. The weights of this program are added to them. Null: there are no other programs.
  KnownWeights* known = nullptr;
  /// Maps may take up to a quarter more memory in the layout that operations read in long bursts; and the
  /// last readers of a map run earlier if that frees it (pass_order.hpp). A search for little memory tries
  /// both.
  bool padsBricks = true, freesMapsEarly = false;
  bool records = true;  // fill CompiledProgram::operations
  /// Called with a stage's name ("npu", "schedule", "operations") and a function that returns its text, for
  /// --dump-after.
  std::function<void(std::string_view, const std::function<std::string()>&)> dump;
};

}  // namespace carina::compiler
