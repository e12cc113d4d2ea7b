// SPDX-License-Identifier: Apache-2.0
#include "pipeline/program_ends.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "aten/ops.hpp"
#include "pipeline/pixel_input.hpp"

namespace carina::pipeline {
namespace {

constexpr double kPixelMax = 255;
constexpr size_t kImageRank = 4;
const ir::Ints kToChannelsLast{0, 2, 3, 1}, kToChannelsFirst{0, 3, 1, 2};

Shape permuted(const Shape& shape, const ir::Ints& order) {
  Shape result;
  for (int64_t dim : order) result.push_back(shape[static_cast<size_t>(dim)]);
  return result;
}

ir::LocationRef locationOf(const ir::Value& value, const char* what) {
  return std::make_shared<const ir::Location>(ir::Location{value.name + what, "", ""});
}

// Inputs
// -----------------------------------------------------------------------------------------------------------

/// One value per channel of the input, or one for all: `given`, or `missing` if it is empty.
Result<std::vector<double>> perChannel(const std::vector<double>& given, double missing, const char* option,
                                       const ir::Value& input) {
  if (given.empty()) return std::vector<double>{missing};
  const bool image = input.shape().size() == kImageRank;
  if (given.size() > 1 && (!image || input.dim(1) != static_cast<int64_t>(given.size()))) {
    return fail(Code::BadOption, "has {} values, but input '{}' ({}) has {}", given.size(), input.name,
                ir::typeText(input.type),
                image ? fmt::format("{} channel{}", input.dim(1), input.dim(1) == 1 ? "" : "s")
                      : "no channels before two other dimensions")
        .at(option)
        .withRemedy("give one value, or one for each channel");
  }
  return given;
}

Result<PixelScaling> scalingOf(InputForm& form) {
  PixelScaling scaling;
  // A single value if all are equal: a scale for the whole tensor costs less than one per channel.
  const auto same = [](const std::vector<double>& values) {
    return std::all_of(values.begin(), values.end(), [&](double value) { return value == values[0]; });
  };
  const size_t count =
      same(form.mean) && same(form.deviation) ? 1 : std::max(form.mean.size(), form.deviation.size());
  form.mean.resize(count, form.mean[0]);
  form.deviation.resize(count, form.deviation[0]);
  for (size_t c = 0; c < count; ++c) {
    const double mean = form.mean[c], deviation = form.deviation[c];
    if (!std::isfinite(mean) || std::abs(mean) > 1) {
      return fail(Code::BadOption, "{} is not between -1 and 1: means are those of pixel / 255", mean)
          .at("--mean")
          .withRemedy(
              fmt::format("if it is the mean of pixels from 0 to 255, give {:.6g}", mean / kPixelMax));
    }
    if (!std::isfinite(deviation) || deviation <= 0 || deviation > 1 || deviation < 1e-6) {
      return fail(Code::BadOption, "{} is not between 1e-6 and 1: deviations are those of pixel / 255",
                  deviation)
          .at("--std")
          .withRemedy(deviation > 1 ? fmt::format("if it is that of pixels from 0 to 255, give {:.6g}",
                                                  deviation / kPixelMax)
                                    : "give a deviation above 0");
    }
    scaling.scale.push_back(1 / (kPixelMax * deviation));
    scaling.shift.push_back(-mean / deviation);
  }
  return scaling;
}

/// Whether a value is used only by quantize nodes, as in prequantized networks.
bool onlyQuantized(const ir::Value& value) {
  return !value.unused() && !value.isGraphOutput() &&
         std::all_of(value.uses().begin(), value.uses().end(),
                     [](const ir::Use& use) { return ir::isa<aten::QuantizePerTensor>(use.node); });
}

/// Replaces all uses of `from`, except in `except`, by `to`.
void moveUses(ir::Graph& graph, ir::Value* from, ir::Value* to, const ir::Node* except) {
  const std::vector<ir::Use> uses = from->uses();
  for (const ir::Use& use : uses) {
    if (use.node != except) use.node->setOperand(use.operand, to);
  }
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    if (graph.outputs()[i] == from) graph.setOutput(i, to);
  }
}

/// Makes the input [N, H, W, C]. In a prequantized network, codes are transposed, not real values.
void putChannelsLast(ir::Graph& graph, ir::Value* input) {
  const auto toNetwork = [&](ir::Value* value, ir::Node* before) {
    ir::Builder builder(graph, before, locationOf(*input, "_layout"));
    return aten::Permute::create(builder, value, kToChannelsFirst).node();
  };
  input->type.shape = permuted(input->shape(), kToChannelsLast);
  if (!onlyQuantized(*input)) {
    ir::Node* moved = toNetwork(input, graph.firstNode());
    moveUses(graph, input, moved->result(), moved);
    return;
  }
  const std::vector<ir::Use> uses = input->uses();
  for (const ir::Use& use : uses) {
    ir::Value* codes = use.node->result();
    codes->type.shape = input->shape();
    ir::Node* moved = toNetwork(codes, use.node->next());
    moveUses(graph, codes, moved->result(), moved);
  }
}

/// Makes the input pixels, which are converted to real values where the network begins.
void takePixels(ir::Graph& graph, ir::Value* input, const PixelScaling& scaling) {
  ir::Builder builder(graph, graph.firstNode(), locationOf(*input, "_pixels"));
  input->type.dtype = DType::UInt8;
  ir::Node* numbers = aten::ToDtype::create(builder, input, DType::Float32).node();
  moveUses(graph, input, numbers->result(), numbers);
  normalisePixels(graph, numbers->result(), scaling);
}

Result<InputForm> adaptInput(ir::Graph& graph, ir::Value* input, ProgramIo type, const EndOptions& options,
                             bool prequantized) {
  InputForm form;
  form.network = input->shape();
  if (input->dtype() != DType::Float32) return form;
  if (options.pixels() && type == ProgramIo::UInt8) {
    if (prequantized) {
      return fail(Code::OptionDoesNotApply,
                  "the network is already quantized: the codes of input '{}' represent normalised values",
                  input->name)
          .at(options.mean.empty() ? "--std" : "--mean")
          .withRemedy("export the network in float and let Carina quantize it");
    }
    CARINA_TRY(form.mean, perChannel(options.mean, 0, "--mean", *input));
    CARINA_TRY(form.deviation, perChannel(options.deviation, 1, "--std", *input));
    CARINA_TRY(const PixelScaling scaling, scalingOf(form));
    takePixels(graph, input, scaling);
  }
  form.channelsLast = options.channelsLast() && input->shape().size() == kImageRank;
  if (form.channelsLast) putChannelsLast(graph, input);
  return form;
}

/// The error for --mean or --std if no input takes pixels.
Error noPixels(std::span<ir::Value* const> inputs, const PortTypes& types) {
  const bool anyFloat = std::any_of(inputs.begin(), inputs.end(),
                                    [](const ir::Value* input) { return isFloat(input->dtype()); });
  for (size_t i = 0; i < inputs.size(); ++i) {
    const DType type = inputs[i]->dtype();
    if (isFloat(type) || (types.of(i) != ProgramIo::UInt8 && (anyFloat || type != DType::UInt8))) continue;
    return fail(Code::OptionDoesNotApply,
                "input '{}' of the network is {}, not float: only the network itself can normalise it",
                inputs[i]->name, dtypeName(type))
        .withRemedy("leave out --mean and --std, or export the network with a float32 input");
  }
  return fail(Code::BadOption, "no input of the program is uint8: there are no pixels")
      .withRemedy("give --io-inputs uint8, or --io-inputs NAME=uint8 for one input");
}

// Outputs
// ----------------------------------------------------------------------------------------------------------

const char* finishName(Finish finish) {
  return finish == Finish::Softmax ? "softmax" : "argmax";
}

bool isSoftmax(const ir::Value& value) {
  return ir::producerAs<aten::SoftmaxInt>(&value) || ir::producerAs<aten::PrivateSoftmax>(&value) ||
         ir::producerAs<aten::PrivateSafeSoftmax>(&value) || ir::producerAs<aten::LogSoftmaxInt>(&value) ||
         ir::producerAs<aten::PrivateLogSoftmax>(&value);
}

Result<ir::Value*> finished(ir::Graph& graph, ir::Value* output, const EndOptions& options) {
  const auto rank = static_cast<int64_t>(output->shape().size());
  const auto dim = normalizeDim(options.finishDim.value_or(rank > 1 ? 1 : 0), rank);
  if (!dim || rank == 0) {
    return fail(Code::BadOption, "output '{}' ({}) has no dimension {}", output->name,
                ir::typeText(output->type), options.finishDim.value_or(0))
        .at("--finish")
        .withRemedy(fmt::format("give a dimension of it: --finish {}:{}", finishName(options.finish), 0));
  }
  if (options.finish == Finish::Softmax && isSoftmax(*output)) {
    return fail(Code::OptionDoesNotApply, "output '{}' is already the result of a softmax", output->name)
        .at("--finish")
        .withRemedy("leave it out");
  }
  const bool softmax = options.finish == Finish::Softmax;
  ir::Builder builder(graph, nullptr, locationOf(*output, softmax ? "_softmax" : "_argmax"));
  return softmax ? aten::SoftmaxInt::create(builder, output, *dim)
                 : aten::Argmax::create(builder, output, *dim);
}

ir::Value* channelsLast(ir::Graph& graph, ir::Value* output) {
  ir::Builder builder(graph, nullptr, locationOf(*output, "_layout"));
  const auto dequantize = ir::producerAs<aten::DequantizePerTensor>(output);
  if (!dequantize) return aten::Permute::create(builder, output, kToChannelsLast);
  ir::Value* codes = aten::Permute::create(builder, dequantize.input(), kToChannelsLast);
  return aten::DequantizePerTensor::create(builder, codes, dequantize.scale(), dequantize.zeroPoint(),
                                           dequantize.quantMin(), dequantize.quantMax(),
                                           dequantize.input()->dtype());
}

Status adaptOutputs(ir::Graph& graph, const EndOptions& options, size_t states, bool prequantized,
                    std::vector<bool>& moved) {
  bool any = false;
  for (size_t i = 0; i + states < graph.outputs().size(); ++i) {
    ir::Value* output = graph.outputs()[i];
    moved.push_back(false);
    if (!isFloat(output->dtype())) continue;
    any = true;
    if (options.finish != Finish::None) {
      if (prequantized) {
        return fail(Code::OptionDoesNotApply,
                    "the network is already quantized: nothing can be appended to it")
            .at("--finish")
            .withRemedy("export it with that operator, or in float");
      }
      CARINA_TRY(output, finished(graph, output, options));
    }
    moved.back() = options.channelsLast() && output->shape().size() == kImageRank;
    if (moved.back()) output = channelsLast(graph, output);
    graph.setOutput(i, output);
  }
  if (any || options.finish == Finish::None) return {};
  return fail(Code::OptionDoesNotApply, "the network has no float output")
      .at("--finish")
      .withRemedy("leave it out");
}

// Arrays
// -----------------------------------------------------------------------------------------------------------

/// The input that an array belongs to.
std::optional<size_t> inputOf(std::string_view name) {
  if (name.empty()) return size_t{0};
  for (const std::string_view prefix : {"in", "calib"}) {
    if (name.substr(0, prefix.size()) != prefix) continue;
    const std::string_view digits = name.substr(prefix.size());
    size_t index = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    if (error == std::errc() && end == digits.data() + digits.size()) return index;
  }
  return std::nullopt;
}

/// The first elements along every dimension; `shape` gives their counts.
Tensor firstOf(const Tensor& array, const Shape& shape) {
  Tensor result = Tensor::uninitialized(array.dtype(), shape);
  std::byte* to = result.mutableBytes().data();
  const auto row = static_cast<size_t>(shape.back() * dtypeSize(array.dtype()));
  const auto copy = [&](const auto& self, size_t dim, int64_t from) -> void {
    if (dim + 1 == shape.size()) {
      const auto first = static_cast<size_t>(from * array.shape().back() * dtypeSize(array.dtype()));
      to = std::copy_n(array.bytes().data() + first, row, to);
      return;
    }
    for (int64_t i = 0; i < shape[dim]; ++i) self(self, dim + 1, from * array.dim(dim) + i);
  };
  if (result.numElements() > 0) copy(copy, 0, 0);
  return result;
}

/// Samples for an input, along a separate leading axis or a batch axis of size one, or a single sample.
/// Arrays that differ in anything but longer chosen dimensions are returned unchanged.
Result<Tensor> cutTo(const SizedInput& input, std::string_view name, Tensor array) {
  const Shape& wanted = input.network;
  if (array.shape().size() < wanted.size() || array.shape().size() > wanted.size() + 1 || wanted.empty())
    return array;
  const size_t leading = array.shape().size() - wanted.size();
  Shape cut = array.shape();
  bool isShort = false;
  for (size_t d = 0; d < wanted.size(); ++d) {
    int64_t& extent = cut[leading + d];
    const bool samples = d == 0 && leading == 0 && wanted[0] == 1;
    if (extent == wanted[d] || samples) continue;
    const bool chosen = std::find(input.chosen.begin(), input.chosen.end(), d) != input.chosen.end();
    if (!chosen) return array;
    isShort = isShort || extent < wanted[d];
    extent = wanted[d];
  }
  if (isShort) {
    return fail(Code::InputMismatch, "has shape {}, too small for the chosen sizes {}",
                shapeText(array.shape()), shapeText(wanted))
        .at(std::string(name))
        .withRemedy("give samples of the largest sizes: each method uses their first elements");
  }
  return cut == array.shape() ? array : firstOf(array, cut);
}

bool endsWith(const Shape& shape, const Shape& sample) {
  return shape.size() + 1 >= sample.size() && !sample.empty() &&
         std::equal(sample.rbegin(), std::prev(sample.rend()), shape.rbegin());
}

/// [..., C, H, W] as [..., H, W, C].
Tensor withChannelsLast(const Tensor& array) {
  Shape shape = array.shape();
  const size_t rank = shape.size();
  const int64_t channels = shape[rank - 3], pixels = shape[rank - 2] * shape[rank - 1];
  std::rotate(shape.end() - 3, shape.end() - 2, shape.end());
  Tensor result = Tensor::uninitialized(array.dtype(), shape);
  const auto size = static_cast<size_t>(dtypeSize(array.dtype()));
  const std::byte* from = array.bytes().data();
  std::byte* to = result.mutableBytes().data();
  const int64_t images = array.numElements() / std::max<int64_t>(channels * pixels, 1);
  for (int64_t n = 0; n < images; ++n) {
    for (int64_t p = 0; p < pixels; ++p) {
      for (int64_t c = 0; c < channels; ++c, to += size) {
        const std::byte* element = from + static_cast<size_t>((n * channels + c) * pixels + p) * size;
        std::copy(element, element + size, to);
      }
    }
  }
  return result;
}

/// The pixels that an image [..., C, H, W] of real values was computed from.
Result<Tensor> pixelsOf(const Tensor& array, const std::string& name, const InputForm& form) {
  constexpr double kSlack = 1;  // pixels
  Tensor result = Tensor::uninitialized(DType::UInt8, array.shape());
  const auto to = result.mutableAs<uint8_t>();
  const size_t rank = array.shape().size();
  const int64_t plane =
      rank < 3 ? 1 : array.dim(static_cast<int64_t>(rank) - 1) * array.dim(static_cast<int64_t>(rank) - 2);
  for (int64_t i = 0; i < array.numElements(); ++i) {
    const size_t c = form.mean.size() == 1 ? 0 : static_cast<size_t>(i / plane) % form.mean.size();
    const double number = array.realAt(i);
    const double pixel = (number * form.deviation[c] + form.mean[c]) * kPixelMax;
    if (!(pixel >= -kSlack && pixel <= kPixelMax + kSlack)) {
      return fail(Code::BadCalibration, "{} holds {:.6g}, which --mean and --std map to pixel {:.6g}", name,
                  number, pixel)
          .withRemedy(
              "give (pixel / 255 - mean) / deviation of pixels from 0 to 255, or the pixels as uint8, or "
              "the mean and deviation that the data was normalised with");
    }
    to[static_cast<size_t>(i)] = static_cast<uint8_t>(std::clamp(std::nearbyint(pixel), 0.0, kPixelMax));
  }
  return result;
}

}  // namespace

const char* programIoName(ProgramIo io) {
  switch (io) {
    case ProgramIo::Float:
      return "float";
    case ProgramIo::Int8:
      return "int8";
    case ProgramIo::Int16:
      return "int16";
    case ProgramIo::UInt8:
      return "uint8";
  }
  CARINA_UNREACHABLE("program input or output type");
}

bool PortTypes::contains(ProgramIo type) const {
  return all == type ||
         std::any_of(single.begin(), single.end(), [&](const auto& entry) { return entry.second == type; });
}

bool PortTypes::anyInteger() const {
  return all != ProgramIo::Float || std::any_of(single.begin(), single.end(), [](const auto& entry) {
           return entry.second != ProgramIo::Float;
         });
}

Result<PortTypes> portTypes(ProgramIo all, std::span<const std::pair<std::string, ProgramIo>> named,
                            std::span<ir::Value* const> values, const std::string& prefix) {
  PortTypes types(all);
  for (const auto& [name, type] : named) {
    std::string known;
    bool found = false;
    for (size_t i = 0; i < values.size(); ++i) {
      const std::string number = fmt::format("{}{}", prefix, i);
      if (name == number || (!name.empty() && name == values[i]->name)) {
        types.single[i] = type;
        found = true;
      }
      known += fmt::format("{}{}{}", i == 0 ? "" : ", ", number,
                           values[i]->name.empty() ? "" : fmt::format(" ('{}')", values[i]->name));
    }
    if (!found) {
      const char* kind = prefix == "in" ? "input" : "output";
      return fail(Code::BadOption, "the program has no {} '{}'", kind, name)
          .at(fmt::format("--io-{}s", kind))
          .withRemedy(fmt::format("its {}s are {}", kind, known));
    }
  }
  return types;
}

std::vector<Diagnostic> idleTypes(const PortTypes& inputTypes, std::span<ir::Value* const> inputs,
                                  const PortTypes& outputTypes, std::span<ir::Value* const> outputs) {
  std::vector<Diagnostic> warnings;
  const auto warn = [&](const char* option, const std::string& effect) {
    warnings.push_back(
        {"has no effect" + effect, "leave it out: only float values become codes", "", option});
  };
  const auto idle = [](ProgramIo type, std::span<ir::Value* const> values) {
    return type != ProgramIo::Float && std::none_of(values.begin(), values.end(), [](const ir::Value* value) {
             return isFloat(value->dtype());
           });
  };
  // --io sets both: it is idle only if both are.
  const bool idleInputs = idle(inputTypes.all, inputs), idleOutputs = idle(outputTypes.all, outputs);
  if (idleInputs && idleOutputs) {
    warn("--io", ": no input or output of the network is float");
  } else if (idleInputs && outputTypes.all == ProgramIo::Float) {
    warn("--io-inputs", ": no input of the network is float");
  } else if (idleOutputs && inputTypes.all == ProgramIo::Float) {
    warn("--io-outputs", ": no output of the network is float");
  }
  const auto warnOfSingle = [&](const char* option, const char* kind, const PortTypes& types,
                                std::span<ir::Value* const> values) {
    for (const auto& [i, type] : types.single) {
      if (type != ProgramIo::Float && !isFloat(values[i]->dtype()))
        warn(option, fmt::format(" on {} '{}': it is {}, not float", kind, values[i]->name,
                                 dtypeName(values[i]->dtype())));
    }
  };
  warnOfSingle("--io-inputs", "input", inputTypes, inputs);
  warnOfSingle("--io-outputs", "output", outputTypes, outputs);
  return warnings;
}

Result<ProgramEnds> adaptEnds(ir::Graph& graph, const EndOptions& options, const PortTypes& inputs,
                              size_t states, bool prequantized) {
  ProgramEnds ends;
  if (!options.rewrites()) return ends;
  const auto callers = std::span<ir::Value* const>(graph.inputs()).first(graph.inputs().size() - states);
  for (size_t i = 0; i < callers.size(); ++i) {
    CARINA_TRY(InputForm form, adaptInput(graph, callers[i], inputs.of(i), options, prequantized));
    ends.inputs.push_back(std::move(form));
  }
  const bool taken = std::any_of(ends.inputs.begin(), ends.inputs.end(),
                                 [](const InputForm& form) { return form.pixels(); });
  if (options.pixels() && !taken)
    return noPixels(callers, inputs).at(options.mean.empty() ? "--std" : "--mean");
  CARINA_RETURN_IF_ERROR(adaptOutputs(graph, options, states, prequantized, ends.channelsLastOutputs));
  graph.eraseDeadNodes();
  return ends;
}

Result<NamedTensors> ProgramEnds::asProgram(NamedTensors arrays) const {
  for (auto& [name, array] : arrays) {
    const auto index = inputOf(name);
    if (index && *index < sized.size()) {
      CARINA_TRY(array, cutTo(sized[*index], name, std::move(array)));
    }
    if (!index || *index >= inputs.size() || !inputs[*index].changed()) continue;
    const InputForm& form = inputs[*index];
    const bool numbers = isFloat(array.dtype());
    const bool first = endsWith(array.shape(), form.network);
    const bool last = form.channelsLast && endsWith(array.shape(), permuted(form.network, kToChannelsLast));
    // If the shape is ambiguous, pixels have the program's layout, real values the network's.
    const bool moves = form.channelsLast && first && (!last || numbers);
    Tensor changed = array;
    if (numbers && form.pixels()) {
      if (!first) continue;  // the shape is reported as wrong later
      CARINA_TRY(changed, pixelsOf(array, name.empty() ? "the array" : name, form));
    }
    if (moves) changed = withChannelsLast(changed);
    array = std::move(changed);
  }
  return arrays;
}

}  // namespace carina::pipeline
