// SPDX-License-Identifier: Apache-2.0
#include "platform/gdb_server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace carina::platform {

Result<std::unique_ptr<GdbServer>> GdbServer::listen(uint16_t port) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0) return fail(Code::ToolFailed, "cannot open a socket for GDB: {}", std::strerror(errno));
  std::unique_ptr<GdbServer> server(new GdbServer(listener, port));
  const int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  socklen_t size = sizeof address;
  auto* const plain = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener, plain, size) != 0 || ::listen(listener, 1) != 0 ||
      getsockname(listener, plain, &size) != 0)
    return fail(Code::ToolFailed, "cannot listen on port {}: {}", port, std::strerror(errno))
        .withRemedy("choose another, or 0 for any free port");
  server->port_ = ntohs(address.sin_port);
  return server;
}

GdbServer::~GdbServer() {
  if (connection_ >= 0) close(connection_);
  close(listener_);
}

Status GdbServer::accept() {
  do {
    connection_ = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  } while (connection_ < 0 && errno == EINTR);
  if (connection_ < 0)
    return fail(Code::ToolFailed, "cannot accept a connection from GDB: {}", std::strerror(errno));
  const int on = 1;
  setsockopt(connection_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return {};
}

bool GdbServer::send(std::string_view bytes) {
  while (!bytes.empty() && !lost_) {
    const ssize_t sent = ::send(connection_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) bytes.remove_prefix(static_cast<size_t>(sent));
    if (sent < 0 && errno != EINTR) lost_ = true;
  }
  return !lost_;
}

std::optional<PacketReader::Item> GdbServer::receive(bool wait) {
  while (!lost_) {
    while (!buffer_.empty()) {
      const char byte = buffer_.front();
      buffer_.erase(0, 1);
      if (auto item = reader_.feed(byte)) return item;
    }
    char bytes[4096];
    const ssize_t got = recv(connection_, bytes, sizeof bytes, wait ? 0 : MSG_DONTWAIT);
    if (got > 0) {
      buffer_.assign(bytes, static_cast<size_t>(got));
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && !wait && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::nullopt;
    lost_ = true;
  }
  return std::nullopt;
}

std::optional<Debugger::Next> GdbServer::handle(const PacketReader::Item& item, DebugEvent event,
                                                DebugTarget& target) {
  if (item.kind == PacketReader::Kind::Damaged) {
    send("-");
    return std::nullopt;
  }
  if (item.kind == PacketReader::Kind::Interrupt) return std::nullopt;  // it is already stopped
  if (acknowledge_) send("+");
  const PacketAnswer answer = answerPacket(item.payload, event, target);
  if (!answer.silent) send(framePacket(answer.text));
  if (answer.withoutAcknowledge) acknowledge_ = false;
  return answer.next;
}

Result<Debugger::Next> GdbServer::stopped(DebugEvent event, DebugTarget& target) {
  if (connection_ < 0) CARINA_RETURN_IF_ERROR(accept());
  if (running_) send(framePacket(stopReply(event, target)));
  running_ = false;
  while (const auto item = receive(true)) {
    if (const auto next = handle(*item, event, target)) {
      running_ = true;
      return *next;
    }
  }
  return Next::Kill;  // GDB has disconnected without notice
}

bool GdbServer::stopWanted() {
  while (const auto item = receive(false)) {
    if (item->kind == PacketReader::Kind::Interrupt) return true;
  }
  return lost_;
}

void GdbServer::say(const std::string& line) {
  send(framePacket(consolePacket(line)));
}

void GdbServer::ended(int exitCode) {
  send(framePacket(fmt::format("W{:02x}", static_cast<unsigned>(exitCode) & 0xff)));
}

}  // namespace carina::platform
