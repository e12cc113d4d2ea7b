// SPDX-License-Identifier: Apache-2.0
#include "delivery/build_identity.hpp"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <cstring>
#include <span>

namespace carina::delivery {
namespace {

struct Search {
  uintptr_t code = 0;  // an address in the object that is looked for
  std::string id;      // as hexadecimal digits
};

/// The build ID among the notes of one segment, which the loader has mapped; empty if there is none.
std::string idAmong(std::span<const char> notes) {
  const auto padded = [](size_t bytes) { return (bytes + 3) / 4 * 4; };
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) header;
    std::memcpy(&header, notes.data(), sizeof(header));
    const size_t name = sizeof(header), contents = name + padded(header.n_namesz);
    if (contents + padded(header.n_descsz) > notes.size()) break;
    if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4 &&
        std::memcmp(notes.data() + name, "GNU", 4) == 0) {
      std::string id;
      for (const char byte : notes.subspan(contents, header.n_descsz))
        id += fmt::format("{:02x}", static_cast<uint8_t>(byte));
      return id;
    }
    notes = notes.subspan(contents + padded(header.n_descsz));
  }
  return "";
}

/// Called for every object of the process until it returns a value other than 0.
int inspectObject(dl_phdr_info* object, size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  const std::span headers(object->dlpi_phdr, object->dlpi_phnum);
  bool holds = false;
  for (const ElfW(Phdr) & header : headers) {
    const uintptr_t start = object->dlpi_addr + header.p_vaddr;
    holds = holds || (header.p_type == PT_LOAD && search.code - start < header.p_memsz);
  }
  if (!holds) return 0;
  for (const ElfW(Phdr) & header : headers) {
    if (header.p_type != PT_NOTE || !search.id.empty()) continue;
    search.id = idAmong({reinterpret_cast<const char*>(object->dlpi_addr + header.p_vaddr), header.p_memsz});
  }
  return 1;
}

}  // namespace

const std::string& buildIdentity() {
  static const std::string identity = [] {
    Search search;
    search.code = reinterpret_cast<uintptr_t>(&buildIdentity);
    dl_iterate_phdr(inspectObject, &search);
    return fmt::format("{} {}", CARINA_VERSION, search.id);
  }();
  return identity;
}

}  // namespace carina::delivery
