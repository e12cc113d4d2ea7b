// SPDX-License-Identifier: Apache-2.0
// What would make a layer faster, derived from the busy times of its heaviest operation. The gain is the
// distance to the next limit of the layer.
#include <algorithm>

#include "report/profile.hpp"
#include "report/text.hpp"

namespace carina::report {
namespace {

using npu::BoundBy;

std::string_view memoryName(const npu::Machine& machine, size_t port) {
  return npu::memoryKindName(machine.system.ports[port].kind);
}

/// The busier port of an operation.
size_t busyPort(const npu::OperationCost& cost) {
  return cost.port[0] >= cost.port[1] ? 0 : 1;
}

std::string macAdvice(const npu::KernelOperation& op, const npu::Target& target) {
  if (op.kind == npu::OperationKind::Depthwise) {
    return "depthwise convolutions keep few multipliers busy: fewer channels, or the stride moved one layer "
           "earlier";
  }
  if (op.kind == npu::OperationKind::Pool) {
    return "the pool reads every element of its windows: a smaller window or a larger stride";
  }
  const int32_t depth = op.ifm.depth;
  if (depth % 16 != 0 && depth < 64) {
    return fmt::format(
        "the input has {} channels, the multipliers work on groups of 16: {} more cost nothing", depth,
        16 - depth % 16);
  }
  const npu::BlockShape ub =
      target.architecture().choosesMicroblocks ? op.microblock : npu::BlockShape{1, 2, 8};
  if (ub.w > 0 && op.ofm.width % ub.w != 0 && op.ofm.width < 16) {
    return fmt::format(
        "rows of {} elements leave part of the multipliers idle (groups of {}); an even width helps",
        op.ofm.width, ub.w);
  }
  return "the multipliers are the limit: fewer channels, a smaller kernel, or a target with more MACs";
}

std::string outputAdvice(const npu::KernelOperation& op, const npu::OperationCost& cost) {
  if (op.kind == npu::OperationKind::Elementwise) {
    return "one result at a time through the output unit: fold it into the preceding layer, or use fewer "
           "channels";
  }
  if (op.kind == npu::OperationKind::Pool)
    return "data is only moved: a layout or layer order without this copy";
  const double perElement =
      static_cast<double>(cost.macs) /
      std::max<double>(1.0, static_cast<double>(op.ofm.height) * op.ofm.width * op.ofm.depth);
  return fmt::format(
      "{:.0f} MACs per result keep the output unit busier than the multipliers: fewer output channels, or "
      "more work per result",
      perElement);
}

/// What limits the operation next once `lifted` no longer does.
npu::Cycles nextLimit(const npu::OperationCost& cost, BoundBy lifted) {
  npu::Cycles next = 0;
  const size_t busy = busyPort(cost);
  if (lifted == BoundBy::Memory || lifted == BoundBy::Weights)
    return std::max({cost.mac, cost.output, cost.port[1 - busy]});
  if (lifted != BoundBy::Mac) next = std::max(next, cost.mac);
  if (lifted != BoundBy::Output) next = std::max(next, cost.output);
  return std::max({next, cost.port[0], cost.port[1]});
}

/// Rows that are selected by products with a whole table, for want of indexed transfers.
bool readsWholeTable(const pipeline::Layer& layer, const npu::Machine& machine) {
  return layer.op.starts_with("aten.embedding.") && !machine.target->architecture().indexedDma;
}

}  // namespace

Advice adviceFor(const pipeline::ProfiledPart& part, const pipeline::Layer& layer,
                 const npu::Machine& machine) {
  Advice advice;
  if (readsWholeTable(layer, machine)) {
    advice.gain = layer.cycles;
    advice.text =
        "this NPU cannot read single rows of a table, so that a product with the whole table selects them; "
        "the CPU copies just the rows (--cpu-op embedding)";
    return advice;
  }
  if (layer.bound == BoundBy::Dma) {
    advice.gain = layer.cycles - layer.compute;
    if (layer.compute == 0 || advice.gain <= 0) return advice;
    advice.text = fmt::format(
        "waits {} cycles for transfers from {}: fewer weights (pruning and clustering shrink them), or a "
        "memory mode with constants in faster memory",
        countText(advice.gain), memoryName(machine, machine.memory.constantsPort));
    return advice;
  }
  const pipeline::ProfiledOperation& heaviest = part.operations[layer.heaviest];
  const auto* op = std::get_if<npu::KernelOperation>(&heaviest.operation);
  const npu::OperationCost& cost = heaviest.timing.cost;
  if (!op || cost.total <= 0) return advice;
  // The layer's other operations are assumed to resemble the heaviest.
  const double scale = static_cast<double>(layer.compute) / static_cast<double>(cost.total);
  const npu::Cycles saved = cost.total - std::min(cost.total, nextLimit(cost, layer.bound));
  advice.gain = static_cast<npu::Cycles>(static_cast<double>(saved) * scale);
  const auto port = busyPort(cost);
  switch (layer.bound) {
    case BoundBy::Mac:
      advice.text = macAdvice(*op, *machine.target);
      break;
    case BoundBy::Output:
      advice.text = outputAdvice(*op, cost);
      break;
    case BoundBy::Weights:
      if (cost.total <= cost.npu) {
        advice.text =
            "the weight decoder is slower than the multipliers: larger maps use each weight more often";
        advice.gain = 0;
        break;
      }
      advice.text = fmt::format(
          "{} of weights come through {} for {} MACs each: fewer weights, or more positions per weight "
          "(batching, larger maps)",
          bytesText(cost.traffic[port].readBytes), memoryName(machine, port),
          cost.traffic[port].readBytes > 0 ? cost.macs / cost.traffic[port].readBytes : 0);
      break;
    case BoundBy::Memory:
      advice.text = fmt::format(
          "{} of feature maps go through {}: keep them in faster memory (memory mode), use fewer "
          "channels, or 8 instead of 16 bits",
          bytesText(cost.traffic[port].readBytes + cost.traffic[port].writeBytes), memoryName(machine, port));
      break;
    case BoundBy::Latency:
      advice.text =
          "too small to fill the pipeline: its time is start-up latency; merge it with its neighbours";
      break;
    case BoundBy::Dma:
      break;
  }
  return advice;
}

}  // namespace carina::report
