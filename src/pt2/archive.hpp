// SPDX-License-Identifier: Apache-2.0
// The zip level of a .pt2 file: which container generation it is, which programs it holds, where their parts
// are.
#pragma once

#include <string>
#include <vector>

#include "base/zip.hpp"
#include "pt2/exported_program.hpp"
#include "pt2/json.hpp"

namespace carina::pt2 {

class Archive {
 public:
  /// Recognises the generation by member names. Errors say what other files seem to be.
  static Result<Archive> open(ByteSpan bytes, std::shared_ptr<const void> owner);

  Container container() const { return container_; }
  const std::vector<std::string>& models() const { return models_; }
  /// The model that `wanted` names; "" stands for the only one or the one named "model".
  Result<std::string> chooseModel(const std::string& wanted) const;

  /// The graph's JSON text.
  Result<JsonText> graph(const std::string& model) const;
  /// A member as JSON. A parsed text takes about twenty times its size, so texts have a separate budget: 8
  /// MiB plus 16 times the file size in total.
  Result<JsonText> readJson(const ZipArchive::Member& member) const;

  /// A member by its path below the root folder; null when there is none.
  const ZipArchive::Member* find(const std::string& path) const { return zip_.find(root_ + path); }
  Result<ZipArchive::Contents> read(const ZipArchive::Member& member) const { return zip_.read(member); }
  /// The budget of the whole file, for archives nested in it.
  const std::shared_ptr<Budget>& inflation() const { return zip_.inflation(); }
  uint64_t fileBytes() const { return fileBytes_; }

 private:
  Status recognise();
  Status recogniseFolder(const std::string& root);

  ZipArchive zip_;
  uint64_t fileBytes_ = 0;
  std::shared_ptr<Budget> json_;
  std::string root_;  // "model/", "" for the flat generation
  Container container_ = Container::RawState;
  std::vector<std::string> models_;
};

}  // namespace carina::pt2
