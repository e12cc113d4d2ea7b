// SPDX-License-Identifier: Apache-2.0
#include "firmware/image.hpp"

#include <unistd.h>

#include <optional>

#include "base/file.hpp"
#include "base/signals.hpp"
#include "firmware/toolchain.hpp"

namespace carina::firmware {
namespace {

namespace fs = std::filesystem;

/// A folder to build in; removed at the end unless the caller named it.
class WorkFolder {
 public:
  static Result<WorkFolder> open(const fs::path& named) {
    std::error_code failed;
    if (!named.empty()) {
      fs::create_directories(named, failed);
      if (failed)
        return fail(Code::ToolFailed, "cannot be created: {}", failed.message()).inFile(named.string());
      return WorkFolder(fs::absolute(named), false);
    }
    std::string name =
        (fs::temp_directory_path(failed) / "carina-firmware-XXXXXX").string();  // mkdtemp fills the X
    if (failed || mkdtemp(name.data()) == nullptr)
      return fail(Code::ToolFailed, "cannot create a temporary folder").inFile(name);
    return WorkFolder(name, true);
  }
  ~WorkFolder() {
    std::error_code ignored;
    if (temporary_) fs::remove_all(path_, ignored);
  }
  WorkFolder(WorkFolder&& other) noexcept
      : path_(std::move(other.path_)), temporary_(other.temporary_), guard_(std::move(other.guard_)) {
    other.temporary_ = false;
  }
  WorkFolder& operator=(WorkFolder&&) = delete;

  const fs::path& path() const { return path_; }

 private:
  WorkFolder(fs::path path, bool temporary) : path_(std::move(path)), temporary_(temporary) {
    if (temporary) guard_.emplace(RemovedOnSignal::Kind::Folder, path_.string());
  }
  fs::path path_;
  bool temporary_;
  std::optional<RemovedOnSignal> guard_;
};

/// Rewords the linker's message about a region that is too small; quotes any other output.
Error linkError(const std::string& output, const PlatformInfo& platform) {
  // "region `ITCM' overflowed by 1234 bytes"
  constexpr std::string_view kOverflow = "' overflowed by ";
  const std::string_view text = output;
  const size_t end = text.find(kOverflow), begin = end == text.npos ? end : text.rfind('`', end);
  if (begin == text.npos) {
    return fail(Code::ToolFailed, "the cross compiler failed:\n{}", output)
        .withRemedy("keep its input with --keep FOLDER and inspect it");
  }
  const std::string_view region = text.substr(begin + 1, end - begin - 1),
                         rest = text.substr(end + kOverflow.size()), bytes = rest.substr(0, rest.find(' '));
  return fail(Code::DoesNotFit, "the image needs {} bytes more than {} of {} has", bytes, region,
              platform.name)
      .withRemedy("use fewer kernels or samples, or a smaller --stack");
}

}  // namespace

Result<Image> buildImage(const ImageOptions& options) {
  CARINA_TRY(const auto file, MappedFile::open(options.program));
  auto plan = makePlan(file->bytes(), options.plan);
  if (!plan) return std::move(plan).error().inFile(options.program.string());
  Image image;
  image.plan = std::move(*plan);
  image.core = options.source.core;
  CARINA_TRY(const fs::path kit, findKit(options.kit, image.core));
  CARINA_TRY(const WorkFolder folder, WorkFolder::open(options.keep));
  SourceOptions source = options.source;
  source.programName = options.program.filename().string();
  OutputFiles files;
  for (const auto& [name, text] : makeSources(image.plan, file->bytes(), source)) {
    CARINA_RETURN_IF_ERROR(files.add(folder.path() / name, text));
  }
  CARINA_RETURN_IF_ERROR(files.commit());

  const fs::path libraries = kit / "lib" / image.core;
  const std::vector<std::string> command = {options.compiler,
                                            "@" + (libraries / "flags").string(),
                                            "-I" + (kit / "include").string(),
                                            "-Wall",
                                            "-Werror",
                                            "app.cpp",
                                            "app.s",
                                            "-o",
                                            "app.elf",
                                            "-nostartfiles",
                                            "--specs=nano.specs",
                                            "-Wl,-n",
                                            "-Wl,--gc-sections",
                                            "-Wl,-Map=app.map",
                                            "-Wl,--no-warn-rwx-segments",
                                            "-L" + (kit / "ld").string(),
                                            "-Tapp.ld",
                                            (libraries / "libcarina_runner.a").string(),
                                            (libraries / "libcarina_runtime.a").string()};
  auto outcome = runCommand(command, folder.path());
  if (!outcome) {
    return std::move(outcome).error().withRemedy(
        "install the cross compiler (scripts/deps.sh, or the packages gcc-arm-none-eabi and "
        "libnewlib-arm-none-eabi), or name it with --compiler");
  }
  if (outcome->status != 0) return linkError(outcome->output, *image.plan.platform);
  CARINA_TRY(const auto map, MappedFile::open(folder.path() / "app.map"));
  CARINA_TRY(image.sizes, readMap(asText(map->bytes())));
  CARINA_TRY(const auto elf, MappedFile::open(folder.path() / "app.elf"));
  image.elf = std::string(asText(elf->bytes()));
  return image;
}

}  // namespace carina::firmware
