// SPDX-License-Identifier: Apache-2.0
#include "report/fit.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "report/document.hpp"
#include "report/inference_time.hpp"
#include "report/text.hpp"

namespace carina::report {
namespace {

using Json = nlohmann::ordered_json;

std::string blocksText(const firmware::MemoryUse& use) {
  std::string text;
  for (const firmware::FitBlock& block : use.blocks)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", block.what, countText(block.bytes));
  return text;
}

std::string memoryTable(const firmware::Fit& fit) {
  TextTable table({"memory", "what", "used", "available", "free"}, 2);
  for (const firmware::MemoryUse& use : fit.memories) {
    table.add({use.memory.name, blocksText(use), countText(use.used()), countText(use.memory.bytes),
               use.over() > 0 ? "-" + countText(use.over()) : countText(use.free())});
  }
  return table.str();
}

std::string millisecondsText(const firmware::Fit& fit, int64_t cycles) {
  return fit.inference && fit.inference->clockHz > 0
             ? fmt::format(", {:.3f} ms", fit.inference->milliseconds(cycles))
             : "";
}

/// "+12 %"
std::string priceText(const firmware::Fit& fit, int64_t cycles) {
  if (!fit.inference || fit.inference->cycles() == 0) return "";
  const double price = static_cast<double>(cycles) / static_cast<double>(fit.inference->cycles()) - 1;
  return fmt::format(" ({:+.1f} %)", 100 * price);
}

std::string fixesText(const firmware::Fit& fit) {
  if (!fit.isNetwork) {
    return "given the network instead of the program, carina fit tries other memory modes, arenas and types "
           "and says what they cost\n";
  }
  if (fit.fixes.empty()) return "no other options make it smaller on this board\n";
  std::string text = "what would help (cycles of an inference)\n";
  for (const firmware::FitFix& fix : fit.fixes) {
    text += fmt::format("  {}: {}, {} cycles{}{}\n", fix.change,
                        fix.fits ? "fits" : fmt::format("still {} bytes over", countText(fix.over)),
                        countText(fix.cycles), millisecondsText(fit, fix.cycles), priceText(fit, fix.cycles));
  }
  return text;
}

}  // namespace

std::string fitText(const firmware::Fit& fit) {
  std::string text = fit.inference ? inferenceLine(*fit.inference) : "";
  text += fmt::format("{} on {} ({}, {}, {})\n\n", fit.file, fit.board->title, fit.machine.target->name,
                      fit.machine.system.name, fit.machine.memory.name);
  text += memoryTable(fit) + "\n";
  if (fit.constantBytes > 0)
    text += fmt::format("the program holds {} bytes of constants and {} of commands\n",
                        countText(fit.constantBytes), countText(fit.commandBytes));
  if (!fit.board->note.empty()) text += fmt::format("{}: {}\n", fit.board->name, fit.board->note);
  if (fit.fits()) return text + "fits\n";
  for (const firmware::MemoryUse& use : fit.memories) {
    if (use.over() > 0) text += fmt::format("{} is {} bytes over\n", use.memory.name, countText(use.over()));
  }
  if (!fit.peak.empty()) {
    text += fmt::format("arena use peaks at {}:\n", fit.peakStep);
    for (const firmware::PeakTensor& tensor : fit.peak)
      text += fmt::format("  {:>12}  {} {}\n", countText(tensor.bytes), tensor.what, tensor.name);
  }
  return text + fixesText(fit);
}

std::string fitJson(const firmware::Fit& fit) {
  Json json = document("fit");
  json["file"] = fit.file;
  json["board"] = fit.board->name;
  json["target"] = fit.machine.target->name;
  json["system_config"] = fit.machine.system.name;
  json["memory_mode"] = fit.machine.memory.name;
  json["fits"] = fit.fits();
  json["over_bytes"] = fit.over();
  json["memories"] = Json::array();
  for (const firmware::MemoryUse& use : fit.memories) {
    Json blocks = Json::array();
    for (const firmware::FitBlock& block : use.blocks)
      blocks.push_back({{"what", block.what}, {"bytes", block.bytes}});
    json["memories"].push_back({{"name", use.memory.name},
                                {"address", use.memory.address},
                                {"used_bytes", use.used()},
                                {"available_bytes", use.memory.bytes},
                                {"free_bytes", use.free()},
                                {"over_bytes", use.over()},
                                {"blocks", std::move(blocks)}});
  }
  json["constant_bytes"] = fit.constantBytes;
  json["command_bytes"] = fit.commandBytes;
  if (fit.inference) json["inference"] = inferenceJson(*fit.inference);
  json["peak"] = Json::array();
  for (const firmware::PeakTensor& tensor : fit.peak)
    json["peak"].push_back({{"name", tensor.name}, {"what", tensor.what}, {"bytes", tensor.bytes}});
  json["fixes"] = Json::array();
  for (const firmware::FitFix& fix : fit.fixes) {
    json["fixes"].push_back(
        {{"change", fix.change}, {"fits", fix.fits}, {"over_bytes", fix.over}, {"cycles", fix.cycles}});
  }
  return documentText(json);
}

std::string fitCsv(const firmware::Fit& fit) {
  CsvTable table({"memory", "what", "bytes", "available_bytes", "free_bytes", "over_bytes"});
  for (const firmware::MemoryUse& use : fit.memories) {
    const auto row = [&](const std::string& what, int64_t bytes) {
      table.add({use.memory.name, what, fmt::format("{}", bytes), fmt::format("{}", use.memory.bytes),
                 fmt::format("{}", use.free()), fmt::format("{}", use.over())});
    };
    for (const firmware::FitBlock& block : use.blocks) row(block.what, block.bytes);
    row("all", use.used());
  }
  return table.str();
}

std::string boardsText() {
  TextTable table({"board", "NPU", "CPU", "memories", "what it is"}, 5);
  for (const firmware::Board& board : firmware::boards()) {
    std::string memories;
    for (const firmware::BoardMemory& memory : board.memories)
      memories += fmt::format("{}{} {}", memories.empty() ? "" : ", ", memory.name, bytesText(memory.bytes));
    const size_t count = board.npus.size();
    const std::string npu = count == 0   ? "-"
                            : count == 1 ? board.npus.front()
                                         : fmt::format("{} and {} more", board.npus.front(), count - 1);
    table.add({board.name, npu, board.cpu, memories.empty() ? "-" : memories, board.title});
  }
  return table.str();
}

std::string boardsCsv() {
  CsvTable table({"board", "cpu", "npus", "memory", "address", "bytes", "holds", "source", "date"});
  for (const firmware::Board& board : firmware::boards()) {
    const std::string npus = fmt::format("{}", fmt::join(board.npus, " "));
    const auto row = [&](const firmware::BoardMemory& memory) {
      table.add({board.name, board.cpu, npus, memory.name, fmt::format("{:#x}", memory.address),
                 fmt::format("{}", memory.bytes), fmt::format("{}", fmt::join(memory.holds, " ")),
                 board.source, board.date});
    };
    for (const firmware::BoardMemory& memory : board.memories) row(memory);
    if (board.memories.empty())
      table.add({board.name, board.cpu, npus, "", "", "", "", board.source, board.date});
  }
  return table.str();
}

std::string boardsJson() {
  Json json = document("boards");
  json["boards"] = Json::array();
  for (const firmware::Board& board : firmware::boards()) {
    Json memories = Json::array();
    for (const firmware::BoardMemory& memory : board.memories) {
      memories.push_back({{"name", memory.name},
                          {"address", memory.address},
                          {"bytes", memory.bytes},
                          {"holds", memory.holds}});
    }
    Json entry{{"name", board.name}, {"title", board.title}, {"cpu", board.cpu}, {"npus", board.npus}};
    entry["memories"] = std::move(memories);
    const auto machine = firmware::machineOf(board, "", "");
    if (machine) {
      entry["system_config"] = machine->system.name;
      entry["memory_mode"] = machine->memory.name;
      entry["clock_hz"] = machine->system.clockHz;
    }
    if (!board.note.empty()) entry["note"] = board.note;
    entry["source"] = board.source;
    entry["date"] = board.date;
    json["boards"].push_back(std::move(entry));
  }
  return documentText(json);
}

}  // namespace carina::report
