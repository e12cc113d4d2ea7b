// SPDX-License-Identifier: Apache-2.0
// Programs with several methods, state and control flow in another runtime that reads .pte: its outputs equal
// ours byte for byte. CARINA_EXECUTORCH_RUNNER names a program that executes them there:
//
//   RUNNER PROGRAM.pte CALLS FOLDER
//
// All methods of PROGRAM are loaded before the first call and share memory pool 2. Each line of CALLS is one
// call: the method, then a file for each input that is a tensor, its elements in logical order. Output O of
// call C goes to FOLDER/C.O.bin in the same form (numbers: 8 bytes, booleans: 1). Exit status 0.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>

#include "base/file.hpp"
#include "base/npy.hpp"
#include "device/run.hpp"
#include "pipeline/chosen_sizes.hpp"
#include "pipeline/run.hpp"
#include "pt2/exported_program.hpp"
#include "support/child_process.hpp"
#include "support/fixtures.hpp"
#include "support/require.hpp"
#include "support/temp_dir.hpp"

namespace carina::pipeline {
namespace {

struct Call {
  std::string method;
  std::vector<Tensor> inputs;
};

struct Case {
  std::string bytes;  // of the .pte
  std::vector<Call> calls;
};

NamedTensors arraysOf(const std::filesystem::path& file) {
  return require(readArrays(file));
}

/// The first `most` samples of `prefix`0, `prefix`1, ...
std::vector<Call> callsOf(const std::string& method, const NamedTensors& arrays, const std::string& prefix,
                          int64_t most) {
  std::vector<Call> calls;
  for (size_t i = 0; const Tensor* samples = findTensor(arrays, fmt::format("{}{}", prefix, i)); ++i) {
    calls.resize(static_cast<size_t>(std::min(samples->dim(0), most)), {method, {}});
    for (size_t n = 0; n < calls.size(); ++n)
      calls[n].inputs.push_back(slice(*samples, static_cast<int64_t>(n)));
  }
  return calls;
}

std::filesystem::path dataFile(const std::string& name, const char* suffix) {
  return test::dataDir() / (name + suffix);
}

std::string bytesOf(const pte::Program& program) {
  return require(pte::writeProgram(program));
}

/// A network of tests/data, quantized for an NPU.
Case caseOf(const std::string& name, const std::string& target) {
  Options options;
  options.model = dataFile(name, ".pt2");
  options.target = target;
  if (target != "cpu") options.calibration = dataFile(name, ".npz");
  if (name.starts_with("recurrences")) options.unroll = 99;  // loops
  const auto built = require(build(options));
  const NamedTensors arrays = arraysOf(dataFile(name, ".npz"));
  const bool separate = findTensor(arrays, "in0") != nullptr;
  return {bytesOf(built.program), callsOf("forward", arrays, separate ? "in" : "calib", 12)};
}

Case caseOf(Options options, const std::string& target, std::vector<MethodSource> sources,
            std::vector<Call> calls) {
  options.target = target;
  if (target == "cpu") {
    for (MethodSource& source : sources) source.calibration.clear();
  }
  const auto built = require(buildMethods(options, sources));
  return {bytesOf(built.program), std::move(calls)};
}

/// `read` finds what `write` stored, call by call; then `reset`.
Case buffer(const std::string& target) {
  const auto writes = callsOf("write", arraysOf(dataFile("methods/write", ".npz")), "calib", 100);
  const auto reads = callsOf("read", arraysOf(dataFile("methods/read", ".npz")), "calib", 100);
  std::vector<Call> calls;
  for (size_t n = 0; n < writes.size(); ++n) {
    calls.push_back(writes[n]);
    calls.push_back(reads[n]);
  }
  calls.push_back({"reset", {}});
  calls.push_back(reads.back());
  return caseOf({}, target,
                {{"write", dataFile("methods/write", ".pt2"), dataFile("methods/write", ".npz")},
                 {"read", dataFile("methods/read", ".pt2"), dataFile("methods/read", ".npz")},
                 {"reset", dataFile("methods/reset", ".pt2"), {}}},
                std::move(calls));
}

/// A decoder: `prefill` reads one prompt, `decode` continues from its keys and values.
Case decoder(const std::string& target, const std::filesystem::path& folder, const char* tokenizer) {
  const auto prefill = callsOf("prefill", arraysOf(folder / "language_prefill.npz"), "calib", 1);
  auto decode = callsOf("decode", arraysOf(folder / "language.npz"), "calib", 48);
  const auto first = static_cast<size_t>(prefill[0].inputs[0].dim(1));
  decode.erase(decode.begin(), decode.begin() + static_cast<ptrdiff_t>(std::min(first, decode.size())));
  decode.resize(std::min<size_t>(decode.size(), 12));
  std::vector<Call> calls = prefill;
  calls.insert(calls.end(), decode.begin(), decode.end());
  Options options;
  options.constantMethods = {{"get_max_context_len", *tokenizer == 't' ? 16 : 128}};
  return caseOf(options, target,
                {{"prefill", folder / "language_prefill.pt2", folder / "language_prefill.npz"},
                 {"decode", folder / "language.pt2", folder / "language.npz"}},
                std::move(calls));
}

/// One network at three sizes, one method each.
Case sizes(const std::string& target) {
  const auto symbols = pt2::sizeSymbols(dataFile("dynamic/length", ".pt2"));
  CARINA_CHECK(symbols.ok() && !symbols->empty(), "the network has a symbol");
  const SizeChoice choice{symbols->front().name, {2, 8, 20}};
  MethodSource source{"forward", dataFile("dynamic/length", ".pt2"), dataFile("dynamic/length", ".npz")};
  auto methods = require(methodsOfSizes({&source, 1}, "", {&choice, 1}));
  const NamedTensors arrays = arraysOf(dataFile("dynamic/length", ".npz"));
  std::vector<Call> calls;
  for (int64_t size : {20, 2, 8}) {
    calls.push_back({fmt::format("forward_{}_{}", choice.symbol, size),
                     {*findTensor(arrays, fmt::format("{}.in0", size))}});
  }
  return caseOf({}, target, std::move(methods), std::move(calls));
}

/// The outputs of our runtime, call by call.
Result<std::vector<std::vector<Tensor>>> ours(const Case& given) {
  std::map<std::string, device::Runner> methods;
  for (const Call& call : given.calls) {
    if (methods.contains(call.method)) continue;
    device::RunOptions options;
    options.method = call.method;
    auto opened = methods.empty() ? device::Runner::open(asBytes(given.bytes), options)
                                  : methods.begin()->second.openSharingNpu(call.method);
    CARINA_TRY(device::Runner runner, std::move(opened));
    methods.emplace(call.method, std::move(runner));
  }
  std::vector<std::vector<Tensor>> results;
  for (const Call& call : given.calls) {
    CARINA_TRY(device::RunOutcome outcome, methods.at(call.method).run(call.inputs));
    results.push_back(std::move(outcome.outputs));
  }
  return results;
}

void write(const std::filesystem::path& file, ByteSpan bytes) {
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

/// The largest difference relative to the largest magnitude, of tensors of one type.
double distance(const Tensor& own, const Tensor& other) {
  double error = 0, largest = 1e-30;
  for (int64_t k = 0; k < own.numElements(); ++k) {
    error = std::max(error, std::abs(own.realAt(k) - other.realAt(k)));
    largest = std::max(largest, std::abs(own.realAt(k)));
  }
  return error / largest;
}

/// Runs the case in both; every output of every call has the same bytes, or floats within `tolerance`.
void expectEqual(const Case& given, double tolerance = 0) {
  const char* runner = std::getenv("CARINA_EXECUTORCH_RUNNER");
  const auto expected = require(ours(given));
  const test::TempDir folder;
  write(folder / "program.pte", asBytes(given.bytes));
  std::ofstream calls(folder / "calls");
  for (size_t n = 0; n < given.calls.size(); ++n) {
    calls << given.calls[n].method;
    for (size_t i = 0; i < given.calls[n].inputs.size(); ++i) {
      const auto file = folder / fmt::format("in{}.{}", n, i);
      write(file, given.calls[n].inputs[i].bytes());
      calls << " " << file.string();
    }
    calls << "\n";
  }
  calls.close();
  const test::ChildOutcome outcome = test::runChild(
      {runner, (folder / "program.pte").string(), (folder / "calls").string(), folder.path().string()});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  for (size_t n = 0; n < expected.size(); ++n) {
    for (size_t i = 0; i < expected[n].size(); ++i) {
      const Tensor& own = expected[n][i];
      const auto file = require(MappedFile::open(folder / fmt::format("{}.{}.bin", n, i)));
      const ByteSpan bytes = file->bytes();
      ASSERT_EQ(bytes.size(), own.bytes().size()) << "call " << n << ", output " << i;
      if (std::ranges::equal(bytes, own.bytes())) continue;
      Tensor other = Tensor::uninitialized(own.dtype(), own.shape());
      std::ranges::copy(bytes, other.mutableBytes().begin());
      EXPECT_LE(distance(own, other), tolerance) << "call " << n << ", output " << i;
    }
  }
}

class ExecutorchRuntime : public testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  void SetUp() override {
    if (std::getenv("CARINA_EXECUTORCH_RUNNER") == nullptr)
      GTEST_SKIP() << "set CARINA_EXECUTORCH_RUNNER to a program that runs a .pte (see the head of the test)";
  }
};

TEST_P(ExecutorchRuntime, ProducesTheSameBytes) {
  const auto& [network, target] = GetParam();
  Case given;
  if (network == "methods/buffer") {
    given = buffer(target);
  } else if (network == "methods/sizes") {
    given = sizes(target);
  } else if (network == "methods/decoder") {
    given = decoder(target, test::dataDir() / "language", "tiny");
  } else if (network == "models/language") {
    given = decoder(target, test::modelFile(""), "language");
  } else {
    given = caseOf(network, target);
  }
  ASSERT_FALSE(given.calls.empty());
  // The other runtime's kernels sum floats in a different order.
  expectEqual(given, target == "cpu" ? 1e-5 : 0);
}

INSTANTIATE_TEST_SUITE_P(
    Programs, ExecutorchRuntime,
    testing::Combine(
        testing::Values("control/cond_zero_args_one_output", "control/cond_one_arg_one_output",
                        "control/cond_one_arg_const_one_output", "control/cond_one_arg_and_scalar_one_output",
                        "control/cond_one_arg_two_outputs", "control/cond_two_args_one_output",
                        "control/cond_two_args_two_outputs", "control/cond_nested_one_arg_one_output",
                        "control/cond_multiple_one_arg_one_output", "control/while_two_in_two_out",
                        "control/while_one_in_one_buffer_two_out", "control/while_decreasing_output",
                        "control/while_additional_arg", "control/while_two_in_one_captured_out",
                        "control/while_large_threshold", "control/experts", "control/refine",
                        "control/search", "control/same", "control/item", "state/attention_index_copy",
                        "state/attention_index_put", "state/attention_roll", "state/blocks",
                        "state/recurrent", "state/streaming_convolution", "recurrences/gru",
                        "recurrences/gru_both_ways", "recurrences/lstm_deep", "recurrences/relu_batch_first",
                        "methods/buffer", "methods/sizes", "methods/decoder", "models/language"),
        testing::Values("cpu", "ethos-u55-128", "ethos-u65-512", "ethos-u85-256")),
    [](const auto& instance) {
      std::string name = fmt::format("{}_{}", std::get<0>(instance.param), std::get<1>(instance.param));
      std::ranges::replace_if(
          name, [](char c) { return c == '-' || c == '/'; }, '_');
      return name;
    });

}  // namespace
}  // namespace carina::pipeline
