// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as a .tosa file: a graph that can be written and read again, or an error.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/check.hpp"
#include "base/file.hpp"
#include "target.hpp"
#include "tosa_io/tosa_reader.hpp"
#include "tosa_io/tosa_writer.hpp"

namespace carina::tosa_reader_fuzz {

CARINA_FUZZ_TARGET(tosa_reader) {
  const auto owner = std::make_shared<const std::string>(reinterpret_cast<const char*>(data), size);
  const auto graph = carina::tosa_io::readTosa(carina::asBytes(*owner), owner);
  if (!graph.ok()) return 0;
  const auto bytes = carina::tosa_io::writeTosa(*graph);
  if (!bytes.ok()) return 0;  // int64 of TOSA 1.1 cannot be represented in 1.0
  const auto copy = std::make_shared<const std::string>(*bytes);
  CARINA_CHECK(carina::tosa_io::readTosa(carina::asBytes(*copy), copy).ok(),
               "what was written cannot be read");
  return 0;
}

}  // namespace carina::tosa_reader_fuzz
