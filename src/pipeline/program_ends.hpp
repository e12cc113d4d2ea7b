// SPDX-License-Identifier: Apache-2.0
// The ends of a program where they differ from the network's: pixels instead of normalised numbers, channels
// last, integers instead of floats, softmax or argmax at the end (docs/camera.md). Pixels, layout and what
// comes at the end are written into the network before it is quantized, so that every stage behind sees one
// network, and verify judges all of it.
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

/// Element type of program inputs or outputs that are float in the network. UInt8: of inputs; pixels where
/// mean or deviation are given, else the codes of int8 plus 128.
enum class ProgramIo : uint8_t { Float, Int8, Int16, UInt8 };
const char* programIoName(ProgramIo io);  // "uint8"

/// One type for all inputs, or outputs, but for single ones.
struct PortTypes {
  ProgramIo all = ProgramIo::Float;
  std::map<size_t, ProgramIo> single;

  PortTypes() = default;
  PortTypes(ProgramIo type) : all(type) {}  // NOLINT: a type is the same type for all
  ProgramIo of(size_t index) const {
    const auto found = single.find(index);
    return found == single.end() ? all : found->second;
  }
  bool contains(ProgramIo type) const;
  /// Whether any of them is not float.
  bool anyInteger() const;
};

/// Order of inputs and outputs of four dimensions.
enum class Layout : uint8_t {
  Network,        // nothing was asked for: that of the network
  ChannelsFirst,  // [N, C, H, W], as .pt2 networks have them
  ChannelsLast,   // [N, H, W, C], as .tflite networks have them
};

/// What the program does to float outputs of the network.
enum class Finish : uint8_t { None, Softmax, Argmax };

struct EndOptions {
  /// Types of single inputs and outputs: by name, or in0, out1, ...
  std::vector<std::pair<std::string, ProgramIo>> inputTypes, outputTypes;
  bool typesAsked = false;  // --io, --io-inputs or --io-outputs was given: networks that keep theirs say so
  Layout layout = Layout::Network;
  /// uint8 inputs are pixels from 0 to 255: the network is given (pixel / 255 - mean) / deviation. One value,
  /// or one for each channel; an empty list means 0 or 1, two empty ones that there are no pixels.
  std::vector<double> mean, deviation;
  Finish finish = Finish::None;
  std::optional<int64_t> finishDim;  // of the network's output; absent: 1, where channels and classes are

  bool pixels() const { return !mean.empty() || !deviation.empty(); }
  /// Whether the network itself is changed.
  bool channelsLast() const { return layout == Layout::ChannelsLast; }
  bool rewrites() const { return channelsLast() || pixels() || finish != Finish::None; }
};

/// How an input of the network became one of the program.
struct InputForm {
  Shape network;  // as the network takes it; float32
  bool channelsLast = false;
  /// Per channel, or one value; empty: no pixels.
  std::vector<double> mean, deviation;
  bool pixels() const { return !mean.empty(); }
  bool changed() const { return channelsLast || pixels(); }
};

/// An input of a network some of whose sizes were chosen for this program (Options::sizes).
struct SizedInput {
  Shape network;               // as the network takes it
  std::vector<size_t> chosen;  // dimensions
};

struct ProgramEnds {
  std::vector<InputForm> inputs;  // of the caller; empty: nothing is changed
  std::vector<bool> channelsLastOutputs;
  std::vector<SizedInput> sized;  // of the caller; empty: no size was chosen

  /// Arrays in0, calib0, ... that hold what the network takes, as the program takes it: what is longer than a
  /// chosen size is cut to its first elements, channels go last, and numbers become the pixels that they were
  /// made of, rounded. Integers are pixels already; arrays in the program's layout keep it. Errors: numbers
  /// that no pixel gives, fewer elements than a chosen size.
  Result<NamedTensors> asProgram(NamedTensors arrays) const;
};

/// Types by the options. `prefix` "in" or "out". Errors: a name that no value has.
Result<PortTypes> portTypes(ProgramIo all, std::span<const std::pair<std::string, ProgramIo>> named,
                            std::span<ir::Value* const> values, const std::string& prefix);

/// Changes the ends of a float aten graph as exported. `states`: how many of the last inputs and outputs are
/// state; `prequantized`: the network comes with its quantization. Errors: what the options ask for does not
/// fit the network, each at its option.
Result<ProgramEnds> adaptEnds(ir::Graph& graph, const EndOptions& options, const PortTypes& inputs,
                              size_t states, bool prequantized);

}  // namespace carina::pipeline
