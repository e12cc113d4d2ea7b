// SPDX-License-Identifier: Apache-2.0
#include "pt2/state_dict.hpp"

#include "pt2/pickle.hpp"

namespace carina::pt2 {

Result<StoredTensor> StateDict::find(const std::string& name) {
  if (!loaded_) {
    CARINA_RETURN_IF_ERROR(load());
    loaded_ = true;
  }
  if (const auto it = tensors_.find(name); it != tensors_.end()) return it->second;
  if (const auto it = payloads_.find(name); it != payloads_.end()) return rawTensor(it->second);
  return fail(Code::Damaged, "is not among the archive's {}", what());
}

Status StateDict::load() {
  return archive_.container() == Container::RawState ? loadConfig() : loadPickled();
}

Status StateDict::loadPickled() {
  const bool weights = section_ == Section::Weights;
  const std::string flat = weights ? "serialized_state_dict" : "serialized_constants";
  // Before torch 2.3 the same pickles were named .json.
  const std::vector<std::string> paths =
      archive_.container() == Container::FlatZip
          ? std::vector<std::string>{flat + ".pt", flat + ".json"}
          : std::vector<std::string>{fmt::format("data/{}/{}.pt", what(), model_)};
  for (const std::string& path : paths) {
    const ZipArchive::Member* member = archive_.find(path);
    if (!member) continue;
    CARINA_TRY(const ZipArchive::Contents contents, archive_.read(*member));
    auto tensors = readPickledTensors(contents.bytes, contents.owner, archive_.inflation());
    if (!tensors.ok())
      return fail(Code::Damaged, "in '{}': {}", path, tensors.error().message())
          .withRemedy(tensors.error().diagnostics()[0].remedy);
    for (PickledTensor& tensor : *tensors) tensors_.emplace(std::move(tensor.name), std::move(tensor.tensor));
    return {};
  }
  return {};
}

Status StateDict::loadConfig() {
  const std::string path = fmt::format("data/{0}/{1}_{0}_config.json", what(), model_);
  const ZipArchive::Member* member = archive_.find(path);
  if (!member) return {};
  auto json = archive_.readJson(*member);
  if (!json.ok())
    return fail(Code::Damaged, "'{}': {}", path, json.error().message())
        .withRemedy(json.error().diagnostics()[0].remedy);
  CARINA_TRY(const JsonObject root, JsonObject::of(json->root(), path));
  CARINA_TRY(const JsonObject config, root.getObject("config"));
  for (const auto& [name, value] : config.entries()) {
    CARINA_TRY(Payload payload, readPayload(value));
    payloads_.emplace(std::string(name), std::move(payload));
  }
  return {};
}

Result<StateDict::Payload> StateDict::readPayload(JsonValue value) const {
  CARINA_TRY(const JsonObject object, JsonObject::of(value, "an entry of the weights table"));
  Payload payload;
  CARINA_TRY(payload.path, object.getName("path_name"));
  if (payload.path.empty() || payload.path.find('/') != std::string::npos ||
      payload.path.find("..") != std::string::npos) {
    return fail(Code::Damaged, "the weights table names the impossible member '{}'", payload.path);
  }
  if (object.find("use_pickle")) {
    CARINA_TRY(payload.pickled, object.getBool("use_pickle"));
  }
  if (const auto meta = object.find("tensor_meta")) {
    CARINA_TRY(payload.meta, readTensorMeta(*meta));
  }
  return payload;
}

Result<StoredTensor> StateDict::rawTensor(const Payload& payload) {
  if (payload.pickled || !payload.meta) {
    return fail(Code::UnknownVersion, "is a pickled object, not a plain tensor")
        .withRemedy(
            "Unwrap tensor subclasses before export (torchao.utils.unwrap_tensor_subclass) and avoid custom "
            "objects.");
  }
  StoredTensor tensor;
  tensor.type = scalarTypeByNumber(payload.meta->scalarType);
  if (!tensor.type)
    return fail(Code::UnknownVersion, "has the unknown element type {}", payload.meta->scalarType);
  const auto constants = [](const std::vector<SymbolicSize>& sizes, Shape& into) -> Status {
    for (const SymbolicSize& size : sizes) {
      if (!size.isConstant()) return fail(Code::Damaged, "has a size that is not a number");
      into.push_back(size.value);
    }
    return {};
  };
  CARINA_RETURN_IF_ERROR(constants(payload.meta->sizes, tensor.sizes));
  CARINA_RETURN_IF_ERROR(constants(payload.meta->strides, tensor.strides));
  if (!payload.meta->offset.isConstant()) return fail(Code::Damaged, "has an offset that is not a number");
  tensor.offset = payload.meta->offset.value;
  auto it = storages_.find(payload.path);
  if (it == storages_.end()) {
    const ZipArchive::Member* member = archive_.find(fmt::format("data/{}/{}", what(), payload.path));
    if (!member) return fail(Code::Damaged, "its storage '{}' is missing from the archive", payload.path);
    CARINA_TRY(ZipArchive::Contents contents, archive_.read(*member));
    it = storages_.emplace(payload.path, std::move(contents)).first;
  }
  tensor.storage = it->second.bytes;
  tensor.owner = it->second.owner;
  return tensor;
}

}  // namespace carina::pt2
