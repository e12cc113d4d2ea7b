// SPDX-License-Identifier: Apache-2.0
// Firmware under a debugger: one that is part of the test, and one that is connected over a socket.
#include "platform/debugger.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "base/file.hpp"
#include "platform/elf.hpp"
#include "platform/gdb_server.hpp"
#include "platform/platform.hpp"

namespace carina::platform {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Next = Debugger::Next;

/// Runs the test's script at every stop.
class Scripted final : public Debugger {
 public:
  using Script = std::function<Next(DebugEvent, DebugTarget&)>;
  explicit Scripted(Script script) : script_(std::move(script)) {}
  Result<Next> stopped(DebugEvent event, DebugTarget& target) override {
    events.push_back(event);
    return script_(event, target);
  }
  bool stopWanted() override { return false; }
  void say(const std::string& line) override { said += line; }
  void ended(int exitCode) override { code = exitCode; }

  std::vector<DebugEvent> events;
  std::string said;
  std::optional<int> code;

 private:
  Script script_;
};

class DebuggedFirmware : public testing::Test {
 protected:
  DebuggedFirmware() {
    options.board = *findBoard("corstone-300");
    options.machine = *npu::makeMachine("ethos-u55-128", "", "");
    options.secondsLimit = 60;
    options.output = [this](uint32_t, char byte) { text += byte; };
  }
  Outcome run(const std::string& name, Debugger* debugger) {
    options.debugger = debugger;
    text.clear();
    auto outcome = runElf(std::filesystem::path(CARINA_IMAGES) / name, options);
    EXPECT_TRUE(outcome.ok()) << (outcome.ok() ? "" : outcome.error().str());
    return outcome.ok() ? *outcome : Outcome{};
  }
  static uint32_t addressOf(const std::string& image, std::string_view function) {
    const auto file = *MappedFile::open(std::filesystem::path(CARINA_IMAGES) / image);
    const auto elf = *readElf(file->bytes());
    for (const ElfImage::Symbol& symbol : elf.functions) {
      if (symbol.name == function) return symbol.address & ~1u;
    }
    ADD_FAILURE() << function << " is not in " << image;
    return 0;
  }

  Options options;
  std::string text;
};

// Stepping instruction by instruction gives the same output as running freely.
TEST_F(DebuggedFirmware, StepByStep) {
  const Outcome whole = run("debugged-300.elf", nullptr);
  const std::string expected = text;
  EXPECT_THAT(expected, HasSubstr("ordered 3\nordered 12\nordered 12\nordered 3\ncounter 2\n"));
  Scripted debugger([](DebugEvent, DebugTarget&) { return Next::Step; });
  const Outcome stepped = run("debugged-300.elf", &debugger);
  EXPECT_EQ(text, expected);
  EXPECT_EQ(stepped.exitCode, 2);
  EXPECT_EQ(debugger.code, 2);
  // Running freely, the rest of the last basic block counts as well.
  EXPECT_LE(stepped.instructions, whole.instructions);
  EXPECT_GE(stepped.instructions + 4, whole.instructions);
  // IT instructions are stepped together with those they govern.
  EXPECT_LT(debugger.events.size(), whole.instructions);
  EXPECT_GT(debugger.events.size(), whole.instructions * 9 / 10);
}

TEST_F(DebuggedFirmware, Breakpoints) {
  const uint32_t ordered = addressOf("debugged-300.elf", "ordered");
  std::vector<uint32_t> arguments;
  Scripted debugger([&](DebugEvent event, DebugTarget& target) {
    if (event == DebugEvent::Attached) {
      EXPECT_TRUE(target.setBreakpoint(ordered));
      EXPECT_FALSE(target.setBreakpoint(ordered + 1));
      EXPECT_FALSE(target.setBreakpoint(0xf0000000));
    } else {
      EXPECT_EQ(event, DebugEvent::Breakpoint);
      EXPECT_EQ(target.registers().pc, ordered);
      arguments.push_back(target.registers().r[0]);
      std::array<std::byte, 2> code{};
      EXPECT_TRUE(target.read(ordered, code));
      EXPECT_NE(code[1], std::byte{0xbe}) << "breakpoints must be invisible in memory";
      target.registers().r[1] = 7;  // 10 * the smaller + the larger
      if (arguments.size() == 3) target.clearBreakpoint(ordered);
    }
    return Next::Continue;
  });
  run("debugged-300.elf", &debugger);
  EXPECT_THAT(arguments, ElementsAre(0, 1, 2));
  EXPECT_THAT(text, HasSubstr("ordered 7\nordered 17\nordered 27\nordered 3\n"));
}

// The counter is read and written once for each of four numbers, and read twice at the end.
TEST_F(DebuggedFirmware, Watchpoints) {
  const uint32_t mark = addressOf("debugged-300.elf", "mark");
  const auto values = [&](bool reads, bool writes, int most) {
    uint32_t counter = 0;
    std::vector<uint32_t> seen;
    Scripted debugger([&](DebugEvent event, DebugTarget& target) {
      if (event == DebugEvent::Attached) {
        EXPECT_TRUE(target.setBreakpoint(mark));
        EXPECT_FALSE(target.setWatchpoint({0x30000000, 0, true, true}));
        EXPECT_FALSE(target.setWatchpoint({0xfffffffe, 4, true, true}));
      } else if (event == DebugEvent::Breakpoint) {
        counter = target.registers().r[0];
        target.clearBreakpoint(mark);
        EXPECT_TRUE(target.setWatchpoint({counter, 4, reads, writes}));
      } else {
        EXPECT_EQ(event, DebugEvent::Watchpoint);
        EXPECT_EQ(target.accessed().address, counter);
        std::array<uint32_t, 1> value{};
        EXPECT_TRUE(target.read(counter, std::as_writable_bytes(std::span(value))));
        seen.push_back(value[0]);
        if (static_cast<int>(seen.size()) == most) target.clearWatchpoint({counter, 4, reads, writes});
      }
      return Next::Continue;
    });
    EXPECT_EQ(run("debugged-300.elf", &debugger).exitCode, 2);
    EXPECT_THAT(text, HasSubstr("ordered 3\nordered 12\nordered 12\nordered 3\ncounter 2\n"));
    return seen;
  };
  EXPECT_THAT(values(false, true, 100), ElementsAre(0, 0, 1, 2));
  EXPECT_THAT(values(true, false, 100), ElementsAre(0, 0, 0, 1, 2, 2));
  EXPECT_EQ(values(true, true, 100).size(), 10u);
  EXPECT_THAT(values(false, true, 3), ElementsAre(0, 0, 1));
}

TEST_F(DebuggedFirmware, StopsTakeNoTime) {
  const Outcome alone = run("debugged-300.elf", nullptr);
  Scripted debugger([&](DebugEvent event, DebugTarget& target) {
    EXPECT_TRUE(target.setBreakpoint(addressOf("debugged-300.elf", "ordered")));
    return event == DebugEvent::Stepped || debugger.events.size() % 2 == 0 ? Next::Continue : Next::Step;
  });
  const Outcome debugged = run("debugged-300.elf", &debugger);
  EXPECT_GT(debugger.events.size(), 4u);
  EXPECT_EQ(debugged.instructions, alone.instructions);
  EXPECT_EQ(debugged.cycles, alone.cycles);
}

TEST_F(DebuggedFirmware, MemoryAndDevices) {
  Scripted debugger([](DebugEvent, DebugTarget& target) {
    std::array<std::byte, 4> word{};
    EXPECT_TRUE(target.write(0x30001000, std::array{std::byte{1}, std::byte{2}}));
    EXPECT_TRUE(target.read(0x20001000, word));  // the other alias
    EXPECT_EQ(word[1], std::byte{2});
    EXPECT_TRUE(target.read(0xe000ed00, word));  // CPUID
    EXPECT_EQ(word[3], std::byte{0x41});
    EXPECT_FALSE(target.read(0xe000ed01, word));
    EXPECT_FALSE(target.read(0xf0000000, word));
    EXPECT_FALSE(target.write(0xfffffffe, word));
    return Next::Kill;
  });
  const Outcome outcome = run("debugged-300.elf", &debugger);
  EXPECT_EQ(outcome.reason, EndReason::Killed);
  EXPECT_EQ(outcome.instructions, 0u);
  EXPECT_EQ(debugger.code, std::nullopt);
}

/// All registers that a debugger sees.
std::string registersOf(DebugTarget& target) {
  return answerPacket("g", DebugEvent::Stepped, target).text;
}

TEST_F(DebuggedFirmware, StepsBackAlongTheSamePath) {
  const std::string alone = (run("interrupts-300.elf", nullptr), text);
  const uint32_t handler = addressOf("interrupts-300.elf", "SysTick_Handler");
  // Runs to an interrupt handler and steps on; then steps all of it back, and forward once more.
  constexpr size_t kSteps = 40, kBack = 60;
  std::vector<std::string> forth, again;
  size_t stops = 0;
  Scripted debugger([&](DebugEvent event, DebugTarget& target) {
    ++stops;
    if (stops == 1) {
      EXPECT_TRUE(target.setBreakpoint(handler));
      return Next::Continue;
    }
    if (stops == 2) {
      EXPECT_EQ(event, DebugEvent::Breakpoint);
      EXPECT_EQ(target.registers().pc, handler);
      target.registers().r[11] = 0x1234;
      target.clearBreakpoint(handler);
    }
    if (stops <= 2 + kSteps) {
      forth.push_back(registersOf(target));
      return Next::Step;
    }
    if (stops <= 3 + kSteps + kBack) {
      // The first of these stops is one step beyond the end of `forth`.
      const size_t back = stops - (3 + kSteps);
      if (back >= 1 && back <= kSteps) {
        EXPECT_EQ(registersOf(target), forth[kSteps + 1 - back]) << back;
      } else if (back == kSteps + 1) {
        EXPECT_EQ(target.registers().pc, handler);
        EXPECT_NE(target.registers().r[11], 0x1234u) << "before the debugger changed it";
      }
      return Next::StepBack;
    }
    if (stops <= 3 + kSteps + kBack + 20) {
      again.push_back(registersOf(target));
      return Next::Step;
    }
    return Next::Continue;
  });
  const Outcome outcome = run("interrupts-300.elf", &debugger);
  EXPECT_EQ(outcome.exitCode, 0) << text;
  EXPECT_EQ(text, alone) << "output must be sent only once";
  EXPECT_EQ(again.size(), 20u);
}

TEST_F(DebuggedFirmware, ContinuesBackToThePreviousBreakpoint) {
  const uint32_t put = addressOf("hello-300.elf", "put"), main = addressOf("hello-300.elf", "main");
  std::vector<uint32_t> places;
  std::vector<uint8_t> sent;  // arguments of put()
  std::vector<DebugEvent> events;
  Scripted debugger([&](DebugEvent event, DebugTarget& target) {
    events.push_back(event);
    const State& s = target.registers();
    places.push_back(s.pc);
    sent.push_back(static_cast<uint8_t>(s.r[0]));
    switch (events.size()) {
      case 1:
        target.setBreakpoint(put);
        return Next::Continue;
      case 2:
      case 3:
      case 4:
        return Next::Continue;  // H, e, l; stops at the second l
      case 5:
      case 6:
        return Next::ContinueBack;
      case 7:
        target.clearBreakpoint(put);
        target.setBreakpoint(main);
        return Next::ContinueBack;
      case 8:
        return Next::ContinueBack;
      case 9:
        target.clearBreakpoint(main);
        target.setBreakpoint(put);
        return Next::Continue;
      default:
        return Next::Kill;
    }
  });
  run("hello-300.elf", &debugger);
  ASSERT_EQ(places.size(), 10u);
  EXPECT_EQ(std::string(sent.begin() + 1, sent.begin() + 7), "Hellle");
  EXPECT_EQ(places[7], main);
  EXPECT_EQ(events[8], DebugEvent::Beginning);
  EXPECT_EQ(places[8], places[0]);
  EXPECT_EQ(places[9], put);
  EXPECT_EQ(sent[9], 'H');
}

TEST_F(DebuggedFirmware, CannotStepBackBeyondTheBeginning) {
  std::vector<DebugEvent> seen;
  size_t stops = 0;
  Scripted debugger([&](DebugEvent, DebugTarget&) {
    ++stops;
    return stops == 1 || stops == 3 ? Next::StepBack
           : stops == 2             ? Next::Step
           : stops == 4             ? Next::StepBack
                                    : Next::Kill;
  });
  run("hello-300.elf", &debugger);
  EXPECT_THAT(debugger.events, ElementsAre(DebugEvent::Attached, DebugEvent::Beginning, DebugEvent::Stepped,
                                           DebugEvent::Beginning, DebugEvent::Beginning));
}

TEST_F(DebuggedFirmware, RunsOnAfterDetaching) {
  Scripted debugger([&](DebugEvent, DebugTarget& target) {
    EXPECT_TRUE(target.setBreakpoint(addressOf("debugged-300.elf", "ordered")));
    return Next::Detach;
  });
  EXPECT_EQ(run("debugged-300.elf", &debugger).exitCode, 2);
  EXPECT_THAT(debugger.events, ElementsAre(DebugEvent::Attached));
}

TEST_F(DebuggedFirmware, FaultsAndInterruptsStillWork) {
  options.commandLine = "faults l";
  Scripted debugger([](DebugEvent, DebugTarget&) { return Next::Continue; });
  run("faults-300.elf", &debugger);
  EXPECT_THAT(debugger.events, ElementsAre(DebugEvent::Attached, DebugEvent::Fault));
  EXPECT_THAT(text, HasSubstr("Hard fault."));
  Scripted other([](DebugEvent, DebugTarget&) { return Next::Continue; });
  EXPECT_EQ(run("tasks-300.elf", &other).exitCode, 0) << text;
}

TEST_F(DebuggedFirmware, StopsOnceMoreWhereTheFirmwareHangs) {
  const uint32_t forever = addressOf("receive-300.elf", "main");
  Scripted debugger([&](DebugEvent event, DebugTarget& target) {
    if (event == DebugEvent::Ending) {
      EXPECT_GT(target.registers().pc, forever);
    }
    return Next::Continue;
  });
  run("receive-300.elf", &debugger);
  EXPECT_THAT(debugger.events, ElementsAre(DebugEvent::Attached, DebugEvent::Ending));
  EXPECT_THAT(debugger.said, HasSubstr("waits for an interrupt"));
  EXPECT_EQ(debugger.code, 1);
}

// --- over the wire

class Client {
 public:
  explicit Client(uint16_t port) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    connected_ = connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  ~Client() { close(socket_); }
  bool connected() const { return connected_; }
  void send(const std::string& bytes) const {
    EXPECT_EQ(::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  /// The next packet; empty if the connection has ended.
  std::string receive() {
    char byte = 0;
    while (recv(socket_, &byte, 1, 0) == 1) {
      if (auto item = reader_.feed(byte)) {
        send("+");
        return item->payload;
      }
    }
    return {};
  }
  std::string ask(const std::string& packet) {
    send(framePacket(packet));
    return receive();
  }

 private:
  int socket_;
  bool connected_ = false;
  PacketReader reader_;
};

TEST_F(DebuggedFirmware, OverASocket) {
  auto server = GdbServer::listen(0);
  ASSERT_TRUE(server.ok()) << server.error().str();
  const uint16_t port = (*server)->port();
  const uint32_t ordered = addressOf("debugged-300.elf", "ordered");
  std::thread user([&] {
    Client gdb(port);
    ASSERT_TRUE(gdb.connected());
    EXPECT_EQ(gdb.ask("?"), "T05thread:1;");
    EXPECT_EQ(gdb.ask(fmt::format("Z0,{:x},2", ordered)), "OK");
    EXPECT_EQ(gdb.ask("c"), "T05thread:1;");
    EXPECT_EQ(gdb.ask("p0"), "00000000");
    EXPECT_EQ(gdb.ask("s"), "T05thread:1;");
    EXPECT_EQ(gdb.ask(fmt::format("z0,{:x},2", ordered)), "OK");
    EXPECT_EQ(gdb.ask("c"), "W02");
  });
  const Outcome outcome = run("debugged-300.elf", server->get());
  user.join();
  EXPECT_EQ(outcome.reason, EndReason::Exit);
  EXPECT_EQ(outcome.exitCode, 2);
}

TEST_F(DebuggedFirmware, InterruptedOverASocket) {
  auto server = GdbServer::listen(0);
  ASSERT_TRUE(server.ok());
  const uint16_t port = (*server)->port();
  options.commandLine = "faults t";  // takes very long
  std::thread user([port] {
    Client gdb(port);
    gdb.send(framePacket("c"));
    gdb.send("\x03");
    EXPECT_EQ(gdb.receive(), "T02thread:1;");
    gdb.send(framePacket("k"));
  });
  const Outcome outcome = run("faults-300.elf", server->get());
  user.join();
  EXPECT_EQ(outcome.reason, EndReason::Killed);
}

TEST_F(DebuggedFirmware, ALostDebuggerEndsTheRun) {
  auto server = GdbServer::listen(0);
  ASSERT_TRUE(server.ok());
  std::thread user([port = (*server)->port()] { Client gdb(port); });
  EXPECT_EQ(run("debugged-300.elf", server->get()).reason, EndReason::Killed);
  user.join();
}

TEST_F(DebuggedFirmware, APortInUseIsAnError) {
  auto first = GdbServer::listen(0);
  ASSERT_TRUE(first.ok());
  const auto second = GdbServer::listen((*first)->port());
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.error().str(), HasSubstr("cannot listen on port"));
}

}  // namespace
}  // namespace carina::platform
