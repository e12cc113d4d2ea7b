// SPDX-License-Identifier: Apache-2.0
// A sample archive with some members changed, for tests of damaged and unusual files.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/file.hpp"
#include "base/zip.hpp"
#include "pt2/exported_program.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"

namespace carina::test {

class EditedArchive {
 public:
  explicit EditedArchive(const std::string& sample) {
    const auto file = MappedFile::open(dataDir() / "pt2" / sample);
    const auto zip = ZipArchive::open((*file)->bytes(), *file);
    for (const auto& member : zip->members()) {
      members_.emplace_back(member.name, std::string(asText(zip->read(member)->bytes)));
    }
  }

  /// Contents of the member whose name ends with `ending`.
  std::string& member(const std::string& ending) {
    for (auto& [name, contents] : members_) {
      if (name.size() >= ending.size() &&
          name.compare(name.size() - ending.size(), ending.size(), ending) == 0)
        return contents;
    }
    ADD_FAILURE() << "the sample has no member " << ending;
    return members_.front().second;
  }
  /// Replaces the first occurrence, which must exist.
  EditedArchive& replace(const std::string& ending, const std::string& from, const std::string& to) {
    std::string& text = member(ending);
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    if (at != std::string::npos) text.replace(at, from.size(), to);
    return *this;
  }
  EditedArchive& remove(const std::string& ending) {
    std::erase_if(members_, [&](const auto& m) {
      return m.first.size() >= ending.size() &&
             m.first.compare(m.first.size() - ending.size(), ending.size(), ending) == 0;
    });
    return *this;
  }
  EditedArchive& add(const std::string& name, const std::string& contents) {
    members_.emplace_back(name, contents);
    return *this;
  }

  std::string bytes() const { return writeZip(members_); }
  Result<pt2::ExportedProgram> read(const pt2::ReadOptions& options = {}) const {
    const auto text = std::make_shared<const std::string>(bytes());
    return pt2::readExportedProgram(asBytes(*text), text, options);
  }
  /// The diagnostics, "" if the archive can be read.
  std::string error() const { return errorOf(read()); }

 private:
  std::vector<std::pair<std::string, std::string>> members_;
};

}  // namespace carina::test
