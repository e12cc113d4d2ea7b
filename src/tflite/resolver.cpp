// SPDX-License-Identifier: Apache-2.0
#include "tflite/resolver.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <utility>

namespace carina::tflite {
namespace {

/// Built-in operators with kernels, sorted.
constexpr auto kKernels = std::to_array<std::string_view>({"ABS",
                                                           "ADD",
                                                           "ADD_N",
                                                           "ARG_MAX",
                                                           "ARG_MIN",
                                                           "ASSIGN_VARIABLE",
                                                           "AVERAGE_POOL_2D",
                                                           "BATCH_MATMUL",
                                                           "BATCH_TO_SPACE_ND",
                                                           "BROADCAST_ARGS",
                                                           "BROADCAST_TO",
                                                           "CALL_ONCE",
                                                           "CAST",
                                                           "CEIL",
                                                           "CONCATENATION",
                                                           "CONV_2D",
                                                           "COS",
                                                           "CUMSUM",
                                                           "DEPTHWISE_CONV_2D",
                                                           "DEPTH_TO_SPACE",
                                                           "DEQUANTIZE",
                                                           "DIV",
                                                           "DYNAMIC_UPDATE_SLICE",
                                                           "ELU",
                                                           "EMBEDDING_LOOKUP",
                                                           "EQUAL",
                                                           "EXP",
                                                           "EXPAND_DIMS",
                                                           "FILL",
                                                           "FLOOR",
                                                           "FLOOR_DIV",
                                                           "FLOOR_MOD",
                                                           "FULLY_CONNECTED",
                                                           "GATHER",
                                                           "GATHER_ND",
                                                           "GREATER",
                                                           "GREATER_EQUAL",
                                                           "HARD_SWISH",
                                                           "IF",
                                                           "L2_NORMALIZATION",
                                                           "L2_POOL_2D",
                                                           "LEAKY_RELU",
                                                           "LESS",
                                                           "LESS_EQUAL",
                                                           "LOG",
                                                           "LOGICAL_AND",
                                                           "LOGICAL_NOT",
                                                           "LOGICAL_OR",
                                                           "LOGISTIC",
                                                           "LOG_SOFTMAX",
                                                           "MAXIMUM",
                                                           "MAX_POOL_2D",
                                                           "MEAN",
                                                           "MINIMUM",
                                                           "MIRROR_PAD",
                                                           "MUL",
                                                           "NEG",
                                                           "NOT_EQUAL",
                                                           "PACK",
                                                           "PAD",
                                                           "PADV2",
                                                           "PRELU",
                                                           "QUANTIZE",
                                                           "READ_VARIABLE",
                                                           "REDUCE_ALL",
                                                           "REDUCE_MAX",
                                                           "REDUCE_MIN",
                                                           "RELU",
                                                           "RELU6",
                                                           "RESHAPE",
                                                           "RESIZE_BILINEAR",
                                                           "RESIZE_NEAREST_NEIGHBOR",
                                                           "REVERSE_V2",
                                                           "ROUND",
                                                           "RSQRT",
                                                           "SELECT_V2",
                                                           "SHAPE",
                                                           "SIN",
                                                           "SLICE",
                                                           "SOFTMAX",
                                                           "SPACE_TO_BATCH_ND",
                                                           "SPACE_TO_DEPTH",
                                                           "SPLIT",
                                                           "SPLIT_V",
                                                           "SQRT",
                                                           "SQUARE",
                                                           "SQUARED_DIFFERENCE",
                                                           "SQUEEZE",
                                                           "STRIDED_SLICE",
                                                           "SUB",
                                                           "SUM",
                                                           "SVDF",
                                                           "TANH",
                                                           "TRANSPOSE",
                                                           "TRANSPOSE_CONV",
                                                           "UNIDIRECTIONAL_SEQUENCE_LSTM",
                                                           "UNPACK",
                                                           "VAR_HANDLE",
                                                           "WHILE",
                                                           "ZEROS_LIKE"});

/// Methods whose names do not follow from the operator's.
constexpr auto kIrregular = std::to_array<std::pair<std::string_view, std::string_view>>(
    {{"AVERAGE_POOL_2D", "AveragePool2D"},
     {"BATCH_MATMUL", "BatchMatMul"},
     {"CONV_2D", "Conv2D"},
     {"CUMSUM", "CumSum"},
     {"DEPTHWISE_CONV_2D", "DepthwiseConv2D"},
     {"L2_POOL_2D", "L2Pool2D"},
     {"MAX_POOL_2D", "MaxPool2D"},
     {"PADV2", "PadV2"},
     {"UNIDIRECTIONAL_SEQUENCE_LSTM", "UnidirectionalSequenceLSTM"}});

/// Converts "LOG_SOFTMAX" to "LogSoftmax".
std::string methodName(std::string_view name) {
  for (const auto& [op, method] : kIrregular) {
    if (op == name) return std::string(method);
  }
  std::string text;
  bool first = true;
  for (const char letter : name) {
    if (letter != '_') text += static_cast<char>(first ? letter : std::tolower(letter));
    first = letter == '_';
  }
  return text;
}

}  // namespace

std::optional<std::string> resolverCall(const Operator& op) {
  if (op.custom && op.name == "ethos-u") return "AddEthosU()";
  if (op.custom) return fmt::format("AddCustom(\"{}\", registration)", op.name);
  if (!std::binary_search(kKernels.begin(), kKernels.end(), std::string_view(op.name))) return std::nullopt;
  return "Add" + methodName(op.name) + "()";
}

}  // namespace carina::tflite
