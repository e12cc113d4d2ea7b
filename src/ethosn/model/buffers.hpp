// SPDX-License-Identifier: Apache-2.0
// The DRAM buffers of a run.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ethosn/model/hazards.hpp"
#include "ethosn/stream/compiled_network.hpp"

namespace carina::ethosn::model {

/// Bytes per cell in an AccessMap of DRAM.
inline constexpr size_t kDramCell = 16;

class Buffers {
 public:
  /// Allocates the buffers in the tables and fills the inputs. Fails beyond 512 MiB.
  static Result<Buffers> make(const CompiledNetwork& network, std::span<const ByteSpan> inputs, bool hazards);

  struct View {
    BufferKind kind = BufferKind::Input;
    std::span<uint8_t> bytes;       // including what may be read past the end
    size_t size = 0;                // of the buffer itself
    AccessMap* accesses = nullptr;  // none for constants
    size_t offset = 0;              // in the memory that `accesses` covers
  };
  /// Fails for ids that are in no table, and for the buffer of the control unit.
  Result<View> find(uint32_t id);

  std::vector<std::vector<uint8_t>> outputs() const;

 private:
  struct Entry {
    bool known = false;
    BufferKind kind = BufferKind::Input;
    size_t memory = 0;  // in memories_
    size_t offset = 0, size = 0;
  };
  struct Memory {
    std::vector<uint8_t> bytes;
    AccessMap accesses;
  };
  std::vector<Entry> entries_;  // by id
  std::vector<Memory> memories_;
  std::vector<uint32_t> outputs_;
};

}  // namespace carina::ethosn::model
