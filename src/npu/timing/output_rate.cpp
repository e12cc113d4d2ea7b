// SPDX-License-Identifier: Apache-2.0
// Rates of the units (output_rate.hpp).
#include "npu/timing/output_rate.hpp"

#include <algorithm>

#include "npu/targets/mac_array.hpp"

namespace carina::npu::timing {
namespace {

bool clampsBelowType(const KernelOperation& op) {
  if (elementBytes(op.ofm.type) > 2) return false;
  return op.activation.min > elementMin(op.ofm.type) || op.activation.max < elementMax(op.ofm.type);
}

}  // namespace

double outputCyclesPerElement(const Target& target, const KernelOperation& op) {
  const bool elementwise = op.kind == OperationKind::Elementwise;
  const bool binary = elementwise && !isUnary(op.elementwise.mode);
  const int32_t ifmBytes = elementBytes(op.ifm.type), ofmBytes = elementBytes(op.ofm.type);
  const ElementwiseMode mode = op.elementwise.mode;
  const OutputRates& rates = macArrayOf(target).rates;
  if (!target.isU85()) {
    size_t index = 7;
    if (elementwise && ifmBytes == 4) {
      index = binary ? 1 : 0;
    } else if (elementwise && mode == ElementwiseMode::Mul) {
      index = ofmBytes == 4 ? 2 : 3;
    } else if (!elementwise && op.accumulator == AccumulatorFormat::Int40) {
      index = 3;
    } else if (elementwise && (mode == ElementwiseMode::Add || mode == ElementwiseMode::Sub)) {
      index = 5;
    } else if (op.kind == OperationKind::Pool && op.pool == PoolMode::Max) {
      index = 6;
    }
    const size_t activation = op.activation.table != Table::None ? 0 : clampsBelowType(op) ? 1 : 2;
    return std::max(rates.output[index], rates.activation[activation]);
  }
  double output;
  if (elementwise && mode == ElementwiseMode::Div) {
    output = 33;
  } else if (op.ofm.storage == Storage::Chained && (ifmBytes == 4 || ofmBytes == 4)) {
    output = rates.output[4];
  } else if (ofmBytes == 8) {
    output = rates.output[3];
  } else if (binary && ifmBytes == 4) {
    output = rates.output[ofmBytes == 4 ? 5 : 4];
  } else {
    output = rates.output[ofmBytes == 4 ? 2 : ofmBytes == 2 ? 1 : 0];
  }
  const bool swapsWidth = op.transpose == Transpose::WHC || op.transpose == Transpose::WCH ||
                          op.transpose == Transpose::CWH || op.reverse == Reverse::W;
  const bool extra = op.activation.table != Table::None || clampsBelowType(op) ||
                     op.transpose != Transpose::HWC || op.reverse != Reverse::None;
  return extra ? std::max(output, rates.activation[swapsWidth ? 1 : 0]) : output;
}

double poolCyclesPerTap(const Target& target, ElementType input, const Rules& rules) {
  const bool smallest = !target.isU85() && target.macs == 32;
  return smallest ? 1.0 : rules.poolCyclesPerTapAndByte * elementBytes(input);
}

}  // namespace carina::npu::timing
