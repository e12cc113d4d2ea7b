// SPDX-License-Identifier: Apache-2.0
// An ExecuTorch program (.pte) as a value: what the reader returns, the writer accepts and the inspector
// prints. The location of bytes in the file (segments, alignment, sharing) is up to the writer; this
// describes what the program means.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/dtype.hpp"
#include "base/result.hpp"
#include "base/shape.hpp"
#include "base/tensor.hpp"
#include "format/scalar_type.hpp"

namespace carina::pte {

using ByteVector = std::vector<std::byte>;

using format::ScalarType;

/// "int8", "float32", ...; "type 9" for unknown numbers.
std::string scalarTypeName(ScalarType type);
/// Bytes of one element; 0 for unknown numbers.
int64_t scalarTypeSize(ScalarType type);
/// Empty for types that Carina's tensors do not have (UInt64, 8-bit floats, packed types).
std::optional<DType> toDType(ScalarType type);
ScalarType fromDType(DType dtype);  // Int4 -> Int8, Int48 and Shape -> Int64

/// Planned memory: byte `offset` in pool `memoryId` (1-based).
struct Allocation {
  uint32_t memoryId = 1;
  uint64_t offset = 0;
  friend bool operator==(const Allocation&, const Allocation&) = default;
};

enum class ShapeDynamism : uint8_t { Static = 0, DynamicBound = 1, DynamicUnbound = 2 };

struct ExtraTensorInfo {
  uint64_t mutableDataIndex = 0;
  std::string name;                        // fully qualified, key of external data
  bool external = false;                   // bytes come from named data or a .ptd file
  int8_t deviceType = 0, deviceIndex = 0;  // where the tensor lives; 0: the CPU
  friend bool operator==(const ExtraTensorInfo&, const ExtraTensorInfo&) = default;
};

struct Tensor {
  ScalarType type = ScalarType::Float32;
  std::vector<int32_t> sizes;     // logical order
  std::vector<uint8_t> dimOrder;  // outermost to innermost in memory, as many as sizes
  ShapeDynamism dynamism = ShapeDynamism::Static;
  bool requiresGrad = false;
  int8_t layout = 0;
  uint32_t dataIndex =
      0;  // index in Program::constants (mutableData with an allocation); 0 = no stored bytes
  std::optional<Allocation> allocation;
  std::optional<ExtraTensorInfo> extra;
  friend bool operator==(const Tensor&, const Tensor&) = default;

  std::string str() const;  // "float32[1,3,8,8]"
};
/// Bytes of a tensor; empty if sizes are negative or overflow, or the type is unknown.
std::optional<int64_t> tensorBytes(const Tensor& tensor);

struct None {
  friend bool operator==(const None&, const None&) = default;
};  // value without content (type NONE)
struct Null {
  friend bool operator==(const Null&, const Null&) = default;
};  // an omitted optional argument
struct IntList {
  std::vector<int64_t> items;
  friend bool operator==(const IntList&, const IntList&) = default;
};  // value indices
struct DoubleList {
  std::vector<double> items;
  friend bool operator==(const DoubleList&, const DoubleList&) = default;
};
struct BoolList {
  std::vector<uint8_t> items;
  friend bool operator==(const BoolList&, const BoolList&) = default;
};
struct TensorList {
  std::vector<int32_t> items;
  friend bool operator==(const TensorList&, const TensorList&) = default;
};  // value indices
struct OptionalTensorList {
  std::vector<int32_t> items;
  friend bool operator==(const OptionalTensorList&, const OptionalTensorList&) = default;
};  // -1 = none

using Value = std::variant<None, Null, int64_t, bool, double, Tensor, std::string, IntList, DoubleList,
                           BoolList, TensorList, OptionalTensorList>;

struct Operator {
  std::string name;      // "cortex_m::quantize_per_tensor"
  std::string overload;  // "out"
  friend bool operator==(const Operator&, const Operator&) = default;
  std::string str() const { return overload.empty() ? name : name + "." + overload; }
};

/// `arguments` index values: the out-variant schema's arguments, then the return value again.
struct KernelCall {
  int32_t op = 0;
  std::vector<int32_t> arguments;
  friend bool operator==(const KernelCall&, const KernelCall&) = default;
};
/// `arguments`: inputs, then outputs of the delegate.
struct DelegateCall {
  int32_t delegate = 0;
  std::vector<int32_t> arguments;
  friend bool operator==(const DelegateCall&, const DelegateCall&) = default;
};
struct MoveCall {
  int32_t from = 0, to = 0;
  friend bool operator==(const MoveCall&, const MoveCall&) = default;
};
struct JumpFalseCall {
  int32_t condition = 0, destination = 0;
  friend bool operator==(const JumpFalseCall&, const JumpFalseCall&) = default;
};
struct FreeCall {
  int32_t value = 0;
  friend bool operator==(const FreeCall&, const FreeCall&) = default;
};
using Instruction = std::variant<KernelCall, DelegateCall, MoveCall, JumpFalseCall, FreeCall>;

/// A source line that an instruction came from.
struct Frame {
  std::string filename;
  int32_t line = 0;
  std::string name, context;
  friend bool operator==(const Frame&, const Frame&) = default;
};

struct Chain {
  std::vector<int32_t> inputs, outputs;  // written empty by every known producer
  std::vector<Instruction> instructions;
  std::vector<std::vector<Frame>> stacktraces = {};  // per instruction; empty: not recorded
  friend bool operator==(const Chain&, const Chain&) = default;
};

struct CompileSpec {
  std::string key;
  std::string value;  // any bytes
  friend bool operator==(const CompileSpec&, const CompileSpec&) = default;
};

/// The delegate that runs on an Ethos-U, by ExecuTorch's name for its backend.
inline constexpr std::string_view kEthosUBackend = "EthosUBackend";

struct Delegate {
  std::string id;          // of the backend that runs it: kEthosUBackend, ...
  ByteVector blob;         // equal blobs are stored once
  bool inSegment = false;  // in a segment of its own instead of inside the flatbuffer
  std::vector<CompileSpec> specs;
  friend bool operator==(const Delegate&, const Delegate&) = default;
};

/// A pool that is not in the CPU's memory.
struct PoolDevice {
  int32_t pool = 0;
  int8_t type = 0, index = 0;
  friend bool operator==(const PoolDevice&, const PoolDevice&) = default;
};

struct Method {
  std::string name = "forward";
  std::string inputStructure, outputStructure;  // pytree descriptions
  std::vector<Value> values;
  std::vector<int32_t> inputs, outputs;  // value indices
  std::vector<Chain> chains;
  std::vector<Operator> operators;
  std::vector<Delegate> delegates;
  std::vector<int64_t> pools{0};  // bytes by memory id; entry 0 is reserved
  std::vector<PoolDevice> poolDevices = {};
  friend bool operator==(const Method&, const Method&) = default;
};

struct NamedData {
  std::string key;
  ByteVector bytes;  // equal bytes are stored once
  friend bool operator==(const NamedData&, const NamedData&) = default;
};

struct Program {
  std::vector<Method> methods;
  std::vector<ByteVector> constants{{}};  // entry 0 is reserved and empty
  std::vector<ByteVector> mutableData;    // initial values of planned tensors; entry 0 reserved when present
  std::vector<NamedData> namedData;
  friend bool operator==(const Program&, const Program&) = default;

  const Method* findMethod(std::string_view name) const;
};

/// How the file was laid out: for reports; the program does not depend on it.
struct FileLayout {
  uint64_t fileBytes = 0, programBytes = 0, segmentBase = 0, segmentBytes = 0;
  bool extendedHeader = false, deprecatedConstants = false;
  struct Segment {
    uint64_t offset = 0, size = 0;
  };
  std::vector<Segment> segments;
};

/// Reads a .pte (untrusted). Errors name the place (method, value, byte offset). Fields that newer producers
/// append are ignored.
Result<Program> readProgram(ByteSpan file, FileLayout* layout = nullptr);

struct WriteOptions {
  int64_t segmentAlignment = 128;  // power of two >= 16
  int64_t constantAlignment = 16;  // power of two
};
/// Writes a .pte; the same program always gives the same bytes. Errors: what a loader would reject
/// (verifyProgram).
Result<std::string> writeProgram(const Program& program, const WriteOptions& options = {});

/// Checks everything that ExecuTorch's loader requires and that can be checked without running: indices in
/// range, dimension orders, memory inside pools, constants inside their bytes, list items before lists, names
/// of at most 99 characters.
Status verifyProgram(const Program& program);

/// Text of the whole program: methods, values, instructions, operators, delegates, memory.
std::string printProgram(const Program& program, const FileLayout* layout = nullptr);

}  // namespace carina::pte
