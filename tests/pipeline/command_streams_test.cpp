// SPDX-License-Identifier: Apache-2.0
// Command streams of real files: their text assembles to the same bytes, and the checker reports nothing
// about them.
#include "pipeline/command_streams.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.hpp"
#include "npu/isa/assembler.hpp"
#include "npu/isa/payload.hpp"
#include "npu/isa/stream.hpp"
#include "pipeline/file_kind.hpp"
#include "pte/bundle.hpp"
#include "pte/delegate_blob.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"

namespace carina::pipeline {
namespace {

using testing::HasSubstr;

/// A payload that waits and stops.
pte::ByteVector smallPayload(const char* target) {
  npu::StreamWriter writer(**npu::findTarget(target));
  EXPECT_TRUE(writer.add(npu::KernelWait{0}).ok());
  EXPECT_TRUE(writer.add(npu::Stop{}).ok());
  const auto payload = npu::buildPayload(**npu::findTarget(target), writer.words());
  const ByteSpan bytes = std::as_bytes(std::span(*payload));
  return {bytes.begin(), bytes.end()};
}

pte::DelegateBlob smallBlob() {
  pte::DelegateBlob blob;
  blob.payload = smallPayload("ethos-u65-256");
  blob.constants.resize(48);
  blob.scratchBytes = 256;
  blob.inputs.push_back(pte::BlobIo::of({1, 16}, 1, 32));
  return blob;
}

TEST(CommandStreams, KindsAreDetectedByContent) {
  const auto kind = [](std::string_view bytes) { return fileKind(asBytes(bytes)); };
  EXPECT_EQ(kind(std::string_view("\x10\0\0\0ET12....", 12)), FileKind::Program);
  EXPECT_EQ(kind(std::string_view("\x10\0\0\0BP08....", 12)), FileKind::Bundle);
  EXPECT_EQ(kind(std::string_view("\x10\0\0\0TFL3....", 12)), FileKind::Tflite);
  EXPECT_EQ(kind("COP1...."), FileKind::Payload);
  EXPECT_EQ(kind("vela_bin_stream"), FileKind::DelegateBlob);
  EXPECT_EQ(kind("PK\x03\x04"), FileKind::Archive);
  EXPECT_EQ(kind(""), FileKind::Unknown);
  // Damaged files go to the reader that their name suggests.
  EXPECT_EQ(fileKind(asBytes("nonsense"), "x.tflite"), FileKind::Tflite);
  EXPECT_EQ(fileKind(asBytes("PK\x03\x04"), "x.tflite"), FileKind::Archive);
  EXPECT_EQ(fileKind(asBytes("nonsense"), "x.bin"), FileKind::Unknown);
}

TEST(CommandStreams, BlobsDescribeTheirMemory) {
  const pte::ByteVector bytes = pte::buildDelegateBlob(smallBlob());
  const auto streams = require(commandStreams(bytes));
  ASSERT_EQ(streams.size(), 1u);
  const npu::StreamMemory& memory = streams[0].memory;
  EXPECT_EQ(memory.regions[0]->bytes, 48u);
  EXPECT_FALSE(memory.regions[0]->writable);
  EXPECT_EQ(memory.regions[1]->bytes, 256u);
  ASSERT_EQ(memory.initialized.size(), 1u);
  EXPECT_EQ(memory.initialized[0].offset, 32u);
  EXPECT_TRUE(memory.inputsKnown);
  EXPECT_EQ(streams[0].target->name, "ethos-u65-256");
  EXPECT_TRUE(checkText(streams[0]).empty());
}

TEST(CommandStreams, PayloadsAndBareCommands) {
  const pte::ByteVector payload = smallPayload("ethos-u85-512");
  const auto streams = require(commandStreams(payload));
  EXPECT_FALSE(streams[0].memory.inputsKnown);
  const pte::ByteVector bare(payload.begin() + 32, payload.end());
  EXPECT_THAT(commandStreams(bare).error().str(), HasSubstr("--target"));
  EXPECT_THAT(commandStreams(bare, "ethos-u99").error().str(), HasSubstr("unknown target"));
  const auto words = require(commandStreams(bare, "ethos-u85-512"));
  EXPECT_EQ(words[0].words, streams[0].words);
  EXPECT_THAT(commandStreams(ByteSpan(bare).first(5), "ethos-u85-512").error().str(), HasSubstr("5 bytes"));
}

TEST(CommandStreams, ABlobWithExternalCommandsHasNone) {
  pte::DelegateBlob blob = smallBlob();
  blob.payload.clear();
  blob.payloadKey = std::string(64, 'a');
  const auto streams = require(commandStreams(pte::buildDelegateBlob(blob)));
  EXPECT_TRUE(streams.empty());
}

/// Every stream of a file: text, back to bytes, checker.
void expectSound(const std::filesystem::path& file, int& count) {
  SCOPED_TRACE(file.string());
  const auto streams = require(commandStreams(file));
  for (const CommandStream& stream : streams) {
    const auto text = require(streamText(stream));
    const auto assembly = require(npu::assemble(text));
    const ByteSpan bytes = std::as_bytes(std::span(assembly.bytes));
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), stream.payload.begin(), stream.payload.end()));
    for (const std::string& finding : checkText(stream)) ADD_FAILURE() << finding;
    ++count;
  }
}

TEST(CommandStreams, RecordedFilesRoundTripAndAreClean) {
  CARINA_NEED_FIXTURES(fixtures);
  int count = 0;
  for (const char* suffix : {".pte", ".tflite", "payload.bin"}) {
    for (const auto& file : test::filesIn(fixtures / "vectors", suffix)) {
      if (!test::isMiscompiled(file)) expectSound(file, count);
    }
  }
  EXPECT_GE(count, 120);
}

}  // namespace
}  // namespace carina::pipeline
