// SPDX-License-Identifier: Apache-2.0
// Findings of the checker for lookup tables that are not in the slot an operation reads, windows that are
// entirely padding, and inconsistent feature maps; and no findings for similar valid operations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "npu/model/check_stream.hpp"
#include "npu/model/extent_checks.hpp"
#include "npu/model/small_program.hpp"

namespace carina::test {
namespace {

using namespace npu;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// "table@0x48: message" of every finding of one kind.
std::vector<std::string> findings(SmallProgram& program, Finding::Kind kind) {
  program.add(Stop{});
  StreamMemory memory;
  memory.regions[0] = {{0x4000, false}};
  memory.regions[1] = {{program.arena().size(), true}};
  memory.inputsKnown = false;
  std::vector<std::string> texts;
  for (const Finding& finding : checkStream(program.words(), program.target(), memory)) {
    if (finding.kind == kind)
      texts.push_back(fmt::format("{}@{:#x}: {}", findingKindName(kind), finding.offset, finding.message));
  }
  return texts;
}

std::vector<int64_t> zeros(int count) {
  return std::vector<int64_t>(static_cast<size_t>(count), 0);
}

DmaOperation tableLoad(const SmallProgram& program, uint64_t source, int slot, uint64_t bytes) {
  DmaOperation dma;
  dma.source.region = 0;
  dma.source.address = source;
  dma.destination.internal = true;
  dma.destination.region = 3;
  const Target& target = program.target();
  dma.destination.address = (target.isU85() ? 0 : static_cast<uint64_t>(target.shramKiB) * 1024 - 2048) +
                            static_cast<uint64_t>(slot) * 256;
  dma.length = bytes;
  return dma;
}

KernelOperation lookup(SmallProgram& program, Table table, int slot) {
  const bool wide = table == Table::Lut16;
  KernelOperation op = program.copy(1, 1, 16, wide ? ElementType::Int16 : ElementType::Int8, zeros(16));
  // U55 and U65 infer the kind of table from the types.
  if (table == Table::Lut8To32) op.ofm = program.map(1, 1, 16, ElementType::Int32, zeros(16));
  op.activation.table = table;
  op.activation.slot = static_cast<uint8_t>(slot);
  if (wide) {
    op.activation.min = -32768;
    op.activation.max = 32767;
  }
  return op;
}

/// A sequence of table loads (source, slot, bytes) and lookups (slot), in which each waits for all earlier
/// ones.
class Tables : public testing::TestWithParam<const char*> {
 protected:
  void load(uint64_t source, int slot, uint64_t bytes) {
    program_.add(KernelWait{0});
    program_.add(tableLoad(program_, source, slot, bytes));
    program_.add(DmaWait{0});
    latest_ = program_.position();
  }
  void use(Table table, int slot) { program_.add(lookup(program_, table, slot)); }
  std::vector<std::string> found() { return findings(program_, Finding::Kind::Table); }

  SmallProgram program_{GetParam()};
  uint32_t latest_ = 0;
};

TEST_P(Tables, LoadedTablesHaveNoFindings) {
  load(0, 0, 256);
  load(256, 1, 256);
  use(Table::Lut8, 0);
  use(Table::Lut8, 1);
  use(Table::Lut8, 0);
  load(1024, 4, 1024);
  use(Table::Lut8To32, 4);
  load(2048, 0, 2048);
  use(Table::Lut16, 0);
  EXPECT_THAT(found(), IsEmpty());
}

TEST_P(Tables, NeverLoaded) {
  use(Table::Lut8, 2);
  EXPECT_THAT(found(), ElementsAre(HasSubstr("table slot 2: no table was loaded")));
}

TEST_P(Tables, LoadedIntoAnotherSlot) {
  load(0, 0, 256);
  use(Table::Lut8, 0);
  use(Table::Lut8, 1);
  EXPECT_THAT(found(), ElementsAre(HasSubstr("table slot 1: no table was loaded")));
}

TEST_P(Tables, OverwrittenBeforeUse) {
  load(0, 0, 256);
  load(256, 0, 256);
  use(Table::Lut8, 0);
  EXPECT_THAT(found(), ElementsAre(HasSubstr("before any operation has used it")));
}

TEST_P(Tables, PartlyOverwritten) {
  load(0, 0, 1024);
  use(Table::Lut8To32, 0);
  load(1024, 2, 256);
  use(Table::Lut8, 2);
  use(Table::Lut8To32, 0);
  EXPECT_THAT(found(), ElementsAre(HasSubstr("holds parts of the tables that were loaded")));
}

TEST_P(Tables, LoadedInPieces) {
  load(0, 0, 512);
  load(512, 2, 512);
  use(Table::Lut8To32, 0);
  EXPECT_THAT(found(), IsEmpty());
}

TEST_P(Tables, OfAnotherFormat) {
  load(0, 0, 1024);
  use(Table::Lut8To32, 0);
  use(Table::Lut8, 1);
  EXPECT_THAT(found(), ElementsAre(HasSubstr("has 1024 bytes from slot 0")));
}

TEST_P(Tables, ShorterThanTheOperationReads) {
  load(0, 0, 256);
  use(Table::Lut8To32, 0);
  EXPECT_THAT(found(), ElementsAre(HasSubstr("reads a table of 1024 bytes, but the load")));
}

INSTANTIATE_TEST_SUITE_P(Families, Tables,
                         testing::Values("ethos-u55-128", "ethos-u65-256", "ethos-u85-256"));

TEST(TableChecks, AccumulatorsOverwriteTablesInSharedBanks) {
  for (const char* target : {"ethos-u55-64", "ethos-u55-128"}) {
    SmallProgram program(target);
    program.add(tableLoad(program, 0, 0, 256));
    program.add(DmaWait{0});
    program.add(lookup(program, Table::Lut8, 0));
    program.add(program.copy(1, 1, 16, ElementType::Int8, zeros(16)));
    program.add(lookup(program, Table::Lut8, 0));
    const auto found = findings(program, Finding::Kind::Table);
    if (program.target().lutReservedBanks == 0) {
      EXPECT_THAT(found, ElementsAre(HasSubstr("accumulators of the operation at offset"))) << target;
    } else {
      EXPECT_THAT(found, IsEmpty()) << target;
    }
  }
}

/// Two lookups of a chain. With the same slot but two tables, as Vela 5.1.0 compiles sigmoid and tanh of an
/// LSTM, only one table is loaded.
std::vector<std::string> chained(bool otherTable, int laterSlot, Table table) {
  SmallProgram program("ethos-u85-256");
  const uint64_t bytes = table == Table::Lut16 ? 2048 : 256;
  if (otherTable) {
    program.add(tableLoad(program, bytes, 0, bytes));
    program.add(DmaWait{0});
    program.add(lookup(program, table, 0));
    program.add(KernelWait{0});
  }
  program.add(tableLoad(program, 0, 0, bytes));
  program.add(DmaWait{0});
  if (laterSlot != 0) {
    program.add(tableLoad(program, 2 * bytes, laterSlot, bytes));
    program.add(DmaWait{0});
  }
  KernelOperation first = lookup(program, table, 0);
  KernelOperation second = lookup(program, table, laterSlot);
  second.kind = OperationKind::Elementwise;
  second.elementwise.mode = ElementwiseMode::Abs;
  first.ofm.storage = second.ifm.storage = Storage::Chained;
  first.ofm.base = second.ifm.base = {};
  program.add(first);
  program.add(second);
  return findings(program, Finding::Kind::Table);
}

TEST(TableChecks, OneTableCannotServeTwoFunctionsOfAChain) {
  EXPECT_THAT(chained(true, 0, Table::Lut16),
              ElementsAre(HasSubstr("of the same chain both use the table in slot 0")));
  EXPECT_THAT(chained(true, 1, Table::Lut8), IsEmpty());
  // The stream has only one table, which both operations use.
  EXPECT_THAT(chained(false, 0, Table::Lut16), IsEmpty());
}

KernelOperation pool(SmallProgram& program, int ofmHeight, int stride, int kernel, int top, int bottom) {
  KernelOperation op = program.copy(ofmHeight, 1, 16, ElementType::Int8, zeros(ofmHeight * 16));
  op.pool = PoolMode::Max;
  op.kernel.height = kernel;
  op.kernel.strideY = stride;
  op.padding.top = top;
  op.padding.bottom = bottom;
  op.ifm.height = op.ifm.height0 = op.ifm.height1 = op.ifmHeight();
  return op;
}

std::vector<std::string> paddings(int ofmHeight, int stride, int kernel, int top, int bottom) {
  SmallProgram program("ethos-u55-128");
  program.add(pool(program, ofmHeight, stride, kernel, top, bottom));
  return findings(program, Finding::Kind::Padding);
}

TEST(PaddingChecks, WindowsEntirelyInPadding) {
  EXPECT_THAT(paddings(16, 1, 1, 0, 12),
              ElementsAre(HasSubstr("12 of 16 rows of windows lie entirely in the padding: "
                                    "PAD_BOTTOM is 12, the kernel 1")));
  EXPECT_THAT(paddings(16, 1, 3, 14, 0), ElementsAre(HasSubstr("12 of 16 rows")));
  EXPECT_THAT(paddings(16, 2, 1, 0, 24), ElementsAre(HasSubstr("12 of 16 rows")));
  EXPECT_THAT(paddings(16, 1, 3, 1, 1), IsEmpty());
  EXPECT_THAT(paddings(16, 1, 1, 0, 8), IsEmpty()) << "half of the windows";
  EXPECT_THAT(paddings(4, 1, 1, 1, 1), IsEmpty()) << "as networks pad 1x1 convolutions";
  EXPECT_THAT(paddings(16, 1, 16, 15, 0), IsEmpty()) << "causal";
}

TEST(ExtentChecks, DuplicatedRows) {
  for (const int rows : {8, 5}) {
    SmallProgram program("ethos-u55-128");
    KernelOperation op = program.copy(8, 1, 16, ElementType::Int8, zeros(128));
    op.ifm.height0 = op.ifm.height1 = rows;
    op.ifm.base[2] = op.ifm.base[0];  // the rows after the split repeat the first ones
    program.add(op);
    const auto found = findings(program, Finding::Kind::Extent);
    if (rows == 8) {
      EXPECT_THAT(found, IsEmpty());
    } else {
      EXPECT_THAT(found,
                  ElementsAre(HasSubstr("IFM of 8x1x16 with strides Y 16, X 16: tile 0 ends after 5 rows")));
    }
  }
}

TEST(ExtentChecks, RollingBuffersWrap) {
  SmallProgram program("ethos-u55-128");
  KernelOperation op = program.copy(8, 1, 16, ElementType::Int8, zeros(128));
  op.ifm.height0 = op.ifm.height1 = 5;  // rows 3 to 7 of the buffer, then 0 to 2
  op.ifm.base[2] = op.ifm.base[0];
  op.ifm.base[0] += 3 * 16;
  program.add(op);
  EXPECT_THAT(findings(program, Finding::Kind::Extent), IsEmpty());
}

TEST(ExtentChecks, ElementsWithOneAddress) {
  const auto found = [](int64_t strideY, int64_t strideX) {
    SmallProgram program("ethos-u85-256");
    KernelOperation op = program.copy(4, 4, 16, ElementType::Int8, zeros(1024));
    op.ofm.strideY = strideY;
    op.ofm.strideX = strideX;
    program.add(op);
    return findings(program, Finding::Kind::Extent);
  };
  EXPECT_THAT(found(64, 16), IsEmpty());
  EXPECT_THAT(found(16, 64), IsEmpty()) << "transposed";
  EXPECT_THAT(found(64, 0),
              ElementsAre(HasSubstr("OFM of 4x4x16 with strides Y 64, X 0 puts two elements at the same")));
  EXPECT_THAT(found(32, 16), ElementsAre(HasSubstr("puts two elements at the same address")));
  EXPECT_THAT(found(16, 48), ElementsAre(HasSubstr("puts two elements at the same address")));
}

TEST(ExtentChecks, RowsThatOverlapInInputAndOutput) {
  const auto found = [](int64_t inputStride) {
    SmallProgram program("ethos-u55-256");
    KernelOperation op = program.copy(2, 4, 16, ElementType::Int8, zeros(1024));
    op.kind = OperationKind::Conv;
    op.weights.emplace();
    op.ifm.strideX = op.ofm.strideX = 16;
    op.ofm.strideY = 3 * 16;  // the last column of row 0 is the first of row 1
    op.ifm.strideY = inputStride;
    return model::extentFindings(op);
  };
  EXPECT_THAT(found(3 * 16), IsEmpty()) << "both compute the same value";
  EXPECT_THAT(found(4 * 16), ElementsAre(HasSubstr("puts two elements at the same address")));
  EXPECT_THAT(found(2 * 16), ElementsAre(HasSubstr("puts two elements at the same address")));
}

TEST(ExtentChecks, StrideOfASingleColumnIsIgnored) {
  // A column written with the stride of a whole feature map, then read as a dense column: the blocks do not
  // overlap.
  SmallProgram program("ethos-u55-128");
  KernelOperation first = program.copy(16, 1, 32, ElementType::Int8, zeros(512));
  first.block = {8, 1, 16};
  first.ofm.strideX = 512;
  KernelOperation second = program.copy(16, 1, 32, ElementType::Int8, zeros(512));
  second.block = {8, 1, 16};
  second.ifm = first.ofm;
  second.ifm.strideX = 32;
  second.blockDependency = 3;
  program.add(first);
  program.add(second);
  EXPECT_THAT(findings(program, Finding::Kind::Hazard), IsEmpty());
}

}  // namespace
}  // namespace carina::test
