// SPDX-License-Identifier: Apache-2.0
// simdjson's kernels, which read the documents of .pt2 archives.
#include <simdjson.h>

#include "libraries/lazy.hpp"

namespace simdjson {

internal::atomic_ptr<const implementation>& get_active_implementation() {
  using Function = internal::atomic_ptr<const implementation>&();
  static auto* const function = carina::app::functionIn<Function>(
      carina::app::loadLibrary(CARINA_SIMDJSON_LIBRARY), "_ZN8simdjson25get_active_implementationEv");
  return function();
}

}  // namespace simdjson
