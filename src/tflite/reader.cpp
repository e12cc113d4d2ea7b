// SPDX-License-Identifier: Apache-2.0
// Converts .tflite bytes to tflite::Model. The FlatBuffers verifier guards every access; indices are checked
// here.
#include <cstring>

#include "base/budget.hpp"
#include "base/file.hpp"
#include "tflite/model.hpp"
#include "tflite/options.hpp"

namespace carina::tflite {
namespace {

constexpr std::string_view kIdentifier = "TFL3";  // at byte 4
constexpr int32_t kCustom = 32;                   // built-in code of custom operators

std::string text(const flatbuffers::String* string) {
  return string != nullptr ? string->str() : std::string();
}

/// Via memcpy: the verifier does not check the alignment of elements wider than the preceding length.
template <typename T>
std::vector<T> copyVector(const flatbuffers::Vector<T>* from) {
  std::vector<T> items(from != nullptr ? from->size() : 0);
  if (!items.empty()) std::memcpy(items.data(), from->Data(), items.size() * sizeof(T));
  return items;
}

ByteSpan spanOf(const flatbuffers::Vector<uint8_t>* bytes) {
  if (bytes == nullptr) return {};
  return {reinterpret_cast<const std::byte*>(bytes->data()), bytes->size()};
}

class Reader {
 public:
  explicit Reader(ByteSpan file)
      : file_(file), copies_(Budget::ofFile(file.size(), kCopiesBase, kCopiesFactor)) {}

  Result<Model> read() {
    if (!isTflite(file_))
      return fail(Code::WrongKind, "not a TensorFlow Lite model: the identifier TFL3 is missing");
    flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(file_.data()), file_.size());
    if (file_.size() >= FLATBUFFERS_MAX_BUFFER_SIZE || !fb::VerifyRootBuffer(verifier)) {
      return Error(fail(Code::Damaged, "corrupt: the flatbuffer contradicts itself"))
          .withRemedy("the file was truncated or overwritten; export it again");
    }
    const fb::Root& root = *fb::GetRoot(file_.data());
    Model model;
    model.version = root.version();
    if (model.version != 3)
      return fail(Code::UnknownVersion, "model version {}; only version 3 is supported", model.version);
    model.description = text(root.description());
    CARINA_RETURN_IF_ERROR(readBuffers(root));
    if (root.subgraphs() == nullptr || root.subgraphs()->size() == 0)
      return fail(Code::Damaged, "the model has no subgraph");
    for (uint32_t i = 0; i < root.subgraphs()->size(); ++i) {
      auto subgraph = readSubgraph(root, *root.subgraphs()->Get(i));
      if (!subgraph) return std::move(subgraph).error().at(fmt::format("subgraph {}", i));
      model.subgraphs.push_back(std::move(*subgraph));
    }
    for (uint32_t i = 0; root.metadata() != nullptr && i < root.metadata()->size(); ++i) {
      const fb::MetadataEntry* entry = root.metadata()->Get(i);
      CARINA_RETURN_IF_ERROR(charge(kRecord, entry->name()));
      if (entry->buffer() >= buffers_.size())
        return fail(Code::Damaged, "metadata {} names buffer {}, but there are {}", i, entry->buffer(),
                    buffers_.size());
      model.metadata.push_back({text(entry->name()), buffers_[entry->buffer()]});
    }
    return model;
  }

 private:
  /// Buffers of models beyond 2 GiB follow the flatbuffer.
  Status readBuffers(const fb::Root& root) {
    for (uint32_t i = 0; root.buffers() != nullptr && i < root.buffers()->size(); ++i) {
      const fb::BufferEntry* entry = root.buffers()->Get(i);
      if (entry->offset() > 1) {
        if (entry->offset() > file_.size() || entry->size() > file_.size() - entry->offset()) {
          return fail(Code::Damaged, "buffer {} ({} bytes at {}) reaches beyond the file of {} bytes", i,
                      entry->size(), entry->offset(), file_.size());
        }
        buffers_.push_back(file_.subspan(entry->offset(), entry->size()));
      } else {
        buffers_.push_back(spanOf(entry->data()));
      }
    }
    return {};
  }

  /// Tables, vectors and strings can be shared, so each is charged before it is copied.
  template <typename... Vectors>
  Status charge(size_t record, const Vectors*... vectors) {
    [[maybe_unused]] const auto bytes = [](const auto* vector) -> uint64_t {
      return vector == nullptr ? 0 : uint64_t{vector->size()} * sizeof(*vector->Data());
    };
    if (copies_.take(record + (uint64_t{0} + ... + bytes(vectors)))) return {};
    return Error(fail(Code::Excessive, "too many parts of the file share their contents"))
        .withRemedy("the file may have been crafted to exhaust memory; convert the network again");
  }

  Result<Tensor> readTensor(const fb::TensorEntry& from) {
    const fb::Quantization* quantization = from.quantization();
    CARINA_RETURN_IF_ERROR(charge(kRecord, from.name(), from.shape()));
    if (quantization) CARINA_RETURN_IF_ERROR(charge(0, quantization->scale(), quantization->zero_point()));
    Tensor tensor;
    tensor.name = text(from.name());
    tensor.type = static_cast<TensorType>(from.type());
    for (const int32_t size : copyVector(from.shape())) tensor.shape.push_back(size);
    tensor.buffer = from.buffer();
    tensor.isVariable = from.is_variable();
    if (quantization) {
      tensor.scales = copyVector(quantization->scale());
      tensor.zeroPoints = copyVector(quantization->zero_point());
      tensor.quantizedDimension = quantization->quantized_dimension();
    }
    if (tensor.buffer >= buffers_.size())
      return fail(Code::Damaged, "tensor '{}' names buffer {}, but there are {}", tensor.name, tensor.buffer,
                  buffers_.size());
    tensor.data = buffers_[tensor.buffer];
    return tensor;
  }

  Result<Operator> readOperator(const fb::Root& root, const fb::OperatorEntry& from) {
    const auto* codes = root.operator_codes();
    if (codes == nullptr || from.code() >= codes->size())
      return fail(Code::Damaged, "operator code {} does not exist", from.code());
    const fb::OperatorCode* code = codes->Get(from.code());
    // Codes beyond 127 are only in the wider field; older writers only know the narrow one.
    const int32_t builtin = std::max<int32_t>(code->short_builtin_code(), code->builtin_code());
    CARINA_RETURN_IF_ERROR(charge(kRecord, from.inputs(), from.outputs(), code->custom_code()));
    Operator result;
    result.custom = builtin == kCustom;
    result.name = result.custom ? text(code->custom_code()) : builtinName(builtin);
    result.version = code->version();
    result.inputs = copyVector(from.inputs());
    result.outputs = copyVector(from.outputs());
    result.options = optionsOf(from);
    for (const Option& option : result.options)
      CARINA_RETURN_IF_ERROR(charge(option.list.size() * sizeof(int64_t)));
    result.customOptions = spanOf(from.custom_options());
    return result;
  }

  static Status checkIndices(const std::vector<int32_t>& indices, size_t count, bool optional,
                             std::string_view what) {
    for (const int32_t index : indices) {
      if (index >= (optional ? -1 : 0) && index < static_cast<int64_t>(count)) continue;
      return fail(Code::Damaged, "{} names tensor {}, but there are {}", what, index, count);
    }
    return {};
  }

  Result<Subgraph> readSubgraph(const fb::Root& root, const fb::SubgraphEntry& from) {
    CARINA_RETURN_IF_ERROR(charge(kRecord, from.name(), from.inputs(), from.outputs()));
    Subgraph subgraph;
    subgraph.name = text(from.name());
    for (uint32_t i = 0; from.tensors() != nullptr && i < from.tensors()->size(); ++i) {
      CARINA_TRY(Tensor tensor, readTensor(*from.tensors()->Get(i)));
      subgraph.tensors.push_back(std::move(tensor));
    }
    const size_t count = subgraph.tensors.size();
    subgraph.inputs = copyVector(from.inputs());
    subgraph.outputs = copyVector(from.outputs());
    CARINA_RETURN_IF_ERROR(checkIndices(subgraph.inputs, count, false, "an input"));
    CARINA_RETURN_IF_ERROR(checkIndices(subgraph.outputs, count, false, "an output"));
    for (uint32_t i = 0; from.operators() != nullptr && i < from.operators()->size(); ++i) {
      CARINA_TRY(Operator op, readOperator(root, *from.operators()->Get(i)));
      const std::string place = fmt::format("operator {} ({})", i, op.name);
      CARINA_RETURN_IF_ERROR(checkIndices(op.inputs, count, true, place));
      CARINA_RETURN_IF_ERROR(checkIndices(op.outputs, count, true, place));
      subgraph.operators.push_back(std::move(op));
    }
    return subgraph;
  }

  static constexpr uint64_t kCopiesBase = uint64_t{1} << 20, kCopiesFactor = 32;
  static constexpr size_t kRecord = 128;  // a tensor, operator etc. without its contents

  ByteSpan file_;
  Budget copies_;
  std::vector<ByteSpan> buffers_;
};

}  // namespace

bool isTflite(ByteSpan file) {
  return file.size() >= 8 && asText(file.subspan(4, 4)) == kIdentifier;
}

Result<Model> readModel(ByteSpan file) {
  return Reader(file).read();
}

}  // namespace carina::tflite
