// SPDX-License-Identifier: Apache-2.0
#include "evaluate/images.hpp"

#include <stb/stb_image.h>
#include <stb/stb_image_resize.h>

#include <algorithm>
#include <array>
#include <memory>

#include "base/file.hpp"

namespace carina::evaluate {
namespace {

constexpr int64_t kMaxPixels = int64_t{1} << 26;
constexpr std::array<std::string_view, 11> kEndings{".jpg", ".jpeg", ".png", ".bmp", ".gif", ".tga",
                                                    ".psd", ".hdr",  ".pnm", ".ppm", ".pgm"};

struct Layout {
  int channels = 0, height = 0, width = 0;
  bool channelsFirst = true;
};

std::optional<Layout> layoutOf(const Shape& shape) {
  if (shape.size() != 4 || shape[0] != 1) return std::nullopt;
  const auto isChannels = [](int64_t size) { return size == 1 || size == 3 || size == 4; };
  const auto make = [&](size_t c, size_t h, size_t w) -> std::optional<Layout> {
    if (shape[h] < 1 || shape[w] < 1 || shape[h] > kMaxPixels / shape[w]) return std::nullopt;
    return Layout{static_cast<int>(shape[c]), static_cast<int>(shape[h]), static_cast<int>(shape[w]), c == 1};
  };
  if (isChannels(shape[1])) return make(1, 2, 3);
  if (isChannels(shape[3])) return make(3, 1, 2);
  return std::nullopt;
}

struct FreePixels {
  void operator()(stbi_uc* pixels) const { stbi_image_free(pixels); }
};
using Pixels = std::unique_ptr<stbi_uc, FreePixels>;

/// The part of an image that is resized: all of it, or the center with the aspect ratio of `layout`.
struct Window {
  int x = 0, y = 0, width = 0, height = 0;
};

Window windowOf(int width, int height, const Layout& layout, bool crop) {
  if (!crop) return {0, 0, width, height};
  // The largest window with the requested aspect ratio.
  const int64_t byHeight = int64_t{height} * layout.width, byWidth = int64_t{width} * layout.height;
  Window window{0, 0, width, height};
  if (byHeight <= byWidth) {
    window.width = static_cast<int>(std::max<int64_t>(1, byHeight / layout.height));
  } else {
    window.height = static_cast<int>(std::max<int64_t>(1, byWidth / layout.width));
  }
  window.x = (width - window.width) / 2;
  window.y = (height - window.height) / 2;
  return window;
}

float channelValue(const std::vector<float>& values, size_t channel, float otherwise) {
  if (values.empty()) return otherwise;
  return values.size() == 1 ? values[0] : values[channel];
}

}  // namespace

bool isImage(const std::filesystem::path& file) {
  std::string ending = file.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; });
  return std::find(kEndings.begin(), kEndings.end(), ending) != kEndings.end();
}

Status checkImageInput(const ir::Type& type, const Preprocessing& preprocessing) {
  const auto layout = layoutOf(type.shape);
  if (!layout) {
    return fail(Code::WrongKind, "an input of shape {} does not take images", shapeText(type.shape))
        .withRemedy("give arrays (.npz); images fit [1, C, H, W] or [1, H, W, C] with 1, 3 or 4 channels");
  }
  if (type.dtype != DType::Float32 && type.dtype != DType::UInt8) {
    return fail(Code::WrongKind, "an input of type {} does not take images", dtypeName(type.dtype))
        .withRemedy("give arrays (.npz), or evaluate a program with float inputs");
  }
  for (const auto& [values, option] :
       {std::pair(&preprocessing.mean, "--mean"), std::pair(&preprocessing.std, "--std")}) {
    if (values->size() > 1 && values->size() != static_cast<size_t>(layout->channels))
      return fail(Code::WrongKind, "has {} values, the input has {} channels", values->size(),
                  layout->channels)
          .at(option);
    if (!values->empty() && type.dtype == DType::UInt8)
      return fail(Code::OptionDoesNotApply, "the input takes pixels as they are")
          .at(option)
          .withRemedy("leave it out");
  }
  if (std::any_of(preprocessing.std.begin(), preprocessing.std.end(), [](float s) { return !(s > 0); }))
    return fail(Code::BadOption, "is not above 0").at("--std");
  return {};
}

Result<Tensor> readImage(const std::filesystem::path& file, const ir::Type& type,
                         const Preprocessing& preprocessing) {
  const auto layout = layoutOf(type.shape);
  CARINA_CHECK(layout.has_value(), "checkImageInput() was asked");
  CARINA_TRY(const auto mapped, MappedFile::open(file));
  const std::string name = file.string();
  const auto* bytes = reinterpret_cast<const stbi_uc*>(mapped->bytes().data());
  if (mapped->bytes().size() > INT32_MAX)
    return fail(Code::Excessive, "is too large for an image").inFile(name);
  const int size = static_cast<int>(mapped->bytes().size());
  int width = 0, height = 0, channels = 0;
  if (stbi_info_from_memory(bytes, size, &width, &height, &channels) == 0)
    return fail(Code::WrongKind, "is not a readable image: {}", stbi_failure_reason()).inFile(name);
  if (width < 1 || height < 1 || width > kMaxPixels / height)
    return fail(Code::Excessive, "has {} x {} pixels, at most {} are read", width, height, kMaxPixels)
        .inFile(name);
  const Pixels pixels(stbi_load_from_memory(bytes, size, &width, &height, &channels, layout->channels));
  if (!pixels) return fail(Code::WrongKind, "cannot be decoded: {}", stbi_failure_reason()).inFile(name);
  const Window window = windowOf(width, height, *layout, preprocessing.crop);
  const auto planes = static_cast<size_t>(layout->channels);
  const size_t area = static_cast<size_t>(layout->height) * static_cast<size_t>(layout->width);
  std::vector<unsigned char> resized(area * planes);
  const stbi_uc* first =
      pixels.get() +
      (static_cast<size_t>(window.y) * static_cast<size_t>(width) + static_cast<size_t>(window.x)) * planes;
  if (window.width == layout->width && window.height == layout->height) {
    // No resizing needed: the filters would only smooth.
    const size_t row = static_cast<size_t>(window.width) * planes;
    for (size_t y = 0; y < static_cast<size_t>(window.height); ++y)
      std::copy_n(first + y * static_cast<size_t>(width) * planes, row, resized.data() + y * row);
  } else if (stbir_resize_uint8(first, window.width, window.height, width * layout->channels, resized.data(),
                                layout->width, layout->height, 0, layout->channels) == 0) {
    return fail(Code::NotRepresentable, "cannot be resized").inFile(name);
  }
  Tensor tensor = Tensor::uninitialized(type.dtype, type.shape);
  for (size_t i = 0; i < area; ++i) {
    for (size_t c = 0; c < planes; ++c) {
      const size_t at = layout->channelsFirst ? c * area + i : i * planes + c;
      const unsigned char pixel = resized[i * planes + c];
      if (type.dtype == DType::UInt8) {
        tensor.mutableAs<uint8_t>()[at] = pixel;
      } else {
        const float value = static_cast<float>(pixel) / 255.0F;
        tensor.mutableAs<float>()[at] =
            (value - channelValue(preprocessing.mean, c, 0.0F)) / channelValue(preprocessing.std, c, 1.0F);
      }
    }
  }
  return tensor;
}

}  // namespace carina::evaluate
