// SPDX-License-Identifier: Apache-2.0
// Zip archives (torch.export files, .npz): reading from mapped memory, writing stored members.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/budget.hpp"
#include "base/result.hpp"
#include "base/tensor.hpp"

namespace carina {

/// Reads through the central directory (local headers of torch archives carry zero sizes). All offsets and
/// sizes are checked against the mapped bytes before use.
class ZipArchive {
 public:
  struct Member {
    std::string name;
    uint64_t size = 0;  // uncompressed bytes
    uint64_t compressedSize = 0;
    uint64_t dataOffset = 0;  // of the stored or deflated bytes within the archive
    bool stored = false;
    uint32_t crc = 0;
  };

  /// `owner` keeps `bytes` alive. `inflation` bounds the total that read() inflates; an archive inside
  /// another is opened with the outer one's budget. Null: a budget of 64 MiB plus 64 times the bytes.
  static Result<ZipArchive> open(ByteSpan bytes, std::shared_ptr<const void> owner,
                                 std::shared_ptr<Budget> inflation = nullptr);

  const std::vector<Member>& members() const { return members_; }
  const Member* find(std::string_view name) const;

  /// Contents of a member: a view into the archive when stored, otherwise inflated. `owner` keeps the view
  /// alive.
  struct Contents {
    ByteSpan bytes;
    std::shared_ptr<const void> owner;
  };
  Result<Contents> read(const Member& member) const;

  const std::shared_ptr<Budget>& inflation() const { return inflation_; }

 private:
  ByteSpan bytes_;
  std::shared_ptr<const void> owner_;
  std::shared_ptr<Budget> inflation_;
  std::vector<Member> members_;
  std::unordered_map<std::string, size_t> index_;  // name -> member
};

/// An archive of stored members, in order, each member's data aligned to `alignment` bytes.
std::string writeZip(std::span<const std::pair<std::string, std::string>> members, size_t alignment = 64);

}  // namespace carina
