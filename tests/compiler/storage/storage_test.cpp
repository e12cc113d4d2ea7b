// SPDX-License-Identifier: Apache-2.0
// Addressing of views: an access composed with a view reaches exactly the bytes that the view selects.
#include "compiler/storage/storage.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "support/graph_maker.hpp"
#include "support/require.hpp"

namespace carina::compiler {
namespace {

/// Byte addresses of all elements in row-major order.
std::vector<int64_t> addresses(int64_t offset, const Shape& shape, const ir::Ints& strides) {
  std::vector<int64_t> result;
  Shape index(shape.size(), 0);
  for (int64_t i = 0; i < numElements(shape); ++i) {
    int64_t at = offset;
    for (size_t d = 0; d < shape.size(); ++d) at += index[d] * strides[d];
    result.push_back(at);
    for (size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
  return result;
}

RC_GTEST_PROP(ComposeView, ReachesWhatTheViewSelects, ()) {
  // A value stored as a box of a larger dense tensor.
  Shape outer, inner, start;
  for (int d = 0; d < 3; ++d) {
    const auto size = *rc::gen::inRange<int64_t>(1, 6);
    const auto from = *rc::gen::inRange<int64_t>(0, size);
    outer.push_back(size);
    start.push_back(from);
    inner.push_back(*rc::gen::inRange<int64_t>(1, size - from + 1));
  }
  constexpr int64_t kBytes = 2;
  Access access{0, 0, inner, rowMajorStrides(outer)};
  for (size_t d = 0; d < 3; ++d) access.offset += start[d] * access.strides[d] * kBytes;
  for (int64_t& stride : access.strides) stride *= kBytes;
  const auto stored = addresses(access.offset, inner, access.strides);
  // A random view of the dense value.
  Shape shape;
  ir::Ints strides;
  const int64_t count = numElements(inner);
  const auto offset = *rc::gen::inRange<int64_t>(0, count);
  int64_t last = offset;
  for (int d = 0; d < 2; ++d) {
    const auto stride = *rc::gen::inRange<int64_t>(0, count + 1);
    const int64_t most = stride == 0 ? 3 : (count - 1 - last) / stride + 1;
    const auto size = *rc::gen::inRange<int64_t>(1, most + 1);
    shape.push_back(size);
    strides.push_back(stride * kBytes);
    last += stride * (size - 1);
  }
  const auto composed = composeView(access, kBytes, offset * kBytes, strides, shape);
  if (!composed) RC_DISCARD("not affine");
  std::vector<int64_t> expected;
  for (const int64_t dense : addresses(offset * kBytes, shape, strides)) {
    expected.push_back(stored[static_cast<size_t>(dense / kBytes)]);
  }
  RC_ASSERT(addresses(composed->offset, shape, composed->strides) == expected);
}

TEST(ComposeView, SplitsAndMergesDimensions) {
  const Access dense{0, 32, {4, 6, 5}, {30, 5, 1}};
  const auto merged = composeView(dense, 1, 30, {5, 1}, {18, 5});
  ASSERT_TRUE(merged);
  EXPECT_EQ(merged->offset, 62);
  EXPECT_EQ(merged->strides, (ir::Ints{5, 1}));
  // Rows that are not contiguous cannot become one axis.
  const Access box{0, 0, {4, 6, 5}, {60, 5, 1}};
  EXPECT_FALSE(composeView(box, 1, 0, {5, 1}, {24, 5}));
  EXPECT_TRUE(composeView(box, 1, 0, {30, 1}, {4, 30}));
}

struct CopyMaker : test::GraphMaker {
  ir::Value* copy(ir::Value* x) { return npu_ir::createCopy(b, x, 0, {}, DType::Int8); }
};

/// A piece of a join that is also read as one row: in the join its rows are not contiguous, so the join gets
/// a copy. Its list of uses grows while it is copied.
TEST(MakeAddressable, SeparatesAPieceThatIsReadInAnotherShape) {
  CopyMaker n;
  ir::Value* piece = n.copy(n.input({1, 2, 6}, DType::Int8));
  ir::Value* other = n.copy(n.input({1, 2, 4}, DType::Int8));
  ir::Value* row = n.copy(npu_ir::createReshape(n.b, piece, {1, 1, 12}));
  ir::Value* joined =
      npu_ir::createJoin(n.b, {{piece, 0, {20, 10, 1}}, {other, 6, {20, 10, 1}}}, {DType::Int8, {1, 2, 10}});
  n.graph.setOutputs({row, joined});
  require(makeAddressable(n.graph));
  const auto storage = require(assignStorage(n.graph, Bricks::None));
  EXPECT_NE(storage.access(piece).buffer, storage.access(n.graph.outputs()[1]).buffer);
}

/// A join inside a join in which its elements are not contiguous: its pieces cannot be written there, nor can
/// copies of them.
TEST(MakeAddressable, SeparatesANestedJoinThatWouldNotBeContiguous) {
  CopyMaker n;
  ir::Value* piece = n.copy(n.input({1, 1, 6}, DType::Int8));
  ir::Value* other = n.copy(n.input({1, 1, 6}, DType::Int8));
  ir::Value* row =
      npu_ir::createJoin(n.b, {{piece, 0, {0, 0, 1}}, {other, 6, {0, 0, 1}}}, {DType::Int8, {12}});
  ir::Value* second = n.copy(n.input({1, 12, 1}, DType::Int8));
  ir::Value* joined =
      npu_ir::createJoin(n.b, {{row, 0, {2}}, {second, 1, {0, 2, 1}}}, {DType::Int8, {12, 2}});
  n.graph.setOutputs({joined});
  require(makeAddressable(n.graph));
  const auto storage = require(assignStorage(n.graph, Bricks::None));
  EXPECT_EQ(storage.access(piece).buffer, storage.access(row).buffer);
  EXPECT_NE(storage.access(row).buffer, storage.access(n.graph.outputs()[0]).buffer);
}

/// A piece whose elements are not contiguous in its join, and a reader that needs them as channels.
TEST(MakeAddressable, SeparatesAPieceThatIsReadAsChannels) {
  CopyMaker n;
  ir::Value* piece = n.copy(n.input({1, 12, 1}, DType::Int8));
  ir::Value* other = n.copy(n.input({1, 12, 1}, DType::Int8));
  ir::Value* channels = n.copy(npu_ir::createReshape(n.b, piece, {1, 1, 12}));
  ir::Value* joined =
      npu_ir::createJoin(n.b, {{piece, 0, {0, 2, 1}}, {other, 1, {0, 2, 1}}}, {DType::Int8, {12, 2}});
  n.graph.setOutputs({channels, joined});
  require(makeAddressable(n.graph));
  const auto storage = require(assignStorage(n.graph, Bricks::None));
  EXPECT_NE(storage.access(piece).buffer, storage.access(n.graph.outputs()[1]).buffer);
}

/// The steps of a recurrence are joined, and only the last is read, so the others need not be kept.
TEST(MakeAddressable, DropsAJoinOfWhichOnlySinglePiecesAreRead) {
  for (const int64_t steps : {2, 50, 200}) {
    CopyMaker n;
    std::vector<npu_ir::Piece> pieces;
    ir::Value* last = n.input({1, 1, 64}, DType::Int8);
    for (int64_t i = 0; i < steps; ++i) {
      last = n.copy(last);
      pieces.push_back({last, i * 64, {64, 64, 1}});
    }
    ir::Value* joined = npu_ir::createJoin(n.b, pieces, {DType::Int8, {steps, 1, 64}});
    ir::Value* turned = npu_ir::createReshape(n.b, joined, {1, steps, 64});
    ir::Value* half = npu_ir::createSlice(n.b, turned, {0, steps - 1, 32}, {1, 1, 32});
    n.graph.setOutputs({n.copy(half)});
    ASSERT_TRUE(makeAddressable(n.graph).ok());
    const auto storage = require(assignStorage(n.graph, Bricks::None));
    int64_t bytes = 0;
    for (const Buffer& buffer : storage.buffers) bytes = std::max(bytes, buffer.bytes);
    EXPECT_EQ(bytes, 64);
    const ir::Value* read = n.graph.outputs()[0]->producer()->operand(0);
    EXPECT_EQ(storage.buffer(read).root, last);
    EXPECT_EQ(storage.access(read).offset, 32);
  }
}

/// A join that is read across two pieces, or as a whole, is kept.
TEST(MakeAddressable, KeepsAJoinThatIsReadAcrossPieces) {
  for (const bool whole : {true, false}) {
    CopyMaker n;
    ir::Value* first = n.copy(n.input({1, 1, 16}, DType::Int8));
    ir::Value* second = n.copy(n.input({1, 1, 16}, DType::Int8));
    ir::Value* joined = npu_ir::createJoin(n.b, {{first, 0, {0, 16, 1}}, {second, 16, {0, 16, 1}}},
                                           {DType::Int8, {1, 2, 16}});
    ir::Value* read =
        whole ? joined : npu_ir::createView(n.b, joined, DType::Int8, {1, 1, 16}, 8, {16, 16, 1});
    n.graph.setOutputs({n.copy(read), n.copy(npu_ir::createSlice(n.b, joined, {0, 1, 0}, {1, 1, 16}))});
    ASSERT_TRUE(makeAddressable(n.graph).ok());
    const auto storage = require(assignStorage(n.graph, Bricks::None));
    EXPECT_EQ(storage.access(first).buffer, storage.access(second).buffer);
  }
}

}  // namespace
}  // namespace carina::compiler
