// SPDX-License-Identifier: Apache-2.0
// Programs in the form that a device accepts: parts delivered as TOSA graphs are compiled.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/file.hpp"
#include "base/result.hpp"
#include "delivery/at_load.hpp"

namespace carina::pipeline {

/// The bytes of a program without TOSA parts, or with its TOSA parts compiled.
class LoadedProgram {
 public:
  /// `bytes` are borrowed if there is nothing to compile. Errors do not name the file.
  static Result<LoadedProgram> from(ByteSpan bytes, const delivery::LoadOptions& options);

  ByteSpan bytes() const { return atLoad_ ? asBytes(compiled_) : borrowed_; }
  /// What was compiled; nullopt for programs that were delivered compiled.
  const std::optional<delivery::AtLoad>& atLoad() const { return atLoad_; }

 private:
  ByteSpan borrowed_;
  std::string compiled_;
  std::optional<delivery::AtLoad> atLoad_;
};

/// Writes the .pte `input` to `output` with its TOSA parts compiled. Fails if it has none.
Result<delivery::AtLoad> compileProgram(const std::filesystem::path& input,
                                        const delivery::LoadOptions& options,
                                        const std::filesystem::path& output);

}  // namespace carina::pipeline
