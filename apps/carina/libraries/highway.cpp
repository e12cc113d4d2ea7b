// SPDX-License-Identifier: Apache-2.0
// The functions that Highway's headers call to choose between versions of a kernel: its shared library would
// bring a static initializer that measures the resolution of the processor's clock, which adds three
// milliseconds to every start.
#include <hwy/targets.h>

#if HWY_ARCH_X86
#include <cpuid.h>
#endif

namespace hwy {
namespace {

/// Among the compiled versions, those that this processor and system can run; HWY_AVX3_DL, for which nothing
/// is compiled here, is left out.
int64_t detected() {
#if HWY_ARCH_X86
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  const bool f16c = __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
  const bool lzcnt = __get_cpuid(0x80000001, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_LZCNT) != 0;
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("ssse3")) return 0;
  int64_t targets = HWY_SSSE3;
  if (!__builtin_cpu_supports("sse4.2") || !__builtin_cpu_supports("aes") ||
      !__builtin_cpu_supports("pclmul"))
    return targets;
  targets |= HWY_SSE4;
  // These also test whether the system preserves the wide registers.
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi") ||
      !__builtin_cpu_supports("bmi2") || !f16c || !lzcnt)
    return targets;
  targets |= HWY_AVX2;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512vl") ||
      !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512bw"))
    return targets;
  return targets | HWY_AVX3;
#else
  return 0;
#endif
}

}  // namespace

int64_t SupportedTargets() {
  static const int64_t targets = detected() | HWY_ENABLED_BASELINE;
  return targets;
}

ChosenTarget& GetChosenTarget() {
  static ChosenTarget chosen;
  return chosen;
}

}  // namespace hwy
