// SPDX-License-Identifier: Apache-2.0
// What is known about a program or a measurement of one, in one form: totals, and per layer cycles, traffic,
// accuracy and placement. Read from a program, or from the JSON that `profile` and `compile --report` write.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/gates.hpp"
#include "pipeline/pipeline.hpp"
#include "pipeline/profile.hpp"

namespace carina::pipeline {

/// One layer of a network; for a finished program, which has no names, one NPU operation or kernel call.
struct LedgerLayer {
  std::string name, modulePath, source;  // empty when unknown
  std::string kind;                      // "CONV"; for a kernel or a refused operator its name
  std::string what;                      // "conv 40x7x16 s8 <- ..."; empty when unknown
  bool onNpu = true;
  size_t part = 0;  // NPU part
  std::optional<int64_t> cycles;
  std::optional<int64_t> bytes;  // read and written through both ports
  std::optional<double> sqnr;    // dB against float

  bool named() const { return !name.empty(); }
};

struct Ledger {
  std::string file;                              // as given
  std::string target, systemConfig, memoryMode;  // empty when unknown
  double clockHz = 0;                            // 0: unknown
  std::optional<bool> wholly;                    // everything runs on the NPU
  std::optional<int64_t> cycles, macs;           // of the NPU, one inference
  std::optional<int64_t> arenaBytes, cacheBytes, constantBytes, commandBytes, fileBytes;
  std::optional<double> inferenceMs;  // NPU and CPU, one inference
  std::optional<double> sqnr;         // dB of the worst output against float
  std::vector<LedgerLayer> layers;

  /// Whether layers carry the names of the network.
  bool named() const;
};

/// From a program (.pte, compiled .tflite, delegate blob, commands), a JSON file that `carina profile` or
/// `carina compile --report` wrote, or the directory of such a report. `options`: target of bare commands,
/// another system configuration or memory mode to count cycles with. Errors: other files; JSON of another
/// schema or version, or with a missing field, which is named.
Result<Ledger> readLedger(const std::filesystem::path& file, const Options& options = {});
/// From JSON text. Errors name no file.
Result<Ledger> parseLedger(std::string_view json);

/// The figures that gates check; static RAM if the memory mode is known. `configFile`: describes further
/// system configurations and memory modes; may be empty.
Measured measuredOf(const Ledger& ledger, const std::filesystem::path& configFile);

/// Two ledgers with their layers side by side.
struct LedgerDiff {
  struct Pair {
    const LedgerLayer* a = nullptr;  // null: only in the other
    const LedgerLayer* b = nullptr;
    /// Whether any figure that both have differs.
    bool changed() const;
  };
  Ledger a, b;
  std::vector<Pair> layers;  // in the order of b; layers only in a follow their predecessor in a
  bool byName = true;        // false: one side has no names, layers are matched by kind, shape and order

  LedgerDiff() = default;
  LedgerDiff(LedgerDiff&&) noexcept = default;
  LedgerDiff& operator=(LedgerDiff&&) noexcept = default;
};

/// Layers are matched by module, source line and name; the remaining ones by module and name (by source line
/// and name if there is no module), by module and kind, by source line and kind, and by name. If one side has
/// no names, by what the operation does, then by kind. Among equal ones the n-th is matched with the n-th.
LedgerDiff diffLedgers(Ledger a, Ledger b);

}  // namespace carina::pipeline
