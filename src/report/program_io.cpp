// SPDX-License-Identifier: Apache-2.0
#include "report/program_io.hpp"

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "pipeline/pipeline.hpp"
#include "report/text.hpp"

namespace carina::report {
namespace {

using pipeline::PortCodes;

/// Calls `use` with kind, index, value and codes of each of the caller's inputs and outputs.
template <typename Use>
void forEachPort(const pipeline::Build& build, const Use& use) {
  const pipeline::ProgramCodes codes = pipeline::codesOf(build);
  for (size_t i = 0; i < codes.inputs.size(); ++i)
    use("input", i, *build.graph().inputs()[i], codes.inputs[i]);
  for (size_t i = 0; i < codes.outputs.size(); ++i)
    use("output", i, *build.graph().outputs()[i], codes.outputs[i]);
}

const char* typeInC(DType type) {
  switch (type) {
    case DType::Int8:
      return "int8_t";
    case DType::UInt8:
      return "uint8_t";
    case DType::Int16:
      return "int16_t";
    case DType::UInt16:
      return "uint16_t";
    case DType::Int32:
      return "int32_t";
    case DType::Int64:
      return "int64_t";
    case DType::Bool:
      return "uint8_t";
    default:
      return "float";
  }
}

/// 0.5 as a C float constant.
std::string floatInC(double value) {
  std::string text = fmt::format("{:.9g}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text + "f";
}

std::string listInC(const std::vector<double>& values) {
  std::vector<std::string> texts;
  texts.reserve(values.size());
  for (const double value : values) texts.push_back(floatInC(value));
  return fmt::format("{{{}}}", fmt::join(texts, ", "));
}

/// Text that is safe in a C comment: it ends neither the comment nor the line.
std::string commentText(std::string text) {
  for (char& c : text) c = c < ' ' || c == '*' || c == '/' || c == '\\' ? '_' : c;
  return text;
}

std::string portInC(const std::string& name, const ir::Value& value, const PortCodes& codes) {
  std::string text;
  const auto define = [&](const char* what, const std::string& content) {
    text += fmt::format("#define {}_{} {}\n", name, what, content);
  };
  define("TYPE", typeInC(value.dtype()));
  define("ELEMENTS", fmt::format("{}", value.numElements()));
  define("BYTES", fmt::format("{}", value.numBytes()));
  define("SHAPE", fmt::format("{{{}}}", fmt::join(value.shape(), ", ")));
  if (codes.scale) {
    define("SCALE", floatInC(*codes.scale));
    define("ZERO_POINT", fmt::format("({})", codes.zeroPoint));
  }
  if (codes.pixels()) {
    define("MEAN", listInC(codes.mean));
    define("STD", listInC(codes.deviation));
  }
  if (value.shape().size() == 4) define("NHWC", codes.channelsLast ? "1" : "0");
  return text;
}

}  // namespace

void addCodes(const PortCodes& codes, nlohmann::ordered_json& json) {
  if (codes.scale) {
    json["scale"] = *codes.scale;
    json["zero_point"] = codes.zeroPoint;
  }
  if (codes.pixels()) {
    json["mean"] = codes.mean;
    json["std"] = codes.deviation;
  }
  if (codes.channelsLast) json["layout"] = "nhwc";
}

nlohmann::ordered_json programIoJson(const pipeline::Build& build) {
  nlohmann::ordered_json json = {{"inputs", nlohmann::ordered_json::array()},
                                 {"outputs", nlohmann::ordered_json::array()}};
  forEachPort(build, [&](const std::string& kind, size_t, const ir::Value& value, const PortCodes& codes) {
    nlohmann::ordered_json port = {
        {"name", value.name}, {"type", dtypeName(value.dtype())}, {"shape", value.shape()}};
    addCodes(codes, port);
    json[kind + "s"].push_back(std::move(port));
  });
  return json;
}

std::string programIoText(const pipeline::Build& build) {
  std::string text;
  forEachPort(build, [&](const char* kind, size_t index, const ir::Value& value, const PortCodes& codes) {
    if (codes.empty()) return;
    text +=
        fmt::format("  {:<7} {} {}, {}\n", kind, index, ir::typeText(value.type), pipeline::codesText(codes));
  });
  return text;
}

std::string programIoHeader(const pipeline::Build& build, const std::string& program) {
  std::string text = fmt::format(
      "/* Made by carina compile: inputs and outputs of {}.\n"
      "   real = SCALE * (code - ZERO_POINT); where there is a MEAN, the code is a pixel,\n"
      "   and the network is given (real - MEAN) / STD. */\n"
      "#ifndef CARINA_IO_H\n#define CARINA_IO_H\n\n#include <stdint.h>\n",
      commentText(program));
  const pipeline::ProgramCodes codes = pipeline::codesOf(build);
  text += fmt::format("\n#define CARINA_INPUTS {}\n#define CARINA_OUTPUTS {}\n", codes.inputs.size(),
                      codes.outputs.size());
  forEachPort(build, [&](const char* kind, size_t index, const ir::Value& value, const PortCodes& port) {
    const std::string name = fmt::format("CARINA_{}{}", kind[0] == 'i' ? "INPUT" : "OUTPUT", index);
    text += fmt::format("\n/* {} */\n", commentText(value.name.empty() ? kind : value.name));
    text += portInC(name, value, port);
  });
  return text + "\n#endif\n";
}

}  // namespace carina::report
