// SPDX-License-Identifier: Apache-2.0
#include "report/run_stats.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "report/at_load.hpp"
#include "report/document.hpp"
#include "report/inference_time.hpp"
#include "report/text.hpp"

namespace carina::report {
namespace {

nlohmann::ordered_json operationJson(const npu::ScheduledCost& operation) {
  return {{"offset", operation.offset},     {"kind", operation.isDma ? "dma" : "kernel"},
          {"start", operation.start},       {"end", operation.end},
          {"cycles", operation.cost.total}, {"bound", npu::boundByName(operation.cost.bound)},
          {"macs", operation.cost.macs}};
}

nlohmann::ordered_json delegateJson(const device::DelegateRun& run) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  json["cycles"] = run.stats.cycles;
  json["pmu_cycles"] = run.pmuCycles;
  json["macs"] = run.stats.macs;
  json["kernel_operations"] = run.stats.kernelOperations;
  json["dma_operations"] = run.stats.dmaOperations;
  const npu::PmuCounts& pmu = run.stats.pmu;
  json["pmu"] = {{"active", pmu.active},
                 {"idle", pmu.idle},
                 {"mac_active", pmu.macActive},
                 {"output_active", pmu.outputActive},
                 {"weight_active", pmu.weightActive},
                 {"port0_read_beats", pmu.readBeats[0]},
                 {"port0_write_beats", pmu.writeBeats[0]},
                 {"port1_read_beats", pmu.readBeats[1]},
                 {"port1_write_beats", pmu.writeBeats[1]}};
  json["operations"] = nlohmann::ordered_json::array();
  for (const npu::ScheduledCost& operation : run.stats.operations)
    json["operations"].push_back(operationJson(operation));
  return json;
}

/// "memory  method 824 B, temporary 7.8 KiB, pool 1 320 B": nonzero items only.
std::string memoryLine(const device::RunStats& stats) {
  std::string text;
  const auto add = [&](std::string_view what, int64_t bytes) {
    if (bytes > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", what, bytesText(bytes));
  };
  add("method", stats.methodBytes);
  add("temporary", stats.temporaryBytes);
  for (size_t i = 0; i < stats.poolBytes.size(); ++i) add(fmt::format("pool {}", i + 1), stats.poolBytes[i]);
  add("fast scratch", stats.fastScratchBytes);
  return text.empty() ? "" : fmt::format("  memory  {}\n", text);
}

std::string casesText(const std::vector<pipeline::CaseResult>& cases) {
  std::string text;
  for (const pipeline::CaseResult& result : cases) {
    text += fmt::format("  {} case {}: {}, largest difference {:.6g}\n", result.method, result.index,
                        result.passed ? "PASS" : "FAIL", result.maxError);
    if (!result.passed) text += fmt::format("      {}\n", result.mismatch);
  }
  return text;
}

std::string methodsText(const std::vector<pipeline::MethodResult>& methods) {
  std::string text;
  for (const pipeline::MethodResult& method : methods) {
    text += fmt::format("  method  {}: {} sample{}", method.method, method.samples,
                        method.samples == 1 ? "" : "s");
    if (method.npuCycles > 0) {
      text += fmt::format(", {} NPU cycles per inference",
                          countText(method.npuCycles / static_cast<int64_t>(method.samples)));
    }
    text += "\n";
  }
  return text;
}

std::string findingsText(const std::vector<std::string>& findings) {
  std::string text;
  for (const std::string& finding : findings) text += fmt::format("  {}\n", finding);
  return text;
}

std::string ethosNText(std::string_view target, const ethosn::RunStats& stats,
                       const std::vector<ethosn::Assumption>& assumptions) {
  std::string text = fmt::format("  NPU     {}: {} MACs, {} MCE and {} PLE cycles by stripes\n", target,
                                 countText(static_cast<int64_t>(stats.macs)),
                                 countText(static_cast<int64_t>(stats.mceCycles)),
                                 countText(static_cast<int64_t>(stats.pleCycles)));
  text += fmt::format("  DRAM    {} read, {} written; SRAM in use up to {}\n",
                      bytesText(static_cast<int64_t>(stats.readBytes)),
                      bytesText(static_cast<int64_t>(stats.writtenBytes)), bytesText(stats.sramBytes));
  for (const ethosn::Assumption assumption : assumptions)
    text += fmt::format("  assumes {}\n", ethosn::assumptionText(assumption));
  return text;
}

/// Totals over the NPU parts of a program.
std::string ethosNText(const device::RunStats& stats) {
  ethosn::RunStats sum;
  std::vector<ethosn::Assumption> assumptions;
  for (const device::EthosNDelegateRun& run : stats.ethosN) {
    const ethosn::RunStats& one = run.result.stats;
    sum.macs += one.macs;
    sum.mceCycles += one.mceCycles;
    sum.pleCycles += one.pleCycles;
    sum.readBytes += one.readBytes;
    sum.writtenBytes += one.writtenBytes;
    sum.sramBytes = std::max(sum.sramBytes, one.sramBytes);
    for (const ethosn::Assumption assumption : run.result.assumptions) {
      if (std::find(assumptions.begin(), assumptions.end(), assumption) == assumptions.end())
        assumptions.push_back(assumption);
    }
  }
  return ethosNText(stats.target, sum, assumptions);
}

nlohmann::ordered_json ethosNJson(const pipeline::RunResult::EthosN& run) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (run.variant != nullptr) json["target"] = run.variant->name;
  json["macs"] = run.stats.macs;
  json["mce_cycles"] = run.stats.mceCycles;
  json["ple_cycles"] = run.stats.pleCycles;
  json["dram_read_bytes"] = run.stats.readBytes;
  json["dram_written_bytes"] = run.stats.writtenBytes;
  json["sram_bytes"] = run.stats.sramBytes;
  json["assumptions"] = nlohmann::ordered_json::array();
  for (const ethosn::Assumption assumption : run.assumptions)
    json["assumptions"].push_back(ethosn::assumptionText(assumption));
  json["agents"] = nlohmann::ordered_json::array();
  for (const ethosn::AgentStats& agent : run.stats.agents) {
    json["agents"].push_back(
        {{"stripes", agent.stripes}, {"bytes", agent.bytes}, {"macs", agent.macs}, {"cycles", agent.cycles}});
  }
  return json;
}

}  // namespace

std::string runStatsText(const pipeline::RunResult& result, const pipeline::InferenceTime* inference) {
  std::string text = inference != nullptr ? inferenceLine(*inference) : "";
  text += fmt::format("{} sample{} in {:.3f} s\n", result.samples, result.samples == 1 ? "" : "s",
                      result.seconds);
  if (!result.method.empty())
    text += fmt::format("  method  {}: its inputs have the shapes of the arrays\n", result.method);
  if (result.atLoad) text += fmt::format("  {}\n", atLoadText(*result.atLoad));
  if (result.correct) {
    text +=
        fmt::format("  top-1   {} ({} of {})\n",
                    percentText(static_cast<double>(*result.correct), static_cast<double>(result.samples)),
                    *result.correct, result.samples);
  }
  text += casesText(result.cases) + methodsText(result.methods) + findingsText(result.findings);
  if (!result.methods.empty()) return text;
  if (const auto& run = result.ethosN) {
    text += ethosNText(run->variant != nullptr ? run->variant->name : "any Ethos-N78", run->stats,
                       run->assumptions);
  }
  if (!result.program) return text;
  const device::RunStats& stats = *result.program;
  if (!stats.ethosN.empty()) return text + ethosNText(stats) + memoryLine(stats);
  if (stats.delegates.empty()) return text;
  int64_t macs = 0;
  for (const device::DelegateRun& run : stats.delegates) macs += run.stats.macs;
  text +=
      fmt::format("  NPU     {} cycles per inference on {} ({}, {}), {} MACs\n", countText(stats.npuCycles),
                  stats.target, stats.systemConfig, stats.memoryMode, countText(macs));
  return text + memoryLine(stats);
}

std::string runStatsJson(const pipeline::RunResult& result, const pipeline::InferenceTime* inference) {
  nlohmann::ordered_json json = document("run");
  json["file"] = result.file.filename().string();
  if (!result.method.empty()) json["method"] = result.method;
  json["samples"] = result.samples;
  json["seconds"] = result.seconds;
  if (result.correct) json["correct"] = *result.correct;
  for (const pipeline::CaseResult& entry : result.cases) {
    json["cases"].push_back({{"method", entry.method},
                             {"case", entry.index},
                             {"passed", entry.passed},
                             {"max_error", entry.maxError},
                             {"mismatch", entry.mismatch}});
  }
  for (const pipeline::MethodResult& method : result.methods) {
    json["methods"].push_back(
        {{"method", method.method}, {"samples", method.samples}, {"npu_cycles", method.npuCycles}});
  }
  if (!result.findings.empty()) json["findings"] = result.findings;
  if (result.atLoad) json["at_load"] = atLoadJson(*result.atLoad);
  if (result.ethosN) json["ethos_n"] = ethosNJson(*result.ethosN);
  if (inference != nullptr) json["inference"] = inferenceJson(*inference);
  if (result.program) {
    const device::RunStats& stats = *result.program;
    json["target"] = stats.target;
    json["system_config"] = stats.systemConfig;
    json["memory_mode"] = stats.memoryMode;
    json["npu_cycles"] = stats.npuCycles;
    json["bytes"] = {{"method", stats.methodBytes},
                     {"temporary", stats.temporaryBytes},
                     {"fast_scratch", stats.fastScratchBytes},
                     {"pools", stats.poolBytes}};
    json["kernels"] = stats.kernels;
    json["delegates"] = nlohmann::ordered_json::array();
    for (const device::DelegateRun& run : stats.delegates) json["delegates"].push_back(delegateJson(run));
    for (const device::EthosNDelegateRun& run : stats.ethosN) {
      json["ethos_n_delegates"].push_back(
          ethosNJson({*ethosn::findVariant(run.target), run.result.stats, run.result.assumptions}));
    }
  }
  return documentText(json);
}

}  // namespace carina::report
