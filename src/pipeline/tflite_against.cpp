// SPDX-License-Identifier: Apache-2.0
#include "pipeline/tflite_against.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "base/file.hpp"
#include "device/tflite_runner.hpp"
#include "ethosn/targets/variant.hpp"
#include "pipeline/batch.hpp"
#include "pipeline/command_streams.hpp"
#include "pipeline/port_codes.hpp"
#include "tflite/model.hpp"

namespace carina::pipeline {
namespace {

using Samples = std::vector<std::vector<Tensor>>;

Result<std::vector<Tensor>> codesAtRandom(std::span<const device::Runner::Io> inputs,
                                          std::mt19937_64& random) {
  std::vector<Tensor> sample;
  for (const device::Runner::Io& input : inputs) {
    if (isFloat(input.dtype)) {
      return fail(Code::InputMismatch, "input {} is float, and its range of values is unknown", sample.size())
          .withRemedy("give samples with --input");
    }
    const bool counts = input.dtype == DType::Int32 || input.dtype == DType::Int64;
    std::uniform_int_distribution<int64_t> codes(counts ? 0 : integerMin(input.dtype),
                                                 counts ? 1 : integerMax(input.dtype));
    Tensor tensor = Tensor::uninitialized(input.dtype, input.shape);
    for (int64_t i = 0; i < tensor.numElements(); ++i) tensor.setIntegerAt(i, codes(random));
    sample.push_back(std::move(tensor));
  }
  return sample;
}

Result<Samples> samplesFor(const device::TfliteRunner& network, ByteSpan file, const AgainstOptions& options,
                           const NamedTensors& arrays) {
  Samples samples;
  if (arrays.empty()) {
    std::mt19937_64 random(1);
    for (size_t n = 0; n < std::max<size_t>(options.samples, 1); ++n) {
      CARINA_TRY(std::vector<Tensor> sample, codesAtRandom(network.inputs(), random));
      samples.push_back(std::move(sample));
    }
    return samples;
  }
  std::vector<Port> ports;
  for (const auto& input : network.inputs())
    ports.push_back({fmt::format("input {}", ports.size()), {input.dtype, input.shape}});
  CARINA_TRY(const NamedTensors taken, quantizeInputs(arrays, ports, codesOfTflite(file)));
  CARINA_TRY(Batch batch, makeBatch(taken, ports));
  if (options.most > 0 && batch.samples.size() > options.most) batch.samples.resize(options.most);
  return std::move(batch.samples);
}

/// The tensor of this name in a subgraph of the network, if it keeps its last value.
std::optional<int32_t> tensorOf(const tflite::NpuProgram::Subgraph& subgraph, const std::string& name) {
  std::optional<int32_t> found;
  for (size_t i = 0; i < subgraph.tensors.size(); ++i) {
    if (subgraph.tensors[i].name != name) continue;
    if (found || subgraph.offsets[i]) return std::nullopt;
    found = static_cast<int32_t>(i);
  }
  return found;
}

bool isSame(const Tensor& a, int64_t i, const Tensor& b) {
  if (!isFloat(a.dtype())) return a.integerAt(i) == b.integerAt(i);
  const double x = a.realAt(i), y = b.realAt(i);
  return x == y || (std::isnan(x) && std::isnan(y));
}

class TfliteComparison {
 public:
  TfliteComparison(device::TfliteRunner& compiled, device::TfliteRunner& network,
                   const std::string& networkName)
      : compiled_(compiled), network_(network) {
    for (const tflite::NpuCall& call : compiled.program().calls) {
      PartAgainst& part = against_.parts.emplace_back();
      part.part = fmt::format("{} (ethos-u)", call.name);
      part.graph = networkName;
      part.values = call.outputs.size();
    }
    PartAgainst& outputs = against_.parts.emplace_back();
    outputs.part = "outputs";
    outputs.graph = networkName;
    outputs.values = outputs.seen = network.outputs().size();
  }

  Status add(std::span<const Tensor> sample) {
    CARINA_TRY(const device::RunOutcome expected, network_.run(sample));
    CARINA_TRY(const device::RunOutcome actual, compiled_.run(sample));
    std::map<size_t, const device::DelegateRun*> last;
    for (const device::DelegateRun& run : actual.stats.delegates) last[run.instruction] = &run;
    for (const auto& [index, run] : last) addCall(index, *run);
    PartAgainst& outputs = against_.parts.back();
    ++outputs.samples;
    const auto& names = network_.program().main();
    for (size_t i = 0; i < expected.outputs.size(); ++i) {
      const auto tensor = static_cast<size_t>(names.outputs[i]);
      compare(expected.outputs[i], actual.outputs[i], names.tensors[tensor].name, outputs);
    }
    return {};
  }

  Against take() { return std::move(against_); }

 private:
  void addCall(size_t index, const device::DelegateRun& run) {
    const tflite::NpuCall& call = compiled_.program().calls[index];
    const auto& own = compiled_.program().subgraphs[call.subgraph];
    PartAgainst& part = against_.parts[index];
    ++part.samples;
    part.seen = 0;
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      const std::string& name = own.tensors[static_cast<size_t>(call.outputs[i])].name;
      const auto tensor = tensorOf(network_.program().subgraphs[call.subgraph], name);
      if (!tensor) continue;
      ++part.seen;
      compare(network_.contents(call.subgraph, *tensor), run.outputs[i], name, part);
    }
    if (part.findings.empty()) {
      for (const npu::Finding& finding : run.findings)
        part.findings.push_back(findingText(part.part, finding));
    }
  }

  static void compare(const Tensor& expected, const Tensor& actual, const std::string& name,
                      PartAgainst& part) {
    FirstDifference first;
    first.value = name;
    first.closest = "the tensor of the network";
    first.elements = expected.numElements();
    if (actual.dtype() != expected.dtype() || actual.numElements() != expected.numElements()) {
      first.mismatches = first.elements;
    } else {
      for (int64_t i = 0; i < first.elements; ++i) {
        if (isSame(expected, i, actual) || first.mismatches++ > 0) continue;
        first.firstIndex = i;
        const auto at = [&](const Tensor& tensor) {
          return isFloat(tensor.dtype()) ? std::llround(tensor.realAt(i)) : tensor.integerAt(i);
        };
        first.expected = at(expected);
        first.actual = at(actual);
      }
    }
    part.elements += first.elements;
    part.mismatches += first.mismatches;
    if (first.mismatches > 0 && !part.first) part.first = std::move(first);
  }

  device::TfliteRunner &compiled_, &network_;
  Against against_;
};

Status checkEnds(const device::TfliteRunner& compiled, const device::TfliteRunner& network) {
  const auto same = [](const auto& one, const auto& other) {
    return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                      [](const auto& a, const auto& b) { return a.dtype == b.dtype && a.shape == b.shape; });
  };
  const auto& one = compiled.program().subgraphs;
  if (same(compiled.inputs(), network.inputs()) && same(compiled.outputs(), network.outputs()) &&
      one.size() == network.program().subgraphs.size()) {
    return {};
  }
  return fail(Code::InputMismatch, "the two files differ in their inputs, outputs or subgraphs")
      .withRemedy("give the network that the program was compiled from");
}

}  // namespace

Result<Against> verifyTflite(ByteSpan compiled, ByteSpan network, const std::string& networkName,
                             const AgainstOptions& options, const NamedTensors& arrays) {
  device::RunOptions running;
  running.trusted = options.trusted;
  running.keepDelegateIo = true;
  running.model.check = true;
  CARINA_TRY(device::TfliteRunner program, device::TfliteRunner::open(compiled, running));
  auto opened = device::TfliteRunner::open(network, running);
  if (!opened) return std::move(opened).error().inFile(networkName);
  device::TfliteRunner reference = std::move(*opened);
  if (!reference.program().calls.empty()) {
    return fail(Code::UnsupportedProgram, "has ethos-u operators: it is already compiled")
        .inFile(networkName)
        .withRemedy("give the .tflite that the program was compiled from");
  }
  CARINA_RETURN_IF_ERROR(checkEnds(program, reference));
  CARINA_TRY(const Samples samples, samplesFor(reference, network, options, arrays));
  TfliteComparison comparison(program, reference, networkName);
  for (const auto& sample : samples) CARINA_RETURN_IF_ERROR(comparison.add(sample));
  return comparison.take();
}

Result<Against> verifyTfliteFiles(const AgainstOptions& options, const NamedTensors& arrays) {
  const std::string program = options.program.string();
  if (options.graphs.size() != 1) {
    return fail(Code::InputMismatch, "a .tflite is compiled from one network, not from {}",
                options.graphs.size())
        .inFile(program)
        .withRemedy("give that .tflite alone with --against");
  }
  CARINA_TRY(const auto compiled, MappedFile::open(options.program));
  CARINA_TRY(const auto network, MappedFile::open(options.graphs[0]));
  if (!tflite::isTflite(network->bytes())) {
    return fail(Code::InputMismatch, "is not a .tflite, but the program is")
        .inFile(options.graphs[0].string())
        .withRemedy("give the .tflite that the program was compiled from");
  }
  auto against = verifyTflite(compiled->bytes(), network->bytes(), options.graphs[0].filename().string(),
                              options, arrays);
  if (!against) return std::move(against).error().inFile(program);
  return against;
}

bool staysTflite(const Build& build) {
  return build.tflite && build.program.methods.empty();
}

Result<Build> buildAsTflite(const Options& given) {
  if (given.target == "cpu" || ethosn::isEthosNName(given.target)) return pipeline::build(given);
  Options options = given;
  options.tflite = true;
  CARINA_TRY(Build build, pipeline::build(options));
  if (!staysTflite(build)) return build;
  const auto isFloatEnd = [](const ir::Value* value) { return isFloat(value->dtype()); };
  const ir::Graph& graph = build.tflite->graph;
  if (std::any_of(graph.inputs().begin(), graph.inputs().end(), isFloatEnd) ||
      std::any_of(graph.outputs().begin(), graph.outputs().end(), isFloatEnd)) {
    auto whole = pipeline::build(given);
    if (whole.ok() && whole->partitioned.wholly) return whole;
  }
  return build;
}

}  // namespace carina::pipeline
