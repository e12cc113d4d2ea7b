// SPDX-License-Identifier: Apache-2.0
// The processes that evaluate together: those that mpirun started, on one machine or many. Alone where carina
// was started by itself, and where it was built without MPI.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace carina::evaluate {

class Ranks {
 public:
  /// Of this process, once. Errors: mpirun started several of them, and they cannot talk to each other.
  static Result<Ranks> join();
  ~Ranks();
  Ranks(Ranks&& other) noexcept;
  Ranks& operator=(Ranks&&) = delete;

  size_t rank() const { return rank_; }
  size_t size() const { return size_; }
  bool first() const { return rank_ == 0; }

  // What all of them have to call, in the same order:
  /// Whether it is so for any of them.
  bool any(bool mine) const;
  /// The largest of their numbers.
  int largest(int mine) const;
  /// Their texts in the order of ranks, at the first of them; nothing at the others.
  std::vector<std::string> gather(const std::string& mine) const;

 private:
  Ranks() = default;
  size_t rank_ = 0, size_ = 1;
  bool joined_ = false;
};

}  // namespace carina::evaluate
