// SPDX-License-Identifier: Apache-2.0
// Gathers an IFM into a dense, zero-point-free, padded and upscaled plane.
#include <algorithm>

#include "npu/model/executor.hpp"

namespace carina::npu::model {

template <typename T>
Outcome Executor::gather(const KernelOperation& op, const Geometry& geometry, bool padded, int64_t depth,
                         AddressMap& memory, Plane<T>& plane) {
  if (op.ifm.storage == Storage::Chained || op.ifm.storage == Storage::None) {
    return makeFault(FaultKind::Parse, "IFM of this operation must be in memory");
  }
  const int64_t top = padded ? op.padding.top : 0, left = padded ? op.padding.left : 0;
  const int64_t height = geometry.ifmHeight + (padded ? op.padding.top + op.padding.bottom : 0);
  const int64_t width = geometry.ifmWidth + (padded ? op.padding.left + op.padding.right : 0);
  const int64_t up = op.upscale == Upscale::None ? 1 : 2;
  const int64_t rows = (geometry.ifmHeight + up - 1) / up, columns = (geometry.ifmWidth + up - 1) / up;
  const int64_t elements = height * width * depth;  // below 2^54
  if (Outcome failed = checkLimits(elements, elements * static_cast<int64_t>(sizeof(T)))) return failed;
  BoundMap map;
  if (Outcome failed = map.bind(op.ifm, rows, columns, depth, memory, Access::Read, Channel::Ifm, "IFM"))
    return failed;

  planeBytes_.reserve(static_cast<size_t>(elements) * sizeof(T));
  T* const to = planeBytes_.as<T>();
  plane = {to, height, width, depth};
  const int64_t rowElements = width * depth;
  const int64_t zeroPoint = op.ifm.zeroPoint;
  forRange(height, std::max<int64_t>(1, 65536 / std::max<int64_t>(rowElements, 1)),
           [&](int64_t begin, int64_t end) {
             std::vector<T> narrow(up == 2 ? static_cast<size_t>(columns * depth) : 0);
             for (int64_t py = begin; py < end; ++py) {
               T* row = to + py * rowElements;
               const int64_t y = py - top;
               if (y < 0 || y >= geometry.ifmHeight || (op.upscale == Upscale::Zeros && y % 2 != 0)) {
                 std::fill_n(row, rowElements, T{0});
                 continue;
               }
               std::fill_n(row, left * depth, T{0});
               T* inner = row + left * depth;
               if (up == 1) {
                 map.readRow(y, 0, columns, zeroPoint, inner);
               } else {
                 map.readRow(y / 2, 0, columns, zeroPoint, narrow.data());
                 for (int64_t x = 0; x < geometry.ifmWidth; ++x) {
                   if (op.upscale == Upscale::Zeros && x % 2 != 0) {
                     std::fill_n(inner + x * depth, depth, T{0});
                   } else {
                     std::copy_n(narrow.data() + x / 2 * depth, depth, inner + x * depth);
                   }
                 }
               }
               std::fill(inner + geometry.ifmWidth * depth, row + rowElements, T{0});
             }
           });
  return std::nullopt;
}

template Outcome Executor::gather<int16_t>(const KernelOperation&, const Geometry&, bool, int64_t,
                                           AddressMap&, Plane<int16_t>&);
template Outcome Executor::gather<int64_t>(const KernelOperation&, const Geometry&, bool, int64_t,
                                           AddressMap&, Plane<int64_t>&);

}  // namespace carina::npu::model
