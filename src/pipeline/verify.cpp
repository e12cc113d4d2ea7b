// SPDX-License-Identifier: Apache-2.0
#include "pipeline/verify.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <unordered_map>
#include <unordered_set>

#include "aten/control_flow.hpp"
#include "aten/executor.hpp"
#include "aten/ops.hpp"
#include "aten/work.hpp"
#include "base/file.hpp"
#include "device/run.hpp"
#include "npu/isa/stream.hpp"
#include "npu/model/work.hpp"
#include "partition/integer_executor.hpp"
#include "pipeline/ethosn_profile.hpp"
#include "pipeline/ethosn_verify.hpp"
#include "pipeline/int32_products.hpp"
#include "pipeline/integer_io.hpp"
#include "pipeline/methods.hpp"
#include "pipeline/npu_probe.hpp"
#include "pipeline/part_values.hpp"
#include "pipeline/run.hpp"
#include "pipeline/simulated_values.hpp"
#include "pipeline/work_limits.hpp"
#include "tosa/interpreter.hpp"
#include "tosa/work.hpp"

namespace carina::pipeline {
namespace {

/// Tensors of the float network by value name: one, or one per iteration of the enclosing loop.
using Values = std::map<std::string, std::vector<Tensor>, std::less<>>;

/// Float runs per sample: float, simulated, float with rounded inputs and outputs.
constexpr int kRuns = 3;

/// Codes per quantum. 32-bit codes have more digits than the computation: they are compared as if they had 16
/// bits.
int64_t quantumOf(DType codes) {
  return codes == DType::Int32 ? 65536 : 1;
}

/// One quantum of a program output: the scale of the dequantize that produces it, 1 for integers, 0 if
/// unknown.
double quantumOf(const ir::Value& output) {
  if (!isFloat(output.dtype())) return 1.0;
  auto dequantize = ir::producerAs<aten::DequantizePerTensor>(&output);
  if (!dequantize) return 0.0;
  return dequantize.scale() * static_cast<double>(quantumOf(dequantize.dtype()));
}

/// The codes of a program input, which a quantize or dequantize node reads; nullopt if it has none.
std::optional<quantize::QParams> inputCodes(const ir::Value& input) {
  for (const ir::Use& use : input.uses()) {
    if (const auto q = ir::dynCast<aten::QuantizePerTensor>(use.node))
      return quantize::QParams{q.scale(), q.zeroPoint(), {q.dtype(), q.quantMin(), q.quantMax()}};
    if (const auto q = ir::dynCast<aten::DequantizePerTensor>(use.node))
      return quantize::QParams{q.scale(), q.zeroPoint(), {q.dtype(), q.quantMin(), q.quantMax()}};
  }
  return std::nullopt;
}

/// The codes that a program output holds, or that a dequantize node reads to produce it.
std::optional<quantize::QParams> outputCodes(const ir::Value& output) {
  if (const DType type = output.dtype(); isInteger(type) && output.quantization) {
    return quantize::QParams{output.quantization->scales.front(),
                             output.quantization->zeroPoints.front(),
                             {type, integerMin(type), integerMax(type)}};
  }
  const auto q = ir::producerAs<aten::DequantizePerTensor>(&output);
  if (!q) return std::nullopt;
  return quantize::QParams{q.scale(), q.zeroPoint(), {q.dtype(), q.quantMin(), q.quantMax()}};
}

/// A float tensor rounded to its codes; others are unchanged.
Tensor rounded(const Tensor& tensor, const std::optional<quantize::QParams>& codes) {
  if (!codes || tensor.dtype() != DType::Float32) return tensor;
  Tensor result = Tensor::uninitialized(DType::Float32, tensor.shape());
  std::transform(
      tensor.as<float>().begin(), tensor.as<float>().end(), result.mutableAs<float>().begin(),
      [&](float x) { return quantize::dequantizeValue(quantize::quantizeValue(x, *codes), *codes); });
  return result;
}

/// The initial state of a network, as inputs of `graph`.
ir::StateHolder initialState(const ir::Graph& graph, const ir::State& state) {
  std::vector<Tensor> initial;
  for (size_t i = 0; i < state.size(); ++i) {
    const ir::Value& input = *graph.inputs()[ir::callerInputs(graph, state) + i];
    initial.push_back(convert(asInput(state[i].initial, input), input.dtype()));
  }
  return ir::StateHolder(std::move(initial));
}

/// Element-wise distance between integers.
struct Distance {
  int64_t quantum = 1;
  int64_t beyondOne = 0, worst = 0;
  void add(int64_t a, int64_t b) {
    int64_t distance = std::abs(a - b);
    if (quantum > 1) distance = (distance + quantum / 2) / quantum;
    beyondOne += distance > 1;
    worst = std::max(worst, distance);
  }
};

Shape withoutOnes(const Shape& shape) {
  Shape result;
  std::copy_if(shape.begin(), shape.end(), std::back_inserter(result),
               [](int64_t size) { return size != 1; });
  return result;
}

/// The distance between `codes`, with the axes of the network, and `values`, whose axes may be permuted: the
/// minimum over the permutations that the shapes allow. nullopt if they allow none.
std::optional<Distance> distanceBetween(const Tensor& codes, const Tensor& values) {
  const Shape from = withoutOnes(codes.shape()), to = withoutOnes(values.shape());
  constexpr size_t kMaxAxes = 5;
  if (from.size() != to.size() || from.size() > kMaxAxes) return std::nullopt;
  std::vector<size_t> order(from.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::vector<int64_t> strides(from.size(), 1);
  for (size_t d = from.size(); d-- > 1;) strides[d - 1] = strides[d] * from[d];
  std::optional<Distance> least;
  const std::vector<int64_t> a = codes.integers(), b = values.integers();
  if (from == to && a == b) return Distance{quantumOf(codes.dtype())};
  do {
    if (!std::equal(order.begin(), order.end(), to.begin(),
                    [&](size_t d, int64_t size) { return from[d] == size; }))
      continue;
    Distance distance{quantumOf(codes.dtype())};
    // Along the last axis of `values`, `codes` are at a fixed distance.
    const int64_t row = order.empty() ? 1 : to.back(), step = order.empty() ? 1 : strides[order.back()];
    std::vector<int64_t> index(order.size(), 0);
    const int64_t* code = a.data();
    for (auto value = b.begin(); value != b.end();) {
      for (int64_t i = 0; i < row; ++i) distance.add(code[i * step], *value++);
      for (size_t k = order.size(); k-- > 1;) {
        code += strides[order[k - 1]];
        if (++index[k - 1] < to[k - 1]) break;
        code -= strides[order[k - 1]] * to[k - 1];
        index[k - 1] = 0;
      }
    }
    if (!least || distance.beyondOne < least->beyondOne) least = distance;
  } while (least.value_or(Distance{1, 1}).beyondOne > 0 && std::next_permutation(order.begin(), order.end()));
  return least;
}

/// TOSA's tensors have no sign: uint8 values of the program are int8 in its graphs.
int64_t asCodeOf(DType dtype, int64_t code) {
  return dtype == DType::Int8 ? static_cast<int8_t>(code) : code;
}

int64_t countDifferences(const Tensor& expected, const Tensor& actual) {
  const std::vector<int64_t> want = expected.integers(), got = actual.integers();
  if (want == got) return 0;
  int64_t count = 0;
  for (size_t i = 0; i < want.size(); ++i) count += want[i] != asCodeOf(expected.dtype(), got[i]);
  return count;
}

/// Contents of state variables, by name, in each execution of a network.
struct Contents {
  std::map<std::string, Tensor> real, simulated;
};

/// The state updated with `contents`.
ir::StateHolder continued(const ir::StateHolder& holder, const ir::State& state,
                          const std::map<std::string, Tensor>& contents) {
  std::vector<Tensor> now = holder.now();
  for (size_t i = 0; i < now.size(); ++i) {
    const auto found = contents.find(state[i].name);
    if (found != contents.end() && found->second.shape() == now[i].shape() &&
        found->second.dtype() == now[i].dtype())
      now[i] = found->second;
  }
  return ir::StateHolder(std::move(now));
}

/// Which outputs are computed from integers and bool alone, so that neither rounding nor quantization can
/// change them.
std::vector<bool> outputsOfIntegers(const ir::Graph& graph, const ir::State& state) {
  std::unordered_set<const ir::Value*> exact;
  const auto& inputs = graph.inputs();
  for (size_t i = 0; i < ir::callerInputs(graph, state); ++i) {
    if (!isFloat(inputs[i]->dtype())) exact.insert(inputs[i]);
  }
  const auto isExact = [&](const ir::Value* value) {
    return !value || exact.count(value) != 0 || (value->isConstant() && !isFloat(value->dtype()));
  };
  for (const ir::Node* node : graph.nodes()) {
    bool integers = std::all_of(node->operands().begin(), node->operands().end(), isExact);
    const auto visit = [&](const ir::Node& inner) {
      for (const ir::Value* result : inner.results()) integers = integers && !isFloat(result->dtype());
    };
    visit(*node);
    for (const auto& region : node->regions()) aten::forEachNode(*region, visit);
    if (integers) exact.insert(node->results().begin(), node->results().end());
  }
  std::vector<bool> exactOutputs;
  for (const ir::Value* output : graph.outputs()) exactOutputs.push_back(isExact(output));
  return exactOutputs;
}

/// The work of one run of the NPU parts: a program may be many times as large as the network that it was
/// compiled from.
Result<double> npuWorkOf(const Build& build) {
  double work = 0;
  for (const compiler::CompiledProgram& part : build.compiled) {
    CARINA_TRY(const std::vector<npu::PlacedOperation> operations,
               npu::decodeStream(part.commands, *part.machine.target));
    for (const npu::PlacedOperation& placed : operations) {
      if (const auto* kernel = std::get_if<npu::KernelOperation>(&placed.operation))
        work += static_cast<double>(npu::model::workOf(*kernel));
      if (const auto* dma = std::get_if<npu::DmaOperation>(&placed.operation))
        work += static_cast<double>(npu::model::workOf(*dma));
    }
  }
  return work;
}

class Verifier {
 public:
  Verifier(const Build& build, Simulation simulation)
      : build_(build), kind_(simulation), budget_(budgetOf(build.options)), ethosN_(build, budget_) {}

  /// For the build's own program.
  Status prepare() {
    for (const auto& delegate : build_.partitioned.delegates)
      CARINA_RETURN_IF_ERROR(tosa::checkBudget(delegate.tosa, budget_));
    // Kernel results are kept in addition to everything that is compared with them.
    constexpr int kBeside = 4;
    CARINA_RETURN_IF_ERROR(checkValues(build_.computed.graph, budget_, kBeside));
    CARINA_TRY(const std::string program, pte::writeProgram(build_.program));
    CARINA_TRY(auto runner, device::Runner::open(asBytes(program), runOptions()));
    return prepare(std::move(runner));
  }

  /// For a method of a program with several. `beside`: another one of them, which shares its state; may be
  /// null.
  Status prepare(ByteSpan program, const std::string& method, const Verifier* beside) {
    device::RunOptions options = runOptions();
    options.method = method;
    CARINA_TRY(auto runner,
               beside ? beside->runner_->openSharingNpu(method) : device::Runner::open(program, options));
    return prepare(std::move(runner));
  }

  /// State is carried from method to method.
  void takeState(const Contents& contents) {
    floatState_ = continued(floatState_, build_.state, contents.real);
    simulationState_ = continued(simulationState_, build_.state, contents.simulated);
  }
  void leaveState(Contents& contents) const {
    for (size_t i = 0; i < floatState_.now().size(); ++i)
      contents.real.insert_or_assign(build_.state[i].name, floatState_.now()[i]);
    for (size_t i = 0; i < simulationState_.now().size(); ++i)
      contents.simulated.insert_or_assign(build_.state[i].name, simulationState_.now()[i]);
  }

  Status add(const quantize::Sample& sample) {
    // Work that would exceed the budget is not started.
    if (sampleWork_ > static_cast<double>(budget_.left()))
      CARINA_RETURN_IF_ERROR(budget_.require(sampleWork_, "the comparison of a sample"));
    CARINA_RETURN_IF_ERROR(budget_.require(npuWork_, "the NPU parts on the model"));
    Values values;
    std::vector<Tensor> reference, simulated;
    if (float_) {
      CARINA_RETURN_IF_ERROR(checkValues(*build_.source, budget_, kRuns));
      CARINA_RETURN_IF_ERROR(checkWork(*build_.source, kRuns, budget_));
      const quantize::Sample inputs = floatState_.inputs(sample);
      CARINA_TRY(reference, float_->run(inputs, [&](const ir::Value& value, const Tensor& tensor) {
        if (!value.name.empty() && isFloat(value.dtype()) && values[value.name].size() < kMostCompared)
          values[value.name].push_back(tensor);
        // In a prequantized network, values are defined by their codes.
        const ir::Value* source = quantizedSource(value);
        if (!source || source->name.empty()) return;
        std::vector<Tensor>& turns = values[source->name];
        if (turns.empty()) turns.push_back(tensor);
        if (turns.size() < kMostCompared) turns.back() = tensor;
      }));
    }
    const quantize::Sample integers = programSample(build_.graph(), sample);
    if (float_ && simulates()) CARINA_RETURN_IF_ERROR(addEnds(sample, reference));
    if (float_) reference = floatState_.outputs(std::move(reference));
    codes_.clear();
    turnsSoFar_.clear();
    std::unordered_map<const ir::Value*, size_t> turns;
    if (simulates()) {
      const quantize::Sample inputs = simulationState_.inputs(integers);
      const auto observer = [&](const ir::Value& value, const Tensor& tensor) {
        if (const ir::Value* source = quantizedSource(value))
          compareAccuracy(*source, turns[&value]++, tensor, values);
        const auto quantize = ir::producerAs<aten::QuantizePerTensor>(&value);
        if (quantize && !quantize.input()->name.empty()) keepCodes(value, quantize.input()->name, tensor);
      };
      CARINA_TRY(simulated,
                 integers_ ? integers_->run(inputs, observer) : simulation_->run(inputs, observer));
      simulated = simulationState_.outputs(std::move(simulated));
    }
    CARINA_TRY(const quantize::Sample programState, stateOfProgram());
    CARINA_TRY(device::RunOutcome outcome, runner_->run(integers));
    for (size_t i = 0; i < outcome.outputs.size(); ++i) {
      compareOutput(i, outcome.outputs[i], reference.empty() ? nullptr : &reference[i],
                    simulated.empty() ? nullptr : &simulated[i]);
    }
    result_.cycles = outcome.stats.npuCycles + ethosNCycles_;
    if (result_.samples == 0) result_.findings = findingsOf(outcome.stats);
    for (const device::DelegateRun& run : outcome.stats.delegates) {
      CARINA_TRY(const size_t part, partOf(run.instruction));
      CARINA_RETURN_IF_ERROR(compareDelegate(part, run));
    }
    for (const device::EthosNDelegateRun& run : outcome.stats.ethosN) {
      CARINA_TRY(const size_t part, partOf(run.instruction));
      CARINA_RETURN_IF_ERROR(ethosN_.add(part, run, result_));
    }
    quantize::Sample computed = integers;
    computed.insert(computed.end(), programState.begin(), programState.end());
    CARINA_RETURN_IF_ERROR(cpu_->add(computed, outcome));
    ++result_.samples;
    return {};
  }

  Verification take() {
    result_.cpu = cpu_->results();
    return std::move(result_);
  }

 private:
  device::RunOptions runOptions() const {
    device::RunOptions options;
    options.configFile = build_.options.configFile;
    options.trusted = build_.options.trusted;
    options.model.check = true;
    options.keepDelegateIo = true;
    options.keepKernelResults = true;
    return options;
  }

  Status prepare(device::Runner runner) {
    runner_.emplace(std::move(runner));
    CARINA_TRY(npuWork_, npuWorkOf(build_));
    sampleWork_ = npuWork_ + (build_.source ? kRuns * aten::workOf(*build_.source) : 0);
    for (const auto& delegate : build_.partitioned.delegates) sampleWork_ += tosa::workOf(delegate.tosa);
    if (build_.source) {
      CARINA_TRY(auto executor, aten::Executor::create(*build_.source, aten::Folding::All, &budget_));
      float_.emplace(std::move(executor));
      floatState_ = initialState(*build_.source, build_.state);
      isExact_ = outputsOfIntegers(*build_.source, build_.state);
    }
    if (build_.simulation) {
      if (kind_ == Simulation::Integers) {
        CARINA_TRY(auto executor, partition::IntegerExecutor::create(*build_.simulation));
        integers_.emplace(std::move(executor));
        result_.inIntegers = integers_->inIntegers();
        result_.quantized = integers_->quantized();
      } else {
        CARINA_TRY(auto executor, aten::Executor::create(*build_.simulation, aten::Folding::All, &budget_));
        simulation_.emplace(std::move(executor));
      }
      simulationState_ = initialState(*build_.simulation, build_.state);
    }
    CARINA_TRY(auto cpu, CpuCheck::create(build_.computed));
    cpu_.emplace(std::move(cpu));
    result_.wholly = build_.partitioned.wholly;
    result_.delegates = build_.compiled.size() + build_.ethosNParts.size();
    if (build_.ethosN) {
      CARINA_TRY(const EthosNProfile profile, profileEthosN(build_));
      ethosNCycles_ = static_cast<int64_t>(profile.cycles());
    }
    for (size_t i = 0; i < ir::callerOutputs(build_.graph(), build_.state); ++i) {
      const ir::Value* output = build_.graph().outputs()[i];
      const ir::Value* source = quantizedSource(*output);
      result_.outputs.emplace_back().name = !output->name.empty() ? output->name
                                            : source              ? source->name
                                                     : fmt::format("out{}", result_.outputs.size());
    }
    return {};
  }

  /// The current contents of the program's state.
  Result<quantize::Sample> stateOfProgram() {
    const ir::Graph& graph = build_.computed.graph;
    quantize::Sample state;
    for (size_t i = ir::callerInputs(graph, build_.state); i < graph.inputs().size(); ++i) {
      CARINA_TRY(Tensor tensor, runner_->contents(build_.computed.storage.at(graph.inputs()[i])));
      state.push_back(std::move(tensor));
    }
    return state;
  }

  /// The float network with rounded inputs and outputs: an upper limit for programs with these codes.
  Status addEnds(const quantize::Sample& sample, const std::vector<Tensor>& reference) {
    const ir::Graph& graph = *build_.simulation;
    quantize::Sample inputs;
    for (size_t i = 0; i < sample.size(); ++i)
      inputs.push_back(rounded(sample[i], inputCodes(*graph.inputs()[i])));
    CARINA_TRY(const std::vector<Tensor> outputs, float_->run(floatState_.inputs(inputs)));
    for (size_t i = 0; i < result_.outputs.size(); ++i) {
      if (isFloat(outputs[i].dtype()))
        result_.outputs[i].ends.add(reference[i], rounded(outputs[i], outputCodes(*graph.outputs()[i])));
    }
    return {};
  }

  /// Records the result of a quantize node of the simulation in one more iteration.
  void keepCodes(const ir::Value& codes, const std::string& name, const Tensor& tensor) {
    std::vector<Codes>& all = codes_[name];
    auto at = std::find_if(all.begin(), all.end(), [&](const Codes& one) { return one.codes == &codes; });
    if (at == all.end()) at = all.insert(all.end(), {&codes, {}});
    if (at->turns.size() < kMostCompared) at->turns.push_back(tensor);
  }

  void compareAccuracy(const ir::Value& source, size_t turn, const Tensor& simulated, const Values& values) {
    const auto it = values.find(source.name);
    if (it == values.end() || turn >= it->second.size() || it->second[turn].shape() != simulated.shape())
      return;
    auto [index, isNew] = accuracyIndex_.try_emplace(source.name, result_.accuracy.size());
    if (isNew) {
      result_.accuracy.push_back(
          {source.name, source.producer() ? source.producer()->where() : "program input", {}});
    }
    result_.accuracy[index->second].sqnr.add(it->second[turn], simulated);
  }

  void compareOutput(size_t i, const Tensor& program, const Tensor* reference, const Tensor* simulated) {
    OutputResult& output = result_.outputs[i];
    output.elements += program.numElements();
    const double quantum = quantumOf(*build_.graph().outputs()[i]);
    if (simulated && quantum > 0) {
      for (int64_t k = 0; k < program.numElements(); ++k) {
        // Whole quanta, up to float rounding of scale * code on both sides.
        const double lsb = std::nearbyint(std::abs(program.realAt(k) - simulated->realAt(k)) / quantum);
        output.worstLsb = std::max(output.worstLsb, lsb);
        output.beyondOneLsb += lsb > 1;
      }
    }
    if (reference && isExact_[i]) compareIntegers(output, program, *reference);
    if (!reference || !isFloat(program.dtype())) return;
    output.program.add(*reference, program);
    if (simulated) output.simulated.add(*reference, *simulated);
  }

  static void compareIntegers(OutputResult& output, const Tensor& program, const Tensor& reference) {
    const std::vector<int64_t> want = reference.integers(), got = program.integers();
    for (size_t k = 0; k < want.size(); ++k) {
      if (want[k] == got[k]) continue;
      if (output.wrongIntegers++ > 0) continue;
      output.expected = want[k];
      output.actual = got[k];
    }
  }

  /// The NPU part that a delegate call executed: branches skip parts, loops repeat them.
  Result<size_t> partOf(uint32_t instruction) const {
    const auto& instructions = build_.program.methods.front().chains.front().instructions;
    const auto* call = instruction < instructions.size()
                           ? std::get_if<pte::DelegateCall>(&instructions[instruction])
                           : nullptr;
    if (!call || static_cast<size_t>(call->delegate) >= result_.delegates)
      return fail(Code::UnsupportedProgram, "the program ran an NPU part that it does not have");
    return static_cast<size_t>(call->delegate);
  }

  /// Runs the TOSA interpreter on the delegate's actual inputs, and compares the NPU model value by value.
  Status compareDelegate(size_t index, const device::DelegateRun& run) {
    const ir::Graph& tosa = build_.partitioned.delegates[index].tosa;
    PartValues expected(tosa);
    const auto keep = [&](const ir::Value& value, const Tensor& tensor) { expected.keep(value, tensor); };
    CARINA_RETURN_IF_ERROR(checkValues(tosa, budget_));
    CARINA_TRY(const std::vector<Tensor> outputs, tosa::interpret(tosa, run.inputs, keep, &budget_));
    for (const PartValues::Turns& turns : expected.all()) {
      size_t& before = turnsSoFar_[turns.value];
      for (size_t i = 0; i < turns.first.size(); ++i)
        compareDrift(index, before + i, *turns.value, turns.first[i]);
      before += turns.count;
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      const int64_t differences = countDifferences(outputs[i], run.outputs[i]);
      if (differences > 0) CARINA_RETURN_IF_ERROR(checkInt32Products(tosa, run.inputs, &budget_));
      result_.delegateMismatches += differences;
      const ir::Value* result = build_.partitioned.delegates[index].call->result(i);
      for (size_t k = 0; k < result_.outputs.size(); ++k) {
        const ir::Value* output = build_.graph().outputs()[k];
        auto dequantize = ir::producerAs<aten::DequantizePerTensor>(output);
        if (output == result || (dequantize && dequantize.input() == result)) {
          result_.outputs[k].npuMismatches += differences;
        }
      }
    }
    return compareLayers(index, run.inputs, expected);
  }

  /// Compares the NPU model value by value, in each iteration of a loop.
  Status compareLayers(size_t index, std::span<const Tensor> inputs, const PartValues& expected) {
    const compiler::CompiledProgram& part = build_.compiled[index];
    std::unordered_map<const compiler::ValuePlacement*, size_t> npuIterations;
    const auto listener = [&](const compiler::ValuePlacement& placement, const ElementReader& elements) {
      const PartValues::Turns* turns = expected.find(placement);
      if (!turns) return;
      const size_t turn = npuIterations[&placement]++;
      if (turn < turns->first.size()) {
        const Tensor& whole = turns->first[turn];
        compareLayer(index, *turns, whole, elements(), placement.firstElement);
      }
    };
    CARINA_RETURN_IF_ERROR(toStatus(probe(part, inputs, listener)));
    // Iterations that only one of them computed are counted, but not compared.
    for (const compiler::ValuePlacement& placement : part.values) {
      const PartValues::Turns* turns = expected.find(placement);
      const auto found = turns ? layerIndex_.find(layerKey(index, *turns)) : layerIndex_.end();
      if (found == layerIndex_.end()) continue;
      result_.layers[found->second].turns += turns->count;
      result_.layers[found->second].npuIterations += npuIterations[&placement];
    }
    return {};
  }

  static std::string layerKey(size_t delegate, const PartValues::Turns& turns) {
    return fmt::format("{}:{}:{}", delegate, turns.graph, turns.value->name);
  }

  /// Compares a value of the program with the codes of the simulation. `turn`: the call of the delegate in
  /// this sample, or the iteration of a region.
  void compareDrift(size_t delegate, size_t turn, const ir::Value& value, const Tensor& tensor) {
    const auto found = codes_.find(std::string_view(value.name).substr(0, value.name.find(':')));
    if (found == codes_.end()) return;
    std::optional<Distance> least;
    for (const Codes& codes : found->second) {
      if (turn >= codes.turns.size()) continue;
      const Tensor& simulated = codes.turns[turn];
      if (simulated.dtype() != tensor.dtype() || simulated.numElements() != tensor.numElements()) continue;
      const auto distance = distanceBetween(simulated, tensor);
      if (distance && (!least || distance->beyondOne < least->beyondOne)) least = distance;
    }
    if (!least) return;
    auto [index, isNew] =
        driftIndex_.try_emplace(fmt::format("{}:{}", delegate, value.name), result_.drift.size());
    if (isNew)
      result_.drift.push_back({value.name, value.producer() ? value.producer()->where() : "", 0, 0, 0});
    DriftResult& drift = result_.drift[index->second];
    drift.elements += tensor.numElements();
    drift.beyondOneLsb += least->beyondOne;
    drift.worstLsb = std::max(drift.worstLsb, least->worst);
  }

  static Status toStatus(Result<ProbeResult> result) {
    if (!result) return std::move(result).error();
    return {};
  }

  /// `first`: element of `expected` from which on `actual` holds some of its rows; all of them otherwise.
  void compareLayer(size_t delegate, const PartValues::Turns& turns, const Tensor& expected,
                    std::span<const int64_t> actual, std::optional<int64_t> first) {
    const auto count = static_cast<int64_t>(actual.size());
    if (first ? *first + count > expected.numElements() : count != expected.numElements()) return;
    const ir::Value& value = *turns.value;
    auto [index, isNew] = layerIndex_.try_emplace(layerKey(delegate, turns), result_.layers.size());
    if (isNew) {
      LayerResult layer;
      layer.value = value.name;
      layer.op = value.producer() ? value.producer()->opName() : "input";
      layer.where = value.producer() ? value.producer()->where() : "";
      result_.layers.push_back(std::move(layer));
    }
    LayerResult& layer = result_.layers[index->second];
    layer.elements += count;
    const std::vector<int64_t> want = expected.integers(first.value_or(0), count);
    if (std::equal(want.begin(), want.end(), actual.begin())) return;
    for (size_t i = 0; i < want.size(); ++i) {
      const int64_t got = asCodeOf(expected.dtype(), actual[i]);
      if (want[i] == got) continue;
      if (layer.mismatches++ == 0) {
        layer.firstMismatch = first.value_or(0) + static_cast<int64_t>(i);
        layer.expected = want[i];
        layer.actual = got;
      }
    }
  }

  bool simulates() const { return simulation_ || integers_; }

  const Build& build_;
  const Simulation kind_;
  WorkBudget budget_;  // for all samples
  std::optional<aten::Executor> float_, simulation_;
  std::optional<partition::IntegerExecutor> integers_;  // instead of `simulation_`
  ir::StateHolder floatState_, simulationState_;        // independent of each other
  std::optional<device::Runner> runner_;
  std::optional<CpuCheck> cpu_;
  EthosNVerifier ethosN_;
  std::vector<bool> isExact_;            // by output: computed from integers alone
  double npuWork_ = 0, sampleWork_ = 0;  // per sample: NPU parts only, everything
  int64_t ethosNCycles_ = 0;
  Verification result_;
  /// One quantize node of the simulation: its results, per iteration of the enclosing loop.
  struct Codes {
    const ir::Value* codes;
    std::vector<Tensor> turns;
  };
  std::map<std::string, std::vector<Codes>, std::less<>> codes_;  // by the name of its operand; one sample
  std::unordered_map<const ir::Value*, size_t> turnsSoFar_;       // by value of TOSA graphs; one sample
  std::map<std::string, size_t, std::less<>> accuracyIndex_, layerIndex_, driftIndex_;
};

}  // namespace

bool Verification::ok() const {
  return delegateMismatches == 0 && findings.empty() &&
         std::all_of(outputs.begin(), outputs.end(),
                     [](const OutputResult& output) { return output.wrongIntegers == 0; }) &&
         std::all_of(cpu.begin(), cpu.end(), [](const CpuResult& node) { return node.mismatches == 0; }) &&
         std::all_of(layers.begin(), layers.end(), [](const LayerResult& layer) { return layer.equal(); });
}

std::optional<double> Verification::worstDecibels() const {
  std::optional<double> worst;
  for (const OutputResult& output : outputs) {
    const double decibels = output.program.decibels();
    if (!std::isnan(decibels)) worst = std::min(worst.value_or(decibels), decibels);
  }
  return worst;
}

Result<Verification> verify(const Build& build, std::span<const quantize::Sample> samples,
                            const quantize::Progress& progress, Simulation simulation) {
  Verifier verifier(build, simulation);
  CARINA_RETURN_IF_ERROR(verifier.prepare());
  for (size_t i = 0; i < samples.size(); ++i) {
    CARINA_RETURN_IF_ERROR(verifier.add(samples[i]));
    if (progress) progress(i + 1, samples.size());
  }
  return verifier.take();
}

Result<std::vector<Verification>> verifyMethods(const MethodsBuild& build,
                                                std::span<const std::vector<quantize::Sample>> samples,
                                                const quantize::Progress& progress, Simulation simulation) {
  CARINA_TRY(const std::string program, pte::writeProgram(build.program));
  std::vector<std::unique_ptr<Verifier>> verifiers;
  size_t total = 0, done = 0;
  for (size_t m = 0; m < build.methods.size(); ++m) {
    auto verifier = std::make_unique<Verifier>(build.methods[m], simulation);
    const Verifier* beside = verifiers.empty() ? nullptr : verifiers.front().get();
    CARINA_RETURN_IF_ERROR(verifier->prepare(asBytes(program), build.names[m], beside));
    verifiers.push_back(std::move(verifier));
    total += samples[m].size();
  }
  std::vector<Verification> results;
  Contents contents;
  for (size_t m = 0; m < verifiers.size(); ++m) {
    verifiers[m]->takeState(contents);
    for (const quantize::Sample& sample : samples[m]) {
      CARINA_RETURN_IF_ERROR(verifiers[m]->add(sample));
      if (progress) progress(++done, total);
    }
    verifiers[m]->leaveState(contents);
    results.push_back(verifiers[m]->take());
  }
  return results;
}

Result<std::vector<quantize::Sample>> verificationSamples(const Build& build, const NamedTensors& named) {
  CARINA_TRY(const NamedTensors arrays, build.ends.asProgram(named));
  const ir::Graph& graph = build.source ? *build.source : build.graph();
  const size_t inputs = ir::callerInputs(graph, build.state);
  const bool given = std::any_of(arrays.begin(), arrays.end(), [](const auto& entry) {
    return entry.first.starts_with("in") || entry.first.starts_with("calib") || entry.first.empty();
  });
  if (given && findTensor(arrays, "calib0")) return quantize::samplesFromArrays(graph, arrays, inputs);
  if (given) {
    std::vector<Port> ports = inputPorts(graph);
    ports.resize(inputs);
    CARINA_TRY(Batch batch, makeBatch(arrays, ports));
    return std::move(batch.samples);
  }
  if (!arrays.empty()) {
    return fail(Code::InputMismatch, "holds '{}', but no array for a program input", arrays.front().first)
        .withRemedy(
            "name the arrays in0, in1, ... or calib0, calib1, ... in the order of the program's inputs");
  }
  quantize::Sample sample;
  std::mt19937_64 random(1);
  for (size_t k = 0; k < inputs; ++k) {
    const ir::Value* input = graph.inputs()[k];
    if (isFloat(input->dtype())) {
      return fail(Code::InputMismatch, "program input '{}' is float, and its range of values is unknown",
                  input->name)
          .withRemedy("give samples with --input or --calibrate");
    }
    std::uniform_int_distribution<int64_t> values(integerMin(input->dtype()), integerMax(input->dtype()));
    Tensor tensor = Tensor::uninitialized(input->dtype(), input->shape());
    for (int64_t i = 0; i < tensor.numElements(); ++i) tensor.setIntegerAt(i, values(random));
    sample.push_back(std::move(tensor));
  }
  return std::vector<quantize::Sample>{std::move(sample)};
}

}  // namespace carina::pipeline
