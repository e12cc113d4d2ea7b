// SPDX-License-Identifier: Apache-2.0
// Random small TOSA graphs: model, npu interpreter and TOSA interpreter agree, and the stream checker reports
// nothing.
#include <gtest/gtest.h>

#include <cstdlib>

#include "compiler/program_runner.hpp"
#include "compiler/tosa_graphs.hpp"

namespace carina::test {
namespace {

class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed * 2654435761u + 12345) {}
  int64_t roll(int64_t low, int64_t high) {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return low + static_cast<int64_t>((state_ >> 33) % static_cast<uint64_t>(high - low + 1));
  }
  bool chance(int64_t one, int64_t of) { return roll(1, of) <= one; }

 private:
  uint64_t state_;
};

/// Padding before and after with which the stride divides the span of the windows; none if there is no such
/// padding.
std::pair<int64_t, int64_t> fittingPad(int64_t size, int64_t kernel, int64_t stride, Dice& dice) {
  const int64_t before = dice.roll(0, kernel - 1);
  for (int64_t after = 0; after < kernel; ++after) {
    const int64_t span = size + before + after - kernel;
    if (span >= 0 && span % stride == 0) return {before, after};
  }
  return {0, 0};
}

bool fits(int64_t size, std::pair<int64_t, int64_t> pad, int64_t kernel, int64_t stride) {
  const int64_t span = size + pad.first + pad.second - kernel;
  return span >= 0 && span % stride == 0;
}

/// Appends a random operator to an int8 [1,H,W,C] value.
ir::Value* grow(TosaBuilder& b, ir::Value* x, std::vector<ir::Value*>& pool, Dice& dice) {
  const int64_t h = x->dim(1), w = x->dim(2), c = x->dim(3);
  const int64_t kernel = dice.roll(1, std::min<int64_t>({h, w, 4})), stride = dice.roll(1, 3);
  const auto py = fittingPad(h, kernel, stride, dice), px = fittingPad(w, kernel, stride, dice);
  const bool window = fits(h, py, kernel, stride) && fits(w, px, kernel, stride);
  const ir::Ints pad{py.first, py.second, px.first, px.second};
  switch (dice.roll(0, 12)) {
    case 0:
    case 1:
      if (!window) break;
      return b.rescalePerChannel(
          b.conv(x, dice.roll(1, 40), {kernel, kernel}, {stride, stride}, pad, dice.roll(-128, 127)),
          DType::Int8, 40 + dice.roll(0, 5), dice.roll(-128, 127));
    case 2:
      if (!window) break;
      return b.rescalePerChannel(
          b.depthwise(x, {kernel, kernel}, {stride, stride}, pad, dice.roll(-128, 127)), DType::Int8,
          38 + dice.roll(0, 4), dice.roll(-128, 127));
    case 3:
      if (!window) break;
      return b.maxPool(x, {kernel, kernel}, {stride, stride}, pad);
    case 4:
      if (!window) break;
      return b.averagePool(x, {kernel, kernel}, {stride, stride}, pad, dice.roll(-128, 127));
    case 5:
      return b.clamp(x, dice.roll(-128, 0), dice.roll(0, 127));
    case 6:
      return b.table(x);
    case 7:
    case 8: {
      ir::Value* y = pool[static_cast<size_t>(dice.roll(0, static_cast<int64_t>(pool.size()) - 1))];
      if (y->shape() != x->shape())
        y = b.random(DType::Int8, dice.chance(1, 2) ? Shape{1, 1, 1, c} : Shape{1, h, 1, 1});
      const int64_t left =
          dice.chance(1, 2) ? (int64_t{1} << 30) : (int64_t{1} << 30) + dice.roll(1, 1 << 29);
      ir::Value* a = b.rescale(x, DType::Int32, left, dice.roll(11, 13), dice.roll(-128, 127));
      ir::Value* d = b.rescale(y, DType::Int32, 1 << 30, 11, dice.roll(-128, 127));
      ir::Value* sum = dice.chance(1, 2) ? b.make<tosa::Add>(a, d) : b.make<tosa::Sub>(d, a);
      return b.rescale(sum, DType::Int8, 1431655728, 49 + dice.roll(0, 2), 0, dice.roll(-128, 127),
                       dice.chance(1, 4));
    }
    case 9: {
      ir::Value* y = b.random(DType::Int8, dice.chance(1, 2) ? Shape{1, 1, 1, 1} : Shape{1, 1, w, c});
      ir::Value* product = b.mul(b.rescale(x, DType::Int32, 1 << 30, 30, dice.roll(-128, 127)),
                                 b.rescale(y, DType::Int32, 1 << 30, 30, dice.roll(-128, 127)));
      return b.rescale(product, DType::Int8, 1077952569, 37, 0, dice.roll(-100, 100));
    }
    case 10: {
      ir::Value* y = pool[static_cast<size_t>(dice.roll(0, static_cast<int64_t>(pool.size()) - 1))];
      if (y->dim(1) != h || y->dim(2) != w || y->dim(3) + c > 200) break;
      return b.concat({x, y}, 3);
    }
    case 11: {
      const int64_t sh = dice.roll(1, h), sw = dice.roll(1, w), sc = dice.roll(1, c);
      return b.slice(x, {0, dice.roll(0, h - sh), dice.roll(0, w - sw), dice.roll(0, c - sc)},
                     {1, sh, sw, sc});
    }
    default: {
      const ir::Ints orders[] = {{0, 2, 1, 3}, {0, 3, 1, 2}, {0, 2, 3, 1}, {0, 1, 3, 2}};
      return b.transpose(x, orders[dice.roll(0, 3)]);
    }
  }
  return b.rescale(x, DType::Int8, 1518500250, 31, dice.roll(-128, 127), dice.roll(-128, 127));
}

void checkRandomGraphs(uint64_t first, uint64_t count) {
  const char* const targets[] = {"ethos-u55-32",  "ethos-u55-64",   "ethos-u55-128", "ethos-u55-256",
                                 "ethos-u65-256", "ethos-u65-512",  "ethos-u85-128", "ethos-u85-256",
                                 "ethos-u85-512", "ethos-u85-1024", "ethos-u85-2048"};
  for (uint64_t seed = first; seed < first + count; ++seed) {
    Dice dice(seed);
    TosaBuilder b(seed * 1000);
    std::vector<ir::Value*> pool{
        b.input(DType::Int8, {1, dice.roll(1, 12), dice.roll(1, 12), dice.roll(1, 40)})};
    const int64_t operators = dice.roll(1, 7);
    for (int64_t i = 0; i < operators; ++i) {
      ir::Value* x =
          pool[dice.chance(2, 3) ? pool.size() - 1
                                 : static_cast<size_t>(dice.roll(0, static_cast<int64_t>(pool.size()) - 1))];
      pool.push_back(grow(b, x, pool, dice));
    }
    std::vector<ir::Value*> outputs{pool.back()};
    if (dice.chance(1, 3) && pool.size() > 2) outputs.push_back(pool[pool.size() - 2]);
    const ir::Graph graph = b.finish(outputs);
    const auto inputs = randomInputs(graph, seed);
    // Two targets per graph; over all graphs, every target is used.
    for (const uint64_t t : {seed % 11, (seed * 7 + 5) % 11}) {
      const std::string difference = differences(graph, targets[t], "", inputs);
      ASSERT_EQ(difference, "") << "seed " << seed;
    }
    const std::string striped =
        differences(graph, targets[(seed * 3 + 1) % 11], "", inputs, false, compiler::Optimize::Size);
    ASSERT_EQ(striped, "") << "seed " << seed << ", smallest arena";
  }
}

/// Values of one shape, computed element by element: codes, and truth values.
struct Pointwise {
  TosaBuilder b;
  Dice dice;
  Shape shape;
  std::vector<ir::Value*> codes, truths;

  explicit Pointwise(uint64_t seed) : b(seed * 1000), dice(seed) {
    shape = {1, dice.roll(1, 9), dice.roll(1, 9), dice.roll(1, 24)};
    codes = {b.input(DType::Int8, shape), b.input(DType::Int8, shape)};
    truths = {b.input(DType::Bool, dice.chance(1, 2) ? shape : Shape{1, 1, 1, shape[3]})};
  }

  /// Mostly the last value: chains of functions.
  ir::Value* pick(const std::vector<ir::Value*>& values) {
    const auto last = static_cast<int64_t>(values.size()) - 1;
    return values[static_cast<size_t>(dice.roll(dice.chance(2, 3) ? last : 0, last))];
  }
  ir::Value* number(DType type, int64_t value) {
    Tensor one = Tensor::zeros(type, {1, 1, 1, 1});
    one.setIntegerAt(0, value);
    return b.constant(std::move(one));
  }
  ir::Value* wide(ir::Value* x) {
    return b.rescale(x, DType::Int32, 1518500250, dice.roll(11, 13), dice.roll(-128, 127));
  }
  ir::Value* choice() {
    const int64_t numbers[] = {-128, 0, 127, dice.roll(-128, 127)};
    return dice.chance(1, 2) ? pick(codes) : number(DType::Int8, numbers[dice.roll(0, 3)]);
  }

  void grow() {
    switch (dice.roll(0, 8)) {
      case 0:
      case 1:
        codes.push_back(b.table(pick(codes)));
        break;
      case 2:
        codes.push_back(b.clamp(pick(codes), dice.roll(-128, 0), dice.roll(0, 127)));
        break;
      case 3:
        codes.push_back(b.rescale(b.make<tosa::Add>(wide(pick(codes)), wide(pick(codes))), DType::Int8,
                                  1431655728, 49 + dice.roll(0, 2), 0, dice.roll(-128, 127)));
        break;
      case 4:
      case 5: {
        ir::Value *tested = wide(pick(codes)), *limit = number(DType::Int32, dice.roll(-50000000, 50000000));
        truths.push_back(dice.chance(1, 2) ? b.make<tosa::Greater>(tested, limit)
                                           : b.make<tosa::GreaterEqual>(limit, tested));
        break;
      }
      case 6: {
        ir::Value *x = pick(truths), *y = pick(truths);
        truths.push_back(dice.chance(1, 2) ? b.make<tosa::LogicalAnd>(x, y) : b.make<tosa::LogicalOr>(x, y));
        break;
      }
      case 7:
        truths.push_back(b.make<tosa::LogicalNot>(pick(truths)));
        break;
      default: {
        ir::Value *x = pick(codes), *y = choice();
        codes.push_back(dice.chance(1, 2) ? b.make<tosa::Select>(pick(truths), x, y)
                                          : b.make<tosa::Select>(pick(truths), y, x));
      }
    }
  }
};

/// Functions of one value whose intermediate results others need, too.
TEST(RandomGraphs, OfPointwiseOperators) {
  const char* const targets[] = {"ethos-u55-128", "ethos-u65-256", "ethos-u85-256"};
  for (uint64_t seed = 1; seed <= 600; ++seed) {
    Pointwise p(seed);
    for (int64_t i = p.dice.roll(3, 14); i > 0; --i) p.grow();
    const ir::Graph graph = p.b.finish({p.pick(p.codes), p.pick(p.truths), p.codes.back()});
    ASSERT_EQ(differences(graph, targets[seed % 3], "", randomInputs(graph, seed)), "") << "seed " << seed;
  }
}

// CARINA_RANDOM_GRAPHS sets the number of graphs.
TEST(RandomGraphs, AgreeOnAllLevels) {
  const char* count = std::getenv("CARINA_RANDOM_GRAPHS");
  checkRandomGraphs(1, count ? std::strtoull(count, nullptr, 10) : 150);
}

}  // namespace
}  // namespace carina::test
