// SPDX-License-Identifier: Apache-2.0
#include "platform/remote_cpu.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace carina::platform {

using cpu_protocol::Kind;
using cpu_protocol::Message;

namespace {

constexpr const char* kProgram = "carina-cpu-unicorn";

bool isProgram(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) && access(path.c_str(), X_OK) == 0;
}

/// In the child: gives the two descriptors their agreed numbers and becomes `program`. Async-signal-safe.
[[noreturn]] void becomeCpu(const char* program, int socket, int memory) {
  // Both may sit on each other's number: move them out of the way first. The copies at 3 and 4 survive exec.
  const int socketCopy = fcntl(socket, F_DUPFD_CLOEXEC, 10);
  const int memoryCopy = fcntl(memory, F_DUPFD_CLOEXEC, 10);
  if (socketCopy >= 0 && memoryCopy >= 0 && dup2(socketCopy, cpu_protocol::kSocket) >= 0 &&
      dup2(memoryCopy, cpu_protocol::kMemory) >= 0) {
    execl(program, kProgram, static_cast<char*>(nullptr));
  }
  _exit(127);
}

}  // namespace

Result<std::filesystem::path> findUnicornCpu() {
  std::error_code ignored;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", ignored);
  if (const auto beside = self.parent_path() / kProgram; isProgram(beside)) return beside;
  const char* variable = std::getenv("PATH");
  std::string_view path = variable == nullptr ? "" : variable;
  while (!path.empty()) {
    const std::string_view folder = path.substr(0, path.find(':'));
    path.remove_prefix(std::min(path.size(), folder.size() + 1));
    if (folder.empty()) continue;
    if (const auto candidate = std::filesystem::path(folder) / kProgram; isProgram(candidate))
      return candidate;
  }
  return fail("{}, the program that emulates the Cortex-M, is neither beside {} nor in PATH", kProgram,
              self.string())
      .withRemedy(
          "it is built together with carina when libunicorn-dev is installed (scripts/deps.sh), and only "
          "then");
}

Result<std::unique_ptr<RemoteCpu>> RemoteCpu::start(const std::filesystem::path& program,
                                                    GuestMemory& memory) {
  std::array<int, 2> sockets{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets.data()) != 0)
    return fail("socket for {}: {}", kProgram, std::strerror(errno));
  const std::string path = program.string();
  const pid_t process = fork();
  if (process == 0) becomeCpu(path.c_str(), sockets[1], memory.file());
  const int reason = errno;
  close(sockets[1]);
  if (process < 0) {
    close(sockets[0]);
    return fail("cannot start {}: {}", path, std::strerror(reason))
        .withRemedy("this machine has no room for another process");
  }
  std::unique_ptr<RemoteCpu> cpu(new RemoteCpu(memory, sockets[0], process));
  CARINA_RETURN_IF_ERROR(cpu->request(Kind::Hello, 0, cpu_protocol::kVersion, 0));
  return cpu;
}

RemoteCpu::~RemoteCpu() {
  close(socket_);  // the other side ends when its socket does
  if (process_ > 0) {
    while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

Error RemoteCpu::lost() {
  int status = 0;
  pid_t ended = 0;
  do {
    ended = waitpid(process_, &status, 0);
  } while (ended < 0 && errno == EINTR);
  process_ = -1;
  if (ended > 0 && WIFSIGNALED(status)) {
    return fail("{} was ended by signal {}", kProgram, WTERMSIG(status))
        .withRemedy("signal 9 mostly means that memory ran out");
  }
  return fail("{} ended unexpectedly (status {})", kProgram, ended > 0 ? WEXITSTATUS(status) : -1)
      .withRemedy("it comes with carina, in the same folder: install both of one version");
}

Status RemoteCpu::send(const Message& message) {
  ssize_t sent = -1;
  do {
    sent = ::send(socket_, &message, sizeof message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent != static_cast<ssize_t>(sizeof message)) return lost();
  return {};
}

Result<Message> RemoteCpu::receive() {
  Message message{};
  ssize_t received = -1;
  do {
    received = recv(socket_, &message, sizeof message, 0);
  } while (received < 0 && errno == EINTR);
  if (received != static_cast<ssize_t>(sizeof message)) return lost();
  message.text[sizeof message.text - 1] = '\0';
  if (message.kind == Kind::Failed) return fail("{}: {}", kProgram, message.text);
  return message;
}

Status RemoteCpu::request(Kind kind, uint32_t address, uint64_t count, uint64_t offset, uint32_t flags) {
  Message message{};
  message.kind = kind;
  message.address = address;
  message.count = count;
  message.offset = offset;
  message.flags = flags;
  CARINA_RETURN_IF_ERROR(send(message));
  CARINA_TRY(const Message reply, receive());
  if (reply.kind != Kind::Done) return fail("{} broke the protocol", kProgram);
  return {};
}

Status RemoteCpu::mapRam(uint32_t address, uint64_t size, uint64_t offset) {
  return request(Kind::MapRam, address, size, cpu_protocol::kGuestOffset + offset);
}
Status RemoteCpu::mapDevices(uint32_t address, uint64_t size) {
  return request(Kind::MapDevices, address, size, 0);
}
Status RemoteCpu::codeChanged(uint32_t address, uint64_t size) {
  return request(Kind::CodeChanged, address, size, 0);
}

Status RemoteCpu::watch(std::span<const WatchedRange> ranges) {
  CARINA_RETURN_IF_ERROR(request(Kind::Watch, 0, 0, 0));
  for (const WatchedRange& range : ranges) {
    const uint32_t flags =
        (range.writes ? cpu_protocol::kWatchWrites : 0) | (range.reads ? cpu_protocol::kWatchReads : 0);
    CARINA_RETURN_IF_ERROR(request(Kind::Watch, range.address, range.size, 0, flags));
  }
  return {};
}

Result<Stop> RemoteCpu::run(uint64_t budget, bool stopOnMaskChange, DeviceSpace& devices) {
  return execute(budget, stopOnMaskChange ? cpu_protocol::kStopOnMaskChange : 0, devices);
}
Result<Stop> RemoteCpu::step(DeviceSpace& devices) {
  return execute(1, cpu_protocol::kOneInstruction, devices);
}

Result<Stop> RemoteCpu::execute(uint64_t budget, uint32_t flags, DeviceSpace& devices) {
  Message message{};
  message.kind = Kind::Run;
  message.count = budget;
  message.flags = flags;
  for (;;) {
    CARINA_RETURN_IF_ERROR(send(message));
    CARINA_TRY(const Message event, receive());
    message = {};
    message.kind = Kind::Value;
    switch (event.kind) {
      case Kind::Read:
        message.value = devices.read(event.address, event.size);
        break;
      case Kind::Write:
        devices.write(event.address, event.size, event.value);
        break;
      case Kind::Stopped:
        return Stop{event.reason, event.address, event.value};
      default:
        return fail("{} broke the protocol", kProgram);
    }
    message.flags = devices.stopWanted() ? cpu_protocol::kStopSoon : 0;
  }
}

}  // namespace carina::platform
