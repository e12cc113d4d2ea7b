// SPDX-License-Identifier: Apache-2.0
// Selects the fastest form of a pass by the public formulas: the blocks between MCE and PLE, and Winograd's
// algorithm or the direct one.
#include <algorithm>
#include <iterator>
#include <span>

#include "ethosn/compiler/plan.hpp"
#include "ethosn/cost/cycles.hpp"

namespace carina::ethosn::compiler {
namespace {

/// Whether the MCE has enough accumulators for the block: Winograd's algorithm needs four (two in one
/// dimension) per element.
bool fitsAccumulators(const LayerWeights& layer, const PleKernel& kernel) {
  const bool plane = layer.height > 1 && layer.width > 1;
  const int32_t each = layer.algorithm == MceAlgorithm::Direct ? 1 : plane ? 4 : 2;
  return kernel.blockWidth * kernel.blockHeight * each <= kAccumulatorsPerOg;
}

/// If fewer than three stripes with all input channels fit, the MCE accumulates over parts of them, directly.
bool mayBeWinograd(const Pass& pass, const Target& target) {
  const LayerWeights& layer = pass.weights;
  const int64_t stripe =
      groupStride(pass.inputChannels, *target.variant) * divideUp(pass.inputs[0].width, kBrickEdge);
  return layer.operation == MceOperation::Convolution && layer.strideX == 1 && layer.strideY == 1 &&
         pass.resampling == Resampling::None && layer.height * layer.width > 1 &&
         3 * stripe < target.bankBytes() - kPleKernelMaxBytes;
}

/// The kernels equivalent to this one, for all block sizes. Those that process several blocks at once take
/// them from one row; those that process more than `width` needs are left out.
std::vector<PleKernel> kernelsLike(const PleKernel& kernel, PleFamily family, int32_t width) {
  std::vector<PleKernel> out;
  // Arm's compiler uses it with 8x8 blocks only, however the MCE orders larger ones.
  if (kernel.operation == PleOperation::TransposeXy) return {kernel};
  const int first = static_cast<int>(family) * kPleKernelsPerFamily;
  for (int id = first; id < first + kPleKernelsPerFamily; ++id) {
    const std::optional<KernelId> other = pleKernel(static_cast<uint16_t>(id));
    if (other && other->kernel.operation == kernel.operation &&
        other->kernel.signedness == kernel.signedness && other->kernel.axis == kernel.axis)
      out.push_back(other->kernel);
  }
  std::erase_if(out, [&, all = out](const PleKernel& k) {
    return std::any_of(all.begin(), all.end(), [&](const PleKernel& less) {
      return less.blockWidth == k.blockWidth && less.blockHeight == k.blockHeight &&
             less.blockMultiplier < k.blockMultiplier && less.blockMultiplier * less.blockWidth >= width;
    });
  });
  return out;
}

/// The maximum, because MCE and PLE run in parallel; their sum breaks ties.
std::pair<uint64_t, uint64_t> cyclesOf(const Pass& pass, const PleKernel& kernel, const Variant& variant,
                                       int32_t rows, int32_t channels) {
  const uint64_t mce = mceCyclesOf(pass, kernel, variant, rows, channels);
  const uint64_t ple = pleCyclesOf(pass, kernel, variant, rows, channels);
  return {std::max({mce, ple, kMinOfStripe}), mce + ple};
}

}  // namespace

uint64_t mceCyclesOf(const Pass& pass, const PleKernel& kernel, const Variant& variant, int32_t rows,
                     int32_t channels, int32_t columns) {
  const LayerWeights& layer = pass.weights;
  const MceWork work{layer.operation,
                     layer.algorithm == MceAlgorithm::Winograd,
                     kernel.blockWidth,
                     kernel.blockHeight,
                     rows,
                     columns > 0 ? columns : pass.mceWidth,
                     channels};
  std::vector<FilterWork> filters;
  for (const SubFilter& sub : subFilters(layer))
    filters.push_back({std::max(sub.height, 1), std::max(sub.width, 1), layer.inputs});
  return mceCycles(variant, work, filters);
}

uint64_t pleCyclesOf(const Pass& pass, const PleKernel& kernel, const Variant& variant, int32_t rows,
                     int32_t channels, int32_t columns) {
  const int32_t all = pass.kind == PassKind::Mce ? pass.mceWidth : pass.inputs[0].width;
  const int32_t width = columns > 0 ? columns : all,
                outWidth = columns > 0 ? outputColumns(pass, columns) : pass.output.width;
  return pleCycles(variant, kernel, {rows, width, channels, outputRows(pass, rows), outWidth});
}

PleKernel fastestKernel(const Pass& pass, const Variant& variant, int32_t rows, int32_t channels) {
  PleKernel fastest = pass.kernel;
  std::pair<uint64_t, uint64_t> least(UINT64_MAX, 0);
  for (const PleKernel& kernel : pass.kernels) {
    const auto cycles = cyclesOf(pass, kernel, variant, rows, channels);
    if (cycles >= least) continue;
    least = cycles;
    fastest = kernel;
  }
  return fastest;
}

std::optional<PleKernel> oneBlockKernel(const Pass& pass, int32_t rows, int32_t columns) {
  for (const PleKernel& kernel : pass.kernels) {
    if (kernel.blockMultiplier == 1 && kernel.blockWidth >= columns && kernel.blockHeight >= rows)
      return kernel;
  }
  return std::nullopt;
}

void chooseAlgorithm(Pass& pass, const Target& target, bool winograd) {
  const Variant& variant = *target.variant;
  if (pass.kind != PassKind::Mce || pass.weights.operation == MceOperation::FullyConnected) return;
  LayerWeights& layer = pass.weights;
  const std::vector<PleKernel> kernels = kernelsLike(pass.kernel, *variant.kernels, pass.mceWidth);
  uint64_t least = UINT64_MAX;
  MceAlgorithm algorithm = layer.algorithm;
  for (MceAlgorithm some : {MceAlgorithm::Direct, MceAlgorithm::Winograd}) {
    if (some == MceAlgorithm::Winograd && !(winograd && mayBeWinograd(pass, target))) continue;
    layer.algorithm = some;
    for (const PleKernel& kernel : kernels) {
      if (!fitsAccumulators(layer, kernel)) continue;
      // Of equally fast ones the first: direct, whose arithmetic is certain.
      const uint64_t cycles = cyclesOf(pass, kernel, variant, pass.mceHeight, pass.mceChannels).first;
      if (cycles >= least) continue;
      least = cycles;
      algorithm = some;
    }
  }
  layer.algorithm = algorithm;
  pass.kernels.clear();
  std::copy_if(kernels.begin(), kernels.end(), std::back_inserter(pass.kernels),
               [&layer](const PleKernel& kernel) { return fitsAccumulators(layer, kernel); });
  pass.kernel = fastestKernel(pass, variant, pass.mceHeight, pass.mceChannels);
}

}  // namespace carina::ethosn::compiler
