// SPDX-License-Identifier: Apache-2.0
#include "compiler/program_runner.hpp"

#include <cstring>

#include "compiler/dialect/npu_interpreter.hpp"
#include "compiler/legalize/legalize.hpp"
#include "compiler/storage/storage.hpp"
#include "ir/printer.hpp"
#include "npu/model/model.hpp"
#include "tosa/interpreter.hpp"

namespace carina::test {
namespace {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ull + 1) {}
  uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }

 private:
  uint64_t state_;
};

std::string compareTensors(const Tensor& expected, const Tensor& actual, const std::string& what) {
  if (expected.shape() != actual.shape() || dtypeSize(expected.dtype()) != dtypeSize(actual.dtype())) {
    return fmt::format("{}: {} instead of {}\n", what, ir::typeText({actual.dtype(), actual.shape()}),
                       ir::typeText({expected.dtype(), expected.shape()}));
  }
  int64_t wrong = 0, first = -1;
  for (int64_t i = 0; i < expected.numElements(); ++i) {
    if (expected.integerAt(i) == actual.integerAt(i)) continue;
    if (first < 0) first = i;
    ++wrong;
  }
  if (wrong == 0) return "";
  return fmt::format("{}: {} of {} elements differ, the first is {}: {} instead of {}\n", what, wrong,
                     expected.numElements(), first, actual.integerAt(first), expected.integerAt(first));
}

}  // namespace

Result<ProgramRun> runProgram(const compiler::CompiledProgram& program, std::span<const Tensor> inputs,
                              bool check) {
  const auto filled = [](int64_t bytes) {
    return std::vector<std::byte>(static_cast<size_t>(bytes), std::byte{0x5a});
  };
  std::vector<std::byte> constants = program.constants, arena = filled(program.arenaBytes),
                         cache = filled(program.cacheBytes);
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::memcpy(arena.data() + program.inputs[i].offset, inputs[i].bytes().data(), inputs[i].bytes().size());
  }
  std::vector<npu::RegionBytes> regions(3);
  regions[0] = {constants, false};
  regions[1] = {arena, true};
  regions[2] = {cache, true};
  npu::ModelOptions options;
  options.check = check;
  options.timing = false;
  const npu::RunResult result = npu::runStream(program.commands, program.machine, regions, options);
  if (result.fault) return fail(Code::NpuFault, "{}", result.fault->str());
  ProgramRun run;
  for (const npu::Finding& finding : result.findings) {
    // The checker cannot know that inputs and constants are initialized from the start.
    if (finding.kind != npu::Finding::Kind::Uninitialized) run.findings.push_back(finding.message);
  }
  for (const compiler::IoTensor& io : program.outputs) {
    Tensor tensor = Tensor::zeros(io.dtype, io.shape);
    std::memcpy(tensor.mutableBytes().data(), arena.data() + io.offset, static_cast<size_t>(io.bytes));
    run.outputs.push_back(std::move(tensor));
  }
  return run;
}

Tensor randomTensor(DType dtype, const Shape& shape, uint64_t seed) {
  Random random(seed);
  Tensor tensor = Tensor::zeros(dtype, shape);
  for (int64_t i = 0; i < tensor.numElements(); ++i) {
    const uint64_t bits = random.next() >> 17;
    int64_t value = 0;
    switch (dtype) {
      case DType::Bool:
        value = static_cast<int64_t>(bits & 1);
        break;
      case DType::Int8:
        value = static_cast<int8_t>(bits);
        break;
      case DType::Int16:
        value = static_cast<int16_t>(bits);
        break;
      default:
        value = static_cast<int64_t>(bits % 200001) - 100000;
        break;
    }
    tensor.setIntegerAt(i, value);
  }
  return tensor;
}

std::vector<Tensor> randomInputs(const ir::Graph& graph, uint64_t seed) {
  std::vector<Tensor> inputs;
  for (const ir::Value* value : graph.inputs())
    inputs.push_back(randomTensor(value->dtype(), value->shape(), seed++));
  return inputs;
}

std::string differences(const ir::Graph& tosa, const std::string& target, const std::string& memoryMode,
                        std::span<const Tensor> inputs, bool npuInterpreter, compiler::Optimize optimize) {
  auto machine = npu::makeMachine(target, "", memoryMode);
  if (!machine.ok()) return machine.error().str();
  auto expected = tosa::interpret(tosa, inputs);
  if (!expected.ok()) return "TOSA interpreter: " + expected.error().str();
  const std::string where = target + " " + memoryMode;
  std::string text;
  if (npuInterpreter) {
    auto graph = compiler::legalize(tosa, *machine->target);
    if (!graph.ok()) return where + ": " + graph.error().str();
    if (auto status = compiler::makeAddressable(*graph); !status.ok())
      return where + ": " + status.error().str();
    auto values = npu_ir::interpret(*graph, inputs);
    if (!values.ok()) return where + " npu interpreter: " + values.error().str();
    for (size_t i = 0; i < values->size(); ++i) {
      text += compareTensors((*expected)[i], (*values)[i],
                             fmt::format("{} npu interpreter, output {}", where, i));
    }
    if (!text.empty()) return text + ir::print(*graph);
  }
  std::string dump;
  compiler::Options options;
  options.optimize = optimize;
  options.dump = [&](std::string_view, const std::function<std::string()>& print) { dump += print(); };
  auto program = compiler::compile(tosa, *machine, options);
  if (!program.ok()) return where + ": " + program.error().str();
  auto run = runProgram(*program, inputs, true);
  if (!run.ok()) return where + " model: " + run.error().str() + "\n" + dump;
  for (size_t i = 0; i < run->outputs.size(); ++i) {
    text += compareTensors((*expected)[i], run->outputs[i], fmt::format("{} model, output {}", where, i));
  }
  for (const std::string& finding : run->findings) text += fmt::format("{} checker: {}\n", where, finding);
  return text.empty() ? "" : text + dump;
}

}  // namespace carina::test
