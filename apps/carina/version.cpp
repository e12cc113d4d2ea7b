// SPDX-License-Identifier: Apache-2.0
#include "version.hpp"

#include "carina/commit.hpp"

namespace carina::app {

std::string versionLine() {
  const std::string commit = CARINA_COMMIT;
  return std::string("carina ") + CARINA_VERSION + (commit.empty() ? "" : " (" + commit + ")");
}

}  // namespace carina::app
