// SPDX-License-Identifier: Apache-2.0
// The owner of the floating-point context in the registers, and where it is still to be stored: FPCCR, FPCAR
// and FPDSCR of both worlds.
//
// An exception that interrupts code with floating-point state reserves space for it in its frame. If
// FPCCR.LSPEN is set, it stores nothing: the first floating-point or vector instruction after it does, with
// the privileges of the interrupted code. Most handlers have none, so most contexts are never stored.
#pragma once

#include <cstdint>

#include "cpu_m/state.hpp"

namespace carina::cpu_m {

/// Bits of FPCCR, named by meaning; the comments give the architectural names.
namespace fpccr {
constexpr uint32_t kPending = 1u << 0,  // LSPACT: a context is still to be stored
    kUser = 1u << 1,                    // USER: unprivileged
    kSecureContext = 1u << 2,           // S
    kThread = 1u << 3,                  // THREAD
    kHardFaultReady = 1u << 4,          // HFRDY: that code could have been preempted by ...
    kMemManageReady = 1u << 5, kBusFaultReady = 1u << 6, kSecureFaultReady = 1u << 7,
                   kMonitorReady = 1u << 8,  // MONRDY
    kLimitViolated = 1u << 9,                // SPLIMVIOL: the context violates the stack limit
    kUsageFaultReady = 1u << 10,             // UFRDY
    kTreatAsSecure = 1u << 26,               // TS: S16 to S31 are also hidden
    kClearOnReturnSecure = 1u << 27,         // CLRONRETS: only Secure code can change CLRONRET
    kClearOnReturn = 1u << 28,               // CLRONRET
    kLazySecure = 1u << 29,                  // LSPENS: only Secure code can change LSPEN
    kLazy = 1u << 30,                        // LSPEN
    kAutomatic = 1u << 31;                   // ASPEN: contexts are created and saved automatically
/// The banked bits; the others are shared by both worlds.
constexpr uint32_t kBanked =
    kPending | kUser | kThread | kMemManageReady | kLimitViolated | kUsageFaultReady | kAutomatic;
/// The bits that only Secure code sees.
constexpr uint32_t kSecureOnly =
    kSecureContext | kSecureFaultReady | kTreatAsSecure | kClearOnReturnSecure | kLazySecure;
constexpr uint32_t kAll = 0xfc0007ff;
}  // namespace fpccr

/// Source of exception priorities.
class FaultPriorities {
 public:
  /// The faults that could be taken now (those of `world` if banked), as the "ready" bits of FPCCR.
  virtual uint32_t readyFaults(World world) const = 0;
  /// Whether NMI or a HardFault of `world` is being handled.
  virtual bool handlesUrgent(World world) const = 0;

 protected:
  ~FaultPriorities() = default;
};

class FpContextControl {
 public:
  /// FPCCR as read and written by code of `world`. `faultsNonSecure`: AIRCR.BFHFNMINS.
  uint32_t control(World world, bool faultsNonSecure) const;
  void setControl(World world, uint32_t value, bool faultsNonSecure);
  bool has(uint32_t bit, World world = kSecure) const {
    return (control_[(bit & fpccr::kBanked) != 0 ? world : kSecure] & bit) != 0;
  }
  /// FPCAR: where the words of a pending context are stored, S0 first.
  uint32_t address(World world) const { return address_[world]; }
  void setAddress(World world, uint32_t address) { address_[world] = address & ~7u; }
  /// FPDSCR: the initial FPSCR of a new context.
  uint32_t defaultFpscr(World world) const { return default_[world]; }
  void setDefaultFpscr(World world, uint32_t fpdscr) { default_[world] = fpdscr; }

  /// The world whose context the registers hold.
  World owner() const { return has(fpccr::kSecureContext) ? kSecure : kNonSecure; }
  void setOwner(World world);
  bool pending(World world) const { return has(fpccr::kPending, world); }
  /// Words of a context of `world` in memory: S0 to S15, FPSCR, VPR and, if hidden, S16 to S31.
  uint32_t words(World world) const {
    return world == kSecure && has(fpccr::kTreatAsSecure) ? kMaxWords : kMinWords;
  }
  /// Marks the context of the code running in `s` as pending, to be stored at `address`.
  void defer(const State& s, uint32_t address, bool limitViolated, const FaultPriorities* priorities);
  /// Ends the pending state.
  void settle(World world) { control_[world] &= ~fpccr::kPending; }

  static constexpr uint32_t kMinWords = 18, kMaxWords = 34;

 private:
  // Shared bits are kept in the Secure entry.
  uint32_t control_[2] = {fpccr::kAutomatic, fpccr::kAutomatic | fpccr::kLazy | fpccr::kSecureContext};
  uint32_t address_[2] = {};
  uint32_t default_[2] = {uint32_t{kNoTailPredication} << 16, uint32_t{kNoTailPredication} << 16};
};

}  // namespace carina::cpu_m
