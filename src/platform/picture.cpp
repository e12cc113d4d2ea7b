// SPDX-License-Identifier: Apache-2.0
#include "platform/picture.hpp"

#include <stb/stb_image.h>
#include <stb/stb_image_resize.h>
#include <stb/stb_image_write.h>

#include <algorithm>
#include <memory>

#include "base/check.hpp"

namespace carina::platform {
namespace {

constexpr int kMaxPixels = 1 << 24;
constexpr int kPlanes = 3;

struct FreePixels {
  void operator()(stbi_uc* pixels) const { stbi_image_free(pixels); }
};

}  // namespace

Result<Picture> readPicture(ByteSpan file) {
  if (file.size() > INT32_MAX) return fail(Code::Excessive, "is too large for an image");
  const auto* bytes = reinterpret_cast<const stbi_uc*>(file.data());
  const int size = static_cast<int>(file.size());
  int width = 0, height = 0, planes = 0;
  if (stbi_info_from_memory(bytes, size, &width, &height, &planes) == 0)
    return fail(Code::WrongKind, "is not a readable image: {}", stbi_failure_reason());
  if (width < 1 || height < 1 || width > kMaxPixels / height)
    return fail(Code::Excessive, "has {} x {} pixels, at most {} are read", width, height, kMaxPixels);
  const std::unique_ptr<stbi_uc, FreePixels> pixels(
      stbi_load_from_memory(bytes, size, &width, &height, &planes, kPlanes));
  if (!pixels) return fail(Code::WrongKind, "cannot be decoded: {}", stbi_failure_reason());
  Picture picture{static_cast<uint32_t>(width), static_cast<uint32_t>(height), {}};
  picture.rgb.assign(pixels.get(), pixels.get() + size_t{picture.width} * picture.height * kPlanes);
  return picture;
}

std::string pngOf(const Picture& picture) {
  std::string file;
  const auto append = [](void* to, void* data, int size) {
    static_cast<std::string*>(to)->append(static_cast<const char*>(data), static_cast<size_t>(size));
  };
  const int width = static_cast<int>(picture.width);
  const int written = stbi_write_png_to_func(append, &file, width, static_cast<int>(picture.height), kPlanes,
                                             picture.rgb.data(), width * kPlanes);
  CARINA_CHECK(written != 0, "pixels can be written as PNG");
  return file;
}

Picture fitted(const Picture& picture, uint32_t width, uint32_t height) {
  if (picture.width == width && picture.height == height) return picture;
  uint32_t cutWidth = picture.width, cutHeight = picture.height;
  if (uint64_t{picture.width} * height > uint64_t{picture.height} * width)
    cutWidth = static_cast<uint32_t>(std::max<uint64_t>(1, uint64_t{picture.height} * width / height));
  else
    cutHeight = static_cast<uint32_t>(std::max<uint64_t>(1, uint64_t{picture.width} * height / width));
  const size_t x = (picture.width - cutWidth) / 2, y = (picture.height - cutHeight) / 2;
  Picture result{width, height, std::vector<uint8_t>(size_t{width} * height * kPlanes)};
  const int done =
      stbir_resize_uint8(picture.rgb.data() + (y * picture.width + x) * kPlanes, static_cast<int>(cutWidth),
                         static_cast<int>(cutHeight), static_cast<int>(picture.width) * kPlanes,
                         result.rgb.data(), static_cast<int>(width), static_cast<int>(height), 0, kPlanes);
  CARINA_CHECK(done != 0, "pixels can be resized");
  return result;
}

}  // namespace carina::platform
