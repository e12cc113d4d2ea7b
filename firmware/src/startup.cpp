// SPDX-License-Identifier: Apache-2.0
// From reset to the runner: vectors, memory, floating point, faults.
#include "console.hpp"
#include "cortex_m.hpp"
#include "firmware/app.hpp"
#include "stack.hpp"

// Symbols that the linker script defines.
extern "C" {
extern uint32_t linkDataBegin[], linkDataEnd[], linkDataImage[], linkZeroBegin[], linkZeroEnd[];
extern uint32_t linkStackLimit[], linkStackTop[];
extern void (*linkConstructorsBegin[])();
extern void (*linkConstructorsEnd[])();

[[noreturn]] void resetHandler();
[[noreturn]] void faultHandler();
/// Defined by the code that uses them; otherwise the interrupt is never enabled.
[[gnu::weak]] void npuInterruptHandler();
[[gnu::weak]] void tickHandler();

// The C library requests heap here, which nothing may do.
[[noreturn]] void* _sbrk(ptrdiff_t) {
  __builtin_trap();
}
}

namespace carina::firmware {
namespace {

using Handler = void (*)();
constexpr uint32_t kSystemVectors = 16;
constexpr uint32_t kInterrupts = 64;

struct VectorTable {
  uint32_t* stack;
  Handler handlers[kSystemVectors - 1 + kInterrupts];
};

constexpr size_t vector(uint32_t exception) {
  return exception - 1;
}

constexpr VectorTable makeVectors() {
  VectorTable table = {linkStackTop, {}};
  for (Handler& handler : table.handlers) handler = faultHandler;
  table.handlers[vector(1)] = resetHandler;
  table.handlers[vector(15)] = tickHandler;
  table.handlers[vector(kSystemVectors + kCorstone300.npuInterrupt)] = npuInterruptHandler;
  table.handlers[vector(kSystemVectors + kCorstone320.npuInterrupt)] = npuInterruptHandler;
  return table;
}
[[gnu::section(".vectors"), gnu::used]] constexpr VectorTable kVectors = makeVectors();

constexpr uint32_t kUnusedStack = 0xa5a5a5a5u;

[[noreturn, gnu::noinline]] void start() {
  for (uint32_t *from = linkDataImage, *to = linkDataBegin; to < linkDataEnd;) *to++ = *from++;
  for (uint32_t* to = linkZeroBegin; to < linkZeroEnd;) *to++ = 0;
  for (Handler* constructor = linkConstructorsBegin; constructor < linkConstructorsEnd; ++constructor)
    (*constructor)();
  openConsole(kApp.platform);
  startCycleCounter();
  enableInterrupts();
  finish(kApp.platform, kApp.run(kApp));
}

}  // namespace

size_t stackBytes() {
  return static_cast<size_t>(linkStackTop - linkStackLimit) * sizeof(uint32_t);
}
size_t stackUsed() {
  const uint32_t* lowest = linkStackLimit;
  while (lowest < linkStackTop && *lowest == kUnusedStack) ++lowest;
  return static_cast<size_t>(linkStackTop - lowest) * sizeof(uint32_t);
}

}  // namespace carina::firmware

extern "C" {

using namespace carina::firmware;

void resetHandler() {
  disableInterrupts();
  mmio(scs::kVectorTable) = reinterpret_cast<uintptr_t>(&kVectors);
  mmio(scs::kCoprocessors) = mmio(scs::kCoprocessors) | scs::kFloatingPointAccess;
  uint32_t* stack;
  __asm volatile("msr msplim, %1\n\tmov %0, sp" : "=r"(stack) : "r"(linkStackLimit));
  // Volatile, so that this does not become a memset(), which keeps its return address in what it fills.
  for (volatile uint32_t* word = linkStackLimit; word < stack; ++word) *word = kUnusedStack;
  barrier();
  start();
}

/// `frame` is what the exception stacked: r0-r3, r12, lr, pc, xpsr.
[[noreturn, gnu::used]] void faultReport(const uint32_t* frame) {
  uint32_t exception;
  __asm volatile("mrs %0, ipsr" : "=r"(exception));
  const uint32_t link = frame[5], pc = frame[6], status = frame[7];
  openConsole(kApp.platform);
  print("Hard fault. irq=", static_cast<int32_t>(exception) - 16, ", pc=", Hex{pc}, ", lr=", Hex{link},
        ", xpsr=", Hex{status}, ", sp=", Hex{static_cast<uint32_t>(reinterpret_cast<uintptr_t>(frame))},
        ", cfsr=", Hex{mmio(scs::kFaultStatus)}, ", address=", Hex{mmio(scs::kFaultAddress)});
  finish(kApp.platform, 1);
}

// Runs without a stack limit, and on a fresh stack if the old one is used up.
[[gnu::naked]] void faultHandler() {
  __asm volatile(
      "mrs r0, msp\n\t"
      "movs r1, #0\n\t"
      "msr msplim, r1\n\t"
      "ldr r1, =linkStackLimit\n\t"
      "add r1, r1, #512\n\t"
      "cmp r0, r1\n\t"
      "bhs 1f\n\t"
      "ldr r1, =linkStackTop\n\t"
      "mov sp, r1\n\t"
      "1: b faultReport\n\t");
}
}
