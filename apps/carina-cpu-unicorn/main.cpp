// SPDX-License-Identifier: MIT OR Apache-2.0
// carina-cpu-unicorn: a Cortex-M33 for Carina's virtual platform, emulated by Unicorn. Started by carina with
// a socket and a shared mapping (cpu_protocol.hpp); it knows guest memory, instructions and nothing else.
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "emulator.hpp"

namespace {

using namespace carina::cpu_protocol;

/// The shared mapping, or null with a message on stderr.
uint8_t* mapShared(uint64_t* size) {
  struct stat info {};
  if (fstat(kMemory, &info) != 0 || info.st_size < static_cast<off_t>(kGuestOffset)) return nullptr;
  *size = static_cast<uint64_t>(info.st_size);
  void* base = mmap(nullptr, *size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, kMemory, 0);
  return base == MAP_FAILED ? nullptr : static_cast<uint8_t*>(base);
}

Message answer(const char* error) {
  Message reply{};
  reply.kind = error == nullptr ? Kind::Done : Kind::Failed;
  if (error != nullptr) std::snprintf(reply.text, sizeof reply.text, "%s", error);
  return reply;
}

}  // namespace

int main() {
  uint64_t size = 0;
  uint8_t* base = mapShared(&size);
  if (base == nullptr) {
    std::fputs("carina-cpu-unicorn: is started by carina run FILE.elf --platform ...\n", stderr);
    return 2;
  }
  Channel channel(kSocket);
  Emulator emulator(channel, base, size);
  Message request{};
  while (channel.receive(&request)) {
    Message reply{};
    switch (request.kind) {
      case Kind::Hello:
        reply = answer(request.count == kVersion ? emulator.open()
                                                 : "carina and carina-cpu-unicorn differ in version");
        break;
      case Kind::MapRam:
        reply = answer(emulator.mapRam(request.address, request.count, request.offset));
        break;
      case Kind::MapDevices:
        reply = answer(emulator.mapDevices(request.address, request.count));
        break;
      case Kind::CodeChanged:
        reply = answer(emulator.codeChanged(request.address, request.count));
        break;
      case Kind::Watch:
        reply = answer(request.count == 0 ? emulator.unwatch()
                                          : emulator.watch(request.address, request.count, request.flags));
        break;
      case Kind::Run:
        reply = emulator.run(request.count, request.flags);
        break;
      default:
        reply = answer("unknown request");
        break;
    }
    if (!channel.send(reply)) break;
  }
  return 0;
}
