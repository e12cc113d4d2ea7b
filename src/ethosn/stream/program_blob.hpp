// SPDX-License-Identifier: Apache-2.0
// An NPU part in a program (.pte): the compiled network, what it was compiled for, and the argument of the
// call that each of its buffers corresponds to. Little-endian words: "CENP", version 1, bytes of SRAM, the
// target's name and the ENCN container (each: length, bytes, zero padding to a multiple of 4), the arguments
// of the inputs (count, indices), those of the outputs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ethosn/stream/compiled_network.hpp"

namespace carina::ethosn {

/// The delegate id in programs.
inline constexpr std::string_view kProgramBackend = "EthosNBackend";

struct ProgramBlob {
  std::string target;      // "ethos-n78-4tops-4ple"
  uint32_t sramBytes = 0;  // for which the network was compiled
  CompiledNetwork network;
  /// Input i of the network is input inputs[i] of the call; outputs likewise.
  std::vector<uint32_t> inputs, outputs;
  friend bool operator==(const ProgramBlob&, const ProgramBlob&) = default;
};

std::vector<uint8_t> writeProgramBlob(const ProgramBlob& blob);

/// Reads untrusted bytes. The tables of the result have passed checkBuffers, and each argument occurs once.
Result<ProgramBlob> readProgramBlob(ByteSpan bytes);

}  // namespace carina::ethosn
