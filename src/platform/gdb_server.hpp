// SPDX-License-Identifier: Apache-2.0
// GDB over TCP, on this machine only. One debugger, once.
#pragma once

#include <memory>

#include "platform/debugger.hpp"
#include "platform/gdb_packets.hpp"

namespace carina::platform {

class GdbServer final : public Debugger {
 public:
  /// Listens at 127.0.0.1; port 0: any free one.
  static Result<std::unique_ptr<GdbServer>> listen(uint16_t port);
  ~GdbServer() override;
  GdbServer(const GdbServer&) = delete;
  GdbServer& operator=(const GdbServer&) = delete;

  uint16_t port() const { return port_; }

  /// The first time waits until a debugger has connected.
  Result<Next> stopped(DebugEvent event, DebugTarget& target) override;
  bool stopWanted() override;
  void say(const std::string& line) override;
  void ended(int exitCode) override;

 private:
  GdbServer(int listener, uint16_t port) : listener_(listener), port_(port) {}
  Status accept();
  /// False: the connection is lost.
  bool send(std::string_view bytes);
  /// The next item; with `wait` blocks for it. Nothing: none yet, or the connection is lost.
  std::optional<PacketReader::Item> receive(bool wait);
  /// Puts the answer on the wire; what the core does next, if it goes on.
  std::optional<Next> handle(const PacketReader::Item& item, DebugEvent event, DebugTarget& target);

  int listener_, connection_ = -1;
  uint16_t port_;
  PacketReader reader_;
  std::string buffer_;    // bytes that have come and are not read yet
  bool running_ = false;  // the core runs: GDB waits for a stop reply
  bool acknowledge_ = true, lost_ = false;
};

}  // namespace carina::platform
