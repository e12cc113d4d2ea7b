// SPDX-License-Identifier: Apache-2.0
#include "report/profile.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>

#include "report/document.hpp"
#include "report/inference_time.hpp"
#include "report/text.hpp"

namespace carina::report {
namespace {

using Json = nlohmann::ordered_json;

/// Lanes of the trace.
constexpr const char *kCpuLane = "CPU", *kNpuLane = "NPU", *kDmaLane = "DMA";
constexpr const char* kAreaNames[] = {"constants", "arena", "cache"};

double asDouble(int64_t value) {
  return static_cast<double>(value);
}

/// Heading of a port's traffic column: the memory behind it.
std::string portName(const npu::Machine& machine, size_t port) {
  const bool same = machine.system.ports[0].kind == machine.system.ports[1].kind;
  return std::string(npu::memoryKindName(machine.system.ports[port].kind)) +
         (same ? fmt::format(" {}", port) : "");
}

/// Ports used by any area of the memory mode.
std::vector<size_t> usedPorts(const npu::Machine& machine) {
  const npu::MemoryMode& mode = machine.memory;
  std::vector<size_t> ports;
  for (const size_t port : {size_t{0}, size_t{1}}) {
    if (mode.constantsPort == port || mode.arenaPort == port || mode.cachePort == port) ports.push_back(port);
  }
  return ports;
}

/// More rows are not useful to a reader, and hundreds of thousands of them take seconds.
constexpr size_t kMostRows = 20000;

template <typename Entry>
std::span<const Entry> shownOf(const std::vector<Entry>& all) {
  return std::span(all).first(std::min(all.size(), kMostRows));
}

std::string othersLine(size_t count) {
  return count <= kMostRows ? ""
                            : fmt::format("... and {} more: --csv and --json hold all\n", count - kMostRows);
}

std::string layerTable(const pipeline::Profile& profile, const pipeline::ProfiledPart& part) {
  const std::vector<size_t> ports = usedPorts(profile.machine);
  std::vector<std::string> header{"layer", "module", "kind", "bound by", "cycles", "share", "MAC use"};
  for (const size_t port : ports) header.push_back(portName(profile.machine, port));
  TextTable table(header, 4);
  for (const pipeline::Layer& layer : shownOf(part.layers)) {
    std::vector<std::string> row{
        layer.name,
        layer.modulePath,
        layer.kind + (layer.operations > 1 ? fmt::format(" x{}", layer.operations) : ""),
        npu::boundByName(layer.bound),
        countText(layer.cycles),
        percentText(asDouble(layer.cycles), asDouble(part.cycles)),
        percentText(asDouble(layer.macs), asDouble(layer.cycles) * profile.machine.target->macs)};
    for (const size_t port : ports) {
      row.push_back(bytesText(layer.traffic[port].readBytes + layer.traffic[port].writeBytes));
    }
    table.add(std::move(row));
  }
  return table.str() + othersLine(part.layers.size());
}

std::string operationTable(const pipeline::Profile& profile, const pipeline::ProfiledPart& part) {
  TextTable table(
      {"operation", "kind", "bound by", "start", "end", "cycles", "MAC", "output", "ports", "MAC use"}, 3);
  for (const pipeline::ProfiledOperation& operation : shownOf(part.operations)) {
    const npu::OperationCost& cost = operation.timing.cost;
    table.add({operation.name, operation.kind, npu::boundByName(cost.bound),
               countText(operation.timing.start), countText(operation.timing.end), countText(cost.total),
               countText(cost.mac), countText(cost.output), fmt::format("{}/{}", cost.port[0], cost.port[1]),
               percentText(asDouble(cost.macs), asDouble(cost.total) * profile.machine.target->macs)});
  }
  return table.str() + othersLine(part.operations.size());
}

/// Conditionals and loops of the command stream, outer ones first. `ways`: how often samples took each path;
/// may be null.
std::string branchTable(const pipeline::ProfiledPart& part, const std::vector<pipeline::PathCount>* ways) {
  std::vector<std::string> header{"conditional or loop", "iterations", "path", "cycles",
                                  "other path",          "cycles"};
  if (ways) {
    header.insert(header.begin() + 4, "taken");
    header.push_back("taken");
  }
  TextTable table(std::move(header), 1);
  std::vector<size_t> order(part.branches.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return part.branches[a].begin < part.branches[b].begin; });
  for (const size_t i : order) {
    const compiler::BranchRecord& branch = part.branches[i];
    std::vector<std::string> row{branch.name,
                                 !branch.isLoop      ? ""
                                 : branch.turns >= 0 ? countText(branch.turns)
                                                     : "data-dependent",
                                 branch.isLoop ? "body" : "true", countText(branch.first)};
    if (ways) row.push_back(countText((*ways)[i].first));
    row.emplace_back(branch.isLoop ? "test" : "false");
    row.push_back(countText(branch.second));
    if (ways) row.push_back(countText((*ways)[i].second));
    table.add(std::move(row));
  }
  return table.str();
}

/// The NPU cycles that samples take, compared with the longest path.
std::string measuredLine(const pipeline::Profile& profile) {
  const std::vector<npu::Cycles>& cycles = profile.measured->cycles;
  if (cycles.empty()) return "";
  const auto [least, most] = std::minmax_element(cycles.begin(), cycles.end());
  const auto sum = std::accumulate(cycles.begin(), cycles.end(), npu::Cycles{0});
  const auto count = static_cast<npu::Cycles>(cycles.size());
  return fmt::format(
      "measured over {} sample{}: {} to {} NPU cycles, {} on average; estimate of the longest path: {}\n",
      count, count == 1 ? "" : "s", countText(*least), countText(*most), countText(sum / count),
      countText(profile.longest));
}

/// Share of the cycles by limiting resource.
std::string boundLine(const pipeline::ProfiledPart& part) {
  std::map<std::string, npu::Cycles> cycles;
  for (const pipeline::Layer& layer : part.layers) cycles[npu::boundByName(layer.bound)] += layer.cycles;
  std::vector<std::pair<npu::Cycles, std::string>> sorted;
  sorted.reserve(cycles.size());
  for (const auto& [name, count] : cycles) sorted.emplace_back(count, name);
  std::sort(sorted.rbegin(), sorted.rend());
  std::string text;
  for (const auto& [count, name] : sorted) {
    text += (text.empty() ? "" : ", ") +
            fmt::format("{} {}", name, percentText(asDouble(count), asDouble(part.cycles)));
  }
  return text;
}

/// The layers with the greatest potential.
std::string adviceText(const pipeline::Profile& profile, const pipeline::ProfiledPart& part) {
  constexpr size_t kMost = 5;
  std::vector<std::pair<Advice, const pipeline::Layer*>> all;
  for (const pipeline::Layer& layer : part.layers) {
    Advice advice = adviceFor(part, layer, profile.machine);
    if (!advice.text.empty() && advice.gain * 200 > part.cycles) all.emplace_back(std::move(advice), &layer);
  }
  if (all.empty()) return "";
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.first.gain > b.first.gain; });
  if (all.size() > kMost) all.resize(kMost);
  std::string text = "what would help most (cycles until the next limit)\n";
  for (const auto& [advice, layer] : all) {
    text += fmt::format("  {:>9}  {}{}: {}\n", countText(advice.gain), layer->name,
                        layer->modulePath.empty() ? "" : " (" + layer->modulePath + ")", advice.text);
  }
  return text;
}

/// Separately allocated bytes: a result that is computed in place is counted with its input.
int64_t ownBytes(const compiler::MemoryRecord& record) {
  return record.what == "in place" ? 0 : record.bytes;
}

struct Peak {
  int64_t bytes = 0;
  int32_t step = 0;
};

/// The step at which most bytes of an area are live.
Peak peakOf(const std::vector<compiler::MemoryRecord>& memory, npu::Area area) {
  Peak peak;
  for (const compiler::MemoryRecord& at : memory) {
    if (at.area != area) continue;
    int64_t live = 0;
    for (const compiler::MemoryRecord& other : memory) {
      if (other.area == area && other.first <= at.first && at.first <= other.last) live += ownBytes(other);
    }
    if (live > peak.bytes) peak = {live, at.first};
  }
  return peak;
}

std::string stepName(const pipeline::ProfiledPart& part, int32_t step) {
  if (step < 0) return "the start";
  const auto at = static_cast<size_t>(step);
  return at < part.steps.size() ? part.steps[at] : "the end";
}

std::string memoryText(const pipeline::Profile& profile, const pipeline::ProfiledPart& part, bool whole) {
  std::string text = "memory\n";
  const auto kind = [&](npu::Area area) { return npu::memoryKindName(profile.machine.timing(area).kind); };
  const auto line = [&](npu::Area area, int64_t bytes) {
    if (bytes > 0)
      text += fmt::format("  {:<9}  {:>10} in {}\n", kAreaNames[static_cast<size_t>(area)], bytesText(bytes),
                          kind(area));
  };
  line(npu::Area::Arena, part.arenaBytes);
  line(npu::Area::Cache, part.cacheBytes);
  line(npu::Area::Constants, part.constantBytes);
  text += fmt::format("  {:<9}  {:>10}\n", "commands", bytesText(part.commandBytes));
  for (const npu::Area area : {npu::Area::Arena, npu::Area::Cache}) {
    const Peak peak = peakOf(part.memory, area);
    if (peak.bytes == 0) continue;
    text += fmt::format("  {} use peaks at {}: {}\n", kAreaNames[static_cast<size_t>(area)],
                        stepName(part, peak.step), bytesText(peak.bytes));
    std::vector<const compiler::MemoryRecord*> live;
    for (const compiler::MemoryRecord& record : part.memory) {
      if (record.area == area && record.first <= peak.step && peak.step <= record.last)
        live.push_back(&record);
    }
    std::stable_sort(live.begin(), live.end(),
                     [](const auto* a, const auto* b) { return a->bytes > b->bytes; });
    for (const compiler::MemoryRecord* record : live) {
      text += fmt::format("    {:>10}  {} {}\n", bytesText(record->bytes), record->what, record->name);
    }
  }
  if (!whole) return text;
  TextTable table({"buffer", "what", "area", "from", "to", "address", "bytes"}, 5);
  for (const compiler::MemoryRecord& record : part.memory) {
    table.add({record.name, record.what, kAreaNames[static_cast<size_t>(record.area)],
               stepName(part, record.first), stepName(part, record.last),
               fmt::format("{:#x}", record.address), countText(record.bytes)});
  }
  return text + "\n" + table.str();
}

Json costJson(const npu::OperationCost& cost) {
  return {{"cycles", cost.total},
          {"mac", cost.mac},
          {"output", cost.output},
          {"port_cycles", {cost.port[0], cost.port[1]}},
          {"read_bytes", {cost.traffic[0].readBytes, cost.traffic[1].readBytes}},
          {"written_bytes", {cost.traffic[0].writeBytes, cost.traffic[1].writeBytes}},
          {"bound", npu::boundByName(cost.bound)}};
}

Json branchesJson(const pipeline::ProfiledPart& part, const std::vector<pipeline::PathCount>* ways) {
  Json json = Json::array();
  for (size_t i = 0; i < part.branches.size(); ++i) {
    const compiler::BranchRecord& branch = part.branches[i];
    Json entry{{"name", branch.name}, {"kind", branch.isLoop ? "loop" : "choice"}};
    if (branch.isLoop && branch.turns >= 0) entry["turns"] = branch.turns;
    entry[branch.isLoop ? "body_cycles" : "true_cycles"] = branch.first;
    entry[branch.isLoop ? "test_cycles" : "false_cycles"] = branch.second;
    if (ways) {
      entry[branch.isLoop ? "body_taken" : "true_taken"] = (*ways)[i].first;
      entry[branch.isLoop ? "test_taken" : "false_taken"] = (*ways)[i].second;
    }
    json.push_back(std::move(entry));
  }
  return json;
}

Json operationJson(const pipeline::ProfiledPart& part, const pipeline::ProfiledOperation& operation) {
  Json json{{"name", operation.name},          {"layer", part.layers[operation.layer].name},
            {"kind", operation.kind},          {"what", operation.description},
            {"start", operation.timing.start}, {"end", operation.timing.end}};
  json.update(costJson(operation.timing.cost));
  return json;
}

Json layerJson(const pipeline::Profile& profile, const pipeline::ProfiledPart& part,
               const pipeline::Layer& layer) {
  const Advice advice = adviceFor(part, layer, profile.machine);
  Json json{{"name", layer.name},
            {"module", layer.modulePath},
            {"source", layer.source},
            {"op", layer.op},
            {"kind", layer.kind},
            {"operations", layer.operations},
            {"cycles", layer.cycles},
            {"compute_cycles", layer.compute},
            {"macs", layer.macs},
            {"bound", npu::boundByName(layer.bound)},
            {"read_bytes", {layer.traffic[0].readBytes, layer.traffic[1].readBytes}},
            {"written_bytes", {layer.traffic[0].writeBytes, layer.traffic[1].writeBytes}},
            {"advice", advice.text},
            {"possible_gain", advice.gain}};
  if (layer.sqnr) json["sqnr_db"] = *layer.sqnr;
  return json;
}

/// How often samples took the paths of a part; null if no samples were given.
const std::vector<pipeline::PathCount>* waysOf(const pipeline::Profile& profile, size_t part) {
  return profile.measured ? &profile.measured->ways[part] : nullptr;
}

/// A part, with its rows as text: a one-megabyte program has hundreds of thousands of them.
void addPart(JsonText& text, const pipeline::Profile& profile, size_t index) {
  const pipeline::ProfiledPart& part = profile.parts[index];
  Json json = Json::object();
  if (!part.method.empty()) json["method"] = part.method;
  json["cycles"] = part.cycles;
  json["cycles_by_rules"] = Json::object();
  for (size_t i = 0; i < part.cyclesByRules.size(); ++i)
    json["cycles_by_rules"][std::string(npu::timing::ruleSets()[i].name)] = part.cyclesByRules[i];
  json["macs"] = part.macs;
  json["bytes"] = {{"arena", part.arenaBytes},
                   {"cache", part.cacheBytes},
                   {"constants", part.constantBytes},
                   {"commands", part.commandBytes}};
  if (profile.measured) json["calls"] = profile.measured->calls[index];
  text.members(json);
  text.rows("layers", part.layers,
            [&](const pipeline::Layer& layer) { return layerJson(profile, part, layer); });
  if (!part.branches.empty()) text.members({{"branches", branchesJson(part, waysOf(profile, index))}});
  text.rows("operations", part.operations,
            [&](const pipeline::ProfiledOperation& operation) { return operationJson(part, operation); });
  text.rows("memory", part.memory, [](const compiler::MemoryRecord& record) {
    return Json{{"name", record.name},
                {"what", record.what},
                {"area", kAreaNames[static_cast<size_t>(record.area)]},
                {"address", record.address},
                {"bytes", record.bytes},
                {"first_step", record.first},
                {"last_step", record.last}};
  });
}

const char* kindName(pipeline::InferenceStep::Kind kind) {
  switch (kind) {
    case pipeline::InferenceStep::Kind::Call:
      return "call";
    case pipeline::InferenceStep::Kind::Kernel:
      return "kernel";
    case pipeline::InferenceStep::Kind::Npu:
      return "npu";
  }
  return "";
}

Json stepsJson(const std::vector<pipeline::InferenceStep>& steps) {
  Json json = Json::array();
  for (const pipeline::InferenceStep& step : steps) {
    json.push_back({{"kind", kindName(step.kind)},
                    {"name", step.name},
                    {"what", step.what},
                    {"start", step.start},
                    {"cycles", step.cycles},
                    {"turns", step.turns}});
    if (step.kind == pipeline::InferenceStep::Kind::Npu) json.back()["part"] = step.part;
  }
  return json;
}

std::string ofMethod(const pipeline::ProfiledPart& part) {
  return part.method.empty() ? "" : " of method " + part.method;
}

}  // namespace

std::string profileText(const pipeline::Profile& profile, const ProfileText& options,
                        const pipeline::InferenceTime* inference) {
  const npu::Machine& machine = profile.machine;
  const double clock = machine.system.clockHz;
  std::string text;
  if (inference != nullptr) text = inferenceLine(*inference) + inferenceAdvice(*inference, "");
  if (profile.measured) text += measuredLine(profile);
  for (size_t i = 0; i < profile.parts.size(); ++i) {
    const pipeline::ProfiledPart& part = profile.parts[i];
    text += fmt::format("{}{}: {}, {}, {}\n", profile.file.filename().string(),
                        profile.parts.size() > 1 ? fmt::format(", NPU part {}{}", i, ofMethod(part)) : "",
                        machine.target->name, machine.system.name, machine.memory.name);
    text += fmt::format("{} cycles, {:.3f} ms at {:.0f} MHz; {} MACs, {} of the multipliers used\n",
                        countText(part.cycles), 1e3 * asDouble(part.cycles) / clock, clock / 1e6,
                        countText(part.macs),
                        percentText(asDouble(part.macs), asDouble(part.cycles) * machine.target->macs));
    if (profile.measured && profile.parts.size() > 1)
      text += fmt::format("called {} times by the samples\n", countText(profile.measured->calls[i]));
    text += "limited by: " + boundLine(part) + "\n\n";
    text += (options.operations ? operationTable(profile, part) : layerTable(profile, part)) + "\n";
    if (!part.branches.empty()) text += branchTable(part, waysOf(profile, i)) + "\n";
    const std::string advice = adviceText(profile, part);
    text += advice + (advice.empty() ? "" : "\n") + memoryText(profile, part, options.memory);
  }
  return text;
}

nlohmann::ordered_json layersJson(const pipeline::Profile& profile, const pipeline::ProfiledPart& part) {
  Json json = Json::array();
  for (const pipeline::Layer& layer : part.layers) json.push_back(layerJson(profile, part, layer));
  return json;
}

std::string profileJson(const pipeline::TimedProfile& timed) {
  const pipeline::Profile& profile = timed.profile;
  Json json = document("profile");
  json["file"] = profile.file.filename().string();
  json["target"] = profile.machine.target->name;
  json["system_config"] = profile.machine.system.name;
  json["memory_mode"] = profile.machine.memory.name;
  json["clock_hz"] = profile.machine.system.clockHz;
  if (timed.inference) {
    json["inference"] = inferenceJson(*timed.inference);
    if (!timed.steps.empty()) json["inference"]["steps"] = stepsJson(timed.steps);
  }
  if (profile.measured)
    json["measured"] = {{"cycles", profile.measured->cycles}, {"longest_way", profile.longest}};
  json["ports"] = {portName(profile.machine, 0), portName(profile.machine, 1)};
  JsonText text;
  text.open('{');
  text.members(json);
  text.open('[', "parts");
  for (size_t i = 0; i < profile.parts.size(); ++i) {
    text.open('{');
    addPart(text, profile, i);
    text.close('}');
  }
  text.close(']');
  text.close('}');
  return std::move(text).str();
}

std::string profileCsv(const pipeline::Profile& profile) {
  CsvTable table({"part", "layer", "module", "source", "kind", "operations", "cycles", "compute_cycles",
                  "macs", "bound", "read_bytes_0", "written_bytes_0", "read_bytes_1", "written_bytes_1"});
  for (size_t i = 0; i < profile.parts.size(); ++i) {
    for (const pipeline::Layer& layer : profile.parts[i].layers) {
      std::vector<std::string> cells{fmt::format("{}", i), layer.name, layer.modulePath, layer.source,
                                     layer.kind};
      for (const int64_t number :
           {static_cast<int64_t>(layer.operations), layer.cycles, layer.compute, layer.macs})
        cells.push_back(fmt::format("{}", number));
      cells.emplace_back(npu::boundByName(layer.bound));
      for (const npu::PortTraffic& port : layer.traffic) {
        cells.push_back(fmt::format("{}", port.readBytes));
        cells.push_back(fmt::format("{}", port.writeBytes));
      }
      table.add(cells);
    }
  }
  return table.str();
}

std::string profileTrace(const pipeline::TimedProfile& timed) {
  const pipeline::Profile& profile = timed.profile;
  Json events = Json::array();
  const auto add = [&](const char* lane, const std::string& name, const std::string& category, int64_t start,
                       int64_t cycles, Json arguments) {
    events.push_back({{"name", name},
                      {"cat", category},
                      {"ph", "X"},
                      {"ts", start},
                      {"dur", cycles},
                      {"pid", 0},
                      {"tid", lane},
                      {"args", std::move(arguments)}});
  };
  const auto addPart = [&](const pipeline::ProfiledPart& part, int64_t start) {
    for (const pipeline::ProfiledOperation& operation : part.operations) {
      add(operation.timing.isDma ? kDmaLane : kNpuLane, operation.name, operation.kind,
          start + operation.timing.start, operation.timing.end - operation.timing.start,
          {{"layer", part.layers[operation.layer].name},
           {"what", operation.description},
           {"bound", npu::boundByName(operation.timing.cost.bound)},
           {"macs", operation.timing.cost.macs}});
    }
  };
  int64_t end = 0;
  for (const pipeline::InferenceStep& step : timed.steps) {
    end = step.start + step.cycles;
    if (step.kind != pipeline::InferenceStep::Kind::Npu) {
      add(kCpuLane, step.name, kindName(step.kind), step.start, step.cycles,
          {{"what", step.what}, {"turns", step.turns}});
      continue;
    }
    const pipeline::ProfiledPart& part = profile.parts[step.part];
    addPart(part, step.start);
    if (step.turns > 1) {
      add(kNpuLane, fmt::format("{}, iterations 2 to {}", step.name, step.turns), "turns",
          step.start + part.cycles, step.cycles - part.cycles, Json::object());
    }
  }
  // If the time of the rest is unknown, parts follow each other directly.
  if (timed.steps.empty()) {
    for (const pipeline::ProfiledPart& part : profile.parts) {
      addPart(part, end);
      end += part.cycles;
    }
  }
  Json json{{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}};
  if (timed.inference) {
    std::string line = inferenceLine(*timed.inference);
    line.pop_back();
    json["otherData"] = {{"inference", line}};
  }
  return json.dump() + "\n";
}

}  // namespace carina::report
