// SPDX-License-Identifier: MIT OR Apache-2.0
// Unicorn behind the protocol's requests. Works round what Unicorn 2.0.1 does not model: where the program
// counter stands after a stop, WFE and WFI, instruction counts.
#pragma once

#include <unicorn/unicorn.h>

#include <vector>

#include "channel.hpp"

class Emulator {
 public:
  Emulator(Channel& channel, uint8_t* shared, uint64_t size)
      : channel_(channel),
        base_(shared),
        size_(size),
        shared_(*reinterpret_cast<carina::cpu_protocol::Shared*>(shared)) {}
  ~Emulator();
  Emulator(const Emulator&) = delete;
  Emulator& operator=(const Emulator&) = delete;

  /// Null, or why it failed.
  const char* open();
  const char* mapRam(uint32_t address, uint64_t size, uint64_t offset);
  const char* mapDevices(uint32_t address, uint64_t size);
  const char* codeChanged(uint32_t address, uint64_t size);
  const char* watch(uint32_t address, uint64_t size, uint32_t flags);
  const char* unwatch();
  carina::cpu_protocol::Message run(uint64_t budget, uint32_t flags);

 private:
  struct Ram {
    uint32_t address;
    uint64_t size;
    uint8_t* bytes;
  };
  struct Watched {
    uint64_t first, last;
    uint32_t flags;
    uc_hook hook;
  };
  struct Devices {
    Emulator* emulator;
    uint32_t address;
  };

  static void onBlock(uc_engine*, uint64_t address, uint32_t size, void* self);
  static void onInstruction(uc_engine*, uint64_t address, uint32_t size, void* self);
  static void onInterrupt(uc_engine*, uint32_t number, void* self);
  static bool onInvalidAccess(uc_engine*, uc_mem_type type, uint64_t address, int, int64_t, void* self);
  static void onData(uc_engine*, uc_mem_type type, uint64_t address, int size, int64_t, void* self);
  static uint64_t onRead(uc_engine*, uint64_t offset, unsigned size, void* devices);
  static void onWrite(uc_engine*, uint64_t offset, unsigned size, uint64_t value, void* devices);

  void block(uint32_t address, uint32_t size);
  void instruction(uint32_t address);
  /// From now on onInstruction is called for every instruction. Slow: only for runs of one instruction.
  const char* watchInstructions();
  /// Behind the instructions that go together from `address` on; `state` is the IT state before them.
  uint32_t groupEndAt(uint32_t address, uint32_t state);
  uint32_t itStateAtStart() const;
  /// Whether what was accessed ends the run here, before the instruction at `address`.
  bool stopsForWatch(uint32_t address);
  /// Whether the group that runs alone goes on there; back at its start it does not.
  bool inGroup(uint32_t address) const { return address > groupStart_ && address < groupEnd_; }
  void count(int64_t instructions);
  int64_t countInstructions(uint32_t address, uint32_t size);
  void noteCodePage(uint32_t page);
  void locateFault();
  /// Asks the platform; the answer's value.
  uint32_t access(carina::cpu_protocol::Kind kind, uint32_t address, uint32_t size, uint32_t value);
  carina::cpu_protocol::Message classify(uc_err error);
  void stopWith(carina::cpu_protocol::Reason reason, uint32_t address = 0, uint32_t value = 0);

  uint32_t get(int reg) const;
  void set(int reg, uint32_t value);
  uint32_t masks() const;
  void loadRegisters();
  void storeRegisters();
  /// Halfword of guest memory; 0 where there is none.
  uint16_t halfword(uint32_t address);
  const uint8_t* find(uint32_t address, uint32_t size);

  Channel& channel_;
  uint8_t* base_;
  uint64_t size_;
  carina::cpu_protocol::Shared& shared_;
  uc_engine* uc_ = nullptr;
  std::vector<Ram> ram_;
  size_t lastRam_ = 0;
  std::vector<Devices*> devices_;

  // Pages that code has run from.
  std::vector<uint32_t> codePages_;
  std::vector<bool> isCodePage_;
  uint32_t lastCodePage_ = 0xffffffff;

  uint64_t end_ = 0;      // instruction count to stop at
  uint64_t counted_ = 0;  // instructions since open
  uint32_t flags_ = 0, masksAtStart_ = 0;
  uint32_t blockStart_ = 0, blockEnd_ = 0;  // of the latest block begun
  bool watching_ = false;
  uint32_t groupStart_ = 0, groupEnd_ = 0;  // with kOneInstruction: what runs; 0 before the first instruction
  std::vector<Watched> watched_;
  uint32_t hit_ = 0,
           hitAddress_ = 0;  // the first watched access of the run: kWatch..., 0 when there was none
  bool stopSoon_ = false, connected_ = true;
  bool stopped_ = false;  // `stop_` says why
  carina::cpu_protocol::Message stop_{};
};
