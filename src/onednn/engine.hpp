// SPDX-License-Identifier: Apache-2.0
// The oneDNN engine that all kernels share, and its exceptions as diagnostics.
#pragma once

#include <dnnl.hpp>

#include "base/result.hpp"

namespace carina::onednn {

/// The CPU engine; it is stateless and may be used from all threads.
inline const dnnl::engine& engine() {
  static const dnnl::engine shared(dnnl::engine::kind::cpu, 0);
  return shared;
}

template <typename F>
Status guarded(F&& f) {
  try {
    f();
    return {};
  } catch (const dnnl::error& error) {
    return Error(Diagnostic{fmt::format("oneDNN refuses this operator: {}", error.what()), "", "", "",
                            Code::ToolFailed});
  }
}

/// Runs f(stream) and waits for completion.
template <typename F>
Status run(F&& f) {
  return guarded([&] {
    dnnl::stream stream(engine());
    f(stream);
    stream.wait();
  });
}

}  // namespace carina::onednn
