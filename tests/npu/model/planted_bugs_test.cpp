// SPDX-License-Identifier: Apache-2.0
// A valid stream, and copies with one mistake of each class planted in the text. The checker must report each
// mistake at the wrong command, and nothing for the valid stream.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "npu/isa/assembler.hpp"
#include "npu/isa/disassembler.hpp"
#include "npu/isa/stream.hpp"
#include "npu/model/check_stream.hpp"
#include "npu/model/small_program.hpp"
#include "support/require.hpp"

namespace carina::test {
namespace {

using namespace npu;
using testing::HasSubstr;

/// A DMA loads data, two consecutive operations process it, then another DMA overwrites their input.
struct ValidStream {
  std::vector<uint32_t> words;
  StreamMemory memory;
};
ValidStream makeValidStream(const char* target) {
  SmallProgram program(target);
  const std::vector<int64_t> zeros(16, 0);
  KernelOperation first = program.copy(1, 1, 16, ElementType::Int8, zeros);
  KernelOperation second = program.copy(1, 1, 16, ElementType::Int8, zeros);
  second.ifm = first.ofm;
  DmaOperation load;
  load.source.region = 0;
  load.source.address = 0x20;
  load.destination.region = 1;
  load.destination.address = first.ifm.base[0];
  load.length = 16;
  DmaOperation reload = load;
  reload.source.address = 0x40;
  program.add(load);
  program.add(DmaWait{0});
  program.add(first);
  program.add(second);
  program.add(KernelWait{0});
  program.add(reload);
  program.add(DmaWait{0});
  program.add(Stop{});
  ValidStream valid;
  valid.words = program.words();
  valid.memory.regions[0] = {{0x80, false}};
  valid.memory.regions[1] = {{program.arena().size(), true}};
  return valid;
}

/// Replaces the first `from` in the text, searching after the first `after` if that is given.
std::string edited(std::string text, std::string_view from, std::string_view to,
                   std::string_view after = {}) {
  const size_t start = after.empty() ? 0 : text.find(after);
  EXPECT_NE(start, std::string::npos) << after;
  const size_t at = text.find(from, start);
  EXPECT_NE(at, std::string::npos) << from;
  if (at != std::string::npos) text.replace(at, from.size(), to);
  return text;
}

std::vector<Finding> check(const ValidStream& valid, const char* target, const std::string& text) {
  const auto assembly = require(assemble(text));
  return checkStream(assembly.stream, **findTarget(target), valid.memory);
}

class PlantedBugs : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    valid_ = makeValidStream(GetParam());
    text_ = disassembleStream(valid_.words, (*findTarget(GetParam()))->family, {false});
    ASSERT_TRUE(check(valid_, GetParam(), text_).empty());
  }

  /// Expects a finding of `kind` in the edited stream, whose message contains `part`, at the command
  /// `command`.
  void expect(const std::string& text, Finding::Kind kind, std::string_view part, std::string_view command) {
    const auto findings = check(valid_, GetParam(), text);
    const auto assembly = assemble(text);
    const auto found =
        std::find_if(findings.begin(), findings.end(), [&](const Finding& f) { return f.kind == kind; });
    ASSERT_NE(found, findings.end()) << "no finding of kind " << findingKindName(kind) << " among "
                                     << findings.size();
    EXPECT_THAT(found->message, HasSubstr(part));
    if (command.empty()) return;
    const Family family = (*findTarget(GetParam()))->family;
    const auto at = require(readCommand(assembly->stream, found->offset / 4, family));
    EXPECT_EQ(at.info->name, command);
  }

  ValidStream valid_;
  std::string text_;
};

TEST_P(PlantedBugs, MissingDmaWait) {
  expect(edited(text_, "NPU_OP_DMA_WAIT k=0\n", ""), Finding::Kind::Hazard, "DMA_WAIT is missing",
         "NPU_OP_POOL");
}
TEST_P(PlantedBugs, MissingKernelWait) {
  expect(edited(text_, "NPU_OP_KERNEL_WAIT n=0\n", ""), Finding::Kind::Hazard, "KERNEL_WAIT is missing",
         "NPU_OP_DMA_START");
}
TEST_P(PlantedBugs, KernelWaitThatWaitsForTooFew) {
  // Of the two operations only the older one reads the memory that the DMA writes: waiting until one is left
  // suffices.
  EXPECT_TRUE(
      check(valid_, GetParam(), edited(text_, "NPU_OP_KERNEL_WAIT n=0", "NPU_OP_KERNEL_WAIT n=1")).empty());
}
TEST_P(PlantedBugs, BlockdepTooLarge) {
  expect(edited(text_, "NPU_SET_BLOCKDEP blockdep=0", "NPU_SET_BLOCKDEP blockdep=2"), Finding::Kind::Hazard,
         "BLOCKDEP 2", "NPU_OP_POOL");
}
TEST_P(PlantedBugs, DmaBeyondItsRegion) {
  expect(edited(text_, "NPU_SET_DMA0_SRC addr=0x20", "NPU_SET_DMA0_SRC addr=0x80"),
         Finding::Kind::OutOfRegion, "0x80..0x8f", "NPU_OP_DMA_START");
}
TEST_P(PlantedBugs, WriteToConstants) {
  expect(edited(text_, "NPU_SET_DMA0_DST_REGION region=1", "NPU_SET_DMA0_DST_REGION region=0"),
         Finding::Kind::OutOfRegion, "read-only", "NPU_OP_DMA_START");
}
TEST_P(PlantedBugs, FeatureMapBeyondItsRegion) {
  expect(edited(text_, "NPU_SET_OFM_BASE0 addr=0x", "NPU_SET_OFM_BASE0 addr=0x10000"),
         Finding::Kind::OutOfRegion, "OFM", "NPU_OP_POOL");
}
TEST_P(PlantedBugs, MisalignedBase) {
  // 16-bit elements at an odd address.
  SmallProgram program(GetParam());
  KernelOperation op = program.copy(1, 1, 4, ElementType::Int16, {1, 2, 3, 4});
  op.ofm.base[0] += 1;
  program.add(op);
  program.add(Stop{});
  valid_.memory.regions[1] = {{program.arena().size(), true}};
  valid_.memory.initialized = {{1, 0, program.arena().size()}};
  expect(disassembleStream(program.words(), program.target().family, {false}), Finding::Kind::Alignment,
         "OFM base 0", "NPU_OP_POOL");
}
TEST_P(PlantedBugs, IllegalBlock) {
  const bool u85 = (*findTarget(GetParam()))->isU85();
  const std::string from = "NPU_SET_OFM_BLK_WIDTH_M1 width=";
  const size_t at = text_.find(from) + from.size();
  std::string text = text_;
  text.replace(at, text.find('\n', at) - at, u85 ? "128" : "64");
  const std::string height = "NPU_SET_OFM_BLK_HEIGHT_M1 height=";
  const size_t next = text.find(height) + height.size();
  text.replace(next, text.find('\n', next) - next, u85 ? "128" : "32");
  expect(text, Finding::Kind::BlockConfig, "", "NPU_OP_POOL");
}
TEST_P(PlantedBugs, UseBeforeSet) {
  const size_t at = text_.find("NPU_SET_OFM_ZERO_POINT");
  ASSERT_NE(at, std::string::npos);
  std::string text = text_;
  text.erase(at, text.find('\n', at) - at + 1);
  expect(text, Finding::Kind::StaleState, "NPU_SET_OFM_ZERO_POINT", "NPU_OP_POOL");
}
TEST_P(PlantedBugs, ReadOfUninitializedMemory) {
  expect(edited(text_, "NPU_OP_DMA_START\n", ""), Finding::Kind::Uninitialized, "IFM", "NPU_OP_POOL");
  valid_.memory.inputsKnown = false;
  EXPECT_TRUE(check(valid_, GetParam(), edited(text_, "NPU_OP_DMA_START\n", "")).empty());
}
TEST_P(PlantedBugs, NoStopAndNoCommand) {
  const size_t at = text_.find("NPU_OP_STOP");
  expect(text_.substr(0, at), Finding::Kind::Command, "without STOP", "");
  expect(edited(text_, "NPU_OP_KERNEL_WAIT n=0", ".word 0x000003ff"), Finding::Kind::Command,
         "does not exist", "");
}

INSTANTIATE_TEST_SUITE_P(Families, PlantedBugs,
                         testing::Values("ethos-u55-128", "ethos-u65-256", "ethos-u85-256"));

}  // namespace
}  // namespace carina::test
