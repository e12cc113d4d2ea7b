// SPDX-License-Identifier: Apache-2.0
// Images as inputs of a network.
#pragma once

#include <filesystem>
#include <vector>

#include "base/result.hpp"
#include "base/tensor.hpp"
#include "ir/graph.hpp"

namespace carina::evaluate {

/// How an image becomes an input: resized, divided by 255, minus mean, divided by std.
struct Preprocessing {
  std::vector<float> mean, std;  // one value, or one per channel; empty: 0 and 1
  bool crop = false;             // resize the short side and crop the center; false: resize both sides
};

/// Whether the file has the extension of an image: jpg, jpeg, png, bmp, gif, tga, psd, hdr, pnm, ppm, pgm.
bool isImage(const std::filesystem::path& file);

/// The image as a tensor of `type`: [1, C, H, W] or [1, H, W, C] with C of 1, 3 or 4; float32, or uint8 with
/// unchanged pixels. Errors: not an image, more than 2^26 pixels, another type or shape.
Result<Tensor> readImage(const std::filesystem::path& file, const ir::Type& type,
                         const Preprocessing& preprocessing);

/// Whether readImage can produce `type`, and why not. To be called before any file is read.
Status checkImageInput(const ir::Type& type, const Preprocessing& preprocessing);

}  // namespace carina::evaluate
