// SPDX-License-Identifier: Apache-2.0
// im2col and col2im (F.unfold and F.fold).
#include <algorithm>

#include "aten/geometry.hpp"
#include "aten/kernels/dispatch.hpp"
#include "aten/kernels/kernel.hpp"

namespace carina::aten {
namespace {

/// body(element of the columns, element of the image) for every window element inside the image.
template <typename Body>
void forWindowElements(const WindowGeometry& g, Body&& body) {
  const int64_t planes = g.image[0] * g.image[1], height = g.image[2], width = g.image[3];
  int64_t column = 0;
  for (int64_t plane = 0; plane < planes; ++plane) {
    for (int64_t ky = 0; ky < g.kernel[0]; ++ky) {
      for (int64_t kx = 0; kx < g.kernel[1]; ++kx) {
        for (int64_t py = 0; py < g.positions[0]; ++py) {
          const int64_t y = py * g.stride[0] - g.padding[0] + ky * g.dilation[0];
          for (int64_t px = 0; px < g.positions[1]; ++px, ++column) {
            const int64_t x = px * g.stride[1] - g.padding[1] + kx * g.dilation[1];
            if (y >= 0 && y < height && x >= 0 && x < width) body(column, (plane * height + y) * width + x);
          }
        }
      }
    }
  }
}

template <bool kFold>
Result<Kernel> prepareWindows(const ir::Node& node) {
  CARINA_TRY(const WindowGeometry g, windowGeometry(node));
  return Kernel([g](Call& call) -> Status {
    return forNumber(call.operand(0).dtype(), [&](auto tag) -> Status {
      using T = decltype(tag);
      const T* in = call.operand(0).as<T>().data();
      const auto out = call.allocate().mutableAs<T>();
      std::fill(out.begin(), out.end(), T{0});
      forWindowElements(g, [&](int64_t column, int64_t pixel) {
        if (kFold) {
          out[static_cast<size_t>(pixel)] = static_cast<T>(out[static_cast<size_t>(pixel)] + in[column]);
        } else {
          out[static_cast<size_t>(column)] = in[pixel];
        }
      });
      return {};
    });
  });
}

constexpr KernelEntry kWindowsKernels[] = {
    {"aten.im2col.default", prepareWindows<false>},
    {"aten.col2im.default", prepareWindows<true>},
};

}  // namespace

std::span<const KernelEntry> windowKernels() {
  return kWindowsKernels;
}

}  // namespace carina::aten
