// SPDX-License-Identifier: Apache-2.0
// PLE kernels that pool.
#include "ethosn/model/ple_kernel.hpp"

namespace carina::ethosn::model {
namespace {

/// s / n by the kernels' reciprocal: ((s + n/2) * (2^bits / n + 1)) / 2^bits, rounded towards minus infinity.
int32_t dividedBy(int32_t sum, int32_t n, int bits) {
  const int64_t product = int64_t{static_cast<int16_t>(sum + n / 2)} * ((1 << bits) / n + 1);
  return static_cast<int32_t>(product >> bits);
}

int32_t dividedUnsigned(int32_t sum, int32_t n, int bits) {
  const int64_t product = int64_t{static_cast<uint16_t>(sum + n / 2)} * ((1 << bits) / n + 1);
  return static_cast<int32_t>(product >> bits);
}

}  // namespace

Status Machine::mean(const Kernel& kernel, const Block& input) {
  const int32_t edge = kernel.kernel.operation == PleOperation::MeanXy7x7 ? 7 : 8;
  Block out{1, 1, kernel.d, std::vector<uint8_t>(static_cast<size_t>(kernel.d))};
  if (kernel.w != 1 || kernel.h != 1)
    return fail(Code::NpuFault, "a mean has a stripe of {}x{} results", kernel.w, kernel.h);
  if (input.h > edge || input.w > edge)
    return fail(Code::NpuFault, "a mean over {0}x{0} has an input of {1}x{2}", edge, input.w, input.h);
  for (int64_t c = 0; c < kernel.d; ++c) {
    int32_t sum = 0;
    for (int64_t y = 0; y < input.h; ++y) {
      for (int64_t x = 0; x < input.w; ++x) sum += valueOf(input.at(y, x)[c], kernel.isSigned);
    }
    out.data[static_cast<size_t>(c)] = static_cast<uint8_t>(
        kernel.isSigned ? dividedBy(sum, edge * edge, 20) : dividedUnsigned(sum, edge * edge, 20));
  }
  return writeTile(kernel.outAddress, out);
}

/// A stripe that is not the last leaves its last row incomplete: the next stripe completes it with its own
/// first row, at the address of the stripe that the row belongs to.
Status Machine::maxPool3x3(const Kernel& kernel, const Block& input) {
  assume(Assumption::PaddedMaxPool);
  const int32_t w = kernel.w, d = kernel.d;
  // For one input row, the maximum of the three columns under each window.
  const auto across = [&](int64_t y, std::vector<int16_t>& out) {
    out.assign(static_cast<size_t>(w * d), -129);
    for (int64_t x = 0; x < w; ++x) {
      for (int64_t xx = 2 * x; xx < std::min<int64_t>(2 * x + 3, input.w); ++xx) {
        const uint8_t* from = input.at(y, xx);
        for (int64_t c = 0; c < d; ++c) {
          int16_t& most = out[static_cast<size_t>(x * d + c)];
          most = std::max(most, static_cast<int16_t>(valueOf(from[c], kernel.isSigned)));
        }
      }
    }
  };
  const auto store = [&](const Tile& tile, int32_t y, const std::vector<int16_t>& row) {
    std::vector<uint8_t> bytes(row.size());
    for (size_t i = 0; i < row.size(); ++i) bytes[i] = static_cast<uint8_t>(row[i] == -129 ? 0 : row[i]);
    touchTile(tile, y, y + 1, 0, w, d, true);
    for (int32_t x = 0; x < w; ++x) sram_.write(tile, y, x, d, bytes.data() + int64_t{x} * d);
  };
  std::vector<int16_t> row, most;
  if (kernel.top) pending_ = {};
  if (pending_.any) {
    if (pending_.w != w || pending_.c != d) {
      return fail(Code::NpuFault, "a stripe of {}x{} columns completes a row of a stripe of {}x{}", w, d,
                  pending_.w, pending_.c);
    }
    across(0, row);
    for (size_t i = 0; i < row.size(); ++i) row[i] = std::max(row[i], pending_.values[i]);
    store(pending_.tile, pending_.y, row);
    pending_ = {};
  }
  const Tile tile = sram_.packed(kernel.outAddress, w, d);
  CARINA_RETURN_IF_ERROR(sram_.checkTile(tile, kernel.h, w, d));
  for (int32_t y = 0; y < kernel.h; ++y) {
    most.assign(static_cast<size_t>(w * d), -129);
    for (int64_t yy = 2 * int64_t{y}; yy < std::min<int64_t>(2 * int64_t{y} + 3, input.h); ++yy) {
      across(yy, row);
      for (size_t i = 0; i < row.size(); ++i) most[i] = std::max(most[i], row[i]);
    }
    if (2 * int64_t{y} + 2 >= input.h && !kernel.bottom) {
      pending_ = {true, tile, y, w, d, most};
      break;
    }
    store(tile, y, most);
  }
  return {};
}

Status Machine::averagePool(const Kernel& kernel) {
  CARINA_TRY(const Block in, readTile(kernel.inputs[0].address, kernel.h, kernel.w, kernel.d));
  Block out = in;
  for (int64_t y = 0; y < in.h; ++y) {
    for (int64_t x = 0; x < in.w; ++x) {
      for (int64_t c = 0; c < in.c; ++c) {
        int32_t sum = 0, count = 0;
        for (int64_t yy = std::max<int64_t>(y - 1, 0); yy < std::min<int64_t>(y + 2, in.h); ++yy) {
          for (int64_t xx = std::max<int64_t>(x - 1, 0); xx < std::min<int64_t>(x + 2, in.w); ++xx) {
            sum += valueOf(in.at(yy, xx)[c], kernel.isSigned);
            ++count;
          }
        }
        out.at(y, x)[c] = static_cast<uint8_t>(kernel.isSigned ? dividedBy(sum, count, 16)
                                                               : dividedUnsigned(sum, count, 16));
      }
    }
  }
  return writeTile(kernel.outAddress, out);
}

/// Parameters: output width, height, depth; size of the input along the axis; addresses of input and output;
/// padding before; window size.
Status Machine::maxPool1d(const Kernel& kernel) {
  const std::array<uint32_t, 8>& s = kernel.scratch;
  for (size_t i : {0, 1, 2, 3, 6, 7}) {
    if (s[i] > 0xFFFF)
      return fail(Code::NpuFault, "parameter {} of MAXPOOL1D is {}, more than 65535", i, s[i]);
  }
  const auto w = static_cast<int32_t>(s[0]), h = static_cast<int32_t>(s[1]), d = static_cast<int32_t>(s[2]);
  const auto size = static_cast<int32_t>(s[3]), before = static_cast<int32_t>(s[6]),
             window = static_cast<int32_t>(s[7]);
  const bool alongX = kernel.kernel.axis == PleAxis::X;
  const int64_t elements = int64_t{alongX ? size : w} * (alongX ? h : size) * d;
  if (std::max(elements, int64_t{h} * w * d) > target_.sramBytes) {
    return fail(Code::NpuFault, "a PLE stripe of {}x{}x{} elements is larger than the SRAM", w, h, d);
  }
  CARINA_RETURN_IF_ERROR(
      spend(kPleSteps * static_cast<double>(int64_t{h} * w * d) * (std::min(window, size) + 1)));
  CARINA_TRY(const Block in, readTile(s[4], alongX ? h : size, alongX ? size : w, d));
  if (before > 0) assume(Assumption::PaddedMaxPool);
  Block out{h, w, d, std::vector<uint8_t>(static_cast<size_t>(int64_t{h} * w * d))};
  for (int32_t y = 0; y < h; ++y) {
    for (int32_t x = 0; x < w; ++x) {
      const int32_t centre = alongX ? x : y;
      const int32_t begin = std::max(centre - before, 0), end = std::min(centre - before + window, size);
      for (int32_t c = 0; c < d; ++c) {
        int32_t most = -129;
        for (int32_t i = begin; i < end; ++i) {
          most = std::max(most, valueOf((alongX ? in.at(y, i) : in.at(i, x))[c], kernel.isSigned));
        }
        out.at(y, x)[c] = most == -129 ? 0 : static_cast<uint8_t>(most);
      }
    }
  }
  return writeTile(s[5], out);
}

}  // namespace carina::ethosn::model
