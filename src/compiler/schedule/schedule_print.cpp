// SPDX-License-Identifier: Apache-2.0
// Schedules in readable form: the dump, and why an arena is as large as it is.
#include <fmt/format.h>

#include "compiler/schedule/operation_builder.hpp"
#include "compiler/schedule/schedule.hpp"

namespace carina::compiler {
namespace {

std::string passName(const Pass& pass) {
  const auto& location = pass.node->location();
  return location && !location->name.empty() ? location->name : pass.node->result()->name;
}

}  // namespace

Error arenaTooLarge(const Schedule& schedule, int64_t limit) {
  int32_t peak = 0;
  int64_t most = -1;
  const auto each = [&](int32_t group, const auto& use) {
    for (const auto* placements : {&schedule.buffers, &schedule.staging}) {
      for (const Placement& placement : *placements) {
        if (placement.area == npu::Area::Arena && placement.live.first <= group &&
            group <= placement.live.last && placement.live.bytes > 0)
          use(placement, placements == &schedule.staging);
      }
    }
  };
  for (int32_t g = 0; g < static_cast<int32_t>(schedule.groups.size()); ++g) {
    int64_t sum = 0;
    each(g, [&](const Placement& placement, bool) { sum += placement.live.bytes; });
    if (sum > most) {
      most = sum;
      peak = g;
    }
  }
  const Group& group = schedule.groups[static_cast<size_t>(peak)];
  std::string live;
  each(peak, [&](const Placement& placement, bool staged) {
    const auto b = static_cast<size_t>(&placement - schedule.buffers.data());
    const std::string what = staged ? std::string("weights") : shapeText(schedule.storage->buffers[b].shape);
    live += fmt::format("{}{} bytes {}", live.empty() ? "" : ", ", placement.live.bytes, what);
  });
  const std::string last = passName(schedule.passes[static_cast<size_t>(group.last)]);
  return fail(Code::DoesNotFit,
              "the program needs an arena of {} bytes, but the limit is {}: live at {}{}: {}",
              schedule.arenaBytes, limit, passName(schedule.passes[static_cast<size_t>(group.first)]),
              group.last > group.first ? " to " + last : "", live)
      .withRemedy(
          "raise --arena-size, or use smaller feature maps there ('carina profile --memory-map' shows all of "
          "them)");
}

std::string print(const Schedule& schedule) {
  constexpr const char* kAreas[] = {"constants", "arena", "cache"};
  std::string text;
  for (size_t i = 0; i < schedule.passes.size(); ++i) {
    const Pass& pass = schedule.passes[i];
    text += fmt::format("pass {}: group {} {} {}", i, pass.group, pass.node->opName(), pass.node->where());
    if (pass.follows) text += ", chained";
    if (pass.stripeRows > 0) text += fmt::format(", stripes of {} rows", pass.stripeRows);
    if (!pass.isDma) {
      const auto& op = pass.operation;
      text += fmt::format(" {} ofm {}x{}x{} block {}x{}x{}", operationKindText(op), op.ofm.height,
                          op.ofm.width, op.ofm.depth, op.block.h, op.block.w, op.block.c);
      if (!pass.slices.empty()) {
        int64_t bytes = 0;
        for (const WeightSlice& slice : pass.slices) bytes += slice.bytes;
        text += fmt::format(" weights {} bytes in {} slices{}", bytes, pass.slices.size(),
                            pass.staged ? ", staged" : "");
        for (const Fetch& fetch : pass.weights.fetches) {
          text += fmt::format(" [{} bytes during {}]", fetch.bytes, fetch.during);
        }
        if (pass.weights.copyOf >= 0) text += fmt::format(" by pass {}", pass.weights.copyOf);
      }
    }
    text += "\n";
  }
  const auto line = [&](const char* what, const Placement& p, const std::string& extra) {
    text += fmt::format("{}: {} {:#x}..{:#x} groups {}..{}{}\n", what, kAreas[static_cast<size_t>(p.area)],
                        p.address, p.address + p.bytes, p.live.first, p.live.last, extra);
  };
  for (size_t b = 0; b < schedule.buffers.size(); ++b) {
    const Placement& placement = schedule.buffers[b];
    const Buffer& buffer = schedule.storage->buffers[b];
    if (placement.bytes == 0 || buffer.kind == BufferKind::Constant) continue;
    line("buffer", placement,
         fmt::format(" {} {}{}{}{}", dtypeName(buffer.dtype), shapeText(buffer.shape),
                     buffer.layout == npu::Layout::NHCWB16 ? " bricks" : "",
                     placement.heldRows > 0 ? fmt::format(", {} rows held", placement.heldRows) : "",
                     placement.takesOver >= 0 ? ", in place" : ""));
  }
  for (const Placement& placement : schedule.staging) line("staging", placement, "");
  for (const Placement& placement : schedule.homes) line("input", placement, " copied to the cache");
  text += fmt::format("arena {} bytes, cache {} bytes, constants {} bytes\n", schedule.arenaBytes,
                      schedule.cacheBytes, schedule.constants.size());
  return text;
}

}  // namespace carina::compiler
