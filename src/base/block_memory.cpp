// SPDX-License-Identifier: Apache-2.0
// Blocks by size (block_memory.hpp). A chunk of 2 MiB consists of units of 16 KiB, each with blocks of one
// size. A thread takes new blocks from the beginning of units and freed ones from two lists; whole lists
// travel to and from a store that all threads share, as they do when objects are made on one thread and
// dropped on another.
#include "base/block_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <mutex>

namespace carina {
namespace {

constexpr size_t kGrain = 16, kUnit = 16384, kChunk = size_t{2} << 20;
constexpr size_t kUnitsPerChunk = kChunk / kUnit;

/// Every multiple of 16 up to 256, then four sizes for every doubling.
constexpr size_t kClasses = 16 + 4 * 6;
constexpr std::array<uint32_t, kClasses> kSizes = [] {
  std::array<uint32_t, kClasses> sizes{};
  for (uint32_t n = 0; n < 16; ++n) sizes[n] = (n + 1) * kGrain;
  for (uint32_t n = 16; n < kClasses; ++n) sizes[n] = (256u << (n - 16) / 4) / 4 * (5 + (n - 16) % 4);
  return sizes;
}();
static_assert(kSizes.back() == kLargestBlock);

constexpr std::array<uint8_t, kLargestBlock / kGrain + 1> kClassOf = [] {
  std::array<uint8_t, kLargestBlock / kGrain + 1> classes{};
  uint8_t of = 0;
  for (size_t grains = 0; grains < classes.size(); ++grains) {
    if (grains * kGrain > kSizes[of]) ++of;
    classes[grains] = of;
  }
  return classes;
}();

constexpr size_t classOf(size_t bytes) {
  return kClassOf[(bytes + kGrain - 1) / kGrain];
}

/// How many blocks travel together.
constexpr uint32_t batchOf(size_t of) {
  return std::clamp<uint32_t>(kUnit / kSizes[of], 4, 256);
}

/// Units of one class: large blocks share as many as leave little over.
constexpr size_t unitsOf(size_t of) {
  return kSizes[of] <= 1024 ? 1 : 4;
}

/// A freed block: the next of its list, and for the first of a list the next list.
struct Block {
  Block* next;
  Block* nextList;
};

/// Blocks that were never given out: the next such room, and where this one ends.
struct Room {
  Room* next;
  std::byte* end;
};

/// What the first bytes of a chunk say: the class of each unit.
struct ChunkHeader {
  std::array<uint8_t, kUnitsPerChunk> classes;
};

/// Chunks by address: one bit for each 2 MiB of the 2^47 bytes that a program has.
constexpr size_t kAddressBits = 47;
std::array<std::atomic<uint64_t>, (size_t{1} << kAddressBits) / kChunk / 64> chunkBits;

ChunkHeader* chunkOf(const void* block) {
  const auto address = reinterpret_cast<uintptr_t>(block);
  if (address >> kAddressBits != 0) return nullptr;
  const size_t n = address / kChunk;
  if ((chunkBits[n / 64].load(std::memory_order_relaxed) >> n % 64 & 1) == 0) return nullptr;
  return reinterpret_cast<ChunkHeader*>(address / kChunk * kChunk);
}

/// Whole chunks of this memory may be huge pages. A hint: what it holds stays, and a failure costs only time.
void advise(uintptr_t at, size_t bytes) {
  const uintptr_t begin = (at + kChunk - 1) / kChunk * kChunk, end = (at + bytes) / kChunk * kChunk;
  if (begin < end) (void)::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

/// The same for what the C library's heap has grown by.
void adviseHeap() {
  static std::atomic<uintptr_t> advised{0};
  const auto end = reinterpret_cast<uintptr_t>(::sbrk(0));  // no call of the system
  uintptr_t begin = advised.load(std::memory_order_relaxed);
  if (begin <= end && end - begin < kChunk) return;
  if (!advised.compare_exchange_strong(begin, end, std::memory_order_relaxed)) return;
  if (begin != 0 && begin < end) advise(begin, end - begin);
}

/// What threads share.
class Store {
 public:
  Block* takeList(size_t of) {
    const std::lock_guard lock(mutex_);
    Block* list = lists_[of];
    if (list) lists_[of] = list->nextList;
    return list;
  }

  void putList(size_t of, Block* list) {
    const std::lock_guard lock(mutex_);
    list->nextList = lists_[of];
    lists_[of] = list;
  }

  void putRoom(size_t of, std::byte* begin, std::byte* end) {
    const std::lock_guard lock(mutex_);
    auto* room = reinterpret_cast<Room*>(begin);
    *room = {rooms_[of], end};
    rooms_[of] = room;
  }

  /// Room for at least one block; false when the system has none.
  bool takeRoom(size_t of, std::byte*& begin, std::byte*& end) {
    const std::lock_guard lock(mutex_);
    if (Room* room = rooms_[of]) {
      rooms_[of] = room->next;
      begin = reinterpret_cast<std::byte*>(room);
      end = room->end;
      return true;
    }
    const size_t units = unitsOf(of);
    if ((!chunk_ || unit_ + units > kUnitsPerChunk) && !addChunk()) return false;
    auto* header = reinterpret_cast<ChunkHeader*>(chunk_);
    std::fill_n(header->classes.begin() + static_cast<std::ptrdiff_t>(unit_), units,
                static_cast<uint8_t>(of));
    begin = chunk_ + unit_ * kUnit + (unit_ == 0 ? sizeof(ChunkHeader) : 0);
    end = chunk_ + (unit_ + units) * kUnit;
    unit_ += units;
    return true;
  }

 private:
  bool addChunk() {
    void* memory = ::mmap(nullptr, 2 * kChunk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return false;
    // A chunk lies at a multiple of its size: what is around it goes back.
    const auto at = reinterpret_cast<uintptr_t>(memory);
    const uintptr_t chunk = (at + kChunk - 1) / kChunk * kChunk;
    auto* bytes = static_cast<std::byte*>(memory);
    if (chunk > at) (void)::munmap(bytes, chunk - at);
    if (at + kChunk > chunk) (void)::munmap(bytes + (chunk - at) + kChunk, at + kChunk - chunk);
    if (chunk >> kAddressBits != 0) return false;
    chunk_ = bytes + (chunk - at);
    unit_ = 0;
    advise(chunk, kChunk);
    const size_t n = chunk / kChunk;
    chunkBits[n / 64].fetch_or(uint64_t{1} << n % 64, std::memory_order_relaxed);
    return true;
  }

  std::mutex mutex_;
  std::array<Block*, kClasses> lists_{};
  std::array<Room*, kClasses> rooms_{};
  std::byte* chunk_ = nullptr;
  size_t unit_ = 0;
};

constinit Store store;

/// What a thread keeps of one class.
struct Class {
  Block* first = nullptr;  // freed blocks
  uint32_t count = 0;
  Block* spare = nullptr;  // a whole list more
  std::byte *begin = nullptr, *end = nullptr;
};

struct Cache {
  std::array<Class, kClasses> classes{};
};

[[gnu::tls_model("initial-exec")]] constinit thread_local Cache cache;

/// Gives back what the thread has when it ends.
struct AtThreadEnd {
  ~AtThreadEnd() {
    for (size_t of = 0; of < kClasses; ++of) {
      Class& own = cache.classes[of];
      if (own.first) store.putList(of, own.first);
      if (own.spare) store.putList(of, own.spare);
      if (own.begin != own.end) store.putRoom(of, own.begin, own.end);
      own = {};
    }
  }
};

/// Where the thread has no freed block of the class.
[[gnu::noinline]] void* allocateSlowly(size_t of) {
  Class& own = cache.classes[of];
  if (own.spare) {
    own.first = own.spare;
    own.spare = nullptr;
    own.count = batchOf(of);
  } else if (own.begin == own.end) {
    static thread_local const AtThreadEnd atThreadEnd;
    (void)&atThreadEnd;
    own.first = store.takeList(of);
    if (own.first) {
      own.count = batchOf(of);
    } else {
      std::byte* end = nullptr;
      if (!store.takeRoom(of, own.begin, end)) return nullptr;
      // Only whole blocks.
      own.end = own.begin + static_cast<size_t>(end - own.begin) / kSizes[of] * kSizes[of];
    }
  }
  if (Block* block = own.first) {
    own.first = block->next;
    --own.count;
    return block;
  }
  void* block = own.begin;
  own.begin += kSizes[of];
  return block;
}

void* allocateOf(size_t of) {
  Class& own = cache.classes[of];
  Block* block = own.first;
  if (!block) return allocateSlowly(of);
  own.first = block->next;
  --own.count;
  return block;
}

void freeOf(size_t of, void* memory) {
  Class& own = cache.classes[of];
  if (own.count >= batchOf(of)) {
    if (own.spare) store.putList(of, own.spare);
    own.spare = own.first;
    own.first = nullptr;
    own.count = 0;
  }
  auto* block = static_cast<Block*>(memory);
  block->next = own.first;
  own.first = block;
  ++own.count;
}

}  // namespace

void* allocateBlock(size_t bytes) noexcept {
  if (bytes <= kLargestBlock) return allocateOf(classOf(bytes));
  void* memory = std::malloc(bytes);
  if (memory) adviseLargePages(memory, bytes);
  return memory;
}

void freeBlock(void* block) noexcept {
  if (!block) return;
  if (const ChunkHeader* chunk = chunkOf(block)) {
    const auto inside = reinterpret_cast<uintptr_t>(block) % kChunk;
    freeOf(chunk->classes[inside / kUnit], block);
  } else {
    std::free(block);
  }
}

void freeBlock(void* block, size_t bytes) noexcept {
  if (bytes > kLargestBlock) {
    std::free(block);
  } else if (block) {
    freeOf(classOf(bytes), block);
  }
}

void adviseLargePages(void* memory, size_t bytes) noexcept {
  adviseHeap();
  if (bytes >= kChunk) advise(reinterpret_cast<uintptr_t>(memory), bytes);
}

}  // namespace carina
