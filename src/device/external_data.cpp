// SPDX-License-Identifier: Apache-2.0
#include "device/external_data.hpp"

#include <algorithm>

namespace carina::device {

Status ExternalData::add(const pte::TensorData& data) {
  for (const pte::DataEntry& entry : data.entries) {
    AlignedBuffer bytes(entry.bytes.size());
    std::copy(entry.bytes.begin(), entry.bytes.end(), reinterpret_cast<std::byte*>(bytes.data()));
    if (!entries_.try_emplace(entry.key, std::move(bytes)).second)
      return fail(Code::Damaged, "'{}' is in two tensor data files", entry.key)
          .withRemedy("give only the files that belong to this program");
  }
  return {};
}

rt::Status ExternalData::find(rt::Text key, rt::Bytes* bytes) const {
  const auto entry = entries_.find(std::string_view(key.data, key.size));
  if (entry == entries_.end()) return rt::failure(rt::Code::NotFound, "no data of this name");
  *bytes = rt::Bytes(entry->second.data(), entry->second.size());
  return rt::Status{};
}

namespace {

Status checkLayout(const pte::Tensor& tensor, const pte::DataEntry& entry) {
  pte::Tensor stored;
  if (!entry.layout) return {};
  stored.type = entry.layout->type;
  stored.sizes = entry.layout->sizes;
  stored.dimOrder = entry.layout->dimOrder;
  if (stored.type == tensor.type && stored.sizes == tensor.sizes && stored.dimOrder == tensor.dimOrder)
    return {};
  if (stored.str() == tensor.str())
    return fail(Code::InputMismatch, "the program expects '{}' in another dimension order than its file has",
                entry.key);
  return fail(Code::InputMismatch, "the program expects '{}' as {}, but its file has {}", entry.key,
              tensor.str(), stored.str());
}

}  // namespace

Status checkLayouts(const pte::Program& program, std::span<const pte::TensorData> files) {
  for (const pte::Method& method : program.methods) {
    for (const pte::Value& value : method.values) {
      const auto* tensor = std::get_if<pte::Tensor>(&value);
      if (tensor == nullptr || !tensor->extra || !tensor->extra->external) continue;
      for (const pte::TensorData& file : files) {
        if (const pte::DataEntry* entry = file.find(tensor->extra->name))
          CARINA_RETURN_IF_ERROR(checkLayout(*tensor, *entry));
      }
    }
  }
  return {};
}

}  // namespace carina::device
