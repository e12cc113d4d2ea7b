// SPDX-License-Identifier: Apache-2.0
// Compilation at load: the NPU parts of a program that are TOSA graphs become command streams for the NPU
// that is there.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "compiler/compiler.hpp"
#include "pte/program.hpp"

namespace carina::delivery {

struct LoadOptions {
  /// Empty: what the program names, then the target's defaults.
  std::string target, systemConfig, memoryMode;
  std::filesystem::path configFile;            // describes further ones of the latter; may be empty
  std::optional<std::filesystem::path> cache;  // folder of compiled parts; none: nothing is kept
  /// Graphs that compute in floating point stay as they are, for who interprets them (device::TosaBackend).
  bool keepFloats = false;
};

/// What became of a program's TOSA parts.
struct AtLoad {
  std::string target;    // that they were compiled for
  size_t parts = 0;      // different ones: equal graphs are compiled once
  size_t fromCache = 0;  // of those
  size_t inFloat = 0;    // graphs that stay as they are
  double seconds = 0;    // wall time
  std::vector<Diagnostic>
      warnings;  // entries of the cache that had to be made anew, a folder that is read-only
};

/// Whether a program has parts that travel as TOSA graphs.
bool hasTosaParts(const pte::Program& program);

/// Puts an Ethos-U part in the place of every TOSA part. The same program, machine and build give the same
/// bytes, from the cache or not. Fails when no NPU is named, or the NPU cannot run a graph: the diagnostic
/// names method, part and operator. Without TOSA parts nothing happens.
Result<AtLoad> compileTosaParts(pte::Program& program, const LoadOptions& options);

}  // namespace carina::delivery
