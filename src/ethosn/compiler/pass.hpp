// SPDX-License-Identifier: Apache-2.0
// Passes: what the hardware does in one go, from feature maps in DRAM to a feature map in DRAM. An MCE pass
// is a convolution with a PLE kernel behind it; a PLE pass works on SRAM alone; a copy moves a map between
// layouts or into a part of another.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "ethosn/compiler/network.hpp"
#include "ethosn/stream/ple_kernels.hpp"
#include "ethosn/stream/registers.hpp"
#include "ethosn/weights/layer_weights.hpp"

namespace carina::ethosn::compiler {

inline int32_t divideUp(int32_t value, int32_t by) {
  return (value + by - 1) / by;
}

inline int32_t roundUp(int32_t value, int32_t step) {
  return divideUp(value, step) * step;
}

enum class Layout : uint8_t { Nhwc, Nhwcb };

/// A buffer in DRAM that holds a whole tensor. Several tensors of as many bytes may share one in NHWC
/// (reshape).
struct Storage {
  enum class Kind : uint8_t { Input, Output, Intermediate };
  Kind kind = Kind::Intermediate;
  Layout layout = Layout::Nhwcb;
  int32_t height = 0, width = 0, channels = 0;
  std::string name;

  int64_t bytes() const;
};

/// A tensor, or a part of one, in a storage.
struct FeatureMap {
  int32_t storage = -1;
  int32_t height = 0, width = 0, channels = 0;
  int32_t atY = 0, atX = 0, atC = 0;  // of its first element in the storage
  /// The storage's shape as this map sees it: a reshape changes it.
  int32_t wholeHeight = 0, wholeWidth = 0, wholeChannels = 0;
  bool isSigned = false;
  int32_t zeroPoint = 0;
  bool planar = false;  // the storage holds it channel by channel (NCHW)

  /// Whether it is all of its storage, as it was made.
  bool isWhole() const {
    return height == wholeHeight && width == wholeWidth && channels == wholeChannels && !planar;
  }
  /// Whether it is the same map, as large as the other.
  bool isSameAs(const FeatureMap& other) const {
    return storage == other.storage && height == other.height && width == other.width &&
           channels == other.channels;
  }
};

enum class PassKind : uint8_t { Mce, Ple, Copy };

/// Scale of an input of a PLE kernel: multiplier / 2^shift.
struct PleScale {
  uint16_t multiplier = 0, shift = 0;
};

using Resampling = ce_control::Resampling;

struct Pass {
  PassKind kind = PassKind::Copy;
  std::string name;
  std::vector<FeatureMap> inputs;
  FeatureMap output;
  // Mce
  LayerWeights weights;
  std::vector<int32_t> subTop, subLeft;  // padding in front of each sub-map
  int32_t activationMin = 0, activationMax = 255;
  int32_t mceHeight = 0, mceWidth = 0, mceChannels = 0;  // what the MCE gives the PLE
  bool mceSigned = false;
  int32_t inputChannels = 0;                 // as the MCE sees them
  Resampling resampling = Resampling::None;  // of the input, to twice its height and width
  bool oddHeight = false, oddWidth = false;  // strided: of the map before it was interleaved
  /// Rows (columns) that the filter runs over for one of the input.
  int32_t upscale() const { return resampling == Resampling::None ? 1 : 2; }
  // Ple
  PleKernel kernel;
  std::vector<PleKernel>
      kernels;  // that do what `kernel` does, in all blocks: of an MCE pass, a plan takes one
  std::array<PleScale, 2> scales;
  std::array<int32_t, 2> pleZeroPoints{};   // of what the kernel takes
  int32_t poolPadBefore = 0, poolSize = 0;  // MaxPool1d
};

struct PassList {
  std::vector<Storage> storages;
  std::vector<Pass> passes;
  std::vector<int32_t> inputs, outputs;  // storages, in the order of the network
};

/// A ratio >= 0 as the PLE takes it: `precisionBits` of multiplier (15 for signed multiplication).
PleScale pleScale(double ratio, int precisionBits = 16);

/// Networks whose operations the support rules let through. Fails with the operation's name on what the
/// compiler does not do.
Result<PassList> makePasses(const Network& network, const Target& target);

}  // namespace carina::ethosn::compiler
