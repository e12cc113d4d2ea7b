// SPDX-License-Identifier: Apache-2.0
// The address space of a core: memory that is accessed in place, devices, and unmapped ranges. Loads and
// stores look up their page in a small table first (the fast path); misses are handled in memory.cpp.
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

/// Handles loads and stores that do not go to memory. Called while the core runs.
class Devices {
 public:
  /// `size` is 1, 2 or 4.
  virtual uint32_t read(uint32_t address, uint32_t size) = 0;
  virtual void write(uint32_t address, uint32_t size, uint32_t value) = 0;
  /// Whether the latest access requests the core to return at the end of the basic block.
  virtual bool stopWanted() const = 0;

 protected:
  ~Devices() = default;
};

/// Data accesses that end a run.
struct WatchedRange {
  uint32_t address, size;
  bool reads, writes;
  friend bool operator==(const WatchedRange&, const WatchedRange&) = default;
};

/// Notified of every load and store as it is performed: address, size (1, 2 or 4) and value.
class AccessObserver {
 public:
  virtual void accessed(uint32_t address, uint32_t size, uint32_t value, bool write) = 0;

 protected:
  ~AccessObserver() = default;
};

/// Notifications to the core.
class MemoryListener {
 public:
  /// Halfwords that were fetched as code have been overwritten.
  virtual void codeWritten() = 0;
  /// A device requests the core to return.
  virtual void deviceWantsStop() = 0;
  /// An access to memory that may wait (Memory::setWaiting).
  virtual void accessWaits(uint32_t address, bool write) = 0;

 protected:
  ~MemoryListener() = default;
};

/// Filters between the core and its memories, which may reject transactions by their security attribute.
/// Decisions apply to whole pages (4 KiB).
class Gates {
 public:
  virtual bool open(uint32_t address, bool secure) const = 0;
  /// A transaction has been rejected: throws, or the access is RAZ/WI.
  virtual void refuse(uint32_t address, bool write, bool secure) = 0;

 protected:
  ~Gates() = default;
};

/// Permissions at an address.
struct Permission {
  bool read = true, write = true, execute = true;
  bool foreign = false;   // Secure, accessed by Non-secure code; for instructions: of the other world
  bool secure = true;     // attribute of the address
  bool gated = false;     // the board rejects the transaction
  bool wholePage = true;  // applies to the whole page (4 KiB)
};

/// Source of permissions. A context encodes how code runs (privileged or not, ...); Core defines the values.
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

  /// Sets the context of subsequent accesses.
  void select(uint32_t context) {
    context_ = context;
    table_ = &tables_[context];
  }
  uint32_t context() const { return context_; }

  /// Maps [address, address + size) to the host memory at `host`, which may be mapped at several addresses.
  /// `address` and `size` are multiples of 4096, within 4 GiB; `host` is aligned to 4096.
  void mapRam(uint32_t address, uint64_t size, uint8_t* host);
  /// Accesses to [address, address + size) go to the devices.
  void mapDevices(uint32_t address, uint64_t size);
  void setDevices(Devices* devices) { devices_ = devices; }
  /// Notified of rejected transactions (Permission::gated).
  void setGates(Gates* gates) { gates_ = gates; }
  /// Starts notifying the listener of accesses to the memories that `waits` concerns.
  void setWaiting(const WaitStates* waits) {
    waits_ = waits;
    forgetPages();
  }
  /// CCR.UNALIGN_TRP of a context.
  void setUnalignedTraps(uint32_t context, bool on) { unalignedTraps_[context] = on; }

  /// LDR, LDRH, LDRB and similar: memory accepts any alignment. Throws Trap.
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
  /// For instructions that require alignment (LDRD, LDM, VLDR, exclusives, MVE): Trap Unaligned otherwise.
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

  /// Host bytes of [address, address + size) if the range is memory within one page that the fast path knows;
  /// null otherwise, in which case single accesses determine why. Speeds up instructions with many accesses,
  /// for which load and store alone would be sufficient.
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

  /// Fetches the halfword at an even address for execution; the listener is notified of later writes to it.
  /// Throws Trap FetchFault, FetchViolation, SecureEntry or SecureExit.
  uint16_t fetch(uint32_t address);
  /// Reads bytes without side effects; false if there is no memory.
  bool peek(uint32_t address, std::span<uint8_t> bytes) const;

  /// Forgets which halfwords were fetched as code.
  void forgetCode();
  /// Empties the fast path, as permissions or watched ranges have changed.
  void forgetPages();

  /// Notifies `observer` of all accesses, which disables the fast path; null ends this.
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
  static constexpr uint32_t kNoPage = ~0u;  // not the page of any address
  /// The fast path of one context.
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
  /// Permissions of a data access; throws SecureData.
  Permission dataPermission(uint32_t address) const;
  const Region* find(uint32_t address) const;
  uint32_t loadSlowly(uint32_t address, uint32_t size, bool split);
  void storeSlowly(uint32_t address, uint32_t size, uint32_t value, bool split);
  void noteAccess(uint32_t address, uint32_t size, bool write);
  bool watchedPage(uint32_t page) const;

  /// Whether the fast path may hold a page.
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
