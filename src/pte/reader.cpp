// SPDX-License-Identifier: Apache-2.0
// .pte bytes to pte::Program. The FlatBuffers verifier guards every access; segments are checked here.
#include <algorithm>
#include <cstring>

#include "format/pte_schema.hpp"
#include "pte/flat_bytes.hpp"
#include "pte/program.hpp"
#include "pte/schema.hpp"

namespace carina::pte {
namespace {

namespace schema = carina::format::pte;

/// Header, flatbuffer part and segments of a file.
class Container {
 public:
  Status open(ByteSpan file) {
    file_ = file;
    layout_.fileBytes = file.size();
    if (file.size() < 8) return fail(Code::Damaged, "{} bytes are too few for a program", file.size());
    if (asText(file.subspan(4, 4)) != schema::kIdentifier) {
      const bool isArchive = asText(file.subspan(0, 4)) == "PK\x03\x04";
      return fail(Code::WrongKind, "not an ExecuTorch program: the identifier ET12 is missing{}",
                  isArchive ? ", and the file is an archive, like a network" : "")
          .withRemedy(isArchive ? "compile it first: carina compile NETWORK.pt2 --target TARGET --calibrate "
                                  "DATA.npz -o PROGRAM.pte"
                                : "");
    }
    layout_.programBytes = file.size();
    CARINA_RETURN_IF_ERROR(readHeader());
    return checkFlatbuffer();
  }

  const fb::Root& root() const { return *fb::GetRoot(body_.data()); }
  const FileLayout& layout() const { return layout_; }

  Result<ByteSpan> segment(uint32_t index) const {
    if (index >= layout_.segments.size())
      return fail(Code::Damaged, "segment {} does not exist: there are {}", index, layout_.segments.size());
    const FileLayout::Segment& entry = layout_.segments[index];
    if (entry.size == 0) return ByteSpan{};
    return file_.subspan(layout_.segmentBase + entry.offset, entry.size);
  }

 private:
  Status readHeader() {
    if (file_.size() < schema::kHeaderOffset + schema::kHeaderMinLength) return {};
    if (asText(file_.subspan(schema::kHeaderOffset, 4)) != schema::kHeaderMagic) return {};
    layout_.extendedHeader = true;
    const auto length = loadAt<uint32_t>(file_, schema::kHeaderLengthAt);
    if (length < schema::kHeaderMinLength)
      return Error(fail(Code::Damaged, "the extended header of {} bytes is too short", length)).at("byte 12");
    layout_.programBytes = loadAt<uint64_t>(file_, schema::kHeaderProgramSizeAt);
    layout_.segmentBase = loadAt<uint64_t>(file_, schema::kHeaderSegmentBaseAt);
    if (layout_.programBytes > file_.size()) {
      return Error(fail(Code::Damaged, "truncated: the program has {} bytes, but the file has {}",
                        layout_.programBytes, file_.size()))
          .at("byte 16");
    }
    if (layout_.segmentBase > file_.size()) {
      return Error(fail(Code::Damaged, "truncated: segments begin at {}, but the file has {} bytes",
                        layout_.segmentBase, file_.size()))
          .at("byte 24");
    }
    if (layout_.segmentBase != 0) layout_.segmentBytes = file_.size() - layout_.segmentBase;
    if (length >= schema::kHeaderLength) {
      if (file_.size() < schema::kHeaderOffset + schema::kHeaderLength)
        return fail(Code::Damaged, "truncated: the extended header is cut");
      const auto declared = loadAt<uint64_t>(file_, schema::kHeaderSegmentBytesAt);
      if (declared > layout_.segmentBytes) {
        return Error(fail(Code::Damaged, "truncated: {} bytes of segments declared, {} present", declared,
                          layout_.segmentBytes))
            .at("byte 32");
      }
      layout_.segmentBytes = declared;
    }
    return {};
  }

  Status checkFlatbuffer() {
    body_ = file_.first(layout_.programBytes);
    if (reinterpret_cast<uintptr_t>(body_.data()) % schema::kPayloadAlignment != 0) {
      aligned_.resize(body_.size() / sizeof(Block) + 1);
      std::memcpy(aligned_.data(), body_.data(), body_.size());
      body_ = {reinterpret_cast<const std::byte*>(aligned_.data()), body_.size()};
    }
    flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(body_.data()), body_.size());
    if (body_.size() < 8 || body_.size() >= FLATBUFFERS_MAX_BUFFER_SIZE || !fb::VerifyRootBuffer(verifier)) {
      return Error(fail(Code::Damaged, "corrupt: the flatbuffer contradicts itself"))
          .withRemedy("the file was truncated or overwritten; export it again");
    }
    const auto* entries = root().segments();
    for (uint32_t i = 0; entries != nullptr && i < entries->size(); ++i) {
      const fb::Segment* entry = entries->Get(i);
      if (entry->size() != 0 && (layout_.segmentBase == 0 || entry->offset() > layout_.segmentBytes ||
                                 entry->size() > layout_.segmentBytes - entry->offset())) {
        return fail(Code::Damaged, "segment {} (offset {}, {} bytes) reaches beyond the {} bytes of segments",
                    i, entry->offset(), entry->size(), layout_.segmentBytes);
      }
      layout_.segments.push_back({entry->offset(), entry->size()});
    }
    return {};
  }

  struct alignas(16) Block {
    std::byte bytes[16];
  };
  ByteSpan file_, body_;
  std::vector<Block> aligned_;
  FileLayout layout_;
};

Tensor readTensor(const fb::TensorValue& from, Copier& copy) {
  Tensor tensor;
  tensor.type = static_cast<ScalarType>(from.scalar_type());
  tensor.sizes = copy.vector(from.sizes());
  tensor.dimOrder = copy.vector(from.dim_order());
  tensor.dynamism = static_cast<ShapeDynamism>(from.dynamism());
  tensor.requiresGrad = from.requires_grad();
  tensor.layout = from.layout();
  tensor.dataIndex = from.data_index();
  if (const auto* allocation = from.allocation()) {
    tensor.allocation =
        Allocation{allocation->memory_id(),
                   allocation->offset_low() | static_cast<uint64_t>(allocation->offset_high()) << 32};
  }
  if (const auto* extra = from.extra())
    tensor.extra = ExtraTensorInfo{extra->mutable_index(), copy.text(extra->name()), extra->location() != 0,
                                   extra->device_type(), extra->device_index()};
  return tensor;
}

Result<Value> readValue(const fb::EValue& from, Copier& copy) {
  if (from.content_type() != fb::Content::NONE && from.content() == nullptr)
    return fail(Code::Damaged, "a value has no content");
  switch (from.content_type()) {
    case fb::Content::NONE:
      return Value(None{});
    case fb::Content::NullValue:
      return Value(Null{});
    case fb::Content::IntValue:
      return Value(from.content_as_IntValue()->value());
    case fb::Content::BoolValue:
      return Value(from.content_as_BoolValue()->value());
    case fb::Content::DoubleValue:
      return Value(from.content_as_DoubleValue()->value());
    case fb::Content::StringValue:
      return Value(copy.text(from.content_as_StringValue()->value()));
    case fb::Content::IntListValue:
      return Value(IntList{copy.vector(from.content_as_IntListValue()->items())});
    case fb::Content::DoubleListValue:
      return Value(DoubleList{copy.vector(from.content_as_DoubleListValue()->items())});
    case fb::Content::BoolListValue:
      return Value(BoolList{copy.vector(from.content_as_BoolListValue()->items())});
    case fb::Content::TensorListValue:
      return Value(TensorList{copy.vector(from.content_as_TensorListValue()->items())});
    case fb::Content::OptionalTensorListValue:
      return Value(OptionalTensorList{copy.vector(from.content_as_OptionalTensorListValue()->items())});
    case fb::Content::TensorValue: {
      const fb::TensorValue& tensor = *from.content_as_TensorValue();
      if (tensor.storage_offset() != 0)
        return fail(Code::Damaged, "a tensor has a storage offset of {}, expected 0", tensor.storage_offset())
            .withRemedy("such programs are not supported");
      return Value(readTensor(tensor, copy));
    }
  }
  return fail(Code::UnknownVersion, "a value has the unknown type {}", static_cast<int>(from.content_type()));
}

Result<Instruction> readInstruction(const fb::InstructionEntry& from, Copier& copy) {
  if (from.action() == nullptr) return fail(Code::Damaged, "an instruction has no content");
  switch (from.action_type()) {
    case fb::Action::Kernel: {
      const auto* call = from.action_as_Kernel();
      return Instruction(KernelCall{call->op(), copy.vector(call->arguments())});
    }
    case fb::Action::DelegateInvoke: {
      const auto* call = from.action_as_DelegateInvoke();
      return Instruction(DelegateCall{call->delegate(), copy.vector(call->arguments())});
    }
    case fb::Action::Move:
      return Instruction(MoveCall{from.action_as_Move()->from(), from.action_as_Move()->to()});
    case fb::Action::JumpFalse:
      return Instruction(
          JumpFalseCall{from.action_as_JumpFalse()->condition(), from.action_as_JumpFalse()->destination()});
    case fb::Action::Free:
      return Instruction(FreeCall{from.action_as_Free()->value()});
    case fb::Action::NONE:
      break;
  }
  return fail(Code::UnknownVersion, "an instruction has the unknown type {}",
              static_cast<int>(from.action_type()));
}

Result<Delegate> readDelegate(const Container& container, const fb::DelegateEntry& from, Copier& copy) {
  Delegate delegate;
  delegate.id = copy.text(from.id());
  if (from.processed() == nullptr) return fail(Code::Damaged, "delegate {} has no data", delegate.id);
  const uint32_t index = from.processed()->index();
  if (from.processed()->location() == static_cast<int8_t>(schema::kLocationSegment)) {
    CARINA_TRY(const ByteSpan blob, container.segment(index));
    delegate.inSegment = true;
    delegate.blob = copy.bytes(blob);
  } else {
    const auto* inlineData = container.root().delegate_data();
    if (inlineData == nullptr || index >= inlineData->size())
      return fail(Code::Damaged, "delegate {} names data {}, which does not exist", delegate.id, index);
    delegate.blob = copy.bytes(spanOf(inlineData->Get(index)->bytes()));
  }
  for (uint32_t i = 0; from.specs() != nullptr && i < from.specs()->size(); ++i) {
    CARINA_RETURN_IF_ERROR(copy.room<CompileSpec>());
    const auto* spec = from.specs()->Get(i);
    delegate.specs.push_back({copy.text(spec->key()), copy.text(spanOf(spec->value()))});
  }
  return delegate;
}

std::vector<Frame> readFrames(const flatbuffers::Vector<flatbuffers::Offset<fb::Frame>>* from, Copier& copy) {
  std::vector<Frame> frames;
  for (uint32_t i = 0; from != nullptr && i < from->size(); ++i) {
    if (!copy.room<Frame>().ok()) break;
    const fb::Frame* frame = from->Get(i);
    frames.push_back(
        {copy.text(frame->filename()), frame->line(), copy.text(frame->name()), copy.text(frame->context())});
  }
  return frames;
}

Result<Method> readMethod(const Container& container, const fb::PlanEntry& from, Copier& copy) {
  Method method;
  method.name = copy.text(from.name());
  if (from.container() != nullptr) {
    method.inputStructure = copy.text(from.container()->inputs());
    method.outputStructure = copy.text(from.container()->outputs());
  }
  for (uint32_t i = 0; from.values() != nullptr && i < from.values()->size(); ++i) {
    CARINA_RETURN_IF_ERROR(copy.room<Value>());
    auto value = readValue(*from.values()->Get(i), copy);
    if (!value) return std::move(value).error().at(fmt::format("method {}, value {}", method.name, i));
    method.values.push_back(std::move(*value));
  }
  method.inputs = copy.vector(from.inputs());
  method.outputs = copy.vector(from.outputs());
  for (uint32_t i = 0; from.chains() != nullptr && i < from.chains()->size(); ++i) {
    CARINA_RETURN_IF_ERROR(copy.room<Chain>());
    const auto* entry = from.chains()->Get(i);
    Chain chain{copy.vector(entry->inputs()), copy.vector(entry->outputs()), {}};
    for (uint32_t k = 0; entry->instructions() != nullptr && k < entry->instructions()->size(); ++k) {
      CARINA_RETURN_IF_ERROR(copy.room<Instruction>());
      auto instruction = readInstruction(*entry->instructions()->Get(k), copy);
      if (!instruction)
        return std::move(instruction).error().at(fmt::format("method {}, instruction {}", method.name, k));
      chain.instructions.push_back(std::move(*instruction));
    }
    for (uint32_t k = 0; entry->stacktrace() != nullptr && k < entry->stacktrace()->size(); ++k) {
      CARINA_RETURN_IF_ERROR(copy.room<std::vector<Frame>>());
      chain.stacktraces.push_back(readFrames(entry->stacktrace()->Get(k)->items(), copy));
    }
    method.chains.push_back(std::move(chain));
  }
  for (uint32_t i = 0; from.operators() != nullptr && i < from.operators()->size(); ++i) {
    CARINA_RETURN_IF_ERROR(copy.room<Operator>());
    const auto* entry = from.operators()->Get(i);
    method.operators.push_back({copy.text(entry->name()), copy.text(entry->overload())});
  }
  for (uint32_t i = 0; from.delegates() != nullptr && i < from.delegates()->size(); ++i) {
    CARINA_RETURN_IF_ERROR(copy.room<Delegate>());
    auto delegate = readDelegate(container, *from.delegates()->Get(i), copy);
    if (!delegate)
      return std::move(delegate).error().at(fmt::format("method {}, delegate {}", method.name, i));
    method.delegates.push_back(std::move(*delegate));
  }
  method.pools = copy.vector(from.buffer_sizes());
  for (uint32_t i = 0; from.buffer_devices() != nullptr && i < from.buffer_devices()->size(); ++i) {
    CARINA_RETURN_IF_ERROR(copy.room<PoolDevice>());
    const auto* entry = from.buffer_devices()->Get(i);
    method.poolDevices.push_back({entry->index(), entry->device_type(), entry->device_index()});
  }
  CARINA_RETURN_IF_ERROR(copy.status());
  return method;
}

/// Sizes of stored tensors are not in the file: entry i has as many bytes as the largest tensor that refers
/// to it; entries without references reach to the next offset.
std::vector<int64_t> storedSizes(const Program& program, size_t count, bool planned) {
  std::vector<int64_t> sizes(count, -1);
  for (const Method& method : program.methods) {
    for (const Value& value : method.values) {
      const Tensor* tensor = std::get_if<Tensor>(&value);
      if (tensor == nullptr || tensor->dataIndex == 0 || tensor->dataIndex >= count ||
          tensor->allocation.has_value() != planned)
        continue;
      if (tensor->extra && tensor->extra->external) continue;
      sizes[tensor->dataIndex] = std::max(sizes[tensor->dataIndex], tensorBytes(*tensor).value_or(0));
    }
  }
  return sizes;
}

Result<std::vector<ByteVector>> readStored(const Container& container, const fb::Subsegments& from,
                                           const Program& program, bool planned, Copier& copy) {
  std::vector<ByteVector> stored;
  const std::vector<uint64_t> offsets = copy.vector(from.offsets());
  stored.resize(offsets.size());
  if (offsets.size() <= 1) return stored;
  CARINA_TRY(const ByteSpan bytes, container.segment(from.segment()));
  const std::vector<int64_t> sizes = storedSizes(program, offsets.size(), planned);
  std::vector<uint64_t> sorted = offsets;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 1; i < offsets.size(); ++i) {
    const uint64_t offset = offsets[i];
    if (offset > bytes.size())
      return fail(Code::Damaged, "stored tensor {} begins at {} of a segment of {} bytes", i, offset,
                  bytes.size());
    const auto next = std::upper_bound(sorted.begin(), sorted.end(), offset);
    const uint64_t room = bytes.size() - offset;
    const uint64_t gap = next == sorted.end() ? room : std::min(room, *next - offset);
    const uint64_t size = sizes[i] >= 0 ? static_cast<uint64_t>(sizes[i]) : gap;
    if (size > room)
      return fail(Code::Damaged, "stored tensor {} has {} bytes, but its segment only {} after offset {}", i,
                  size, room, offset);
    stored[i] = copy.bytes(bytes.subspan(offset, size));
    CARINA_RETURN_IF_ERROR(copy.status());
  }
  return stored;
}

Status readConstants(Container& container, Program& program, FileLayout& layout, Copier& copy) {
  const fb::Root& root = container.root();
  const fb::Subsegments* constants = root.constants();
  if (constants != nullptr && constants->offsets() != nullptr && constants->offsets()->size() > 0) {
    CARINA_TRY(program.constants, readStored(container, *constants, program, false, copy));
  } else if (const auto* buffers = root.constant_buffer(); buffers != nullptr && buffers->size() > 0) {
    layout.deprecatedConstants = true;
    program.constants.clear();
    for (const fb::Storage* buffer : *buffers) {
      CARINA_RETURN_IF_ERROR(copy.room<ByteVector>());
      program.constants.push_back(copy.bytes(spanOf(buffer->bytes())));
    }
    program.constants[0].clear();
  }
  if (const auto* segments = root.mutable_data(); segments != nullptr && segments->size() > 0) {
    CARINA_TRY(program.mutableData, readStored(container, *segments->Get(0), program, true, copy));
  }
  return {};
}

}  // namespace

Result<Program> readProgram(ByteSpan file, FileLayout* layout) {
  Container container;
  CARINA_RETURN_IF_ERROR(container.open(file));
  FileLayout found = container.layout();
  const fb::Root& root = container.root();
  if (root.version() != 0)
    return fail(Code::UnknownVersion, "program version {} is newer than this reader", root.version());
  Program program;
  if (root.plans() == nullptr || root.plans()->size() == 0)
    return fail(Code::Damaged, "the program has no methods");
  Copier copy(file.size());
  for (const fb::PlanEntry* plan : *root.plans()) {
    CARINA_RETURN_IF_ERROR(copy.room<Method>());
    CARINA_TRY(Method method, readMethod(container, *plan, copy));
    program.methods.push_back(std::move(method));
  }
  CARINA_RETURN_IF_ERROR(readConstants(container, program, found, copy));
  for (uint32_t i = 0; root.named_data() != nullptr && i < root.named_data()->size(); ++i) {
    const auto* entry = root.named_data()->Get(i);
    CARINA_TRY(const ByteSpan bytes, container.segment(entry->segment()));
    CARINA_RETURN_IF_ERROR(copy.room<NamedData>());
    program.namedData.push_back({copy.text(entry->key()), copy.bytes(bytes)});
  }
  CARINA_RETURN_IF_ERROR(copy.status());
  if (layout != nullptr) *layout = found;
  return program;
}

}  // namespace carina::pte
