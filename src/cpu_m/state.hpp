// SPDX-License-Identifier: Apache-2.0
// The registers of an Armv8-M core, in a form that allows fast execution.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace carina::cpu_m {

static_assert(std::endian::native == std::endian::little,
              "guest memory and vector registers are used in place");

/// Security states; also the index of banked registers.
enum World : uint8_t { kNonSecure = 0, kSecure = 1 };

/// Bits of CONTROL.
constexpr uint32_t kControlUnprivileged = 1u << 0, kControlProcessStack = 1u << 1, kControlFpActive = 1u << 2,
                   kControlSecureFpActive = 1u << 3;
/// BTI_EN and PAC_EN, for privileged code; the bit above each is for unprivileged code.
constexpr uint32_t kControlLandings = 1u << 4, kControlAuthenticate = 1u << 6;
/// Bits of XPSR.
constexpr uint32_t kXpsrException = 0x1ff, kXpsrLanding = 1u << 21, kXpsrThumb = 1u << 24,
                   kXpsrSaturated = 1u << 27;
/// LTPSIZE without tail predication.
constexpr uint8_t kNoTailPredication = 4;
/// Bits of FPSCR: NZCV, then QC and the modes; LTPSIZE (18:16) is State::ltpsize.
constexpr uint32_t kFpscrNzcv = 0xf0000000, kFpscrLtpsize = 0x00070000;
constexpr uint32_t kVprBits = 0x00ffffff;
/// Above them, only while a vector instruction is resumed: its beats completed before the exception
/// (EPSR.ECI).
constexpr uint32_t kVprResumed = 0x0f000000;

struct State {
  /// r[13] is the active stack pointer. r[15] is only valid if the current instruction reads it (address of
  /// the instruction + 4): the program counter is `pc`.
  uint32_t r[16] = {};
  /// The next instruction while the core is stopped; while it executes, see Op::address.
  uint32_t pc = 0;

  // The flags, one word each: N and V are bit 31 of their words, Z is set if `z` is 0, C is 0 or 1.
  uint32_t n = 0, z = 1, c = 0, v = 0;
  uint32_t q = 0;   // 0 or 1
  uint32_t ge = 0;  // 4 bits
  /// ITSTATE while the core is stopped; during a run, see Op::it. If the lower half is 0, the upper half is
  /// ECI: the completed beats of the next vector instructions.
  uint32_t it = 0;
  bool thumb = true;
  /// EPSR.B: the next instruction must be a BTI landing pad.
  bool landing = false;
  uint32_t exception = 0;  // IPSR

  World world = kSecure;
  /// Stack pointers that are not in r[13]: [world][0 main, 1 process]. The active one's entry is stale.
  uint32_t sp[2][2] = {};
  uint32_t stackLimit[2][2] = {};
  /// nPRIV, SPSEL, BTI_EN, UBTI_EN, PAC_EN and UPAC_EN (banked), FPCA (same in both), SFPA (Secure).
  uint32_t control[2] = {};
  uint32_t primask[2] = {}, basepri[2] = {}, faultmask[2] = {};

  /// S0..S31, D0..D15, Q0..Q7 as one array of bytes, little-endian.
  alignas(16) uint8_t vector[128] = {};
  uint32_t fpscr = 0;  // without LTPSIZE
  uint8_t ltpsize = kNoTailPredication;
  uint32_t vpr = 0;  // P0 15:0, MASK01 19:16, MASK23 23:20 (kVprBits)

  /// Element `index` of type T in the register file: S3 = element<uint32_t>(3), lane 2 of Q1 as bytes =
  /// element<uint8_t>(16 * 1 + 2).
  template <typename T>
  T element(uint32_t index) const {
    T value;
    std::memcpy(&value, vector + sizeof(T) * index, sizeof(T));
    return value;
  }
  template <typename T>
  void setElement(uint32_t index, T value) {
    std::memcpy(vector + sizeof(T) * index, &value, sizeof(T));
  }

  /// 64 bits in two general registers.
  uint64_t pair(uint32_t low, uint32_t high) const { return uint64_t{r[high]} << 32 | r[low]; }
  void setPair(uint32_t low, uint32_t high, uint64_t value) {
    r[low] = static_cast<uint32_t>(value);
    r[high] = static_cast<uint32_t>(value >> 32);
  }

  bool flagN() const { return (n >> 31) != 0; }
  bool flagZ() const { return z == 0; }
  bool flagC() const { return c != 0; }
  bool flagV() const { return (v >> 31) != 0; }
  void setNZ(uint32_t result) { n = z = result; }
  /// NZCV in bits 31:28.
  uint32_t nzcv() const { return (n & 1u << 31) | (z == 0 ? 1u << 30 : 0) | c << 29 | (v >> 31) << 28; }
  void setNzcv(uint32_t bits) {
    n = bits;
    z = ~bits >> 30 & 1;
    c = bits >> 29 & 1;
    v = bits << 3;
  }
  uint32_t apsr() const { return nzcv() | q << 27 | ge << 16; }
  void setApsr(uint32_t bits) {
    setNzcv(bits);
    q = bits >> 27 & 1;
    ge = bits >> 16 & 15;
  }
  uint32_t xpsr() const {
    return apsr() | (thumb ? kXpsrThumb : 0) | (landing ? kXpsrLanding : 0) | exception | (it & 3) << 25 |
           (it >> 2) << 10;
  }
  void setXpsr(uint32_t bits) {
    setApsr(bits);
    thumb = (bits & kXpsrThumb) != 0;
    landing = (bits & kXpsrLanding) != 0;
    exception = bits & kXpsrException;
    it = (bits >> 25 & 3) | (bits >> 8 & 0xfc);
  }

  bool handlerMode() const { return exception != 0; }
  bool privileged() const { return handlerMode() || (control[world] & kControlUnprivileged) == 0; }
  /// The stack that r[13] points to: 0 main, 1 process.
  uint32_t activeStack() const {
    return !handlerMode() && (control[world] & kControlProcessStack) != 0 ? 1 : 0;
  }
  /// To be called before mode, world or CONTROL.SPSEL changes; takeStack() afterwards.
  void putStack() { sp[world][activeStack()] = r[13]; }
  void takeStack() { r[13] = sp[world][activeStack()]; }
  uint32_t stackPointer(World of, uint32_t stack) const {
    return of == world && stack == activeStack() ? r[13] : sp[of][stack];
  }
  void setStackPointer(World of, uint32_t stack, uint32_t value) {
    sp[of][stack] = value;
    if (of == world && stack == activeStack()) r[13] = value;
  }
  /// FPSCR as read by VMRS.
  uint32_t fpscrWord() const { return fpscr | uint32_t{ltpsize} << 16; }
  void setFpscrWord(uint32_t bits) {
    fpscr = bits & ~kFpscrLtpsize;
    ltpsize = static_cast<uint8_t>(bits >> 16 & 7);
  }
};

/// The 14 conditions of the architecture; 14 and 15 are "always".
inline bool conditionHolds(const State& s, uint32_t condition) {
  bool holds = true;
  switch (condition >> 1) {
    case 0:
      holds = s.flagZ();
      break;
    case 1:
      holds = s.flagC();
      break;
    case 2:
      holds = s.flagN();
      break;
    case 3:
      holds = s.flagV();
      break;
    case 4:
      holds = s.flagC() && !s.flagZ();
      break;
    case 5:
      holds = s.flagN() == s.flagV();
      break;
    case 6:
      holds = s.flagN() == s.flagV() && !s.flagZ();
      break;
    default:
      return true;
  }
  return holds != ((condition & 1) != 0);
}

}  // namespace carina::cpu_m
