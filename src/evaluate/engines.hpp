// SPDX-License-Identifier: Apache-2.0
// The executions of one network on one sample: float, fake-quant simulation, TOSA interpreter, NPU model.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "evaluate/data_set.hpp"
#include "evaluate/metrics.hpp"
#include "pipeline/batch.hpp"
#include "pipeline/gates.hpp"
#include "pipeline/pipeline.hpp"

namespace carina::evaluate {

/// The outputs of the engines for one sample; nullopt for engines that do not run.
struct EngineOutputs {
  std::array<std::optional<std::vector<Tensor>>, kEngines.size()> outputs;
  bool npuDiffersFromTosa = false;
};

class Engines {
 public:
  /// For a network, which is compiled for options.target, or for a program (.pte, compiled .tflite) on its
  /// NPU. `warnings` are those of the compilation.
  static Result<Engines> open(const pipeline::Options& options, std::vector<Diagnostic>& warnings);
  ~Engines();
  Engines(Engines&&) noexcept;
  Engines& operator=(Engines&&) noexcept;

  const std::vector<pipeline::Port>& inputs() const;
  /// How arrays become these inputs. Valid during the lifetime of the engines.
  const InputForms& forms() const;
  /// Engines that can run, in the order of kEngines.
  const std::vector<Engine>& available() const;
  /// Cycles, memory and placement, for gates.
  const pipeline::Measured& measured() const;
  /// The program, for the identity of an evaluation.
  const std::string& program() const;

  /// TOSA: what the program would compute with the interpreter in place of the NPU. The interpreter runs on
  /// the actual inputs of every NPU part; if all results are equal, so are the program's, and if any differs
  /// there is no TOSA result. May be called from several threads at the same time.
  Result<EngineOutputs> run(std::span<const Tensor> inputs, const std::vector<Engine>& wanted) const;

  /// The first value, in program order, whose simulation is below `decibels` of SQNR against float on this
  /// sample; "" if there is none or no simulation.
  Result<std::string> firstBelow(std::span<const Tensor> inputs, double decibels) const;

 private:
  struct State;
  explicit Engines(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace carina::evaluate
