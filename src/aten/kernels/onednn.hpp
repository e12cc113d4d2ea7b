// SPDX-License-Identifier: Apache-2.0
// The oneDNN engine that all kernels share, and its exceptions as diagnostics.
#pragma once

#include <dnnl.hpp>

#include "base/result.hpp"

namespace carina::aten {

/// The CPU engine; it has no state and may be used from all threads.
inline const dnnl::engine& onednnEngine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

template <typename F>
Status guardOnednn(F&& f) {
  try {
    f();
    return {};
  } catch (const dnnl::error& error) {
    return Error(Diagnostic{fmt::format("oneDNN refuses this operator: {}", error.what()), "", "", "",
                            Code::ToolFailed});
  }
}

/// Runs f(stream) and waits.
template <typename F>
Status runOnednn(F&& f) {
  return guardOnednn([&] {
    dnnl::stream stream(onednnEngine());
    f(stream);
    stream.wait();
  });
}

}  // namespace carina::aten
