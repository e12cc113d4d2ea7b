// SPDX-License-Identifier: Apache-2.0
#include "quantize/inside.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "aten/control_flow.hpp"
#include "aten/movement.hpp"
#include "aten/ops.hpp"
#include "quantize/annotate.hpp"
#include "quantize/assign.hpp"
#include "quantize/calibrate.hpp"
#include "quantize/constant_cones.hpp"
#include "quantize/fit_weights.hpp"
#include "quantize/group_params.hpp"
#include "quantize/insert.hpp"
#include "quantize/loops.hpp"
#include "quantize/ranges.hpp"

namespace carina::quantize {
namespace {

using Nodes = std::unordered_set<const ir::Node*>;

// Weights given as codes
// -------------------------------------------------------------------------------------------------------

/// The codes of a weight, with a scale and zero point per output channel.
struct Grid {
  Tensor codes;  // int8
  std::vector<float> scales;
  std::vector<int64_t> zeroPoints;
};

bool movesElements(const ir::Node& node) {
  if (ir::isa<aten::Cat>(&node) || ir::isa<aten::Stack>(&node)) return true;
  const auto moves = aten::movements(node);
  return moves.ok() && moves->has_value();
}

/// For each element of a dequantize node's result: its code, its scale or its zero point.
enum class Part : uint8_t { Code, Scale, ZeroPoint };

std::optional<Tensor> partOf(const ir::Node& node, Part part) {
  const auto whole = ir::dynCast<aten::DequantizePerTensor>(&node);
  const auto channels = ir::dynCast<aten::DequantizePerChannel>(&node);
  if (!whole && !channels) return std::nullopt;
  if (channels &&
      (!channels.scales()->isConstant() || channels.scales()->numElements() == 0 ||
       (channels.zeroPoints() && (!channels.zeroPoints()->isConstant() ||
                                  channels.zeroPoints()->numElements() != channels.scales()->numElements()))))
    return std::nullopt;
  const Tensor& codes = node.operands()[0]->constant();
  Tensor result = Tensor::uninitialized(DType::Float32, codes.shape());
  const auto values = result.mutableAs<float>();
  int64_t inner = codes.numElements();
  if (channels) {
    const auto axis = normalizeDim(channels.axis(), codes.rank());
    inner = 1;
    for (int64_t d = axis.value_or(0) + 1; d < codes.rank(); ++d) inner *= codes.dim(d);
  }
  const int64_t count = channels ? channels.scales()->numElements() : 1;
  for (int64_t i = 0; i < codes.numElements(); ++i) {
    const int64_t c = i / inner % count;
    double value = 0;
    if (part == Part::Code)
      value = static_cast<double>(codes.integerAt(i));
    else if (part == Part::Scale)
      value = channels ? channels.scales()->constant().realAt(c) : whole.scale();
    else if (whole)
      value = static_cast<double>(whole.zeroPoint());
    else if (channels.zeroPoints())
      value = static_cast<double>(channels.zeroPoints()->constant().integerAt(c));
    values[static_cast<size_t>(i)] = static_cast<float>(value);
  }
  return result;
}

/// Whether the elements of each output channel (dimension 0) are all equal.
bool isUniform(std::span<const float> values, size_t channels) {
  const size_t inner = values.size() / channels;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] != values[i / inner * inner]) return false;
  }
  return true;
}

/// The grid of a weight that is assembled from dequantized constants by moving elements only; empty if there
/// is no int8 grid per output channel.
Result<std::optional<Grid>> gridOf(const ConstantCones& cones, const ir::Value* weight) {
  std::optional<Grid> none;
  for (const ir::Node* node : cones.nodesOf(weight)) {
    const bool leaf = ir::isa<aten::DequantizePerTensor>(node) || ir::isa<aten::DequantizePerChannel>(node);
    if (leaf && (!node->operands()[0]->isConstant() || node->operands()[0]->dtype() != DType::Int8))
      return none;
    if (!leaf && !movesElements(*node)) return none;
    for (const ir::Value* operand : node->operands()) {
      if (operand && operand->isConstant() && isFloat(operand->dtype()) && !leaf) return none;
    }
  }
  const auto partsOf = [&](Part part) {
    return cones.contentsOf(weight, [part](const ir::Node& node) { return partOf(node, part); });
  };
  CARINA_TRY(const Tensor codes, partsOf(Part::Code));
  CARINA_TRY(const Tensor scales, partsOf(Part::Scale));
  CARINA_TRY(const Tensor zeros, partsOf(Part::ZeroPoint));
  const auto channels = static_cast<size_t>(weight->rank() > 0 ? weight->dim(0) : 0);
  if (channels == 0 || codes.numElements() == 0) return none;
  const auto scale = scales.as<float>(), zero = zeros.as<float>();
  if (!isUniform(scale, channels) || !isUniform(zero, channels)) return none;
  Grid grid{Tensor::uninitialized(DType::Int8, codes.shape()), {}, {}};
  for (int64_t i = 0; i < codes.numElements(); ++i)
    grid.codes.setIntegerAt(i, static_cast<int64_t>(codes.realAt(i)));
  const size_t inner = scale.size() / channels;
  for (size_t c = 0; c < channels; ++c) {
    grid.scales.push_back(scale[c * inner]);
    grid.zeroPoints.push_back(static_cast<int64_t>(zero[c * inner]));
  }
  return std::optional(std::move(grid));
}

ir::Value* dequantized(ir::Builder& builder, const Grid& grid) {
  const auto channels = static_cast<int64_t>(grid.scales.size());
  return aten::DequantizePerChannel::create(builder, builder.constant(grid.codes),
                                            builder.constant(Tensor::from(Shape{channels}, grid.scales)),
                                            builder.constant(Tensor::from(Shape{channels}, grid.zeroPoints)),
                                            int64_t{0}, int64_t{-128}, int64_t{127}, DType::Int8);
}

/// A float weight [O, K] as [2 O, K]: codes at scale absmax / 127 of each row, then codes of the residual at
/// 1/254 of that scale.
Grid inTwoParts(const Tensor& weight) {
  const int64_t channels = weight.dim(0), inner = weight.numElements() / std::max<int64_t>(channels, 1);
  const auto values = weight.as<float>();
  Grid grid{Tensor::uninitialized(DType::Int8, {2 * channels, inner}), {}, {}};
  grid.scales.resize(static_cast<size_t>(2 * channels));
  grid.zeroPoints.assign(static_cast<size_t>(2 * channels), 0);
  const auto codes = grid.codes.mutableAs<int8_t>();
  for (int64_t c = 0; c < channels; ++c) {
    const auto row = values.subspan(static_cast<size_t>(c * inner), static_cast<size_t>(inner));
    const Range range = rangeOf(row);
    const bool zero = range.min == 0 && range.max == 0;
    const double coarse =
        symmetricQParams(range.min, range.max, kInt8Weight, zero ? kEpsInt8 : kEpsTiny).scale;
    const auto fine = static_cast<float>(coarse / 254);
    grid.scales[static_cast<size_t>(c)] = static_cast<float>(coarse);
    grid.scales[static_cast<size_t>(channels + c)] = fine;
    for (size_t i = 0; i < row.size(); ++i) {
      const double code = std::clamp(std::nearbyint(row[i] / coarse), -127.0, 127.0);
      const double rest = std::clamp(std::nearbyint((row[i] - code * coarse) / fine), -127.0, 127.0);
      codes[static_cast<size_t>(c * inner) + i] = static_cast<int8_t>(code);
      codes[static_cast<size_t>((channels + c) * inner) + i] = static_cast<int8_t>(rest);
    }
  }
  return grid;
}

/// The real values of a grid of [O, K].
Tensor realOf(const Grid& grid) {
  Tensor result = Tensor::uninitialized(DType::Float32, grid.codes.shape());
  const auto to = result.mutableAs<float>();
  const size_t inner = to.size() / grid.scales.size();
  for (size_t i = 0; i < to.size(); ++i)
    to[i] = static_cast<float>(grid.codes.as<int8_t>()[i]) * grid.scales[i / inner];
  return result;
}

/// A vector followed by as many zeros.
Tensor withZeros(const Tensor& bias) {
  Tensor result = Tensor::zeros(DType::Float32, {2 * bias.numElements()});
  const auto from = bias.as<float>();
  std::copy(from.begin(), from.end(), result.mutableAs<float>().begin());
  return result;
}

// Synthetic codes
// ------------------------------------------------------------------------------------------------------------

constexpr size_t kMadeUpSamples = 8;

/// Codes distributed around the zero point as in a calibrated range: its ends are three standard deviations
/// away. In every second sample, rows differ in magnitude, as tokens do. In every fourth one, all codes are
/// equally likely.
Tensor madeUpCodes(const aten::DequantizePerTensor& d, size_t sample, std::mt19937& random) {
  Tensor codes = Tensor::uninitialized(d.input()->dtype(), d.input()->shape());
  const double low = static_cast<double>(d.quantMin()), high = static_cast<double>(d.quantMax()),
               zero = std::clamp(static_cast<double>(d.zeroPoint()), low, high);
  const int64_t row = codes.rank() > 0 ? std::max<int64_t>(codes.dim(codes.rank() - 1), 1) : 1;
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> even(0, 1);
  double magnitude = 1;
  for (int64_t i = 0; i < codes.numElements(); ++i) {
    if (i % row == 0) magnitude = sample % 2 == 0 ? 1 : std::exp2(-2 * even(random));
    const double x = normal(random) * magnitude / 3;
    double code = x > 0 ? zero + x * (high - zero) : zero + x * (zero - low);
    if (sample % 4 == 3) code = low + even(random) * (high - low);
    codes.setIntegerAt(i, static_cast<int64_t>(std::nearbyint(std::clamp(code, low, high))));
  }
  return codes;
}

/// Cuts the dequantize nodes that feed the nodes off from the producers of their codes, and adds graph inputs
/// for these codes instead.
class Cut {
 public:
  Cut(ir::Graph& graph, const Nodes& nodes) : graph_(graph), inputs_(graph.inputs().size()) {
    std::unordered_map<const ir::Value*, ir::Value*> inputs;
    for (ir::Node* node : graph.nodes()) {
      const auto d = ir::dynCast<aten::DequantizePerTensor>(node);
      const auto& uses = node->result()->uses();
      if (!d || d.input()->isConstant() || !isInteger(d.input()->dtype()) ||
          std::none_of(uses.begin(), uses.end(),
                       [&](const ir::Use& use) { return nodes.count(use.node) != 0; }))
        continue;
      ir::Value*& input = inputs[d.input()];
      if (!input) {
        input = graph.addInput(d.input()->type);
        sources_.push_back(d);
      }
      joined_.emplace_back(node, d.input());
      node->setOperand(0, input);
    }
  }

  /// Values for all inputs: those of the network itself are zero.
  std::vector<Sample> samples() const {
    std::mt19937 random(1);
    std::vector<Sample> samples(kMadeUpSamples);
    for (size_t s = 0; s < samples.size(); ++s) {
      for (size_t i = 0; i < inputs_; ++i)
        samples[s].push_back(Tensor::zeros(graph_.inputs()[i]->dtype(), graph_.inputs()[i]->shape()));
      for (const auto& d : sources_) samples[s].push_back(madeUpCodes(d, s, random));
    }
    return samples;
  }

  void join() {
    for (const auto& [node, codes] : joined_) node->setOperand(0, codes);
    while (graph_.inputs().size() > inputs_) graph_.removeInput(graph_.inputs().size() - 1);
  }

 private:
  ir::Graph& graph_;
  size_t inputs_;
  std::vector<aten::DequantizePerTensor> sources_;
  std::vector<std::pair<ir::Node*, ir::Value*>> joined_;
};

// Ranges
// --------------------------------------------------------------------------------------------------------------------

/// The range in which the codes of a function's result, 16-bit or wide, distinguish its arguments; empty if
/// unlimited.
std::optional<Range> distinguishableArguments(const ir::Node& function, const Range& arguments, bool wide) {
  if (ir::isa<aten::Exp>(&function))  // e^-12 < 2^-17, e^-18 < 2^-25
    return Range{arguments.max - (wide ? 18.0f : 12.0f), arguments.max};
  if (ir::isa<aten::Sigmoid>(&function)) return wide ? Range{-17, 17} : Range{-12, 12};
  if (ir::isa<aten::Tanh>(&function)) return wide ? Range{-9, 9} : Range{-6, 6};
  return std::nullopt;
}

/// The range of a group without the parts that its readers, if all of them are functions, cannot distinguish
/// from its ends.
Range telling(const Annotation& annotation, size_t g, const Range& range) {
  const Group& group = annotation.groups[g];
  if (group.prequantizedScale) return range;
  const bool wide = group.wide;
  Range needed;
  for (const Form& form : group.forms) {
    if (form.leaves || form.value->isConstant() || form.value->isGraphOutput()) return range;
    for (const ir::Use& use : form.made ? form.value->uses() : form.readers) {
      if (const auto arguments = distinguishableArguments(*use.node, range, wide)) {
        needed = unite(needed, *arguments);
        continue;
      }
      const auto made = roleOf(*use.node) == Role::Shared && use.node->results().size() == 1
                            ? annotation.producedIn.find(use.node->result())
                            : annotation.producedIn.end();
      if (made == annotation.producedIn.end() || made->second != g) return range;
    }
  }
  if (needed.empty()) return range;
  const Range cut{std::max(range.min, needed.min), std::min(range.max, needed.max)};
  return cut.empty() ? range : cut;
}

// Wide codes
// ---------------------------------------------------------------------------------------------------------------

using Operators = std::unordered_set<const ir::OpDef*>;

const Operators& smoothFunctions() {
  static const Operators operators{&aten::Exp::def(), &aten::Sigmoid::def(), &aten::Tanh::def(),
                                   &aten::Erf::def(), &aten::Gelu::def(),    &aten::Silu::def(),
                                   &aten::Log::def(), &aten::Rsqrt::def(),   &aten::Reciprocal::def(),
                                   &aten::Sqrt::def()};
  return operators;
}

bool readsInt16(const ir::Node& node) {
  return std::any_of(node.operands().begin(), node.operands().end(), [](const ir::Value* value) {
    const auto d = ir::producerAs<aten::DequantizePerTensor>(value);
    return d && !d.input()->isConstant() && d.input()->dtype() == DType::Int16;
  });
}

bool makesInt16(const ir::Node& node) {
  return std::any_of(node.results().begin(), node.results().end(), [](const ir::Value* value) {
    return std::any_of(value->uses().begin(), value->uses().end(), [](const ir::Use& use) {
      const auto q = ir::dynCast<aten::QuantizePerTensor>(use.node);
      return q && q.dtype() == DType::Int16;
    });
  });
}

/// Groups of more nodes, such as long recurrences, keep 16 bits: 32-bit arithmetic would take hundreds of
/// operations per step.
constexpr size_t kMaxWide = 4000;

/// With more elements in all results, 32-bit arithmetic in attention would cost more than it is worth.
constexpr int64_t kMaxAttention = 1 << 13;

using Joined = std::vector<const ir::Node*>;

/// Groups of nodes connected by float values.
std::vector<Joined> joinedNodes(const Nodes& nodes, const ir::Graph& graph) {
  Nodes seen;
  std::vector<Joined> groups;
  const auto isReal = [](const ir::Value* value) { return value && value->dtype() == DType::Float32; };
  for (const ir::Node* first : graph.nodes()) {
    Joined joined;
    const auto visit = [&](const ir::Node* node) {
      if (node && nodes.count(node) != 0 && seen.insert(node).second) joined.push_back(node);
    };
    visit(first);
    for (size_t i = 0; i < joined.size(); ++i) {
      if (joined[i]->is(aten::scanDef())) {
        for (const ir::Node* node : joined[i]->region(0).nodes()) visit(node);
      }
      for (const ir::Value* value : joined[i]->operands()) {
        if (isReal(value)) visit(value->producer());
      }
      for (const ir::Value* value : joined[i]->results()) {
        if (!isReal(value)) continue;
        for (const ir::Use& use : value->uses()) visit(use.node);
      }
    }
    if (!joined.empty()) groups.push_back(std::move(joined));
  }
  return groups;
}

/// Whether some of the nodes read or produce int16 codes of the network.
bool isBetweenCodesOf16Bits(const Joined& group) {
  return group.size() <= kMaxWide && std::any_of(group.begin(), group.end(), [](const ir::Node* node) {
           return readsInt16(*node) || makesInt16(*node);
         });
}

/// A softmax between products, with few elements. In 16 bits, arguments of its exponential would be 0.0004
/// apart, which amounts to a fiftieth of a code in the result.
bool isSmallAttention(const Joined& group) {
  int64_t elements = 0;
  bool products = false, exponentials = false;
  for (const ir::Node* node : group) {
    products |= ir::isa<aten::Matmul>(node) || ir::isa<aten::Bmm>(node);
    exponentials |= ir::isa<aten::Exp>(node);
    for (const ir::Value* result : node->results()) elements += result->numElements();
  }
  return products && exponentials && elements <= kMaxAttention;
}

/// The nodes that get 32-bit codes, with all nodes connected to them by float values.
Nodes wideGroups(const Nodes& nodes, const ir::Graph& graph) {
  Nodes found;
  for (const Joined& group : joinedNodes(nodes, graph)) {
    if (isBetweenCodesOf16Bits(group) || isSmallAttention(group)) found.insert(group.begin(), group.end());
  }
  return found;
}

/// Norms, and the products and sums with constants that follow them: they get wide codes between int8 codes,
/// too. With 16 bits inside (0.003 codes in the result), one in a few hundred results would round to the
/// other neighbour, and the following layers may turn that one code into two.
Nodes normsAndScales(const Nodes& nodes) {
  const auto scales = [](const ir::Node& node) {
    return (ir::isa<aten::MulTensor>(&node) || ir::isa<aten::AddTensor>(&node)) &&
           std::any_of(node.operands().begin(), node.operands().end(),
                       [](const ir::Value* operand) { return operand && operand->isConstant(); });
  };
  Nodes found;
  for (const ir::Node* norm : nodes) {
    if (!ir::isa<aten::LayerNorm>(norm) && !ir::isa<aten::RmsNorm>(norm)) continue;
    const ir::Node* node = norm;
    while (found.insert(node).second && node->result()->uses().size() == 1) {
      const ir::Node* reader = node->result()->uses()[0].node;
      if (nodes.count(reader) == 0 || !scales(*reader)) break;
      node = reader;
    }
  }
  return found;
}

// The pass
// -----------------------------------------------------------------------------------------------------------------

class Inside {
 public:
  Inside(ir::Graph& graph, Nodes nodes, const Settings& settings, std::shared_ptr<WorkBudget> loops)
      : graph_(graph), nodes_(std::move(nodes)) {
    for (const ir::Node* node : nodesWithLoops(graph)) {
      if (!node->is(aten::scanDef()) || nodes_.count(node) == 0) continue;
      for (const ir::Node* inner : node->region(0).nodes()) nodes_.insert(inner);
    }
    static_cast<Settings&>(options_) = settings;
    options_.loops = std::move(loops);
    options_.weightBits = kMaxWeightBits;  // prequantized networks have 8-bit codes
    options_.precision = Precision::Int16x8;
    options_.scheme = Scheme::Symmetric;
  }

  Status run(std::span<const Sample> samples) {
    CARINA_RETURN_IF_ERROR(foldConstantOperands(graph_));
    CARINA_RETURN_IF_ERROR(
        checkWeights(graph_, [this](const ir::Node& node) { return nodes_.count(&node) != 0; }));
    refineWeights();
    assign();
    const Annotation annotation = annotate(graph_, assignment_, options_);
    CARINA_TRY(std::vector<Range> ranges, observe(annotation, samples));
    giveWideCodesRoom(annotation, ranges);
    for (size_t g = 0; g < ranges.size(); ++g) ranges[g] = telling(annotation, g, ranges[g]);
    const std::vector<QParams> params = groupParams(graph_, annotation, ranges);
    LayerCodes codes = roundWeights(graph_, annotation, assignment_, params);
    insertQuantization(graph_, annotation, assignment_, ranges, params, std::move(codes));
    for (const auto& [node, grid] : grids_) {
      ir::Builder builder = ir::Builder::beforeNode(node);
      node->setOperandGroup(WeightedOp::kWeightOperand, std::array{dequantized(builder, grid)});
    }
    graph_.eraseDeadNodes();
    carryCodes(graph_);
    return unrollLoops(graph_);
  }

 private:
  /// Float weights of linear layers, as found in recurrent layers and attention: the network's quantizer has
  /// left them in float, and 8 bits are not precise enough. Each becomes rows on a coarse grid, followed by
  /// rows of the residual on a finer one; a sum combines the results.
  void refineWeights() {
    std::unordered_map<const ir::Value*, std::pair<ir::Value*, Grid>> refined;
    std::unordered_map<const ir::Value*, ir::Value*> biases;
    for (ir::Node* node : nodesWithLoops(graph_)) {
      const auto linear = ir::dynCast<aten::Linear>(node);
      if (!linear || nodes_.count(node) == 0 || hasGrid(node) || !asWeighted(*node)) continue;
      ir::Graph& graph = node->graph();
      const int64_t channels = linear.weight()->dim(0);
      auto [known, isNew] = refined.try_emplace(linear.weight());
      auto& [weight, grid] = known->second;
      if (isNew) {
        grid = inTwoParts(linear.weight()->constant());
        weight = graph.addConstant(realOf(grid), linear.weight()->name);
      }
      ir::Value* bias = nullptr;
      if (linear.bias()) {
        ir::Value*& wide = biases[linear.bias()];
        if (!wide) wide = graph.addConstant(withZeros(linear.bias()->constant()), linear.bias()->name);
        bias = wide;
      }
      ir::Builder b = ir::Builder::beforeNode(node);
      ir::Value* both = aten::Linear::create(b, linear.input(), weight, bias);
      const auto part = [&](int64_t i) {
        ir::Value* rows = aten::SliceTensor::create(b, both, int64_t{-1}, i * channels, (i + 1) * channels);
        nodes_.insert(rows->producer());
        return rows;
      };
      ir::Value *coarse = part(0), *fine = part(1);
      ir::Value* sum = aten::AddTensor::create(b, coarse, fine);
      nodes_.insert(both->producer());
      nodes_.insert(sum->producer());
      grids_.emplace_back(both->producer(), grid);
      graph.replaceAllUses(node->result(), sum);
      sum->name = std::move(node->result()->name);
      nodes_.erase(node);
      graph.erase(node);
    }
  }

  bool hasGrid(const ir::Node* node) const {
    return std::any_of(grids_.begin(), grids_.end(), [&](const auto& entry) { return entry.first == node; });
  }

  /// Dequantized constants, and what is computed from them, become float constants; the grids of weights are
  /// recorded.
  Status foldConstantOperands(ir::Graph& graph) {
    const ConstantCones cones(graph);
    std::unordered_map<const ir::Value*, ir::Value*> folded;
    for (ir::Node* node : graph.nodes()) {
      if (node->is(aten::scanDef()) && nodes_.count(node) != 0)
        CARINA_RETURN_IF_ERROR(foldConstantOperands(node->region(0)));
      // Nodes that compute constants are folded where these are used.
      if (nodes_.count(node) == 0 || (!node->results().empty() && cones.isKnown(node->result()))) continue;
      for (size_t i = 0; i < node->operands().size(); ++i) {
        ir::Value* operand = node->operands()[i];
        if (!operand || operand->isConstant() || operand->dtype() != DType::Float32 ||
            !cones.isKnown(operand))
          continue;
        std::optional<Grid> grid;
        if (i == WeightedOp::kWeightOperand) {
          CARINA_TRY(grid, gridOf(cones, operand));
        }
        ir::Value*& constant = folded[operand];
        if (!constant) {
          CARINA_TRY(Tensor contents, cones.contentsOf(operand));
          constant = graph.addConstant(std::move(contents), operand->name);
        }
        node->setOperand(i, constant);
        if (!grid) continue;
        const auto layer = asWeighted(*node);
        if (layer && layer->weightAxis == 0) grids_.emplace_back(node, std::move(*grid));
      }
    }
    return {};
  }

  void assign() {
    Nodes wide = wideGroups(nodes_, graph_);
    wide.merge(normsAndScales(nodes_));
    for (const ir::Node* node : nodesWithLoops(graph_)) {
      NodeSettings& entry = assignment_.nodes[node];
      entry.settings = options_;
      if (nodes_.count(node) == 0) {
        entry.settings.precision = Precision::Float;
      } else if (wide.count(node) != 0 && takesWideCodes(*node)) {
        entry.wide = true;
        entry.settings.observer = ObserverKind::MinMax;
      }
    }
  }

  Result<std::vector<Range>> observe(const Annotation& annotation, std::span<const Sample> samples) {
    const auto over = [&](std::span<const Sample> shown) {
      LayerInputs inputs(graph_, annotation, {}, shown.size());
      return calibrate(graph_, annotation, shown, true, inputs, nullptr, options_.loops.get());
    };
    Cut cut(graph_, nodes_);
    auto possible = over(cut.samples());
    cut.join();
    if (!possible.ok() || samples.empty()) return possible;
    CARINA_TRY(std::vector<Range> ranges, over(samples));
    for (size_t g = 0; g < ranges.size(); ++g) ranges[g] = widened(ranges[g], (*possible)[g]);
    return ranges;
  }

  /// A few samples do not show how far others reach, and clipping costs more than one bit of all codes.
  static Range widened(const Range& observed, const Range& possible) {
    const float most = 2 * std::max(std::abs(observed.min), std::abs(observed.max));
    return unite(observed, {std::clamp(possible.min, -most, most), std::clamp(possible.max, -most, most)});
  }

  ir::Graph& graph_;
  Nodes nodes_;
  Options options_;
  Assignment assignment_;
  std::vector<std::pair<ir::Node*, Grid>> grids_;
};

}  // namespace

bool takesWideCodes(const ir::Node& node) {
  static const Operators kOthers{
      &aten::AddTensor::def(),  &aten::SubTensor::def(), &aten::AddScalar::def(), &aten::SubScalar::def(),
      &aten::RsubScalar::def(), &aten::MulTensor::def(), &aten::MulScalar::def(), &aten::DivScalar::def(),
      &aten::Neg::def(),        &aten::Square::def(),    &aten::Matmul::def(),    &aten::Bmm::def(),
      &aten::Mm::def(),         &aten::Linear::def(),    &aten::Sum::def(),       &aten::SumDimIntList::def(),
      &aten::Mean::def(),       &aten::MeanDim::def(),   &aten::Amax::def(),      &aten::Amin::def(),
      &aten::LayerNorm::def(),  &aten::RmsNorm::def(),   &aten::WhereSelf::def(), &aten::Relu::def(),
      &aten::ClampMin::def(),   &aten::ClampMax::def(),  &aten::Clamp::def(),     &aten::Log2::def(),
      &aten::Log10::def(),      &aten::Log1p::def(),     &aten::scanDef()};
  return smoothFunctions().count(&node.def()) != 0 || kOthers.count(&node.def()) != 0 || movesElements(node);
}

bool hasFunctionOf16Bits(std::span<ir::Node* const> nodes) {
  // Not functions with unbounded results (exp, reciprocal): 32-bit codes for their whole range would be
  // coarser than a TABLE that saturates where the following codes do.
  static const Operators kBounded{&aten::Sigmoid::def(), &aten::Tanh::def(), &aten::Erf::def(),
                                  &aten::Gelu::def(), &aten::Silu::def()};
  return std::any_of(nodes.begin(), nodes.end(), [](const ir::Node* node) {
    return kBounded.count(&node->def()) != 0 && readsInt16(*node);
  });
}

Status quantizeInside(ir::Graph& graph, const Nodes& nodes, const Settings& settings,
                      std::span<const Sample> samples, std::shared_ptr<WorkBudget> loops) {
  return Inside(graph, nodes, settings, std::move(loops)).run(samples);
}

}  // namespace carina::quantize
