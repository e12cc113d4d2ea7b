// SPDX-License-Identifier: Apache-2.0
#include "delivery/compile_cache.hpp"

#include <fmt/format.h>
#include <sha2.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/file.hpp"

namespace carina::delivery {
namespace {

using Digest = std::array<uint8_t, SHA256_DIGEST_LENGTH>;

constexpr std::string_view kExtension = ".npupart";

/// Precedes the blob; in native byte order, because a cache does not leave its machine.
struct Header {
  std::array<char, 8> magic{'c', 'a', 'r', 'i', 'n', 'a', 'N', '1'};
  Digest key{};
  uint64_t bytes = 0;
  Digest contents{};
};
static_assert(sizeof(Header) == 80);

class Sha256 {
 public:
  Sha256() { SHA256Init(&state_); }
  void add(ByteSpan bytes) {
    SHA256Update(&state_, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  }
  Digest finish() {
    Digest digest;
    SHA256Final(digest.data(), &state_);
    return digest;
  }

 private:
  SHA2_CTX state_;
};

Digest digestOf(ByteSpan bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.finish();
}

/// The header of the blob that is stored under `key`.
Header headerFor(const std::string& key, ByteSpan blob) {
  Header header;
  header.key = digestOf(asBytes(key));
  header.bytes = blob.size();
  header.contents = digestOf(blob);
  return header;
}

}  // namespace

std::optional<std::filesystem::path> defaultCacheFolder() {
  const auto variable = [](const char* name) -> std::optional<std::filesystem::path> {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') return std::nullopt;
    return std::filesystem::path(value);
  };
  if (auto folder = variable("CARINA_CACHE")) return folder;
  if (auto folder = variable("XDG_CACHE_HOME")) return *folder / "carina";
  if (auto folder = variable("HOME")) return *folder / ".cache" / "carina";
  return std::nullopt;
}

std::string CompileCache::keyOf(ByteSpan content, std::string_view settings) {
  // A hash of two hashes: settings cannot be mistaken for content.
  Sha256 both;
  for (const Digest& part : {digestOf(content), digestOf(asBytes(settings))})
    both.add(std::as_bytes(std::span(part)));
  std::string key;
  for (const uint8_t byte : both.finish()) key += fmt::format("{:02x}", byte);
  return key;
}

std::filesystem::path CompileCache::pathOf(const std::string& key) const {
  return folder_ / (key + std::string(kExtension));
}

CompileCache::Found CompileCache::find(const std::string& key) const {
  const std::filesystem::path path = pathOf(key);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return {};
  const auto file = MappedFile::open(path);
  if (!file) return {std::nullopt, true};
  const ByteSpan bytes = (*file)->bytes();
  if (bytes.size() < sizeof(Header)) return {std::nullopt, true};
  const ByteSpan blob = bytes.subspan(sizeof(Header));
  const Header expected = headerFor(key, blob);
  if (std::memcmp(bytes.data(), &expected, sizeof(Header)) != 0) return {std::nullopt, true};
  std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now(), error);
  return {pte::ByteVector(blob.begin(), blob.end()), false};
}

Status CompileCache::store(const std::string& key, ByteSpan blob) const {
  const Header header = headerFor(key, blob);
  pte::ByteVector entry(sizeof(Header) + blob.size());
  std::memcpy(entry.data(), &header, sizeof(Header));
  std::copy(blob.begin(), blob.end(), entry.begin() + sizeof(Header));
  OutputFiles files;
  CARINA_RETURN_IF_ERROR(files.add(pathOf(key), ByteSpan(entry), /*createParents=*/true));
  CARINA_RETURN_IF_ERROR(files.commit());
  removeOldest(pathOf(key));
  return {};
}

/// Best effort, since other processes may use the folder: a file that cannot be removed stays.
void CompileCache::removeOldest(const std::filesystem::path& kept) const {
  struct Entry {
    std::filesystem::file_time_type used;
    uint64_t bytes = 0;
    std::filesystem::path path;
  };
  std::vector<Entry> entries;
  uint64_t total = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder_, error), end; !error && it != end;
       it.increment(error)) {
    if (it->path().extension() != kExtension) continue;
    std::error_code gone;
    const Entry entry{it->last_write_time(gone), it->file_size(gone), it->path()};
    if (gone) continue;
    total += entry.bytes;
    if (entry.path != kept) entries.push_back(entry);
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& entry : entries) {
    if (total <= mostBytes_) break;
    if (std::filesystem::remove(entry.path, error)) total -= entry.bytes;
  }
}

}  // namespace carina::delivery
