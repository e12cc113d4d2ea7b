// SPDX-License-Identifier: Apache-2.0
#include "pt2/pickle.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_map>
#include <unordered_set>
#include <variant>

#include "base/file.hpp"

namespace carina::pt2 {
namespace {

/// Values refer to each other by index, so that a pickle with cycles needs no special treatment.
using Ref = uint32_t;

struct None {};
struct Mark {};
struct Tuple {
  std::vector<Ref> items;
};
struct List {
  std::vector<Ref> items;
};
struct Dict {
  std::vector<std::pair<Ref, Ref>> items;
};
struct Global {
  std::string name;  // "torch._utils _rebuild_tensor_v2"
};
struct Storage {
  const ScalarType* type = nullptr;  // null: untyped, elements are bytes
  Ref key = 0;                       // a string
  int64_t elements = 0;
};
struct View {
  std::unique_ptr<StoredTensor> tensor;  // a hundred bytes that few values need
};
using Value =
    std::variant<None, Mark, bool, int64_t, double, std::string, Tuple, List, Dict, Global, Storage, View>;

constexpr std::string_view kGlobals[] = {
    "collections OrderedDict",         "torch Size",
    "torch._utils _rebuild_parameter", "torch._utils _rebuild_tensor_v2",
    "torch._utils _rebuild_tensor_v3", "torch.storage UntypedStorage",
};
constexpr std::string_view kRemedy =
    "Only plain tensors can be read from a pickle; unwrap tensor subclasses and remove custom objects before "
    "export, or export with torch 2.9 or later.";

class Reader {
 public:
  Reader(const ZipArchive& zip, std::string root, ByteSpan program)
      : zip_(zip),
        root_(std::move(root)),
        program_(program),
        work_(Budget::ofFile(std::min(program.size(), kMaxWorth), kBaseWork, kWorkFactor)) {}

  Result<std::vector<PickledTensor>> run() {
    CARINA_RETURN_IF_ERROR(execute());
    if (stack_.size() != 1) return damaged();
    const auto* dict = std::get_if<Dict>(&values_[stack_[0]]);
    if (!dict) return fail(Code::Damaged, "the pickle is not a dictionary of tensors").withRemedy(kRemedy);
    std::vector<PickledTensor> tensors;
    std::unordered_set<std::string> names;
    for (const auto& [key, value] : dict->items) {
      const auto* name = std::get_if<std::string>(&values_[key]);
      const auto* view = std::get_if<View>(&values_[value]);
      if (!name || !view)
        return fail(Code::Damaged, "the pickle holds an entry that is not a named tensor")
            .withRemedy(kRemedy);
      if (!names.insert(*name).second) return fail(Code::Damaged, "the pickle names '{}' twice", *name);
      CARINA_RETURN_IF_ERROR(spend(2 * view->tensor->sizes.size()));
      tensors.push_back({*name, *view->tensor});
    }
    return tensors;
  }

  Result<std::vector<StoredTensor>> arguments() {
    CARINA_RETURN_IF_ERROR(execute());
    if (stack_.size() != 1) return damaged();
    std::vector<StoredTensor> tensors;
    CARINA_RETURN_IF_ERROR(collect(stack_[0], 0, tensors));
    return tensors;
  }

 private:
  /// Containers may contain each other, and the same one any number of times: depth and work are bounded.
  Status collect(Ref ref, int depth, std::vector<StoredTensor>& tensors) {
    constexpr int kMostDepth = 32;
    if (depth > kMostDepth)
      return fail(Code::Excessive, "the pickle nests its containers more than {} deep", kMostDepth);
    CARINA_RETURN_IF_ERROR(spend(1));
    if (const auto* view = as<View>(ref)) {
      CARINA_RETURN_IF_ERROR(spend(2 * view->tensor->sizes.size()));
      tensors.push_back(*view->tensor);
      return {};
    }
    const auto* tuple = as<Tuple>(ref);
    const auto* list = as<List>(ref);
    if (tuple || list) {
      for (const Ref item : tuple ? tuple->items : list->items)
        CARINA_RETURN_IF_ERROR(collect(item, depth + 1, tensors));
    } else if (const auto* dict = as<Dict>(ref)) {
      for (const auto& [key, value] : dict->items) CARINA_RETURN_IF_ERROR(collect(value, depth + 1, tensors));
    }
    return {};
  }

  Error damaged() const { return fail(Code::Damaged, "the pickle is damaged at byte {}", at_); }

  /// Accounts for what an opcode copies from earlier values: opcodes are a byte long, but what they refer to
  /// can be as long as the pickle.
  Status spend(size_t units) {
    if (work_.take(units)) return {};
    return fail(Code::Excessive, "the pickle of {} bytes repeats its own values too often (at byte {})",
                program_.size(), at_)
        .withRemedy(kRemedy);
  }

  // Reading bytes
  // ----------------------------------------------------------------------------------------------

  Result<ByteSpan> take(size_t n) {
    if (n > program_.size() - at_) return damaged();
    at_ += n;
    return program_.subspan(at_ - n, n);
  }
  Result<uint64_t> takeUnsigned(size_t n) {
    CARINA_TRY(const ByteSpan bytes, take(n));
    uint64_t value = 0;
    for (size_t i = 0; i < n; ++i) value |= std::to_integer<uint64_t>(bytes[i]) << (8 * i);
    return value;
  }
  Result<std::string> takeLine() {
    std::string line;
    for (;;) {
      CARINA_TRY(const uint64_t c, takeUnsigned(1));
      if (c == '\n') return line;
      line += static_cast<char>(c);
    }
  }

  // The stack
  // --------------------------------------------------------------------------------------------------

  void push(Value value) {
    stack_.push_back(static_cast<Ref>(values_.size()));
    values_.push_back(std::move(value));
  }
  Result<Ref> pop() {
    if (stack_.empty() || std::holds_alternative<Mark>(values_[stack_.back()])) return damaged();
    const Ref ref = stack_.back();
    stack_.pop_back();
    return ref;
  }
  Result<std::vector<Ref>> popTo(size_t n) {
    std::vector<Ref> items(n);
    for (size_t i = n; i-- > 0;) {
      CARINA_TRY(items[i], pop());
    }
    return items;
  }
  Result<std::vector<Ref>> popToMark() {
    std::vector<Ref> items;
    while (!stack_.empty() && !std::holds_alternative<Mark>(values_[stack_.back()])) {
      items.push_back(stack_.back());
      stack_.pop_back();
    }
    if (stack_.empty()) return damaged();
    stack_.pop_back();
    std::reverse(items.begin(), items.end());
    return items;
  }
  template <typename T>
  Result<T*> top() {
    T* value = stack_.empty() ? nullptr : std::get_if<T>(&values_[stack_.back()]);
    if (!value) return damaged();
    return value;
  }
  template <typename T>
  const T* as(Ref ref) const {
    return std::get_if<T>(&values_[ref]);
  }

  // Opcodes
  // ----------------------------------------------------------------------------------------------------

  Status execute() {
    for (;;) {
      CARINA_TRY(const uint64_t opcode, takeUnsigned(1));
      if (opcode == '.') return {};
      CARINA_RETURN_IF_ERROR(step(static_cast<uint8_t>(opcode)));
      if (std::max({values_.size(), stack_.size(), memo_.size()}) > kMaxValues)
        return fail(Code::Excessive, "the pickle holds more than {} values", kMaxValues);
    }
  }

  Status step(uint8_t opcode) {
    switch (opcode) {
      case 0x80:
        return protocol();
      case '}':
        push(Dict{});
        return {};
      case ']':
        push(List{});
        return {};
      case ')':
        push(Tuple{});
        return {};
      case '(':
        push(Mark{});
        return {};
      case 'N':
        push(None{});
        return {};
      case 0x88:
        push(true);
        return {};
      case 0x89:
        push(false);
        return {};
      case 'X':
        return text();
      case 'K':
        return integer(1);
      case 'M':
        return integer(2);
      case 'J':
        return integer(4);
      case 0x8a:
        return longInteger();
      case 'G':
        return real();
      case 'c':
        return global();
      case 'q':
        return put(1);
      case 'r':
        return put(4);
      case 'h':
        return get(1);
      case 'j':
        return get(4);
      case 't':
        return tupleToMark();
      case 0x85:
        return tuple(1);
      case 0x86:
        return tuple(2);
      case 0x87:
        return tuple(3);
      case 'a':
        return append(false);
      case 'e':
        return append(true);
      case 's':
        return setItems(false);
      case 'u':
        return setItems(true);
      case 'Q':
        return persistent();
      case 'R':
        return reduce();
      case 'b':
        return build();
      default:
        return fail(Code::UnknownVersion,
                    "the pickle uses opcode 0x{:02x}, which dictionaries of tensors do not need", opcode)
            .withRemedy(kRemedy);
    }
  }

  Status protocol() {
    CARINA_TRY(const uint64_t version, takeUnsigned(1));
    if (version > 5)
      return fail(Code::UnknownVersion, "the pickle has protocol {}, which is unknown", version);
    return {};
  }
  Status text() {
    CARINA_TRY(const uint64_t size, takeUnsigned(4));
    CARINA_TRY(const ByteSpan bytes, take(size));
    push(std::string(asText(bytes)));
    return {};
  }
  Status integer(size_t bytes) {
    CARINA_TRY(const uint64_t value, takeUnsigned(bytes));
    push(bytes == 4 ? int64_t{static_cast<int32_t>(static_cast<uint32_t>(value))}
                    : static_cast<int64_t>(value));
    return {};
  }
  Status longInteger() {
    CARINA_TRY(const uint64_t size, takeUnsigned(1));
    if (size > 8) return fail(Code::Damaged, "the pickle holds an integer of {} bytes", size);
    CARINA_TRY(uint64_t value, takeUnsigned(size));
    if (size > 0 && size < 8 && (value >> (8 * size - 1)) != 0) value |= ~uint64_t{0} << (8 * size);
    push(static_cast<int64_t>(value));
    return {};
  }
  Status real() {
    CARINA_TRY(const ByteSpan bytes, take(8));
    uint64_t bits = 0;
    for (std::byte b : bytes) bits = bits << 8 | std::to_integer<uint64_t>(b);
    push(std::bit_cast<double>(bits));
    return {};
  }
  Status global() {
    CARINA_TRY(const std::string module, takeLine());
    CARINA_TRY(const std::string name, takeLine());
    std::string full = module + " " + name;
    const bool known = std::find(std::begin(kGlobals), std::end(kGlobals), full) != std::end(kGlobals) ||
                       (module == "torch" && (scalarTypeByStorage(name) || scalarTypeByName(name)));
    if (!known)
      return fail(Code::UnknownVersion, "the pickle calls {}.{}, which is not supported", module, name)
          .withRemedy(kRemedy);
    push(Global{std::move(full)});
    return {};
  }
  Status put(size_t bytes) {
    CARINA_TRY(const uint64_t slot, takeUnsigned(bytes));
    if (stack_.empty()) return damaged();
    memo_[slot] = stack_.back();
    return {};
  }
  Status get(size_t bytes) {
    CARINA_TRY(const uint64_t slot, takeUnsigned(bytes));
    const auto it = memo_.find(slot);
    if (it == memo_.end()) return damaged();
    stack_.push_back(it->second);
    return {};
  }
  Status tuple(size_t n) {
    CARINA_TRY(auto items, popTo(n));
    push(Tuple{std::move(items)});
    return {};
  }
  Status tupleToMark() {
    CARINA_TRY(auto items, popToMark());
    push(Tuple{std::move(items)});
    return {};
  }
  Status append(bool many) {
    CARINA_TRY(const auto items, many ? popToMark() : popTo(1));
    CARINA_TRY(List * list, top<List>());
    list->items.insert(list->items.end(), items.begin(), items.end());
    return {};
  }
  Status setItems(bool many) {
    CARINA_TRY(const auto items, many ? popToMark() : popTo(2));
    if (items.size() % 2 != 0) return damaged();
    CARINA_TRY(Dict * dict, top<Dict>());
    for (size_t i = 0; i < items.size(); i += 2) dict->items.emplace_back(items[i], items[i + 1]);
    return {};
  }
  /// State of an OrderedDict is the attribute _metadata of state dicts, which says nothing about tensors.
  Status build() {
    CARINA_TRY(const Ref state, pop());
    if (stack_.empty() || !as<Dict>(stack_.back()) || !as<Dict>(state)) {
      return fail(Code::UnknownVersion, "the pickle sets the state of an object that is not supported")
          .withRemedy(kRemedy);
    }
    return {};
  }

  // Objects
  // ----------------------------------------------------------------------------------------------------

  /// ('storage', CLASS, KEY, LOCATION, NUMBER OF ELEMENTS)
  Status persistent() {
    CARINA_TRY(const Ref ref, pop());
    const auto* tuple = as<Tuple>(ref);
    if (!tuple || tuple->items.size() != 5) return damaged();
    const auto* kind = as<std::string>(tuple->items[0]);
    const auto* type = as<Global>(tuple->items[1]);
    const auto* key = as<std::string>(tuple->items[2]);
    const auto* elements = as<int64_t>(tuple->items[4]);
    if (!kind || *kind != "storage" || !type || !key || !elements || *elements < 0) return damaged();
    Storage storage{nullptr, tuple->items[2], *elements};
    if (type->name != "torch.storage UntypedStorage") {
      storage.type = scalarTypeByStorage(std::string_view(type->name).substr(type->name.find(' ') + 1));
      if (!storage.type) return damaged();
    }
    push(storage);
    return {};
  }

  Status reduce() {
    CARINA_TRY(const Ref argumentsRef, pop());
    CARINA_TRY(const Ref functionRef, pop());
    const auto* arguments = as<Tuple>(argumentsRef);
    const auto* function = as<Global>(functionRef);
    if (!arguments || !function) return damaged();
    CARINA_RETURN_IF_ERROR(spend(arguments->items.size() + 1));
    const std::vector<Ref> items = arguments->items;
    const std::string name = function->name;
    if (name == "collections OrderedDict") return orderedDict(items);
    if (name == "torch Size" && items.size() == 1 && as<Tuple>(items[0])) {
      stack_.push_back(items[0]);
      return {};
    }
    if (name == "torch._utils _rebuild_parameter" && items.size() == 3 && as<View>(items[0])) {
      stack_.push_back(items[0]);
      return {};
    }
    if (name == "torch._utils _rebuild_tensor_v2" && items.size() >= 6) return tensor(items, nullptr);
    if (name == "torch._utils _rebuild_tensor_v3" && items.size() >= 7) {
      const auto* dtype = as<Global>(items[6]);
      if (!dtype || dtype->name.substr(0, 6) != "torch ") return damaged();
      const ScalarType* type = scalarTypeByName(std::string_view(dtype->name).substr(6));
      if (!type) return damaged();
      return tensor(items, type);
    }
    return damaged();
  }

  Status orderedDict(const std::vector<Ref>& items) {
    Dict dict;
    if (items.size() > 1) return damaged();
    if (items.size() == 1) {
      const auto* pairs = as<List>(items[0]);
      if (!pairs) return damaged();
      CARINA_RETURN_IF_ERROR(spend(pairs->items.size()));
      for (Ref ref : pairs->items) {
        const auto* pair = as<Tuple>(ref);
        const auto* list = as<List>(ref);
        const std::vector<Ref>* both = pair ? &pair->items : list ? &list->items : nullptr;
        if (!both || both->size() != 2) return damaged();
        dict.items.emplace_back((*both)[0], (*both)[1]);
      }
    }
    push(std::move(dict));
    return {};
  }

  Result<Shape> sizes(Ref ref) {
    const auto* tuple = as<Tuple>(ref);
    if (!tuple || tuple->items.size() > kMaxRank) return damaged();
    CARINA_RETURN_IF_ERROR(spend(tuple->items.size()));
    Shape shape;
    for (Ref item : tuple->items) {
      const auto* size = as<int64_t>(item);
      if (!size) return damaged();
      shape.push_back(*size);
    }
    return shape;
  }

  /// (storage, offset, size, stride, requires_grad, hooks[, ...]); `type` overrides that of the storage.
  Status tensor(const std::vector<Ref>& items, const ScalarType* type) {
    const auto* storage = as<Storage>(items[0]);
    const auto* offset = as<int64_t>(items[1]);
    if (!storage || !offset) return damaged();
    auto view = std::make_unique<StoredTensor>();
    view->type = type ? type : storage->type;
    if (!view->type) return damaged();
    view->offset = *offset;
    CARINA_TRY(view->sizes, sizes(items[2]));
    CARINA_TRY(view->strides, sizes(items[3]));
    CARINA_TRY(const ZipArchive::Contents contents, storageBytes(*storage));
    view->storage = contents.bytes;
    view->owner = contents.owner;
    push(View{std::move(view)});
    return {};
  }

  /// Read once per storage, so that views of the same storage share it.
  Result<ZipArchive::Contents> storageBytes(const Storage& storage) {
    const auto& key = std::get<std::string>(values_[storage.key]);
    CARINA_RETURN_IF_ERROR(spend(key.size()));
    if (const auto it = storages_.find(key); it != storages_.end()) return it->second;
    const std::string name = root_ + "data/" + key;
    const ZipArchive::Member* member = zip_.find(name);
    if (!member) return fail(Code::Damaged, "the storage '{}' is missing", name);
    CARINA_TRY(ZipArchive::Contents contents, zip_.read(*member));
    const auto expected = checkedMul(storage.elements, storage.type ? storage.type->size : 1);
    if (!expected || static_cast<uint64_t>(*expected) != contents.bytes.size()) {
      return fail(Code::Damaged, "the storage '{}' has {} bytes, but {} elements of {} are declared", name,
                  contents.bytes.size(), storage.elements, storage.type ? storage.type->name : "bytes");
    }
    storages_.emplace(key, contents);
    return contents;
  }

  static constexpr size_t kMaxValues = size_t{1} << 21;
  static constexpr size_t kMaxRank = 64;
  // Real pickles copy a fifth of a value per byte.
  static constexpr uint64_t kBaseWork = uint64_t{1} << 16, kWorkFactor = 4;
  static constexpr size_t kMaxWorth = size_t{8} << 20;

  const ZipArchive& zip_;
  std::string root_;  // "archive/"
  ByteSpan program_;
  size_t at_ = 0;
  std::vector<Value> values_;
  std::vector<Ref> stack_;
  std::unordered_map<uint64_t, Ref> memo_;
  std::unordered_map<std::string, ZipArchive::Contents> storages_;
  Budget work_;
};

/// Hands the pickle of a torch.save() archive to `read`.
template <typename Tensors>
Result<Tensors> readTorchSave(ByteSpan bytes, std::shared_ptr<const void> owner,
                              std::shared_ptr<Budget> inflation, Result<Tensors> (Reader::*read)()) {
  if (bytes.empty()) return Tensors{};
  CARINA_TRY(const ZipArchive zip, ZipArchive::open(bytes, std::move(owner), std::move(inflation)));
  if (zip.members().empty()) return fail(Code::Damaged, "the torch.save() archive is empty");
  const std::string& first = zip.members().front().name;
  const size_t slash = first.find('/');
  const std::string root = slash == std::string::npos ? "" : first.substr(0, slash + 1);
  if (const auto* order = zip.find(root + "byteorder")) {
    CARINA_TRY(const ZipArchive::Contents contents, zip.read(*order));
    if (asText(contents.bytes) != "little")
      return fail(Code::UnknownVersion, "the weights are big-endian")
          .withRemedy("Export on a little-endian machine.");
  }
  const ZipArchive::Member* program = zip.find(root + "data.pkl");
  if (!program) return fail(Code::Damaged, "the torch.save() archive has no data.pkl");
  CARINA_TRY(const ZipArchive::Contents contents, zip.read(*program));
  Reader reader(zip, root, contents.bytes);
  return (reader.*read)();
}

}  // namespace

Result<std::vector<PickledTensor>> readPickledTensors(ByteSpan bytes, std::shared_ptr<const void> owner,
                                                      std::shared_ptr<Budget> inflation) {
  return readTorchSave(bytes, std::move(owner), std::move(inflation), &Reader::run);
}

Result<std::vector<StoredTensor>> readPickledArguments(ByteSpan bytes, std::shared_ptr<const void> owner,
                                                       std::shared_ptr<Budget> inflation) {
  return readTorchSave(bytes, std::move(owner), std::move(inflation), &Reader::arguments);
}

}  // namespace carina::pt2
