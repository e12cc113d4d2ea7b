// SPDX-License-Identifier: Apache-2.0
// The host's program reader: programs that it accepts can be printed, and round-trip through writing unless
// the verifier rejects them.
#include <cstdint>
#include <cstdlib>

#include "base/file.hpp"
#include "pte/delegate_blob.hpp"
#include "pte/program.hpp"
#include "target.hpp"

namespace carina::pte_reader_fuzz {

CARINA_FUZZ_TARGET(pte_reader) {
  const ByteSpan bytes(reinterpret_cast<const std::byte*>(data), size);
  if (const auto blob = pte::parseDelegateBlob(bytes)) (void)pte::buildDelegateBlob(*blob);
  pte::FileLayout layout;
  const auto program = pte::readProgram(bytes, &layout);
  if (!program) return 0;
  (void)pte::printProgram(*program, &layout);
  const auto written = pte::writeProgram(*program);
  if (!written) return 0;
  const auto again = pte::readProgram(asBytes(*written));
  if (!again) std::abort();
  return 0;
}

}  // namespace carina::pte_reader_fuzz
