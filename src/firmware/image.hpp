// SPDX-License-Identifier: Apache-2.0
// A bare-metal image for one program: plan, generated sources, cross compiler, sizes.
#pragma once

#include <filesystem>
#include <string>

#include "firmware/plan.hpp"
#include "firmware/size_report.hpp"
#include "firmware/source.hpp"

namespace carina::firmware {

struct ImageOptions {
  std::filesystem::path program;
  PlanOptions plan;
  SourceOptions source;
  std::filesystem::path kit;  // empty: see findKit()
  std::string compiler = "arm-none-eabi-g++";
  std::filesystem::path keep;  // folder for the generated sources and the linker's map; empty: none
};

struct Image {
  Plan plan;
  SizeReport sizes;
  std::string core;
  std::string elf;  // the file's bytes
};

/// Writes nothing except what `keep` requests.
Result<Image> buildImage(const ImageOptions& options);

}  // namespace carina::firmware
