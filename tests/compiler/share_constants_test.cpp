// SPDX-License-Identifier: Apache-2.0
// Programs that share one region of constants.
#include "compiler/share_constants.hpp"

#include <gtest/gtest.h>

#include "npu/isa/stream.hpp"
#include "support/require.hpp"

namespace carina::compiler {
namespace {

constexpr size_t kBytes = 512;

/// Copies blocks of 512 equal bytes to the arena, one after the other. If it `branches`, a conditional branch
/// back to the start follows.
CompiledProgram programOf(const std::vector<uint8_t>& blocks, bool branches = false) {
  CompiledProgram program;
  program.machine = *npu::makeMachine("ethos-u85-256", "", "");
  npu::StreamWriter writer(*program.machine.target);
  for (const uint8_t block : blocks) {
    npu::DmaOperation copy;
    copy.source.region = 0;
    copy.destination.region = 1;
    copy.source.address = copy.destination.address = program.constants.size();
    copy.length = kBytes;
    EXPECT_TRUE(writer.add(copy).ok());
    program.constants.resize(program.constants.size() + kBytes, std::byte{block});
  }
  if (branches) {
    EXPECT_TRUE(writer.add(npu::Branch{true, 0}).ok());
  }
  EXPECT_TRUE(writer.add(npu::Stop{}).ok());
  program.commands = std::move(writer).take();
  return program;
}

/// The bytes that the copies of a program read, and their destinations.
std::vector<std::pair<std::byte, uint64_t>> copiesOf(const CompiledProgram& program) {
  std::vector<std::pair<std::byte, uint64_t>> copies;
  const auto operations = require(npu::decodeStream(program.commands, *program.machine.target));
  for (const npu::PlacedOperation& placed : operations) {
    const auto* copy = std::get_if<npu::DmaOperation>(&placed.operation);
    if (!copy) continue;
    const ByteSpan read = ByteSpan(program.constants).subspan(copy->source.address, copy->length);
    for (const std::byte byte : read) EXPECT_EQ(byte, read[0]);
    copies.emplace_back(read[0], copy->destination.address);
  }
  return copies;
}

TEST(ShareConstants, EachContentIsStoredOnce) {
  CompiledProgram a = programOf({1, 2, 3}), b = programOf({3, 4, 1});
  const auto copiesA = copiesOf(a), copiesB = copiesOf(b);
  CompiledProgram* const both[] = {&a, &b};
  const auto shared = require(shareConstants(both));
  EXPECT_EQ(shared.apart, 6 * static_cast<int64_t>(kBytes));
  EXPECT_EQ(shared.together, 4 * static_cast<int64_t>(kBytes));
  EXPECT_EQ(a.constants.size(), 4 * kBytes);
  EXPECT_EQ(a.constants, b.constants);
  EXPECT_EQ(copiesOf(a), copiesA);
  EXPECT_EQ(copiesOf(b), copiesB);
}

TEST(ShareConstants, NothingChangesIfSharingSavesNothing) {
  const CompiledProgram one = programOf({1, 2}), other = programOf({3, 4});
  for (const CompiledProgram* second : {&other, &one}) {
    CompiledProgram a = one, b = *second;
    CompiledProgram* const both[] = {&a, &b};
    const auto shared = require(shareConstants(both));
    EXPECT_EQ(shared.together, shared.apart);
    EXPECT_EQ(a.commands, one.commands);
    EXPECT_EQ(a.constants, one.constants);
    EXPECT_EQ(b.commands, second->commands);
    EXPECT_EQ(b.constants, second->constants);
  }
}

/// A branch target stays after the same operation, even if the operations now set other registers.
TEST(ShareConstants, BranchTargetsAreKept) {
  CompiledProgram plain = programOf({9, 2, 1}), branching = programOf({1, 2, 3}, true);
  const auto afterFirst = [](const CompiledProgram& program) {
    return npu::decodeStream(program.commands, *program.machine.target)->at(0).offset + 4;
  };
  const auto targetOf = [](const CompiledProgram& program) {
    const auto operations = npu::decodeStream(program.commands, *program.machine.target);
    for (const npu::PlacedOperation& placed : *operations) {
      if (const auto* branch = std::get_if<npu::Branch>(&placed.operation)) return branch->target;
    }
    return 0u;
  };
  // Back to the position after the first copy.
  npu::StreamWriter writer(*branching.machine.target);
  const auto all = npu::decodeStream(branching.commands, *branching.machine.target);
  for (const npu::PlacedOperation& placed : *all) {
    npu::Operation operation = placed.operation;
    if (auto* branch = std::get_if<npu::Branch>(&operation)) branch->target = afterFirst(branching);
    ASSERT_TRUE(writer.add(operation).ok());
  }
  branching.commands = std::move(writer).take();
  branching.branches.push_back({"loop", true, 2, 0, 0, 0, afterFirst(branching), afterFirst(branching)});
  CompiledProgram* const both[] = {&plain, &branching};
  const auto copies = copiesOf(branching);
  const auto shared = require(shareConstants(both));
  EXPECT_LT(shared.together, shared.apart);
  EXPECT_EQ(copiesOf(branching), copies);
  EXPECT_EQ(targetOf(branching), afterFirst(branching));
  EXPECT_EQ(branching.branches[0].end, afterFirst(branching));
}

/// One program fetches records and weights together; the other has the same weights with different records.
TEST(ShareConstants, WeightsAreSharedDespiteDifferentRecords) {
  CompiledProgram joined = programOf({1, 2}), apart = programOf({3, 2});
  for (CompiledProgram* program : {&joined, &apart}) program->streams = {{0, kBytes}, {kBytes, kBytes}};
  npu::StreamWriter writer(*joined.machine.target);
  npu::DmaOperation copy;
  copy.source.region = 0;
  copy.destination.region = 1;
  // In two parts, the first of which ends within the weights.
  for (const auto& [at, length] : {std::pair<uint64_t, uint64_t>(0, 768), {768, 256}}) {
    copy.source.address = copy.destination.address = at;
    copy.length = length;
    ASSERT_TRUE(writer.add(copy).ok());
  }
  ASSERT_TRUE(writer.add(npu::Stop{}).ok());
  joined.commands = std::move(writer).take();
  const std::vector<std::byte> before = joined.constants;
  for (const bool first : {true, false}) {
    CompiledProgram a = joined, b = apart;
    CompiledProgram* const both[] = {first ? &a : &b, first ? &b : &a};
    const auto shared = require(shareConstants(both));
    EXPECT_EQ(shared.together, 3 * static_cast<int64_t>(kBytes));
    EXPECT_EQ(copiesOf(b), copiesOf(apart));
    const auto operations = require(npu::decodeStream(a.commands, *a.machine.target));
    std::vector<std::byte> read;
    for (const npu::PlacedOperation& placed : operations) {
      if (const auto* fetched = std::get_if<npu::DmaOperation>(&placed.operation))
        read.insert(read.end(), a.constants.begin() + static_cast<ptrdiff_t>(fetched->source.address),
                    a.constants.begin() + static_cast<ptrdiff_t>(fetched->source.address + fetched->length));
    }
    EXPECT_EQ(read, before);
  }
}

TEST(ShareConstants, ReadsBeyondTheConstantsAreErrors) {
  CompiledProgram a = programOf({1, 2}), b = programOf({1, 2});
  b.constants.resize(kBytes);
  CompiledProgram* const both[] = {&a, &b};
  EXPECT_FALSE(shareConstants(both).ok());
}

}  // namespace
}  // namespace carina::compiler
