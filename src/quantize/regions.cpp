// SPDX-License-Identifier: Apache-2.0
#include "quantize/regions.hpp"

#include <algorithm>
#include <unordered_map>

#include "aten/control_flow.hpp"
#include "aten/executor.hpp"
#include "quantize/ranges.hpp"

namespace carina::quantize {
namespace {

/// Evenly spread samples of a region that a loop may run thousands of times.
class Spread {
 public:
  void add(Sample sample) {
    if (count_++ % stride_ != 0) return;
    samples_.push_back(std::move(sample));
    if (samples_.size() < 2 * kMost) return;
    for (size_t i = 0; i < kMost; ++i) samples_[i] = std::move(samples_[2 * i]);
    samples_.resize(kMost);
    stride_ *= 2;
  }
  std::vector<Sample> take() { return std::move(samples_); }

 private:
  static constexpr size_t kMost = 64;
  std::vector<Sample> samples_;
  size_t count_ = 0, stride_ = 1;
};

/// The values that one control-flow node and its regions see while the network runs.
struct SeenRegions {
  Spread operands;                 // as its regions take them
  std::vector<Spread> regions;     // by region
  std::vector<Sample> incomplete;  // by region: inputs of the current visit
  BorderRange border;
};

void widen(Range& range, const Tensor& tensor) {
  if (tensor.dtype() == DType::Float32) range = unite(range, rangeOf(tensor.as<float>()));
}

/// The operands that a region reads: all of a loop's, and those after the predicate of a conditional.
std::vector<const ir::Value*> takenOperands(const ir::Node& node) {
  const auto& all = node.operands();
  return {all.begin() + (node.is(aten::condDef()) ? 1 : 0), all.end()};
}

class Watcher {
 public:
  explicit Watcher(const std::vector<ir::Node*>& nodes) {
    for (const ir::Node* node : nodes) {
      SeenRegions& seen = seen_[node];
      seen.regions.resize(node->regions().size());
      seen.incomplete.resize(node->regions().size());
      seen.border.taken.resize(takenOperands(*node).size());
      seen.border.given.resize(node->results().size());
      for (const ir::Value* operand : takenOperands(*node)) {
        if (!operand->isConstant()) last_.emplace(operand, Tensor());
      }
      for (size_t i = 0; i < node->regions().size(); ++i) {
        for (const ir::Value* input : node->region(i).inputs()) inputOf_.emplace(input, std::pair(node, i));
      }
    }
  }

  void observe(const ir::Value& value, const Tensor& tensor) {
    if (const auto last = last_.find(&value); last != last_.end()) last->second = tensor;
    if (const auto input = inputOf_.find(&value); input != inputOf_.end()) {
      const auto& [node, region] = input->second;
      SeenRegions& seen = seen_.at(node);
      Sample& sample = seen.incomplete[region];
      widen(seen.border.taken[sample.size()], tensor);
      sample.push_back(tensor);
      if (sample.size() == node->region(region).inputs().size())
        seen.regions[region].add(std::exchange(sample, {}));
    }
    const ir::Node* producer = value.producer();
    if (producer && seen_.contains(producer))
      widen(seen_.at(producer).border.given[value.resultIndex()], tensor);
    if (producer && value.resultIndex() == 0 && seen_.contains(producer)) {
      Sample sample;
      for (const ir::Value* operand : takenOperands(*producer))
        sample.push_back(operand->isConstant() ? operand->constant() : last_.at(operand));
      seen_.at(producer).operands.add(std::move(sample));
    }
  }

  SeenRegions& of(const ir::Node* node) { return seen_.at(node); }

 private:
  std::unordered_map<const ir::Node*, SeenRegions> seen_;
  std::unordered_map<const ir::Value*, Tensor> last_;  // the latest contents of operands
  std::unordered_map<const ir::Value*, std::pair<const ir::Node*, size_t>> inputOf_;
};

std::vector<ir::Node*> controlFlowOf(const ir::Graph& graph) {
  std::vector<ir::Node*> nodes;
  for (ir::Node* node : graph.nodes()) {
    // Bodies of loops over slices are quantized with the surrounding network.
    if (aten::isControlFlow(*node) && !node->is(aten::scanDef())) nodes.push_back(node);
  }
  return nodes;
}

/// A rule that matches somewhere need not match everywhere.
bool isIdleRule(const Diagnostic& warning) {
  return warning.message.find(" of the network matches '") != std::string::npos;
}

void join(std::vector<Diagnostic>& all, const std::vector<Diagnostic>& more) {
  const auto contains = [](const std::vector<Diagnostic>& list, const Diagnostic& warning) {
    return std::any_of(list.begin(), list.end(),
                       [&](const Diagnostic& other) { return other.message == warning.message; });
  };
  std::erase_if(all, [&](const Diagnostic& w) { return isIdleRule(w) && !contains(more, w); });
  std::copy_if(more.begin(), more.end(), std::back_inserter(all),
               [&](const Diagnostic& warning) { return !isIdleRule(warning); });
}

class Regions {
 public:
  Regions(Quantized& quantized, const Options& options, Watcher& watcher)
      : quantized_(quantized), options_(options), watcher_(watcher) {
    options_.inputs.reset();
    options_.outputs.reset();
    options_.inputPrecisions.clear();
    options_.outputPrecisions.clear();
    options_.states = 0;
  }

  Status quantizeOne(ir::Node& node, ir::Node& reference, size_t region) {
    SeenRegions& seen = watcher_.of(&reference);
    std::vector<Sample> samples = seen.regions[region].take();
    const bool takesNothing = node.region(region).inputs().empty();
    if (takesNothing) samples.emplace_back();
    const bool reached = !samples.empty();
    if (!reached) {
      samples = operandsOf(seen, node);
      warn(node, region, "no calibration sample reaches it: it is calibrated with the operator's inputs",
           "add samples that take this path");
    }
    auto inner = quantize(node.region(region).clone(), options_, samples);
    if (!inner) {
      if (reached) return std::move(inner).error().at(node.where());
      warn(node, region, fmt::format("it stays in float: {}", inner.error().diagnostics().front().message),
           "add samples that take this path");
      return {};
    }
    join(quantized_.warnings, inner->warnings);
    auto& tensors = quantized_.report.tensors;
    tensors.insert(tensors.end(), inner->report.tensors.begin(), inner->report.tensors.end());
    quantized_.keptFloat.insert(quantized_.keptFloat.end(), inner->keptFloat.begin(), inner->keptFloat.end());
    if (inner->reference) reference.setRegion(region, std::move(*inner->reference));
    node.setRegion(region, std::move(inner->graph));
    return {};
  }

 private:
  void warn(const ir::Node& node, size_t region, std::string message, std::string remedy) {
    quantized_.warnings.push_back({fmt::format("{}: {}", aten::regionRole(node, region), std::move(message)),
                                   std::move(remedy), "", node.where(), Code::BadCalibration});
  }

  /// Taken from `seen` on the first call for a node, and shared by both of its regions.
  std::vector<Sample> operandsOf(SeenRegions& seen, const ir::Node& node) {
    auto [known, isNew] = operands_.try_emplace(&node);
    if (isNew) known->second = seen.operands.take();
    return known->second;
  }

  Quantized& quantized_;
  Options options_;
  Watcher& watcher_;
  std::unordered_map<const ir::Node*, std::vector<Sample>> operands_;
};

}  // namespace

Result<BorderRanges> quantizeRegions(Quantized& quantized, const Options& options,
                                     std::span<const Sample> samples) {
  const std::vector<ir::Node*> nodes = controlFlowOf(quantized.graph);
  BorderRanges ranges;
  if (nodes.empty()) return ranges;
  const std::vector<ir::Node*> references = controlFlowOf(*quantized.reference);
  CARINA_CHECK(nodes.size() == references.size(), "float and quantized graph have the same control flow");
  Watcher watcher(references);
  {
    CARINA_TRY(const aten::Executor executor,
               aten::Executor::create(*quantized.reference, aten::Folding::All, options.loops.get()));
    for (const Sample& sample : samples) {
      CARINA_TRY([[maybe_unused]] const auto outputs,
                 executor.run(sample, [&](const ir::Value& value, const Tensor& tensor) {
                   watcher.observe(value, tensor);
                 }));
    }
  }
  Regions regions(quantized, options, watcher);
  for (size_t i = 0; i < nodes.size(); ++i) {
    ranges[nodes[i]] = watcher.of(references[i]).border;
    for (size_t region = 0; region < nodes[i]->regions().size(); ++region)
      CARINA_RETURN_IF_ERROR(regions.quantizeOne(*nodes[i], *references[i], region));
  }
  return ranges;
}

}  // namespace carina::quantize
