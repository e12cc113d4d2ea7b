// SPDX-License-Identifier: Apache-2.0
// Passes: what the hardware executes at once, from feature maps in DRAM to a feature map in DRAM. An MCE pass
// is a convolution followed by a PLE kernel; a PLE pass is a kernel that reads SRAM; a copy moves a feature
// map to another layout or into a part of another feature map.
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

/// A DRAM buffer for a whole tensor. Several tensors of the same size in bytes may share one in NHWC
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
  int32_t atY = 0, atX = 0, atC = 0;  // position of its first element in the storage
  /// The storage's shape as seen by this feature map; a reshape changes it.
  int32_t wholeHeight = 0, wholeWidth = 0, wholeChannels = 0;
  bool isSigned = false;
  int32_t zeroPoint = 0;
  bool planar = false;  // the storage holds it channel by channel (NCHW)

  /// Whether it covers all of its storage, as produced.
  bool isWhole() const {
    return height == wholeHeight && width == wholeWidth && channels == wholeChannels && !planar;
  }
  /// Whether it is the same feature map, with the same size.
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
  std::vector<int32_t> subTop, subLeft;  // padding before each sub-map
  int32_t activationMin = 0, activationMax = 255;
  int32_t mceHeight = 0, mceWidth = 0, mceChannels = 0;  // what the MCE passes to the PLE
  bool mceSigned = false;
  int32_t inputChannels = 0;                 // as the MCE sees them
  Resampling resampling = Resampling::None;  // of the input, to twice its height and width
  bool oddHeight = false, oddWidth = false;  // strided: of the feature map before interleaving
  /// Rows (columns) that the filter covers for each one of the input.
  int32_t upscale() const { return resampling == Resampling::None ? 1 : 2; }
  // Ple
  PleKernel kernel;
  std::vector<PleKernel>
      kernels;  // the equivalents of `kernel` for all block sizes: the plan of an MCE pass uses one
  std::array<PleScale, 2> scales;
  std::array<int32_t, 2> pleZeroPoints{};   // of the kernel's inputs
  int32_t poolPadBefore = 0, poolSize = 0;  // MaxPool1d
};

struct PassList {
  std::vector<Storage> storages;
  std::vector<Pass> passes;
  std::vector<int32_t> inputs, outputs;  // storages, in the order of the network
};

/// A ratio >= 0 in the PLE's form: `precisionBits` of multiplier (15 for signed multiplication).
PleScale pleScale(double ratio, int precisionBits = 16);

/// Requires that the operations satisfy the support rules. Fails with the operation's name on what the
/// compiler does not support.
Result<PassList> makePasses(const Network& network, const Target& target);

}  // namespace carina::ethosn::compiler
