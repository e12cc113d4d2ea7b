// SPDX-License-Identifier: Apache-2.0
// Images that boards display and capture: conversion between files and pixels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/tensor.hpp"

namespace carina::platform {

struct Picture {
  uint32_t width = 0, height = 0;
  std::vector<uint8_t> rgb;  // [height][width][3]
};

/// Reads a PNG, JPEG, BMP or PNM file (untrusted). Error: another format, or more than 2^24 pixels.
Result<Picture> readPicture(ByteSpan file);
/// The contents of a PNG file.
std::string pngOf(const Picture& picture);
/// The centre of an image, cropped to the aspect ratio of width x height and scaled to that size.
Picture fitted(const Picture& picture, uint32_t width, uint32_t height);

/// A 16-bit pixel: red in the upper five, blue in the lower five.
struct Pixel565 {
  static uint16_t from(const uint8_t* rgb) {
    return static_cast<uint16_t>((rgb[0] >> 3) << 11 | (rgb[1] >> 2) << 5 | rgb[2] >> 3);
  }
  /// Full scale of 5 or 6 bits maps to 255.
  static void to(uint16_t pixel, uint8_t* rgb) {
    const uint32_t red = pixel >> 11, green = pixel >> 5 & 0x3f, blue = pixel & 0x1f;
    rgb[0] = static_cast<uint8_t>(red << 3 | red >> 2);
    rgb[1] = static_cast<uint8_t>(green << 2 | green >> 4);
    rgb[2] = static_cast<uint8_t>(blue << 3 | blue >> 2);
  }
};

}  // namespace carina::platform
