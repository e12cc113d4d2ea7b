// SPDX-License-Identifier: Apache-2.0
// Reads the recorded weight vectors: a selection in tests/data/weights, and all of them if the larger suite
// is present.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/tensor.hpp"
#include "support/fixtures.hpp"

namespace carina::test {

/// Vectors of one file from the repository's selection and, if present, from the larger suite, which includes
/// the selection.
inline std::vector<nlohmann::json> weightVectors(const std::string& file) {
  std::vector<nlohmann::json> all;
  std::vector<std::filesystem::path> folders = {dataDir() / "weights"};
  if (const auto fixtures = fixturesDir()) folders.push_back(*fixtures / "vectors" / "weights");
  for (const std::filesystem::path& folder : folders) {
    std::ifstream in(folder / file);
    if (!in) continue;
    const nlohmann::json document = nlohmann::json::parse(in);
    for (const nlohmann::json& vector : document["vectors"]) all.push_back(vector);
  }
  return all;
}

inline std::vector<uint8_t> fromHex(const std::string& text) {
  std::vector<uint8_t> bytes;
  for (size_t n = 0; n + 1 < text.size(); n += 2)
    bytes.push_back(static_cast<uint8_t>(std::stoi(text.substr(n, 2), nullptr, 16)));
  return bytes;
}

inline std::vector<int16_t> int16FromHex(const std::string& text) {
  const std::vector<uint8_t> bytes = fromHex(text);
  std::vector<int16_t> values(bytes.size() / 2);
  for (size_t n = 0; n < values.size(); ++n)
    values[n] = static_cast<int16_t>(bytes[2 * n] | bytes[2 * n + 1] << 8);
  return values;
}

inline ByteSpan byteSpan(const std::vector<uint8_t>& bytes) {
  return {reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()};
}

}  // namespace carina::test
