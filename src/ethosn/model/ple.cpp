// SPDX-License-Identifier: Apache-2.0
// PLE stripes: where their input comes from, and the kernels that work elementwise or move elements.
#include <cmath>

#include "ethosn/cost/cycles.hpp"
#include "ethosn/cost/metric.hpp"
#include "ethosn/model/ple_kernel.hpp"

namespace carina::ethosn::model {
namespace {

uint16_t halfOf(uint32_t word, int half) {
  return static_cast<uint16_t>(word >> (16 * half));
}

/// ASRSAT.32.16: arithmetic shift, then saturation to 16 bits.
int16_t shiftedAndSaturated(int64_t value, int shift) {
  return static_cast<int16_t>(std::clamp<int64_t>(value >> shift, -32768, 32767));
}

/// (x - zero point) * multiplier / 2^shift in 16 bits, rounded half up.
int16_t rescaled(int32_t x, int16_t zeroPoint, uint16_t multiplier, uint16_t shift) {
  const int16_t half = shiftedAndSaturated(int64_t{x - zeroPoint} * multiplier, (shift - 1) & 31);
  return static_cast<int16_t>(static_cast<int16_t>(half + 1) >> 1);
}

/// 1 / (1 + 2^-y) for y = |x - zero point| in 8.8 fixed point, as 8 bits; for negative inputs, 256 minus
/// that.
uint8_t sigmoidOf(int32_t x, int16_t zeroPoint, uint16_t multiplier, uint16_t shift, bool isSigned) {
  const int32_t difference = x - zeroPoint;
  const uint64_t scaled = (static_cast<uint64_t>(std::abs(difference)) * multiplier) >> (shift & 31);
  const auto exponent = static_cast<int16_t>(static_cast<uint16_t>(0 - std::min<uint64_t>(scaled, 65535)));
  const double power = std::min(std::nearbyint(std::exp2(exponent / 256.0) * 256), 65535.0);
  const auto denominator = static_cast<uint16_t>(static_cast<uint16_t>(power) + 256);
  const auto reciprocal = static_cast<uint16_t>(
      denominator == 0 ? 65535 : std::min(std::nearbyint(65536.0 / denominator), 65535.0));
  auto value = static_cast<uint8_t>((reciprocal & 0xff) - (reciprocal >> 8));
  if (isSigned) value = static_cast<uint8_t>(value - 128);
  return difference < 0 ? static_cast<uint8_t>(0 - value) : value;
}

}  // namespace

Result<Block> Machine::readTile(int64_t address, int32_t h, int32_t w, int32_t c) {
  const Tile tile = sram_.packed(address, w, c);
  CARINA_RETURN_IF_ERROR(sram_.checkTile(tile, h, w, c));
  touchTile(tile, 0, h, 0, w, c, false);
  Block block{h, w, c, std::vector<uint8_t>(static_cast<size_t>(int64_t{h} * w * c))};
  for (int32_t y = 0; y < h; ++y) {
    for (int32_t x = 0; x < w; ++x) sram_.read(tile, y, x, c, block.at(y, x));
  }
  return block;
}

Status Machine::writeTile(int64_t address, const Block& block) {
  const Tile tile = sram_.packed(address, block.w, block.c);
  CARINA_RETURN_IF_ERROR(sram_.checkTile(tile, block.h, block.w, block.c));
  touchTile(tile, 0, block.h, 0, block.w, block.c, true);
  for (int32_t y = 0; y < block.h; ++y) {
    for (int32_t x = 0; x < block.w; ++x) sram_.write(tile, y, x, block.c, block.at(y, x));
  }
  return {};
}

Result<Machine::Progress> Machine::startPle(const StartPleStripe& command) {
  const auto& agent = std::get<PleScheduler>(stream_.agents[command.agent].data);
  const auto known = pleKernel(agent.pleKernel);
  if (!known) return fail(Code::NpuFault, "there is no PLE kernel {}", agent.pleKernel);
  const std::array<uint32_t, 8>& s = command.scratch;
  Kernel kernel;
  kernel.agent = command.agent;
  kernel.kernel = known->kernel;
  kernel.isSigned = known->kernel.signedness == PleSignedness::Signed;
  kernel.scratch = s;
  kernel.top = (s[0] & 1) != 0;
  kernel.bottom = (s[0] & 2) != 0;
  for (size_t i = 0; i < 2; ++i) {
    kernel.inputs[i] = {halfOf(s[1 + 2 * i], 0) * int64_t{16}, static_cast<int16_t>(halfOf(s[1 + 2 * i], 1)),
                        halfOf(s[2 + 2 * i], 0), halfOf(s[2 + 2 * i], 1)};
  }
  kernel.outAddress = halfOf(s[5], 0) * int64_t{16};
  kernel.outZeroPoint = static_cast<int16_t>(halfOf(s[5], 1));
  kernel.w = halfOf(s[6], 0);
  kernel.h = halfOf(s[6], 1);
  kernel.d = halfOf(s[7], 0);
  const bool fromMce = agent.input == PleInput::MceAllOgs || agent.input == PleInput::MceOneOg;
  size_t taken = 0;
  std::pair<uint32_t, uint32_t> mceStripes{};  // first and last whose results it consumes
  Clock atEnd;
  Block input;
  if (fromMce) {
    // Interleaving yields four channels for one; all sub-maps but the last are padded to the number of banks.
    const int32_t banks = variant_.banks();
    const int32_t rest = kernel.d % (4 * banks);
    const bool interleave = kernel.kernel.operation == PleOperation::Interleave2x2;
    const int32_t depth =
        interleave ? kernel.d / (4 * banks) * banks + std::max(rest - 3 * banks, 0) : kernel.d;
    int32_t found = 0;
    while (taken < outputs_.size() && found < depth) found += outputs_[taken++].block.c;
    if (found < depth || taken == 0) return Progress::Blocked;
    if (!interleave && found != depth) {
      return fail(Code::NpuFault, "a PLE stripe consumes {} channels; the preceding MCE stripes produce {}",
                  depth, found);
    }
    input = std::move(outputs_.front().block);
    for (size_t i = 1; i < taken; ++i) {
      const Block& part = outputs_[i].block;
      if (part.h != input.h || part.w != input.w) {
        return fail(Code::NpuFault, "a PLE stripe consumes results of both {}x{} and {}x{}", input.w, input.h,
                    part.w, part.h);
      }
      Block joined{input.h, input.w, input.c + part.c,
                   std::vector<uint8_t>(input.data.size() + part.data.size())};
      for (int64_t y = 0; y < input.h; ++y) {
        for (int64_t x = 0; x < input.w; ++x) {
          std::copy_n(input.at(y, x), input.c, joined.at(y, x));
          std::copy_n(part.at(y, x), part.c, joined.at(y, x) + input.c);
        }
      }
      input = std::move(joined);
    }
    const MceOutput& last = outputs_[taken - 1];
    const auto& mce = std::get<MceScheduler>(stream_.agents[last.agent].data);
    if (mce.pleKernel != agent.pleKernel) {
      find(fmt::format("the MCE produces results for {}, the PLE runs {}", pleKernelName(mce.pleKernel),
                       pleKernelName(agent.pleKernel)));
    }
    // While the PLE consumes the results of a stripe, all preceding stripes are done; when the PLE is done,
    // so is that stripe.
    const MceOutput& start = outputs_.front();
    Clock& clock = clocks_[static_cast<size_t>(Queue::Ple)];
    if (clock.done[static_cast<size_t>(Counter::Mceif)] < start.mceif) {
      find("a PLE stripe starts without waiting for MCEIF to be configured for it");
    }
    const std::vector<Clock>& ends = ends_[static_cast<size_t>(Counter::MceStripe)];
    if (start.ordinal > 1) clock.join(ends[start.ordinal - 2]);
    consumedStripes_ = last.ordinal;
    mceStripes = {start.ordinal, last.ordinal};
    atEnd = ends[last.ordinal - 1];
    outputs_.erase(outputs_.begin(), outputs_.begin() + static_cast<std::ptrdiff_t>(taken));
  }
  if (loadedKernel_ != agent.pleKernel) {
    find(fmt::format("{} is not loaded: the PLE has {}", pleKernelName(agent.pleKernel),
                     loadedKernel_ ? pleKernelName(*loadedKernel_) : "no kernel"));
  } else if (const uint32_t loads = counters_[static_cast<size_t>(Counter::PleCodeLoaded)];
             clocks_[static_cast<size_t>(Queue::Ple)].done[static_cast<size_t>(Counter::PleCodeLoaded)] <
             loads) {
    find("a PLE stripe starts without waiting for its code");
  }
  stats(command.agent).stripes += 1;
  const uint64_t elements = static_cast<uint64_t>(kernel.w) * kernel.h * kernel.d;
  CARINA_RETURN_IF_ERROR(spend(kPleSteps * static_cast<double>(elements)));
  if (elements > static_cast<uint64_t>(target_.sramBytes)) {
    return fail(Code::NpuFault, "a PLE stripe of {}x{}x{} elements is larger than the SRAM", kernel.w,
                kernel.h, kernel.d);
  }
  const PleWork work = fromMce ? PleWork{input.h, input.w, input.c, kernel.h, kernel.w}
                               : PleWork{kernel.h, kernel.w, kernel.d, kernel.h, kernel.w};
  const uint64_t cycles = pleCycles(variant_, kernel.kernel, work);
  stats(command.agent).cycles += cycles;
  stats(command.agent).patches += plePatches(variant_, kernel.kernel, work);
  result_.stats.pleCycles += cycles;
  time_.pleStripe(stripesCycles(cycles, 1, pleStripeOverhead(kernel.kernel.operation)), mceStripes.first,
                  mceStripes.second);
  CARINA_RETURN_IF_ERROR(fromMce ? fused(kernel, input) : standalone(kernel));
  clocks_[static_cast<size_t>(Queue::Ple)].join(atEnd);
  return Progress::Done;
}

Status Machine::fused(const Kernel& kernel, const Block& input) {
  switch (kernel.kernel.operation) {
    case PleOperation::MeanXy7x7:
    case PleOperation::MeanXy8x8:
      return mean(kernel, input);
    case PleOperation::MaxPool3x3Even:
    case PleOperation::MaxPool3x3Odd:
      return maxPool3x3(kernel, input);
    case PleOperation::Sigmoid:
      assume(Assumption::SigmoidTables);
      break;
    case PleOperation::Passthrough:
    case PleOperation::LeakyRelu:
    case PleOperation::Downsample2x2:
    case PleOperation::Interleave2x2:
    case PleOperation::TransposeXy:
    case PleOperation::MaxPool2x2:
      break;
    default:
      return fail(Code::NpuFault, "{} takes its input from SRAM, not from the MCE",
                  pleOperationName(kernel.kernel.operation));
  }
  return fusedPixelwise(kernel, input);
}

/// Kernels whose output elements depend on few input elements. What the MCE did not produce is 0.
Status Machine::fusedPixelwise(const Kernel& kernel, const Block& input) {
  Block out{kernel.h, kernel.w, kernel.d,
            std::vector<uint8_t>(static_cast<size_t>(int64_t{kernel.h} * kernel.w * kernel.d))};
  const int32_t banks = variant_.banks();
  const auto& [first, second] = kernel.inputs;
  const auto inside = [&](int64_t y, int64_t x) { return y < input.h && x < input.w; };
  std::array<uint8_t, 256> table{};
  const PleOperation operation = kernel.kernel.operation;
  if (operation == PleOperation::Sigmoid || operation == PleOperation::LeakyRelu) {
    for (int32_t i = 0; i < 256; ++i) {
      const int32_t x = valueOf(static_cast<uint8_t>(i), kernel.isSigned);
      const auto at = static_cast<size_t>(i);
      if (operation == PleOperation::Sigmoid) {
        table[at] = sigmoidOf(x, first.zeroPoint, first.multiplier, first.shift, kernel.isSigned);
      } else {
        const int16_t larger = std::max(rescaled(x, first.zeroPoint, first.multiplier, first.shift),
                                        rescaled(x, first.zeroPoint, second.multiplier, second.shift));
        table[at] = saturated(static_cast<int16_t>(larger + kernel.outZeroPoint), kernel.isSigned);
      }
    }
  }
  bool padded = false;
  for (int64_t y = 0; y < kernel.h; ++y) {
    for (int64_t x = 0; x < kernel.w; ++x) {
      uint8_t* to = out.at(y, x);
      switch (operation) {
        case PleOperation::Sigmoid:
        case PleOperation::LeakyRelu:
          for (int64_t c = 0; c < out.c; ++c) to[c] = table[inside(y, x) ? input.at(y, x)[c] : 0];
          break;
        case PleOperation::Downsample2x2:
          if (inside(2 * y, 2 * x)) std::copy_n(input.at(2 * y, 2 * x), out.c, to);
          break;
        case PleOperation::TransposeXy:
          if (inside(x, y)) std::copy_n(input.at(x, y), out.c, to);
          break;
        case PleOperation::Interleave2x2:
          for (int64_t c = 0; c < out.c; ++c) {
            const int64_t part = c / banks % 4, from = c / (4 * banks) * banks + c % banks;
            if (from < input.c && inside(2 * y + part / 2, 2 * x + part % 2)) {
              to[c] = input.at(2 * y + part / 2, 2 * x + part % 2)[from];
            }
          }
          break;
        case PleOperation::MaxPool2x2:
          for (int64_t c = 0; c < out.c; ++c) {
            int32_t most = -129;
            for (int64_t tap = 0; tap < 4; ++tap) {
              const int64_t yy = 2 * y + tap / 2, xx = 2 * x + tap % 2;
              if (inside(yy, xx)) {
                most = std::max(most, valueOf(input.at(yy, xx)[c], kernel.isSigned));
              } else {
                padded = true;
              }
            }
            to[c] = most == -129 ? 0 : static_cast<uint8_t>(most);
          }
          break;
        default:
          if (inside(y, x)) std::copy_n(input.at(y, x), out.c, to);
          break;
      }
    }
  }
  if (padded) assume(Assumption::PaddedMaxPool);
  return writeTile(kernel.outAddress, out);
}

Status Machine::standalone(const Kernel& kernel) {
  switch (kernel.kernel.operation) {
    case PleOperation::Addition:
    case PleOperation::AdditionRescale:
      return addition(kernel);
    case PleOperation::Multiplication:
      return multiplication(kernel);
    case PleOperation::AvgPool3x3:
      return averagePool(kernel);
    case PleOperation::MaxPool1d:
      return maxPool1d(kernel);
    default:
      return fail(Code::NpuFault, "{} takes its input from the MCE, not from SRAM",
                  pleOperationName(kernel.kernel.operation));
  }
}

Status Machine::addition(const Kernel& kernel) {
  const auto& [first, second] = kernel.inputs;
  CARINA_TRY(Block a, readTile(first.address, kernel.h, kernel.w, kernel.d));
  CARINA_TRY(const Block b, readTile(second.address, kernel.h, kernel.w, kernel.d));
  const bool rescale = kernel.kernel.operation == PleOperation::AdditionRescale;
  for (size_t i = 0; i < a.data.size(); ++i) {
    const int32_t x = valueOf(a.data[i], kernel.isSigned), y = valueOf(b.data[i], kernel.isSigned);
    const int32_t sum =
        rescale ? static_cast<int16_t>(rescaled(x, first.zeroPoint, first.multiplier, first.shift) +
                                       rescaled(y, second.zeroPoint, second.multiplier, second.shift) +
                                       kernel.outZeroPoint)
                : x - first.zeroPoint + y;
    a.data[i] = saturated(sum, kernel.isSigned);
  }
  return writeTile(kernel.outAddress, a);
}

/// The hardware's own arithmetic: it truncates, and does not saturate to 8 bits.
Status Machine::multiplication(const Kernel& kernel) {
  const std::array<uint32_t, 8>& s = kernel.scratch;
  const int32_t w = halfOf(s[0], 0), h = halfOf(s[0], 1);
  const auto d = static_cast<int32_t>(halfOf(s[1], 0));
  const auto zeroPoint = static_cast<int16_t>(halfOf(s[2], 0));
  const uint16_t multiplier = halfOf(s[3], 0), shift = halfOf(s[3], 1) & 31;
  const auto zero0 = static_cast<int16_t>(halfOf(s[4], 0)), zero1 = static_cast<int16_t>(halfOf(s[4], 1));
  if (int64_t{h} * w * d > target_.sramBytes)
    return fail(Code::NpuFault, "a PLE stripe of {}x{}x{} elements is larger than the SRAM", w, h, d);
  CARINA_RETURN_IF_ERROR(spend(kPleSteps * static_cast<double>(int64_t{h} * w * d)));
  CARINA_TRY(Block a, readTile(s[5], h, w, d));
  CARINA_TRY(const Block b, readTile(s[6], h, w, d));
  for (size_t i = 0; i < a.data.size(); ++i) {
    const auto product = static_cast<uint16_t>((valueOf(a.data[i], kernel.isSigned) - zero0) *
                                               (valueOf(b.data[i], kernel.isSigned) - zero1));
    const uint32_t scaled =
        kernel.isSigned
            ? static_cast<uint32_t>(static_cast<int16_t>(product) * static_cast<int16_t>(multiplier))
            : uint32_t{product} * multiplier;
    a.data[i] =
        static_cast<uint8_t>(std::min<uint32_t>(65535, scaled >> shift) + static_cast<uint32_t>(zeroPoint));
  }
  return writeTile(s[7], a);
}

}  // namespace carina::ethosn::model
