// SPDX-License-Identifier: Apache-2.0
// Whose floating-point context the registers hold, and where it still has to be stored: FPCCR, FPCAR and
// FPDSCR of both worlds.
//
// An exception that interrupts a program with floating-point state leaves room for it in its frame and, when
// FPCCR.LSPEN is set, stores nothing: only the first floating-point or vector instruction behind that does,
// with the privileges that the program had. Most handlers have none, so most contexts never travel.
#pragma once

#include <cstdint>

#include "cpu_m/state.hpp"

namespace carina::cpu_m {

/// Bits of FPCCR, by what they mean; the architecture's names are beside them.
namespace fpccr {
constexpr uint32_t kPending = 1u << 0,  // LSPACT: a context is still to be stored
    kUser = 1u << 1,                    // USER: without privileges
    kSecureContext = 1u << 2,           // S
    kThread = 1u << 3,                  // THREAD
    kHardFaultReady = 1u << 4,          // HFRDY: that program could have been preempted by ...
    kMemManageReady = 1u << 5, kBusFaultReady = 1u << 6, kSecureFaultReady = 1u << 7,
                   kMonitorReady = 1u << 8,  // MONRDY
    kLimitViolated = 1u << 9,                // SPLIMVIOL: there is no room on the stack
    kUsageFaultReady = 1u << 10,             // UFRDY
    kTreatAsSecure = 1u << 26,               // TS: S16 to S31 are hidden, too
    kClearOnReturnSecure = 1u << 27,         // CLRONRETS: CLRONRET is the Secure world's
    kClearOnReturn = 1u << 28,               // CLRONRET
    kLazySecure = 1u << 29,                  // LSPENS: LSPEN is the Secure world's
    kLazy = 1u << 30,                        // LSPEN
    kAutomatic = 1u << 31;                   // ASPEN: contexts begin and are saved by themselves
/// The bits that each world has for itself; the others exist once.
constexpr uint32_t kBanked =
    kPending | kUser | kThread | kMemManageReady | kLimitViolated | kUsageFaultReady | kAutomatic;
/// The bits that only Secure programs see.
constexpr uint32_t kSecureOnly =
    kSecureContext | kSecureFaultReady | kTreatAsSecure | kClearOnReturnSecure | kLazySecure;
constexpr uint32_t kAll = 0xfc0007ff;
}  // namespace fpccr

/// Knows the priorities of exceptions.
class FaultPriorities {
 public:
  /// The faults that could be taken now, of `world` where there are two: the "ready" bits of FPCCR.
  virtual uint32_t readyFaults(World world) const = 0;
  /// Whether NMI or a HardFault of `world` is being handled.
  virtual bool handlesUrgent(World world) const = 0;

 protected:
  ~FaultPriorities() = default;
};

class FpContextControl {
 public:
  /// FPCCR as programs of `world` read and write it. `faultsNonSecure`: AIRCR.BFHFNMINS.
  uint32_t control(World world, bool faultsNonSecure) const;
  void setControl(World world, uint32_t value, bool faultsNonSecure);
  bool has(uint32_t bit, World world = kSecure) const {
    return (control_[(bit & fpccr::kBanked) != 0 ? world : kSecure] & bit) != 0;
  }
  /// FPCAR: where the words of a pending context go, S0 first.
  uint32_t address(World world) const { return address_[world]; }
  void setAddress(World world, uint32_t address) { address_[world] = address & ~7u; }
  /// FPDSCR: what FPSCR becomes when a context begins.
  uint32_t defaultFpscr(World world) const { return default_[world]; }
  void setDefaultFpscr(World world, uint32_t fpdscr) { default_[world] = fpdscr; }

  /// The world whose context the registers hold.
  World owner() const { return has(fpccr::kSecureContext) ? kSecure : kNonSecure; }
  void setOwner(World world);
  bool pending(World world) const { return has(fpccr::kPending, world); }
  /// Words of a context of `world` in memory: S0 to S15, FPSCR, VPR and, hidden, S16 to S31.
  uint32_t words(World world) const {
    return world == kSecure && has(fpccr::kTreatAsSecure) ? kMostWords : kLeastWords;
  }
  /// The context of the program that `s` shows is pending from now on, for `address`.
  void defer(const State& s, uint32_t address, bool limitViolated, const FaultPriorities* priorities);
  /// It is not any more.
  void settle(World world) { control_[world] &= ~fpccr::kPending; }

  static constexpr uint32_t kLeastWords = 18, kMostWords = 34;

 private:
  // Bits that exist once are in the Secure one.
  uint32_t control_[2] = {fpccr::kAutomatic, fpccr::kAutomatic | fpccr::kLazy | fpccr::kSecureContext};
  uint32_t address_[2] = {};
  uint32_t default_[2] = {uint32_t{kNoTailPredication} << 16, uint32_t{kNoTailPredication} << 16};
};

}  // namespace carina::cpu_m
