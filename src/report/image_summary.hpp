// SPDX-License-Identifier: Apache-2.0
// The report of `carina firmware` on the image that it built.
#pragma once

#include <filesystem>
#include <string>

#include "firmware/image.hpp"

namespace carina::report {

std::string imageText(const firmware::Image& image, const std::filesystem::path& output);
/// {"platform", "core", "target", "kernels", "ram_bytes", "stack_bytes", "components": [{"name", "text",
/// "data", "bss"}], "total", "memory": [{"what", "region", "bytes"}], "notes"}
std::string imageJson(const firmware::Image& image);

}  // namespace carina::report
