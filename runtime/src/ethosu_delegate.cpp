// SPDX-License-Identifier: Apache-2.0
// Reads the delegate blob, and moves tensors into and out of the scratch arena.
#include "carina/ethosu_delegate.hpp"

#include <string.h>

#include <new>

#include "format/delegate_blob.hpp"

namespace carina::rt {

namespace blob = format::blob;

namespace {

struct State {
  Bytes payload;
  Bytes weights;
  Bytes inputs, outputs;  // records of blob::kIoBytes each
  uint32_t scratchBytes;
  uint32_t driver;  // index

  uint32_t inputCount() const { return static_cast<uint32_t>(inputs.size / blob::kIoBytes); }
  uint32_t outputCount() const { return static_cast<uint32_t>(outputs.size / blob::kIoBytes); }
  /// The record of argument `i` of a call: inputs, then outputs.
  const uint8_t* record(uint32_t i) const {
    return i < inputCount() ? inputs.data + i * blob::kIoBytes
                            : outputs.data + (i - inputCount()) * blob::kIoBytes;
  }
};

int32_t word(const uint8_t* at) {
  int32_t value;
  memcpy(&value, at, sizeof(value));
  return value;
}

/// One input or output as described by the blob.
struct Io {
  int32_t shape[blob::kIoRank];
  uint32_t elementBytes;
  uint32_t offset;
  size_t elements, bytes;

  /// Rejects shapes without elements: commands have no empty inputs or outputs.
  static Status read(const uint8_t* record, uint32_t scratchBytes, Io* io) {
    size_t total = 1;
    for (size_t d = 0; d < blob::kIoRank; ++d) {
      io->shape[d] = word(record + 4 * d);
      if (io->shape[d] <= 0 || __builtin_mul_overflow(total, static_cast<size_t>(io->shape[d]), &total)) {
        return failure(Code::CorruptDelegate, "the shape of a delegate input or output is out of range");
      }
    }
    const int32_t element = word(record + blob::kIoElementSizeAt);
    const int32_t offset = word(record + blob::kIoOffsetAt);
    if (element != 1 && element != 2 && element != 4)
      return failure(Code::CorruptDelegate, "a delegate input or output has elements of an odd size");
    io->elementBytes = static_cast<uint32_t>(element);
    io->elements = total;
    if (__builtin_mul_overflow(total, static_cast<size_t>(element), &io->bytes) || offset < 0 ||
        static_cast<uint32_t>(offset) > scratchBytes ||
        io->bytes > scratchBytes - static_cast<uint32_t>(offset)) {
      return failure(Code::CorruptDelegate, "a delegate input or output reaches beyond the scratch arena");
    }
    io->offset = static_cast<uint32_t>(offset);
    return Status{};
  }
};

enum BlockIndex : uint32_t {
  kBlockCommands,
  kBlockWeights,
  kBlockScratch,
  kBlockInputs,
  kBlockOutputs,
  kBlockCount
};
constexpr const char* kBlockNames[kBlockCount] = {blob::kCommands, blob::kWeights, blob::kScratchSize,
                                                  blob::kInputs, blob::kOutputs};

bool named(const uint8_t* header, const char* name) {
  size_t i = 0;
  for (; name[i] != 0; ++i) {
    if (header[i] != static_cast<uint8_t>(name[i])) return false;
  }
  return header[i] == 0;
}

/// Payload of the block whose header is at `at`; `next` is the position of the next header.
Status readBlock(Bytes bytes, size_t at, Bytes* payload, size_t* next) {
  const uint32_t size = static_cast<uint32_t>(word(bytes.data + at + blob::kSizeAt));
  const size_t rest = bytes.size - at - blob::kHeaderBytes;
  size_t padded = 0;
  if (!alignUp(size, blob::kAlignment, &padded) || padded > rest) {
    return failure(Code::CorruptDelegate, "a block of the delegate blob is longer than the blob",
                   static_cast<uint32_t>(at));
  }
  *payload = Bytes(bytes.data + at + blob::kHeaderBytes, size);
  *next = at + blob::kHeaderBytes + padded;
  return Status{};
}

Status resolveExternal(const NamedData& data, Bytes* payload) {
  if (payload->size != blob::kExternalKeyBytes)
    return failure(Code::CorruptDelegate, "the key of external delegate data is not 64 characters");
  Bytes found;
  CARINA_RT_TRY(data.find(Text(reinterpret_cast<const char*>(payload->data), payload->size), &found));
  if (!isAligned(found.data, blob::kAlignment))
    return failure(Code::Misaligned, "external delegate data are not aligned to 16");
  *payload = found;
  return Status{};
}

Status readBlocks(Bytes bytes, const NamedData& data, Bytes (&blocks)[kBlockCount]) {
  if (bytes.size < 2 * blob::kHeaderBytes || bytes.size % blob::kAlignment != 0) {
    return failure(Code::CorruptDelegate, "the delegate blob is truncated");
  }
  if (!isAligned(bytes.data, blob::kAlignment))
    return failure(Code::Misaligned, "the delegate blob is not aligned to 16");
  if (!named(bytes.data, blob::kBegin))
    return failure(Code::CorruptDelegate, "the delegate blob does not begin with its marker");
  bool seen[kBlockCount] = {};
  size_t at = 0;
  Bytes payload;
  CARINA_RT_TRY(readBlock(bytes, 0, &payload, &at));
  while (at + blob::kHeaderBytes <= bytes.size) {
    const uint8_t* header = bytes.data + at;
    if (named(header, blob::kEnd)) {
      if (at + blob::kHeaderBytes != bytes.size)
        return failure(Code::CorruptDelegate, "the delegate blob goes on after its end marker",
                       static_cast<uint32_t>(at));
      for (bool present : seen) {
        if (!present) return failure(Code::CorruptDelegate, "the delegate blob lacks a block");
      }
      return Status{};
    }
    uint32_t which = 0;
    while (which < kBlockCount && !named(header, kBlockNames[which])) ++which;
    if (which == kBlockCount)
      return failure(Code::CorruptDelegate, "the delegate blob has a block of unknown name",
                     static_cast<uint32_t>(at));
    if (seen[which])
      return failure(Code::CorruptDelegate, "the delegate blob has a block twice", static_cast<uint32_t>(at));
    seen[which] = true;
    const bool external = header[blob::kExternalAt] != 0;
    CARINA_RT_TRY(readBlock(bytes, at, &blocks[which], &at));
    if (external) {
      if (which != kBlockCommands && which != kBlockWeights)
        return failure(Code::CorruptDelegate, "a block that cannot be external is");
      CARINA_RT_TRY(resolveExternal(data, &blocks[which]));
    }
  }
  return failure(Code::CorruptDelegate, "the delegate blob has no end marker");
}

Status readIos(Bytes block, uint32_t scratchBytes, Bytes* records) {
  if (block.size < 4)
    return failure(Code::CorruptDelegate, "a list of delegate inputs or outputs is truncated");
  const int32_t count = word(block.data);
  if (count < 0 || static_cast<size_t>(count) > (block.size - 4) / blob::kIoBytes) {
    return failure(Code::CorruptDelegate, "a list of delegate inputs or outputs is truncated");
  }
  *records = Bytes(block.data + 4, static_cast<size_t>(count) * blob::kIoBytes);
  for (size_t at = 0; at < records->size; at += blob::kIoBytes) {
    Io unused;
    CARINA_RT_TRY(Io::read(records->data + at, scratchBytes, &unused));
  }
  return Status{};
}

bool fits(ScalarType type, uint32_t elementBytes) {
  switch (type) {
    case ScalarType::Int8:
    case ScalarType::UInt8:
    case ScalarType::Bool:
      return elementBytes == 1;
    case ScalarType::Int16:
      return elementBytes == 2;
    case ScalarType::Int32:
      return elementBytes == 4;
    default:
      return false;
  }
}

/// How an output is copied from the arena to its tensor.
enum class Copy : uint8_t {
  Whole,    // unchanged
  Rows,     // the innermost dimension is narrower in memory than in the arena: padding is dropped
  Nibbles,  // the arena holds two 4-bit values per byte, low half first, sign-extended
};

/// Innermost rows of the arena.
struct Rows {
  size_t count, bytes;
  explicit Rows(const Io& io)
      : count(io.elements / static_cast<size_t>(io.shape[blob::kIoRank - 1])), bytes(io.bytes / count) {}
};

/// Whether a call may pass `value` as input `i`.
Status checkInput(const Io& io, const Value& value, uint32_t i) {
  if (value.kind != ValueKind::Tensor || !fits(value.tensor.type, io.elementBytes)) {
    return failure(Code::TypeMismatch, "a delegate input is not of the integer type that the NPU expects", i);
  }
  if (value.tensor.bytes != io.bytes)
    return failure(Code::ShapeMismatch, "a delegate input has another number of elements than its blob says",
                   i);
  return Status{};
}

/// Whether a call may store an output to `value`, its argument `i`, and how.
Status checkOutput(const Io& io, const Value& value, uint32_t i, Copy* copy) {
  if (value.kind != ValueKind::Tensor)
    return failure(Code::TypeMismatch, "a delegate output is no tensor", i);
  const Tensor& tensor = value.tensor;
  if (tensor.constant) return failure(Code::InvalidArgument, "a delegate writes to a constant", i);
  *copy = Copy::Whole;
  if (tensor.bytes == io.bytes) return Status{};
  const Rows rows(io);
  if (tensor.bytes != 0 && tensor.bytes < io.bytes && tensor.bytes % rows.count == 0) {
    *copy = Copy::Rows;
    return Status{};
  }
  // As many bytes as the arena has nibbles, so that exactly io.bytes of the arena are read.
  if (io.elementBytes == 1 && tensor.type == ScalarType::Int8 && tensor.bytes % 2 == 0 &&
      tensor.bytes / 2 == io.bytes) {
    *copy = Copy::Nibbles;
    return Status{};
  }
  return failure(Code::ShapeMismatch, "a delegate output does not fit its tensor", i);
}

void copyOutput(Copy copy, const uint8_t* source, const Io& io, const Tensor& tensor) {
  uint8_t* target = tensor.as<uint8_t>();
  switch (copy) {
    case Copy::Whole:
      memcpy(target, source, tensor.bytes);
      return;
    case Copy::Rows: {
      const Rows rows(io);
      const size_t kept = tensor.bytes / rows.count;
      for (size_t r = 0; r < rows.count; ++r) memcpy(target + r * kept, source + r * rows.bytes, kept);
      return;
    }
    case Copy::Nibbles:
      for (size_t i = 0; i < tensor.bytes; ++i) {
        const uint32_t nibble = (source[i / 2] >> (i % 2 * 4)) & 0xfu;
        target[i] = static_cast<uint8_t>(nibble >= 8 ? nibble + 0xf0u : nibble);
      }
      return;
  }
}

}  // namespace

static_assert(sizeof(State) <= EthosUDelegate::kStateBytes && alignof(State) <= 8);

uint32_t EthosUDelegate::inputCount(const void* state) const {
  return static_cast<const State*>(state)->inputCount();
}

Status EthosUDelegate::prepare(Bytes bytes, const NamedData& data, void* memory, size_t* temporaryBytes) {
  Bytes blocks[kBlockCount];
  CARINA_RT_TRY(readBlocks(bytes, data, blocks));
  State* state = new (memory) State{};
  if (blocks[kBlockScratch].size != 4)
    return failure(Code::CorruptDelegate, "the scratch size of a delegate is not one word");
  state->scratchBytes = static_cast<uint32_t>(word(blocks[kBlockScratch].data));
  state->payload = blocks[kBlockCommands];
  state->weights = blocks[kBlockWeights];
  CARINA_RT_TRY(readIos(blocks[kBlockInputs], state->scratchBytes, &state->inputs));
  CARINA_RT_TRY(readIos(blocks[kBlockOutputs], state->scratchBytes, &state->outputs));
  CARINA_RT_TRY(choose(state->payload, &state->driver));
  size_t scratch = 0;
  if (!alignUp(state->scratchBytes, blob::kAlignment, &scratch))
    return failure(Code::OutOfMemory, "the scratch arena of a delegate cannot be addressed");
  *temporaryBytes = scratch;
  return Status{};
}

/// The first open driver that accepts the payload. If none is open, only the form of the payload is checked;
/// if all reject it, the first reason is returned.
Status EthosUDelegate::choose(Bytes payload, uint32_t* driver) const {
  Span<const uint32_t> stream;
  Status refusal;
  *driver = 0;
  for (uint32_t i = 0; i < drivers_.size; ++i) {
    if (!drivers_[i]->isOpen()) continue;
    const Status status = drivers_[i]->check(payload, &stream);
    if (status.ok()) {
      *driver = i;
      return status;
    }
    if (refusal.ok()) refusal = status;
  }
  if (!refusal.ok()) return refusal;
  uint32_t configWord = 0, id = 0;
  return EthosUDriver::parse(payload, &stream, &configWord, &id);
}

Status EthosUDelegate::checkCall(const void* memory, Span<const Value> values,
                                 Span<const int32_t> arguments) const {
  const State& state = *static_cast<const State*>(memory);
  if (arguments.size != size_t{state.inputCount()} + state.outputCount()) {
    return failure(Code::ShapeMismatch,
                   "a delegate is called with another number of arguments than its blob has");
  }
  Io io;
  for (uint32_t i = 0; i < arguments.size; ++i) {
    const Value& value = values[static_cast<size_t>(arguments[i])];
    Copy unused = Copy::Whole;
    CARINA_RT_TRY(Io::read(state.record(i), state.scratchBytes, &io));
    CARINA_RT_TRY(i < state.inputCount() ? checkInput(io, value, i) : checkOutput(io, value, i, &unused));
  }
  return Status{};
}

Status EthosUDelegate::execute(void* memory, Span<Value> values, Span<const int32_t> arguments,
                               Arena& temporary) {
  const State& state = *static_cast<const State*>(memory);
  if (drivers_.empty()) return failure(Code::InvalidState, "the delegate has no driver");
  EthosUDriver& driver = *drivers_[state.driver];
  // Check again: a move may have replaced these values since the program was loaded.
  CARINA_RT_TRY(checkCall(memory, values, arguments));
  for (uint32_t i = 0; i < arguments.size; ++i) {
    if (values[static_cast<size_t>(arguments[i])].tensor.data == nullptr)
      return failure(Code::InvalidState, "a delegate input or output has no memory", i);
  }
  uint8_t* scratch = static_cast<uint8_t*>(temporary.allocate(state.scratchBytes, blob::kAlignment));
  if (scratch == nullptr)
    return failure(Code::OutOfMemory, "temporary memory is smaller than the delegate's scratch arena",
                   state.scratchBytes);
  Io io;
  for (uint32_t i = 0; i < state.inputCount(); ++i) {
    const Tensor& tensor = values[static_cast<size_t>(arguments[i])].tensor;
    CARINA_RT_TRY(Io::read(state.record(i), state.scratchBytes, &io));
    memcpy(scratch + io.offset, tensor.data, tensor.bytes);
  }
  const Region regions[] = {
      {const_cast<uint8_t*>(state.weights.data), state.weights.size, Access::Read},
      {scratch, state.scratchBytes, Access::ReadWrite},
      {fast_.data, fast_.size, Access::ReadWrite},
  };
  CARINA_RT_TRY(driver.run(state.payload, Span<const Region>(regions)));
  cycles_ += driver.pmu().cycles;
  for (uint32_t i = 0; i < kMaxPmuCounters; ++i) events_[i] += driver.pmu().events[i];
  ++jobs_;
  for (uint32_t i = state.inputCount(); i < arguments.size; ++i) {
    const Value& value = values[static_cast<size_t>(arguments[i])];
    Copy copy = Copy::Whole;
    CARINA_RT_TRY(Io::read(state.record(i), state.scratchBytes, &io));
    CARINA_RT_TRY(checkOutput(io, value, i, &copy));
    copyOutput(copy, scratch + io.offset, io, value.tensor);
  }
  return Status{};
}

}  // namespace carina::rt
