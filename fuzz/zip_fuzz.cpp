// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as a zip archive: every member is read or refused. Members that can be read round-trip
// through writing.
#include <cstring>

#include "base/file.hpp"
#include "base/zip.hpp"
#include "target.hpp"

namespace carina::zip_fuzz {

CARINA_FUZZ_TARGET(zip) {
  const auto archive = ZipArchive::open(ByteSpan(reinterpret_cast<const std::byte*>(data), size), nullptr);
  if (!archive.ok()) return 0;
  std::vector<std::pair<std::string, std::string>> members;
  for (const auto& member : archive->members()) {
    if (member.size > (1u << 24) || member.name.size() >= 0xffff) continue;
    const auto contents = archive->read(member);
    if (contents.ok()) members.emplace_back(member.name, std::string(asText(contents->bytes)));
  }
  const std::string text = writeZip(members);
  const auto again = ZipArchive::open(asBytes(text), nullptr);
  if (!again.ok() || again->members().size() != members.size()) __builtin_trap();
  for (const auto& [name, contents] : members) {
    const auto copy = again->read(*again->find(name));
    if (!copy.ok() || asText(copy->bytes) != contents) __builtin_trap();
  }
  return 0;
}

}  // namespace carina::zip_fuzz
