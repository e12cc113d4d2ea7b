// SPDX-License-Identifier: Apache-2.0
#include "ethosn/network_text.hpp"

#include <fmt/format.h>

#include <cstring>
#include <fstream>
#include <sstream>

#include "support/contents.hpp"

namespace carina::ethosn::test {
namespace {

std::filesystem::path bytesFile(const std::filesystem::path& file) {
  return file.string() + ".bin";
}

/// Appends the bytes and returns "OFFSET+BYTES".
std::string append(std::string& all, const void* data, size_t size) {
  if (size == 0) return "-";
  std::string place = fmt::format("{}+{}", all.size(), size);
  all.append(static_cast<const char*>(data), size);
  return place;
}

Result<std::string_view> bytesAt(const std::string& all, const std::string& place) {
  if (place == "-") return std::string_view();
  size_t offset = 0, size = 0;
  char plus = 0;
  std::istringstream words(place);
  words >> offset >> plus >> size;
  if (plus != '+' || offset > all.size() || size > all.size() - offset)
    return fail(Code::BadText, "'{}' is not a place in {} bytes", place, all.size());
  return std::string_view(all).substr(offset, size);
}

std::vector<int32_t> numbers(const std::string& text) {
  std::vector<int32_t> out;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) out.push_back(std::atoi(part.c_str()));
  return out;
}

Status readOperation(std::istringstream& words, const std::string& all, TargetNetwork& out) {
  std::string ins, outs, weights, biases, query;
  words >> ins >> outs >> weights >> biases;
  std::getline(words >> std::ws, query);
  CARINA_TRY(TargetQuery parsed, parseQuery(query));
  out.target = parsed.target;
  NetworkOperation made;
  made.operation = std::move(parsed.query.operation);
  made.inputs = numbers(ins);
  made.outputs = numbers(outs);
  made.name = fmt::format("{}{}", operatorName(made.operation.op), out.network.operations.size());
  CARINA_TRY(const std::string_view weightBytes, bytesAt(all, weights));
  made.weights.assign(weightBytes.begin(), weightBytes.end());
  CARINA_TRY(const std::string_view biasBytes, bytesAt(all, biases));
  made.biases.resize(biasBytes.size() / sizeof(int32_t));
  std::memcpy(made.biases.data(), biasBytes.data(), made.biases.size() * sizeof(int32_t));
  out.network.operations.push_back(std::move(made));
  return {};
}

}  // namespace

Status writeNetwork(const TargetNetwork& network, const std::filesystem::path& file) {
  std::ofstream text(file);
  std::string all;
  for (const TensorInfo& tensor : network.network.tensors) text << "tensor " << printTensor(tensor) << '\n';
  for (int32_t input : network.network.inputs) text << "input " << input << '\n';
  for (const NetworkOperation& operation : network.network.operations) {
    SupportQuery query;
    query.operation = operation.operation;
    for (int32_t input : operation.inputs)
      query.inputs.push_back(network.network.tensors[static_cast<size_t>(input)]);
    text << fmt::format("operation {} {} {} {} {}\n", fmt::join(operation.inputs, ","),
                        fmt::join(operation.outputs, ","),
                        append(all, operation.weights.data(), operation.weights.size()),
                        append(all, operation.biases.data(), operation.biases.size() * sizeof(int32_t)),
                        printQuery({network.target, query}));
  }
  for (int32_t output : network.network.outputs) text << "output " << output << '\n';
  std::ofstream bytes(bytesFile(file), std::ios::binary);
  bytes << all;
  if (text.flush() && bytes.flush()) return {};
  return fail(Code::CannotWrite, "cannot be written").inFile(file.string());
}

Result<TargetNetwork> readNetwork(const std::filesystem::path& file) {
  const std::string all = carina::test::contentsOf(bytesFile(file));
  TargetNetwork out;
  std::ifstream text(file);
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    std::string kind, rest;
    words >> kind;
    if (kind == "tensor") {
      words >> rest;
      out.network.addTensor(parseTensor(rest));
    } else if (kind == "input") {
      words >> out.network.inputs.emplace_back();
    } else if (kind == "output") {
      words >> out.network.outputs.emplace_back();
    } else if (kind == "operation") {
      CARINA_RETURN_IF_ERROR(readOperation(words, all, out));
    } else {
      return fail(Code::BadText, "'{}' is not a line of a network", kind);
    }
  }
  if (out.target.variant == nullptr) return fail(Code::BadText, "has no operation").inFile(file.string());
  return out;
}

}  // namespace carina::ethosn::test
