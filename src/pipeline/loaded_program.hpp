// SPDX-License-Identifier: Apache-2.0
// Programs as a device takes them: with parts that travel as TOSA graphs compiled.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/file.hpp"
#include "base/result.hpp"
#include "delivery/at_load.hpp"

namespace carina::pipeline {

/// The bytes of a program that has no TOSA parts, or has them no more.
class LoadedProgram {
 public:
  /// `bytes` are borrowed where nothing is to be compiled. Errors do not name the file.
  static Result<LoadedProgram> from(ByteSpan bytes, const delivery::LoadOptions& options);

  ByteSpan bytes() const { return atLoad_ ? asBytes(compiled_) : borrowed_; }
  /// What was compiled: nothing for programs that came compiled.
  const std::optional<delivery::AtLoad>& atLoad() const { return atLoad_; }

 private:
  ByteSpan borrowed_;
  std::string compiled_;
  std::optional<delivery::AtLoad> atLoad_;
};

/// Writes the .pte `input` as `output`, its TOSA parts compiled. Fails where it has none.
Result<delivery::AtLoad> compileProgram(const std::filesystem::path& input,
                                        const delivery::LoadOptions& options,
                                        const std::filesystem::path& output);

}  // namespace carina::pipeline
