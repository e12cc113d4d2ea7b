// SPDX-License-Identifier: Apache-2.0
// The address space of a core: memory that is read and written in place, devices, and nothing. Loads and
// stores look for their page in a small table first (the fast path); whatever that does not know is sorted
// out in memory.cpp.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "cpu_m/stop.hpp"
#include "cpu_m/wait_states.hpp"

namespace carina::cpu_m {

/// What answers the loads and stores that do not go to memory. Called while the core runs.
class Devices {
 public:
  /// `size` is 1, 2 or 4.
  virtual uint32_t read(uint32_t address, uint32_t size) = 0;
  virtual void write(uint32_t address, uint32_t size, uint32_t value) = 0;
  /// Whether the latest access wants the core to come back at the end of the basic block.
  virtual bool stopWanted() const = 0;

 protected:
  ~Devices() = default;
};

/// Data accesses after which a run ends.
struct WatchedRange {
  uint32_t address, size;
  bool reads, writes;
  friend bool operator==(const WatchedRange&, const WatchedRange&) = default;
};

/// Hears of every load and store, as it is done: address, size (1, 2 or 4) and value.
class AccessObserver {
 public:
  virtual void accessed(uint32_t address, uint32_t size, uint32_t value, bool write) = 0;

 protected:
  ~AccessObserver() = default;
};

/// What the core wants to hear of.
class MemoryListener {
 public:
  /// Halfwords that were fetched as code have been overwritten.
  virtual void codeWritten() = 0;
  /// A device wants the core to come back.
  virtual void deviceWantsStop() = 0;
  /// An access to memory that may wait (Memory::setWaiting).
  virtual void accessWaits(uint32_t address, bool write) = 0;

 protected:
  ~MemoryListener() = default;
};

/// What lies between the core and its memories and may refuse transactions by their security. What it says
/// holds for pages (4 KiB).
class Gates {
 public:
  virtual bool open(uint32_t address, bool secure) const = 0;
  /// A transaction has been refused: throws, or it reads 0 and writes nothing.
  virtual void refuse(uint32_t address, bool write, bool secure) = 0;

 protected:
  ~Gates() = default;
};

/// What a program may do at an address.
struct Permission {
  bool read = true, write = true, execute = true;
  bool foreign = false;   // Secure to a Non-secure program; for instructions: of the other world
  bool secure = true;     // the address
  bool gated = false;     // the board refuses the transaction
  bool wholePage = true;  // the same holds for all of the page (4 KiB)
};

/// What says so. A context is how the program runs (privileged or not, ...); what the numbers mean, Core
/// knows.
class Protection {
 public:
  virtual Permission permission(uint32_t address, uint32_t context, bool instruction) const = 0;

 protected:
  ~Protection() = default;
};

class Memory {
 public:
  static constexpr uint32_t kPageBits = 12, kPageSize = 1u << kPageBits;
  static constexpr uint32_t kContexts = 8;

  Memory(MemoryListener& listener, const Protection& protection)
      : listener_(listener), protection_(protection) {
    forgetPages();
  }

  /// Who the accesses from now on belong to.
  void select(uint32_t context) {
    context_ = context;
    table_ = &tables_[context];
  }
  uint32_t context() const { return context_; }

  /// Addresses [address, address + size) are the host memory at `host`; the same host memory may appear at
  /// several addresses. Multiples of 4096 within the 4 GiB, `host` aligned to 4096.
  void mapRam(uint32_t address, uint64_t size, uint8_t* host);
  /// Accesses to [address, address + size) go to the devices.
  void mapDevices(uint32_t address, uint64_t size);
  void setDevices(Devices* devices) { devices_ = devices; }
  /// Hears of refused transactions (Permission::gated).
  void setGates(Gates* gates) { gates_ = gates; }
  /// From now on the listener hears of accesses to the memories that `waits` concerns.
  void setWaiting(const WaitStates* waits) {
    waits_ = waits;
    forgetPages();
  }
  /// CCR.UNALIGN_TRP of a context.
  void setUnalignedTraps(uint32_t context, bool on) { unalignedTraps_[context] = on; }

  /// LDR, LDRH, LDRB and their relatives: memory takes any alignment. Throws Trap.
  template <typename T>
  T load(uint32_t address) {
    static_assert(sizeof(T) <= 4);
    const Entry& entry = table_->reads[index(address)];
    if (entry.page == address >> kPageBits && (sizeof(T) == 1 || (address & (sizeof(T) - 1)) == 0)) {
      T value;
      std::memcpy(&value, entry.host + (address & (kPageSize - 1)), sizeof(T));
      return value;
    }
    return static_cast<T>(loadSlowly(address, sizeof(T), true));
  }
  template <typename T>
  void store(uint32_t address, T value) {
    static_assert(sizeof(T) <= 4);
    const Entry& entry = table_->writes[index(address)];
    if (entry.page == address >> kPageBits && (sizeof(T) == 1 || (address & (sizeof(T) - 1)) == 0)) {
      std::memcpy(entry.host + (address & (kPageSize - 1)), &value, sizeof(T));
      return;
    }
    storeSlowly(address, sizeof(T), value, true);
  }
  /// The instructions that insist on alignment (LDRD, LDM, VLDR, exclusives, MVE): Trap Unaligned otherwise.
  template <typename T>
  T loadAligned(uint32_t address) {
    if ((address & (sizeof(T) - 1)) != 0) throw Trap{StopReason::Unaligned, address};
    return load<T>(address);
  }
  template <typename T>
  void storeAligned(uint32_t address, T value) {
    if ((address & (sizeof(T) - 1)) != 0) throw Trap{StopReason::Unaligned, address};
    store<T>(address, value);
  }

  /// Host bytes of [address, address + size) when all of it is memory within a page that the fast path knows;
  /// null otherwise, and then single accesses find out why. For instructions with many accesses: they are
  /// correct when they use load and store only, and faster with these.
  const uint8_t* readable(uint32_t address, uint32_t size) const {
    const uint32_t offset = address & (kPageSize - 1);
    const Entry& entry = table_->reads[index(address)];
    return entry.page == address >> kPageBits && offset + size <= kPageSize ? entry.host + offset : nullptr;
  }
  uint8_t* writable(uint32_t address, uint32_t size) const {
    const uint32_t offset = address & (kPageSize - 1);
    const Entry& entry = table_->writes[index(address)];
    return entry.page == address >> kPageBits && offset + size <= kPageSize ? entry.host + offset : nullptr;
  }

  /// The halfword at an even address, for execution: from now on the listener hears when it is written.
  /// Throws Trap FetchFault,
  /// FetchViolation, SecureEntry or SecureExit.
  uint16_t fetch(uint32_t address);
  /// The same without consequences; false: no memory is there.
  bool peek(uint32_t address, std::span<uint8_t> bytes) const;

  /// No code is known any more.
  void forgetCode();
  /// Permissions or watched ranges have changed.
  void forgetPages();

  /// From now on all accesses are slow ones; null: nobody observes them any more.
  void observe(AccessObserver* observer) {
    observer_ = observer;
    forgetPages();
  }
  void watch(std::span<const WatchedRange> ranges);
  bool watching() const { return !watched_.empty(); }
  /// The first access to a watched range since the last call, if any.
  bool takeWatchHit(Stop* stop);

 private:
  struct Entry {
    uint32_t page;
    uint8_t* host;
  };
  static constexpr uint32_t kEntries = 512;
  static constexpr uint32_t kNoPage = ~0u;  // of no address
  /// Of one context.
  struct Table {
    std::array<Entry, kEntries> reads, writes;
  };
  struct Region {
    uint64_t begin, end;
    uint8_t* host;  // null: devices
  };
  /// Halfwords of a page that were fetched as code.
  using CodeMap = std::bitset<kPageSize / 2>;

  static uint32_t index(uint32_t address) { return address >> kPageBits & (kEntries - 1); }
  /// What a data access may do; throws SecureData.
  Permission dataPermission(uint32_t address) const;
  const Region* find(uint32_t address) const;
  uint32_t loadSlowly(uint32_t address, uint32_t size, bool split);
  void storeSlowly(uint32_t address, uint32_t size, uint32_t value, bool split);
  void noteAccess(uint32_t address, uint32_t size, bool write);
  bool watchedPage(uint32_t page) const;

  /// Whether the fast path may know a page.
  bool fast(uint32_t page) const {
    return observer_ == nullptr && !waits(page << kPageBits) && (!watching() || !watchedPage(page));
  }
  bool waits(uint32_t address) const { return waits_ != nullptr && waits_->concerns(address); }

  MemoryListener& listener_;
  AccessObserver* observer_ = nullptr;
  Devices* devices_ = nullptr;
  Gates* gates_ = nullptr;
  const WaitStates* waits_ = nullptr;
  std::array<bool, kContexts> unalignedTraps_{};
  const Protection& protection_;
  std::array<Table, kContexts> tables_;
  Table* table_ = tables_.data();
  uint32_t context_ = 0;
  std::vector<Region> regions_;
  mutable size_t lastRegion_ = 0;
  std::unordered_map<const uint8_t*, CodeMap> code_;  // by host page
  std::vector<WatchedRange> watched_;
  bool hit_ = false;
  Stop hitStop_;
};

}  // namespace carina::cpu_m
