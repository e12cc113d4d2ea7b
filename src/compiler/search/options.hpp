// SPDX-License-Identifier: Apache-2.0
// What a user may ask of the compiler.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace carina::compiler {

class KnownWeights;

/// Performance: fewest cycles; cascades only where the arena would not fit otherwise. Size: the smallest
/// arena.
enum class Optimize : uint8_t { Performance, Size };

struct Options {
  int64_t arenaLimit = 0;  // bytes that the arena may take, 0: what the memory system offers
  int64_t cacheLimit = 0;  // bytes that the cache of a dedicated mode may take, 0: what the mode offers
  Optimize optimize = Optimize::Performance;
  /// How much time the search may take: 1 (few limits on memory are tried, weights are coded quickly),
  /// 2, or 3 (finer limits, the best few schedules are completed and timed, weights are coded as short as
  /// possible). Each always gives the same program.
  int effort = 2;
  /// Weights that programs beside this one hold: where it costs little, they are read in the same order, so
  /// that they can be stored once. The weights of this program are added to them. Null: it is alone.
  KnownWeights* known = nullptr;
  bool records = true;  // fill CompiledProgram::operations
  /// Called with a stage's name ("npu", "schedule", "operations") and a function that gives its text, for
  /// --dump-after.
  std::function<void(std::string_view, const std::function<std::string()>&)> dump;
};

}  // namespace carina::compiler
