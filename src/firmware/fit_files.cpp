// SPDX-License-Identifier: Apache-2.0
// carina_memory.h and the linker script fragment.
#include <algorithm>

#include "firmware/fit.hpp"

namespace carina::firmware {
namespace {

/// "method memory" as part of an identifier.
std::string identifier(std::string_view what, bool upper) {
  std::string name;
  for (const char c : what) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    const char folded = upper && c >= 'a' && c <= 'z'    ? static_cast<char>(c - 'a' + 'A')
                        : !upper && c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a')
                                                         : c;
    name += letter ? folded : '_';
  }
  return name;
}

std::string heading(const Fit& fit, std::string_view open, std::string_view close) {
  std::string file = fit.file;
  // The name must not end the comment or its line.
  for (char& c : file) c = c < ' ' || c == '*' || c == '/' || c == '\\' ? '_' : c;
  return fmt::format("{}Made by carina fit: {} on {} ({}, {}).{}\n", open, file, fit.board->name,
                     fit.machine.target->name, fit.machine.memory.name, close);
}

}  // namespace

std::string memoryHeader(const Fit& fit) {
  std::string text = heading(fit, "/* ", " */") + "#ifndef CARINA_MEMORY_H\n#define CARINA_MEMORY_H\n\n";
  for (const MemoryUse& use : fit.memories) {
    for (const FitBlock& block : use.blocks) {
      const std::string name = identifier(block.what, true);
      text += fmt::format("/* in {}, {} bytes at {:#010x} */\n", use.memory.name, use.memory.bytes,
                          use.memory.address);
      text += fmt::format("#define CARINA_{}_BYTES {}u\n", name, block.bytes);
      text += fmt::format("#define CARINA_IN_{} __attribute__((section(\".carina.{}\"), aligned(16)))\n",
                          name, identifier(block.what, false));
    }
  }
  return text + "\n#endif\n";
}

std::string linkerFragment(const Fit& fit) {
  std::string memories, sections;
  for (const MemoryUse& use : fit.memories) {
    if (use.blocks.empty()) continue;
    const std::string region = "CARINA_" + identifier(use.memory.name, true);
    memories += fmt::format("  {} (rw) : ORIGIN = {:#010x}, LENGTH = {}\n", region, use.memory.address,
                            use.memory.bytes);
    for (const FitBlock& block : use.blocks) {
      const std::string section = ".carina." + identifier(block.what, false);
      const bool loaded = block.what == "program";
      sections += fmt::format("  {} {}: ALIGN(16) {{ KEEP(*({})) }} > {}\n", section,
                              loaded ? "" : "(NOLOAD) ", section, region);
    }
  }
  return heading(fit, "/* ", " */") + "MEMORY\n{\n" + memories + "}\nSECTIONS\n{\n" + sections + "}\n";
}

}  // namespace carina::firmware
