// SPDX-License-Identifier: MIT OR Apache-2.0
#include "channel.hpp"

#include <sys/socket.h>

#include <cerrno>

using carina::cpu_protocol::Message;

bool Channel::send(const Message& message) {
  ssize_t sent = -1;
  do {
    sent = ::send(socket_, &message, sizeof message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(sizeof message);
}

bool Channel::receive(Message* message) {
  ssize_t received = -1;
  do {
    received = recv(socket_, message, sizeof *message, 0);
  } while (received < 0 && errno == EINTR);
  return received == static_cast<ssize_t>(sizeof *message);
}
