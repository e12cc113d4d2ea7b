// SPDX-License-Identifier: Apache-2.0
// Arithmetic on bit patterns against the host's floating-point unit, and, where the host differs, against the
// architecture manual.
#include "cpu_m/fp_arith.hpp"

#include <gtest/gtest.h>

#include <cfenv>
#include <cmath>
#include <functional>
#include <random>
#include <type_traits>

namespace carina::cpu_m {
namespace {

constexpr int kRounds = 60000;

template <class Bits>
using Host = std::conditional_t<sizeof(Bits) == 4, float, double>;

/// Numbers near each other, near the ends of the format, with few and with many bits, infinities and NaNs.
template <class Bits>
Bits interesting(std::mt19937_64& random) {
  using L = FpLayout<Bits>;
  const std::uint64_t word = random();
  Bits bits = static_cast<Bits>(random());
  switch (word % 8) {
    case 0:  // exponents around 0
      bits = static_cast<Bits>(
          (bits & ~L::kInfinity) |
          (static_cast<Bits>(L::kBias + static_cast<int>((word >> 8) % 60) - 30) << L::kFractionBits &
           L::kInfinity));
      break;
    case 1:  // denormals and small normals
      bits = static_cast<Bits>(bits & ~(L::kInfinity << 1 & L::kInfinity));
      break;
    case 2:  // few bits in the fraction
      bits = static_cast<Bits>(bits & ~((L::kMinNormal - 1) >> 3));
      break;
    case 3: {
      constexpr Bits kSpecial[] = {0,
                                   L::kMinNormal,
                                   static_cast<Bits>(L::kMinNormal - 1),
                                   1,
                                   L::kInfinity,
                                   static_cast<Bits>(L::kInfinity - 1),
                                   L::kDefaultNan,
                                   static_cast<Bits>(L::kInfinity + 1),
                                   static_cast<Bits>(L::kDefaultNan + 5),
                                   static_cast<Bits>(Bits{L::kBias} << L::kFractionBits)};
      bits = static_cast<Bits>(kSpecial[(word >> 8) % std::size(kSpecial)] | (word >> 40 & 1 ? L::kSign : 0));
      break;
    }
    default:
      break;
  }
  return bits;
}

constexpr std::pair<Rounding, int> kRoundings[] = {{Rounding::NearestEven, FE_TONEAREST},
                                                   {Rounding::PlusInfinity, FE_UPWARD},
                                                   {Rounding::MinusInfinity, FE_DOWNWARD},
                                                   {Rounding::Zero, FE_TOWARDZERO}};

std::uint32_t hostFlags() {
  const int raised = std::fetestexcept(FE_ALL_EXCEPT);
  return (raised & FE_INVALID ? fp_flag::kInvalid : 0) |
         (raised & FE_DIVBYZERO ? fp_flag::kDivideByZero : 0) |
         (raised & FE_OVERFLOW ? fp_flag::kOverflow : 0) | (raised & FE_UNDERFLOW ? fp_flag::kUnderflow : 0) |
         (raised & FE_INEXACT ? fp_flag::kInexact : 0);
}

/// Runs `host` under a rounding mode and returns its result and flags.
template <class H>
std::pair<H, std::uint32_t> onHost(int mode, const std::function<H()>& host) {
  std::fesetround(mode);
  std::feclearexcept(FE_ALL_EXCEPT);
  const H result = host();
  const std::uint32_t flags = hostFlags();
  std::fesetround(FE_TONEAREST);
  return {result, flags};
}

template <class Bits>
void expectSame(Bits mine, std::uint32_t my_flags, Host<Bits> host, std::uint32_t host_flags,
                const char* what, Bits a, Bits b, Bits c, Rounding rounding) {
  const auto expected = std::bit_cast<Bits>(host);
  // The host detects tininess after rounding: it differs where rounding leads to the smallest normal number.
  std::uint32_t compared = fp_flag::kAll & ~fp_flag::kInputDenormal;
  if (fpAbs(expected) == FpLayout<Bits>::kMinNormal) compared &= ~fp_flag::kUnderflow;
  const bool same = fpIsNan(expected) ? fpIsNan(mine) && !fpIsSignallingNan(mine) : mine == expected;
  ASSERT_TRUE(same && (my_flags & compared) == (host_flags & compared))
      << what << std::hex << " of " << +a << ' ' << +b << ' ' << +c << " rounding "
      << static_cast<int>(rounding) << ": " << +mine << " flags " << my_flags << ", host " << +expected
      << " flags " << host_flags;
}

template <class Bits>
class HostArithmetic : public testing::Test {};
using HostFormats = testing::Types<std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(HostArithmetic, HostFormats);

TYPED_TEST(HostArithmetic, EveryOperationInEveryRoundingMode) {
  using Bits = TypeParam;
  using H = Host<Bits>;
  std::mt19937_64 random(sizeof(Bits));
  for (const auto& mode : kRoundings) {
    const Rounding rounding = mode.first;
    const int fe = mode.second;
    for (int i = 0; i < kRounds; ++i) {
      const auto a = interesting<Bits>(random), b = interesting<Bits>(random);
      auto c = interesting<Bits>(random);
      volatile H x = std::bit_cast<H>(a), y = std::bit_cast<H>(b);
      if (i % 3 == 0) c = std::bit_cast<Bits>(static_cast<H>(-(x * y)));  // cancellation
      volatile H z = std::bit_cast<H>(c);
      const auto check = [&](const char* what, const std::function<Bits(FpContext&)>& mine,
                             const std::function<H()>& host) {
        FpContext context;
        context.rounding = rounding;
        const Bits result = mine(context);
        const auto expected = onHost<H>(fe, host);
        expectSame(result, context.flags, expected.first, expected.second, what, a, b, c, rounding);
      };
      check(
          "add", [&](FpContext& f) { return fpAdd(a, b, f); }, [&] { return x + y; });
      check(
          "add close", [&](FpContext& f) { return fpAdd(a, c, f); }, [&] { return x + z; });
      check(
          "sub", [&](FpContext& f) { return fpSub(a, b, f); }, [&] { return x - y; });
      check(
          "mul", [&](FpContext& f) { return fpMul(a, b, f); }, [&] { return x * y; });
      check(
          "div", [&](FpContext& f) { return fpDiv(a, b, f); }, [&] { return x / y; });
      check(
          "sqrt", [&](FpContext& f) { return fpSqrt(a, f); }, [&] { return std::sqrt(static_cast<H>(x)); });
      // Infinity * 0 + quiet NaN is invalid on Arm only.
      const bool undefined = std::isnan(x * y) && !std::isnan(x) && !std::isnan(y);
      if (!undefined || !std::isnan(z))
        check(
            "fma", [&](FpContext& f) { return fpMulAdd(c, a, b, f); },
            [&] { return std::fma(static_cast<H>(x), static_cast<H>(y), static_cast<H>(z)); });
      check(
          "rint", [&](FpContext& f) { return fpRoundToIntegral(a, rounding, true, f); },
          [&] { return std::rint(static_cast<H>(x)); });
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

TYPED_TEST(HostArithmetic, KnownInexactFlagChangesNoResult) {
  using Bits = TypeParam;
  std::mt19937_64 random(77 + sizeof(Bits));
  for (int i = 0; i < kRounds; ++i) {
    const auto a = interesting<Bits>(random), b = interesting<Bits>(random);
    FpContext fresh, known;
    known.flags = fp_flag::kInexact;
    ASSERT_EQ(fpMul(a, b, fresh), fpMul(a, b, known));
    ASSERT_EQ(fpSqrt(a, fresh), fpSqrt(a, known));
    ASSERT_EQ(fresh.flags | fp_flag::kInexact, known.flags);
  }
}

TYPED_TEST(HostArithmetic, ComparesLikeTheHost) {
  using Bits = TypeParam;
  using H = Host<Bits>;
  std::mt19937_64 random(5);
  for (int i = 0; i < kRounds; ++i) {
    const auto a = interesting<Bits>(random);
    const auto b = i % 4 == 0 ? a : interesting<Bits>(random);
    const auto x = std::bit_cast<H>(a), y = std::bit_cast<H>(b);
    FpContext context;
    const unsigned expected = x == y ? 6 : x < y ? 8 : x > y ? 2 : 3;
    ASSERT_EQ(fpCompare(a, b, false, context), expected);
    ASSERT_EQ(context.flags, fpIsSignallingNan(a) || fpIsSignallingNan(b) ? fp_flag::kInvalid : 0);
    fpCompare(a, b, true, context);
    ASSERT_EQ(context.flags, fpIsNan(a) || fpIsNan(b) ? fp_flag::kInvalid : 0);
  }
}

TYPED_TEST(HostArithmetic, ConvertsToAndFromIntegers) {
  using Bits = TypeParam;
  using H = Host<Bits>;
  std::mt19937_64 random(9);
  for (const auto& mode : kRoundings) {
    const Rounding rounding = mode.first;
    for (int i = 0; i < kRounds; ++i) {
      const auto word = static_cast<std::int64_t>(random()) >> (random() % 64);
      FpContext context;
      const Bits mine = fpFromFixed<Bits>(static_cast<std::uint64_t>(word), 0, false, rounding, context);
      volatile std::int64_t source = word;
      const auto host = onHost<H>(mode.second, [&] { return static_cast<H>(source); });
      expectSame<Bits>(mine, context.flags, host.first, host.second, "from integer", static_cast<Bits>(word),
                       0, 0, rounding);
      if (testing::Test::HasFatalFailure()) return;

      const auto a = interesting<Bits>(random);
      const H rounded = onHost<H>(mode.second, [&] { return std::rint(std::bit_cast<H>(a)); }).first;
      FpContext to;
      const auto integer = static_cast<std::int64_t>(fpToFixed(a, 0, 32, false, rounding, to));
      if (fpIsNan(a)) {
        ASSERT_EQ(integer, 0);
        ASSERT_EQ(to.flags, fp_flag::kInvalid);
      } else if (rounded < H{-2147483648.0} || rounded >= H{2147483648.0}) {
        ASSERT_EQ(integer, rounded < 0 ? INT32_MIN : INT32_MAX);
        ASSERT_EQ(to.flags, fp_flag::kInvalid);
      } else {
        ASSERT_EQ(integer, static_cast<std::int64_t>(rounded));
        ASSERT_EQ(to.flags, rounded == std::bit_cast<H>(a) ? 0 : fp_flag::kInexact);
      }
    }
  }
}

TEST(FpConvert, SingleAndDouble) {
  std::mt19937_64 random(3);
  for (const auto& mode : kRoundings) {
    for (int i = 0; i < kRounds; ++i) {
      auto wide = interesting<std::uint64_t>(random);
      if (i % 2 == 0)
        wide = (wide & ~(std::uint64_t{0x7ff} << 52)) | (std::uint64_t{1023 - 150 + random() % 290} << 52);
      FpContext context;
      context.rounding = mode.first;
      const auto narrow = fpConvert<std::uint32_t>(wide, context);
      volatile double source = std::bit_cast<double>(wide);
      const auto host = onHost<float>(mode.second, [&] { return static_cast<float>(source); });
      expectSame<std::uint32_t>(narrow, context.flags, host.first, host.second, "narrow", wide >> 32, wide, 0,
                                mode.first);
      if (testing::Test::HasFatalFailure()) return;
      FpContext back;
      const auto again = fpConvert<std::uint64_t>(narrow, back);
      ASSERT_EQ(back.flags, 0u);  // narrowing has quieted NaNs
      if (!fpIsNan(narrow)) {
        ASSERT_EQ(again, std::bit_cast<std::uint64_t>(double{std::bit_cast<float>(narrow)}));
      }
    }
  }
}

TEST(FpHalf, EveryValueSurvivesWidening) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    FpContext context;
    const auto wide = fpConvert<std::uint32_t>(half, context);
    const auto widest = fpConvert<std::uint64_t>(half, context);
    ASSERT_EQ(context.flags, fpIsSignallingNan(half) ? fp_flag::kInvalid : 0u);
    const auto quiet = static_cast<std::uint16_t>(fpIsNan(half) ? half | 0x200 : half);
    ASSERT_EQ(fpConvert<std::uint16_t>(wide, context), quiet);
    ASSERT_EQ(fpConvert<std::uint16_t>(widest, context), quiet);
    if (!fpIsNan(half)) {
      const int exponent = half >> 10 & 31;
      const double magnitude = exponent == 31  ? INFINITY
                               : exponent == 0 ? std::ldexp(half & 0x3ff, -24)
                                               : std::ldexp((half & 0x3ff) | 0x400, exponent - 25);
      ASSERT_EQ(std::bit_cast<double>(widest), half & 0x8000 ? -magnitude : magnitude);
    }
  }
}

TEST(FpHalf, OperationsRoundTheExactResultOnce) {
  // Sums, products and quotients of halves are exact in double, or decided by far fewer bits than double has.
  std::mt19937_64 random(11);
  for (const auto& mode : kRoundings) {
    for (int i = 0; i < kRounds; ++i) {
      const auto a = interesting<std::uint16_t>(random), b = interesting<std::uint16_t>(random);
      if (fpIsNan(a) || fpIsNan(b)) continue;
      const auto check = [&](std::uint16_t mine, const FpContext& mine_context, double exact,
                             const char* what) {
        FpContext context;
        context.rounding = mode.first;
        const auto expected = fpConvert<std::uint16_t>(std::bit_cast<std::uint64_t>(exact), context);
        ASSERT_TRUE(fpIsNan(expected) ? fpIsNan(mine) : mine == expected)
            << what << std::hex << ' ' << a << ' ' << b << ": " << mine << " expected " << expected;
        if (std::isnan(exact) || std::isinf(exact)) return;
        ASSERT_EQ(mine_context.flags, context.flags) << what;
      };
      FpContext ignored;
      const double x = std::bit_cast<double>(fpConvert<std::uint64_t>(a, ignored));
      const double y = std::bit_cast<double>(fpConvert<std::uint64_t>(b, ignored));
      FpContext f[4];
      for (auto& each : f) each.rounding = mode.first;
      if (x + y != 0) check(fpAdd(a, b, f[0]), f[0], x + y, "add");
      if (x - y != 0) check(fpSub(a, b, f[1]), f[1], x - y, "sub");
      check(fpMul(a, b, f[2]), f[2], x * y, "mul");
      check(fpDiv(a, b, f[3]), f[3], x / y, "div");
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

// --- What FPSCR governs
// -------------------------------------------------------------------------------------------------

TEST(FpContextTest, ReadsFpscr) {
  const FpContext c = FpContext::scalar(1u << 26 | 1u << 24 | 2u << 22 | 1u << 19 | 0x93);
  EXPECT_EQ(c.rounding, Rounding::MinusInfinity);
  EXPECT_TRUE(c.flush && c.flush_half && c.alternative_half);
  EXPECT_FALSE(c.default_nan);
  EXPECT_EQ(c.flags, 0x93u);
  const FpContext s = FpContext::standard(3u << 22);
  EXPECT_EQ(s.rounding, Rounding::NearestEven);
  EXPECT_TRUE(s.flush && s.default_nan);
  EXPECT_FALSE(s.flush_half);
}

TEST(FpFlush, InputsAndTinyResults) {
  FpContext c;
  c.flush = true;
  EXPECT_EQ(fpAdd<std::uint32_t>(0x80000001, 0x80000001, c), 0x80000000u);
  EXPECT_EQ(c.flags, fp_flag::kInputDenormal);
  c.flags = 0;
  EXPECT_EQ(fpMul<std::uint32_t>(0x00800000, 0xbf000000, c), 0x80000000u);  // half of the smallest normal
  EXPECT_EQ(c.flags, fp_flag::kUnderflow);
  c.flags = 0;
  // Flushing looks at the exact result: this one would round to the smallest normal.
  EXPECT_EQ(fpMul<std::uint32_t>(0x00ffffff, 0x3f000000, c), 0u);
  EXPECT_EQ(c.flags, fp_flag::kUnderflow);
  c.flags = 0;
  EXPECT_EQ(fpAdd<std::uint16_t>(1, 1, c), 2u);  // FZ does not govern half precision
  EXPECT_EQ(c.flags, 0u);
  c.flush_half = true;
  EXPECT_EQ(fpAdd<std::uint16_t>(1, 1, c), 0u);
  EXPECT_EQ(c.flags, 0u);                                                   // without IDC
  EXPECT_EQ((fpConvert<std::uint32_t, std::uint16_t>(1, c)), 0x33800000u);  // conversions never flush half
}

TEST(FpUnderflow, TininessBeforeRounding) {
  FpContext c;
  EXPECT_EQ(fpMul<std::uint32_t>(0x00ffffff, 0x3f000000, c), 0x00800000u);
  EXPECT_EQ(c.flags, fp_flag::kUnderflow | fp_flag::kInexact);
}

TEST(FpNan, PropagationOrder) {
  const std::uint32_t quiet = 0x7fc00011, signalling = 0xff800022, other = 0x7fc00033;
  FpContext c;
  EXPECT_EQ(fpAdd(quiet, other, c), quiet);
  EXPECT_EQ(c.flags, 0u);
  EXPECT_EQ(fpAdd(quiet, signalling, c), 0xffc00022u);
  EXPECT_EQ(c.flags, fp_flag::kInvalid);
  EXPECT_EQ(fpSub(std::uint32_t{0}, quiet, c), quiet);
  EXPECT_EQ(fpMulAdd(other, quiet, std::uint32_t{0}, c), other);
  EXPECT_EQ(fpMulAdd(other, quiet, signalling, c), 0xffc00022u);
  c.flags = 0;
  EXPECT_EQ(fpMulAdd<std::uint32_t>(other, 0x7f800000, 0, c), 0x7fc00000u);  // infinity * 0 + quiet NaN
  EXPECT_EQ(c.flags, fp_flag::kInvalid);
  c.default_nan = true;
  EXPECT_EQ(fpAdd(quiet, other, c), 0x7fc00000u);
}

TEST(FpMaxNum, NumbersBeatQuietNans) {
  FpContext c;
  EXPECT_EQ(fpMaxNum<std::uint32_t>(0x7fc00001, 0xbf800000, c), 0xbf800000u);
  EXPECT_EQ(fpMinNum<std::uint32_t>(0x3f800000, 0x7fc00001, c), 0x3f800000u);
  EXPECT_EQ(fpMaxNum<std::uint32_t>(0x80000000, 0, c), 0u);
  EXPECT_EQ(fpMinNum<std::uint32_t>(0, 0x80000000, c), 0x80000000u);
  EXPECT_EQ(c.flags, 0u);
  EXPECT_EQ(fpMaxNum<std::uint32_t>(0x7f800001, 0x3f800000, c), 0x7fc00001u);
  EXPECT_EQ(c.flags, fp_flag::kInvalid);
}

TEST(FpRounding, TiesAway) {
  FpContext c;
  EXPECT_EQ(fpRoundToIntegral<std::uint32_t>(0x40200000, Rounding::NearestAway, false, c),
            0x40400000u);  // 2.5
  EXPECT_EQ(fpRoundToIntegral<std::uint32_t>(0xbf000000, Rounding::NearestAway, false, c),
            0xbf800000u);  // -0.5
  EXPECT_EQ(fpRoundToIntegral<std::uint32_t>(0xbeffffff, Rounding::NearestAway, false, c), 0x80000000u);
  EXPECT_EQ(c.flags, 0u);
  EXPECT_EQ(fpToFixed<std::uint32_t>(0x3f000000, 0, 32, false, Rounding::NearestAway, c), 1u);
  EXPECT_EQ(c.flags, fp_flag::kInexact);
}

TEST(FpFixed, FractionBitsAndSaturation) {
  FpContext c;
  EXPECT_EQ(fpToFixed<std::uint32_t>(0x3fc00000, 4, 16, false, Rounding::Zero, c), 24u);  // 1.5
  EXPECT_EQ(fpFromFixed<std::uint32_t>(24, 4, false, Rounding::NearestEven, c), 0x3fc00000u);
  EXPECT_EQ(c.flags, 0u);
  EXPECT_EQ(fpToFixed<std::uint32_t>(0x47800000, 0, 16, true, Rounding::Zero, c), 0xffffu);
  EXPECT_EQ(c.flags, fp_flag::kInvalid);
  c.flags = 0;
  EXPECT_EQ(fpToFixed<std::uint32_t>(0xbf000000, 0, 32, true, Rounding::Zero, c), 0u);  // -0.5
  EXPECT_EQ(c.flags, fp_flag::kInexact);
  c.flags = 0;
  EXPECT_EQ(fpToFixed<std::uint32_t>(0xbf800000, 0, 32, true, Rounding::Zero, c), 0u);  // -1
  EXPECT_EQ(c.flags, fp_flag::kInvalid);
  c.flags = 0;
  EXPECT_EQ(fpToFixed<std::uint64_t>(0xc1e0000000000000, 0, 32, false, Rounding::Zero, c),
            0xffffffff80000000u);
  EXPECT_EQ(c.flags, 0u);
}

TEST(FpAlternativeHalf, HasNoInfinities) {
  FpContext c;
  c.alternative_half = true;
  EXPECT_EQ((fpConvert<std::uint32_t, std::uint16_t>(0x7fff, c)), 0x47ffe000u);  // 131008
  EXPECT_EQ((fpConvert<std::uint16_t, std::uint32_t>(0x47ffe000, c)), 0x7fffu);
  EXPECT_EQ(c.flags, 0u);
  EXPECT_EQ((fpConvert<std::uint16_t, std::uint32_t>(0xff800000, c)), 0xffffu);
  EXPECT_EQ(c.flags, fp_flag::kInvalid);
  c.flags = 0;
  EXPECT_EQ((fpConvert<std::uint16_t, std::uint32_t>(0x7fc00000, c)), 0u);
  EXPECT_EQ(c.flags, fp_flag::kInvalid);
}

}  // namespace
}  // namespace carina::cpu_m
