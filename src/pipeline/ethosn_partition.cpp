// SPDX-License-Identifier: Apache-2.0
#include "pipeline/ethosn_partition.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "ethosn/lower/tosa_network.hpp"

namespace carina::pipeline {
namespace {

/// Answers queries about parts by compiling them, and keeps the results.
class Placer {
 public:
  explicit Placer(const ethosn::Target& target) : target_(target) {}

  std::optional<ir::Graph> placeWhole(const ir::Graph& tosa) {
    problems_.clear();
    auto part = compileEthosNPart(tosa, target_);
    if (part) {
      parts_.insert_or_assign(tosa.firstNode(), std::move(*part));
      return ir::Graph("ethosn");
    }
    for (const Diagnostic& problem : part.error().diagnostics()) problems_.emplace(problem.place, problem);
    // A problem that is not about a particular operator is about the part: report it at the first operator.
    for (const ir::Node* node : tosa.nodes()) {
      if (problems_.count(ethosn::sourceName(*node)) != 0) return std::nullopt;
    }
    const Diagnostic any = problems_.begin()->second;
    if (tosa.firstNode() != nullptr) problems_.emplace(ethosn::sourceName(*tosa.firstNode()), any);
    return std::nullopt;
  }

  /// For a node of the graph that placeWhole() was last called with.
  std::optional<Diagnostic> whyNot(const ir::Node& node) const {
    const auto found = problems_.find(ethosn::sourceName(node));
    return found == problems_.end() ? std::nullopt : std::optional(found->second);
  }

  Result<EthosNPart> take(const ir::Graph& tosa) {
    const auto found = parts_.find(tosa.firstNode());
    if (found == parts_.end()) return compileEthosNPart(tosa, target_);
    return std::move(found->second);
  }

 private:
  const ethosn::Target& target_;
  std::map<const ir::Node*, EthosNPart> parts_;  // by their graph's first node
  std::map<std::string, Diagnostic> problems_;   // by place
};

bool isIntensive(const ethosn::Network& network) {
  return std::any_of(network.operations.begin(), network.operations.end(), [](const auto& operation) {
    switch (operation.operation.op) {
      case ethosn::Operator::Convolution:
      case ethosn::Operator::DepthwiseConvolution:
      case ethosn::Operator::TransposeConvolution:
      case ethosn::Operator::FullyConnected:
      case ethosn::Operator::Pooling:
      case ethosn::Operator::MeanXy:
      case ethosn::Operator::Resize:
      case ethosn::Operator::Sigmoid:
      case ethosn::Operator::Tanh:
        return true;
      default:
        return false;
    }
  });
}

/// A part without operators of its own is accepted without compilation: it may turn out not to compile.
bool isCompiled(const EthosNPart& part) {
  return !part.compiled.constantControlUnit.empty();
}

/// The source name of a node that computes; empty for others.
std::string computedFor(const ir::Node& node) {
  const bool computes = node.location() && !partition::isQuantize(node) && !partition::isDequantize(node);
  return computes ? node.location()->name : "";
}

std::set<std::string> sourcesOf(const ir::Graph& graph) {
  std::set<std::string> sources;
  for (const ir::Node* node : graph.nodes()) sources.insert(computedFor(*node));
  sources.erase("");
  return sources;
}

/// Whether a part is a fragment of a single operator, the rest of which is left to the CPU: a softmax without
/// its maximum. In float it is exact, and nothing is moved. Recurrent layers, which have weights or further
/// parts, do not count.
bool isFragment(const EthosNPartitioned& made, size_t part) {
  for (const ethosn::NetworkOperation& operation : made.parts[part].operations.operations) {
    const std::vector<uint8_t>& weights = operation.weights;
    if (std::adjacent_find(weights.begin(), weights.end(), std::not_equal_to<>()) != weights.end())
      return false;
  }
  const auto& delegates = made.partitioned.delegates;
  const std::set<std::string> sources = sourcesOf(delegates[part].call->region(0));
  if (sources.size() != 1) return false;
  for (size_t other = 0; other < delegates.size(); ++other) {
    if (other != part && sourcesOf(delegates[other].call->region(0)).count(*sources.begin()) != 0)
      return false;
  }
  for (const ir::Node* node : made.partitioned.graph.nodes()) {
    if (node != delegates[part].call && computedFor(*node) == *sources.begin()) return true;
  }
  return false;
}

/// The source names of nodes in parts that are not worthwhile, or do not compile.
std::set<std::string> notWorthIt(const EthosNPartitioned& made, bool allAreWorthIt) {
  std::set<std::string> names;
  for (size_t i = 0; i < made.parts.size(); ++i) {
    const ir::Node* call = made.partitioned.delegates[i].call;
    const bool stays = allAreWorthIt || made.partitioned.wholly ||
                       (isIntensive(made.parts[i].operations) && !isFragment(made, i));
    if (stays && isCompiled(made.parts[i])) continue;
    for (const ir::Node* node : call->region(0).nodes()) {
      if (const std::string source = computedFor(*node); !source.empty()) names.insert(source);
    }
  }
  return names;
}

Result<EthosNPartitioned> partitionOnce(const Options& options, const ethosn::Target& target, Front& front) {
  Placer placer(target);
  NpuPlaces places;
  places.placeWhole = [&placer](const ir::Graph& tosa) { return placer.placeWhole(tosa); };
  places.supports = [&placer](const ir::Node& node) { return placer.whyNot(node); };
  EthosNPartitioned made;
  CARINA_TRY(made.partitioned, partitionFor(options, &places, front, true));
  for (const partition::Delegate& delegate : made.partitioned.delegates) {
    auto part = placer.take(delegate.tosa);
    made.parts.push_back(part ? std::move(*part) : EthosNPart());
  }
  return made;
}

}  // namespace

Result<ethosn::Target> chosenEthosN(const Options& options) {
  auto target = ethosn::findTarget(options.target);
  if (!target) return std::move(target).error().at("--target");
  if (auto status = ethosn::requireKernels(*target->variant); !status.ok())
    return std::move(status).error().at("--target");
  return *target;
}

Result<EthosNPart> compileEthosNPart(const ir::Graph& tosa, const ethosn::Target& target) {
  EthosNPart part;
  CARINA_TRY(part.operations, ethosn::networkOfTosa(tosa));
  CARINA_TRY(part.compiled, ethosn::compileNetwork(part.operations, target, &part.passes));
  return part;
}

partition::Place ethosNPlace(const ethosn::Target& target, std::optional<EthosNPart>* part) {
  return [&target, part](const ir::Graph& tosa) -> std::optional<ir::Graph> {
    auto compiled = compileEthosNPart(tosa, target);
    if (!compiled) return std::nullopt;
    if (part != nullptr) *part = std::move(*compiled);
    return ir::Graph("ethosn");
  };
}

partition::Supports ethosNSupports(const ir::Graph& tosa, const ethosn::Target& target) {
  auto placer = std::make_shared<Placer>(target);
  placer->placeWhole(tosa);
  return [placer](const ir::Node& node) { return placer->whyNot(node); };
}

Result<EthosNPartitioned> partitionForEthosN(const Options& options, const ethosn::Target& target,
                                             Front& front, bool keepParts) {
  Options asked = options;
  std::set<std::string> left;
  // Leaving a part to the CPU may split others: repeat until nothing changes.
  for (;;) {
    const ir::Graph original = front.quantized.clone();
    CARINA_TRY(EthosNPartitioned made, partitionOnce(asked, target, front));
    std::set<std::string> names = notWorthIt(made, front.isTfl);
    std::erase_if(names, [&left](const std::string& name) { return left.count(name) != 0; });
    if (names.empty()) {
      for (size_t i = 0; i < made.parts.size(); ++i) {
        if (isCompiled(made.parts[i])) continue;
        auto part = compileEthosNPart(made.partitioned.delegates[i].tosa, target);
        if (!part) return std::move(part).error().inFile(options.model.string());
        made.parts[i] = std::move(*part);
      }
      for (partition::Refusal& refusal : made.partitioned.refusals) {
        if (refusal.code != Code::OnRequest || left.count(refusal.node) == 0) continue;
        refusal.code = Code::MissingCapability;
        refusal.reason =
            "its NPU part would have no convolution, pooling, resize, sigmoid or vector product, "
            "and moving its maps to the NPU and back takes longer than computing them on the CPU";
        refusal.remedy.clear();
      }
      for (partition::Delegate& delegate : made.partitioned.delegates) {
        if (!keepParts) delegate.call->setRegion(0, ir::Graph(delegate.tosa.name));
      }
      return made;
    }
    asked.cpuNames.insert(asked.cpuNames.end(), names.begin(), names.end());
    left.insert(names.begin(), names.end());
    front.quantized = original.clone();
  }
}

}  // namespace carina::pipeline
