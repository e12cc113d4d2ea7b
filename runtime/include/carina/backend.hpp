// SPDX-License-Identifier: Apache-2.0
// Implementation of delegate calls. The program names the backend ("EthosUBackend") and holds the blob that
// it receives.
#pragma once

#include "carina/arena.hpp"
#include "carina/value.hpp"

namespace carina::rt {

/// Looks up blobs outside the delegate's own bytes by name: in the program, then in the application's data.
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
  /// Bytes of state per delegate (aligned to 8), from the method allocator.
  virtual size_t stateBytes() const = 0;
  /// Checks `blob` (untrusted) and fills `state`. `temporaryBytes` is the amount that execute() allocates
  /// from the temporary arena, aligned to 16. The blob stays valid as long as the state is used.
  virtual Status prepare(Bytes blob, const NamedData& named, void* state, size_t* temporaryBytes) = 0;
  /// Whether a call of the delegate with these arguments can succeed, with `values` as described by the
  /// program. Used for each call when a method is loaded; inputs and outputs without planned memory have no
  /// data yet.
  virtual Status checkCall(const void* state, Span<const Value> values,
                           Span<const int32_t> arguments) const = 0;
  /// `arguments` are indices into `values`: the delegate's inputs, then its outputs. The values may differ
  /// from those that checkCall() saw, because programs may move them.
  virtual Status execute(void* state, Span<Value> values, Span<const int32_t> arguments,
                         Arena& temporary) = 0;

 protected:
  ~Backend() = default;
};

}  // namespace carina::rt
