// SPDX-License-Identifier: Apache-2.0
#include "pipeline/assemble.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "aten/control_flow.hpp"
#include "cpu/emit.hpp"
#include "cpu/kernel_form.hpp"
#include "ethosn/stream/program_blob.hpp"
#include "ir/verifier.hpp"
#include "pipeline/integer_io.hpp"
#include "pte/method_builder.hpp"

namespace carina::pipeline {
namespace {

using cpu::sizesOf;

/// Turns the nodes of a partitioned graph into calls, in order.
class Assembler {
 public:
  Assembler(const MethodParts& parts, const std::string& method, pte::Program& program, pte::StatePool& pool)
      : partitioned_(parts.partitioned),
        delegates_(parts.delegates),
        state_(parts.state),
        pool_(pool),
        builder_(program, method) {}

  Result<ProgramGraph> run() {
    ir::Graph graph = partitioned_.graph.clone();
    CARINA_RETURN_IF_ERROR(cpu::toKernelForm(graph));
    ir::checkVerified(graph, "kernel form");
    CARINA_RETURN_IF_ERROR(placeInputs(graph));
    findWrittenInPlace(graph);
    for (ir::Node* node : graph.nodes()) CARINA_RETURN_IF_ERROR(place(node));
    if (!errors_.empty()) return Error(std::move(errors_));
    placeOutputs(graph);
    CARINA_RETURN_IF_ERROR(builder_.finish());
    computed_.graph = std::move(graph);
    return std::move(computed_);
  }

 private:
  Status placeInputs(const ir::Graph& graph) {
    const size_t callers = ir::callerInputs(graph, state_);
    for (size_t i = 0; i < graph.inputs().size(); ++i) {
      const ir::Value* input = graph.inputs()[i];
      const pte::ScalarType type = pte::fromDType(input->dtype());
      if (i < callers) {
        define(input, builder_.input(type, sizesOf(*input)));
        continue;
      }
      const ir::StateVariable& variable = state_[i - callers];
      const Tensor initial = convert(asInput(variable.initial, *input), input->dtype());
      CARINA_TRY(pte::Tensor tensor, pool_.variable(variable.name, type, sizesOf(*input), initial.bytes()));
      define(input, builder_.state(std::move(tensor)));
      stateValues_.push_back(values_[input]);
    }
    return {};
  }

  /// New contents that a delegate may write directly over the old ones: only delegates up to this one read
  /// the old, and nothing reads the new.
  void findWrittenInPlace(const ir::Graph& graph) {
    std::unordered_map<const ir::Node*, size_t> order;
    for (const ir::Node* node : graph.nodes()) order.emplace(node, order.size());
    const auto& outputs = graph.outputs();
    const size_t inputs = ir::callerInputs(graph, state_), callers = ir::callerOutputs(graph, state_);
    for (size_t i = 0; i < state_.size(); ++i) {
      const ir::Value* before = graph.inputs()[inputs + i];
      const ir::Value* after = outputs[callers + i];
      const ir::Node* maker = after->producer();
      const bool made = maker && maker->is(partition::delegateCallDef()) && after->uses().empty() &&
                        std::count(outputs.begin(), outputs.end(), after) == 1;
      if (!made || before->isGraphOutput()) continue;
      const auto& uses = before->uses();
      const bool free = std::all_of(uses.begin(), uses.end(), [&](const ir::Use& use) {
        return use.node->is(partition::delegateCallDef()) && order.at(use.node) <= order.at(maker);
      });
      if (free) inPlace_.emplace(after, values_.at(before));
    }
  }

  bool isState(pte::ValueId value) const {
    return std::find(stateValues_.begin(), stateValues_.end(), value) != stateValues_.end();
  }

  pte::ValueId copyOf(pte::ValueId value) { return builder_.convert(value, builder_.tensor(value).type); }

  /// Results, then the new state. Outputs that show old state are copied before it is overwritten.
  void placeOutputs(const ir::Graph& graph) {
    const size_t callers = ir::callerOutputs(graph, state_);
    for (size_t i = 0; i < callers; ++i) {
      const pte::ValueId value = valueOf(graph.outputs()[i]);
      builder_.output(isState(builder_.storage(value)) ? copyOf(value) : value);
    }
    std::vector<std::pair<pte::ValueId, pte::ValueId>> writes;  // to, from
    for (size_t i = 0; i < state_.size(); ++i) {
      const pte::ValueId from = valueOf(graph.outputs()[callers + i]), storage = builder_.storage(from);
      if (storage == stateValues_[i]) continue;
      writes.emplace_back(stateValues_[i], isState(storage) ? copyOf(from) : from);
    }
    for (const auto& [to, from] : writes) builder_.copyInto(to, from);
  }

  pte::ValueId valueOf(const ir::Value* value) {
    auto [it, isNew] = values_.try_emplace(value, -1);
    if (isNew) {
      CARINA_CHECK(value->isConstant(), "value is used before the node that makes it");
      it->second =
          builder_.constant(pte::fromDType(value->dtype()), sizesOf(*value), value->constant().bytes());
    }
    return it->second;
  }

  void define(const ir::Value* value, pte::ValueId id) {
    values_[value] = id;
    computed_.storage[value] = builder_.storage(id);
  }

  pte::ValueId memoryFor(const ir::Value& value) {
    return builder_.activation(pte::fromDType(value.dtype()), sizesOf(value));
  }

  Status place(const ir::Node* node) {
    if (node->is(aten::condDef())) return placeCond(*node);
    if (node->is(aten::whileLoopDef())) return placeLoop(*node);
    if (node->is(aten::scanDef())) return placeScan(*node);
    const int32_t first = builder_.position();
    CARINA_RETURN_IF_ERROR(node->is(partition::delegateCallDef()) ? placeDelegate(node) : placeCall(node));
    computed_.instructions[node] = {first, builder_.position()};
    return {};
  }

  Status placeRegion(const ir::Graph& region, std::span<const pte::ValueId> inputs) {
    for (size_t i = 0; i < inputs.size(); ++i) define(region.inputs()[i], inputs[i]);
    for (ir::Node* node : region.nodes()) CARINA_RETURN_IF_ERROR(place(node));
    return {};
  }

  std::vector<pte::ValueId> valuesOf(std::span<ir::Value* const> values) {
    std::vector<pte::ValueId> ids;
    for (const ir::Value* value : values) ids.push_back(valueOf(value));
    return ids;
  }

  /// Both branches leave their results in the same memory: what they compute is placed there directly, their
  /// operands and constants are copied.
  Status placeCond(const ir::Node& node) {
    const std::vector<pte::ValueId> operands = valuesOf(node.operandGroup(1));
    const pte::ValueId predicate = valueOf(node.operand(0));
    std::vector<pte::ValueId> results;
    for (const ir::Value* result : node.results()) {
      results.push_back(memoryFor(*result));
      define(result, results.back());
    }
    const int32_t otherwise = builder_.jumpIfFalse(predicate);
    CARINA_RETURN_IF_ERROR(placeBranch(node.region(0), operands, results));
    const int32_t done = builder_.jumpIfFalse(builder_.boolean(false));
    builder_.land(otherwise);
    CARINA_RETURN_IF_ERROR(placeBranch(node.region(1), operands, results));
    builder_.land(done);
    return {};
  }

  Status placeBranch(const ir::Graph& branch, std::span<const pte::ValueId> operands,
                     std::span<const pte::ValueId> results) {
    const pte::ValueId own = builder_.null();  // values of the branch are numbered after it
    CARINA_RETURN_IF_ERROR(placeRegion(branch, operands));
    const std::vector<pte::ValueId> outputs = valuesOf(branch.outputs());
    for (size_t i = 0; i < outputs.size(); ++i) {
      const pte::ValueId bytes = builder_.storage(outputs[i]);
      // Once it has been placed at one result, its storage is that result.
      if (bytes > own && builder_.ownsMemory(bytes)) {
        builder_.placeAt(bytes, results[i]);
      } else {
        builder_.copyInto(results[i], outputs[i]);
      }
    }
    return {};
  }

  /// Separate memory for each value that a loop carries, initialized with the value.
  std::vector<pte::ValueId> carriedMemory(const ir::Node& node) {
    std::vector<pte::ValueId> values;
    for (const ir::Value* carried : node.operandGroup(0)) {
      const pte::ValueId state = memoryFor(*carried);
      builder_.copyInto(state, valueOf(carried));
      values.push_back(state);
    }
    return values;
  }

  /// Each iteration ends by copying the new values into the loop-carried ones.
  Status placeLoop(const ir::Node& node) {
    std::vector<pte::ValueId> values = carriedMemory(node);
    const size_t count = values.size();
    for (const ir::Value* additional : node.operandGroup(1)) values.push_back(valueOf(additional));
    const int32_t turn = builder_.position();
    CARINA_RETURN_IF_ERROR(placeRegion(node.region(0), values));
    const int32_t done = builder_.jumpIfFalse(valueOf(node.region(0).outputs()[0]));
    CARINA_RETURN_IF_ERROR(placeRegion(node.region(1), values));
    handOver(valuesOf(node.region(1).outputs()), std::span(values).first(count));
    builder_.jumpBack(turn);
    builder_.land(done);
    for (size_t i = 0; i < count; ++i) define(node.result(i), values[i]);
    return {};
  }

  /// One counter selects the slices that an iteration reads and writes, another one counts iterations.
  Status placeScan(const ir::Node& node) {
    const aten::Scan scan(node);
    std::vector<pte::ValueId> values = carriedMemory(node);
    const std::vector<pte::ValueId> wholes = valuesOf(node.operandGroup(1));
    const std::vector<pte::ValueId> additional = valuesOf(node.operandGroup(2));
    std::vector<pte::ValueId> results;
    for (size_t i = scan.carried; i < node.results().size(); ++i)
      results.push_back(memoryFor(*node.result(i)));
    const pte::ValueId turns = counterFrom(0);
    const pte::ValueId at = scan.reverse ? counterFrom(scan.sliceOf(0)) : turns;
    const int32_t turn = builder_.position();
    for (size_t i = 0; i < wholes.size(); ++i) values.push_back(sliceAt(at, wholes[i], scan));
    values.insert(values.end(), additional.begin(), additional.end());
    CARINA_RETURN_IF_ERROR(placeRegion(node.region(0), values));
    std::vector<pte::ValueId> news = valuesOf(node.region(0).outputs());
    for (size_t i = 0; i < results.size(); ++i) putAt(at, results[i], news[scan.carried + i], scan);
    news.resize(scan.carried);
    handOver(std::move(news), std::span(values).first(scan.carried));
    if (scan.reverse) count(at, -1);
    count(turns, 1);
    const pte::ValueId done = builder_.activation(pte::ScalarType::Bool, {});
    const pte::ValueId end = builder_.integer(scan.turns);
    builder_.kernel("aten::eq.Scalar_out", {turns, end, done});
    builder_.jumpBack(turn, done);
    for (size_t i = 0; i < scan.carried; ++i) define(node.result(i), values[i]);
    for (size_t i = 0; i < results.size(); ++i) define(node.result(scan.carried + i), results[i]);
    return {};
  }

  pte::ValueId counterFrom(int64_t first) {
    const pte::ValueId counter = builder_.activation(pte::ScalarType::Int64, {});
    builder_.copyInto(counter,
                      builder_.constant(pte::ScalarType::Int64, {}, std::as_bytes(std::span(&first, 1))));
    return counter;
  }

  void count(pte::ValueId counter, int64_t by) {
    const pte::ValueId step = builder_.integer(by), alpha = builder_.integer(1);
    builder_.kernel("aten::add.Scalar_out", {counter, step, alpha, counter});
  }

  /// A view of a tensor with its slices along a separate dimension.
  pte::ValueId slicesOf(pte::ValueId whole, const aten::Scan& scan) {
    std::vector<int32_t> sizes = builder_.tensor(whole).sizes;
    const auto dim = sizes.begin() + scan.dim;
    *dim = static_cast<int32_t>(scan.chunk);
    sizes.insert(dim, static_cast<int32_t>(scan.turns));
    return builder_.view(whole, std::move(sizes));
  }

  /// The slice that `counter` selects.
  pte::ValueId sliceAt(pte::ValueId counter, pte::ValueId whole, const aten::Scan& scan) {
    const pte::ValueId slices = slicesOf(whole, scan), dim = builder_.integer(scan.dim);
    std::vector<int32_t> one = builder_.tensor(slices).sizes, sizes = builder_.tensor(whole).sizes;
    one[static_cast<size_t>(scan.dim)] = 1;
    sizes[static_cast<size_t>(scan.dim)] = static_cast<int32_t>(scan.chunk);
    const pte::ValueId slice = builder_.activation(builder_.tensor(whole).type, std::move(one));
    builder_.kernel("aten::index_select.out", {slices, dim, counter, slice});
    return builder_.view(slice, std::move(sizes));
  }

  /// Writes the slice that `counter` selects. The kernel works in place, so that other slices are unchanged.
  void putAt(pte::ValueId counter, pte::ValueId whole, pte::ValueId slice, const aten::Scan& scan) {
    const pte::ValueId slices = slicesOf(whole, scan);
    std::vector<pte::ValueId> indices(static_cast<size_t>(scan.dim), -1);
    indices.push_back(counter);
    const pte::ValueId at = builder_.optionalTensors(indices), adds = builder_.boolean(false);
    builder_.kernel("aten::index_put.out", {slices, at, slice, adds, slices});
  }

  /// Copies the new values of a loop into the old ones. A new value that is itself an old one is saved first:
  /// values may be swapped.
  void handOver(std::vector<pte::ValueId> news, std::span<const pte::ValueId> olds) {
    for (size_t i = 0; i < news.size(); ++i) {
      const pte::ValueId bytes = builder_.storage(news[i]);
      const bool moves = bytes != olds[i] && std::find(olds.begin(), olds.end(), bytes) != olds.end();
      if (!moves) continue;
      const pte::Tensor tensor = builder_.tensor(news[i]);
      const pte::ValueId saved = builder_.activation(tensor.type, tensor.sizes);
      builder_.copyInto(saved, news[i]);
      news[i] = saved;
    }
    for (size_t i = 0; i < news.size(); ++i) {
      if (builder_.storage(news[i]) != olds[i]) builder_.copyInto(olds[i], news[i]);
    }
  }

  Status placeCall(const ir::Node* node) {
    auto results = cpu::emitCall(builder_, *node, [this](const ir::Value* value) { return valueOf(value); });
    if (!results) {
      refuse(*node, results.error().diagnostics().front().message);
      return {};
    }
    for (size_t i = 0; i < results->size(); ++i) define(node->result(i), (*results)[i]);
    return {};
  }

  Status placeDelegate(const ir::Node* node) {
    // The graph is a copy with the original's delegate calls in the same order.
    if (nextDelegate_ >= delegates_.size()) {
      return fail(Code::NeedsWholeNpu, "a TOSA graph can only be compiled for an NPU")
          .withRemedy("name an NPU with --target, or run the graph itself: carina run");
    }
    std::vector<pte::ValueId> inputs, outputs;
    for (const ir::Value* operand : node->operands()) inputs.push_back(valueOf(operand));
    for (const ir::Value* result : node->results()) {
      const auto over = inPlace_.find(result);
      define(result, over != inPlace_.end() ? over->second : memoryFor(*result));
      outputs.push_back(values_[result]);
    }
    builder_.delegate(std::move(delegates_[nextDelegate_++]), inputs, outputs);
    return {};
  }

  void refuse(const ir::Node& node, std::string reason) {
    Code code = Code::MissingKernel;
    std::string remedy = "change the network so that this operator is not needed, or is delegated";
    for (const partition::Refusal& refusal : partitioned_.refusals) {
      if (!node.location() || refusal.node != node.location()->name) continue;
      reason += "; it is not on the NPU because: " + refusal.reason;
      if (!refusal.remedy.empty()) remedy = refusal.remedy;
      code = refusal.code;
    }
    errors_.push_back({std::move(reason), std::move(remedy), "", node.where(), code});
    for (const ir::Value* result : node.results()) define(result, memoryFor(*result));
  }

  const partition::Partitioned& partitioned_;
  std::span<pte::Delegate> delegates_;
  const ir::State& state_;
  pte::StatePool& pool_;
  pte::MethodBuilder builder_;
  std::vector<pte::ValueId> stateValues_;
  std::unordered_map<const ir::Value*, pte::ValueId> inPlace_;  // delegate results, and overwritten state
  std::unordered_map<const ir::Value*, pte::ValueId> values_;
  ProgramGraph computed_;
  std::vector<Diagnostic> errors_;
  size_t nextDelegate_ = 0;
};

}  // namespace

pte::Delegate delegateOf(const EthosNPart& part, const ethosn::Target& target) {
  ethosn::ProgramBlob blob;
  blob.target = std::string(target.variant->name);
  blob.sramBytes = static_cast<uint32_t>(target.sramBytes);
  blob.network = part.compiled;
  for (uint32_t i = 0; i < blob.network.inputs.size(); ++i) blob.inputs.push_back(i);
  for (uint32_t i = 0; i < blob.network.outputs.size(); ++i) blob.outputs.push_back(i);
  pte::Delegate delegate;
  delegate.id = std::string(ethosn::kProgramBackend);
  const std::vector<uint8_t> written = ethosn::writeProgramBlob(blob);
  const ByteSpan bytes = std::as_bytes(std::span(written));
  delegate.blob.assign(bytes.begin(), bytes.end());
  delegate.specs = {{"target", blob.target}};
  return delegate;
}

Result<ProgramGraph> assembleMethod(const MethodParts& parts, const std::string& method,
                                    pte::Program& program, pte::StatePool& pool) {
  return Assembler(parts, method, program, pool).run();
}

Status addConstantMethods(const Options& options, pte::Program& program) {
  for (const auto& [name, value] : options.constantMethods) {
    if (name.empty() || program.findMethod(name)) {
      return fail(Code::BadOption, "'{}' is the name of another method", name)
          .at("--constant-method")
          .withRemedy("give each method a different name");
    }
    pte::MethodBuilder builder(program, name);
    builder.output(builder.integer(value));
    CARINA_RETURN_IF_ERROR(builder.finish());
  }
  return {};
}

}  // namespace carina::pipeline
