// SPDX-License-Identifier: Apache-2.0
#include "platform/trace_file.hpp"

#include <fmt/format.h>

#include "base/file.hpp"

namespace carina::platform {

Status TraceFile::open(const std::filesystem::path& file, std::function<void(const std::string&)>& sink) {
  if (file.empty()) return {};
  name_ = file.string();
  file_.reset(std::fopen(file.c_str(), "w"));
  if (file_ == nullptr) return fail(Code::CannotWrite, "cannot be written").inFile(name_);
  sink = [this](const std::string& line) { fmt::print(file_.get(), "{}\n", line); };
  return {};
}

Status TraceFile::close() {
  return file_ == nullptr ? Status() : flush(file_.get(), name_);
}

}  // namespace carina::platform
