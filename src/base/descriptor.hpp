// SPDX-License-Identifier: Apache-2.0
// An open file descriptor.
#pragma once

#include <unistd.h>

#include <string>
#include <system_error>
#include <utility>

namespace carina {

/// The system's text for an error number.
inline std::string systemMessage(int error) {
  return std::generic_category().message(error);
}

/// Closes a descriptor at the end of a scope.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }

  /// Negative if none is open.
  int get() const { return fd_; }
  /// Some file systems report a failed write only when the file is closed.
  int close() { return ::close(std::exchange(fd_, -1)); }

 private:
  int fd_ = -1;
};

}  // namespace carina
