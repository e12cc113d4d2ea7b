// SPDX-License-Identifier: Apache-2.0
#include "report/sweep.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "report/document.hpp"
#include "report/inference_time.hpp"
#include "report/text.hpp"

namespace carina::report {
namespace {

/// For the NPU alone.
double milliseconds(const pipeline::SweepRow& row) {
  return row.clockHz > 0 ? 1e3 * static_cast<double>(row.cycles) / row.clockHz : 0;
}

/// For a whole inference.
double inferenceMs(const pipeline::SweepRow& row) {
  return row.inference ? row.inference->milliseconds() : milliseconds(row);
}

int64_t bytesIn(const pipeline::SweepRow& row, npu::MemoryKind kind) {
  const auto it = row.bytes.find(kind);
  return it == row.bytes.end() ? 0 : it->second;
}

bool sameConfiguration(const pipeline::SweepRow& a, const pipeline::SweepRow& b) {
  return std::tie(a.target, a.systemConfig, a.memoryMode) == std::tie(b.target, b.systemConfig, b.memoryMode);
}

/// Whether rows are points on a frontier of arena and cycles.
bool isFrontier(const std::vector<pipeline::SweepRow>& rows) {
  return std::any_of(rows.begin(), rows.end(), [](const auto& row) { return !row.reproduce.empty(); });
}

/// Whether the row is, on the frontier of its configuration, the smallest arena that takes at most 2 % more
/// cycles than the largest.
bool isPick(const std::vector<pipeline::SweepRow>& rows, const pipeline::SweepRow& row) {
  const pipeline::SweepRow *last = nullptr, *pick = nullptr;
  for (const pipeline::SweepRow& other : rows) {
    if (sameConfiguration(row, other)) last = &other;
  }
  for (const pipeline::SweepRow& other : rows) {
    if (!pick && sameConfiguration(row, other) && other.cycles * 100 <= last->cycles * 102) pick = &other;
  }
  return pick == &row;
}

/// The lower bound over all choices of cascades, one line per configuration.
std::string boundsText(const std::vector<pipeline::SweepRow>& rows) {
  std::string text;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].arenaBound == 0 || (i > 0 && sameConfiguration(rows[i - 1], rows[i]))) continue;
    text +=
        fmt::format("{} {} {}: every choice of cascades needs an arena of at least {} bytes\n",
                    rows[i].target, rows[i].systemConfig, rows[i].memoryMode, countText(rows[i].arenaBound));
  }
  return text;
}

}  // namespace

std::string sweepText(const std::vector<pipeline::SweepRow>& rows) {
  std::set<npu::MemoryKind> kinds;
  const pipeline::SweepRow *fastest = nullptr, *smallest = nullptr;
  for (const pipeline::SweepRow& row : rows) {
    if (!row.problem.empty()) continue;
    for (const auto& [kind, bytes] : row.bytes) kinds.insert(kind);
    if (row.clockHz > 0 && (!fastest || inferenceMs(row) < inferenceMs(*fastest))) fastest = &row;
    if (row.clockHz > 0 &&
        (!smallest || bytesIn(row, npu::MemoryKind::Sram) < bytesIn(*smallest, npu::MemoryKind::Sram)))
      smallest = &row;
  }
  std::vector<std::string> header{"target", "system", "memory mode",  "",       "cycles",
                                  "MHz",    "NPU ms", "inference ms", "MAC use"};
  for (const npu::MemoryKind kind : kinds) header.emplace_back(npu::memoryKindName(kind));
  const bool frontier = isFrontier(rows);
  if (frontier) header.insert(header.end(), {"arena", "options"});
  TextTable table(header, 4);
  std::string problems;
  for (const pipeline::SweepRow& row : rows) {
    if (!row.problem.empty()) {
      problems += fmt::format("{} {} {}: {}\n", row.target, row.systemConfig, row.memoryMode, row.problem);
      continue;
    }
    std::string mark = &row == fastest ? "fastest" : "";
    if (&row == smallest) mark += mark.empty() ? "least SRAM" : ", least SRAM";
    if (frontier && isPick(rows, row)) mark += mark.empty() ? "pick" : ", pick";
    if (!row.wholly) mark += mark.empty() ? "partly on CPU" : ", partly on CPU";
    std::vector<std::string> cells{row.target,
                                   row.systemConfig,
                                   row.memoryMode,
                                   mark,
                                   countText(row.cycles),
                                   row.clockHz > 0 ? fmt::format("{:.0f}", row.clockHz / 1e6) : "-",
                                   row.clockHz > 0 ? fmt::format("{:.3f}", milliseconds(row)) : "-",
                                   row.clockHz > 0 ? fmt::format("{:.3f}", inferenceMs(row)) : "-",
                                   fmt::format("{:.1f} %", 100 * row.macUse)};
    for (const npu::MemoryKind kind : kinds) {
      const int64_t bytes = bytesIn(row, kind);
      cells.push_back(bytes > 0 ? bytesText(bytes) : "-");
    }
    if (frontier) cells.insert(cells.end(), {countText(row.arenaBytes), row.reproduce});
    table.add(std::move(cells));
  }
  if (frontier) problems = boundsText(rows) + problems;
  std::string text;
  if (fastest != nullptr && fastest->inference) {
    const std::string line = inferenceLine(*fastest->inference);
    text = fmt::format("{} on {}, the fastest\n", line.substr(0, line.size() - 1), fastest->target);
  }
  return text + (kinds.empty() ? "" : table.str()) + problems;
}

std::string sweepJson(const std::vector<pipeline::SweepRow>& rows) {
  nlohmann::ordered_json json = document("sweep");
  json["rows"] = nlohmann::ordered_json::array();
  for (const pipeline::SweepRow& row : rows) {
    nlohmann::ordered_json entry{
        {"target", row.target}, {"system_config", row.systemConfig}, {"memory_mode", row.memoryMode}};
    if (row.problem.empty()) {
      entry["cycles"] = row.cycles;
      entry["clock_hz"] = row.clockHz;
      entry["milliseconds"] = milliseconds(row);
      if (row.inference) entry["inference"] = inferenceJson(*row.inference);
      entry["macs"] = row.macs;
      entry["wholly_on_npu"] = row.wholly;
      entry["bytes"] = {{"arena", row.arenaBytes},
                        {"cache", row.cacheBytes},
                        {"constants", row.constantBytes},
                        {"commands", row.commandBytes}};
      if (isFrontier(rows)) {
        entry["options"] = row.reproduce;
        entry["pick"] = isPick(rows, row);
        if (row.arenaBound > 0) entry["arena_bound"] = row.arenaBound;
      }
      entry["memories"] = nlohmann::ordered_json::object();
      for (const auto& [kind, bytes] : row.bytes)
        entry["memories"][std::string(npu::memoryKindName(kind))] = bytes;
    } else {
      entry["problem"] = row.problem;
    }
    json["rows"].push_back(std::move(entry));
  }
  return documentText(json);
}

std::string sweepCsv(const std::vector<pipeline::SweepRow>& rows) {
  CsvTable table({"target", "system_config", "memory_mode", "cycles", "clock_hz", "milliseconds", "macs",
                  "wholly_on_npu", "arena_bytes", "cache_bytes", "constant_bytes", "problem", "inference_ms",
                  "command_bytes"});
  for (const pipeline::SweepRow& row : rows) {
    std::vector<std::string> cells{row.target, row.systemConfig, row.memoryMode};
    if (row.problem.empty()) {
      for (std::string cell : {fmt::format("{}", row.cycles), fmt::format("{:.0f}", row.clockHz),
                               fmt::format("{:.6f}", milliseconds(row)), fmt::format("{}", row.macs),
                               fmt::format("{}", row.wholly), fmt::format("{}", row.arenaBytes),
                               fmt::format("{}", row.cacheBytes), fmt::format("{}", row.constantBytes)})
        cells.push_back(std::move(cell));
    }
    cells.resize(11);
    cells.push_back(row.problem);
    cells.push_back(row.problem.empty() ? fmt::format("{:.6f}", inferenceMs(row)) : "");
    cells.push_back(row.problem.empty() ? fmt::format("{}", row.commandBytes) : "");
    table.add(cells);
  }
  return table.str();
}

}  // namespace carina::report
