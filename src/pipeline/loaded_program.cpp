// SPDX-License-Identifier: Apache-2.0
#include "pipeline/loaded_program.hpp"

#include "base/damaged.hpp"
#include "base/output_path.hpp"
#include "delivery/delegate.hpp"

namespace carina::pipeline {

Result<LoadedProgram> LoadedProgram::from(ByteSpan bytes, const delivery::LoadOptions& options) {
  LoadedProgram loaded;
  loaded.borrowed_ = bytes;
  // Most programs do not contain the name at all and need not be parsed.
  if (asText(bytes).find(delivery::kTosaBackend) == std::string_view::npos) return loaded;
  CARINA_TRY(pte::Program program, pte::readProgram(bytes));
  if (!delivery::hasTosaParts(program)) return loaded;
  CARINA_TRY(loaded.atLoad_, delivery::compileTosaParts(program, options));
  CARINA_TRY(loaded.compiled_, pte::writeProgram(program));
  return loaded;
}

Result<delivery::AtLoad> compileProgram(const std::filesystem::path& input,
                                        const delivery::LoadOptions& options,
                                        const std::filesystem::path& output) {
  CARINA_RETURN_IF_ERROR(checkOutputPath(output));
  CARINA_TRY(const auto file, MappedFile::open(input));
  auto loaded = LoadedProgram::from(file->bytes(), options);
  if (!loaded) return std::move(loaded).error().inFile(input.string()).withRemedy(kDamagedRemedy);
  if (!loaded->atLoad()) {
    return fail(Code::WrongKind, "is already compiled: none of its NPU parts is a TOSA graph")
        .inFile(input.string())
        .withRemedy("compile the network that it was compiled from");
  }
  CARINA_RETURN_IF_ERROR(writeFile(output, loaded->bytes()));
  return *loaded->atLoad();
}

}  // namespace carina::pipeline
