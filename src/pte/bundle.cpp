// SPDX-License-Identifier: Apache-2.0
#include "pte/bundle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/file.hpp"
#include "pte/flat_bytes.hpp"
#include "pte/schema.hpp"

namespace carina::pte {
namespace {

namespace bundle = fb::bundle;
using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

constexpr char kIdentifier[] = "BP08";
constexpr size_t kProgramAlignment = 32, kDataAlignment = 16;

std::optional<int64_t> bytesOf(const BundleTensor& tensor) {
  Tensor shape;
  shape.type = tensor.type;
  shape.sizes = tensor.sizes;
  return tensorBytes(shape);
}

bool isPermutation(std::vector<uint8_t> order, size_t rank) {
  std::sort(order.begin(), order.end());
  for (size_t d = 0; d < order.size(); ++d) {
    if (order[d] != d) return false;
  }
  return order.size() == rank;
}

Result<BundleValue> readItem(const bundle::ItemEntry& from, Copier& copy) {
  CARINA_RETURN_IF_ERROR(copy.room<BundleValue>());
  if (from.item_type() != bundle::Item::NONE && from.item() == nullptr)
    return fail(Code::Damaged, "a value has no content");
  switch (from.item_type()) {
    case bundle::Item::NONE:
      return BundleValue(None{});
    case bundle::Item::IntItem:
      return BundleValue(from.item_as_IntItem()->value());
    case bundle::Item::BoolItem:
      return BundleValue(from.item_as_BoolItem()->value());
    case bundle::Item::DoubleItem:
      return BundleValue(from.item_as_DoubleItem()->value());
    case bundle::Item::TensorItem: {
      const bundle::TensorItem& item = *from.item_as_TensorItem();
      BundleTensor tensor{static_cast<ScalarType>(item.scalar_type()), copy.vector(item.sizes()),
                          copy.vector(item.dim_order()), copy.bytes(spanOf(item.data()))};
      CARINA_RETURN_IF_ERROR(copy.status());
      const auto bytes = bytesOf(tensor);
      if (!bytes || *bytes != static_cast<int64_t>(tensor.bytes.size())) {
        return fail(Code::Damaged, "{}{} holds {} bytes", scalarTypeName(tensor.type),
                    fmt::format("[{}]", fmt::join(tensor.sizes, ",")), tensor.bytes.size());
      }
      if (!tensor.dimOrder.empty() && !isPermutation(tensor.dimOrder, tensor.sizes.size())) {
        return fail(Code::Damaged, "the dimension order of a tensor is not a permutation of its dimensions");
      }
      return BundleValue(std::move(tensor));
    }
  }
  return fail(Code::UnknownVersion, "a value has the unknown type {}", static_cast<int>(from.item_type()));
}

Result<std::vector<BundleValue>> readItems(const flatbuffers::Vector<Offset<bundle::ItemEntry>>* from,
                                           std::string_view what, Copier& copy) {
  std::vector<BundleValue> values;
  for (uint32_t i = 0; from != nullptr && i < from->size(); ++i) {
    auto value = readItem(*from->Get(i), copy);
    if (!value) return std::move(value).error().at(fmt::format("{} {}", what, i));
    values.push_back(std::move(*value));
  }
  return values;
}

class Writer {
 public:
  std::string write(const Bundle& from) {
    std::vector<Offset<bundle::SuiteEntry>> suites;
    for (const BundleSuite& suite : from.suites) {
      std::vector<Offset<bundle::CaseEntry>> cases;
      for (const BundleCase& entry : suite.cases) {
        const auto inputs = items(entry.inputs);
        cases.push_back(bundle::CreateCaseEntry(builder_, inputs, items(entry.expected)));
      }
      const auto method = builder_.CreateString(suite.method);
      suites.push_back(bundle::CreateSuiteEntry(builder_, method, builder_.CreateVector(cases)));
    }
    const auto table = builder_.CreateVector(suites);
    const auto program = bytes(from.program, kProgramAlignment);
    builder_.Finish(bundle::CreateBundleRoot(builder_, from.version, table, program), kIdentifier);
    return {reinterpret_cast<const char*>(builder_.GetBufferPointer()), builder_.GetSize()};
  }

 private:
  Offset<flatbuffers::Vector<uint8_t>> bytes(const ByteVector& from, size_t alignment) {
    builder_.ForceVectorAlignment(from.size(), 1, alignment);
    return builder_.CreateVector(reinterpret_cast<const uint8_t*>(from.data()), from.size());
  }

  Offset<flatbuffers::Vector<Offset<bundle::ItemEntry>>> items(const std::vector<BundleValue>& values) {
    std::vector<Offset<bundle::ItemEntry>> entries;
    entries.reserve(values.size());
    for (const BundleValue& value : values) entries.push_back(item(value));
    return builder_.CreateVector(entries);
  }

  Offset<bundle::ItemEntry> item(const BundleValue& value) {
    using bundle::Item;
    if (const auto* integer = std::get_if<int64_t>(&value))
      return bundle::CreateItemEntry(builder_, Item::IntItem,
                                     bundle::CreateIntItem(builder_, *integer).Union());
    if (const auto* flag = std::get_if<bool>(&value))
      return bundle::CreateItemEntry(builder_, Item::BoolItem,
                                     bundle::CreateBoolItem(builder_, *flag).Union());
    if (const auto* real = std::get_if<double>(&value))
      return bundle::CreateItemEntry(builder_, Item::DoubleItem,
                                     bundle::CreateDoubleItem(builder_, *real).Union());
    if (std::holds_alternative<None>(value)) return bundle::CreateItemEntry(builder_);
    const BundleTensor& tensor = std::get<BundleTensor>(value);
    const auto sizes = builder_.CreateVector(tensor.sizes);
    const auto data = bytes(tensor.bytes, kDataAlignment);
    const auto order = builder_.CreateVector(tensor.dimOrder);
    return bundle::CreateItemEntry(
        builder_, Item::TensorItem,
        bundle::CreateTensorItem(builder_, static_cast<int8_t>(tensor.type), sizes, data, order).Union());
  }

  FlatBufferBuilder builder_;
};

std::string describe(const BundleValue& value) {
  if (const auto* integer = std::get_if<int64_t>(&value)) return fmt::format("int {}", *integer);
  if (const auto* flag = std::get_if<bool>(&value)) return fmt::format("bool {}", *flag);
  if (const auto* real = std::get_if<double>(&value)) return fmt::format("double {}", *real);
  if (std::holds_alternative<None>(value)) return "none";
  const BundleTensor& tensor = std::get<BundleTensor>(value);
  return fmt::format("{}[{}]", scalarTypeName(tensor.type), fmt::join(tensor.sizes, ","));
}

std::string describe(const std::vector<BundleValue>& values) {
  std::string text;
  for (const BundleValue& value : values) text += (text.empty() ? "" : ", ") + describe(value);
  return text.empty() ? "nothing" : text;
}

/// Calls `visit(memoryIndex)` for each element in logical order.
template <typename Visit>
void inLogicalOrder(const BundleTensor& tensor, Visit&& visit) {
  const size_t rank = tensor.sizes.size();
  std::vector<int64_t> stride(rank), index(rank, 0);
  int64_t step = 1;
  for (size_t k = rank; k-- > 0;) {
    const size_t d = tensor.dimOrder.empty() ? k : tensor.dimOrder[k];
    stride[d] = step;
    step *= tensor.sizes[d];
  }
  int64_t at = 0;
  for (int64_t n = step; n > 0; --n) {
    visit(static_cast<size_t>(at));
    for (size_t d = rank; d-- > 0;) {
      at += stride[d];
      if (++index[d] < tensor.sizes[d]) break;
      at -= stride[d] * tensor.sizes[d];
      index[d] = 0;
    }
  }
}

}  // namespace

Result<Bundle> readBundle(ByteSpan file) {
  if (file.size() < 8 || asText(file.subspan(4, 4)) != kIdentifier)
    return fail(Code::WrongKind, "not a bundled program: the identifier BP08 is missing");
  const AlignedCopy aligned(file);
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(aligned.bytes().data()), file.size());
  if (file.size() >= FLATBUFFERS_MAX_BUFFER_SIZE || !bundle::VerifyBundleRootBuffer(verifier)) {
    return Error(fail(Code::Damaged, "corrupt: the flatbuffer contradicts itself"))
        .withRemedy("the file was truncated or overwritten; export it again");
  }
  const bundle::BundleRoot& root = *bundle::GetBundleRoot(aligned.bytes().data());
  Copier copy(file.size());
  Bundle result;
  result.version = root.version();
  for (uint32_t i = 0; root.suites() != nullptr && i < root.suites()->size(); ++i) {
    const bundle::SuiteEntry* from = root.suites()->Get(i);
    CARINA_RETURN_IF_ERROR(copy.room<BundleSuite>());
    BundleSuite suite{copy.text(from->method()), {}};
    for (uint32_t k = 0; from->cases() != nullptr && k < from->cases()->size(); ++k) {
      const auto place = [&](std::string_view what) {
        return fmt::format("suite {}, case {}, {}", i, k, what);
      };
      BundleCase entry;
      CARINA_RETURN_IF_ERROR(copy.room<BundleCase>());
      CARINA_TRY(entry.inputs, readItems(from->cases()->Get(k)->inputs(), place("input"), copy));
      CARINA_TRY(entry.expected,
                 readItems(from->cases()->Get(k)->expected(), place("expected output"), copy));
      suite.cases.push_back(std::move(entry));
    }
    result.suites.push_back(std::move(suite));
  }
  result.program = copy.bytes(spanOf(root.program()));
  CARINA_RETURN_IF_ERROR(copy.status());
  if (result.program.empty()) return fail(Code::Damaged, "the bundle holds no program");
  return result;
}

Result<std::string> writeBundle(const Bundle& from) {
  if (from.program.empty()) return fail(Code::Damaged, "the bundle holds no program");
  for (const BundleSuite& suite : from.suites) {
    for (const BundleCase& entry : suite.cases) {
      for (const auto* values : {&entry.inputs, &entry.expected}) {
        for (const BundleValue& value : *values) {
          const auto* tensor = std::get_if<BundleTensor>(&value);
          if (tensor != nullptr && bytesOf(*tensor) != static_cast<int64_t>(tensor->bytes.size())) {
            return fail(Code::Damaged, "a tensor of {} holds {} bytes", suite.method, tensor->bytes.size());
          }
        }
      }
    }
  }
  return Writer().write(from);
}

Result<carina::Tensor> toTensor(const BundleTensor& tensor) {
  const auto dtype = toDType(tensor.type);
  if (!dtype)
    return fail(Code::UnsupportedProgram, "tensors of type {} cannot be used here",
                scalarTypeName(tensor.type));
  auto result = carina::Tensor::uninitialized(*dtype, Shape(tensor.sizes.begin(), tensor.sizes.end()));
  if (tensor.bytes.empty()) return result;
  const auto size = static_cast<size_t>(dtypeSize(*dtype));
  std::byte* target = result.mutableBytes().data();
  inLogicalOrder(tensor, [&](size_t at) {
    std::memcpy(target, tensor.bytes.data() + at * size, size);
    target += size;
  });
  return result;
}

BundleTensor fromTensor(const carina::Tensor& tensor) {
  BundleTensor result;
  result.type = fromDType(tensor.dtype());
  for (const int64_t size : tensor.shape()) {
    result.dimOrder.push_back(static_cast<uint8_t>(result.sizes.size()));
    result.sizes.push_back(static_cast<int32_t>(size));
  }
  result.bytes = copyBytes(tensor.bytes());
  return result;
}

std::string printBundle(const Bundle& from) {
  std::string text =
      fmt::format("bundled program: version {}, program of {} bytes\n", from.version, from.program.size());
  for (const BundleSuite& suite : from.suites) {
    text += fmt::format("test cases of {}: {}\n", suite.method, suite.cases.size());
    for (size_t i = 0; i < suite.cases.size(); ++i) {
      text += fmt::format("  {:>3}: {} -> {}\n", i, describe(suite.cases[i].inputs),
                          describe(suite.cases[i].expected));
    }
  }
  return text;
}

}  // namespace carina::pte
