// SPDX-License-Identifier: Apache-2.0
// Handlers of loads and stores, shared by the 16-bit and the 32-bit encodings. T determines width and
// extension. Rt is Op::d, the base Op::n, an index Op::m shifted left by Op::x.
#pragma once

#include "cpu_m/core.hpp"

namespace carina::cpu_m {

template <typename T>
inline uint32_t loadExtended(Core& core, uint32_t address) {
  return static_cast<uint32_t>(core.memory.load<T>(address));
}

template <typename T>
const Op* loadOffset(Core& core, const Op* op) {
  core.at(op);
  core.state.r[op->d] = loadExtended<T>(core, core.state.r[op->n] + op->imm);
  return op + 1;
}
template <typename T>
const Op* storeOffset(Core& core, const Op* op) {
  core.at(op);
  core.memory.store<T>(core.state.r[op->n] + op->imm, static_cast<T>(core.state.r[op->d]));
  return op + 1;
}
template <typename T>
const Op* loadRegister(Core& core, const Op* op) {
  core.at(op);
  core.state.r[op->d] = loadExtended<T>(core, core.state.r[op->n] + (core.state.r[op->m] << op->x));
  return op + 1;
}
template <typename T>
const Op* storeRegister(Core& core, const Op* op) {
  core.at(op);
  core.memory.store<T>(core.state.r[op->n] + (core.state.r[op->m] << op->x),
                       static_cast<T>(core.state.r[op->d]));
  return op + 1;
}
/// From the address Op::imm.
template <typename T>
const Op* loadLiteral(Core& core, const Op* op) {
  core.at(op);
  core.state.r[op->d] = loadExtended<T>(core, op->imm);
  return op + 1;
}

/// Checks the new value of a base register: a stack pointer must not be below its limit.
inline void checkBase(Core& core, uint32_t number, uint32_t value) {
  if (number == 13) core.checkStack(value);
}

/// LDM, ascending from r[n]. `Jumps`: the program counter is in the list.
template <bool WriteBack, bool Jumps>
const Op* loadMultiple(Core& core, const Op* op) {
  core.at(op);
  State& s = core.state;
  uint32_t address = s.r[op->n], values[16];
  uint32_t list = op->imm;
  if ((address & 3) != 0) throw Trap{StopReason::Unaligned, address};
  for (uint32_t rest = list, i = 0; rest != 0; rest &= rest - 1, ++i, address += 4)
    values[i] = core.memory.load<uint32_t>(address);
  if constexpr (WriteBack) s.r[op->n] = address;
  uint32_t i = 0;
  if constexpr (Jumps) list &= ~(1u << 15);
  for (; list != 0; list &= list - 1) s.r[__builtin_ctz(list)] = values[i++];
  if constexpr (Jumps) return core.interwork(op, values[i]);
  return op + 1;
}

/// Stores the registers of a list at ascending addresses.
inline void storeList(Core& core, uint32_t address, uint32_t list) {
  if ((address & 3) != 0) throw Trap{StopReason::Unaligned, address};
  for (; list != 0; list &= list - 1, address += 4)
    core.memory.store<uint32_t>(address, core.state.r[__builtin_ctz(list)]);
}
/// STMIA.
template <bool WriteBack>
const Op* storeMultipleUp(Core& core, const Op* op) {
  core.at(op);
  const uint32_t base = core.state.r[op->n];
  storeList(core, base, op->imm);
  if constexpr (WriteBack)
    core.state.r[op->n] = base + 4 * static_cast<uint32_t>(__builtin_popcount(op->imm));
  return op + 1;
}
/// STMDB and PUSH.
template <bool WriteBack>
const Op* storeMultiple(Core& core, const Op* op) {
  core.at(op);
  const uint32_t base = core.state.r[op->n] - 4 * static_cast<uint32_t>(__builtin_popcount(op->imm));
  if constexpr (WriteBack) checkBase(core, op->n, base);
  storeList(core, base, op->imm);
  if constexpr (WriteBack) core.state.r[op->n] = base;
  return op + 1;
}

}  // namespace carina::cpu_m
