// SPDX-License-Identifier: Apache-2.0
#include "compiler/schedule/stripes.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "base/shape.hpp"

namespace carina::compiler {
namespace {

bool hasWindow(const npu::KernelOperation& op) {
  return op.kind != npu::OperationKind::Elementwise;
}

/// Rows [begin, end) of a map. `held` > 0: memory holds that many rows and wraps.
void takeMapRows(npu::FeatureMap& map, RowRange rows, int32_t held) {
  map.height = map.height0 = map.height1 = rows.end - rows.begin;
  if (map.storage == npu::Storage::Chained) return;
  const uint64_t start = map.base[0];
  const int32_t first = held > 0 ? rows.begin % held : rows.begin;
  map.base[0] = start + static_cast<uint64_t>(first * map.strideY);
  if (held > 0 && first + map.height > held) {
    map.height0 = map.height1 = held - first;
    map.base[2] = start;
  }
}

}  // namespace

bool canStripe(const npu::KernelOperation& op) {
  if (op.transpose != npu::Transpose::HWC || op.reverse != npu::Reverse::None) return false;
  if (op.upscale != npu::Upscale::None || op.weightsFromIfm2 || op.inTwoRows) return false;
  if (op.accumulatorInput != npu::AccumulatorInput::Reset || !op.accumulatorOutput) return false;
  switch (op.kind) {
    case npu::OperationKind::Conv:
    case npu::OperationKind::Depthwise:
    case npu::OperationKind::Elementwise:
      return true;
    case npu::OperationKind::Pool:
      // U55 and U65 divide by the number of elements only if a padding register is set: with padding only
      // above or below, stripes in between would be sums.
      if (op.pool == npu::PoolMode::Average && op.padding.top + op.padding.bottom > 0 &&
          op.padding.left + op.padding.right == 0)
        return false;
      return op.pool == npu::PoolMode::Max || op.pool == npu::PoolMode::Average ||
             op.pool == npu::PoolMode::Sum || op.pool == npu::PoolMode::Min;
    case npu::OperationKind::Resize:
      return false;
  }
  return false;
}

RowRange inputRows(const npu::KernelOperation& op, bool second, int32_t begin, int32_t end) {
  const npu::FeatureMap& map = second ? *op.ifm2 : op.ifm;
  if (!hasWindow(op)) {
    // A broadcast axis has only index 0.
    return map.height == 1 ? RowRange{0, 1} : RowRange{begin, end};
  }
  const int32_t first = begin * op.kernel.strideY - op.padding.top;
  const int32_t last = (end - 1) * op.kernel.strideY + op.kernel.dilatedHeight() - op.padding.top;
  return {std::clamp(first, 0, map.height), std::clamp(last, 0, map.height)};
}

void takeRows(npu::KernelOperation& op, int32_t begin, int32_t end, const HeldRows& held) {
  const auto input = [&](npu::FeatureMap& map, bool second, bool scalar, int32_t rows) {
    if (scalar || map.storage == npu::Storage::None) return;
    const RowRange range = inputRows(op, second, begin, end);
    CARINA_CHECK(range.begin < range.end, "a stripe reads padding only");
    takeMapRows(map, range, rows);
  };
  if (hasWindow(op)) {
    const int32_t last = (end - 1) * op.kernel.strideY + op.kernel.dilatedHeight() - op.padding.top;
    const int32_t bottom = std::max(0, last - op.ifm.height);
    const int32_t top = std::max(0, op.padding.top - begin * op.kernel.strideY);
    input(op.ifm, false, false, held.ifm);
    op.padding.top = top;
    op.padding.bottom = bottom;
  } else {
    const npu::Elementwise& e = op.elementwise;
    npu::FeatureMap ifm = op.ifm;  // the rows of the second operand are derived from the whole operation
    input(ifm, false, e.ifmBroadcast.scalar, held.ifm);
    if (op.ifm2) input(*op.ifm2, true, e.ifm2Broadcast.scalar, held.ifm2);
    op.ifm = ifm;
  }
  takeMapRows(op.ofm, {begin, end}, held.ofm);
}

std::optional<StripePlan> planStripes(std::span<const StripedPass> passes, int32_t rows) {
  const auto count = static_cast<int32_t>(passes.size());
  const auto at = [&](int32_t p) -> const StripedPass& { return passes[static_cast<size_t>(p)]; };
  const auto height = [&](int32_t p) { return at(p).operation->ofm.height; };
  StripePlan plan;
  plan.held.assign(passes.size(), 0);
  std::vector<int32_t> done(passes.size(), 0), need(passes.size(), 0);
  std::vector<bool> feeds(passes.size(), false);  // whether the cascade reads its result
  const auto forEachWriter = [&](int32_t producer, const auto& visit) {
    for (; producer >= 0; producer = at(producer).joined) visit(static_cast<size_t>(producer));
  };
  for (const StripedPass& pass : passes) {
    for (const int32_t producer : {pass.ifmProducer, pass.ifm2Producer})
      forEachWriter(producer, [&](size_t writer) { feeds[writer] = true; });
  }
  const int32_t total = height(count - 1);
  for (int32_t end = std::min(rows, total);; end = std::min(end + rows, total)) {
    const bool last = end == total;
    for (int32_t p = count; p-- > 0;) {
      auto& wanted = need[static_cast<size_t>(p)];
      // Results that are only read outside keep pace with the last pass.
      if (last) {
        wanted = height(p);
      } else if (p == count - 1 || !feeds[static_cast<size_t>(p)]) {
        wanted = std::max<int32_t>(wanted, static_cast<int32_t>(int64_t{height(p)} * end / total));
      }
      wanted = std::max(wanted, done[static_cast<size_t>(p)]);
      const auto ask = [&](int32_t producer, bool second) {
        if (producer < 0 || wanted == 0) return;
        const int32_t until = inputRows(*at(p).operation, second, 0, wanted).end;
        forEachWriter(producer, [&](size_t writer) { need[writer] = std::max(need[writer], until); });
      };
      ask(at(p).ifmProducer, false);
      ask(at(p).ifm2Producer, true);
    }
    for (int32_t p = 0; p < count; ++p) {
      const int32_t begin = done[static_cast<size_t>(p)], until = need[static_cast<size_t>(p)];
      if (begin == until) continue;
      const RowRange window = inputRows(*at(p).operation, false, begin, until);
      if (window.begin >= window.end) return std::nullopt;
      plan.stripes.push_back({p, begin, until});
    }
    // From what the readers start with in this iteration to what the producer has written by now. Rows that
    // no reader needs (between the windows of large strides) have places of their own while they are written:
    // within an operation, the order of writes to the same place is undefined.
    for (int32_t p = 0; p < count; ++p) {
      const auto hold = [&](int32_t producer, bool second) {
        const int32_t begin = done[static_cast<size_t>(p)];
        if (producer < 0 || begin == height(p)) return;
        const int32_t lowest = inputRows(*at(p).operation, second, begin, begin + 1).begin;
        forEachWriter(producer, [&](size_t writer) {
          plan.held[writer] = std::max(plan.held[writer], need[writer] - std::min(lowest, done[writer]));
        });
      };
      hold(at(p).ifmProducer, false);
      hold(at(p).ifm2Producer, true);
    }
    done = need;
    if (last) break;
  }
  for (int32_t p = 0; p < count; ++p) {
    auto& held = plan.held[static_cast<size_t>(p)];
    held = held == 0 ? height(p) : std::min(held, height(p));
    if (at(p).joined >= 0) held = std::max(held, plan.held[static_cast<size_t>(at(p).joined)]);
  }
  for (int32_t p = count; p-- > 0;) {
    if (at(p).joined >= 0) plan.held[static_cast<size_t>(at(p).joined)] = plan.held[static_cast<size_t>(p)];
  }
  return plan;
}

}  // namespace carina::compiler
