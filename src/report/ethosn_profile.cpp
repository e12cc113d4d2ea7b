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

/// Arm's number for a PLE kernel; 0 if there is none, as in Arm's estimate.
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
        "{} cycles by the metric of Arm's planner; DRAM: constants {}, intermediates {}, commands {}; SRAM "
        "in use up to {}\n",
        count(total), bytes(part.constantBytes), bytes(part.intermediateBytes), bytes(part.commandBytes),
        bytesText(part.sramBytes));
  }
  text += fmt::format("\n{}: {} cycles in {} part{}", profile.target.variant->name, count(profile.cycles()),
                      profile.parts.size(), profile.parts.size() == 1 ? "" : "s");
  text += fmt::format("; {} with passes overlapping as far as their waits allow",
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

namespace {

std::string cell(std::string_view text) {
  return fmt::format("<td>{}</td>", markupEscaped(text));
}

std::string passRow(const pipeline::EthosNPassCost& pass, uint64_t total) {
  const double share = total == 0 ? 0 : 100 * static_cast<double>(pass.cycles) / static_cast<double>(total);
  std::string row = "<tr>" + cell(pass.operation) + cell(pass.mce.empty() ? "-" : pass.mce) +
                    cell(pass.ple.empty() ? "copy" : pass.ple) + cell(count(pass.stripes)) +
                    cell(count(pass.cycles));
  row += fmt::format("<td><div class=\"bar\" style=\"width:{:.1f}%\"></div>{:.1f} %</td>", share, share);
  row += cell(count(pass.macs)) + cell(count(pass.mceCycles)) + cell(count(pass.pleCycles));
  for (const pipeline::EthosNTraffic* traffic : {&pass.input, &pass.weights, &pass.output})
    row += cell(bytes(traffic->bytes));
  return row + "</tr>\n";
}

std::string partSection(const pipeline::EthosNPartCost& part, size_t index) {
  const uint64_t total = part.sum(&pipeline::EthosNPassCost::cycles);
  std::string text = fmt::format(
      "<h2>Part {}</h2>\n<p>{} cycles; {} with overlapping passes. Constants {}, intermediates {}, "
      "commands {}; SRAM in use up to {}.</p>\n<table>\n<tr>",
      index, count(total), count(part.overlappedCycles), bytes(part.constantBytes),
      bytes(part.intermediateBytes), bytes(part.commandBytes), bytesText(part.sramBytes));
  for (const char* head : {"operation", "MCE", "PLE", "stripes", "cycles", "share", "MACs", "MCE cycles",
                           "PLE cycles", "in", "weights", "out"})
    text += fmt::format("<th>{}</th>", head);
  text += "</tr>\n";
  for (const pipeline::EthosNPassCost& pass : part.passes) text += passRow(pass, total);
  return text + "</table>\n";
}

constexpr std::string_view kStyle =
    "body{font:15px/1.45 system-ui,sans-serif;margin:2em auto;max-width:75em;padding:0 1em}"
    "table{border-collapse:collapse;width:100%;font-size:13px}"
    "th,td{padding:.25em .6em;text-align:right;border-bottom:1px solid #ddd;position:relative}"
    "th:first-child,td:first-child,th:nth-child(2),td:nth-child(2),th:nth-child(3),td:nth-child(3){text-"
    "align:left}"
    ".bar{position:absolute;left:0;top:15%;height:70%;background:#4a8fd733}"
    "@media(prefers-color-scheme:dark){body{background:#181818;color:#ddd}th,td{border-color:#444}}";

}  // namespace

std::string ethosNProfilePage(const pipeline::EthosNProfile& profile) {
  const std::string name = markupEscaped(profile.file.filename().string());
  std::string text = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{} on "
      "{}</title><style>{}</style></head><body>\n<h1>{} on {}</h1>\n",
      name, profile.target.variant->name, kStyle, name, profile.target.variant->name);
  text += fmt::format(
      "<p>{} cycles by the metric of Arm's planner in {} part{}; {} with passes overlapping as far as their "
      "waits allow{}. No clock rate of an Ethos-N is public.</p>\n",
      count(profile.cycles()), profile.parts.size(), profile.parts.size() == 1 ? "" : "s",
      count(profile.overlappedCycles()),
      profile.cpuCycles > 0 ? fmt::format("; about {} cycles on the CPU", countText(profile.cpuCycles)) : "");
  for (size_t i = 0; i < profile.parts.size(); ++i) text += partSection(profile.parts[i], i);
  if (!profile.refusals.empty()) {
    text += "<h2>On the CPU</h2>\n<ul>\n";
    for (const partition::Refusal& refusal : profile.refusals)
      text += fmt::format("<li>{} ({}): {}</li>\n", markupEscaped(refusal.node), markupEscaped(refusal.op),
                          markupEscaped(refusal.reason));
    text += "</ul>\n";
  }
  return text + "</body></html>\n";
}

}  // namespace carina::report
