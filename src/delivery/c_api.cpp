// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <new>

#include "base/file.hpp"
#include "carina/at_load.h"
#include "delivery/at_load.hpp"

namespace {

using namespace carina;

constexpr std::align_val_t kAlignment{16};

void say(std::string_view text, carina_compiled& compiled) {
  const size_t length = std::min(text.size(), sizeof(compiled.message) - 1);
  std::memcpy(compiled.message, text.data(), length);
  compiled.message[length] = '\0';
}

Status compileInto(ByteSpan bytes, const carina_load_options& wanted, carina_compiled& compiled) {
  const auto textOf = [](const char* text) { return std::string(text != nullptr ? text : ""); };
  delivery::LoadOptions options{
      textOf(wanted.target), textOf(wanted.system_config), textOf(wanted.memory_mode), {}, std::nullopt};
  if (wanted.cache != nullptr) options.cache = wanted.cache;
  CARINA_TRY(pte::Program program, pte::readProgram(bytes));
  CARINA_TRY(const delivery::AtLoad done, delivery::compileTosaParts(program, options));
  std::string written;
  if (done.parts > 0) {
    CARINA_TRY(written, pte::writeProgram(program));
    bytes = asBytes(written);
  }
  void* memory = ::operator new(bytes.size(), kAlignment);
  std::memcpy(memory, bytes.data(), bytes.size());
  compiled.program = memory;
  compiled.size = bytes.size();
  compiled.parts = done.parts;
  compiled.from_cache = done.fromCache;
  if (!done.warnings.empty()) say(done.warnings.front().message, compiled);
  return {};
}

}  // namespace

extern "C" int carina_compile_at_load(const void* program, size_t size, const carina_load_options* options,
                                      carina_compiled* compiled) {
  *compiled = {};
  // No exception reaches a caller that cannot catch one.
  try {
    const ByteSpan bytes(static_cast<const std::byte*>(program), size);
    const Status status =
        compileInto(bytes, options != nullptr ? *options : carina_load_options{}, *compiled);
    if (status.ok()) return 0;
    say(status.error().str(), *compiled);
  } catch (const std::bad_alloc&) {
    say("out of memory", *compiled);
  } catch (const std::exception& exception) {
    say(exception.what(), *compiled);
  }
  return 1;
}

extern "C" void carina_compiled_release(carina_compiled* compiled) {
  ::operator delete(const_cast<void*>(compiled->program), kAlignment);
  *compiled = {};
}
