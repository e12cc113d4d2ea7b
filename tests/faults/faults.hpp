// SPDX-License-Identifier: Apache-2.0
// Faults that a test asks for: the n-th call of the system by our own code (the linker's --wrap), or the n-th
// allocation by operator new. They happen in child processes; what a child counted lies in shared memory.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace carina::test {

enum class Fault {
  None,
  Call,             // the n-th call of the system fails
  Allocation,       // the n-th allocation fails
  AllocationsFrom,  // the n-th and all after it fail
  NamelessFiles,    // there are no files without a name (O_TMPFILE), as on some file systems
};

struct Child {
  bool exited = false;  // not ended by a signal
  int status = 0;       // exit status or signal
  long count = 0;       // calls or allocations in all, where the fault is one of them
  bool happened = false;
  std::string out, err;
};

/// Runs `work` in a child process with the fault. Its result is the exit status.
Child runWithFault(Fault fault, long n, const std::function<int()>& work);

/// The same, without waiting for the end.
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

/// `carina` with these arguments, as main() runs it.
int carina(const std::vector<std::string>& arguments);

}  // namespace carina::test
