// SPDX-License-Identifier: Apache-2.0
// Compilation at load: the NPU parts of a program that are TOSA graphs are compiled to command streams for
// the NPU that is present.
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
  std::filesystem::path configFile;            // additional configurations and modes; may be empty
  std::optional<std::filesystem::path> cache;  // folder of compiled parts; none: no cache
  /// Graphs that compute in floating point are left as they are, to be interpreted (device::TosaBackend).
  bool keepFloats = false;
};

/// The result of compiling a program's TOSA parts.
struct AtLoad {
  std::string target;    // for which they were compiled
  size_t parts = 0;      // distinct ones: equal graphs are compiled once
  size_t fromCache = 0;  // of those
  size_t inFloat = 0;    // graphs that are left as they are
  double seconds = 0;    // wall time
  std::vector<Diagnostic>
      warnings;  // cache entries that had to be compiled again, a folder that is read-only
};

/// Whether a program has parts that are delivered as TOSA graphs.
bool hasTosaParts(const pte::Program& program);

/// Replaces every TOSA part by an Ethos-U part. The same program, machine and build give the same bytes,
/// whether from the cache or not. Fails if no NPU is named, or if the NPU cannot run a graph: the diagnostic
/// names method, part and operator. Does nothing if there are no TOSA parts.
Result<AtLoad> compileTosaParts(pte::Program& program, const LoadOptions& options);

}  // namespace carina::delivery
