// SPDX-License-Identifier: Apache-2.0
// As in SQLite's tests, a command is run repeatedly, each time with another system call or allocation
// failing. It must always exit normally: either with one error and all outputs unchanged, or, if it does not
// depend on what failed, with all outputs complete.
#include "faults.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "support/contents.hpp"
#include "support/fixtures.hpp"
#include "support/temp_dir.hpp"

namespace carina::test {
namespace {

namespace fs = std::filesystem;

using testing::HasSubstr;

/// Every file and folder below a folder, with the contents of the files.
std::map<std::string, std::string> everythingIn(const fs::path& folder) {
  std::map<std::string, std::string> all;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = fs::relative(entry.path(), folder).string();
    all[name] = entry.is_regular_file() ? contentsOf(entry.path()) : "(folder)";
  }
  return all;
}

size_t countOf(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

class Faults : public testing::Test {
 protected:
  using Arguments = std::vector<std::string>;

  std::string out(const std::string& name) const { return (out_ / name).string(); }

  Arguments compile() const {
    return {"compile", network_, "--target",   "ethos-u55-128", "--calibrate",
            arrays_,   "-o",     out("d.pte"), "--report",      out("report")};
  }
  Arguments run() const {
    return {"run", program_, "--input", arrays_, "--output", out("o.npz"), "--etdump", out("p.etdp")};
  }
  Arguments check() const { return {"check", program_}; }
  Arguments profile() const {
    return {"profile", program_, "--trace", out("t.json"), "--json", out("p.json")};
  }

  /// A program for the commands that need one.
  void makeProgram() {
    program_ = (folder_ / "program.pte").string();
    const Arguments arguments{"compile",     network_, "--target", "ethos-u55-128",
                              "--calibrate", arrays_,  "-o",       program_};
    ASSERT_EQ(runWithFault(Fault::None, 0, [&] { return carina(arguments); }).status, 0);
  }

  void emptyOutputs() const {
    fs::remove_all(out_.path());
    fs::create_directory(out_.path());
  }

  /// Creates files of these names, as if by an earlier command.
  void fillOutputs(const std::map<std::string, std::string>& complete) const {
    emptyOutputs();
    for (const auto& [name, contents] : complete) {
      if (contents == "(folder)") continue;
      fs::create_directories((out_.path() / name).parent_path());
      std::ofstream(out(name)) << "old " << name;
    }
  }

  /// The outputs of a command if nothing fails; the outputs in `vary` contain times or dates.
  std::map<std::string, std::string> complete(const Arguments& arguments,
                                              const std::vector<std::string>& vary) {
    emptyOutputs();
    const Child child = runWithFault(Fault::None, 0, [&] { return carina(arguments); });
    EXPECT_EQ(child.status, 0) << child.err;
    return without(everythingIn(out_.path()), vary);
  }

  static std::map<std::string, std::string> without(std::map<std::string, std::string> files,
                                                    const std::vector<std::string>& vary) {
    for (const std::string& name : vary) {
      if (files.contains(name)) files[name] = "(varies)";
    }
    return files;
  }

  /// The first failure; CARINA_FAULT=N in the environment starts at the N-th, for example under a debugger.
  static long firstFailure() {
    const char* const text = std::getenv("CARINA_FAULT");
    return text == nullptr ? 1 : std::atol(text);
  }

  /// Tries every failing call; `vary` names outputs that contain times.
  void expectAllOrNothingWhenCallsFail(const Arguments& arguments,
                                       const std::vector<std::string>& vary = {}) {
    const auto whole = complete(arguments, vary);
    for (const bool old : {false, true}) {
      long failures = 0;
      for (long n = firstFailure();; ++n) {
        old ? fillOutputs(whole) : emptyOutputs();
        const auto before = everythingIn(out_.path());
        const Child child = runWithFault(Fault::Call, n, [&] { return carina(arguments); });
        ASSERT_TRUE(child.exited) << "call " << n << ": signal " << child.status << "\n" << child.err;
        if (!child.happened) break;
        const auto after = everythingIn(out_.path());
        // The final message may fail after the outputs are in place.
        if (child.status == 0 || child.err.find("standard output") != std::string::npos) {
          EXPECT_EQ(without(after, vary), whole) << "call " << n;
          continue;
        }
        ++failures;
        EXPECT_EQ(child.status, 1) << "call " << n;
        EXPECT_EQ(countOf(child.err, "carina: error[E"), 1u) << "call " << n << ": " << child.err;
        EXPECT_THAT(child.err, HasSubstr(": cannot ")) << "call " << n;
        EXPECT_EQ(after, before) << "call " << n << ": " << child.err;
      }
      EXPECT_GT(failures, 3);
    }
  }

  /// Which allocations fail: each in turn, or ever fewer, because late ones are made in loops.
  enum class Allocations { Every, Fewer };
  static long nextAllocation(Allocations which, long n) {
    return which == Allocations::Every ? n + 1 : n + 1 + n / 24;
  }

  /// Outputs exist only if memory ran out after the last of them was written, while printing.
  void expectAllOrNothingWhenMemoryRunsOut(Fault fault, const Arguments& arguments,
                                           const std::vector<std::string>& vary = {},
                                           Allocations which = Allocations::Fewer) {
    const auto whole = complete(arguments, vary);
    bool named = false;
    long failures = 0;
    for (long n = firstFailure();; n = nextAllocation(which, n)) {
      emptyOutputs();
      const Child child = runWithFault(fault, n, [&] { return carina(arguments); });
      ASSERT_TRUE(child.exited) << "allocation " << n << ": signal " << child.status << "\n" << child.err;
      if (!child.happened) break;
      if (child.status == 0) continue;  // an optional allocation that only improves speed
      ++failures;
      EXPECT_EQ(child.status, 1) << "allocation " << n << ": " << child.err;
      EXPECT_EQ(countOf(child.err, "carina: error[E"), 1u) << "allocation " << n << ": " << child.err;
      EXPECT_THAT(child.err, HasSubstr("out of memory")) << "allocation " << n;
      // The error names the file except before the command line has been parsed.
      const bool hasFile = child.err.find("]: " + arguments[1] + ": ") != std::string::npos;
      EXPECT_TRUE(hasFile || !named) << "allocation " << n << ": " << child.err;
      named |= hasFile;
      const auto after = without(everythingIn(out_.path()), vary);
      EXPECT_TRUE(after.empty() || after == whole) << "allocation " << n;
    }
    EXPECT_TRUE(named);
    EXPECT_GT(failures, 50);
  }

  TempDir folder_;
  TempDir out_;
  std::string network_ = modelFile("dense.pt2").string();
  std::string arrays_ = modelFile("dense.npz").string();
  std::string program_;
};

TEST_F(Faults, ACompilationWritesAllOrNothing) {
  expectAllOrNothingWhenCallsFail(compile());
}

TEST_F(Faults, ARunWritesAllOrNothing) {
  makeProgram();
  expectAllOrNothingWhenCallsFail(run(), {"p.etdp"});
}

TEST_F(Faults, AProfileWritesAllOrNothing) {
  makeProgram();
  expectAllOrNothingWhenCallsFail(profile());
}

TEST_F(Faults, ACompilationWithoutMemoryWritesAllOrNothing) {
  expectAllOrNothingWhenMemoryRunsOut(Fault::Allocation, compile());
  expectAllOrNothingWhenMemoryRunsOut(Fault::AllocationsFrom, compile());
}

TEST_F(Faults, ARunWithoutMemoryWritesAllOrNothing) {
  makeProgram();
  expectAllOrNothingWhenMemoryRunsOut(Fault::Allocation, run(), {"p.etdp"}, Allocations::Every);
  expectAllOrNothingWhenMemoryRunsOut(Fault::AllocationsFrom, run(), {"p.etdp"}, Allocations::Every);
}

TEST_F(Faults, ACheckWithoutMemoryReportsThat) {
  makeProgram();
  expectAllOrNothingWhenMemoryRunsOut(Fault::Allocation, check(), {}, Allocations::Every);
  expectAllOrNothingWhenMemoryRunsOut(Fault::AllocationsFrom, check(), {}, Allocations::Every);
}

TEST_F(Faults, FullStandardOutputIsAnError) {
  makeProgram();
  const std::vector<Arguments> commands{compile(),
                                        run(),
                                        check(),
                                        profile(),
                                        {"targets"},
                                        {"--help"},
                                        {"inspect", program_},
                                        {"ops", network_, "--target", "ethos-u55-128"}};
  for (const Arguments& arguments : commands) {
    const Child child = runWithFault(Fault::None, 0, [&] {
      ::dup2(::open("/dev/full", O_WRONLY), STDOUT_FILENO);
      return carina(arguments);
    });
    EXPECT_EQ(child.status, 1) << arguments[0];
    // The reason is lost if much is printed: the C library then encounters the error before the end.
    const char* const expected =
        "carina: error.E0102.: cannot write to standard output(: No space left on device)?\n";
    EXPECT_THAT(child.err, testing::MatchesRegex(expected)) << arguments[0];
  }
}

/// Waits until the folder contains a file whose name begins like this.
void awaitFile(const fs::path& folder, const std::string& beginning) {
  for (;;) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().filename().string().starts_with(beginning)) return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

TEST_F(Faults, SignalsLeaveNoTemporaryFiles) {
  makeProgram();
  // Without a reader of the pipe, the command blocks after the other output has been written but not yet
  // moved into place.
  const std::string pipe = (folder_ / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::ofstream(out("o.npz")) << "old";
  const Arguments arguments{"run", program_, "--input", arrays_, "--output", out("o.npz"), "--json", pipe};
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    RunningChild running(Fault::NamelessFiles, 0, [&] { return carina(arguments); });
    awaitFile(out_.path(), ".o.npz.");
    running.signal(number);
    const Child child = running.wait();
    EXPECT_FALSE(child.exited);
    EXPECT_EQ(child.status, number);
    EXPECT_EQ(everythingIn(out_.path()), (std::map<std::string, std::string>{{"o.npz", "old"}}));
  }
}

TEST_F(Faults, LeftoversOfAKilledCommandAreHarmless) {
  makeProgram();
  const std::string pipe = (folder_ / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  {
    const Arguments blocked{"run", program_, "--input", arrays_, "--output", out("o.npz"), "--json", pipe};
    const RunningChild running(Fault::NamelessFiles, 0, [&] { return carina(blocked); });
    awaitFile(out_.path(), ".o.npz.");
  }  // SIGKILL
  EXPECT_EQ(everythingIn(out_.path()).size(), 1u);
  const Child again = runWithFault(Fault::None, 0, [&] { return carina(run()); });
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_TRUE(fs::exists(out("o.npz")));
}

}  // namespace
}  // namespace carina::test
