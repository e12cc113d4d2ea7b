// SPDX-License-Identifier: Apache-2.0
// The driver's validation of command streams refuses exactly the streams that access memory outside their
// regions, according to the host's stream checker.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "carina/ethosu_validator.hpp"
#include "fake_device.hpp"
#include "format/ethosu_commands.hpp"
#include "npu/isa/disassembler.hpp"
#include "npu/model/check_stream.hpp"
#include "npu/model/small_program.hpp"
#include "npu/random_operation.hpp"
#include "pipeline/command_streams.hpp"
#include "runtime/program_support.hpp"
#include "support/fixtures.hpp"

namespace carina::rt {
namespace {

namespace set = format::ethosu_set;

TEST(Validator, KnowsTheRegistersOfEachNpu) {
  const npu::Family families[] = {npu::Family::U55, npu::Family::U65, npu::Family::U85};
  for (size_t product = 0; product < 3; ++product) {
    uint32_t expected[2][4] = {};
    const npu::isa::Architecture& architecture = npu::architecture(families[product]);
    for (uint16_t n = 0; n < architecture.commandCount; ++n) {
      const npu::isa::Command& command = architecture.commands[n];
      if (command.operation) continue;
      const uint32_t number = command.twoWords ? command.opcode : command.opcode - 0x100u;
      ASSERT_TRUE(set::hasSlot(number)) << command.name;
      expected[command.twoWords ? 1 : 0][set::slot(number) / 32] |= 1u << set::slot(number) % 32;
    }
    for (size_t wide = 0; wide < 2; ++wide) {
      for (size_t i = 0; i < 4; ++i) EXPECT_EQ(set::kExist[product][wide][i], expected[wide][i]) << product;
    }
  }
}

TEST(Validator, RegistersMatchTheTables) {
  using npu::isa::Cmd0;
  using npu::isa::Cmd1;
  const std::pair<uint32_t, Cmd0> one[] = {
      {set::kIfmPadTop, Cmd0::SetIfmPadTop},
      {set::kIfmPadLeft, Cmd0::SetIfmPadLeft},
      {set::kIfmPadRight, Cmd0::SetIfmPadRight},
      {set::kIfmPadBottom, Cmd0::SetIfmPadBottom},
      {set::kIfmDepthM1, Cmd0::SetIfmDepthM1},
      {set::kIfmPrecision, Cmd0::SetIfmPrecision},
      {set::kIfmUpscale, Cmd0::SetIfmUpscale},
      {set::kIfmBroadcast, Cmd0::SetIfmBroadcast},
      {set::kIfmWidth0M1, Cmd0::SetIfmWidth0M1},
      {set::kIfmHeight0M1, Cmd0::SetIfmHeight0M1},
      {set::kIfmHeight1M1, Cmd0::SetIfmHeight1M1},
      {set::kIfmRegion, Cmd0::SetIfmRegion},
      {set::kOfmWidthM1, Cmd0::SetOfmWidthM1},
      {set::kOfmHeightM1, Cmd0::SetOfmHeightM1},
      {set::kOfmDepthM1, Cmd0::SetOfmDepthM1},
      {set::kOfmPrecision, Cmd0::SetOfmPrecision},
      {set::kOfmWidth0M1, Cmd0::SetOfmWidth0M1},
      {set::kOfmHeight0M1, Cmd0::SetOfmHeight0M1},
      {set::kOfmHeight1M1, Cmd0::SetOfmHeight1M1},
      {set::kOfmRegion, Cmd0::SetOfmRegion},
      {set::kKernelWidthM1, Cmd0::SetKernelWidthM1},
      {set::kKernelHeightM1, Cmd0::SetKernelHeightM1},
      {set::kKernelStride, Cmd0::SetKernelStride},
      {set::kAccFormat, Cmd0::SetAccFormat},
      {set::kWeightRegion, Cmd0::SetWeightRegion},
      {set::kScaleRegion, Cmd0::SetScaleRegion},
      {set::kDmaSourceRegion, Cmd0::SetDma0SrcRegion},
      {set::kDmaDestinationRegion, Cmd0::SetDma0DstRegion},
      {set::kDmaSize0, Cmd0::SetDma0Size0},
      {set::kDmaSize1, Cmd0::SetDma0Size1},
      {set::kDmaIndexRegion, Cmd0::SetDma0IdxRegion},
      {set::kIfm2Broadcast, Cmd0::SetIfm2Broadcast},
      {set::kIfmPrecision + set::kIfm2, Cmd0::SetIfm2Precision},
      {set::kIfmRegion + set::kIfm2, Cmd0::SetIfm2Region},
      {set::kIfmWidth0M1 + set::kIfm2, Cmd0::SetIfm2Width0M1},
  };
  for (const auto& [number, command] : one) EXPECT_EQ(number + 0x100u, static_cast<uint32_t>(command));
  const std::pair<uint32_t, Cmd1> two[] = {
      {set::kIfmBase0, Cmd1::SetIfmBase0},
      {set::kIfmStrideX, Cmd1::SetIfmStrideX},
      {set::kIfmStrideY, Cmd1::SetIfmStrideY},
      {set::kIfmStrideC, Cmd1::SetIfmStrideC},
      {set::kOfmBase0, Cmd1::SetOfmBase0},
      {set::kOfmStrideX, Cmd1::SetOfmStrideX},
      {set::kOfmStrideY, Cmd1::SetOfmStrideY},
      {set::kOfmStrideC, Cmd1::SetOfmStrideC},
      {set::kIfmBase0 + set::kIfm2, Cmd1::SetIfm2Base0},
      {set::kIfmStrideC + set::kIfm2, Cmd1::SetIfm2StrideC},
      {set::kWeightBase, Cmd1::SetWeightBase},
      {set::kWeightLength, Cmd1::SetWeightLength},
      {set::kScaleBase, Cmd1::SetScaleBase},
      {set::kScaleLength, Cmd1::SetScaleLength},
      {set::kWeight1Base, Cmd1::SetWeight1Base},
      {set::kWeight1Base + 1, Cmd1::SetWeight1Length},
      {set::kWeight1Base + 2, Cmd1::SetWeight2Base},
      {set::kWeight1Base + 5, Cmd1::SetWeight3Length},
      {set::kScale1Base, Cmd1::SetScale1Base},
      {set::kScale1Base + 1, Cmd1::SetScale1Length},
      {set::kDmaSource, Cmd1::SetDma0Src},
      {set::kDmaDestination, Cmd1::SetDma0Dst},
      {set::kDmaLength, Cmd1::SetDma0Len},
      {set::kDmaSkip0, Cmd1::SetDma0Skip0},
      {set::kDmaSkip1, Cmd1::SetDma0Skip1},
      {set::kDmaSourceStride0, Cmd1::SetDma0SrcStride0},
      {set::kDmaSourceStride1, Cmd1::SetDma0SrcStride1},
      {set::kDmaDestinationStride0, Cmd1::SetDma0DstStride0},
      {set::kDmaDestinationStride1, Cmd1::SetDma0DstStride1},
      {set::kDmaIndex, Cmd1::SetDma0Idx},
      {set::kDmaIndexMax, Cmd1::SetDma0IdxMax},
      {set::kDmaIndexSkip1, Cmd1::SetDma0IdxSkip1},
  };
  for (const auto& [number, command] : two) EXPECT_EQ(number, static_cast<uint32_t>(command));
}

/// Validates with 8 regions of `bytes` bytes. The validator never reads the contents of regions.
Status validated(const npu::Target& target, std::span<const uint32_t> words, uint64_t bytes,
                 Access access = Access::ReadWrite) {
  Region regions[8];
  for (Region& region : regions) region = {nullptr, static_cast<size_t>(bytes), access};
  return validateStream(target.configWord, {words.data(), words.size()}, Span<const Region>(regions));
}

/// Whether the host's checker finds no access outside such regions.
bool checked(const npu::Target& target, std::span<const uint32_t> words, uint64_t bytes) {
  npu::StreamMemory memory;
  for (auto& region : memory.regions) region = {bytes, true};
  memory.inputsKnown = false;
  const std::vector<npu::Finding> findings = npu::checkStream(words, target, memory);
  return std::none_of(findings.begin(), findings.end(), [](const npu::Finding& finding) {
    return finding.kind == npu::Finding::Kind::OutOfRegion &&
           finding.message.find("internal memory") == std::string::npos;
  });
}

RC_GTEST_PROP(Validator, AgreesWithTheCheckerToTheByte, ()) {
  const auto targets = npu::allTargets();
  const npu::Target& target = targets[static_cast<size_t>(*rc::gen::inRange<size_t>(0, targets.size()))];
  test::RandomOperation random(target);
  npu::StreamWriter writer(target);
  npu::Operation operation = *rc::gen::inRange(0, 4) == 0 ? npu::Operation(random.dma()) : random.kernel();
  if (auto* kernel = std::get_if<npu::KernelOperation>(&operation)) {
    RC_PRE(!kernel->weightsFromIfm2);  // the two get the size of such a matrix from different registers
  }
  RC_ASSERT(writer.add(operation).ok());
  RC_ASSERT(writer.add(npu::Stop{}).ok());
  uint64_t least = 0, most = uint64_t{1} << 61;
  RC_LOG() << npu::disassembleStream(writer.words(), target.family);
  RC_ASSERT(validated(target, writer.words(), most).ok() == checked(target, writer.words(), most));
  if (!validated(target, writer.words(), most).ok()) return;
  while (least < most) {
    const uint64_t middle = least + (most - least) / 2;
    (validated(target, writer.words(), middle).ok() ? most : least) =
        validated(target, writer.words(), middle).ok() ? middle : middle + 1;
  }
  RC_ASSERT(checked(target, writer.words(), most));
  if (most > 0) RC_ASSERT(!checked(target, writer.words(), most - 1));
}

/// The stream of one copy in an arena.
std::vector<uint32_t> copies(test::SmallProgram& program) {
  program.add(program.copy(2, 3, 16, npu::ElementType::Int8, std::vector<int64_t>(96, 1)));
  program.add(npu::Stop{});
  return program.words();
}

TEST(Validator, WritesToReadOnlyRegionsAreRefused) {
  for (const char* name : {"ethos-u55-128", "ethos-u65-512", "ethos-u85-256"}) {
    test::SmallProgram program(name);
    const std::vector<uint32_t> words = copies(program);
    EXPECT_TRUE(validated(program.target(), words, 1 << 20).ok());
    const Status status = validated(program.target(), words, 1 << 20, Access::Read);
    EXPECT_EQ(status.code, Code::CorruptDelegate);
    EXPECT_NE(textOf(status).find("read only"), std::string::npos) << textOf(status);
    // Regions that a job does not have.
    EXPECT_FALSE(validateStream(program.target().configWord, {words.data(), words.size()}, {}).ok());
  }
}

TEST(Validator, RefusesWordsThatAreNoCommands) {
  const npu::Target& u55 = **npu::findTarget("ethos-u55-128");
  const auto text = [&](std::vector<uint32_t> words) { return textOf(validated(u55, words, 1 << 20)); };
  EXPECT_NE(text({0x00000400}).find("no command"), std::string::npos);
  EXPECT_NE(text({0x00008000}).find("no command"), std::string::npos);
  EXPECT_NE(text({0x00000007}).find("does not have"), std::string::npos) << "RESIZE";
  EXPECT_NE(text({0x00000106}).find("does not have"), std::string::npos);
  EXPECT_NE(text({0x00004000}).find("second word"), std::string::npos);
  EXPECT_NE(text({0x00004100, 0}).find("does not have"), std::string::npos) << "BRANCH";
  EXPECT_NE(text({0x8000010f}).find("custom DMA"), std::string::npos);
  EXPECT_TRUE(validated(u55, std::vector<uint32_t>{0xffff0000}, 0).ok());
}

TEST(Validator, BranchesAreFollowed) {
  // The operation is legal by itself, but after a branch back to it, its OFM has another address.
  const auto stream = [](bool resetBehind) {
    test::SmallProgram program("ethos-u85-256");
    program.add(program.copy(1, 1, 16, npu::ElementType::Int8, std::vector<int64_t>(16, 1)));
    std::vector<uint32_t> words = program.words();
    const uint32_t operation = static_cast<uint32_t>(words.size() - 1) * 4;  // of NPU_OP_POOL
    const auto bring = [&](uint32_t base) {
      words.insert(words.end(), {0x00004010, base, 0x00004100, resetBehind ? 0u : operation});
    };
    bring(1u << 24);
    words.push_back(0xffff0000);
    return words;
  };
  const npu::Target& u85 = **npu::findTarget("ethos-u85-256");
  const Status hostile = validated(u85, stream(false), 1 << 20);
  EXPECT_NE(textOf(hostile).find("behind a branch"), std::string::npos) << textOf(hostile);
  // A branch to the start sets all registers again.
  EXPECT_TRUE(validated(u85, stream(true), 1 << 20).ok());
  // Branches to a second word and to outside the stream.
  for (const uint32_t target : {4u, 400u}) {
    const std::vector<uint32_t> words = {0x00004010, 0, 0x00004100, target, 0xffff0000};
    EXPECT_NE(textOf(validated(u85, words, 1 << 20)).find("middle of a command"), std::string::npos);
  }
  std::vector<uint32_t> many;
  for (uint32_t i = 0; i < 17; ++i) many.insert(many.end(), {0x00004100, i * 8});
  EXPECT_NE(textOf(validated(u85, many, 0)).find("more than 16"), std::string::npos);
}

TEST(Validator, TheDriverValidatesBeforeItAccessesTheNpu) {
  FakeDevice device(kU55Config128, format::ethosu_id::kU55);
  DriverOptions options;
  options.validate = validateStream;
  EthosUDriver driver(device, options);
  ASSERT_TRUE(driver.open().ok());
  device.writes.clear();
  Buffer scratch{};
  const Region regions[] = {{scratch.bytes, 64, Access::ReadWrite}};
  Payload payload = payloadFor(kU55Config128, 0x10060000);
  EXPECT_TRUE(driver.run(payload.bytes(), Span<const Region>(regions)).ok());
  device.writes.clear();
  payload.words[8] = 0x00000010;  // DMA_START of length 0 does nothing; then a word that is no command
  EXPECT_TRUE(driver.run(payload.bytes(), Span<const Region>(regions)).ok());
  device.writes.clear();
  payload.words[8] = 0x00000400;
  EXPECT_EQ(driver.run(payload.bytes(), Span<const Region>(regions)).code, Code::CorruptDelegate);
  EXPECT_TRUE(device.writes.empty());
  EXPECT_EQ(device.mapped, 0);
}

TEST(Validator, AcceptsRecordedPrograms) {
  CARINA_NEED_FIXTURES(fixtures);
  size_t streams = 0;
  for (const char* ending : {".pte", ".tflite"}) {
    for (const auto& file : test::filesIn(fixtures / "vectors", ending)) {
      const auto found = pipeline::commandStreams(file);
      if (!found.ok()) continue;  // no program, or none of an Ethos-U
      for (const pipeline::CommandStream& stream : *found) {
        Region regions[8];
        for (size_t i = 0; i < 8; ++i) {
          const auto& known = stream.memory.regions[i];
          regions[i] = {nullptr, static_cast<size_t>(known ? known->bytes : uint64_t{1} << 32),
                        known && !known->writable ? Access::Read : Access::ReadWrite};
        }
        const Status status =
            validateStream(stream.target->configWord, {stream.words.data(), stream.words.size()},
                           Span<const Region>(regions));
        EXPECT_TRUE(status.ok()) << file << ", " << stream.name << ": " << textOf(status);
        ++streams;
      }
    }
  }
  EXPECT_GT(streams, 100u);
}

}  // namespace
}  // namespace carina::rt
