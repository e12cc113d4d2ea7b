// SPDX-License-Identifier: Apache-2.0
// NumPy .npy and .npz, the formats of arrays that Carina reads and writes.
#pragma once

#include <filesystem>

#include "base/result.hpp"
#include "base/tensor.hpp"

namespace carina {

/// Versions 1.0 to 3.0, little-endian, C or Fortran order (the latter is transposed to row-major). bool,
/// i1..i8, u1..u4, f2, f4, f8; u8 if every value fits int64. Object and structured arrays are rejected.
Result<Tensor> parseNpy(ByteSpan bytes, std::shared_ptr<const void> owner = nullptr);
std::string formatNpy(const Tensor& tensor);

/// Stored or deflated members "NAME.npy". Member order is kept.
Result<NamedTensors> readNpz(const std::filesystem::path& path);
/// Stored members without compression, as numpy.savez writes them.
std::string formatNpz(const NamedTensors& tensors);
/// .npy (one tensor with an empty name) or .npz, by content.
Result<NamedTensors> readArrays(const std::filesystem::path& path);

}  // namespace carina
