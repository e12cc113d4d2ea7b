// SPDX-License-Identifier: Apache-2.0
// Handwritten networks for ethos-n78-4tops-4ple that consist of one convolution in one stripe: NHWC input,
// MCE, a PLE kernel, NHWC output.
#pragma once

#include <cstdint>
#include <vector>

#include "ethosn/stream/compiled_network.hpp"
#include "ethosn/stream/ple_kernels.hpp"
#include "ethosn/targets/variant.hpp"

namespace carina::ethosn::test {

/// Writes bits, least significant first.
class BitWriter {
 public:
  void put(uint64_t value, int count) {
    for (int i = 0; i < count; ++i) {
      if (bits_ % 8 == 0) bytes_.push_back(0);
      bytes_.back() = static_cast<uint8_t>(bytes_.back() | (value >> i & 1) << (bits_ % 8));
      ++bits_;
    }
  }
  void set(size_t at, uint64_t value, int count) {
    for (int i = 0; i < count; ++i, ++at) {
      bytes_[at / 8] =
          static_cast<uint8_t>((bytes_[at / 8] & ~(1u << at % 8)) | (value >> i & 1) << (at % 8));
    }
  }
  size_t bits() const { return bits_; }
  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
  size_t bits_ = 0;
};

struct SmallConvolution {
  int h = 8, w = 8, c = 16, ofms = 16, kernel = 1, pad = 0;
  int inputZeroPoint = 0, outputZeroPoint = 0;
  uint16_t scale = 1;  // output = sum * scale / 2^shift
  uint8_t shift = 0;
  PleKernel ple{PleOperation::Passthrough, PleSignedness::Any, 16, 16, 1, PleAxis::None};
  int outH = 0, outW = 0, outC = 0;      // of the PLE; 0: those of the MCE
  std::vector<int16_t> weights = {};     // [ofm][ky][kx][c], zero point subtracted
  std::vector<int32_t> bias = {};        // [ofm]
  std::array<uint16_t, 4> rescale = {};  // multiplier and shift of both inputs of the kernel

  static constexpr uint32_t kIfmAddress = 0x1000, kOfmAddress = 0x4000, kWeightAddress = 0x8000,
                            kCodeAddress = 0xF000;

  int resultH() const { return outH != 0 ? outH : mceH(); }
  int resultW() const { return outW != 0 ? outW : mceW(); }
  int resultC() const { return outC != 0 ? outC : ofms; }
  int mceH() const { return h + 2 * pad - kernel + 1; }
  int mceW() const { return w + 2 * pad - kernel + 1; }
  CommandStream stream(uint32_t weightBytes) const;
  /// Uncompressed weights, in the layout of the SRAM banks.
  std::vector<uint8_t> weightData() const;
  CompiledNetwork network() const;
};

/// A network around a stream: buffer 1 is the input, 2 the weights, 3 the output.
CompiledNetwork networkOf(const CommandStream& stream, uint32_t inputBytes, uint32_t outputBytes,
                          std::vector<uint8_t> weights);

}  // namespace carina::ethosn::test
