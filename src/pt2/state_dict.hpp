// SPDX-License-Identifier: Apache-2.0
// Parameters, buffers and constants of one program, whatever the container format. Read on demand.
#pragma once

#include <map>
#include <optional>
#include <unordered_map>

#include "pt2/archive.hpp"
#include "pt2/document.hpp"
#include "pt2/stored_tensor.hpp"

namespace carina::pt2 {

class StateDict {
 public:
  enum class Section : uint8_t { Weights, Constants };
  StateDict(const Archive& archive, std::string model, Section section)
      : archive_(archive), model_(std::move(model)), section_(section) {}

  /// The tensor of this name. Errors: not in the archive, not a plain tensor, a storage that is missing or
  /// damaged.
  Result<StoredTensor> find(const std::string& name);

 private:
  struct Payload {
    std::string path;
    bool pickled = false;
    std::optional<TensorMeta> meta;
  };
  Status load();
  Status loadPickled();
  Status loadConfig();
  Result<Payload> readPayload(JsonValue value) const;
  Result<StoredTensor> rawTensor(const Payload& payload);
  std::string_view what() const { return section_ == Section::Weights ? "weights" : "constants"; }

  const Archive& archive_;
  std::string model_;
  Section section_;
  bool loaded_ = false;
  std::unordered_map<std::string, StoredTensor> tensors_;  // from pickles
  std::unordered_map<std::string, Payload> payloads_;      // from a config
  std::unordered_map<std::string, ZipArchive::Contents>
      storages_;  // so that views of one storage are seen to share it
};

}  // namespace carina::pt2
