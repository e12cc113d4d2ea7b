// SPDX-License-Identifier: Apache-2.0
// pte::Program to .pte bytes: first the layout of segments, then the flatbuffer, then header and segments
// around it.
#include <cstring>
#include <map>

#include "base/file.hpp"
#include "format/pte_schema.hpp"
#include "pte/program.hpp"
#include "pte/schema.hpp"

namespace carina::pte {
namespace {

namespace schema = carina::format::pte;
using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

/// Consecutive stored tensors, each but the last padded.
struct Stored {
  std::string bytes;
  std::vector<uint64_t> offsets;
};
Stored layOut(const std::vector<ByteVector>& tensors, int64_t alignment) {
  Stored stored;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (i > 0)
      stored.bytes.resize(static_cast<size_t>(roundUp(static_cast<int64_t>(stored.bytes.size()), alignment)));
    stored.offsets.push_back(i == 0 ? 0 : stored.bytes.size());
    if (i > 0) stored.bytes += asText(tensors[i]);
  }
  return stored;
}

class ProgramWriter {
 public:
  ProgramWriter(const Program& program, const WriteOptions& options)
      : program_(program), options_(options), builder_(initialSize(program)) {}

  std::string write() {
    constants_ = layOut(program_.constants, options_.constantAlignment);
    mutableData_ = layOut(program_.mutableData, options_.constantAlignment);
    addSegment(constants_.bytes);
    if (program_.mutableData.size() > 1) addSegment(mutableData_.bytes);
    for (const Method& method : program_.methods) {
      for (const Delegate& delegate : method.delegates) placeDelegate(delegate);
    }
    for (const NamedData& named : program_.namedData) namedSegments_.push_back(share(asText(named.bytes)));
    builder_.Finish(writeRoot(), schema::kIdentifier);
    return assemble();
  }

 private:
  static size_t initialSize(const Program& program) {
    size_t bytes = 4096;
    for (const Method& method : program.methods) {
      bytes += method.values.size() * 128;
      for (const Delegate& delegate : method.delegates)
        bytes += delegate.inSegment ? 0 : delegate.blob.size();
    }
    return bytes;
  }

  uint32_t addSegment(std::string_view bytes) {
    segmentEnd_ = roundUp(segmentEnd_, options_.segmentAlignment);
    segments_.push_back({static_cast<uint64_t>(bytes.empty() ? 0 : segmentEnd_), bytes});
    segmentEnd_ += static_cast<int64_t>(bytes.size());
    return static_cast<uint32_t>(segments_.size() - 1);
  }
  /// A segment of these bytes; the same one for equal bytes.
  uint32_t share(std::string_view bytes) {
    const auto [entry, added] = shared_.try_emplace(bytes, 0);
    if (added) entry->second = addSegment(bytes);
    return entry->second;
  }

  void placeDelegate(const Delegate& delegate) {
    if (delegate.inSegment && !delegate.blob.empty()) {
      places_.push_back({true, share(asText(delegate.blob))});
      return;
    }
    const auto [entry, added] =
        inline_.try_emplace(asText(delegate.blob), static_cast<uint32_t>(inlineOrder_.size()));
    if (added) inlineOrder_.push_back(asText(delegate.blob));
    places_.push_back({false, entry->second});
  }

  template <typename T>
  Offset<flatbuffers::Vector<T>> vectorOf(const std::vector<T>& items) {
    return builder_.CreateVector(items.data(), items.size());
  }
  Offset<flatbuffers::Vector<uint8_t>> bytesOf(std::string_view bytes) {
    return builder_.CreateVector(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  }

  Offset<fb::TensorValue> write(const Tensor& tensor) {
    const auto sizes = vectorOf(tensor.sizes);
    const auto order = vectorOf(tensor.dimOrder);
    Offset<fb::Allocation> allocation;
    if (tensor.allocation) {
      allocation = fb::CreateAllocation(builder_, tensor.allocation->memoryId,
                                        static_cast<uint32_t>(tensor.allocation->offset),
                                        static_cast<uint32_t>(tensor.allocation->offset >> 32));
    }
    Offset<fb::ExtraInfo> extra;
    if (tensor.extra) {
      const auto name = builder_.CreateString(tensor.extra->name);
      extra =
          fb::CreateExtraInfo(builder_, tensor.extra->mutableDataIndex, name, tensor.extra->external ? 1 : 0,
                              tensor.extra->deviceType, tensor.extra->deviceIndex);
    }
    return fb::CreateTensorValue(builder_, static_cast<int8_t>(tensor.type), 0, sizes, order,
                                 tensor.requiresGrad, tensor.dataIndex, allocation, tensor.layout,
                                 static_cast<int8_t>(tensor.dynamism), extra);
  }

  Offset<fb::EValue> write(const Value& value) {
    using fb::Content;
    const auto entry = [&](Content type, auto content) {
      return fb::CreateEValue(builder_, type, content.Union());
    };
    struct Visitor {
      ProgramWriter& w;
      decltype(entry)& make;
      Offset<fb::EValue> operator()(const None&) { return fb::CreateEValue(w.builder_); }
      Offset<fb::EValue> operator()(const Null&) {
        return make(Content::NullValue, fb::CreateNullValue(w.builder_));
      }
      Offset<fb::EValue> operator()(int64_t v) {
        return make(Content::IntValue, fb::CreateIntValue(w.builder_, v));
      }
      Offset<fb::EValue> operator()(bool v) {
        return make(Content::BoolValue, fb::CreateBoolValue(w.builder_, v));
      }
      Offset<fb::EValue> operator()(double v) {
        return make(Content::DoubleValue, fb::CreateDoubleValue(w.builder_, v));
      }
      Offset<fb::EValue> operator()(const Tensor& v) { return make(Content::TensorValue, w.write(v)); }
      Offset<fb::EValue> operator()(const std::string& v) {
        return make(Content::StringValue, fb::CreateStringValue(w.builder_, w.builder_.CreateString(v)));
      }
      Offset<fb::EValue> operator()(const IntList& v) {
        return make(Content::IntListValue, fb::CreateIntListValue(w.builder_, w.vectorOf(v.items)));
      }
      Offset<fb::EValue> operator()(const DoubleList& v) {
        return make(Content::DoubleListValue, fb::CreateDoubleListValue(w.builder_, w.vectorOf(v.items)));
      }
      Offset<fb::EValue> operator()(const BoolList& v) {
        return make(Content::BoolListValue, fb::CreateBoolListValue(w.builder_, w.vectorOf(v.items)));
      }
      Offset<fb::EValue> operator()(const TensorList& v) {
        return make(Content::TensorListValue, fb::CreateTensorListValue(w.builder_, w.vectorOf(v.items)));
      }
      Offset<fb::EValue> operator()(const OptionalTensorList& v) {
        return make(Content::OptionalTensorListValue,
                    fb::CreateOptionalTensorListValue(w.builder_, w.vectorOf(v.items)));
      }
    };
    return std::visit(Visitor{*this, entry}, value);
  }

  Offset<fb::InstructionEntry> write(const Instruction& instruction) {
    using fb::Action;
    const auto entry = [&](Action type, auto content) {
      return fb::CreateInstructionEntry(builder_, type, content.Union());
    };
    if (const auto* kernel = std::get_if<KernelCall>(&instruction)) {
      return entry(Action::Kernel, fb::CreateKernel(builder_, kernel->op, vectorOf(kernel->arguments)));
    }
    if (const auto* call = std::get_if<DelegateCall>(&instruction)) {
      return entry(Action::DelegateInvoke,
                   fb::CreateDelegateInvoke(builder_, call->delegate, vectorOf(call->arguments)));
    }
    if (const auto* move = std::get_if<MoveCall>(&instruction))
      return entry(Action::Move, fb::CreateMove(builder_, move->from, move->to));
    if (const auto* jump = std::get_if<JumpFalseCall>(&instruction)) {
      return entry(Action::JumpFalse, fb::CreateJumpFalse(builder_, jump->condition, jump->destination));
    }
    return entry(Action::Free, fb::CreateFree(builder_, std::get<FreeCall>(instruction).value));
  }

  template <typename Entry, typename Item>
  Offset<flatbuffers::Vector<Offset<Entry>>> writeAll(const std::vector<Item>& items) {
    std::vector<Offset<Entry>> entries;
    entries.reserve(items.size());
    for (const Item& item : items) entries.push_back(write(item));
    return builder_.CreateVector(entries);
  }

  Offset<fb::OperatorEntry> write(const Operator& op) {
    const auto name = builder_.CreateString(op.name);
    return fb::CreateOperatorEntry(builder_, name, builder_.CreateString(op.overload));
  }
  Offset<fb::CompileSpecEntry> write(const CompileSpec& spec) {
    const auto key = builder_.CreateString(spec.key);
    return fb::CreateCompileSpecEntry(builder_, key, bytesOf(spec.value));
  }
  Offset<fb::Frame> write(const Frame& frame) {
    const auto filename = builder_.CreateString(frame.filename);
    const auto name = builder_.CreateString(frame.name);
    return fb::CreateFrame(builder_, filename, frame.line, name, builder_.CreateString(frame.context));
  }
  Offset<fb::FrameList> write(const std::vector<Frame>& frames) {
    return fb::CreateFrameList(builder_, writeAll<fb::Frame>(frames));
  }
  Offset<fb::BufferDevice> write(const PoolDevice& device) {
    return fb::CreateBufferDevice(builder_, device.pool, device.type, device.index);
  }
  Offset<fb::ChainEntry> write(const Chain& chain) {
    const auto inputs = vectorOf(chain.inputs);
    const auto outputs = vectorOf(chain.outputs);
    const auto instructions = writeAll<fb::InstructionEntry>(chain.instructions);
    Offset<flatbuffers::Vector<Offset<fb::FrameList>>> traces;
    if (!chain.stacktraces.empty()) traces = writeAll<fb::FrameList>(chain.stacktraces);
    return fb::CreateChainEntry(builder_, inputs, outputs, instructions, traces);
  }
  Offset<fb::DelegateEntry> write(const Delegate& delegate) {
    const auto id = builder_.CreateString(delegate.id);
    const Place place = places_[nextPlace_++];
    const auto reference = fb::CreateDataReference(
        builder_, place.inSegment ? schema::kLocationSegment : schema::kLocationInline, place.index);
    return fb::CreateDelegateEntry(builder_, id, reference, writeAll<fb::CompileSpecEntry>(delegate.specs));
  }
  Offset<fb::PlanEntry> write(const Method& method) {
    const auto name = builder_.CreateString(method.name);
    const auto inputStructure = builder_.CreateString(method.inputStructure);
    const auto outputStructure = builder_.CreateString(method.outputStructure);
    const auto container = fb::CreateContainerMetadata(builder_, inputStructure, outputStructure);
    const auto values = writeAll<fb::EValue>(method.values);
    const auto inputs = vectorOf(method.inputs);
    const auto outputs = vectorOf(method.outputs);
    const auto chains = writeAll<fb::ChainEntry>(method.chains);
    const auto operators = writeAll<fb::OperatorEntry>(method.operators);
    const auto delegates = writeAll<fb::DelegateEntry>(method.delegates);
    const auto pools = vectorOf(method.pools);
    Offset<flatbuffers::Vector<Offset<fb::BufferDevice>>> devices;
    if (!method.poolDevices.empty()) devices = writeAll<fb::BufferDevice>(method.poolDevices);
    return fb::CreatePlanEntry(builder_, name, container, values, inputs, outputs, chains, operators,
                               delegates, pools, devices);
  }

  Offset<fb::Root> writeRoot() {
    std::vector<Offset<fb::InlineData>> inlineData;
    for (std::string_view blob : inlineOrder_) {
      builder_.ForceVectorAlignment(blob.size(), 1, schema::kPayloadAlignment);
      uint8_t* unwritten = nullptr;  // assemble() puts the blob into the file instead of copying it twice
      const Offset<flatbuffers::Vector<uint8_t>> bytes(
          builder_.CreateUninitializedVector(blob.size(), 1, &unwritten));
      inlineEnds_.push_back(builder_.GetSize() - sizeof(flatbuffers::uoffset_t) - blob.size());
      inlineData.push_back(fb::CreateInlineData(builder_, bytes));
    }
    const auto delegateData = builder_.CreateVector(inlineData);
    const auto plans = writeAll<fb::PlanEntry>(program_.methods);
    const auto noBuffers = builder_.CreateVector(std::vector<Offset<fb::Storage>>());
    std::vector<Offset<fb::Segment>> segments;
    for (const Segment& segment : segments_)
      segments.push_back(fb::CreateSegment(builder_, segment.offset, segment.bytes.size()));
    const auto segmentTable = builder_.CreateVector(segments);
    const auto constants = fb::CreateSubsegments(builder_, 0, vectorOf(constants_.offsets));
    Offset<flatbuffers::Vector<Offset<fb::Subsegments>>> mutableData;
    if (program_.mutableData.size() > 1) {
      const std::vector<Offset<fb::Subsegments>> one = {
          fb::CreateSubsegments(builder_, 1, vectorOf(mutableData_.offsets))};
      mutableData = builder_.CreateVector(one);
    }
    Offset<flatbuffers::Vector<Offset<fb::NamedEntry>>> named;
    if (!program_.namedData.empty()) {
      std::vector<Offset<fb::NamedEntry>> entries;
      for (size_t i = 0; i < program_.namedData.size(); ++i) {
        entries.push_back(fb::CreateNamedEntry(builder_, builder_.CreateString(program_.namedData[i].key),
                                               namedSegments_[i]));
      }
      named = builder_.CreateVector(entries);
    }
    return fb::CreateRoot(builder_, 0, plans, noBuffers, delegateData, segmentTable, constants, mutableData,
                          named);
  }

  std::string assemble() {
    const std::string_view body(reinterpret_cast<const char*>(builder_.GetBufferPointer()),
                                builder_.GetSize());
    // The header is inserted after the identifier. All offsets but the root's are relative, and 32 bytes
    // preserve all alignments.
    const size_t header = segmentEnd_ == 0 ? 0 : schema::kHeaderLength;
    const auto programBytes = static_cast<int64_t>(body.size() + header);
    const int64_t base = roundUp(programBytes, options_.segmentAlignment);
    std::string file;
    file.reserve(static_cast<size_t>(segmentEnd_ == 0 ? programBytes : base + segmentEnd_));
    file.append(body, 0, schema::kHeaderOffset).append(header, '\0');
    if (header > 0) {
      put(file, 0, flatbuffers::ReadScalar<uint32_t>(body.data()) + schema::kHeaderLength);
      std::memcpy(file.data() + schema::kHeaderOffset, schema::kHeaderMagic, 4);
      put(file, schema::kHeaderLengthAt, schema::kHeaderLength);
      put(file, schema::kHeaderProgramSizeAt, static_cast<uint64_t>(programBytes));
      put(file, schema::kHeaderSegmentBaseAt, static_cast<uint64_t>(base));
      put(file, schema::kHeaderSegmentBytesAt, static_cast<uint64_t>(segmentEnd_));
    }
    // The buffer grows downwards: the last blob comes first.
    size_t done = schema::kHeaderOffset;
    for (size_t i = inlineOrder_.size(); i-- > 0;) {
      const size_t begin = body.size() - inlineEnds_[i] - inlineOrder_[i].size();
      file.append(body, done, begin - done).append(inlineOrder_[i]);
      done = begin + inlineOrder_[i].size();
    }
    file.append(body, done);
    for (const Segment& segment : segments_) {
      if (segment.bytes.empty()) continue;
      file.resize(static_cast<size_t>(base) + segment.offset);
      file.append(segment.bytes);
    }
    if (segmentEnd_ > 0) file.resize(static_cast<size_t>(base + segmentEnd_));
    return file;
  }
  template <typename T>
  static void put(std::string& file, size_t offset, T value) {
    std::memcpy(file.data() + offset, &value, sizeof(T));
  }

  struct Segment {
    uint64_t offset;
    std::string_view bytes;
  };
  struct Place {
    bool inSegment;
    uint32_t index;
  };
  const Program& program_;
  const WriteOptions& options_;
  FlatBufferBuilder builder_;
  Stored constants_, mutableData_;
  std::vector<Segment> segments_;
  int64_t segmentEnd_ = 0;
  std::map<std::string_view, uint32_t> shared_, inline_;
  std::vector<std::string_view> inlineOrder_;
  std::vector<size_t> inlineEnds_;  // bytes of the buffer after each inline blob
  std::vector<Place> places_;
  size_t nextPlace_ = 0;
  std::vector<uint32_t> namedSegments_;
};

}  // namespace

Result<std::string> writeProgram(const Program& program, const WriteOptions& options) {
  CARINA_RETURN_IF_ERROR(verifyProgram(program));
  return ProgramWriter(program, options).write();
}

}  // namespace carina::pte
