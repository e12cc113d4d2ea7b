// SPDX-License-Identifier: Apache-2.0
// How operators are quantized, and the rules by which users control it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "quantize/observer.hpp"
#include "quantize/qparams.hpp"

namespace carina::quantize {

enum class Precision : uint8_t {
  Int8,     // int8 activations, int8 weights
  Int16x8,  // int16 activations, int8 weights
  Float,    // not quantized: the operator runs on the CPU
};
std::string_view precisionName(Precision precision);  // "int8", "int16x8", "none"

/// Whether an activation's zero point may differ from 0. Int16 codes and weights are always symmetric.
enum class Scheme : uint8_t { Affine, Symmetric };

/// Bits of a layer's weight codes. They are always stored as int8; fewer bits save memory because weight
/// streams are compressed.
inline constexpr int kMinWeightBits = 2, kMaxWeightBits = 8;
/// The symmetric codes of a weight: -7 to 7 for 4 bits.
CodeRange weightRange(int bits);

/// How one operator is quantized: its float inputs and results, and its weights.
struct Settings {
  Precision precision = Precision::Int8;
  bool perChannelWeights = true;
  int weightBits = kMaxWeightBits;
  ObserverSettings observer;
  Scheme scheme = Scheme::Affine;
};

/// The settings that a rule changes; the others stay.
struct Overrides {
  std::optional<Precision> precision;
  std::optional<bool> perChannelWeights;
  std::optional<int> weightBits;
  std::optional<ObserverSettings> observer;
  std::optional<Scheme> scheme;

  bool empty() const { return !precision && !perChannelWeights && !weightBits && !observer && !scheme; }
  void apply(Settings& settings) const;
};

/// Overrides for the operators that match a pattern (* and ? as in a shell). Later rules override earlier
/// ones.
struct Rule {
  enum class By : uint8_t {
    Operator,    // "conv2d", "aten.conv2d", "aten.conv2d.default": in the network as exported, or decomposed
    Node,        // node name in the exported graph: "conv2d_3"
    Module,      // module path, with everything inside of it: "encoder.layers.*"
    ModuleType,  // Python class of modules, with everything inside of them: "LayerNorm", "torch.nn.LayerNorm"
  };
  By by = By::Operator;
  std::string pattern;
  Overrides overrides;
  std::string place;  // for messages: "rules[2]"
};

/// Codes of the program's inputs or outputs; if `precision` is absent, the operators there decide.
struct BoundarySettings {
  std::optional<Precision> precision;  // Int8 or Int16x8
  std::optional<Scheme> scheme;
  std::optional<ObserverSettings> observer;
};

/// The codes of activations in a precision. Not for Precision::Float.
CodeRange activationCodes(Precision precision);
/// Scale and zero point for a range of activations.
QParams activationParams(const Range& range, Precision precision, Scheme scheme);

}  // namespace carina::quantize
