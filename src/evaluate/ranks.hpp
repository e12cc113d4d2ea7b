// SPDX-License-Identifier: Apache-2.0
// The processes that evaluate together: those started by mpirun, on one machine or many. There is only one if
// carina was not started by mpirun, or was built without MPI.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace carina::evaluate {

class Ranks {
 public:
  /// For this process, to be called once. Errors: mpirun started several processes, but they cannot
  /// communicate.
  static Result<Ranks> join();
  ~Ranks();
  Ranks(Ranks&& other) noexcept;
  Ranks& operator=(Ranks&&) = delete;

  size_t rank() const { return rank_; }
  size_t size() const { return size_; }
  bool first() const { return rank_ == 0; }

  // The following must be called by all processes, in the same order.
  /// Whether the argument is true in any of them.
  bool any(bool mine) const;
  /// The largest argument.
  int largest(int mine) const;
  /// The texts of all processes in rank order, at the first of them; empty at the others.
  std::vector<std::string> gather(const std::string& mine) const;

 private:
  Ranks() = default;
  size_t rank_ = 0, size_ = 1;
  bool joined_ = false;
};

}  // namespace carina::evaluate
