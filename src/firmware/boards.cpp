// SPDX-License-Identifier: Apache-2.0
#include "firmware/boards.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/nearest.hpp"
#include "npu/targets/recorded_memories.hpp"
#include "npu/targets/target_name.hpp"

namespace carina::firmware {

bool BoardMemory::takes(std::string_view kind) const {
  return std::find(holds.begin(), holds.end(), kind) != holds.end();
}

std::span<const Board> boards() {
  static const std::vector<Board> kBoards{
#include "firmware/boards.inc"
  };
  return kBoards;
}

Result<const Board*> findBoardRow(std::string_view name) {
  std::vector<std::string> names;
  for (const Board& board : boards()) {
    if (board.name == name) return &board;
    names.push_back(board.name);
  }
  const std::string nearest = nearestWord(name, names);
  return fail(Code::UnknownName, "there is no board '{}'", name)
      .withRemedy(nearest.empty() ? fmt::format("boards: {}", fmt::join(names, ", "))
                                  : fmt::format("did you mean '{}'? 'carina boards' lists them", nearest));
}

Result<npu::Machine> machineOf(const Board& board, std::string_view target, std::string_view memoryMode) {
  if (board.npus.empty()) return fail(Code::OtherNpu, "{}: {}", board.name, board.note);
  const std::string wanted =
      target.empty() ? board.npus.front() : npu::canonicalTargetName(std::string(target));
  if (std::find(board.npus.begin(), board.npus.end(), wanted) == board.npus.end()) {
    return fail(Code::OtherNpu, "{} has no {}", board.name, wanted)
        .withRemedy(fmt::format("it has {}", fmt::join(board.npus, ", ")));
  }
  const std::string mode = memoryMode.empty() ? board.memoryMode : std::string(memoryMode);
  if (!board.ini.empty()) return npu::makeMachine(wanted, board.systemConfig, mode, {}, board.ini);
  CARINA_TRY(npu::Machine machine, npu::makeMachine(wanted, "", mode));
  if (board.clockHz <= 0) return machine;
  machine.system.clockHz = board.clockHz;
  // Flash is not written, which a configuration file cannot express.
  for (npu::MemoryTiming& port : machine.system.ports) port.maxWrites = std::max(port.maxWrites, 1);
  machine.system.name += fmt::format("_{:.0f}MHz", board.clockHz / 1e6);
  return machine;
}

}  // namespace carina::firmware
