// SPDX-License-Identifier: Apache-2.0
// The "TOSABackend" delegate on the host, for graphs that compute in floating point: no NPU here does, so the
// TOSA interpreter runs them. Integer graphs are compiled before a program gets here (delivery/at_load.hpp).
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/work_budget.hpp"
#include "carina/backend.hpp"
#include "ir/graph.hpp"
#include "pte/program.hpp"

namespace carina::device {

class TosaBackend final : public rt::Backend {
 public:
  /// Graphs run within the budget, which must outlive the backend.
  explicit TosaBackend(WorkBudget& budget) : budget_(budget) {}
  ~TosaBackend() = default;

  const char* id() const override { return "TOSABackend"; }
  size_t stateBytes() const override { return sizeof(uint64_t); }
  rt::Status prepare(rt::Bytes blob, const rt::NamedData& named, void* state,
                     size_t* temporaryBytes) override;
  rt::Status checkCall(const void* state, rt::Span<const rt::Value> values,
                       rt::Span<const int32_t> arguments) const override;
  rt::Status execute(void* state, rt::Span<rt::Value> values, rt::Span<const int32_t> arguments,
                     rt::Arena& temporary) override;

  /// Details of the last failure, which a status cannot hold; empty if there was none.
  const std::optional<Error>& why() const { return why_; }

 private:
  struct Part {
    const uint8_t* bytes = nullptr;  // of the blob in the program
    ir::Graph graph;
  };
  const ir::Graph& graphOf(const void* state) const;
  Status run(const ir::Graph& graph, rt::Span<rt::Value> values, rt::Span<const int32_t> arguments);

  WorkBudget& budget_;
  std::vector<std::unique_ptr<Part>> parts_;
  std::optional<Error> why_;
};

/// Whether a TOSA graph has floating-point values.
bool computesInFloat(const ir::Graph& tosa);

/// Whether a program has a delegate that is a TOSA graph.
bool hasTosaDelegate(const pte::Program& program);

}  // namespace carina::device
