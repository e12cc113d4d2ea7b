// SPDX-License-Identifier: Apache-2.0
#include "ethosn/support_protocol.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <sstream>

namespace carina::ethosn::test {
namespace {

std::vector<std::string> splitAt(std::string_view text, char separator) {
  std::vector<std::string> parts(1);
  for (char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

std::string print(const Quantization& quantization) {
  std::string out = fmt::format("{}", quantization.zeroPoint);
  for (float scale : quantization.scales) out += fmt::format("/{:.9g}", scale);
  if (quantization.dim) out += fmt::format("@{}", *quantization.dim);
  return out;
}

template <typename Numbers>
std::string printList(const Numbers& numbers) {
  return fmt::format("{}", fmt::join(numbers, ","));
}

uint32_t number(const std::string& text) {
  return static_cast<uint32_t>(std::strtoul(text.c_str(), nullptr, 10));
}

template <size_t count>
std::array<uint32_t, count> numbers(const std::string& text, char separator = ',') {
  std::array<uint32_t, count> out{};
  const std::vector<std::string> parts = splitAt(text, separator);
  for (size_t i = 0; i < count && i < parts.size(); ++i) out[i] = number(parts[i]);
  return out;
}

Quantization parseQuantization(const std::string& text) {
  Quantization out;
  out.scales.clear();
  const std::vector<std::string> sides = splitAt(text, '@');
  if (sides.size() == 2) out.dim = number(sides[1]);
  const std::vector<std::string> parts = splitAt(sides[0], '/');
  out.zeroPoint = std::atoi(parts[0].c_str());
  for (size_t i = 1; i < parts.size(); ++i) out.scales.push_back(std::strtof(parts[i].c_str(), nullptr));
  return out;
}

DataType parseType(const std::string& text) {
  return text == "u8" ? DataType::U8 : text == "s8" ? DataType::S8 : DataType::S32;
}

DataFormat parseFormat(const std::string& text) {
  for (DataFormat format : {DataFormat::Nhwc, DataFormat::Nchw, DataFormat::Hwio, DataFormat::Nhwcb}) {
    if (text == dataFormatName(format)) return format;
  }
  return DataFormat::Hwim;
}

Status apply(TargetQuery& query, const std::string& key, const std::string& value) {
  Operation& op = query.query.operation;
  if (key == "in") {
    query.query.inputs.push_back(parseTensor(value));
  } else if (key == "out") {
    if (!query.query.outputs) query.query.outputs.emplace();
    query.query.outputs->push_back(parseTensor(value));
  } else if (key == "w") {
    op.weights = parseTensor(value);
  } else if (key == "b") {
    op.bias = parseTensor(value);
  } else if (key == "est") {
    op.estimateOutputs.push_back(parseTensor(value));
  } else if (key == "oq") {
    op.outputQuantization = parseQuantization(value);
  } else if (key == "pad") {
    const auto n = numbers<4>(value);
    op.padding = {n[0], n[1], n[2], n[3]};
  } else if (key == "stride") {
    const auto n = numbers<2>(value);
    op.stride = {n[0], n[1]};
  } else if (key == "win") {
    const auto n = numbers<2>(value);
    op.window = {n[0], n[1]};
  } else if (key == "pool") {
    op.pooling = value == "max" ? PoolingType::Max : PoolingType::Average;
  } else if (key == "otype") {
    op.outputType = parseType(value);
  } else if (key == "ofmt") {
    op.outputFormat = parseFormat(value);
  } else if (key == "axis") {
    op.axis = number(value);
  } else if (key == "sizes") {
    for (const std::string& part : splitAt(value, ',')) {
      if (!part.empty()) op.sizes.push_back(number(part));
    }
  } else if (key == "relu") {
    const std::vector<std::string> parts = splitAt(value, ',');
    op.lower = std::atoi(parts[0].c_str());
    op.upper = std::atoi(parts.back().c_str());
  } else if (key == "alpha") {
    op.alpha = std::strtof(value.c_str(), nullptr);
  } else if (key == "block") {
    op.blockSize = number(value);
  } else if (key == "new") {
    op.newShape = numbers<4>(value);
  } else if (key == "perm") {
    op.permutation = numbers<4>(value);
  } else if (key == "algo") {
    op.resize = value == "nearest" ? ResizeAlgorithm::NearestNeighbour : ResizeAlgorithm::Bilinear;
  } else {
    return fail(Code::BadText, "unknown key '{}'", key);
  }
  return {};
}

}  // namespace

std::string printTensor(const TensorInfo& info) {
  const Shape& s = info.shape;
  return fmt::format("{}x{}x{}x{}:{}:{}:{}", s[0], s[1], s[2], s[3], dataTypeName(info.type),
                     dataFormatName(info.format), print(info.quantization));
}

TensorInfo parseTensor(const std::string& text) {
  const std::vector<std::string> parts = splitAt(text, ':');
  if (parts.size() != 4) return {};
  return {numbers<4>(parts[0], 'x'), parseType(parts[1]), parseFormat(parts[2]), parseQuantization(parts[3])};
}

std::string printQuery(const TargetQuery& query) {
  const Operation& op = query.query.operation;
  std::string out = fmt::format("{} target={} sram={}", operatorName(op.op), query.target.variant->name,
                                query.target.sramBytes);
  const auto add = [&out](std::string_view key, const std::string& value) {
    out += fmt::format(" {}={}", key, value);
  };
  for (const TensorInfo& info : query.query.inputs) add("in", printTensor(info));
  switch (op.op) {
    case Operator::Convolution:
    case Operator::DepthwiseConvolution:
    case Operator::TransposeConvolution:
    case Operator::FullyConnected:
      add("w", printTensor(op.weights));
      add("b", printTensor(op.bias));
      break;
    default:
      break;
  }
  const Padding& pad = op.padding;
  if (pad != Padding{}) add("pad", fmt::format("{},{},{},{}", pad.top, pad.bottom, pad.left, pad.right));
  if (op.stride != Extent{}) add("stride", fmt::format("{},{}", op.stride.x, op.stride.y));
  if (op.op == Operator::Pooling) {
    add("win", fmt::format("{},{}", op.window.x, op.window.y));
    add("pool", op.pooling == PoolingType::Max ? "max" : "average");
  }
  add("oq", print(op.outputQuantization));
  if (op.outputType) add("otype", std::string(dataTypeName(*op.outputType)));
  if (op.op == Operator::Output) add("ofmt", std::string(dataFormatName(op.outputFormat)));
  if (op.op == Operator::Concatenation || op.op == Operator::Split) add("axis", fmt::format("{}", op.axis));
  if (op.op == Operator::Split) add("sizes", printList(op.sizes));
  if (op.op == Operator::Relu) add("relu", fmt::format("{},{}", op.lower, op.upper));
  if (op.op == Operator::LeakyRelu) add("alpha", fmt::format("{:.9g}", op.alpha));
  if (op.op == Operator::DepthToSpace || op.op == Operator::SpaceToDepth) {
    add("block", fmt::format("{}", op.blockSize));
  }
  if (op.op == Operator::Reshape || op.op == Operator::Resize) add("new", printList(op.newShape));
  if (op.op == Operator::Transpose) add("perm", printList(op.permutation));
  if (op.op == Operator::Resize) {
    add("algo", op.resize == ResizeAlgorithm::NearestNeighbour ? "nearest" : "bilinear");
  }
  for (const TensorInfo& info : op.estimateOutputs) add("est", printTensor(info));
  if (query.query.outputs) {
    for (const TensorInfo& info : *query.query.outputs) add("out", printTensor(info));
  }
  return out;
}

Result<TargetQuery> parseQuery(std::string_view line) {
  std::istringstream words{std::string(line)};
  std::string word;
  words >> word;
  TargetQuery query;
  bool known = false;
  for (size_t i = 0; i < kOperators; ++i) {
    if (word != operatorName(static_cast<Operator>(i))) continue;
    query.query.operation.op = static_cast<Operator>(i);
    known = true;
  }
  if (!known) return fail(Code::BadText, "unknown operator '{}'", word);
  std::string target;
  int64_t sram = 0;
  while (words >> word) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos) return fail(Code::BadText, "'{}' is not KEY=VALUE", word);
    const std::string key = word.substr(0, equals), value = word.substr(equals + 1);
    if (key == "target") {
      target = value;
    } else if (key == "sram") {
      sram = std::atoll(value.c_str());
    } else {
      CARINA_RETURN_IF_ERROR(apply(query, key, value));
    }
  }
  CARINA_TRY(const Variant* variant, findVariant(target));
  CARINA_TRY(query.target, makeTarget(*variant, sram));
  return query;
}

std::string printAnswer(const SupportAnswer& answer) {
  return fmt::format("{}\t{}", supportLevelName(answer.level), answer.reason);
}

}  // namespace carina::ethosn::test
