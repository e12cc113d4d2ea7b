// SPDX-License-Identifier: Apache-2.0
#include "report/summary.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "pipeline/inference_time.hpp"
#include "pipeline/part_turns.hpp"
#include "report/document.hpp"
#include "report/inference_time.hpp"
#include "report/profile.hpp"
#include "report/program_io.hpp"
#include "report/quantization.hpp"
#include "report/text.hpp"
#include "tflite/graph_builder.hpp"

namespace carina::report {
namespace {

/// Bytes of a build by area, over all delegates: constants and commands add up, the arena is shared.
struct Footprint {
  int64_t constants = 0, commands = 0, arena = 0, bound = 0, cache = 0;
  int64_t cycles = 0, macs = 0;
  size_t operations = 0;
};

Footprint footprintOf(const pipeline::Build& build) {
  Footprint sum;
  sum.cycles = pipeline::npuCycles(build);
  sum.macs = pipeline::npuMacs(build);
  for (const compiler::CompiledProgram& part : build.compiled) {
    sum.constants += static_cast<int64_t>(part.constants.size());
    sum.commands += static_cast<int64_t>(part.commands.size() * 4);
    sum.arena = std::max(sum.arena, part.arenaBytes);
    sum.bound = std::max(sum.bound, part.arenaBound);
    sum.cache = std::max(sum.cache, part.cacheBytes);
    sum.operations += part.operations.size();
  }
  return sum;
}

/// `exact`: show the arena in bytes, with its lower bound.
std::string memoryLine(const Footprint& sum, const npu::Machine& machine, bool exact) {
  const auto kind = [&](npu::Area area) { return npu::memoryKindName(machine.timing(area).kind); };
  const std::string arena =
      !exact           ? bytesText(sum.arena)
      : sum.bound == 0 ? countText(sum.arena) + " bytes"
                       : fmt::format("{} bytes (bound {})", countText(sum.arena), countText(sum.bound));
  std::string text = fmt::format("arena {} in {}, constants {} in {}", arena, kind(npu::Area::Arena),
                                 bytesText(sum.constants), kind(npu::Area::Constants));
  if (sum.cache > 0) text += fmt::format(", cache {} in {}", bytesText(sum.cache), kind(npu::Area::Cache));
  return text + fmt::format(", commands {}", bytesText(sum.commands));
}

/// Operations and memory of an Ethos-N build.
std::string ethosNLines(const pipeline::Build& build) {
  size_t operations = 0;
  uint64_t constants = 0, intermediates = 0, commands = 0;
  for (const pipeline::EthosNPart& part : build.ethosNParts) {
    operations += part.operations.operations.size();
    constants += part.compiled.constantDma.size();
    intermediates = std::max(intermediates, ethosn::intermediateBytes(part.compiled));
    commands += part.compiled.constantControlUnit.size();
  }
  const size_t parts = build.ethosNParts.size();
  const auto bytes = [](uint64_t count) { return bytesText(static_cast<int64_t>(count)); };
  return fmt::format("  NPU     {} operation{} in {} part{}\n", operations, operations == 1 ? "" : "s", parts,
                     parts == 1 ? "" : "s") +
         fmt::format("  memory  constants {}, intermediates {}, commands {}\n", bytes(constants),
                     bytes(intermediates), bytes(commands));
}

/// Kernels outside the delegates with their call counts.
std::string cpuLine(const pipeline::Build& build) {
  std::map<std::string, int> calls;
  if (build.program.methods.empty() && build.tflite) {
    for (const ir::Node* node : build.tflite->graph.nodes()) {
      if (!node->is(partition::delegateCallDef()) && !tflite::isSubgraphEnd(*node))
        ++calls[pipeline::tfliteName(*node)];
    }
  }
  for (const pte::Method& method : build.program.methods) {
    for (const pte::Chain& chain : method.chains) {
      for (const pte::Instruction& instruction : chain.instructions) {
        if (const auto* call = std::get_if<pte::KernelCall>(&instruction)) {
          ++calls[method.operators[static_cast<size_t>(call->op)].str()];
        }
      }
    }
  }
  if (calls.empty()) return "nothing";
  std::string text;
  for (const auto& [name, count] : calls)
    text += (text.empty() ? "" : ", ") + fmt::format("{} x{}", name, count);
  return text;
}

/// "about 31.2 dB against float (simulated, 4 calibration samples)"
std::string accuracyText(const quantize::Accuracy& accuracy) {
  const std::string near =
      std::isinf(accuracy.decibels) ? "exact" : fmt::format("about {:.1f} dB", accuracy.decibels);
  return fmt::format("{} against float{} (simulated, {} calibration sample{})", near,
                     accuracy.outputs > 1 ? fmt::format(", worst of {} outputs", accuracy.outputs) : "",
                     accuracy.samples, accuracy.samples == 1 ? "" : "s");
}

std::string layerTable(const compiler::CompiledProgram& part) {
  TextTable table({"operation", "kind", "block", "cycles", "share", "MACs", "MAC use"}, 3);
  for (const compiler::OperationRecord& record : part.operations) {
    table.add({record.name, record.kind,
               fmt::format("{}x{}x{}", record.block.h, record.block.w, record.block.c),
               countText(record.cycles),
               percentText(static_cast<double>(record.cycles), static_cast<double>(part.cycles)),
               countText(record.macs),
               percentText(static_cast<double>(record.macs),
                           static_cast<double>(record.cycles) * part.machine.target->macs)});
  }
  return table.str();
}

/// Layers as in a profile, with an SQNR or null.
nlohmann::ordered_json layersWithSqnr(const pipeline::Profile& profile, size_t index) {
  nlohmann::ordered_json layers = layersJson(profile, profile.parts[index]);
  for (auto& layer : layers) layer.emplace("sqnr_db", nullptr);
  return layers;
}

nlohmann::ordered_json toJson(const pipeline::Build& build, int64_t programBytes, const std::string& core) {
  nlohmann::ordered_json json = document("report");
  const Footprint sum = footprintOf(build);
  json["model"] = build.options.model.filename().string();
  json["target"] = build.options.target;
  if (build.machine) {
    json["system_config"] = build.machine->system.name;
    json["memory_mode"] = build.machine->memory.name;
  }
  json["wholly_on_npu"] = build.partitioned.wholly;
  json["cycles"] = sum.cycles;
  json["macs"] = sum.macs;
  json["bytes"] = {
      {"arena", sum.arena}, {"constants", sum.constants}, {"cache", sum.cache}, {"commands", sum.commands}};
  json["program_bytes"] = programBytes;
  if (build.machine) json["clock_hz"] = build.machine->system.clockHz;
  if (const auto time = pipeline::inferenceOf(build, core)) json["inference"] = inferenceJson(*time);
  const pipeline::Profile profile = build.machine ? pipeline::profileBuild(build) : pipeline::Profile{};
  json["parts"] = nlohmann::ordered_json::array();
  for (const compiler::CompiledProgram& part : build.compiled) {
    nlohmann::ordered_json operations = nlohmann::ordered_json::array();
    for (const compiler::OperationRecord& record : part.operations) {
      operations.push_back({{"name", record.name},
                            {"module", record.location ? record.location->modulePath : ""},
                            {"kind", record.kind},
                            {"cycles", record.cycles},
                            {"macs", record.macs},
                            {"block", {record.block.h, record.block.w, record.block.c}},
                            {"command_offset", record.wordOffset * 4}});
    }
    const size_t index = json["parts"].size();
    json["parts"].push_back({{"cycles", part.cycles},
                             {"layers", layersWithSqnr(profile, index)},
                             {"operations", std::move(operations)}});
  }
  json["io"] = programIoJson(build);
  if (build.accuracy && std::isfinite(build.accuracy->decibels))
    json["output_sqnr_db"] = build.accuracy->decibels;
  if (build.quantization) {
    json["quantization"] = quantizationJson(*build.quantization);
    json["fine_sums"] = build.quantization->fineSums;
    json["wide_logarithms"] = build.quantization->wideLogarithms;
  }
  json["cpu"] = nlohmann::ordered_json::array();
  for (const partition::Refusal& refusal : build.partitioned.refusals) {
    json["cpu"].push_back({{"op", refusal.op},
                           {"node", refusal.node},
                           {"module", refusal.modulePath},
                           {"reason", refusal.reason},
                           {"remedy", refusal.remedy}});
  }
  return json;
}

std::string targetLine(const pipeline::Build& build) {
  if (build.ethosN) {
    return fmt::format("  target  {}, {} of SRAM\n", build.ethosN->variant->name,
                       bytesText(build.ethosN->sramBytes));
  }
  if (!build.machine) return "  target  cpu\n";
  const npu::Machine& machine = *build.machine;
  return fmt::format("  target  {}, {}, {}\n", machine.target->name, machine.system.name,
                     machine.memory.name);
}

constexpr size_t kMostNames = 6;

/// What runs where, at what cost, and the accuracy against float. `region`: bytes of constants shared by all
/// NPU parts, 0: each has its own.
std::string workLines(const pipeline::Build& build, const std::optional<pipeline::InferenceTime>& time,
                      int64_t region = 0) {
  Footprint sum = footprintOf(build);
  if (region > 0 && !build.compiled.empty()) sum.constants = region;
  std::string text;
  if (build.machine) {
    const npu::Machine& machine = *build.machine;
    const double clock = machine.system.clockHz;
    text += fmt::format("  NPU     {} in {} part{}, {} MACs\n",
                        sum.operations == 1 ? "1 operation" : fmt::format("{} operations", sum.operations),
                        build.compiled.size(), build.compiled.size() == 1 ? "" : "s", countText(sum.macs));
    text += fmt::format(
        "  cycles  {} estimated ({:.3f} ms at {:.0f} MHz, {} of the MACs used)\n", countText(sum.cycles),
        1e3 * static_cast<double>(sum.cycles) / clock, clock / 1e6,
        percentText(static_cast<double>(sum.macs), static_cast<double>(sum.cycles) * machine.target->macs));
    text += fmt::format("  memory  {}\n",
                        memoryLine(sum, machine, build.options.optimize == compiler::Optimize::Size));
  } else if (build.ethosN) {
    text += ethosNLines(build);
  }
  text += fmt::format("  CPU     {}\n", cpuLine(build));
  text += programIoText(build);
  if (time) text += inferenceAdvice(*time, "  faster  ");
  if (build.quantization && !build.quantization->fineSums.empty())
    text += fmt::format("  codes   16 bits for sums before norms: {}\n",
                        listText(build.quantization->fineSums, kMostNames));
  if (build.quantization && !build.quantization->wideLogarithms.empty())
    text += fmt::format("  codes   32 bits for logarithms and their arguments: {}\n",
                        listText(build.quantization->wideLogarithms, kMostNames));
  if (build.accuracy) text += fmt::format("  quality {}\n", accuracyText(*build.accuracy));
  for (const partition::Refusal& refusal : build.partitioned.refusals) {
    text += fmt::format("          {} ({}): {}{}{}\n", refusal.node, refusal.op, refusal.reason,
                        refusal.remedy.empty() ? "" : " -> ", refusal.remedy);
  }
  return text;
}

/// The chosen sizes, if any.
std::string sizesLine(const pipeline::Options& options) {
  std::string text;
  for (const auto& [symbol, value] : options.sizes)
    text += fmt::format("{}{} = {}", text.empty() ? "  sizes   " : ", ", symbol, value);
  return text.empty() ? text : text + "\n";
}

}  // namespace

std::string summary(const pipeline::Build& build, const std::filesystem::path& output,
                    const std::string& core) {
  const auto time = pipeline::inferenceOf(build, core);
  return (time ? inferenceLine(*time) : "") +
         fmt::format("{} -> {}\n", build.options.model.filename().string(), output.string()) +
         targetLine(build) + sizesLine(build.options) + workLines(build, time);
}

std::string summary(const pipeline::MethodsBuild& build, const std::filesystem::path& output,
                    const std::string& core) {
  std::string models, methods;
  int64_t constants = 0;
  for (size_t m = 0; m < build.methods.size(); ++m) {
    const pipeline::Build& method = build.methods[m];
    const std::string model = method.options.model.filename().string();
    const bool another = m == 0 || method.options.model != build.methods[m - 1].options.model;
    if (another) models += (m == 0 ? "" : ", ") + model;
    const auto time = pipeline::inferenceOf(method, core);
    methods +=
        fmt::format("method {} ({}){}", build.names[m], model, time ? ": " + inferenceLine(*time) : "\n") +
        sizesLine(method.options) +
        workLines(method, time, build.sharesNpuConstants() ? build.npuConstants.together : 0);
    constants += footprintOf(method).constants;
  }
  std::string text =
      fmt::format("{} -> {}\n", models, output.string()) + targetLine(build.methods.front()) + methods;
  text += "shared by methods\n";
  for (const pipeline::SharedVariable& variable : build.shared) {
    text += fmt::format("  state   {}: {} ({})\n", variable.name, variable.type,
                        fmt::join(variable.methods, ", "));
  }
  int64_t shared = 0;
  for (const pte::ByteVector& bytes : build.program.constants) shared += static_cast<int64_t>(bytes.size());
  if (shared > 0) text += fmt::format("  CPU     constants {}, each stored once\n", bytesText(shared));
  if (build.methods.front().options.delivery == pipeline::Delivery::Tosa) {
    text += "  NPU     weights and biases of the TOSA graphs, each stored once\n";
  } else if (build.sharesNpuConstants() || build.npuConstants.apart < constants) {
    // Identical parts count once in both.
    const int64_t own = build.sharesNpuConstants() ? build.npuConstants.apart : constants;
    text += fmt::format("  NPU     constants {}, each stored once: {} if each method had its own\n",
                        bytesText(build.npuConstants.together), bytesText(own));
  } else if (constants > 0) {
    text += fmt::format("  NPU     nothing: each part has its own constants, {}\n", bytesText(constants));
  }
  return text;
}

std::string stageTimes(std::span<const pipeline::StageTime> times) {
  std::string text;
  double total = 0;
  for (const pipeline::StageTime& time : times) {
    text += fmt::format("  {:<10} {:8.1f} ms\n", time.stage, 1e3 * time.seconds);
    total += time.seconds;
  }
  return text + fmt::format("  {:<10} {:8.1f} ms\n", "total", 1e3 * total);
}

std::string cycleBoundLine(const pipeline::Build& build) {
  const auto bound = pipeline::npuCycleBound(build);
  if (!bound || bound->total() == 0) return {};
  const npu::Machine& machine = *build.machine;
  std::string parts = fmt::format("multipliers and output {}", countText(bound->engine));
  for (size_t port = 0; port < bound->ports.size(); ++port) {
    if (bound->ports[port] == 0) continue;
    parts += fmt::format(", {} {}", npu::memoryKindName(machine.system.ports[port].kind),
                         countText(bound->ports[port]));
  }
  const npu::Cycles cycles = pipeline::npuCycles(build);
  const double gap =
      100.0 * static_cast<double>(cycles - bound->total()) / static_cast<double>(bound->total());
  return fmt::format("  bound      {} cycles ({}); the program takes {:.1f} % more\n",
                     countText(bound->total()), parts, gap);
}

std::string reportJson(const pipeline::Build& build, int64_t programBytes, const std::string& core) {
  return documentText(toJson(build, programBytes, core));
}

Status addReport(const pipeline::Build& build, const std::filesystem::path& output, int64_t programBytes,
                 const std::filesystem::path& folder, OutputFiles& files, const std::string& core) {
  CARINA_RETURN_IF_ERROR(files.add(folder / kReportFiles[0], summary(build, output, core), true));
  std::string layers;
  for (const compiler::CompiledProgram& part : build.compiled) layers += layerTable(part) + "\n";
  CARINA_RETURN_IF_ERROR(files.add(folder / kReportFiles[1], layers));
  if (build.quantization) {
    CARINA_RETURN_IF_ERROR(files.add(folder / kReportFiles[2], quantizationText(*build.quantization)));
  }
  return files.add(folder / kReportFiles[3], reportJson(build, programBytes, core));
}

Status addReport(const pipeline::MethodsBuild& build, const std::filesystem::path& output,
                 const std::filesystem::path& folder, OutputFiles& files, const std::string& core) {
  CARINA_RETURN_IF_ERROR(files.add(folder / kReportFiles[0], summary(build, output, core), true));
  for (size_t m = 0; m < build.methods.size(); ++m) {
    CARINA_TRY(const int64_t bytes, pipeline::programBytes(build.methods[m]));
    CARINA_RETURN_IF_ERROR(addReport(build.methods[m], output, bytes, folder / build.names[m], files, core));
  }
  return {};
}

}  // namespace carina::report
