// SPDX-License-Identifier: Apache-2.0
// Which operands, ranks and element types each TOSA 1.0 operator takes, and in which profile or extension
// (specification 1.0, operator tables). The 8-bit floating point rows are left out: no part of Carina
// computes in those types.
#include "tosa/op_facts.hpp"

#include "tosa/tosa.hpp"

namespace carina::tosa {
namespace {

constexpr uint8_t code(DType dtype) {
  return static_cast<uint8_t>(dtype);
}
constexpr uint8_t Bool = code(DType::Bool), I4 = code(DType::Int4), I8 = code(DType::Int8),
                  I16 = code(DType::Int16), I32 = code(DType::Int32), I48 = code(DType::Int48),
                  F16 = code(DType::Float16), Bf16 = code(DType::BFloat16), F32 = code(DType::Float32),
                  Shp = code(DType::Shape), Any = TypeRow::kAny, None = TypeRow::kNone;
constexpr uint8_t kMax = OperandFact::kMaxRank;
constexpr bool kConstant = true, kVariable = false;

constexpr TypeRow kTypes1[] = {
    {{I8}, 1, {I32}, None, kProInt},    {{I16}, 1, {I32}, None, kExtInt16}, {{F16}, 1, {I32}, None, kProFp},
    {{Bf16}, 1, {I32}, None, kExtBf16}, {{F32}, 1, {I32}, None, kProFp},
};
constexpr OperandFact kOperands1[] = {
    {1, kMax, kVariable},
};
constexpr TypeRow kTypes2[] = {
    {{I8, I8, I8}, 3, {I8}, I32, kProInt},          {{I16, I16, I16}, 3, {I16}, I32, kExtInt16},
    {{F16, F16, F16}, 3, {F16}, F16, kProFp},       {{F16, F16, F16}, 3, {F16}, F32, kProFp},
    {{Bf16, Bf16, Bf16}, 3, {Bf16}, F32, kExtBf16}, {{F32, F32, F32}, 3, {F32}, F32, kProFp},
};
constexpr OperandFact kOperands2[] = {
    {4, 4, kVariable},
    {1, 1, kConstant},
    {1, 1, kConstant},
};
constexpr TypeRow kTypes3[] = {
    {{I8, I8, I32, I8, I8}, 5, {I32}, I32, kProInt},
    {{I8, I4, I32, I8, I4}, 5, {I32}, I32, kExtInt4},
    {{I16, I8, I48, I16, I8}, 5, {I48}, I48, kExtInt16},
    {{F16, F16, F16, F16, F16}, 5, {F16}, F16, kProFp},
    {{F16, F16, F16, F16, F16}, 5, {F16}, F32, kProFp},
    {{Bf16, Bf16, Bf16, Bf16, Bf16}, 5, {Bf16}, F32, kExtBf16},
    {{F32, F32, F32, F32, F32}, 5, {F32}, F32, kProFp},
};
constexpr OperandFact kOperands3[] = {
    {4, 4, kVariable}, {4, 4, kVariable}, {1, 1, kVariable}, {1, 1, kConstant}, {1, 1, kConstant},
};
constexpr OperandFact kOperands4[] = {
    {5, 5, kVariable}, {5, 5, kVariable}, {1, 1, kVariable}, {1, 1, kConstant}, {1, 1, kConstant},
};
constexpr TypeRow kTypes4[] = {
    {{F32, F32}, 2, {F32, F32}, None, kExtFft},
};
constexpr OperandFact kOperands5[] = {
    {3, 3, kVariable},
    {3, 3, kVariable},
};
constexpr TypeRow kTypes5[] = {
    {{I8, I8, I8, I8}, 4, {I32}, None, kProInt},          {{I16, I16, I16, I16}, 4, {I48}, None, kExtInt16},
    {{F16, F16, F16, F16}, 4, {F16}, None, kProFp},       {{F16, F16, F16, F16}, 4, {F32}, None, kProFp},
    {{Bf16, Bf16, Bf16, Bf16}, 4, {F32}, None, kExtBf16}, {{F32, F32, F32, F32}, 4, {F32}, None, kProFp},
};
constexpr OperandFact kOperands6[] = {
    {3, 3, kVariable},
    {3, 3, kVariable},
    {1, 1, kConstant},
    {1, 1, kConstant},
};
constexpr TypeRow kTypes6[] = {
    {{I8}, 1, {I8}, None, kProInt},      {{I16}, 1, {I16}, None, kExtInt16}, {{F16}, 1, {F16}, None, kProFp},
    {{Bf16}, 1, {Bf16}, None, kExtBf16}, {{F32}, 1, {F32}, None, kProFp},
};
constexpr OperandFact kOperands7[] = {
    {4, 4, kVariable},
};
constexpr TypeRow kTypes7[] = {
    {{F32}, 1, {F32, F32}, None, kExtFft},
};
constexpr OperandFact kOperands8[] = {
    {3, 3, kVariable},
};
constexpr OperandFact kOperands9[] = {
    {0, kMax, kVariable},
};
constexpr TypeRow kTypes8[] = {
    {{F16}, 1, {F16}, None, kProFp},
    {{Bf16}, 1, {Bf16}, None, kExtBf16},
    {{F32}, 1, {F32}, None, kProFp},
};
constexpr TypeRow kTypes9[] = {
    {{I32, I32}, 2, {I32}, None, kProInt | kProFp},
    {{F16, F16}, 2, {F16}, None, kProFp},
    {{Bf16, Bf16}, 2, {Bf16}, None, kExtBf16},
    {{F32, F32}, 2, {F32}, None, kProFp},
};
constexpr OperandFact kOperands10[] = {
    {0, kMax, kVariable},
    {0, kMax, kVariable},
};
constexpr TypeRow kTypes10[] = {
    {{I8, I8}, 2, {I8}, None, kProInt},
    {{I16, I16}, 2, {I16}, None, kProInt},
    {{I32, I32}, 2, {I32}, None, kProInt},
};
constexpr TypeRow kTypes11[] = {
    {{I32, I32}, 2, {I32}, None, kProInt | kProFp},
};
constexpr TypeRow kTypes12[] = {
    {{Bool, Bool}, 2, {Bool}, None, kProInt | kProFp},
};
constexpr TypeRow kTypes13[] = {
    {{I8, I8}, 2, {I8}, None, kProInt | kProFp},
    {{I16, I16}, 2, {I16}, None, kProInt | kProFp},
    {{I32, I32}, 2, {I32}, None, kProInt | kProFp},
};
constexpr TypeRow kTypes14[] = {
    {{I32, I32}, 2, {I32}, None, kProInt},
    {{F16, F16}, 2, {F16}, None, kProFp},
    {{Bf16, Bf16}, 2, {Bf16}, None, kExtBf16},
    {{F32, F32}, 2, {F32}, None, kProFp},
};
constexpr TypeRow kTypes15[] = {
    {{I8, I8, I8}, 3, {I32}, None, kProInt},
    {{I16, I16, I8}, 3, {I32}, None, kProInt},
    {{I32, I32, I8}, 3, {I32}, None, kProInt | kProFp},
    {{F16, F16, I8}, 3, {F16}, None, kProFp},
    {{Bf16, Bf16, I8}, 3, {Bf16}, None, kExtBf16},
    {{F32, F32, I8}, 3, {F32}, None, kProFp},
};
constexpr OperandFact kOperands11[] = {
    {0, kMax, kVariable},
    {0, kMax, kVariable},
    {1, 1, kConstant},
};
constexpr TypeRow kTypes16[] = {
    {{F16, F16}, 2, {F16}, None, kProFp},
    {{Bf16, Bf16}, 2, {Bf16}, None, kExtBf16},
    {{F32, F32}, 2, {F32}, None, kProFp},
};
constexpr TypeRow kTypes17[] = {
    {{I32}, 1, {I32}, None, kProInt},
    {{F16}, 1, {F16}, None, kProFp},
    {{Bf16}, 1, {Bf16}, None, kExtBf16},
    {{F32}, 1, {F32}, None, kProFp},
};
constexpr TypeRow kTypes18[] = {
    {{I8}, 1, {I8}, None, kProInt},
    {{I16}, 1, {I16}, None, kProInt},
    {{I32}, 1, {I32}, None, kProInt},
};
constexpr TypeRow kTypes19[] = {
    {{I32}, 1, {I32}, None, kProInt},
};
constexpr TypeRow kTypes20[] = {
    {{Bool}, 1, {Bool}, None, kProInt | kProFp},
};
constexpr TypeRow kTypes21[] = {
    {{I8, I8, I8}, 3, {I8}, None, kProInt},          {{I16, I16, I16}, 3, {I16}, None, kProInt},
    {{I32, I32, I32}, 3, {I32}, None, kProInt},      {{F16, F16, F16}, 3, {F16}, None, kProFp},
    {{Bf16, Bf16, Bf16}, 3, {Bf16}, None, kExtBf16}, {{F32, F32, F32}, 3, {F32}, None, kProFp},
};
constexpr OperandFact kOperands12[] = {
    {0, kMax, kVariable},
    {1, 1, kConstant},
    {1, 1, kConstant},
};
constexpr TypeRow kTypes22[] = {
    {{Bool, Bool, Bool}, 3, {Bool}, None, kProInt | kProFp},
    {{Bool, I8, I8}, 3, {I8}, None, kProInt},
    {{Bool, I16, I16}, 3, {I16}, None, kProInt},
    {{Bool, I32, I32}, 3, {I32}, None, kProInt},
    {{Bool, F16, F16}, 3, {F16}, None, kProFp},
    {{Bool, Bf16, Bf16}, 3, {Bf16}, None, kExtBf16},
    {{Bool, F32, F32}, 3, {F32}, None, kProFp},
};
constexpr OperandFact kOperands13[] = {
    {0, kMax, kVariable},
    {0, kMax, kVariable},
    {0, kMax, kVariable},
};
constexpr TypeRow kTypes23[] = {
    {{I32, I32}, 2, {Bool}, None, kProInt},
    {{F16, F16}, 2, {Bool}, None, kProFp},
    {{Bf16, Bf16}, 2, {Bool}, None, kExtBf16},
    {{F32, F32}, 2, {Bool}, None, kProFp},
};
constexpr TypeRow kTypes24[] = {
    {{I8}, 1, {I8}, None, kProInt},  {{I16}, 1, {I16}, None, kProInt},    {{I32}, 1, {I32}, None, kProInt},
    {{F16}, 1, {F16}, None, kProFp}, {{Bf16}, 1, {Bf16}, None, kExtBf16}, {{F32}, 1, {F32}, None, kProFp},
};
constexpr TypeRow kTypes25[] = {
    {{Bool}, 1, {Bool}, None, kProInt | kProFp},
    {{I8}, 1, {I8}, None, kProInt},
    {{I16}, 1, {I16}, None, kExtInt16},
    {{I32}, 1, {I32}, None, kProInt},
    {{F16}, 1, {F16}, None, kProFp},
    {{Bf16}, 1, {Bf16}, None, kExtBf16},
    {{F32}, 1, {F32}, None, kProFp},
};
constexpr TypeRow kTypes26[] = {
    {{Bool, Shp, Bool}, 3, {Bool}, None, kProInt | kProFp},
    {{I8, Shp, I8}, 3, {I8}, None, kProInt},
    {{I16, Shp, I16}, 3, {I16}, None, kProInt},
    {{I32, Shp, I32}, 3, {I32}, None, kProInt},
    {{F16, Shp, F16}, 3, {F16}, None, kProFp},
    {{Bf16, Shp, Bf16}, 3, {Bf16}, None, kExtBf16},
    {{F32, Shp, F32}, 3, {F32}, None, kProFp},
};
constexpr OperandFact kOperands14[] = {
    {1, kMax, kVariable},
    {1, 1, kConstant},
    {1, 1, kConstant},
};
constexpr TypeRow kTypes27[] = {
    {{Bool, Shp}, 2, {Bool}, None, kProInt | kProFp},
    {{I8, Shp}, 2, {I8}, None, kProInt},
    {{I16, Shp}, 2, {I16}, None, kProInt},
    {{I32, Shp}, 2, {I32}, None, kProInt},
    {{F16, Shp}, 2, {F16}, None, kProFp},
    {{Bf16, Shp}, 2, {Bf16}, None, kExtBf16},
    {{F32, Shp}, 2, {F32}, None, kProFp},
};
constexpr OperandFact kOperands15[] = {
    {0, kMax, kVariable},
    {1, 1, kConstant},
};
constexpr TypeRow kTypes28[] = {
    {{Bool}, 1, {Bool}, None, kProInt | kProFp},
    {{I8}, 1, {I8}, None, kProInt},
    {{I16}, 1, {I16}, None, kProInt},
    {{I32}, 1, {I32}, None, kProInt},
    {{F16}, 1, {F16}, None, kProFp},
    {{Bf16}, 1, {Bf16}, None, kExtBf16},
    {{F32}, 1, {F32}, None, kProFp},
};
constexpr TypeRow kTypes29[] = {
    {{Bool, Shp, Shp}, 3, {Bool}, None, kProInt | kProFp},
    {{I8, Shp, Shp}, 3, {I8}, None, kProInt},
    {{I16, Shp, Shp}, 3, {I16}, None, kProInt},
    {{I32, Shp, Shp}, 3, {I32}, None, kProInt},
    {{F16, Shp, Shp}, 3, {F16}, None, kProFp},
    {{Bf16, Shp, Shp}, 3, {Bf16}, None, kExtBf16},
    {{F32, Shp, Shp}, 3, {F32}, None, kProFp},
};
constexpr OperandFact kOperands16[] = {
    {1, kMax, kVariable},
    {1, 1, kConstant},
};
constexpr TypeRow kTypes30[] = {
    {{I8, I32}, 2, {I8}, None, kProInt},      {{I16, I32}, 2, {I16}, None, kProInt},
    {{I32, I32}, 2, {I32}, None, kProInt},    {{F16, I32}, 2, {F16}, None, kProFp},
    {{Bf16, I32}, 2, {Bf16}, None, kExtBf16}, {{F32, I32}, 2, {F32}, None, kProFp},
};
constexpr OperandFact kOperands17[] = {
    {3, 3, kVariable},
    {2, 2, kVariable},
};
constexpr TypeRow kTypes31[] = {
    {{I8, I32, I8}, 3, {I8}, None, kProInt},        {{I16, I32, I16}, 3, {I16}, None, kProInt},
    {{I32, I32, I32}, 3, {I32}, None, kProInt},     {{F16, I32, F16}, 3, {F16}, None, kProFp},
    {{Bf16, I32, Bf16}, 3, {Bf16}, None, kExtBf16}, {{F32, I32, F32}, 3, {F32}, None, kProFp},
};
constexpr OperandFact kOperands18[] = {
    {3, 3, kVariable},
    {2, 2, kVariable},
    {3, 3, kVariable},
};
constexpr TypeRow kTypes32[] = {
    {{I8, Shp, Shp, Shp}, 4, {I32}, None, kProInt},    {{I8, Shp, Shp, Shp}, 4, {I8}, None, kProInt},
    {{I16, Shp, Shp, Shp}, 4, {I48}, None, kExtInt16}, {{I16, Shp, Shp, Shp}, 4, {I16}, None, kExtInt16},
    {{F16, Shp, Shp, Shp}, 4, {F16}, None, kProFp},    {{Bf16, Shp, Shp, Shp}, 4, {Bf16}, None, kExtBf16},
    {{F32, Shp, Shp, Shp}, 4, {F32}, None, kProFp},
};
constexpr OperandFact kOperands19[] = {
    {4, 4, kVariable},
    {1, 1, kConstant},
    {1, 1, kConstant},
    {1, 1, kConstant},
};
constexpr TypeRow kTypes33[] = {
    {{Bool}, 1, {I8}, None, kProInt},   {{Bool}, 1, {I16}, None, kProInt},
    {{Bool}, 1, {I32}, None, kProInt},  {{I8}, 1, {Bool}, None, kProInt},
    {{I16}, 1, {Bool}, None, kProInt},  {{I32}, 1, {Bool}, None, kProInt},
    {{I8}, 1, {I16}, None, kProInt},    {{I8}, 1, {I32}, None, kProInt},
    {{I16}, 1, {I8}, None, kProInt},    {{I16}, 1, {I32}, None, kProInt},
    {{I32}, 1, {I8}, None, kProInt},    {{I32}, 1, {I16}, None, kProInt},
    {{I8}, 1, {F16}, None, kProFp},     {{I8}, 1, {Bf16}, None, kExtBf16},
    {{I8}, 1, {F32}, None, kProFp},     {{I16}, 1, {F16}, None, kProFp},
    {{I16}, 1, {Bf16}, None, kExtBf16}, {{I16}, 1, {F32}, None, kProFp},
    {{I32}, 1, {F16}, None, kProFp},    {{I32}, 1, {Bf16}, None, kExtBf16},
    {{I32}, 1, {F32}, None, kProFp},    {{F16}, 1, {I8}, None, kProFp},
    {{F16}, 1, {I16}, None, kProFp},    {{F16}, 1, {I32}, None, kProFp},
    {{Bf16}, 1, {I8}, None, kExtBf16},  {{Bf16}, 1, {I16}, None, kExtBf16},
    {{Bf16}, 1, {I32}, None, kExtBf16}, {{F32}, 1, {I8}, None, kProFp},
    {{F32}, 1, {I16}, None, kProFp},    {{F32}, 1, {I32}, None, kProFp},
    {{F16}, 1, {F32}, None, kProFp},    {{F32}, 1, {F16}, None, kProFp},
    {{Bf16}, 1, {F32}, None, kExtBf16}, {{F32}, 1, {Bf16}, None, kExtBf16},
};
constexpr TypeRow kTypes34[] = {
    {{I8, Any, I8, I8, I8}, 5, {I8}, None, kProInt},
    {{I8, Any, I8, I8, I16}, 5, {I16}, None, kProInt},
    {{I8, Any, I8, I8, I32}, 5, {I32}, None, kProInt},
    {{I16, Any, I8, I16, I8}, 5, {I8}, None, kProInt},
    {{I16, Any, I8, I16, I16}, 5, {I16}, None, kProInt},
    {{I16, Any, I8, I16, I32}, 5, {I32}, None, kProInt},
    {{I32, Any, I8, I32, I8}, 5, {I8}, None, kProInt},
    {{I32, Any, I8, I32, I16}, 5, {I16}, None, kProInt},
    {{I32, Any, I8, I32, I32}, 5, {I32}, None, kProInt},
    {{I48, Any, I8, I48, I8}, 5, {I8}, None, kExtInt16},
    {{I48, Any, I8, I48, I16}, 5, {I16}, None, kExtInt16},
    {{I48, Any, I8, I48, I32}, 5, {I32}, None, kExtInt16},
};
constexpr OperandFact kOperands20[] = {
    {0, kMax, kVariable}, {1, 1, kConstant}, {1, 1, kConstant}, {1, 1, kConstant}, {1, 1, kConstant},
};
constexpr TypeRow kTypes35[] = {
    {{Bool}, 1, {Bool}, None, kProInt | kProFp},
    {{I4}, 1, {I4}, None, kExtInt4},
    {{I8}, 1, {I8}, None, kProInt | kProFp},
    {{I16}, 1, {I16}, None, kProInt | kProFp},
    {{I32}, 1, {I32}, None, kProInt | kProFp},
    {{I48}, 1, {I48}, None, kExtInt16},
    {{F16}, 1, {F16}, None, kProFp},
    {{Bf16}, 1, {Bf16}, None, kExtBf16},
    {{F32}, 1, {F32}, None, kProFp},
};

constexpr TypeRow kTypesTable[] = {
    {{I8, I8}, 2, {I8}, None, kProInt},
    {{I16, I16}, 2, {I32}, None, kExtInt16},
};
constexpr OperandFact kOperandsTable[] = {
    {0, kMax, kVariable},
    {1, 1, kConstant},
};

/// In the order of OpId.
constexpr OpFacts kFacts[] = {
    {kTypes1, kOperands1},          // ARGMAX
    {kTypes2, kOperands2},          // AVG_POOL2D
    {kTypes3, kOperands3},          // CONV2D
    {kTypes3, kOperands4},          // CONV3D
    {kTypes3, kOperands3},          // DEPTHWISE_CONV2D
    {kTypes4, kOperands5},          // FFT2D
    {kTypes5, kOperands6},          // MATMUL
    {kTypes6, kOperands7},          // MAX_POOL2D
    {kTypes7, kOperands8},          // RFFT2D
    {kTypes3, kOperands3},          // TRANSPOSE_CONV2D
    {kTypes6, kOperands9},          // CLAMP
    {kTypes8, kOperands9},          // ERF
    {kTypes8, kOperands9},          // SIGMOID
    {kTypes8, kOperands9},          // TANH
    {kTypes9, kOperands10},         // ADD
    {kTypes10, kOperands10},        // ARITHMETIC_RIGHT_SHIFT
    {kTypes10, kOperands10},        // BITWISE_AND
    {kTypes10, kOperands10},        // BITWISE_OR
    {kTypes10, kOperands10},        // BITWISE_XOR
    {kTypes11, kOperands10},        // INTDIV
    {kTypes12, kOperands10},        // LOGICAL_AND
    {kTypes13, kOperands10},        // LOGICAL_LEFT_SHIFT
    {kTypes13, kOperands10},        // LOGICAL_RIGHT_SHIFT
    {kTypes12, kOperands10},        // LOGICAL_OR
    {kTypes12, kOperands10},        // LOGICAL_XOR
    {kTypes14, kOperands10},        // MAXIMUM
    {kTypes14, kOperands10},        // MINIMUM
    {kTypes15, kOperands11},        // MUL
    {kTypes16, kOperands10},        // POW
    {kTypes9, kOperands10},         // SUB
    {kTypesTable, kOperandsTable},  // TABLE
    {kTypes17, kOperands9},         // ABS
    {kTypes18, kOperands9},         // BITWISE_NOT
    {kTypes8, kOperands9},          // CEIL
    {kTypes19, kOperands9},         // CLZ
    {kTypes8, kOperands9},          // COS
    {kTypes8, kOperands9},          // EXP
    {kTypes8, kOperands9},          // FLOOR
    {kTypes8, kOperands9},          // LOG
    {kTypes20, kOperands9},         // LOGICAL_NOT
    {kTypes21, kOperands12},        // NEGATE
    {kTypes8, kOperands9},          // RECIPROCAL
    {kTypes8, kOperands9},          // RSQRT
    {kTypes8, kOperands9},          // SIN
    {kTypes22, kOperands13},        // SELECT
    {kTypes23, kOperands10},        // EQUAL
    {kTypes23, kOperands10},        // GREATER
    {kTypes23, kOperands10},        // GREATER_EQUAL
    {kTypes20, kOperands1},         // REDUCE_ALL
    {kTypes20, kOperands1},         // REDUCE_ANY
    {kTypes24, kOperands1},         // REDUCE_MAX
    {kTypes24, kOperands1},         // REDUCE_MIN
    {kTypes8, kOperands1},          // REDUCE_PRODUCT
    {kTypes17, kOperands1},         // REDUCE_SUM
    {kTypes25, kOperands1},         // CONCAT
    {kTypes26, kOperands14},        // PAD
    {kTypes27, kOperands15},        // RESHAPE
    {kTypes28, kOperands1},         // REVERSE
    {kTypes29, kOperands14},        // SLICE
    {kTypes27, kOperands16},        // TILE
    {kTypes28, kOperands1},         // TRANSPOSE
    {kTypes30, kOperands17},        // GATHER
    {kTypes31, kOperands18},        // SCATTER
    {kTypes32, kOperands19},        // RESIZE
    {kTypes33, kOperands9},         // CAST
    {kTypes34, kOperands20},        // RESCALE
    {kTypes35, kOperands9},         // IDENTITY
    {{}, {}},                       // CUSTOM
    {{}, {}},                       // COND_IF
    {{}, {}},                       // WHILE_LOOP
    {{}, {}},                       // VARIABLE
    {{}, {}},                       // VARIABLE_WRITE
    {{}, {}},                       // VARIABLE_READ
};

}  // namespace

const OpFacts& factsOf(const ir::OpDef& def) {
  CARINA_CHECK(def.id < std::size(kFacts), "not an operator of the tosa dialect");
  return kFacts[def.id];
}

}  // namespace carina::tosa
