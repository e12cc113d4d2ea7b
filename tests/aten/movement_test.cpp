// SPDX-License-Identifier: Apache-2.0
// Operators that only move elements, against index arithmetic written out.
#include "aten/movement.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>

#include "aten/one_op.hpp"
#include "support/require.hpp"

namespace carina::aten::test {
namespace {

Tensor counting(const Shape& shape) {
  Tensor tensor = Tensor::uninitialized(DType::Int64, shape);
  const auto span = tensor.mutableAs<int64_t>();
  std::iota(span.begin(), span.end(), 0);
  return tensor;
}
std::string listText(const ir::Ints& list) {
  std::string text = "[";
  for (int64_t value : list) text += (text.size() > 1 ? ", " : "") + std::to_string(value);
  return text + "]";
}
Shape anyShape() {
  return *rc::gen::container<Shape>(static_cast<size_t>(*rc::gen::inRange(1, 5)),
                                    rc::gen::inRange<int64_t>(1, 5));
}

RC_GTEST_PROP(AtenMovement, PermuteMovesEveryElement, ()) {
  const Shape shape = anyShape();
  ir::Ints order(shape.size());
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1],
              order[static_cast<size_t>(*rc::gen::inRange<int64_t>(0, static_cast<int64_t>(i)))]);
  const Tensor out = run("aten.permute.default", {counting(shape)}, {{"dims", listText(order)}});
  const Shape from = rowMajorStrides(shape), to = rowMajorStrides(out.shape());
  for (int64_t i = 0; i < out.numElements(); ++i) {
    int64_t expected = 0;
    for (size_t d = 0; d < shape.size(); ++d)
      expected += i / to[d] % out.dim(static_cast<int64_t>(d)) * from[static_cast<size_t>(order[d])];
    RC_ASSERT(out.integerAt(i) == expected);
  }
}

RC_GTEST_PROP(AtenMovement, SliceMatchesPython, ()) {
  const int64_t n = *rc::gen::inRange(1, 10), start = *rc::gen::inRange(-12, 12),
                end = *rc::gen::inRange(-12, 12), step = *rc::gen::inRange(1, 4);
  const Tensor out =
      run("aten.slice.Tensor", {counting({n})},
          {{"start", std::to_string(start)}, {"end", std::to_string(end)}, {"step", std::to_string(step)}});
  std::vector<int64_t> expected;
  const auto bound = [n](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + n : at, 0, n); };
  for (int64_t i = bound(start); i < bound(end); i += step) expected.push_back(i);
  RC_ASSERT(values<int64_t>(out) == expected);
}

RC_GTEST_PROP(AtenMovement, SplitThenCatIsTheWhole, ()) {
  const Shape shape = anyShape();
  const int64_t dim = *rc::gen::inRange<int64_t>(0, static_cast<int64_t>(shape.size())),
                size = *rc::gen::inRange(1, 6);
  const Tensor whole = counting(shape);
  auto pieces = require(runGroups("aten.split.Tensor", {{whole}},
                                  {{"split_size", std::to_string(size)}, {"dim", std::to_string(dim)}}));
  std::vector<std::optional<Tensor>> parts(pieces.begin(), pieces.end());
  auto joined = require(runGroups("aten.cat.default", {parts}, {{"dim", std::to_string(dim)}}));
  RC_ASSERT(joined.front() == whole);
}

TEST(AtenMovement, ChunkMayGiveFewerPieces) {
  auto chunks = require(runGroups("aten.chunk.default", {{counting({5})}}, {{"chunks", "4"}}));
  ASSERT_EQ(chunks.size(), 3u);
  EXPECT_EQ(values<int64_t>(chunks[2]), (std::vector<int64_t>{4}));
  auto sections = require(runGroups("aten.tensor_split.sections", {{counting({10})}}, {{"sections", "4"}}));
  EXPECT_EQ(sections[1].shape(), (Shape{3}));
  EXPECT_EQ(sections[3].shape(), (Shape{2}));
}

TEST(AtenMovement, ShufflesAndRepeats) {
  EXPECT_EQ(
      values<int64_t>(run("aten.pixel_shuffle.default", {counting({4, 1, 2})}, {{"upscale_factor", "2"}})),
      (std::vector<int64_t>{0, 2, 1, 3, 4, 6, 5, 7}));
  EXPECT_EQ(values<int64_t>(
                run("aten.repeat_interleave.self_int", {counting({3})}, {{"repeats", "2"}, {"dim", "0"}})),
            (std::vector<int64_t>{0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(values<int64_t>(run("aten.repeat.default", {counting({2})}, {{"repeats", "[2, 2]"}})),
            (std::vector<int64_t>{0, 1, 0, 1, 0, 1, 0, 1}));
  EXPECT_EQ(values<int64_t>(run("aten.flip.default", {counting({2, 2})}, {{"dims", "[0, 1]"}})),
            (std::vector<int64_t>{3, 2, 1, 0}));
  EXPECT_EQ(values<int64_t>(run("aten.roll.default", {counting({4})}, {{"shifts", "[1]"}, {"dims", "[0]"}})),
            (std::vector<int64_t>{3, 0, 1, 2}));
  EXPECT_EQ(values<int64_t>(run("aten.diagonal.default", {counting({3, 3})}, {{"offset", "-1"}})),
            (std::vector<int64_t>{3, 7}));
  EXPECT_EQ(values<int64_t>(run("aten.unfold.default", {counting({4})},
                                {{"dimension", "0"}, {"size", "2"}, {"step", "2"}})),
            (std::vector<int64_t>{0, 1, 2, 3}));
}

TEST(AtenMovement, WrongAttributesAreRefused) {
  for (const auto& [op, attributes] : std::vector<std::pair<std::string, Attributes>>{
           {"aten.view.default", {{"size", "[4]"}}},
           {"aten.view.default", {{"size", "[9223372036854775807, 2]"}}},
           {"aten.permute.default", {{"dims", "[0, 0]"}}},
           {"aten.select.int", {{"dim", "0"}, {"index", "2"}}},
           {"aten.narrow.default", {{"dim", "0"}, {"start", "1"}, {"length", "9223372036854775807"}}},
           {"aten.expand.default", {{"size", "[5, 5]"}}},
           {"aten.split_with_sizes.default", {{"split_sizes", "[1, 2]"}}},
           {"aten.as_strided.default", {{"size", "[9]"}, {"stride", "[1]"}}},
           {"aten.repeat.default", {{"repeats", "[9223372036854775807, 9223372036854775807]"}}}}) {
    EXPECT_FALSE(runGroups(op, {{counting({2, 3})}}, attributes).ok()) << op;
  }
}

}  // namespace
}  // namespace carina::aten::test
