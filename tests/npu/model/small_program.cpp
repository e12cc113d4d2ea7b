// SPDX-License-Identifier: Apache-2.0
// SmallProgram (small_program.hpp).
#include "npu/model/small_program.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "npu/isa/blockconfig.hpp"

namespace carina::test {

using namespace npu;

SmallProgram::SmallProgram(const char* target)
    : machine_(*makeMachine(target, "", "")), writer_(*machine_.target) {}

FeatureMap SmallProgram::map(int h, int w, int c, ElementType type, const std::vector<int64_t>& values) {
  const int bytes = elementBytes(type);
  FeatureMap map;
  map.height = map.height0 = map.height1 = h;
  map.width = map.width0 = w;
  map.depth = c;
  map.type = type;
  map.region = 1;
  map.base[0] = arena_.size();
  map.strideC = bytes;
  map.strideX = int64_t{c} * bytes;
  map.strideY = map.strideX * w;
  for (const int64_t value : values) {
    std::byte raw[8];
    std::memcpy(raw, &value, 8);
    arena_.insert(arena_.end(), raw, raw + bytes);
  }
  arena_.resize((arena_.size() + 31) / 16 * 16);
  return map;
}

KernelOperation SmallProgram::copy(int h, int w, int c, ElementType type,
                                   const std::vector<int64_t>& values) {
  KernelOperation op;
  op.kind = OperationKind::Pool;
  op.pool = target().isU85() ? PoolMode::Sum : PoolMode::Average;
  op.globalScale = true;
  op.ofmScale = {1, 0, 0, Rounding::Natural};
  op.ifm = map(h, w, c, type, values);
  op.ofm = map(h, w, c, type, std::vector<int64_t>(values.size(), 0));
  op.activation.min = -128;
  op.activation.max = 127;
  return op;
}

void SmallProgram::add(Operation operation) {
  if (auto* kernel = std::get_if<KernelOperation>(&operation)) {
    if (kernel->block == BlockShape{}) {
      kernel->microblock = preferredMicroblock(target(), *kernel);
      const BlockShape ub = target().isU85() ? kernel->microblock : microblocks(target()).front();
      kernel->block = {ub.h, ub.w, std::max(ub.c, 16)};
    }
    if (!target().isU85() && kernel->ifmBufferEnd == 0) {
      if (const auto layout = BlockRules(target(), *kernel).shram(kernel->block)) {
        kernel->ifmBufferEnd = layout->ifmEnd;
        kernel->ifm2BufferStart = layout->ifm2Start;
        kernel->accumulatorStart = layout->accumulatorStart;
      }
    }
  }
  const Status status = writer_.add(operation);
  if (!status.ok()) ADD_FAILURE() << Status(status).error().str();
}

std::string SmallProgram::run(const ModelOptions& options) {
  add(Stop{});
  const RegionBytes regions[] = {{}, {arena_, true}};
  result_ = runStream(writer_.words(), machine_, regions, options);
  return result_.fault ? result_.fault->str() : "";
}

std::vector<int64_t> SmallProgram::values(const FeatureMap& map) const {
  const auto bytes = static_cast<size_t>(elementBytes(map.type));
  std::vector<int64_t> values;
  for (int64_t i = 0; i < int64_t{map.height} * map.width * map.depth; ++i) {
    uint64_t raw = 0;
    std::memcpy(&raw, arena_.data() + map.base[0] + static_cast<size_t>(i) * bytes, bytes);
    const int unused = 64 - static_cast<int>(bytes) * 8;
    values.push_back(isSigned(map.type) ? static_cast<int64_t>(raw << unused) >> unused
                                        : static_cast<int64_t>(raw));
  }
  return values;
}

}  // namespace carina::test
