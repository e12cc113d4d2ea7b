// SPDX-License-Identifier: Apache-2.0
// Pictures as inputs of a network.
#pragma once

#include <filesystem>
#include <vector>

#include "base/result.hpp"
#include "base/tensor.hpp"
#include "ir/graph.hpp"

namespace carina::evaluate {

/// How a picture becomes an input: resized, divided by 255, minus mean, divided by std.
struct Preprocessing {
  std::vector<float> mean, std;  // one value, or one per channel; empty: 0 and 1
  bool crop = false;  // resize the short side and cut out the middle; false: both sides are resized
};

/// Whether the name ends as a picture's does: jpg, jpeg, png, bmp, gif, tga, psd, hdr, pnm, ppm, pgm.
bool isImage(const std::filesystem::path& file);

/// The picture as a tensor of `type`: [1, C, H, W] or [1, H, W, C] with C of 1, 3 or 4, float32, or uint8
/// that takes the pixels as they are. Errors: no picture, more than 2^26 pixels, another type or shape.
Result<Tensor> readImage(const std::filesystem::path& file, const ir::Type& type,
                         const Preprocessing& preprocessing);

/// Whether readImage can make `type`, and why not. Asked before any file is read.
Status checkImageInput(const ir::Type& type, const Preprocessing& preprocessing);

}  // namespace carina::evaluate
