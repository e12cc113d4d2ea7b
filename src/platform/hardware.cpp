// SPDX-License-Identifier: Apache-2.0
#include "platform/hardware.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/file.hpp"
#include "npu/targets/recorded_memories.hpp"

namespace carina::platform {
namespace {

/// The defaults of the board's FVP.
constexpr int kUsualMacsU55 = 128, kUsualMacs = 256;
constexpr int kLargestU55 = 256;

bool carries(const Board& board, npu::Family family) {
  return std::find(board.npus.begin(), board.npus.end(), family) != board.npus.end();
}

std::string targetFor(const Board& board, int macs) {
  if (carries(board, npu::Family::U85)) return fmt::format("ethos-u85-{}", macs == 0 ? kUsualMacs : macs);
  // U55 and U65 both exist with 256: the smaller NPU is chosen, --target selects the other.
  if (macs > kLargestU55 || !carries(board, npu::Family::U55))
    return fmt::format("ethos-u65-{}", macs == 0 ? kUsualMacs : macs);
  return fmt::format("ethos-u55-{}", macs == 0 ? kUsualMacsU55 : macs);
}

std::string boardNames() {
  std::vector<std::string_view> names;
  for (const Board& board : allBoards()) names.push_back(board.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

/// "corstone-310 carries Ethos-U55 or Ethos-U65".
std::string npusOf(const Board& board) {
  std::vector<std::string_view> names;
  for (const npu::Family family : board.npus) names.push_back(npu::familyName(family));
  return fmt::format("{} carries {}", board.name, fmt::join(names, " or "));
}

}  // namespace

Result<Hardware> chooseHardware(const HardwareChoice& choice, const std::optional<ImageNote>& note) {
  if (choice.platform.empty() && !note)
    return fail(Code::BadOption, "the image does not say which board it is for")
        .withRemedy("pass --platform with one of " + boardNames());
  if (note && !choice.platform.empty() && choice.platform != note->platform)
    return fail(Code::OtherNpu, "the image was built for {}", note->platform)
        .withRemedy("pass --platform " + note->platform);
  Hardware hardware;
  CARINA_TRY(hardware.board, findBoard(choice.platform.empty() ? note->platform : choice.platform));
  const Board& board = *hardware.board;
  const bool noted = note && !note->target.empty() && note->target != "cpu";
  std::string name = choice.target;
  if (name.empty() && (choice.macs != 0 || !noted)) name = targetFor(board, choice.macs);
  if (name.empty()) name = note->target;
  CARINA_TRY(const npu::Target* target, npu::findTarget(name));
  if (!carries(board, target->family)) {
    return fail(Code::UnknownName, "{} has no {}", board.name, npu::familyName(target->family))
        .withRemedy(npusOf(board));
  }
  // The image's memory system applies if the NPU is of the same family.
  std::string system = choice.systemConfig, mode = choice.memoryMode, memories;
  if (noted) {
    const auto builtFor = npu::findTarget(note->target);
    if (builtFor.ok() && (*builtFor)->family == target->family) {
      if (system.empty()) system = note->systemConfig;
      if (mode.empty()) mode = note->memoryMode;
      memories = note->memories;
    }
  }
  CARINA_TRY(hardware.machine, npu::makeMachine(name, system, mode, {}, memories));
  return hardware;
}

Result<Hardware> chooseHardware(const HardwareChoice& choice, const std::filesystem::path& file) {
  CARINA_TRY(const auto mapped, MappedFile::open(file));
  auto hardware = chooseHardware(choice, readImageNote(mapped->bytes()));
  if (!hardware.ok()) return std::move(hardware).error().inFile(file.string());
  return hardware;
}

}  // namespace carina::platform
