// SPDX-License-Identifier: Apache-2.0
// The JSON follows the Trace Event Format; its "qread" events are read by the performance overlay of
// ExecuTorch's example for Arm (visualize.py --trace).
#include "platform/pmu_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/gzip.hpp"
#include "cpu_m/core.hpp"

namespace carina::platform {
namespace {

/// The columns after the first one.
struct Column {
  const char* name;
  int64_t (*value)(const PmuSample&);
};
constexpr Column kColumns[] = {
    {"cpu_instructions", [](const PmuSample& s) { return static_cast<int64_t>(s.instructions); }},
    {"cpu_active", [](const PmuSample& s) { return static_cast<int64_t>(s.coreCycles); }},
    {"npu_active", [](const PmuSample& s) { return s.npu.active; }},
    {"mac_active", [](const PmuSample& s) { return s.npu.macActive; }},
    {"output_active", [](const PmuSample& s) { return s.npu.outputActive; }},
    {"weight_active", [](const PmuSample& s) { return s.npu.weightActive; }},
    {"blockdep_stall", [](const PmuSample& s) { return s.npu.blockdepStall; }},
    {"axi0_read_beats", [](const PmuSample& s) { return s.npu.readBeats[0]; }},
    {"axi0_write_beats", [](const PmuSample& s) { return s.npu.writeBeats[0]; }},
    {"axi1_read_beats", [](const PmuSample& s) { return s.npu.readBeats[1]; }},
    {"axi1_write_beats", [](const PmuSample& s) { return s.npu.writeBeats[1]; }},
};

}  // namespace

void PmuTrace::sample(uint64_t cycle) {
  if (samples_.size() == kMaxSamples) {
    next_ = kNever;
    return;
  }
  samples_.push_back({cycle, core_.instructions(), core_.cycles(), npu_.countsAt(cycle)});
}

void PmuTrace::advance(uint64_t now) {
  while (next_ <= now) {
    sample(next_);
    if (next_ != kNever) next_ += interval_;
  }
}

PmuRecord PmuTrace::finish() {
  const uint64_t now = clock_.now();
  advance(now);
  if (samples_.back().cycle != now) sample(now);
  return {std::move(samples_), npu_.positions()};
}

std::string pmuCsv(const PmuRecord& record) {
  std::string text = "cycle";
  for (const Column& column : kColumns) text += fmt::format(",{}", column.name);
  text += '\n';
  for (size_t i = 1; i < record.samples.size(); ++i) {
    text += fmt::format("{}", record.samples[i].cycle);
    for (const Column& column : kColumns)
      text += fmt::format(",{}", column.value(record.samples[i]) - column.value(record.samples[i - 1]));
    text += '\n';
  }
  return text;
}

std::string pmuJson(const PmuRecord& record) {
  const uint64_t zero = record.positions.empty() ? 0 : record.positions[0].cycle;
  std::string text = R"({"displayTimeUnit":"ns","traceEvents":[)";
  const char* separator = "\n";
  for (const NpuPosition& position : record.positions) {
    text += fmt::format(
        R"({}{{"name":"qread","ph":"i","s":"t","pid":"npu","tid":"qread","ts":{},"args":{{"qread":{}}}}})",
        separator, position.cycle - zero, position.qread / 4);
    separator = ",\n";
  }
  for (size_t i = 1; i < record.samples.size(); ++i) {
    const PmuSample &before = record.samples[i - 1], &after = record.samples[i];
    if (before.cycle < zero) continue;
    for (const Column& column : kColumns) {
      text +=
          fmt::format(R"({}{{"name":"{}","ph":"C","pid":"pmu","ts":{},"args":{{"count":{}}}}})", separator,
                      column.name, before.cycle - zero, column.value(after) - column.value(before));
      separator = ",\n";
    }
  }
  return text + "\n]}\n";
}

std::string pmuFile(const PmuRecord& record, const std::filesystem::path& name) {
  const bool compressed = name.extension() == ".gz";
  const auto ending = (compressed ? name.stem() : name).extension();
  const std::string text = ending == ".json" ? pmuJson(record) : pmuCsv(record);
  return compressed ? gzipped(text) : text;
}

}  // namespace carina::platform
