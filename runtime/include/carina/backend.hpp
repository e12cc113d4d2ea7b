// SPDX-License-Identifier: Apache-2.0
// What stands behind a delegate call. A backend is named in the program ("EthosUBackend") and gets the blob
// as it lies there.
#pragma once

#include "carina/arena.hpp"
#include "carina/value.hpp"

namespace carina::rt {

/// Blobs found by name, outside the delegate's own bytes: in the program, then in what the application adds.
class NamedData {
 public:
  virtual Status find(Text key, Bytes* bytes) const = 0;

 protected:
  ~NamedData() = default;
};

class Backend {
 public:
  /// The delegate id in programs.
  virtual const char* id() const = 0;
  /// Bytes of state that one delegate keeps (aligned to 8), from the method allocator.
  virtual size_t stateBytes() const = 0;
  /// Checks `blob` (untrusted) and fills `state`. `temporaryBytes` is what execute() takes from the temporary
  /// arena, aligned to 16. The blob stays valid as long as the state is used.
  virtual Status prepare(Bytes blob, const NamedData& named, void* state, size_t* temporaryBytes) = 0;
  /// Whether a call of the delegate with these arguments can succeed, with `values` as the program describes
  /// them: asked for each call when a method is loaded. Inputs and outputs without planned memory have no
  /// data yet.
  virtual Status checkCall(const void* state, Span<const Value> values,
                           Span<const int32_t> arguments) const = 0;
  /// `arguments` are indices of `values`: the delegate's inputs, then its outputs. Values may be others than
  /// checkCall() has seen: programs may move them.
  virtual Status execute(void* state, Span<Value> values, Span<const int32_t> arguments,
                         Arena& temporary) = 0;

 protected:
  ~Backend() = default;
};

}  // namespace carina::rt
