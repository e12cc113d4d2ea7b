// SPDX-License-Identifier: Apache-2.0
#include "evaluate/data_set.hpp"

#include <algorithm>
#include <charconv>
#include <list>
#include <mutex>
#include <sstream>

#include "base/file.hpp"
#include "base/npy.hpp"

namespace carina::evaluate {

struct DataSet::Source {
  virtual ~Source() = default;
  virtual size_t size() const = 0;
  virtual Result<DataSample> sample(size_t index) const = 0;
  std::string listing;
};

namespace {

namespace fs = std::filesystem;

constexpr const char* kKinds =
    "--data takes an .npz file, a folder of .npz shards, a folder with a folder of files per class, or a "
    "folder of files with labels.txt";

bool isRaw(const fs::path& file) {
  return file.extension() == ".bin" || file.extension() == ".raw";
}

bool isSampleFile(const fs::path& file) {
  return isImage(file) || isRaw(file) || file.extension() == ".npy";
}

/// The contents of a directory, sorted by name, without hidden files.
Result<std::vector<fs::path>> entriesOf(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code problem;
  for (fs::directory_iterator it(folder, problem), end; !problem && it != end; it.increment(problem)) {
    if (!it->path().filename().string().starts_with('.')) entries.push_back(it->path());
  }
  if (problem) return fail(Code::CannotRead, "cannot be read: {}", problem.message()).inFile(folder.string());
  std::sort(entries.begin(), entries.end());
  return entries;
}

std::optional<int64_t> numberOf(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

Result<std::string> fileLine(const fs::path& file, const fs::path& shown) {
  std::error_code problem;
  const uintmax_t bytes = fs::file_size(file, problem);
  if (problem) return fail(Code::CannotRead, "{}", problem.message()).inFile(file.string());
  return fmt::format("{} {}\n", shown.string(), bytes);
}

/// One sample as input `name` ("in0"). A slice along an axis of the input itself lacks that axis.
Result<Tensor> asInput(const InputForms& forms, const std::string& name, Tensor sample,
                       const pipeline::Port& port) {
  if (sample.shape().size() + 1 == port.type.shape.size()) {
    Shape shape{1};
    shape.insert(shape.end(), sample.shape().begin(), sample.shape().end());
    sample = sample.reshaped(shape);
  }
  NamedTensors single{{name, std::move(sample)}};
  if (forms.take) {
    CARINA_TRY(single, forms.take(std::move(single)));
  }
  single[0] = {"in0", single[0].second.reshaped(port.type.shape)};
  CARINA_TRY(pipeline::Batch batch, pipeline::makeBatch(single, std::span(&port, 1)));
  return std::move(batch.samples.front().front());
}

}  // namespace

/// Arrays from shards.
struct DataSet::Shards : DataSet::Source {
  struct Shard {
    fs::path file;
    size_t first = 0, samples = 0;
    bool stacked = true;  // arrays have a sample axis
  };

  Shards(std::vector<fs::path> files, std::span<const pipeline::Port> inputs, InputForms how)
      : ports(inputs.begin(), inputs.end()), forms(std::move(how)) {
    forms.inputs.resize(ports.size());
    for (fs::path& file : files) shards.push_back({std::move(file), 0, 0, true});
  }

  /// Reads the contents of every shard.
  Status scan() {
    for (Shard& shard : shards) {
      CARINA_TRY(const auto arrays, readNpz(shard.file));
      if (auto status = measure(arrays, shard); !status.ok())
        return std::move(status).error().inFile(shard.file.string());
      shard.first = total;
      total += shard.samples;
      CARINA_TRY(const std::string line, fileLine(shard.file, shard.file.filename()));
      listing += line;
    }
    return {};
  }

  Status measure(const NamedTensors& arrays, Shard& shard) const {
    std::optional<int64_t> samples;
    for (size_t i = 0; i < ports.size(); ++i) {
      const std::string name = fmt::format("in{}", i);
      const Tensor* array = findTensor(arrays, name);
      if (array == nullptr)
        return fail(Code::InputMismatch, "the array is missing").at(name).withRemedy(kKinds);
      auto stacking = pipeline::stackingOf(array->shape(), ports[i].type.shape);
      if (!stacking && forms.inputs[i].network)
        stacking = pipeline::stackingOf(array->shape(), *forms.inputs[i].network);
      if (!stacking) {
        return fail(Code::InputMismatch, "has shape {}, which holds no samples for {} of shape {}",
                    shapeText(array->shape()), ports[i].name, shapeText(ports[i].type.shape))
            .at(name);
      }
      const int64_t count = *stacking == pipeline::Stacking::None ? 1 : array->dim(0);
      const bool stacked = *stacking != pipeline::Stacking::None;
      if (samples && (count != *samples || stacked != shard.stacked))
        return fail(Code::InputMismatch, "has {} samples, in0 has {}", count, *samples).at(name);
      samples = count;
      shard.stacked = stacked;
    }
    shard.samples = static_cast<size_t>(samples.value_or(0));
    const Tensor* labels = findTensor(arrays, "labels");
    if (labels != nullptr && shard.stacked &&
        (labels->rank() < 1 || labels->dim(0) != static_cast<int64_t>(shard.samples)))
      return fail(Code::InputMismatch, "has shape {}, the inputs have {} samples", shapeText(labels->shape()),
                  shard.samples)
          .at("labels");
    for (size_t i = 0;; ++i) {
      const std::string name = fmt::format("out{}", i);
      const Tensor* output = findTensor(arrays, name);
      if (output == nullptr) return {};
      if (shard.stacked && (output->rank() < 1 || output->dim(0) != static_cast<int64_t>(shard.samples)))
        return fail(Code::InputMismatch, "has shape {}, the inputs have {} samples",
                    shapeText(output->shape()), shard.samples)
            .at(name);
    }
  }

  size_t size() const override { return total; }

  Result<std::shared_ptr<const NamedTensors>> arraysOf(size_t index) const {
    const std::lock_guard<std::mutex> lock(mutex);
    for (auto it = kept.begin(); it != kept.end(); ++it) {
      if (it->first != index) continue;
      kept.splice(kept.begin(), kept, it);
      return kept.front().second;
    }
    CARINA_TRY(NamedTensors arrays, readNpz(shards[index].file));
    Shard now = shards[index];
    if (auto status = measure(arrays, now); !status.ok())
      return std::move(status).error().inFile(now.file.string());
    if (now.samples != shards[index].samples)
      return fail(Code::CannotRead, "changed while it was read").inFile(now.file.string());
    kept.emplace_front(index, std::make_shared<const NamedTensors>(std::move(arrays)));
    constexpr size_t kMaxKept = 2;
    if (kept.size() > kMaxKept) kept.pop_back();
    return kept.front().second;
  }

  Result<DataSample> sample(size_t index) const override {
    auto at = std::upper_bound(shards.begin(), shards.end(), index,
                               [](size_t i, const Shard& shard) { return i < shard.first; });
    const auto which = static_cast<size_t>(at - shards.begin()) - 1;
    const Shard& shard = shards[which];
    CARINA_TRY(const auto arrays, arraysOf(which));
    const auto within = static_cast<int64_t>(index - shard.first);
    DataSample result;
    result.name = fmt::format("{}[{}]", shard.file.filename().string(), within);
    const auto one = [&](const Tensor& array) {
      return shard.stacked ? pipeline::slice(array, within) : array;
    };
    for (size_t i = 0; i < ports.size(); ++i) {
      const std::string name = fmt::format("in{}", i);
      auto converted = asInput(forms, name, one(*findTensor(*arrays, name)), ports[i]);
      if (!converted) return std::move(converted).error().inFile(shard.file.string());
      result.inputs.push_back(std::move(*converted));
    }
    if (const Tensor* labels = findTensor(*arrays, "labels")) result.label = one(*labels);
    for (size_t i = 0;; ++i) {
      const Tensor* output = findTensor(*arrays, fmt::format("out{}", i));
      if (output == nullptr) break;
      result.references.push_back(one(*output));
    }
    return result;
  }

  std::vector<pipeline::Port> ports;
  InputForms forms;
  std::vector<Shard> shards;
  size_t total = 0;
  mutable std::mutex mutex;
  mutable std::list<std::pair<size_t, std::shared_ptr<const NamedTensors>>> kept;  // most recently used first
};

/// One file per sample.
struct DataSet::Files : DataSet::Source {
  struct File {
    fs::path path;
    std::string name;
    int64_t label = 0;
  };

  Files(pipeline::Port input, Preprocessing how, InputForms takes)
      : port(std::move(input)), preprocessing(std::move(how)), forms(std::move(takes)) {
    const bool codes = !forms.inputs.empty() && forms.inputs.front().codes;
    picture = port.type;
    if (codes) picture.dtype = DType::Float32;
  }

  Status add(const fs::path& path, std::string name, int64_t label) {
    if (isImage(path)) {
      if (!imagesChecked) CARINA_RETURN_IF_ERROR(checkImageInput(picture, preprocessing));
      imagesChecked = true;
    }
    CARINA_TRY(const std::string line, fileLine(path, name));
    listing += fmt::format("{} {}", label, line);
    files.push_back({path, std::move(name), label});
    return {};
  }

  size_t size() const override { return files.size(); }

  Result<Tensor> read(const fs::path& path) const {
    if (isImage(path)) {
      CARINA_TRY(Tensor image, readImage(path, picture, preprocessing));
      return picture.dtype == port.type.dtype ? std::move(image)
                                              : asInput(forms, "in0", std::move(image), port);
    }
    if (isRaw(path)) {
      CARINA_TRY(const auto file, MappedFile::open(path));
      const int64_t wanted = numElements(port.type.shape) * dtypeSize(port.type.dtype);
      if (static_cast<int64_t>(file->bytes().size()) != wanted) {
        return fail(Code::InputMismatch, "has {} bytes, the input {} {} takes {}", file->bytes().size(),
                    dtypeName(port.type.dtype), shapeText(port.type.shape), wanted)
            .inFile(path.string());
      }
      return Tensor::borrow(port.type.dtype, port.type.shape, file->bytes(), file);
    }
    CARINA_TRY(NamedTensors arrays, readArrays(path));
    if (arrays.size() != 1)
      return fail(Code::InputMismatch, "does not hold a single array").inFile(path.string());
    const Shape& shape = arrays.front().second.shape();
    const auto& network = forms.inputs.empty() ? std::nullopt : forms.inputs.front().network;
    auto stacking = pipeline::stackingOf(shape, port.type.shape);
    if (!stacking && network) stacking = pipeline::stackingOf(shape, *network);
    if (!stacking) {
      return fail(Code::InputMismatch, "has shape {}, the input has {}", shapeText(shape),
                  shapeText(port.type.shape))
          .inFile(path.string());
    }
    if (numElements(shape) != numElements(port.type.shape))
      return fail(Code::InputMismatch, "holds more than one sample").inFile(path.string());
    auto input = asInput(forms, "in0", std::move(arrays.front().second), port);
    if (!input) return std::move(input).error().inFile(path.string());
    return input;
  }

  Result<DataSample> sample(size_t index) const override {
    DataSample result;
    result.name = files[index].name;
    CARINA_TRY(Tensor input, read(files[index].path));
    result.inputs.push_back(std::move(input));
    result.label = Tensor::scalar<int64_t>(files[index].label);
    return result;
  }

  pipeline::Port port;
  Preprocessing preprocessing;
  InputForms forms;
  ir::Type picture;  // the type that images are read as
  bool imagesChecked = false;
  std::vector<File> files;
};

namespace {

/// Class directories: the label is the rank, or the number if all names are numbers.
Result<std::vector<std::pair<fs::path, int64_t>>> classesOf(const std::vector<fs::path>& folders) {
  std::vector<std::pair<fs::path, int64_t>> classes;
  const bool numbers = std::all_of(folders.begin(), folders.end(), [](const fs::path& folder) {
    return numberOf(folder.filename().string()).has_value();
  });
  for (size_t i = 0; i < folders.size(); ++i) {
    classes.emplace_back(folders[i],
                         numbers ? *numberOf(folders[i].filename().string()) : static_cast<int64_t>(i));
  }
  return classes;
}

}  // namespace

DataSet::DataSet(std::unique_ptr<Source> source) : source_(std::move(source)) {}
DataSet::~DataSet() = default;
DataSet::DataSet(DataSet&&) noexcept = default;
DataSet& DataSet::operator=(DataSet&&) noexcept = default;

size_t DataSet::size() const {
  return source_->size();
}

Result<DataSample> DataSet::sample(size_t index) const {
  return source_->sample(index);
}

const std::string& DataSet::listing() const {
  return source_->listing;
}

Result<DataSet> DataSet::open(const fs::path& path, std::span<const pipeline::Port> inputs,
                              const Preprocessing& preprocessing, const InputForms& forms) {
  const std::string name = path.string();
  std::error_code problem;
  const fs::file_status status = fs::status(path, problem);
  if (!fs::exists(status)) return fail(Code::CannotRead, "does not exist").inFile(name).withRemedy(kKinds);
  std::vector<fs::path> shards, folders, files;
  bool hasLabels = false;
  if (fs::is_directory(status)) {
    CARINA_TRY(const std::vector<fs::path> entries, entriesOf(path));
    for (const fs::path& entry : entries) {
      if (fs::is_directory(entry, problem)) {
        folders.push_back(entry);
      } else if (entry.extension() == ".npz") {
        shards.push_back(entry);
      } else if (entry.filename() == "labels.txt") {
        hasLabels = true;
      } else if (isSampleFile(entry)) {
        files.push_back(entry);
      }
    }
    const int kinds = !shards.empty() + !folders.empty() + !files.empty();
    if (kinds == 0) return fail(Code::InputMismatch, "holds no samples").inFile(name).withRemedy(kKinds);
    if (kinds > 1)
      return fail(Code::InputMismatch, "holds samples of several kinds").inFile(name).withRemedy(kKinds);
  } else {
    shards.push_back(path);
  }
  if (!shards.empty()) {
    auto source = std::make_unique<Shards>(std::move(shards), inputs, forms);
    CARINA_RETURN_IF_ERROR(source->scan());
    if (source->total == 0) return fail(Code::InputMismatch, "holds no samples").inFile(name);
    return DataSet(std::move(source));
  }
  if (inputs.size() != 1) {
    return fail(Code::InputMismatch, "a file per sample is for networks with one input, but this one has {}",
                inputs.size())
        .inFile(name)
        .withRemedy("give arrays (.npz)");
  }
  auto source = std::make_unique<Files>(inputs.front(), preprocessing, forms);
  if (!folders.empty()) {
    CARINA_TRY(const auto classes, classesOf(folders));
    for (const auto& [folder, label] : classes) {
      CARINA_TRY(const std::vector<fs::path> entries, entriesOf(folder));
      for (const fs::path& entry : entries) {
        if (!isSampleFile(entry)) continue;
        if (auto added = source->add(entry, (folder.filename() / entry.filename()).string(), label);
            !added.ok())
          return std::move(added).error().inFile(name);
      }
    }
  } else {
    if (!hasLabels)
      return fail(Code::InputMismatch, "has files, but no labels.txt").inFile(name).withRemedy(kKinds);
    const fs::path labels = path / "labels.txt";
    CARINA_TRY(const auto text, MappedFile::open(labels));
    std::istringstream lines{std::string(asText(text->bytes()))};
    size_t number = 0;
    for (std::string line; std::getline(lines, line);) {
      ++number;
      if (!line.empty() && line.back() == '\r') line.pop_back();
      if (line.empty() || line.front() == '#') continue;
      const size_t at = line.find_last_of(" \t");
      const auto label =
          at == std::string::npos ? std::nullopt : numberOf(std::string_view(line).substr(at + 1));
      const std::string file =
          at == std::string::npos ? "" : line.substr(0, line.find_last_not_of(" \t", at) + 1);
      if (!label || file.empty() || fs::path(file).filename() != file || !isSampleFile(file)) {
        return fail(Code::InputMismatch, "is not 'FILE LABEL' of an image, .npy or raw file in this folder")
            .inFile(labels.string())
            .at(fmt::format("line {}", number));
      }
      if (auto added = source->add(path / file, file, *label); !added.ok())
        return std::move(added).error().inFile(labels.string());
    }
  }
  if (source->files.empty())
    return fail(Code::InputMismatch, "holds no samples").inFile(name).withRemedy(kKinds);
  return DataSet(std::move(source));
}

}  // namespace carina::evaluate
