// SPDX-License-Identifier: Apache-2.0
#include "pipeline/port_codes.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "pipeline/pipeline.hpp"
#include "tflite/model.hpp"

namespace carina::pipeline {
namespace {

constexpr double kPixelScale = 1.0 / 255;
constexpr const char* kLayout = "nhwc";
/// More than any program has inputs; higher indices belong to other methods.
constexpr size_t kMaxPorts = 1024;

bool isCode(DType type) {
  return type == DType::Int8 || type == DType::UInt8 || type == DType::Int16;
}

PortCodes codesOfValue(const ir::Value& value) {
  PortCodes codes;
  if (!isCode(value.dtype()) || !value.quantization || value.quantization->perChannel()) return codes;
  codes.scale = value.quantization->scales.front();
  codes.zeroPoint = value.quantization->zeroPoints.front();
  return codes;
}

/// Name prefix of the methods that describe the codes of `method`.
std::string prefixFor(const pte::Program& program, const std::string& method) {
  return program.methods.front().name == method ? "" : method + "_";
}

std::string methodName(const std::string& prefix, const char* kind, size_t index, const char* what) {
  return fmt::format("{}{}{}_{}", prefix, kind, index, what);
}

/// The value returned by a method that only returns a constant.
const pte::Value* constantOf(const pte::Program& program, const std::string& name) {
  const pte::Method* method = program.findMethod(name);
  if (method == nullptr || !method->inputs.empty() || method->outputs.size() != 1) return nullptr;
  const auto id = static_cast<size_t>(method->outputs.front());
  return method->outputs.front() >= 0 && id < method->values.size() ? &method->values[id] : nullptr;
}

std::vector<double> realsOf(const pte::Program& program, const std::string& name) {
  const pte::Value* value = constantOf(program, name);
  const auto* list = value == nullptr ? nullptr : std::get_if<pte::DoubleList>(value);
  return list == nullptr ? std::vector<double>() : list->items;
}

bool allFinite(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
}

PortCodes readCodes(const pte::Program& program, const std::string& prefix, const char* kind, size_t index) {
  const auto methodName = [&](const char* of, size_t i, const char* what) {
    return pipeline::methodName(prefix, of, i, what);
  };
  PortCodes codes;
  const pte::Value* scale = constantOf(program, methodName(kind, index, "scale"));
  const pte::Value* zero = constantOf(program, methodName(kind, index, "zp"));
  const auto* real = scale == nullptr ? nullptr : std::get_if<double>(scale);
  const auto* integer = zero == nullptr ? nullptr : std::get_if<int64_t>(zero);
  if (real != nullptr && integer != nullptr && std::isfinite(*real) && *real > 0 &&
      std::abs(*integer) <= 32768) {
    codes.scale = *real;
    codes.zeroPoint = *integer;
  }
  std::vector<double> mean = realsOf(program, methodName(kind, index, "mean"));
  std::vector<double> deviation = realsOf(program, methodName(kind, index, "std"));
  const bool usable = codes.scale && !mean.empty() && mean.size() == deviation.size() && allFinite(mean) &&
                      allFinite(deviation) &&
                      std::all_of(deviation.begin(), deviation.end(), [](double d) { return d > 0; });
  if (usable) {
    codes.mean = std::move(mean);
    codes.deviation = std::move(deviation);
  }
  const pte::Value* layout = constantOf(program, methodName(kind, index, "layout"));
  const auto* text = layout == nullptr ? nullptr : std::get_if<std::string>(layout);
  codes.channelsLast = text != nullptr && *text == kLayout;
  return codes;
}

/// [N, H, W, C] as [N, C, H, W].
Shape channelsFirst(const Shape& shape) {
  return {shape[0], shape[3], shape[1], shape[2]};
}

}  // namespace

ProgramCodes codesOf(const Build& build) {
  ProgramCodes codes;
  const ir::Graph& graph = build.graph();
  for (size_t i = 0; i < ir::callerInputs(graph, build.state); ++i) {
    PortCodes port = codesOfValue(*graph.inputs()[i]);
    if (i < build.ends.inputs.size()) {
      const InputForm& form = build.ends.inputs[i];
      port.channelsLast = form.channelsLast;
      if (form.pixels()) {
        port.scale = kPixelScale;
        port.mean = form.mean;
        port.deviation = form.deviation;
      }
    }
    codes.inputs.push_back(std::move(port));
  }
  for (size_t i = 0; i < ir::callerOutputs(graph, build.state); ++i) {
    PortCodes port = codesOfValue(*graph.outputs()[i]);
    port.channelsLast = i < build.ends.channelsLastOutputs.size() && build.ends.channelsLastOutputs[i];
    codes.outputs.push_back(std::move(port));
  }
  return codes;
}

Status addCodeMethods(const ProgramCodes& codes, const std::string& method, pte::Program& program) {
  const std::string prefix = prefixFor(program, method);
  const auto methodName = [&](const char* kind, size_t index, const char* what) {
    return pipeline::methodName(prefix, kind, index, what);
  };
  const auto add = [&](const std::string& name, auto&& make) -> Status {
    if (program.findMethod(name) != nullptr) {
      return fail(Code::BadOption, "'{}' is the name of a method that describes an input or output", name)
          .at("--constant-method")
          .withRemedy("give it another name");
    }
    pte::MethodBuilder builder(program, name);
    builder.output(make(builder));
    return builder.finish();
  };
  const auto addPort = [&](const char* kind, size_t index, const PortCodes& port) -> Status {
    if (port.scale) {
      CARINA_RETURN_IF_ERROR(
          add(methodName(kind, index, "scale"), [&](pte::MethodBuilder& b) { return b.real(*port.scale); }));
      CARINA_RETURN_IF_ERROR(add(methodName(kind, index, "zp"),
                                 [&](pte::MethodBuilder& b) { return b.integer(port.zeroPoint); }));
    }
    if (port.pixels()) {
      CARINA_RETURN_IF_ERROR(
          add(methodName(kind, index, "mean"), [&](pte::MethodBuilder& b) { return b.reals(port.mean); }));
      CARINA_RETURN_IF_ERROR(add(methodName(kind, index, "std"),
                                 [&](pte::MethodBuilder& b) { return b.reals(port.deviation); }));
    }
    if (!port.channelsLast) return {};
    return add(methodName(kind, index, "layout"), [](pte::MethodBuilder& b) { return b.text(kLayout); });
  };
  for (size_t i = 0; i < codes.inputs.size(); ++i)
    CARINA_RETURN_IF_ERROR(addPort("input", i, codes.inputs[i]));
  for (size_t i = 0; i < codes.outputs.size(); ++i)
    CARINA_RETURN_IF_ERROR(addPort("output", i, codes.outputs[i]));
  return {};
}

ProgramCodes codesOf(const pte::Program& program, const std::string& name) {
  ProgramCodes codes;
  if (program.methods.empty()) return codes;
  const pte::Method* method = name.empty() ? &program.methods.front() : program.findMethod(name);
  if (method == nullptr) return codes;
  const std::string prefix = prefixFor(program, method->name);
  for (size_t i = 0; i < std::min(method->inputs.size(), kMaxPorts); ++i)
    codes.inputs.push_back(readCodes(program, prefix, "input", i));
  for (size_t i = 0; i < std::min(method->outputs.size(), kMaxPorts); ++i)
    codes.outputs.push_back(readCodes(program, prefix, "output", i));
  return codes;
}

ProgramCodes codesOfTflite(ByteSpan file) {
  ProgramCodes codes;
  const auto model = tflite::readModel(file);
  if (!model || model->subgraphs.size() != 1) return codes;
  const tflite::Subgraph& graph = model->subgraphs.front();
  const auto read = [&](const std::vector<int32_t>& ids, std::vector<PortCodes>& into) {
    for (int32_t id : ids) {
      PortCodes& port = into.emplace_back();
      if (id < 0 || static_cast<size_t>(id) >= graph.tensors.size()) continue;
      const tflite::Tensor& tensor = graph.tensors[static_cast<size_t>(id)];
      const bool usable = tensor.scales.size() == 1 && tensor.zeroPoints.size() == 1 &&
                          std::isfinite(tensor.scales[0]) && tensor.scales[0] > 0;
      if (!usable) continue;
      port.scale = tensor.scales[0];
      port.zeroPoint = tensor.zeroPoints[0];
    }
  };
  read(graph.inputs, codes.inputs);
  read(graph.outputs, codes.outputs);
  return codes;
}

bool isCodeMethod(const pte::Method& method) {
  if (!method.inputs.empty()) return false;
  for (const std::string_view kind : {"input", "output"}) {
    const size_t at = method.name.rfind(kind);  // after the name of another method, or at the start
    if (at == std::string::npos || (at > 0 && method.name[at - 1] != '_')) continue;
    const std::string_view name = std::string_view(method.name).substr(at);
    const size_t digits = name.find_first_not_of("0123456789", kind.size());
    if (digits == std::string_view::npos || digits == kind.size() || name[digits] != '_') continue;
    const std::string_view what = name.substr(digits + 1);
    if (what == "scale" || what == "zp" || what == "mean" || what == "std" || what == "layout") return true;
  }
  return false;
}

std::string codesText(const PortCodes& codes) {
  std::vector<std::string> parts;
  if (codes.scale) parts.push_back(fmt::format("scale {:.6g}, zero point {}", *codes.scale, codes.zeroPoint));
  if (codes.pixels()) {
    parts.push_back(fmt::format("pixels with mean {:.6g} and std {:.6g}", fmt::join(codes.mean, ","),
                                fmt::join(codes.deviation, ",")));
  }
  if (codes.channelsLast) parts.emplace_back(kLayout);
  return fmt::format("{}", fmt::join(parts, ", "));
}

ProgramEnds endsOf(std::span<const Port> ports, const ProgramCodes& codes) {
  ProgramEnds ends;
  for (size_t i = 0; i < std::min(ports.size(), codes.inputs.size()); ++i) {
    const PortCodes& port = codes.inputs[i];
    InputForm& form = ends.inputs.emplace_back();
    form.channelsLast = port.channelsLast && ports[i].type.shape.size() == 4;
    form.network = form.channelsLast ? channelsFirst(ports[i].type.shape) : ports[i].type.shape;
    form.mean = port.mean;
    form.deviation = port.deviation;
    const size_t last = form.network.size();
    const bool fits =
        form.mean.size() <= 1 || (last == 4 && form.network[1] == static_cast<int64_t>(form.mean.size()));
    if (!fits) form.mean.clear();
  }
  return ends;
}

Result<NamedTensors> quantizeInputs(NamedTensors arrays, std::span<const Port> ports,
                                    const ProgramCodes& codes) {
  const ProgramEnds ends = endsOf(ports, codes);
  CARINA_TRY(arrays, ends.asProgram(std::move(arrays)));
  for (size_t i = 0; i < ends.inputs.size(); ++i) {
    const PortCodes& port = codes.inputs[i];
    if (!port.scale || !isCode(ports[i].type.dtype)) continue;
    for (auto& [name, array] : arrays) {
      const bool only = name.empty() && i == 0 && arrays.size() == 1;
      if ((name == fmt::format("in{}", i) || only) && isFloat(array.dtype()))
        array = quantizeTensor(array, ports[i].type.dtype, *port.scale, port.zeroPoint);
    }
  }
  return arrays;
}

Result<NamedTensors> dequantizeOutputs(NamedTensors arrays, const ProgramCodes& codes) {
  for (size_t i = 0; i < arrays.size(); ++i) {
    auto& [name, array] = arrays[i];
    if (!isCode(array.dtype())) continue;
    if (i >= codes.outputs.size() || !codes.outputs[i].scale) {
      return fail(Code::UnusableQuantization, "{} is {}, but the program does not state its scale", name,
                  dtypeName(array.dtype()))
          .at("--dequantize")
          .withRemedy("leave it out, or compile the network again");
    }
    const PortCodes& port = codes.outputs[i];
    Tensor numbers = Tensor::uninitialized(DType::Float32, array.shape());
    const auto to = numbers.mutableAs<float>();
    for (int64_t k = 0; k < array.numElements(); ++k)
      to[static_cast<size_t>(k)] =
          static_cast<float>(array.integerAt(k) - port.zeroPoint) * static_cast<float>(*port.scale);
    array = std::move(numbers);
  }
  return arrays;
}

Tensor quantizeTensor(const Tensor& numbers, DType to, double scale, int64_t zeroPoint) {
  const auto inverse = static_cast<float>(1.0 / scale);
  const auto zero = static_cast<float>(zeroPoint);
  Tensor codes = Tensor::uninitialized(to, numbers.shape());
  const auto low = static_cast<float>(integerMin(to)), high = static_cast<float>(integerMax(to));
  for (int64_t k = 0; k < codes.numElements(); ++k) {
    const float code = std::nearbyint(static_cast<float>(numbers.realAt(k)) * inverse) + zero;
    codes.setIntegerAt(k, std::isnan(code) ? zeroPoint : static_cast<int64_t>(std::clamp(code, low, high)));
  }
  return codes;
}

}  // namespace carina::pipeline
