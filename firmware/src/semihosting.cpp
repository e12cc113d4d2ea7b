// SPDX-License-Identifier: Apache-2.0
#include "semihosting.hpp"

#include "cortex_m.hpp"

namespace carina::firmware::semihosting {
namespace {

enum Operation : uint32_t {
  kOpen = 0x01,
  kClose = 0x02,
  kWrite = 0x05,
  kRead = 0x06,
  kLength = 0x0c,
  kCommandLine = 0x15,
  kExit = 0x18,
  kExitExtended = 0x20,
};
constexpr uint32_t kModeRead = 1, kModeWrite = 5;  // binary
constexpr uint32_t kApplicationExit = 0x20026, kRunTimeError = 0x20023;

int32_t call(Operation operation, const void* parameter) {
  register uint32_t r0 __asm("r0") = operation;
  register const void* r1 __asm("r1") = parameter;
  __asm volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return static_cast<int32_t>(r0);
}

uint32_t address(const void* pointer) {
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(pointer));
}

/// A file that is closed on destruction.
class File {
 public:
  File(const char* name, uint32_t mode) {
    const uint32_t block[] = {address(name), mode, static_cast<uint32_t>(rt::textLength(name))};
    handle_ = call(kOpen, block);
  }
  ~File() {
    const int32_t block[] = {handle_};
    if (isOpen()) call(kClose, block);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool isOpen() const { return handle_ > 0; }
  int32_t length() const {
    const int32_t block[] = {handle_};
    return call(kLength, block);
  }
  /// Whether all bytes were transferred.
  bool transfer(Operation operation, const void* data, size_t bytes) const {
    const uint32_t block[] = {static_cast<uint32_t>(handle_), address(data), static_cast<uint32_t>(bytes)};
    return call(operation, block) == 0;
  }

 private:
  int32_t handle_;
};

}  // namespace

bool commandLine(char* text, size_t size) {
  const uint32_t block[] = {address(text), static_cast<uint32_t>(size)};
  return call(kCommandLine, block) == 0;
}

bool readFile(const char* name, rt::MutableBytes memory, size_t* bytes) {
  const File file(name, kModeRead);
  if (!file.isOpen()) return false;
  const int32_t length = file.length();
  if (length < 0 || static_cast<size_t>(length) > memory.size) return false;
  *bytes = static_cast<size_t>(length);
  return *bytes == 0 || file.transfer(kRead, memory.data, *bytes);
}

bool writeFile(const char* name, rt::Bytes bytes) {
  const File file(name, kModeWrite);
  return file.isOpen() && file.transfer(kWrite, bytes.data, bytes.size);
}

void exit(int code) {
  const uint32_t block[] = {kApplicationExit, static_cast<uint32_t>(code)};
  call(kExitExtended, block);
  // Only reached on hosts without the extended form.
  call(kExit,
       reinterpret_cast<const void*>(static_cast<uintptr_t>(code == 0 ? kApplicationExit : kRunTimeError)));
  for (;;) waitForInterrupt();
}

}  // namespace carina::firmware::semihosting
