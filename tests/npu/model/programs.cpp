// SPDX-License-Identifier: Apache-2.0
// Reading and running compiled programs (programs.hpp).
#include "npu/model/programs.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>

#include "npu/isa/payload.hpp"
#include "support/contents.hpp"

namespace carina::test {
namespace {

uint32_t wordAt(ByteSpan bytes, size_t offset) {
  uint32_t value = 0;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

/// Input or output descriptors: a count, then shape[6], element size, offset and region for each.
std::vector<ProgramIo> readIos(ByteSpan block) {
  std::vector<ProgramIo> ios;
  if (block.size() < 4) return ios;
  const uint32_t count = wordAt(block, 0);
  for (uint32_t i = 0; i < count && 4 + (i + 1) * 36 <= block.size(); ++i) {
    const size_t at = 4 + i * 36;
    ProgramIo io;
    io.bytes = wordAt(block, at + 24);
    for (size_t d = 0; d < 6; ++d) io.bytes *= wordAt(block, at + 4 * d);
    io.offset = wordAt(block, at + 28);
    ios.push_back(io);
  }
  return ios;
}

Result<NpuProgram> readBlob(ByteSpan bytes) {
  NpuProgram program;
  std::map<std::string, ByteSpan> blocks;
  size_t at = 0;
  while (at + 32 <= bytes.size()) {
    const char* name = reinterpret_cast<const char*>(bytes.data() + at);
    const std::string key(name, strnlen(name, 16));
    const size_t size = wordAt(bytes, at + 16);
    if (size > bytes.size() - at - 32) return fail(Code::Damaged, "block {} is cut off", key);
    blocks[key] = bytes.subspan(at + 32, size);
    if (key == "vela_end_stream") break;
    at += 32 + (size + 15) / 16 * 16;
  }
  if (blocks.count("vela_end_stream") == 0 || blocks.count("cmd_data") == 0)
    return fail(Code::Damaged, "no complete delegate");
  CARINA_TRY(const npu::Payload payload, npu::readPayload(blocks["cmd_data"]));
  CARINA_TRY(program.target, npu::payloadTarget(payload));
  program.words = payload.words;
  const ByteSpan weights = blocks["weight_data"];
  program.constants.assign(weights.begin(), weights.end());
  program.scratchBytes = wordAt(blocks["scratch_size"], 0);
  program.fastScratchBytes = 0x60000;
  program.inputs = readIos(blocks["inputs"]);
  program.outputs = readIos(blocks["outputs"]);
  return program;
}

}  // namespace

std::vector<std::byte> fileBytes(const std::filesystem::path& path) {
  const std::string text = contentsOf(path);
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

Result<std::vector<NpuProgram>> delegatesIn(const std::filesystem::path& file) {
  const std::vector<std::byte> bytes = fileBytes(file);
  constexpr std::string_view kMarker("vela_bin_stream\0", 16);
  std::vector<NpuProgram> programs;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (size_t at = text.find(kMarker); at != std::string_view::npos; at = text.find(kMarker, at + 1)) {
    CARINA_TRY(NpuProgram program, readBlob(ByteSpan(bytes).subspan(at)));
    program.name = file.filename().string();
    programs.push_back(std::move(program));
  }
  if (programs.empty()) return fail(Code::Damaged, "no delegate in {}", file.string());
  return programs;
}

Result<ProgramRun> runProgram(const NpuProgram& program, const std::vector<ByteSpan>& inputs,
                              const npu::ModelOptions& options) {
  CARINA_TRY(const npu::Machine machine, npu::makeMachine(program.target->name, "", ""));
  if (inputs.size() != program.inputs.size())
    return fail(Code::Damaged, "{} inputs, not {}", program.inputs.size(), inputs.size());
  std::vector<std::byte> scratch(program.scratchBytes, std::byte{0x5a}),
      fast(program.fastScratchBytes, std::byte{0xa5});
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ProgramIo& io = program.inputs[i];
    if (static_cast<int64_t>(inputs[i].size()) != io.bytes || io.offset + inputs[i].size() > scratch.size()) {
      return fail(Code::Damaged, "input {} has {} bytes, the program takes {}", i, inputs[i].size(),
                  io.bytes);
    }
    std::copy(inputs[i].begin(), inputs[i].end(), scratch.begin() + static_cast<std::ptrdiff_t>(io.offset));
  }
  std::vector<std::byte> constants = program.constants;
  const std::array<npu::RegionBytes, 3> regions{
      {{constants, false}, {scratch, true}, {fast.empty() ? scratch : fast, true}}};
  npu::ModelOptions announced = options;
  for (const ProgramIo& io : program.inputs) {
    announced.initialized.push_back({1, io.offset, static_cast<uint64_t>(io.bytes)});
  }
  ProgramRun run;
  run.result = npu::runStream(program.words, machine, regions, announced);
  for (const ProgramIo& io : program.outputs) {
    if (io.offset + static_cast<uint64_t>(io.bytes) > scratch.size())
      return fail(Code::Damaged, "output beyond scratch");
    const auto first = scratch.begin() + static_cast<std::ptrdiff_t>(io.offset);
    run.outputs.emplace_back(first, first + io.bytes);
  }
  return run;
}

}  // namespace carina::test
