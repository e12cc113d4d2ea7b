// SPDX-License-Identifier: Apache-2.0
#include "pipeline/against.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <set>

#include "base/file.hpp"
#include "device/run.hpp"
#include "pipeline/batch.hpp"
#include "pipeline/command_streams.hpp"
#include "pipeline/pipeline.hpp"
#include "pipeline/stream_trace.hpp"
#include "pipeline/tflite_against.hpp"
#include "pipeline/value_search.hpp"
#include "pte/program.hpp"
#include "tflite/model.hpp"
#include "tosa/interpreter.hpp"
#include "tosa/ops.hpp"
#include "tosa_io/tosa_reader.hpp"

namespace carina::pipeline {
namespace {

using Samples = std::vector<std::vector<Tensor>>;
constexpr size_t kMaxBehind = 5;

bool fits(const CommandStream& stream, const ir::Graph& graph) {
  const auto same = [](const pte::BlobIo& io, const ir::Value* value) {
    return io.bytes() == value->numBytes();
  };
  return std::equal(stream.inputs.begin(), stream.inputs.end(), graph.inputs().begin(), graph.inputs().end(),
                    same) &&
         std::equal(stream.outputs.begin(), stream.outputs.end(), graph.outputs().begin(),
                    graph.outputs().end(), same);
}

Samples noiseFor(const ir::Graph& graph, size_t count) {
  std::mt19937_64 random(1);
  Samples samples(std::max<size_t>(count, 1));
  for (std::vector<Tensor>& sample : samples) {
    for (const ir::Value* input : graph.inputs()) {
      std::uniform_int_distribution<int64_t> codes(integerMin(input->dtype()), integerMax(input->dtype()));
      Tensor tensor = Tensor::uninitialized(input->dtype(), input->shape());
      for (int64_t i = 0; i < tensor.numElements(); ++i) tensor.setIntegerAt(i, codes(random));
      sample.push_back(std::move(tensor));
    }
  }
  return samples;
}

/// The inputs of every delegate of the program's first method, by delegate index.
Result<std::map<size_t, Samples>> delegateInputs(ByteSpan bytes, const NamedTensors& arrays, bool trusted) {
  device::RunOptions options;
  options.trusted = trusted;
  options.keepDelegateIo = true;
  options.model.timing = false;
  CARINA_TRY(const pte::Program program, pte::readProgram(bytes));
  CARINA_TRY(device::Runner runner, device::Runner::open(bytes, options));
  std::vector<Port> ports;
  for (const auto& input : runner.inputs())
    ports.push_back({fmt::format("input {}", ports.size()), {input.dtype, input.shape}});
  CARINA_TRY(const Batch batch, makeBatch(arrays, ports));
  std::map<size_t, Samples> inputs;
  for (const auto& sample : batch.samples) {
    CARINA_TRY(device::RunOutcome outcome, runner.run(sample));
    for (device::DelegateRun& run : outcome.stats.delegates) {
      const auto& instructions = program.methods.front().chains.front().instructions;
      if (run.instruction >= instructions.size()) continue;
      const auto* call = std::get_if<pte::DelegateCall>(&instructions[run.instruction]);
      if (call != nullptr) inputs[static_cast<size_t>(call->delegate)].push_back(std::move(run.inputs));
    }
  }
  return inputs;
}

/// The values of a graph for one sample, and which of them an NPU's memory shows.
class Comparison {
 public:
  Comparison(const ir::Graph& graph, const StreamTrace& trace) : graph_(graph), trace_(trace) {}

  void add(const ir::Value& value, const Tensor& tensor) {
    if (isFloat(tensor.dtype()) || value.producer() == nullptr || indices_.count(&value) != 0) return;
    indices_.emplace(&value, search_.size());
    search_.add(tensor);
  }

  FirstDifference first() {
    matches_.resize(trace_.steps.size());
    for (size_t i = 0; i < trace_.steps.size(); ++i)
      matches_[i] = search_.found(trace_.steps[i].shape, trace_.steps[i].elements);
    explainValues();
    FirstDifference result;
    const size_t step = firstWrongStep();
    const ir::Value* value = firstWrongValue(step);
    if (value != nullptr) describeValue(*value, result);
    if (step < trace_.steps.size()) describeStep(step, value, result);
    return result;
  }

  size_t values() const { return search_.size(); }
  size_t seen() const {
    size_t count = 0;
    for (size_t i = 0; i < search_.size(); ++i) count += search_.appears(i);
    return count;
  }

 private:
  /// A value is right if it appears, or if something right is computed from it: of operations fused into one
  /// NPU operation only the last value is in memory. Results of operations that only move right elements are
  /// right as well.
  void explainValues() {
    std::vector<const ir::Node*> nodes;
    for (const ir::Node* node : graph_.nodes()) nodes.push_back(node);
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
      for (const ir::Value* result : (*node)->results()) {
        bool right = appears(*result);
        for (const ir::Use& use : result->uses()) {
          for (const ir::Value* next : use.node->results()) right = right || explained_.count(next) != 0;
        }
        if (right) explained_.insert(result);
      }
    }
    std::set<const ir::Value*> varying(graph_.inputs().begin(), graph_.inputs().end());
    for (const ir::Node* node : nodes) {
      bool varies = false, fromRight = true;
      for (const ir::Value* operand : node->operands()) {
        if (varying.count(operand) == 0) continue;
        varies = true;
        fromRight = fromRight && (operand->isInput() || explained_.count(operand) != 0);
      }
      for (const ir::Value* result : node->results()) {
        if (varies) varying.insert(result);
        // Constants are folded.
        if (!varies || (fromRight && movesElements(*node))) explained_.insert(result);
        if (explained_.count(result) == 0) wrong_.push_back(result);
      }
    }
  }

  static bool movesElements(const ir::Node& node) {
    return ir::isa<tosa::Slice>(&node) || ir::isa<tosa::Reshape>(&node) || ir::isa<tosa::Transpose>(&node) ||
           ir::isa<tosa::Identity>(&node) || ir::isa<tosa::Concat>(&node) || ir::isa<tosa::Reverse>(&node);
  }

  bool appears(const ir::Value& value) const {
    const auto at = indices_.find(&value);
    return at == indices_.end() || search_.appears(at->second);
  }

  /// The first operation of the stream whose result does not occur in the graph and feeds none whose result
  /// does.
  size_t firstWrongStep() const {
    const std::vector<TracedStep>& steps = trace_.steps;
    std::vector<bool> right(steps.size(), false);
    for (size_t i = steps.size(); i-- > 0;) {
      right[i] = right[i] || !matches_[i].empty();
      if (!right[i]) continue;
      for (const size_t source : steps[i].readsFrom) right[source] = true;
    }
    size_t at = 0;
    while (at < steps.size() && (right[at] || !steps[at].isKernel)) ++at;
    return at;
  }

  /// The graph values that a step is computed from, as far as memory shows them; inputs are null.
  std::set<const ir::Value*> sourcesOf(size_t step) const {
    std::map<size_t, const ir::Value*> byNumber;
    for (const auto& [value, number] : indices_) byNumber.emplace(number, value);
    std::set<const ir::Value*> sources;
    std::set<size_t> seen;
    std::vector<size_t> open{step};
    while (!open.empty()) {
      const size_t at = open.back();
      open.pop_back();
      if (!seen.insert(at).second) continue;
      if (at != step && !matches_[at].empty()) {
        for (const size_t number : matches_[at]) sources.insert(byNumber.at(number));
        continue;
      }
      if (trace_.steps[at].readsFrom.empty()) sources.insert(nullptr);
      open.insert(open.end(), trace_.steps[at].readsFrom.begin(), trace_.steps[at].readsFrom.end());
    }
    return sources;
  }

  /// Whether `value` is computed from one of `sources` by operations whose values do not appear.
  bool comesFrom(const ir::Value& value, const std::set<const ir::Value*>& sources) const {
    std::set<const ir::Value*> seen;
    std::vector<const ir::Value*> open{&value};
    while (!open.empty()) {
      const ir::Value* at = open.back();
      open.pop_back();
      if (at->isInput() && sources.count(nullptr) != 0) return true;
      if (at != &value && sources.count(at) != 0) return true;
      if (at->producer() == nullptr || !seen.insert(at).second || (at != &value && appears(*at))) continue;
      for (const ir::Value* operand : at->producer()->operands()) open.push_back(operand);
    }
    return false;
  }

  /// The first wrong value that the step could be part of; the first of all if there is no such value.
  const ir::Value* firstWrongValue(size_t step) const {
    if (wrong_.empty()) return nullptr;
    if (step == trace_.steps.size()) return wrong_.front();
    const std::set<const ir::Value*> sources = sourcesOf(step);
    const auto it = std::find_if(wrong_.begin(), wrong_.end(),
                                 [&](const ir::Value* value) { return comesFrom(*value, sources); });
    return it == wrong_.end() ? wrong_.front() : *it;
  }

  static std::string textOf(const ir::Value& value) {
    return fmt::format("{} {}", value.producer()->opName(),
                       value.name.empty() ? "(unnamed)" : "%" + value.name);
  }

  void describeValue(const ir::Value& first, FirstDifference& result) const {
    result.op = first.producer()->opName();
    result.value = first.name;
    const std::set<const ir::Value*> wrong(wrong_.begin(), wrong_.end());
    const ir::Value* value = &first;
    while (result.behind.size() < kMaxBehind && value->hasOneUse()) {
      const ir::Node* next = value->uses().front().node;
      if (next->results().empty() || wrong.count(next->result(0)) == 0) break;
      value = next->result(0);
      result.behind.push_back(textOf(*value));
    }
  }

  void describeStep(size_t at, const ir::Value* value, FirstDifference& result) const {
    const std::vector<TracedStep>& steps = trace_.steps;
    result.offset = steps[at].offset;
    result.npu = steps[at].text;
    // The result of a chain is complete once its last operation has run.
    size_t written = at;
    while (written < steps.size() && steps[written].elements.empty()) ++written;
    if (written == steps.size() || value == nullptr) return;
    result.writtenAt = steps[written].offset;
    // The values that follow from the first wrong one.
    std::set<const ir::Value*> behind{value};
    for (const ir::Value* wrong : wrong_) {
      const auto operands = wrong->producer()->operands();
      if (std::any_of(operands.begin(), operands.end(),
                      [&](const ir::Value* operand) { return behind.count(operand) != 0; }))
        behind.insert(wrong);
    }
    compare(steps[written], behind, result);
    // The end of a chain may be many operations later: a value without one equal element is only a guess.
    if (written != at && result.mismatches == result.elements) result.closest.clear();
  }

  /// The value with as many elements of the same width that is closest on average.
  void compare(const TracedStep& step, const std::set<const ir::Value*>& candidates,
               FirstDifference& result) const {
    const std::vector<int64_t>& actual = step.elements;
    double least = std::numeric_limits<double>::infinity();
    for (const ir::Value* value : wrong_) {
      if (candidates.count(value) == 0 || dtypeSize(value->dtype()) != step.elementBytes) continue;
      const std::vector<int64_t>& expected = search_.elements(indices_.at(value));
      if (expected.size() != actual.size()) continue;
      int64_t different = 0, firstDifferent = 0;
      double distance = 0;
      for (size_t i = actual.size(); i-- > 0;) {
        if (expected[i] == actual[i]) continue;
        ++different;
        firstDifferent = static_cast<int64_t>(i);
        distance += std::abs(static_cast<double>(expected[i]) - static_cast<double>(actual[i]));
      }
      if (distance >= least) continue;
      least = distance;
      result.closest = textOf(*value);
      result.elements = static_cast<int64_t>(actual.size());
      result.mismatches = different;
      result.firstIndex = firstDifferent;
      result.expected = expected[static_cast<size_t>(firstDifferent)];
      result.actual = actual[static_cast<size_t>(firstDifferent)];
    }
  }

  const ir::Graph& graph_;
  const StreamTrace& trace_;
  ValueSearch search_;
  std::map<const ir::Value*, size_t> indices_;
  std::vector<std::vector<size_t>> matches_;  // per step: values that it wrote
  std::set<const ir::Value*> explained_;
  std::vector<const ir::Value*> wrong_;  // in graph order
};

/// `budget`: for the stream, and again for the graph.
Status compareSample(const CommandStream& stream, const ir::Graph& graph, std::span<const Tensor> inputs,
                     WorkBudget& budget, PartAgainst& part) {
  std::vector<ByteSpan> bytes;
  for (const Tensor& input : inputs) bytes.push_back(input.bytes());
  CARINA_TRY(const StreamTrace trace, traceStream(stream, bytes, budget));
  budget.renew();
  Comparison comparison(graph, trace);
  CARINA_TRY(
      const std::vector<Tensor> outputs,
      tosa::interpret(
          graph, inputs, [&](const ir::Value& value, const Tensor& tensor) { comparison.add(value, tensor); },
          &budget));
  int64_t mismatches = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    Tensor actual = Tensor::uninitialized(outputs[i].dtype(), outputs[i].shape());
    std::memcpy(actual.mutableBytes().data(), trace.outputs[i].data(), trace.outputs[i].size());
    part.elements += actual.numElements();
    for (int64_t k = 0; k < actual.numElements(); ++k)
      mismatches += actual.integerAt(k) != outputs[i].integerAt(k);
  }
  part.mismatches += mismatches;
  ++part.samples;
  if (part.first || (mismatches == 0 && part.samples > 1)) return {};
  FirstDifference first = comparison.first();
  part.values = comparison.values();
  part.seen = comparison.seen();
  if (mismatches > 0) part.first = std::move(first);
  return {};
}

class AgainstRunner {
 public:
  AgainstRunner(const AgainstOptions& options, const NamedTensors& arrays)
      : options_(options), arrays_(arrays) {}

  Result<Against> run() {
    CARINA_TRY(file_, MappedFile::open(options_.program));
    CARINA_TRY(streams_, commandStreams(options_.program));
    std::erase_if(streams_, [](const CommandStream& stream) { return stream.outputs.empty(); });
    if (streams_.empty())
      return fail(Code::UnsupportedProgram, "holds no NPU part whose inputs and outputs are known")
          .inFile(options_.program.string())
          .withRemedy("give a program (.pte, .bpte) or a delegate blob");
    taken_.assign(streams_.size(), false);
    Against result;
    for (const std::filesystem::path& graph : options_.graphs) {
      CARINA_TRY(PartAgainst part, compareGraph(graph));
      result.parts.push_back(std::move(part));
    }
    return result;
  }

 private:
  Result<PartAgainst> compareGraph(const std::filesystem::path& file) {
    CARINA_TRY(const ir::Graph graph, tosa_io::readTosa(file));
    size_t at = 0;
    while (at < streams_.size() && (taken_[at] || !fits(streams_[at], graph))) ++at;
    if (at == streams_.size()) {
      return fail(Code::InputMismatch, "no NPU part of {} has inputs and outputs of these sizes",
                  options_.program.string())
          .inFile(file.string())
          .withRemedy("give the graph that the program was compiled from, once per part");
    }
    taken_[at] = true;
    const CommandStream& stream = streams_[at];
    PartAgainst part;
    part.part = stream.name.empty() ? "the blob" : stream.name;
    part.graph = file.filename().string();
    part.findings = checkText(stream);
    CARINA_TRY(const Samples samples, samplesFor(at, graph));
    WorkBudget budget = WorkBudget::ofFiles({options_.program, file}, options_.trusted);
    for (const std::vector<Tensor>& sample : samples) {
      budget.renew();
      if (auto status = compareSample(stream, graph, sample, budget, part); !status.ok())
        return std::move(status).error().inFile(file.string());
    }
    return part;
  }

  Result<Samples> samplesFor(size_t stream, const ir::Graph& graph) {
    if (arrays_.empty()) return noiseFor(graph, options_.samples);
    const std::vector<Port> ports = inputPorts(graph);
    if (options_.graphs.size() == 1) {
      if (auto batch = makeBatch(arrays_, ports)) {
        Samples samples;
        for (auto& sample : batch->samples) samples.emplace_back(sample.begin(), sample.end());
        return samples;
      }
    }
    if (!recorded_) {
      auto inputs = delegateInputs(file_->bytes(), arrays_, options_.trusted);
      if (!inputs) return std::move(inputs).error().inFile(options_.program.string());
      recorded_ = std::move(*inputs);
    }
    // Streams are named after their delegate: "delegate 0 of forward".
    for (auto& [delegate, samples] : *recorded_) {
      if (!streams_[stream].name.starts_with(fmt::format("delegate {} ", delegate))) continue;
      Samples shaped;
      for (const std::vector<Tensor>& sample : samples) {
        std::vector<Tensor>& inputs = shaped.emplace_back();
        for (size_t i = 0; i < sample.size() && i < graph.inputs().size(); ++i) {
          const ir::Value& port = *graph.inputs()[i];
          Tensor tensor = Tensor::uninitialized(port.dtype(), port.shape());
          if (tensor.bytes().size() != sample[i].bytes().size())
            return fail(Code::InputMismatch, "the program passes input {} with another size to its NPU part",
                        i)
                .inFile(options_.program.string());
          std::memcpy(tensor.mutableBytes().data(), sample[i].bytes().data(), tensor.bytes().size());
          inputs.push_back(std::move(tensor));
        }
      }
      return shaped;
    }
    return fail(Code::UnsupportedProgram, "{} is not run", streams_[stream].name)
        .inFile(options_.program.string());
  }

  const AgainstOptions& options_;
  const NamedTensors& arrays_;
  std::shared_ptr<const MappedFile> file_;
  std::vector<CommandStream> streams_;
  std::vector<bool> taken_;
  std::optional<std::map<size_t, Samples>> recorded_;
};

}  // namespace

bool Against::ok() const {
  return std::all_of(parts.begin(), parts.end(),
                     [](const PartAgainst& part) { return part.mismatches == 0; });
}

Result<Against> verifyAgainst(const AgainstOptions& options, const NamedTensors& arrays) {
  CARINA_TRY(const auto file, MappedFile::open(options.program));
  if (tflite::isTflite(file->bytes())) return verifyTfliteFiles(options, arrays);
  return AgainstRunner(options, arrays).run();
}

}  // namespace carina::pipeline
