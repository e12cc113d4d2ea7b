// SPDX-License-Identifier: MIT OR Apache-2.0
// Whole messages over the socket that carina handed over.
#pragma once

#include "platform/cpu_protocol.hpp"

class Channel {
 public:
  explicit Channel(int socket) : socket_(socket) {}
  /// False when the other side is gone.
  bool send(const carina::cpu_protocol::Message& message);
  bool receive(carina::cpu_protocol::Message* message);

 private:
  int socket_;
};
