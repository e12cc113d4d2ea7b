// SPDX-License-Identifier: Apache-2.0
// Guest instructions per second of the Cortex-M core.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "cpu_m/core.hpp"

namespace {

using namespace carina::cpu_m;

constexpr uint32_t kCode = 0x10000000, kData = 0x20000000, kSize = 0x10000;
constexpr uint32_t kFeatures = kDsp | kFloat | kDouble | kHalf | kV81 | kMve | kMveFloat;

struct Free {
  void operator()(uint8_t* p) const { std::free(p); }
};

/// Runs an endless program, a million cycles per iteration; the argument is the pipeline.
void run(benchmark::State& state, const std::vector<uint16_t>& code) {
  const std::unique_ptr<uint8_t, Free> memory(static_cast<uint8_t*>(std::aligned_alloc(4096, 2 * kSize)));
  std::memset(memory.get(), 1, 2 * kSize);
  std::memcpy(memory.get(), code.data(), 2 * code.size());
  Core core(kFeatures, static_cast<Pipeline>(state.range(0)));
  core.memory.mapRam(kCode, kSize, memory.get());
  core.memory.mapRam(kData, kSize, memory.get() + kSize);
  core.setCoprocessorAccess(0x00f00000);
  core.setDefaultFpscr(0x00040000);
  core.state.pc = kCode;
  core.state.r[13] = kData + kSize;
  const uint64_t before = core.instructions();
  for (auto _ : state) {
    if (core.run(1'000'000).reason != StopReason::Budget) {
      state.SkipWithError("the code stopped");
      break;
    }
  }
  state.counters["instructions"] =
      benchmark::Counter(static_cast<double>(core.instructions() - before), benchmark::Counter::kIsRate);
}

/// A bitwise CRC: arithmetic and short branches.
void crc(benchmark::State& state) {
  run(state, {
                 0xf04f, 0x5400,  // mov.w r4, #0x20000000
                 0x2000,          // movs r0, #0
                 0xf44f, 0x6580,  // mov.w r5, #1024
                 0x5d61,          // byte: ldrb r1, [r4, r5]
                 0x4048,          // eors r0, r1
                 0x2208,          // movs r2, #8
                 0x0840,          // bit: lsrs r0, r0, #1
                 0xbf28,          // it cs
                 0xf480, 0x4020,  // eorcs.w r0, r0, #0xa000
                 0x3a01,          // subs r2, #1
                 0xd1f9,          // bne bit
                 0x3d01,          // subs r5, #1
                 0xd1f4,          // bne byte
                 0xe7ee,          // b .. (movs r0)
             });
}

/// Dot product of 16-bit numbers: loads and multiply-accumulate in a low-overhead loop.
void dotProduct(benchmark::State& state) {
  run(state, {
                 0xf04f, 0x5400,  // mov.w r4, #0x20000000
                 0xf44f, 0x7580,  // mov.w r5, #256
                 0x4626,          // again: mov r6, r4
                 0x2000,          // movs r0, #0
                 0xf045, 0xe001,  // dls lr, r5
                 0xf856, 0x1b04,  // loop: ldr r1, [r6], #4
                 0xf8d6, 0x2100,  // ldr.w r2, [r6, #256]
                 0xfb21, 0x0002,  // smlad r0, r1, r2, r0
                 0xf00f, 0xc009,  // le lr, loop
                 0xe7f2,          // b again
             });
}

/// Calls that save registers on the stack.
void calls(benchmark::State& state) {
  run(state, {
                 0x2005,          // movs r0, #5
                 0xf000, 0xf801,  // bl f
                 0xe7fb,          // b .. (movs)
                 0xb5f0,          // f: push {r4-r7, lr}
                 0x4604,          // mov r4, r0
                 0x3401,          // adds r4, #1
                 0x4620,          // mov r0, r4
                 0xbdf0,          // pop {r4-r7, pc}
             });
}

/// Dot product of bytes in vectors: two loads and a multiply-accumulate across the vector, in a loop.
void vectorDotProduct(benchmark::State& state) {
  run(state, {
                 0xf04f, 0x5400,  // mov.w r4, #0x20000000
                 0xf04f, 0x0540,  // mov.w r5, #64
                 0x4626,          // again: mov r6, r4
                 0x2000,          // movs r0, #0
                 0xf045, 0xe001,  // dls lr, r5
                 0xecb6, 0x1e10,  // loop: vldrb.u8 q0, [r6], #16
                 0xed96, 0x3e40,  // vldrb.u8 q1, [r6, #64]
                 0xeef0, 0x0f22,  // vmladava.s8 r0, q0, q1
                 0xf00f, 0xc009,  // le lr, loop
                 0xe7f2,          // b again
             });
}

/// Float, saturating and shifting vector instructions, eight to a loop.
void vectorArithmetic(benchmark::State& state) {
  run(state, {
                 0xf04f, 0x5400,  // mov.w r4, #0x20000000
                 0xf04f, 0x0540,  // mov.w r5, #64
                 0x4620,          // again: mov r0, r4
                 0x4621,          // mov r1, r4
                 0xf045, 0xe001,  // dls lr, r5
                 0xed90, 0x1f00,  // loop: vldrw.u32 q0, [r0]
                 0xed91, 0x3f00,  // vldrw.u32 q1, [r1]
                 0xef00, 0x4c52,  // vfma.f32 q2, q0, q1
                 0xef04, 0x6d40,  // vadd.f32 q3, q2, q0
                 0xef00, 0x8642,  // vmax.s8 q4, q0, q1
                 0xff20, 0xab42,  // vqrdmulh.s32 q5, q0, q1
                 0xef22, 0xc440,  // vshl.s32 q6, q0, q1
                 0xef9d, 0xe250,  // vrshr.s16 q7, q0, #3
                 0xf00f, 0xc013,  // le lr, loop
                 0xe7e8,          // b again
             });
}

void pipelines(benchmark::internal::Benchmark* bench) {
  for (const Pipeline pipeline : {Pipeline::None, Pipeline::M55, Pipeline::M85})
    bench->Arg(static_cast<int64_t>(pipeline));
}

}  // namespace

BENCHMARK(crc)->Apply(pipelines);
BENCHMARK(dotProduct)->Apply(pipelines);
BENCHMARK(calls)->Apply(pipelines);
BENCHMARK(vectorDotProduct)->Apply(pipelines);
BENCHMARK(vectorArithmetic)->Apply(pipelines);
