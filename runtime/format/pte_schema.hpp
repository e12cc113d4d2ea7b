// SPDX-License-Identifier: Apache-2.0
// Field numbers of the .pte FlatBuffers schema and the numbers of its unions, for readers without generated
// code; and the extended header in front of programs with segments. Header-only and freestanding.
#pragma once

#include <cstddef>
#include <cstdint>

namespace carina::format::pte {

constexpr char kIdentifier[] = "ET12";  // at byte 4

// Extended header, at byte 8 of the file.
constexpr char kHeaderMagic[] = "eh00";
constexpr uint32_t kHeaderOffset = 8;
constexpr uint32_t kHeaderMinLength = 24;       // magic, length, program size, segment base
constexpr uint32_t kHeaderLength = 32;          // + segment data size
constexpr uint32_t kHeaderLengthAt = 12;        // u32
constexpr uint32_t kHeaderProgramSizeAt = 16;   // u64
constexpr uint32_t kHeaderSegmentBaseAt = 24;   // u64
constexpr uint32_t kHeaderSegmentBytesAt = 32;  // u64
constexpr uint32_t kPayloadAlignment = 16;      // of inline delegate blobs and constants

enum ProgramField : uint32_t {
  kProgramVersion,
  kProgramPlans,
  kProgramConstantBuffer,
  kProgramDelegateData,
  kProgramSegments,
  kProgramConstantSegment,
  kProgramMutableSegments,
  kProgramNamedData,
};
enum PlanField : uint32_t {
  kPlanName,
  kPlanContainerMeta,
  kPlanValues,
  kPlanInputs,
  kPlanOutputs,
  kPlanChains,
  kPlanOperators,
  kPlanDelegates,
  kPlanBufferSizes,
  kPlanBufferDevices,
};
enum ValueField : uint32_t { kValueType, kValueContent };
enum class ValueType : uint8_t {
  None,
  Null,
  Int,
  Bool,
  Double,
  Tensor,
  String,
  IntList,
  DoubleList,
  BoolList,
  TensorList,
  OptionalTensorList,
};
constexpr uint32_t kContent = 0;  // the only field of Int, Bool, Double, String and the lists

enum TensorField : uint32_t {
  kTensorType,
  kTensorStorageOffset,
  kTensorSizes,
  kTensorDimOrder,
  kTensorRequiresGrad,
  kTensorData,
  kTensorAllocation,
  kTensorLayout,
  kTensorDynamism,
  kTensorExtra,
};
enum ExtraField : uint32_t {
  kExtraMutableIndex,
  kExtraName,
  kExtraLocation,
  kExtraDeviceType,
  kExtraDeviceIndex
};
enum AllocationField : uint32_t { kAllocationId, kAllocationLow, kAllocationHigh };
enum OperatorField : uint32_t { kOperatorName, kOperatorOverload };
enum ChainField : uint32_t { kChainInputs, kChainOutputs, kChainInstructions };
enum InstructionField : uint32_t { kInstructionType, kInstructionContent };
enum class InstructionType : uint8_t { None, Kernel, Delegate, Move, JumpFalse, Free };
constexpr uint32_t kCallTarget = 0;  // operator or delegate index
constexpr uint32_t kCallArguments = 1;
enum MoveField : uint32_t { kMoveFrom, kMoveTo };
enum JumpField : uint32_t { kJumpCondition, kJumpDestination };
constexpr uint32_t kFreeValue = 0;
enum DelegateField : uint32_t { kDelegateId, kDelegateProcessed, kDelegateSpecs };
enum DataReferenceField : uint32_t { kReferenceLocation, kReferenceIndex };
constexpr uint8_t kLocationInline = 0;
constexpr uint8_t kLocationSegment = 1;
constexpr uint32_t kInlineBytes = 0;  // BackendDelegateInlineData.data, Buffer.storage
enum SegmentField : uint32_t { kSegmentOffset, kSegmentSize };
enum SubsegmentField : uint32_t { kSubsegmentIndex, kSubsegmentOffsets };
enum NamedDataField : uint32_t { kNamedKey, kNamedSegment };

/// Longest operator name ("namespace::name.overload") that a loader looks up.
constexpr size_t kMaxKernelName = 99;
constexpr uint32_t kMaxRank = 16;

}  // namespace carina::format::pte
