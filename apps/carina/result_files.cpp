// SPDX-License-Identifier: Apache-2.0
#include "result_files.hpp"

#include "base/output_path.hpp"

namespace carina::app {

Option addResultOption(OptionGroup& options, const std::string& name, ResultPath& path,
                       const std::string& what) {
  return options.option(name, path, what + ": a file, or - for standard output")
      .valueOptional(std::string(kStandardOutput));
}

Status checkResults(std::initializer_list<ResultPath> paths) {
  size_t printed = 0;
  for (const ResultPath& path : paths) {
    if (path == kStandardOutput) {
      ++printed;
    } else if (!path.empty()) {
      CARINA_RETURN_IF_ERROR(checkOutputPath(path));
    }
  }
  if (printed < 2) return {};
  return fail(Code::BadOption, "{} results would go to standard output", printed)
      .withRemedy("name a file for all but one of them");
}

Status ResultFiles::add(const ResultPath& path, std::string_view contents) {
  if (path.empty()) return {};
  if (path != kStandardOutput) return files_.add(path, contents);
  toStandardOutput_ = true;
  standardOutput_ = contents;
  return {};
}

void ResultFiles::print(std::string_view text) const {
  fmt::print("{}", toStandardOutput_ ? std::string_view(standardOutput_) : text);
}

}  // namespace carina::app
