// SPDX-License-Identifier: Apache-2.0
// The inputs and outputs of a program where they differ from the network's: pixels instead of normalized
// values, channels last, integers instead of floats, softmax or argmax at the end (docs/camera.md). Pixels,
// layout and the final operators are written into the network before it is quantized, so that all later
// stages see one network, and verify covers all of it.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/tensor.hpp"
#include "ir/graph.hpp"

namespace carina::pipeline {

/// Element type of program inputs or outputs that are float in the network. UInt8 is for inputs: pixels if
/// mean or deviation are given, else the codes of int8 plus 128.
enum class ProgramIo : uint8_t { Float, Int8, Int16, UInt8 };
const char* programIoName(ProgramIo io);  // "uint8"

/// One type for all inputs, or outputs, with individual exceptions.
struct PortTypes {
  ProgramIo all = ProgramIo::Float;
  std::map<size_t, ProgramIo> single;

  PortTypes() = default;
  PortTypes(ProgramIo type) : all(type) {}  // NOLINT: a type is the same type for all
  PortTypes(ProgramIo type, std::map<size_t, ProgramIo> exceptions)
      : all(type), single(std::move(exceptions)) {}
  ProgramIo of(size_t index) const {
    const auto found = single.find(index);
    return found == single.end() ? all : found->second;
  }
  bool contains(ProgramIo type) const;
  /// Whether any input or output is not float.
  bool anyInteger() const;
};

/// Axis order of inputs and outputs of four dimensions.
enum class Layout : uint8_t {
  Network,        // as in the network; no request
  ChannelsFirst,  // [N, C, H, W], as .pt2 networks have them
  ChannelsLast,   // [N, H, W, C], as .tflite networks have them
};

/// What the program appends to float outputs of the network.
enum class Finish : uint8_t { None, Softmax, Argmax };

struct EndOptions {
  /// Types of individual inputs and outputs: by name, or in0, out1, ...
  std::vector<std::pair<std::string, ProgramIo>> inputTypes, outputTypes;
  bool typesAsked = false;  // --io, --io-inputs or --io-outputs was given: networks that ignore it say so
  Layout layout = Layout::Network;
  /// uint8 inputs are pixels from 0 to 255: the network receives (pixel / 255 - mean) / deviation. One value,
  /// or one per channel; one empty list means 0 or 1, two empty lists mean no pixels.
  std::vector<double> mean, deviation;
  Finish finish = Finish::None;
  std::optional<int64_t> finishDim;  // in the network's output; absent: 1, where channels and classes are

  bool pixels() const { return !mean.empty() || !deviation.empty(); }
  /// Whether the network itself is modified.
  bool channelsLast() const { return layout == Layout::ChannelsLast; }
  bool rewrites() const { return channelsLast() || pixels() || finish != Finish::None; }
};

/// How an input of the network was turned into one of the program.
struct InputForm {
  Shape network;  // as the network expects it; float32
  bool channelsLast = false;
  /// Per channel, or one value; empty: no pixels.
  std::vector<double> mean, deviation;
  bool pixels() const { return !mean.empty(); }
  bool changed() const { return channelsLast || pixels(); }
};

/// An input of a network with sizes that were chosen for this program (Options::sizes).
struct SizedInput {
  Shape network;               // as the network expects it
  std::vector<size_t> chosen;  // chosen dimensions
};

struct ProgramEnds {
  std::vector<InputForm> inputs;  // of the caller; empty: unchanged
  std::vector<bool> channelsLastOutputs;
  std::vector<SizedInput> sized;  // of the caller; empty: no size was chosen

  /// Converts arrays in0, calib0, ... that hold the network's inputs to the form that the program expects:
  /// dimensions longer than a chosen size are cut to their first elements, channels go last, and real values
  /// become the pixels that they were computed from, rounded. Integers are pixels already; arrays in the
  /// program's layout keep it. Errors: values that no pixel can produce, fewer elements than a chosen size.
  Result<NamedTensors> asProgram(NamedTensors arrays) const;
};

/// Types according to the options. `prefix` is "in" or "out". Errors: a name that no value has.
Result<PortTypes> portTypes(ProgramIo all, std::span<const std::pair<std::string, ProgramIo>> named,
                            std::span<ir::Value* const> values, const std::string& prefix);

/// Warnings of types that are requested for values that are not float: these keep their types.
std::vector<Diagnostic> idleTypes(const PortTypes& inputTypes, std::span<ir::Value* const> inputs,
                                  const PortTypes& outputTypes, std::span<ir::Value* const> outputs);

/// Changes the inputs and outputs of a float aten graph as exported. `states`: how many of the last inputs
/// and outputs are state; `prequantized`: the network is prequantized. Errors: requests that do not fit the
/// network, each at its option.
Result<ProgramEnds> adaptEnds(ir::Graph& graph, const EndOptions& options, const PortTypes& inputs,
                              size_t states, bool prequantized);

}  // namespace carina::pipeline
