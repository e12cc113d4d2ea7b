// SPDX-License-Identifier: Apache-2.0
// Cache of compiled NPU parts in a folder of the user, so that a program is compiled once per NPU and not
// once per load.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "base/tensor.hpp"
#include "pte/program.hpp"

namespace carina::delivery {

/// $CARINA_CACHE, else $XDG_CACHE_HOME/carina, else $HOME/.cache/carina; nothing if none of them is set.
std::optional<std::filesystem::path> defaultCacheFolder();

/// One file per compiled part, named after the SHA-256 of everything that the result depends on. An entry
/// holds a hash of that key, the length and the SHA-256 of its contents: an entry that does not match is
/// ignored, compiled again and replaced. Entries appear atomically, so that processes can share a folder
/// without locks.
class CompileCache {
 public:
  /// Beyond this many bytes, the least recently used entries are removed.
  static constexpr uint64_t kMostBytes = uint64_t{1} << 30;

  explicit CompileCache(std::filesystem::path folder, uint64_t mostBytes = kMostBytes)
      : folder_(std::move(folder)), mostBytes_(mostBytes) {}

  /// The name of the entry for `content` compiled with `settings`; 64 hexadecimal digits.
  static std::string keyOf(ByteSpan content, std::string_view settings);

  struct Found {
    std::optional<pte::ByteVector> blob;
    bool damaged = false;  // there is an entry, but it is not what was stored
  };
  Found find(const std::string& key) const;
  /// Creates the folder with its parents if it is missing.
  Status store(const std::string& key, ByteSpan blob) const;

 private:
  std::filesystem::path pathOf(const std::string& key) const;
  void removeOldest(const std::filesystem::path& kept) const;

  std::filesystem::path folder_;
  uint64_t mostBytes_;
};

}  // namespace carina::delivery
