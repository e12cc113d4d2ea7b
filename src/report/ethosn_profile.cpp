// SPDX-License-Identifier: Apache-2.0
#include "report/ethosn_profile.hpp"

#include <map>
#include <nlohmann/json.hpp>

#include "report/document.hpp"
#include "report/text.hpp"

namespace carina::report {
namespace {

using Json = nlohmann::ordered_json;

std::string count(uint64_t value) {
  return countText(static_cast<int64_t>(value));
}

std::string bytes(uint64_t value) {
  return value == 0 ? "-" : bytesText(static_cast<int64_t>(value));
}

Json trafficJson(const pipeline::EthosNTraffic& traffic) {
  return {{"DramParallelBytes", traffic.parallel()},
          {"DramNonParallelBytes", traffic.alone()},
          {"SramBytes", traffic.sramBytes},
          {"NumCentralStripes", traffic.stripes},
          {"NumBoundaryStripes", 0},
          {"NumReloads", traffic.reloads()}};
}

/// Arm's number for a PLE kernel; 0 where there is none, as in Arm's estimate.
int numberOf(std::optional<ethosn::PleOperation> operation) {
  using Op = ethosn::PleOperation;
  static const std::map<Op, int> kNumbers = {
      {Op::Addition, 0},   {Op::AdditionRescale, 1}, {Op::AvgPool3x3, 2},    {Op::Interleave2x2, 4},
      {Op::MaxPool2x2, 5}, {Op::MaxPool3x3Even, 6},  {Op::MaxPool3x3Odd, 7}, {Op::MeanXy7x7, 8},
      {Op::MeanXy8x8, 9},  {Op::Passthrough, 10},    {Op::Sigmoid, 11},      {Op::TransposeXy, 12},
      {Op::LeakyRelu, 13}, {Op::Downsample2x2, 14},  {Op::MaxPool1d, 15},    {Op::Multiplication, 16}};
  return operation ? kNumbers.at(*operation) : 0;
}

Json passJson(const pipeline::EthosNPassCost& pass, size_t index) {
  Json json = Json::object();
  json["OperationIds"] = Json::array({index});
  json["ParentIds"] = Json::array();
  json["Input"] = trafficJson(pass.input);
  json["Output"] = trafficJson(pass.output);
  json["Weights"] = trafficJson(pass.weights);
  json["Weights"]["CompressionSavings"] =
      pass.plainWeightBytes > 0
          ? 1 - static_cast<double>(pass.streamBytes) / static_cast<double>(pass.plainWeightBytes)
          : 0.0;
  json["Mce"] = {{"Operations", 2 * pass.macs}, {"CycleCount", pass.mceCycles}};
  json["Ple"] = {{"NumOfPatches", pass.plePatches}, {"Operation", numberOf(pass.pleOperation)}};
  json["operation"] = pass.operation;
  json["mce"] = pass.mce;
  json["ple"] = pass.ple;
  json["ple_cycles"] = pass.pleCycles;
  json["cycles"] = pass.cycles;
  return json;
}

}  // namespace

std::string ethosNProfileText(const pipeline::EthosNProfile& profile) {
  std::string text;
  for (size_t i = 0; i < profile.parts.size(); ++i) {
    const pipeline::EthosNPartCost& part = profile.parts[i];
    if (profile.parts.size() > 1) text += fmt::format("{}part {}\n", i == 0 ? "" : "\n", i);
    const uint64_t total = part.sum(&pipeline::EthosNPassCost::cycles);
    TextTable table({"operation", "MCE", "PLE", "stripes", "cycles", "share", "MACs", "MCE cycles",
                     "PLE cycles", "in", "weights", "out"},
                    3);
    for (const pipeline::EthosNPassCost& pass : part.passes) {
      table.add({pass.operation, pass.mce.empty() ? "-" : pass.mce, pass.ple.empty() ? "copy" : pass.ple,
                 count(pass.stripes), count(pass.cycles),
                 percentText(static_cast<double>(pass.cycles), static_cast<double>(total)), count(pass.macs),
                 count(pass.mceCycles), count(pass.pleCycles), bytes(pass.input.bytes),
                 bytes(pass.weights.bytes), bytes(pass.output.bytes)});
    }
    text += table.str();
    text += fmt::format(
        "{} cycles by the measure of Arm's planner; DRAM: constants {}, intermediates {}, commands {}; SRAM "
        "in "
        "use up to {}\n",
        count(total), bytes(part.constantBytes), bytes(part.intermediateBytes), bytes(part.commandBytes),
        bytesText(part.sramBytes));
  }
  text += fmt::format("\n{}: {} cycles in {} part{}", profile.target.variant->name, count(profile.cycles()),
                      profile.parts.size(), profile.parts.size() == 1 ? "" : "s");
  text += fmt::format("; {} with passes beside each other as the waits let them run",
                      count(profile.overlappedCycles()));
  text += profile.cpuCycles > 0 ? fmt::format(", about {} on the CPU\n", countText(profile.cpuCycles)) : "\n";
  for (const partition::Refusal& refusal : profile.refusals)
    text += fmt::format("  on the CPU: {} ({}): {}\n", refusal.node, refusal.op, refusal.reason);
  return text;
}

std::string ethosNProfileJson(const pipeline::EthosNProfile& profile) {
  Json json = document("profile_ethos_n");
  json["file"] = profile.file.filename().string();
  json["target"] = profile.target.variant->name;
  json["sram_bytes"] = profile.target.sramBytes;
  json["cycles"] = profile.cycles();
  json["overlapped_cycles"] = profile.overlappedCycles();
  json["cpu_cycles"] = profile.cpuCycles;
  json["parts"] = Json::array();
  for (const pipeline::EthosNPartCost& part : profile.parts) {
    Json stream = Json::array();
    for (const pipeline::EthosNPassCost& pass : part.passes) stream.push_back(passJson(pass, stream.size()));
    json["parts"].push_back({{"cycles", part.sum(&pipeline::EthosNPassCost::cycles)},
                             {"overlapped_cycles", part.overlappedCycles},
                             {"sram_in_use", part.sramBytes},
                             {"constant_bytes", part.constantBytes},
                             {"intermediate_bytes", part.intermediateBytes},
                             {"command_bytes", part.commandBytes},
                             {"Stream", std::move(stream)}});
  }
  json["Issues"] = Json::object();
  for (const partition::Refusal& refusal : profile.refusals) json["Issues"][refusal.node] = refusal.reason;
  json["cpu"] = Json::array();
  for (const partition::Refusal& refusal : profile.refusals) {
    json["cpu"].push_back({{"op", refusal.op}, {"node", refusal.node}, {"reason", refusal.reason}});
  }
  return documentText(json);
}

std::string ethosNProfileCsv(const pipeline::EthosNProfile& profile) {
  CsvTable table({"part", "operation", "mce", "ple", "stripes", "cycles", "macs", "mce_cycles", "ple_cycles",
                  "input_bytes", "weight_bytes", "output_bytes"});
  for (size_t i = 0; i < profile.parts.size(); ++i) {
    for (const pipeline::EthosNPassCost& pass : profile.parts[i].passes) {
      const auto text = [](uint64_t value) { return fmt::format("{}", value); };
      table.add({text(i), pass.operation, pass.mce, pass.ple, text(pass.stripes), text(pass.cycles),
                 text(pass.macs), text(pass.mceCycles), text(pass.pleCycles), text(pass.input.bytes),
                 text(pass.weights.bytes), text(pass.output.bytes)});
    }
  }
  return table.str();
}

}  // namespace carina::report
