// SPDX-License-Identifier: Apache-2.0
#include "tflite/rewriter.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "base/budget.hpp"
#include "tflite/raw_table.hpp"

namespace carina::tflite {
namespace {

using flatbuffers::Offset;
using flatbuffers::Vector;

constexpr int8_t kReshapeCode = 22;
// Limits for copies of shared contents relative to the file, as in the reader.
constexpr uint64_t kCopiesBase = uint64_t{1} << 20, kCopiesFactor = 32;

class Rewriter {
 public:
  explicit Rewriter(const Rewrite& rewrite)
      : rewrite_(rewrite),
        root_(*fb::GetRoot(rewrite.source.data())),
        tensorsOf_(root_.subgraphs()->size()),
        copies_(Budget::ofFile(rewrite.source.size(), kCopiesBase, kCopiesFactor)) {}

  Result<std::string> run() {
    std::vector<Offset<fb::SubgraphEntry>> subgraphs;
    auto next = rewrite_.subgraphs.begin();
    for (uint32_t i = 0; i < root_.subgraphs()->size(); ++i) {
      const bool isNew = next != rewrite_.subgraphs.end() && next->index == i;
      auto subgraph = isNew ? rewrite(*next++) : copySubgraph(*root_.subgraphs()->Get(i));
      if (!subgraph && i > 0) return std::move(subgraph).error().at(fmt::format("subgraph {}", i));
      if (!subgraph) return std::move(subgraph).error();
      subgraphs.push_back(*subgraph);
    }
    CARINA_TRY(auto metadata, copyMetadata());
    metadata.push_back(entries_.plan());
    CARINA_TRY(const auto signatures, copySignatures());
    return entries_.finish(codes_, subgraphs, "compiled by Carina", metadata, signatures);
  }

 private:
  using Tensors = std::map<int32_t, int32_t>;  // index in the source, index in the new file

  flatbuffers::FlatBufferBuilder& builder() { return entries_.builder(); }

  static std::string text(const flatbuffers::String* string) { return string ? string->str() : ""; }

  Status charge(uint64_t bytes) {
    if (copies_.take(bytes)) return {};
    return Error(fail(Code::Excessive, "too many parts of the file share their contents"));
  }

  template <typename T>
  Result<Offset<Vector<T>>> copyVector(const Vector<T>* from) {
    if (from == nullptr) return Offset<Vector<T>>();
    CARINA_RETURN_IF_ERROR(charge(uint64_t{from->size()} * sizeof(T) + 8));
    std::vector<T> items(from->size());
    if (!items.empty()) std::memcpy(items.data(), from->Data(), items.size() * sizeof(T));
    return builder().CreateVector(items.data(), items.size());
  }
  Result<Offset<flatbuffers::String>> copyText(const flatbuffers::String* from) {
    if (from == nullptr) return Offset<flatbuffers::String>();
    CARINA_RETURN_IF_ERROR(charge(from->size() + 8));
    return builder().CreateString(from->c_str(), from->size());
  }

  Result<Offset<fb::SubgraphEntry>> rewrite(const RewrittenSubgraph& to) {
    CARINA_RETURN_IF_ERROR(addUsedTensors(to));
    const fb::SubgraphEntry& from = *root_.subgraphs()->Get(static_cast<uint32_t>(to.index));
    const Tensors& tensors = tensorsOf_[to.index];
    std::vector<Offset<fb::OperatorEntry>> operators;
    for (const RewrittenOperator& op : to.operators) {
      CARINA_TRY(const auto entry, std::visit([&](const auto& one) { return add(to, one); }, op));
      operators.push_back(entry);
    }
    CARINA_TRY(const auto inputs, mapped(from.inputs(), tensors));
    CARINA_TRY(const auto outputs, mapped(from.outputs(), tensors));
    return entries_.subgraph(inputs, outputs, operators, text(from.name()));
  }

  // Buffers, tensors
  // ------------------------------------------------------------------------------------------

  /// Index of a buffer in the new file. Buffers that share their bytes are merged.
  Result<uint32_t> buffer(uint32_t index) {
    if (index == 0) return 0U;
    if (root_.buffers() == nullptr || index >= root_.buffers()->size())
      return fail(Code::Damaged, "buffer {} does not exist", index);
    const fb::BufferEntry& entry = *root_.buffers()->Get(index);
    ByteSpan bytes;
    if (entry.offset() > 1) {
      if (entry.offset() > rewrite_.source.size() || entry.size() > rewrite_.source.size() - entry.offset())
        return fail(Code::Damaged, "buffer {} reaches beyond the file", index);
      bytes = rewrite_.source.subspan(entry.offset(), entry.size());
    } else if (entry.data() != nullptr) {
      bytes = {reinterpret_cast<const std::byte*>(entry.data()->data()), entry.data()->size()};
    }
    if (bytes.empty()) return 0U;
    const auto [known, isNew] = buffers_.emplace(std::pair(bytes.data(), bytes.size()), 0U);
    if (isNew) known->second = entries_.buffer(bytes);
    return known->second;
  }

  Result<Offset<fb::Quantization>> copyQuantization(const fb::Quantization* from) {
    if (from == nullptr) return Offset<fb::Quantization>();
    if (from->details() != nullptr)
      return fail(Code::NotRepresentable, "its quantization is not linear: it cannot be copied");
    CARINA_TRY(const auto low, copyVector(from->min()));
    CARINA_TRY(const auto high, copyVector(from->max()));
    CARINA_TRY(const auto scale, copyVector(from->scale()));
    CARINA_TRY(const auto zero, copyVector(from->zero_point()));
    return fb::CreateQuantization(builder(), low, high, scale, zero, 0, 0, from->quantized_dimension());
  }

  Result<Offset<fb::TensorEntry>> copyTensor(const fb::TensorEntry& from, const std::string& suffix = "") {
    if (from.sparsity() != nullptr || from.variant_tensors() != nullptr) {
      return fail(Code::NotRepresentable, "tensor '{}' is {}: it cannot be copied", text(from.name()),
                  from.sparsity() != nullptr ? "sparse" : "a variant")
          .withRemedy("convert the network without it");
    }
    CARINA_TRY(const auto shape, copyVector(from.shape()));
    CARINA_TRY(const auto signature, copyVector(from.shape_signature()));
    auto quantization = copyQuantization(from.quantization());
    if (!quantization) return std::move(quantization).error().at(fmt::format("'{}'", text(from.name())));
    CARINA_TRY(const uint32_t data, buffer(from.buffer()));
    CARINA_RETURN_IF_ERROR(charge(from.name() == nullptr ? 0 : from.name()->size()));
    const auto name = builder().CreateString(text(from.name()) + suffix);
    return fb::CreateTensorEntry(builder(), shape, from.type(), data, name, *quantization, from.is_variable(),
                                 0, signature, from.has_rank());
  }

  void use(const Vector<int32_t>* tensors, std::set<int32_t>& used) const {
    for (uint32_t i = 0; tensors != nullptr && i < tensors->size(); ++i) {
      if (tensors->Get(i) >= 0) used.insert(tensors->Get(i));
    }
  }

  /// Adds the subgraph's tensors that are still used, in their order, then the copies.
  Status addUsedTensors(const RewrittenSubgraph& to) {
    const fb::SubgraphEntry& from = *root_.subgraphs()->Get(static_cast<uint32_t>(to.index));
    const auto known = static_cast<int32_t>(from.tensors() == nullptr ? 0 : from.tensors()->size());
    std::set<int32_t> used;
    use(from.inputs(), used);
    use(from.outputs(), used);
    for (const RewrittenOperator& op : to.operators) {
      if (const auto* kept = std::get_if<KeptOperator>(&op)) {
        const fb::OperatorEntry& entry = *from.operators()->Get(static_cast<uint32_t>(kept->index));
        for (const auto* tensors : {entry.inputs(), entry.outputs(), entry.intermediates()})
          use(tensors, used);
      } else if (const auto* npu = std::get_if<NpuOperator>(&op)) {
        used.insert(npu->inputs.begin(), npu->inputs.end());
        used.insert(npu->outputs.begin(), npu->outputs.end());
      } else {
        used.insert({std::get<CopyOperator>(op).from, std::get<CopyOperator>(op).to});
      }
    }
    for (const int32_t index : used) {
      const auto copy = static_cast<size_t>(index - known);
      if (index >= known && copy >= to.copies.size())
        return fail(Code::Damaged, "tensor {} does not exist: there are {}", index, known);
      const int32_t like = index < known ? index : to.copies[copy];
      CARINA_TRY(const auto entry, copyTensor(*from.tensors()->Get(static_cast<uint32_t>(like)),
                                              index < known ? "" : fmt::format("#copy{}", copy)));
      tensorsOf_[to.index][index] = entries_.tensor(entry, to.offsets.at(static_cast<size_t>(index)));
    }
    return {};
  }

  static std::vector<int32_t> mapped(const std::vector<int32_t>& from, const Tensors& tensors) {
    std::vector<int32_t> to;
    to.reserve(from.size());
    for (const int32_t index : from) to.push_back(index < 0 ? -1 : tensors.at(index));
    return to;
  }
  Result<std::vector<int32_t>> mapped(const Vector<int32_t>* from, const Tensors& tensors) {
    if (from == nullptr) return std::vector<int32_t>();
    CARINA_RETURN_IF_ERROR(charge(uint64_t{from->size()} * sizeof(int32_t)));
    std::vector<int32_t> to;
    for (uint32_t i = 0; i < from->size(); ++i) {
      const auto known = tensors.find(from->Get(i));
      if (known == tensors.end() && from->Get(i) != -1)
        return fail(Code::Damaged, "tensor {} does not exist", from->Get(i));
      to.push_back(known == tensors.end() ? -1 : known->second);
    }
    return to;
  }

  // Operators
  // -------------------------------------------------------------------------------------------------

  /// Index of a code in the new file.
  Result<uint32_t> code(uint32_t index) {
    const auto [known, isNew] = codeOf_.emplace(index, static_cast<uint32_t>(codes_.size()));
    if (!isNew) return known->second;
    const fb::OperatorCode& from = *root_.operator_codes()->Get(index);
    CARINA_TRY(const auto custom, copyText(from.custom_code()));
    codes_.push_back(fb::CreateOperatorCode(builder(), from.short_builtin_code(), custom, from.version(),
                                            from.builtin_code()));
    return known->second;
  }

  Result<Offset<fb::OperatorEntry>> copyOperator(const fb::OperatorEntry& from, const Tensors& tensors) {
    if (from.second_options() != nullptr || from.large_custom_options_size() != 0) {
      return fail(Code::NotRepresentable, "its options have a type that cannot be copied")
          .withRemedy("convert the network without StableHLO and without options stored after the model");
    }
    const auto list = [&](const Vector<int32_t>* indices) -> Result<Offset<Vector<int32_t>>> {
      if (indices == nullptr) return Offset<Vector<int32_t>>();
      CARINA_TRY(const std::vector<int32_t> to, mapped(indices, tensors));
      return builder().CreateVector(to);
    };
    CARINA_TRY(const uint32_t codeIndex, code(from.code()));
    CARINA_TRY(const auto inputs, list(from.inputs()));
    CARINA_TRY(const auto outputs, list(from.outputs()));
    CARINA_TRY(const auto intermediates, list(from.intermediates()));
    CARINA_TRY(const auto mutating, copyVector(from.mutating_variable_inputs()));
    CARINA_TRY(const auto custom, copyVector(from.custom_options()));
    CARINA_TRY(const auto options,
               copyOptions(rewrite_.source, static_cast<uint8_t>(from.builtin_options_type()),
                           from.builtin_options(), copies_, builder()));
    return fb::CreateOperatorEntry(builder(), codeIndex, inputs, outputs, from.builtin_options_type(),
                                   options, custom, from.custom_options_format(), mutating, intermediates);
  }

  Result<Offset<fb::OperatorEntry>> add(const RewrittenSubgraph& to, const KeptOperator& op) {
    const fb::SubgraphEntry& from = *root_.subgraphs()->Get(static_cast<uint32_t>(to.index));
    auto entry = copyOperator(*from.operators()->Get(static_cast<uint32_t>(op.index)), tensorsOf_[to.index]);
    if (!entry) return std::move(entry).error().at(fmt::format("operator {}", op.index));
    return *entry;
  }

  Result<Offset<fb::OperatorEntry>> add(const RewrittenSubgraph& to, const NpuOperator& op) {
    if (!npuCode_) {
      npuCode_ = static_cast<uint32_t>(codes_.size());
      codes_.push_back(entries_.npuCode());
    }
    const std::string suffix = npuOperators_ == 0 ? "" : fmt::format("_{}", npuOperators_);
    ++npuOperators_;
    const Tensors& tensors = tensorsOf_[to.index];
    return entries_.npuOperator(*npuCode_, op.memory, mapped(op.inputs, tensors), mapped(op.outputs, tensors),
                                suffix);
  }

  Result<Offset<fb::OperatorEntry>> add(const RewrittenSubgraph& to, const CopyOperator& op) {
    if (!reshapeCode_) {
      reshapeCode_ = static_cast<uint32_t>(codes_.size());
      codes_.push_back(fb::CreateOperatorCode(builder(), kReshapeCode, 0, 1, kReshapeCode));
    }
    const auto& known = *root_.subgraphs()->Get(static_cast<uint32_t>(to.index))->tensors();
    const int32_t like = to.copies.at(static_cast<size_t>(op.to) - known.size());
    CARINA_TRY(const auto shape, copyVector(known.Get(static_cast<uint32_t>(like))->shape()));
    const auto options = fb::CreateReshapeOptions(builder(), shape);
    const Tensors& tensors = tensorsOf_[to.index];
    const auto inputs = builder().CreateVector(mapped({op.from}, tensors));
    const auto outputs = builder().CreateVector(mapped({op.to}, tensors));
    return fb::CreateOperatorEntry(builder(), *reshapeCode_, inputs, outputs,
                                   fb::OperatorOptions::ReshapeOptions, options.Union());
  }

  // Everything else
  // -------------------------------------------------------------------------------------------

  /// Copies a subgraph with all of its tensors and operators; the interpreter places its tensors.
  Result<Offset<fb::SubgraphEntry>> copySubgraph(const fb::SubgraphEntry& from) {
    Tensors same;
    for (uint32_t i = 0; from.tensors() != nullptr && i < from.tensors()->size(); ++i) {
      CARINA_TRY(const auto tensor, copyTensor(*from.tensors()->Get(i)));
      same[static_cast<int32_t>(i)] = entries_.tensor(tensor, kNotPlanned);
    }
    std::vector<Offset<fb::OperatorEntry>> operators;
    for (uint32_t i = 0; from.operators() != nullptr && i < from.operators()->size(); ++i) {
      auto entry = copyOperator(*from.operators()->Get(i), same);
      if (!entry) return std::move(entry).error().at(fmt::format("operator {}", i));
      operators.push_back(*entry);
    }
    CARINA_TRY(const auto inputs, mapped(from.inputs(), same));
    CARINA_TRY(const auto outputs, mapped(from.outputs(), same));
    return entries_.subgraph(inputs, outputs, operators, text(from.name()));
  }

  Result<std::vector<Offset<fb::MetadataEntry>>> copyMetadata() {
    std::vector<Offset<fb::MetadataEntry>> metadata;
    for (uint32_t i = 0; root_.metadata() != nullptr && i < root_.metadata()->size(); ++i) {
      const fb::MetadataEntry& from = *root_.metadata()->Get(i);
      if (text(from.name()) == kArenaPlan) continue;
      CARINA_TRY(const uint32_t data, buffer(from.buffer()));
      CARINA_TRY(const auto name, copyText(from.name()));
      metadata.push_back(fb::CreateMetadataEntry(builder(), name, data));
    }
    return metadata;
  }

  using SignatureTensors = Vector<Offset<fb::SignatureTensor>>;
  Result<Offset<SignatureTensors>> copySignatureTensors(const SignatureTensors* from, uint32_t subgraph) {
    const bool isNew = std::any_of(rewrite_.subgraphs.begin(), rewrite_.subgraphs.end(),
                                   [&](const RewrittenSubgraph& one) { return one.index == subgraph; });
    std::vector<Offset<fb::SignatureTensor>> tensors;
    for (uint32_t i = 0; from != nullptr && i < from->size(); ++i) {
      CARINA_TRY(const auto name, copyText(from->Get(i)->name()));
      uint32_t index = from->Get(i)->tensor_index();
      if (isNew) {
        const auto known = tensorsOf_[subgraph].find(static_cast<int32_t>(index));
        if (known == tensorsOf_[subgraph].end())
          return fail(Code::Damaged, "a signature names tensor {}, which is neither an input nor an output",
                      index);
        index = static_cast<uint32_t>(known->second);
      }
      tensors.push_back(fb::CreateSignatureTensor(builder(), name, index));
    }
    return builder().CreateVector(tensors);
  }

  Result<Offset<Vector<Offset<fb::Signature>>>> copySignatures() {
    if (root_.signatures() == nullptr) return Offset<Vector<Offset<fb::Signature>>>();
    std::vector<Offset<fb::Signature>> signatures;
    for (uint32_t i = 0; i < root_.signatures()->size(); ++i) {
      const fb::Signature& from = *root_.signatures()->Get(i);
      CARINA_TRY(const auto inputs, copySignatureTensors(from.inputs(), from.subgraph_index()));
      CARINA_TRY(const auto outputs, copySignatureTensors(from.outputs(), from.subgraph_index()));
      CARINA_TRY(const auto key, copyText(from.key()));
      signatures.push_back(fb::CreateSignature(builder(), inputs, outputs, key, from.subgraph_index()));
    }
    return builder().CreateVector(signatures);
  }

  const Rewrite& rewrite_;
  const fb::Root& root_;
  std::vector<Tensors> tensorsOf_;  // of rewritten subgraphs
  Budget copies_;
  ModelEntries entries_;
  std::map<std::pair<const std::byte*, size_t>, uint32_t> buffers_;
  std::vector<Offset<fb::OperatorCode>> codes_;
  std::map<uint32_t, uint32_t> codeOf_;
  std::optional<uint32_t> npuCode_, reshapeCode_;
  size_t npuOperators_ = 0;
};

}  // namespace

bool liesInArena(const Tensor& tensor) {
  const auto bytes = tensorBytes(tensor);
  return tensor.data.empty() && !tensor.isVariable && bytes && *bytes > 0;
}

Result<std::string> rewriteModel(const Rewrite& rewrite) {
  return Rewriter(rewrite).run();
}

}  // namespace carina::tflite
