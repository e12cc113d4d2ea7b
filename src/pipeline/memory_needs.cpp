// SPDX-License-Identifier: Apache-2.0
#include "pipeline/memory_needs.hpp"

#include <algorithm>

#include "platform/board.hpp"

namespace carina::pipeline {
namespace {

/// What helps if a program needs more than `available` bytes of Sram.
std::string remedyFor(const SramNeeds& needs, int64_t available, compiler::Optimize optimize) {
  const bool arenaMayShrink =
      needs.arena > 0 && optimize != compiler::Optimize::Size && needs.total() - needs.arena < available;
  std::string remedy;
  if (arenaMayShrink)
    remedy = "--optimize size or --arena-size runs layers in stripes or row tiles in a smaller arena; ";
  return remedy + "other memory modes ('carina targets') keep constants or the arena elsewhere";
}

/// Arm's board that carries an NPU of this family.
const platform::Board& boardOf(npu::Family family) {
  const auto board = platform::findBoard(family == npu::Family::U85 ? "corstone-320" : "corstone-300");
  CARINA_CHECK(board.ok(), "the boards of the families are known");
  return **board;
}

/// SRAM of the board itself: Corstone-300 on the MPS3 has 2 MiB (`carina boards`), its model 32.
int64_t sramOf(const platform::Board& board) {
  constexpr int64_t kCorstone300 = 2 << 20;
  if (board.name == "corstone-300") return kCorstone300;
  int64_t bytes = 0;
  for (const platform::RamBlock& block : board.ram) {
    if (block.name == "SRAM") bytes += static_cast<int64_t>(block.size);
  }
  return bytes;
}

}  // namespace

std::string SramNeeds::str() const {
  std::string text;
  const auto add = [&](std::string_view what, int64_t bytes) {
    if (bytes > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", what, bytes);
  };
  add("arena", arena);
  add("cache", cache);
  add("constants and commands", constants);
  return text;
}

SramNeeds sramNeeds(const Build& build) {
  SramNeeds needs;
  if (!build.machine) return needs;
  const auto inSram = [&](npu::Area area) {
    return build.machine->timing(area).kind == npu::MemoryKind::Sram;
  };
  for (const compiler::CompiledProgram& part : build.compiled) {
    if (inSram(npu::Area::Arena)) needs.arena = std::max(needs.arena, part.arenaBytes);
    if (inSram(npu::Area::Cache)) needs.cache = std::max(needs.cache, part.cacheBytes);
    if (inSram(npu::Area::Constants))
      needs.constants += static_cast<int64_t>(part.constants.size() + 4 * part.commands.size());
  }
  return needs;
}

Status checkSram(Build& build) {
  const SramNeeds needs = sramNeeds(build);
  const std::string file = build.options.model.string();
  if (build.options.sramLimit > 0) {
    if (needs.total() <= build.options.sramLimit) return {};
    return Error(fail(Code::DoesNotFit, "the program needs {} bytes of Sram ({}), the limit is {}",
                      needs.total(), needs.str(), build.options.sramLimit))
        .withRemedy(remedyFor(needs, build.options.sramLimit, build.options.optimize))
        .inFile(file);
  }
  if (needs.total() == 0) return {};
  const platform::Board& board = boardOf(build.machine->target->family);
  const int64_t available = sramOf(board);
  if (needs.total() <= available) return {};
  build.warnings.push_back(
      {fmt::format(
           "needs {} bytes of Sram ({}), but {} has {}; cycles are estimated as if all of it were available",
           needs.total(), needs.str(), board.name, available),
       remedyFor(needs, available, build.options.optimize), file, ""});
  return {};
}

}  // namespace carina::pipeline
