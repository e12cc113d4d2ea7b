// SPDX-License-Identifier: Apache-2.0
// A GDB server over TCP, for this machine only. Accepts one debugger, once.
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

  /// The first call waits until a debugger has connected.
  Result<Next> stopped(DebugEvent event, DebugTarget& target) override;
  bool stopWanted() override;
  void say(const std::string& line) override;
  void ended(int exitCode) override;

 private:
  GdbServer(int listener, uint16_t port) : listener_(listener), port_(port) {}
  Status accept();
  /// False: the connection is lost.
  bool send(std::string_view bytes);
  /// The next item; with `wait`, blocks for it. nullopt: none yet, or the connection is lost.
  std::optional<PacketReader::Item> receive(bool wait);
  /// Sends the answer; returns what the core does next, if it resumes.
  std::optional<Next> handle(const PacketReader::Item& item, DebugEvent event, DebugTarget& target);

  int listener_, connection_ = -1;
  uint16_t port_;
  PacketReader reader_;
  std::string buffer_;    // bytes received but not yet processed
  bool running_ = false;  // the core runs: GDB waits for a stop reply
  bool acknowledge_ = true, lost_ = false;
};

}  // namespace carina::platform
