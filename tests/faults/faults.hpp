// SPDX-License-Identifier: Apache-2.0
// Fault injection: the n-th system call from Carina's own code (by the linker's --wrap) or the n-th
// allocation by operator new fails. Faults happen in child processes, which count in shared memory.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace carina::test {

enum class Fault {
  None,
  Call,             // the n-th system call fails
  Allocation,       // the n-th allocation fails
  AllocationsFrom,  // the n-th and all later ones fail
  NamelessFiles,    // O_TMPFILE is not supported, as on some file systems
};

struct Child {
  bool exited = false;  // not ended by a signal
  int status = 0;       // exit status or signal
  long count = 0;       // total calls or allocations, if the fault concerns them
  bool happened = false;
  std::string out, err;
};

/// Runs `work`, whose result is the exit status, in a child process with the fault.
Child runWithFault(Fault fault, long n, const std::function<int()>& work);

/// The same without waiting for the child to end.
class RunningChild {
 public:
  RunningChild(Fault fault, long n, const std::function<int()>& work);
  ~RunningChild();
  RunningChild(const RunningChild&) = delete;
  RunningChild& operator=(const RunningChild&) = delete;
  void signal(int number) const;
  Child wait();

 private:
  int process_ = -1;
  int out_ = -1, err_ = -1;
};

/// Runs `carina` with these arguments as main() does.
int carina(const std::vector<std::string>& arguments);

}  // namespace carina::test
