// SPDX-License-Identifier: Apache-2.0
// Programs that read one region of constants.
#include "compiler/share_constants.hpp"

#include <gtest/gtest.h>

#include "npu/isa/stream.hpp"

namespace carina::compiler {
namespace {

constexpr size_t kBytes = 512;

/// Copies blocks of 512 equal bytes to the arena, one after the other; where it `branches`, maybe again.
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

/// The bytes that the copies of a program read, and where they go.
std::vector<std::pair<std::byte, uint64_t>> copiesOf(const CompiledProgram& program) {
  std::vector<std::pair<std::byte, uint64_t>> copies;
  const auto operations = npu::decodeStream(program.commands, *program.machine.target);
  EXPECT_TRUE(operations.ok());
  for (const npu::PlacedOperation& placed : *operations) {
    const auto* copy = std::get_if<npu::DmaOperation>(&placed.operation);
    if (!copy) continue;
    const ByteSpan read = ByteSpan(program.constants).subspan(copy->source.address, copy->length);
    for (const std::byte byte : read) EXPECT_EQ(byte, read[0]);
    copies.emplace_back(read[0], copy->destination.address);
  }
  return copies;
}

TEST(ShareConstants, EachContentIsThereOnce) {
  CompiledProgram a = programOf({1, 2, 3}), b = programOf({3, 4, 1});
  const auto copiesA = copiesOf(a), copiesB = copiesOf(b);
  CompiledProgram* const both[] = {&a, &b};
  const auto shared = shareConstants(both);
  ASSERT_TRUE(shared.ok()) << shared.error().str();
  EXPECT_EQ(shared->apart, 6 * static_cast<int64_t>(kBytes));
  EXPECT_EQ(shared->together, 4 * static_cast<int64_t>(kBytes));
  EXPECT_EQ(a.constants.size(), 4 * kBytes);
  EXPECT_EQ(a.constants, b.constants);
  EXPECT_EQ(copiesOf(a), copiesA);
  EXPECT_EQ(copiesOf(b), copiesB);
}

TEST(ShareConstants, NothingChangesWhereItSavesNothingOrCommandsBranch) {
  const CompiledProgram one = programOf({1, 2}), other = programOf({3, 4}),
                        branching = programOf({1, 2}, true);
  for (const CompiledProgram* second : {&other, &branching, &one}) {
    CompiledProgram a = one, b = *second;
    CompiledProgram* const both[] = {&a, &b};
    const auto shared = shareConstants(both);
    ASSERT_TRUE(shared.ok()) << shared.error().str();
    EXPECT_EQ(shared->together, shared->apart);
    EXPECT_EQ(a.commands, one.commands);
    EXPECT_EQ(a.constants, one.constants);
    EXPECT_EQ(b.commands, second->commands);
    EXPECT_EQ(b.constants, second->constants);
  }
}

TEST(ShareConstants, WhatIsNotThereIsAnError) {
  CompiledProgram a = programOf({1, 2}), b = programOf({1, 2});
  b.constants.resize(kBytes);
  CompiledProgram* const both[] = {&a, &b};
  EXPECT_FALSE(shareConstants(both).ok());
}

}  // namespace
}  // namespace carina::compiler
