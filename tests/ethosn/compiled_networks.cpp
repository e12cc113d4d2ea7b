// SPDX-License-Identifier: Apache-2.0
// Support for comparing two compilers for Ethos-N78 (scripts/compare_ethosn.py):
//   compiled_networks shapes                       names of the networks that it can generate
//   compiled_networks write SOURCE TARGET FILE [CALIBRATION.npz]
//       SOURCE is such a name, or a .pt2, .tflite or .tosa: its largest part for the NPU. network_text.hpp
//   compiled_networks random SEED STEPS TARGET FILE
//       a random operation (1 step) or chain; exits with 3 and writes no file if the rules refuse the network
//   compiled_networks compile FILE OUT.encn        Carina's compiler; prints the CPU time of compiling alone
//   compiled_networks check FILE FILE.encn         of any compiler: the file must be written back unchanged
//       and run, in two orders of its lists, without findings and with the reference's outputs
//       (reference.hpp)
//   compiled_networks measure FILE.encn            of any compiler: bytes that the stream moves, cost metric
//   compiled_networks passes FILE.encn             the same for each pass, to see where two compilers differ
// `write`, `compile` and `measure` print one JSON object.
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <sstream>

#include "ethosn/compiler/compile.hpp"
#include "ethosn/known_networks.hpp"
#include "ethosn/model/pass_work.hpp"
#include "ethosn/network_shapes.hpp"
#include "ethosn/network_text.hpp"
#include "ethosn/random_network.hpp"
#include "pipeline/pipeline.hpp"

namespace carina::ethosn::test {
namespace {

double cpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

Result<Network> largestPart(const std::string& file, std::string_view target,
                            const std::string& calibration) {
  pipeline::Options options;
  options.model = file;
  options.target = std::string(target);
  options.calibration = calibration;
  CARINA_TRY(const pipeline::Build build, pipeline::build(options));
  const auto largest =
      std::max_element(build.ethosNParts.begin(), build.ethosNParts.end(),
                       [](const pipeline::EthosNPart& a, const pipeline::EthosNPart& b) {
                         return a.operations.operations.size() < b.operations.operations.size();
                       });
  if (largest == build.ethosNParts.end())
    return fail(Code::NoIntegerForm, "has no part for the NPU").inFile(file);
  return largest->operations;
}

Status write(const std::string& source, const std::string& target, const std::string& file,
             const std::string& calibration) {
  TargetNetwork out;
  CARINA_TRY(const Variant* variant, findVariant(target));
  CARINA_TRY(out.target, makeTarget(*variant));
  const std::vector<std::string_view> names = knownNetworks();
  if (std::find(names.begin(), names.end(), source) != names.end()) {
    out.network = knownNetwork(source);
  } else {
    CARINA_TRY(out.network, largestPart(source, target, calibration));
  }
  CARINA_RETURN_IF_ERROR(writeNetwork(out, file));
  std::cout << fmt::format("{{\"operations\": {}}}\n", out.network.operations.size());
  return {};
}

Status compile(const std::string& file, const std::string& to) {
  CARINA_TRY(const TargetNetwork network, readNetwork(file));
  const double before = cpuSeconds();
  CARINA_TRY(const CompiledNetwork compiled, compileNetwork(network.network, network.target));
  const double taken = cpuSeconds() - before;
  const std::vector<uint8_t> bytes = writeCompiledNetwork(compiled);
  std::ofstream out(to, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!out.flush()) return fail(Code::CannotWrite, "cannot be written").inFile(to);
  std::cout << fmt::format("{{\"cpu_seconds\": {:.4f}}}\n", taken);
  return {};
}

Status writeRandom(uint32_t seed, uint32_t steps, const std::string& target, const std::string& file) {
  CARINA_TRY(const Variant* variant, findVariant(target));
  std::optional<RandomNetwork> random = randomNetwork(*variant, seed, steps);
  if (!random) return fail(Code::NoIntegerForm, "the rules refuse what was drawn");
  return writeNetwork({random->target, random->builder.network()}, file);
}

Result<std::string> contentsOf(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream contents;
  contents << in.rdbuf();
  if (!in) return fail(Code::CannotRead, "cannot be read").inFile(file);
  return contents.str();
}

int tolerated(const Network& network) {
  return std::any_of(network.operations.begin(), network.operations.end(), [](const NetworkOperation& o) {
    return o.operation.op == Operator::Sigmoid || o.operation.op == Operator::Tanh;
  });
}

/// Inputs spread around their zero points; with a small `spread`, sums do not saturate.
std::vector<std::vector<uint8_t>> inputsOf(const Network& network, uint32_t spread) {
  std::mt19937 random(spread);
  std::vector<std::vector<uint8_t>> out;
  for (const int32_t input : network.inputs) {
    const TensorInfo& info = network.tensors[static_cast<size_t>(input)];
    auto& bytes = out.emplace_back(elements(info.shape));
    for (uint8_t& byte : bytes) {
      const auto offset = static_cast<int32_t>(random() >> 8) % static_cast<int32_t>(spread);
      byte = static_cast<uint8_t>(info.quantization.zeroPoint + offset - static_cast<int32_t>(spread / 3));
    }
  }
  return out;
}

Status check(const std::string& file, const std::string& encn) {
  CARINA_TRY(const TargetNetwork words, readNetwork(file));
  CARINA_TRY(const std::string bytes, contentsOf(encn));
  CARINA_TRY(const CompiledNetwork network, readCompiledNetwork(std::as_bytes(std::span(bytes))));
  const std::vector<uint8_t> written = writeCompiledNetwork(network);
  CARINA_TRY(const ByteSpan streamBytes, commandStreamBytes(network));
  CARINA_TRY(const CommandStream stream, readCommandStream(streamBytes));
  CARINA_TRY(const std::vector<uint8_t> again, writeCommandStream(stream));
  const bool same = std::ranges::equal(std::as_bytes(std::span(written)), std::as_bytes(std::span(bytes))) &&
                    again.size() <= streamBytes.size() &&
                    std::ranges::equal(std::as_bytes(std::span(again)), streamBytes.first(again.size()));
  if (!same) return fail(Code::NpuFault, "does not write back the same").inFile(encn);
  int largest = 0;
  for (const uint32_t spread : {4U, 21U, 256U}) {
    const auto inputs = inputsOf(words.network, spread);
    const auto expected = computeReference(words.network, inputs);
    const std::vector<ByteSpan> spans = [&] {
      std::vector<ByteSpan> out;
      out.reserve(inputs.size());
      for (const auto& input : inputs) out.push_back(std::as_bytes(std::span(input)));
      return out;
    }();
    CARINA_TRY(const RunResult run,
               runNetwork(network, spans, largestTarget(*words.target.variant), {.order = spread % 5}));
    if (!run.findings.empty()) return fail(Code::NpuFault, "{}", run.findings[0].str()).inFile(encn);
    for (size_t i = 0; i < expected.size(); ++i) {
      const TensorInfo& info = words.network.tensors[static_cast<size_t>(words.network.outputs[i])];
      const auto code = [&info](uint8_t byte) {
        return info.type == DataType::S8 ? static_cast<int8_t>(byte) : int{byte};
      };
      if (run.outputs[i].size() != expected[i].size())
        return fail(Code::NpuFault, "output {} has {} bytes, not {}", i, run.outputs[i].size(),
                    expected[i].size())
            .inFile(encn);
      for (size_t k = 0; k < expected[i].size(); ++k)
        largest = std::max(largest, std::abs(code(run.outputs[i][k]) - code(expected[i][k])));
    }
  }
  if (largest > tolerated(words.network))
    return fail(Code::NpuFault, "results differ from the reference's by up to {}", largest).inFile(encn);
  std::cout << fmt::format("{{\"largest_difference\": {}}}\n", largest);
  return {};
}

struct Walked {
  CommandStream stream;
  RunResult run;
};

/// Executes the stream without computing the sums.
Result<Walked> walk(const std::string& file) {
  CARINA_TRY(const std::string bytes, contentsOf(file));
  Walked out;
  CARINA_TRY(const CompiledNetwork network, readCompiledNetwork(std::as_bytes(std::span(bytes))));
  CARINA_TRY(const ByteSpan streamBytes, commandStreamBytes(network));
  CARINA_TRY(out.stream, readCommandStream(streamBytes));
  CARINA_TRY(const Variant* variant, variantOf(out.stream));
  if (variant == nullptr)
    return fail(Code::OtherNpu, "uses no PLE kernel, and so names no variant").inFile(file);
  std::vector<std::vector<std::byte>> zeros;
  for (const BufferInfo& input : network.inputs) zeros.emplace_back(input.size);
  const std::vector<ByteSpan> inputs(zeros.begin(), zeros.end());
  CARINA_TRY(out.run, runNetwork(network, inputs, largestTarget(*variant), {.arithmetic = false}));
  return out;
}

Status measure(const std::string& file) {
  CARINA_TRY(const Walked walked, walk(file));
  const RunStats& stats = walked.run.stats;
  for (const Finding& finding : walked.run.findings) std::cerr << finding.str() << '\n';
  uint64_t metric = 0;
  const std::vector<PassWork> passes = passesOf(walked.stream, stats);
  for (const PassWork& pass : passes) metric += passCycles(pass);
  std::cout << fmt::format(
      "{{\"read\": {}, \"written\": {}, \"metric\": {}, \"timeline\": {}, \"passes\": {}, \"mce_cycles\": "
      "{}, \"ple_cycles\": {}, \"sram\": {}, \"findings\": {}}}\n",
      stats.readBytes, stats.writtenBytes, metric, stats.cycles, passes.size(), stats.mceCycles,
      stats.pleCycles, stats.sramBytes, walked.run.findings.size());
  return {};
}

Status listPasses(const std::string& file) {
  CARINA_TRY(const Walked walked, walk(file));
  std::cout << "cycles: input bytes/transfers, weights, output; MCE cycles/stripes, PLE\n";
  for (const PassWork& p : passesOf(walked.stream, walked.run.stats)) {
    std::cout << fmt::format("{}: {}/{}, {}/{}, {}/{}; {}/{}, {}/{}\n", passCycles(p), p.input.bytes,
                             p.input.commands, p.weights.bytes, p.weights.commands, p.output.bytes,
                             p.output.commands, p.mceCycles, p.mceStripes, p.pleCycles, p.pleStripes);
  }
  return {};
}

int usage() {
  std::cerr
      << "usage: compiled_networks shapes | write SOURCE TARGET FILE [CALIBRATION.npz] | random SEED "
         "STEPS TARGET FILE | compile FILE OUT.encn | check FILE FILE.encn | measure FILE.encn | passes "
         "FILE.encn\n";
  return 2;
}

int run(const std::vector<std::string>& arguments) {
  const std::string mode = arguments.empty() ? "" : arguments[0];
  const size_t count = arguments.size();
  Status status;
  if (mode == "shapes" && count == 1) {
    for (std::string_view name : knownNetworks()) std::cout << name << '\n';
  } else if (mode == "write" && (count == 4 || count == 5)) {
    status = write(arguments[1], arguments[2], arguments[3], count == 5 ? arguments[4] : "");
  } else if (mode == "random" && count == 5) {
    status = writeRandom(static_cast<uint32_t>(std::stoul(arguments[1])),
                         static_cast<uint32_t>(std::stoul(arguments[2])), arguments[3], arguments[4]);
    if (!status.ok()) return 3;
  } else if (mode == "check" && count == 3) {
    status = check(arguments[1], arguments[2]);
  } else if (mode == "compile" && count == 3) {
    status = compile(arguments[1], arguments[2]);
  } else if (mode == "measure" && count == 2) {
    status = measure(arguments[1]);
  } else if (mode == "passes" && count == 2) {
    status = listPasses(arguments[1]);
  } else {
    return usage();
  }
  if (status.ok()) return 0;
  std::cerr << status.error().str() << '\n';
  return 1;
}

}  // namespace
}  // namespace carina::ethosn::test

int main(int argc, char** argv) {
  return carina::ethosn::test::run(std::vector<std::string>(argv + 1, argv + argc));
}
