// SPDX-License-Identifier: Apache-2.0
// Compiled networks as text and back. The text holds every byte of the container:
//
//   .network 2.0.0
//   .input id=1 offset=0 size=4096 name="in"
//   .agent 0 ifm_streamer buffer=1 stride1=0xff
//       ; stride1: bytes=256
//   .list dma_rd
//   load_ifm agent=0 sram_addr=0xef0 total_bytes=0xfff  ; offset 0x1b4
//   wait counter=dma_rd value=3
//   .list dma_wr
//   ...
//   .constants
//   00112233...
//   .end
//
// Registers are whole words in hexadecimal. Zero registers and the trailing zeros of arrays are omitted. Text
// after ';' is a comment: offsets, and the meaning of register fields.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "ethosn/stream/compiled_network.hpp"

namespace carina::ethosn {

struct TextOptions {
  bool comments = true;
  bool constants = true;  // without them the text is incomplete, for reading only
};

/// Fails if the command stream cannot be read.
Result<std::string> printNetwork(const CompiledNetwork& network, const TextOptions& options = {});

/// The inverse. Errors name the line.
Result<CompiledNetwork> parseNetwork(std::string_view text);
/// Whether a text begins like the output of printNetwork.
bool isNetworkText(std::string_view text);

}  // namespace carina::ethosn
