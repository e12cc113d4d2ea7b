// SPDX-License-Identifier: Apache-2.0
#include "pt2/archive.hpp"

#include <algorithm>

#include "base/file.hpp"

namespace carina::pt2 {
namespace {

constexpr std::string_view kFlatGraph = "serialized_exported_program.json";
constexpr std::string_view kSave =
    "Save the program with torch.export.save(torch.export.export(model.eval(), args), \"model.pt2\").";

Status expectText(const Archive& archive, const std::string& path, std::string_view expected,
                  std::string_view what) {
  const ZipArchive::Member* member = archive.find(path);
  if (!member) return {};
  CARINA_TRY(const ZipArchive::Contents contents, archive.read(*member));
  if (asText(contents.bytes) != expected) {
    return fail(Code::UnknownVersion, "{} is '{}', only '{}' can be read", what,
                asText(contents.bytes).substr(0, 20), expected);
  }
  return {};
}

}  // namespace

Result<Archive> Archive::open(ByteSpan bytes, std::shared_ptr<const void> owner) {
  constexpr uint64_t kJsonBase = uint64_t{8} << 20, kJsonFactor = 16;
  auto zip = ZipArchive::open(bytes, std::move(owner));
  if (!zip.ok()) return std::move(zip).error().withRemedy(kSave);
  Archive archive;
  archive.zip_ = std::move(*zip);
  archive.fileBytes_ = bytes.size();
  archive.json_ = std::make_shared<Budget>(Budget::ofFile(bytes.size(), kJsonBase, kJsonFactor));
  CARINA_RETURN_IF_ERROR(archive.recognise());
  return archive;
}

Status Archive::recognise() {
  if (zip_.members().empty()) return fail(Code::Damaged, "is an empty archive").withRemedy(kSave);
  const std::string& first = zip_.members().front().name;
  const std::string root = first.substr(0, first.find('/') + 1);
  if (!root.empty() && zip_.find(root + "archive_format")) return recogniseFolder(root);
  if (zip_.find(kFlatGraph)) {
    container_ = Container::FlatZip;
    models_ = {"model"};
    return {};
  }
  if (!root.empty() && (zip_.find(root + "data.pkl") || zip_.find(root + "constants.pkl"))) {
    return fail(Code::WrongKind,
                "was written by torch.save() or torch.jit.save(); it holds no exported program")
        .withRemedy(kSave);
  }
  return fail(Code::WrongKind, "is a zip archive, but holds no exported program").withRemedy(kSave);
}

Status Archive::recogniseFolder(const std::string& root) {
  root_ = root;
  for (const ZipArchive::Member& member : zip_.members()) {
    if (!member.name.starts_with(root))
      return fail(Code::Damaged, "member '{}' is outside the archive's folder '{}'", member.name, root);
    const std::string_view path = std::string_view(member.name).substr(root.size());
    constexpr std::string_view kFolder = "models/", kEnding = ".json";
    if (path.starts_with(kFolder) && path.ends_with(kEnding) &&
        path.size() > kFolder.size() + kEnding.size()) {
      models_.emplace_back(path.substr(kFolder.size(), path.size() - kFolder.size() - kEnding.size()));
    }
  }
  CARINA_RETURN_IF_ERROR(expectText(*this, "archive_format", "pt2", "the archive's format"));
  CARINA_RETURN_IF_ERROR(expectText(*this, "archive_version", "0", "the archive's version"));
  CARINA_RETURN_IF_ERROR(expectText(*this, "byteorder", "little", "the weights' byte order"));
  if (models_.empty()) {
    return fail(Code::WrongKind, "is a PT2 archive without a graph (compiled by AOTInductor?)")
        .withRemedy(kSave);
  }
  const bool pickled = std::any_of(models_.begin(), models_.end(), [&](const std::string& model) {
    return find("data/weights/" + model + ".pt") || find("data/constants/" + model + ".pt");
  });
  container_ = pickled ? Container::PickledState : Container::RawState;
  return {};
}

Result<std::string> Archive::chooseModel(const std::string& wanted) const {
  const auto has = [&](const std::string& name) {
    return std::find(models_.begin(), models_.end(), name) != models_.end();
  };
  std::string list;
  for (const std::string& model : models_) list += (list.empty() ? "'" : ", '") + model + "'";
  if (!wanted.empty()) {
    if (has(wanted)) return wanted;
    return fail(Code::UnknownName, "holds no program named '{}'", wanted)
        .withRemedy(fmt::format("It holds {}.", list));
  }
  if (models_.size() == 1) return models_[0];
  if (has("model")) return std::string("model");
  return fail(Code::UnknownName, "holds {} programs: {}", models_.size(), list)
      .withRemedy("Choose one with --program NAME.");
}

Result<JsonText> Archive::readJson(const ZipArchive::Member& member) const {
  if (!json_->take(member.size)) {
    return fail(Code::Excessive, "'{}' has {} bytes of text, more than an archive of {} bytes may hold",
                member.name, member.size, fileBytes_)
        .withRemedy(
            "Write the archive again with members that are stored, not compressed, as torch.export.save "
            "does.");
  }
  CARINA_TRY(const ZipArchive::Contents contents, zip_.read(member));
  return JsonText::parse(asText(contents.bytes));
}

Result<JsonText> Archive::graph(const std::string& model) const {
  const std::string path =
      container_ == Container::FlatZip ? std::string(kFlatGraph) : "models/" + model + ".json";
  const ZipArchive::Member* member = find(path);
  if (!member) return fail(Code::Damaged, "the archive has no '{}'", path);
  return readJson(*member);
}

}  // namespace carina::pt2
