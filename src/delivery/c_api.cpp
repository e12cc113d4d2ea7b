// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <new>

#include "base/file.hpp"
#include "base/work_budget.hpp"
#include "carina/at_load.h"
#include "delivery/at_load.hpp"
#include "device/tosa_backend.hpp"

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
  options.keepFloats = wanted.keep_floats != 0;
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
  compiled.in_float = done.inFloat;
  if (!done.warnings.empty()) say(done.warnings.front().message, compiled);
  return {};
}

/// The TOSA interpreter as a backend of an application; each execution gets the full budget of the program.
class FloatParts final : public rt::Backend {
 public:
  FloatParts(uint64_t programBytes, bool trusted) : budget_(programBytes, trusted), parts_(budget_) {}
  ~FloatParts() = default;
  const char* id() const override { return parts_.id(); }
  size_t stateBytes() const override { return parts_.stateBytes(); }
  rt::Status prepare(rt::Bytes blob, const rt::NamedData& named, void* state,
                     size_t* temporaryBytes) override {
    return caught([&] { return parts_.prepare(blob, named, state, temporaryBytes); });
  }
  rt::Status checkCall(const void* state, rt::Span<const rt::Value> values,
                       rt::Span<const int32_t> arguments) const override {
    return parts_.checkCall(state, values, arguments);
  }
  rt::Status execute(void* state, rt::Span<rt::Value> values, rt::Span<const int32_t> arguments,
                     rt::Arena& temporary) override {
    budget_.renew();
    return caught([&] { return parts_.execute(state, values, arguments, temporary); });
  }
  const char* message() const { return message_.c_str(); }

 private:
  /// No exception reaches a caller that cannot catch one.
  template <typename Call>
  rt::Status caught(const Call& call) {
    try {
      const rt::Status status = call();
      message_ = parts_.why() ? parts_.why()->str() : "";
      return status;
    } catch (const std::exception&) {
      return rt::failure(rt::Code::OutOfMemory,
                         "a graph in floating point needs more memory than is available", 0);
    }
  }

  WorkBudget budget_;
  device::TosaBackend parts_;
  std::string message_;
};

}  // namespace

extern "C" carina_backend* carina_float_parts_open(const void* program, size_t size) {
  rt::Backend* const parts = new (std::nothrow) FloatParts(size, program == nullptr);
  return reinterpret_cast<carina_backend*>(parts);
}

extern "C" const char* carina_float_parts_message(const carina_backend* parts) {
  return static_cast<const FloatParts*>(reinterpret_cast<const rt::Backend*>(parts))->message();
}

extern "C" void carina_float_parts_close(carina_backend* parts) {
  delete static_cast<FloatParts*>(reinterpret_cast<rt::Backend*>(parts));
}

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
