// SPDX-License-Identifier: Apache-2.0
// Annotation rules: the tables of what is fused, shared and observed.
#include "quantize/annotate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "aten/control_flow.hpp"
#include "aten/conv_op.hpp"
#include "aten/geometry.hpp"
#include "aten/operator_facts.hpp"
#include "quantize/recurrence.hpp"

namespace carina::quantize {
namespace {

using aten::QuantizeRule;

/// Disjoint sets of value indices.
class Sets {
 public:
  size_t add() {
    parent_.push_back(parent_.size());
    return parent_.size() - 1;
  }
  size_t find(size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(size_t a, size_t b) { parent_[std::max(find(a), find(b))] = std::min(find(a), find(b)); }

 private:
  std::vector<size_t> parent_;
};

bool isWeightOperand(const ir::Node& node, size_t operand) {
  return (operand == WeightedOp::kWeightOperand || operand == WeightedOp::kBiasOperand) &&
         asWeighted(node).has_value();
}

/// An average pool with the same divisor for every window: its sums may be scaled to any codes. For windows
/// larger than the NPU sums in one operation, this costs more than averaging in steps.
bool isPlainAverage(const ir::Node& node) {
  constexpr int64_t kMostRows = 64, kMaxElements = 4096;
  if (!ir::isa<aten::AvgPool1d>(&node) && !ir::isa<aten::AvgPool2d>(&node)) return false;
  const auto geometry = aten::poolGeometry(node);
  if (!geometry.ok()) return false;
  const int64_t rows = geometry->kernel.size() == 2 ? geometry->kernel[0] : 1;
  return rows <= kMostRows && rows * geometry->kernel.back() <= kMaxElements &&
         geometry->hasOneDivisor(node.operands()[0]->shape());
}

class Annotator {
 public:
  Annotator(const ir::Graph& graph, const Assignment& assignment, const Options& options, const Reads& apart)
      : assignment_(assignment), options_(options), apart_(apart) {
    const size_t inputs = graph.inputs().size() - options.states;
    const size_t outputs = graph.outputs().size() - options.states;
    for (size_t i = 0; i < inputs; ++i)
      visitInput(graph.inputs()[i], boundaryOf(options.inputs, options.inputPrecisions, i));
    for (size_t i = 0; i < options.states; ++i)
      visitState(graph.inputs()[inputs + i], *graph.outputs()[outputs + i]);
    visitNodes(graph);
    for (size_t i = 0; i < outputs; ++i)
      visitOutput(graph.outputs()[i], boundaryOf(options.outputs, options.outputPrecisions, i));
    for (size_t i = 0; i < options.states; ++i)
      joinState(graph.inputs()[inputs + i], graph.outputs()[outputs + i]);
    shareSteps(graph);
  }

  Annotation finish() {
    Annotation annotation;
    std::unordered_map<size_t, size_t> groupOfSet;
    std::vector<std::vector<size_t>> members;
    for (size_t i = 0; i < slots_.size(); ++i) {
      const auto [it, isNew] = groupOfSet.emplace(sets_.find(i), members.size());
      if (isNew) members.emplace_back();
      members[it->second].push_back(i);
    }
    for (size_t g = 0; g < members.size(); ++g) {
      Group& group = annotation.groups.emplace_back();
      settle(group, members[g], annotation.warnings);
      for (size_t i : members[g]) {
        const Form& form = group.forms.emplace_back(slots_[i].form);
        if (form.made) annotation.producedIn[form.value] = g;
      }
    }
    for (const auto& [use, slot] : reads_) annotation.readIn[use] = groupOfSet.at(sets_.find(slot));
    for (Group& group : annotation.groups) {
      findWidened(annotation, group);
      group.prequantizedScale = prequantizedScaleOf(group);
      // The network's own codes stay unchanged: their readers accept 16-bit operands alongside 32-bit ones.
      if (group.prequantizedScale) group.wide = false;
    }
    return annotation;
  }

 private:
  /// Whose settings determine a range: program inputs and outputs before operators that a rule names, and
  /// these before others.
  enum Rank : uint8_t { kDefault, kNamed, kBoundary };

  struct Slot {
    Form form;
    Settings settings;
    Rank rank = kDefault;
    bool wide = false;
  };

  static constexpr size_t kNone = std::numeric_limits<size_t>::max();

  Role effectiveRole(const ir::Node& node) const {
    const Precision precision = assignment_.of(node).settings.precision;
    if (precision == Precision::Float) return Role::Float;
    // Averages have a narrower range than their operands; 16 bits have codes to spare.
    return precision == Precision::Int8 && isPlainAverage(node) ? Role::Own : roleOf(node);
  }

  bool haveOnePrecision(const ir::Node& a, const ir::Node& b) const {
    const NodeSettings &one = assignment_.of(a), &other = assignment_.of(b);
    return one.settings.precision == other.settings.precision && one.wide == other.wide;
  }

  /// The result of a computation that only a clamp of the same precision reads: the clamp limits its codes.
  bool fusedIntoClamp(const ir::Value& last) {
    std::vector<const ir::Value*>
        clamped;  // results of preceding clamps, for which the answer is not known yet
    const ir::Value* value = &last;
    bool fused = false;
    for (;; value = value->producer()->operands()[0]) {
      if (const auto known = fusedIntoClamp_.find(value); known != fusedIntoClamp_.end()) {
        fused = known->second;
        break;
      }
      clamped.push_back(value);
      if (!value->hasOneUse() || !value->producer() || !isClamp(*value->uses()[0].node)) break;
      const ir::Node& producer = *value->producer();
      const ir::Node& clamp = *value->uses()[0].node;
      if (!haveOnePrecision(producer, clamp)) break;
      fused = effectiveRole(producer) == Role::Own;
      if (fused || !isClamp(producer)) break;
    }
    for (const ir::Value* each : clamped) fusedIntoClamp_[each] = fused;
    return fused;
  }

  /// A result that is read only by another function of one value, or only scaled before a product: one TABLE
  /// computes the chain, and another scale costs nothing.
  bool fusedIntoReader(const ir::Value& value) const {
    if (!value.hasOneUse() || !value.producer() || value.isGraphOutput()) return false;
    const ir::Node& producer = *value.producer();
    const ir::Node& reader = *value.uses()[0].node;
    if (!haveOnePrecision(producer, reader) || effectiveRole(producer) != Role::Own ||
        effectiveRole(reader) != Role::Own || !isFunction(producer))
      return false;
    if (scalingOf(producer) && isProduct(reader)) return true;
    if (!isFunction(reader) || isRoundingFunction(reader)) return false;
    // A product reads codes at any scale: a function before the scaling needs codes of its own.
    if (!scalingOf(producer) && isScaledIntoProduct(&reader)) return false;
    // A table has an entry for every int8 code, but only for every 128th 16-bit code: there, a separate range
    // in between is more precise, except for the epsilon before a root. With 32-bit codes, additions are
    // exact.
    return assignment_.of(reader).settings.precision == Precision::Int8 ||
           (!assignment_.of(reader).wide && ir::isa<aten::AddScalar>(&producer) &&
            ir::isa<aten::Rsqrt>(&reader));
  }

  /// Whether the node, and possibly others after it, only scale the operand of a product.
  bool isScaledIntoProduct(const ir::Node* node) const {
    while (scalingOf(*node) && fusedIntoReader(*node->result())) {
      node = node->result()->uses()[0].node;
      if (isProduct(*node)) return true;
    }
    return false;
  }

  /// A result of arithmetic that is read only by quantize nodes of the network.
  bool hasPrequantizedCodes(const ir::Value& value) const {
    const auto& uses = value.uses();
    return value.producer() && !isFunction(*value.producer()) && !uses.empty() && !value.isGraphOutput() &&
           std::all_of(uses.begin(), uses.end(),
                       [](const ir::Use& use) { return ir::isa<aten::QuantizePerTensor>(use.node); });
  }

  bool staysUnquantized(const ir::Value& value) {
    return fusedIntoClamp(value) || fusedIntoReader(value) || hasPrequantizedCodes(value);
  }

  size_t addSlot(ir::Value* value, bool made, const Settings& settings, Rank rank, bool wide = false) {
    slots_.push_back({{value, made, {}, false}, settings, rank, wide});
    sets_.add();
    return slots_.size() - 1;
  }

  size_t makeSlot(ir::Value* value, const Settings& settings, Rank rank, bool wide = false) {
    return made_[value] = addSlot(value, true, settings, rank, wide);
  }

  /// The form in which a reader with these settings reads the value.
  size_t readSlot(ir::Value* value, const Settings& settings, Rank rank, bool wide = false) {
    const auto made = made_.find(value);
    if (made != made_.end() && slots_[made->second].settings.precision == settings.precision &&
        slots_[made->second].wide == wide)
      return made->second;
    const auto [it, isNew] = readForms_.try_emplace({value, settings.precision, wide}, kNone);
    if (isNew) it->second = addSlot(value, false, settings, rank, wide);
    return it->second;
  }

  static Settings boundarySettings(Settings settings, const BoundarySettings& boundary) {
    if (boundary.precision) settings.precision = *boundary.precision;
    if (boundary.scheme) settings.scheme = *boundary.scheme;
    if (boundary.observer) settings.observer = *boundary.observer;
    return settings;
  }

  /// The settings of the first quantized operator that reads the value; null if there is none.
  const NodeSettings* readerSettings(const ir::Value& value) const {
    for (const ir::Use& use : value.uses()) {
      if (effectiveRole(*use.node) != Role::Float) return &assignment_.of(*use.node);
    }
    return nullptr;
  }

  /// The settings requested for input or output `index`.
  static std::optional<BoundarySettings> boundaryOf(const std::optional<BoundarySettings>& all,
                                                    const std::map<size_t, Precision>& single, size_t index) {
    const auto found = single.find(index);
    if (found == single.end()) return all;
    BoundarySettings settings = all.value_or(BoundarySettings{});
    settings.precision.reset();
    if (found->second != Precision::Float) settings.precision = found->second;
    return settings;
  }

  void visitInput(ir::Value* input, const std::optional<BoundarySettings>& boundary) {
    if (!boundary || input->dtype() != DType::Float32) return;
    const NodeSettings* reader = readerSettings(*input);
    if (!reader && (!boundary->precision || input->unused())) return;  // float, and no codes were requested
    makeSlot(input, boundarySettings(reader ? reader->settings : Settings(options_), *boundary), kBoundary);
  }

  void visitOutput(ir::Value* output, const std::optional<BoundarySettings>& boundary) {
    if (!boundary || output->dtype() != DType::Float32 || !output->producer()) return;
    const auto made = made_.find(output);
    if (made == made_.end() && !boundary->precision) return;  // float, and no codes were requested
    Settings base = made == made_.end() ? Settings(options_) : slots_[made->second].settings;
    const Settings settings = boundarySettings(base, *boundary);
    const bool wide = made != made_.end() && slots_[made->second].wide && !boundary->precision;
    const size_t slot = readSlot(output, settings, kBoundary, wide);
    if (slots_[slot].form.made) {
      slots_[slot].settings = settings;
      slots_[slot].rank = kBoundary;
    } else {
      slots_[slot].form.leaves = true;
    }
  }

  /// State is kept in the codes in which its new contents are produced. State produced in float stays float.
  void visitState(ir::Value* before, const ir::Value& after) {
    if (before->dtype() != DType::Float32 || after.isConstant()) return;
    const NodeSettings* entry = nullptr;
    if (!after.producer())
      entry = readerSettings(*before);
    else if (effectiveRole(*after.producer()) != Role::Float)
      entry = &assignment_.of(*after.producer());
    if (entry) makeSlot(before, entry->settings, kDefault, entry->wide);
  }

  /// The range is the same before and after a call.
  void joinState(ir::Value* before, ir::Value* after) {
    const auto made = made_.find(before);
    if (made == made_.end()) return;
    const size_t slot = readSlot(after, slots_[made->second].settings, kDefault, slots_[made->second].wide);
    if (!slots_[slot].form.made) slots_[slot].form.leaves = true;
    sets_.join(made->second, slot);
  }

  void visitNodes(const ir::Graph& graph) {
    for (ir::Node* node : graph.nodes()) {
      if (node->is(aten::scanDef()))
        visitLoop(*node);
      else
        visit(*node);
    }
  }

  /// Inputs and results of a loop have one range on both sides of its border and in all iterations.
  void visitLoop(ir::Node& node) {
    const aten::Scan scan(node);
    const ir::Graph& body = node.region(0);
    for (size_t i = 0; i < body.inputs().size(); ++i) {
      ir::Value *outside = node.operands()[i], *inside = body.inputs()[i];
      if (i < scan.carried) {
        visitState(inside, *body.outputs()[i]);
      } else if (const NodeSettings* reader = readerSettings(*inside);
                 reader && inside->dtype() == DType::Float32) {
        makeSlot(inside, reader->settings, kDefault, reader->wide);
      }
      const auto made = made_.find(inside);
      if (made == made_.end()) continue;
      const size_t own = made->second;
      slots_[own].form.taken = true;
      const size_t read = readSlot(outside, slots_[own].settings, kDefault, slots_[own].wide);
      if (!slots_[read].form.made) slots_[read].form.readers.push_back({&node, static_cast<uint32_t>(i)});
      reads_[{&node, i}] = read;
      sets_.join(own, read);
    }
    visitNodes(body);
    shareSteps(body);
    for (size_t i = 0; i < body.outputs().size(); ++i) {
      ir::Value* inside = body.outputs()[i];
      if (i < scan.carried) joinState(body.inputs()[i], inside);
      const auto made = made_.find(inside);
      if (made == made_.end() || inside->isInput()) continue;
      const size_t own = made->second;
      sets_.join(own, makeSlot(node.result(i), slots_[own].settings, kDefault, slots_[own].wide));
    }
  }

  void visit(ir::Node& node) {
    const Role role = effectiveRole(node);
    if (role == Role::Float) return;
    const NodeSettings& entry = assignment_.of(node);
    const Rank rank = entry.named ? kNamed : kDefault;
    std::vector<size_t> touched;
    for (size_t i = 0; i < node.operands().size(); ++i) {
      ir::Value* value = node.operands()[i];
      if (!value || value->dtype() != DType::Float32 || isWeightOperand(node, i) || staysUnquantized(*value))
        continue;
      const size_t slot = apart_.count({&node, i}) != 0 ? addSlot(value, false, entry.settings, rank)
                                                        : readSlot(value, entry.settings, rank, entry.wide);
      if (!slots_[slot].form.made) slots_[slot].form.readers.push_back({&node, static_cast<uint32_t>(i)});
      reads_[{&node, i}] = slot;
      touched.push_back(slot);
    }
    for (ir::Value* value : node.results()) {
      if (value->dtype() != DType::Float32 || staysUnquantized(*value)) continue;
      const size_t result = makeSlot(value, entry.settings, rank, entry.wide);
      if (role == Role::Shared) touched.push_back(result);
    }
    if (role == Role::Own) return;
    for (size_t i = 1; i < touched.size(); ++i) sets_.join(touched[0], touched[i]);
  }

  /// Whether a weight stream or a table depends on the scale of the value.
  static bool shapesConstants(const ir::Value& value) {
    const auto does = [](const ir::Node& node) { return asWeighted(node) || isFunction(node); };
    return (value.producer() && does(*value.producer())) ||
           std::any_of(value.uses().begin(), value.uses().end(),
                       [&](const ir::Use& use) { return does(*use.node); });
  }

  /// If steps of a recurrence can share weights and tables, their values get the same ranges.
  void shareSteps(const ir::Graph& graph) {
    for (const auto& [one, other] : successiveValues(graph)) {
      const auto a = made_.find(one), b = made_.find(other);
      if (a == made_.end() || b == made_.end() || !shapesConstants(*one)) continue;
      if (slots_[a->second].settings.precision == slots_[b->second].settings.precision &&
          slots_[a->second].wide == slots_[b->second].wide)
        sets_.join(a->second, b->second);
    }
  }

  /// The settings of a group are those of its highest-ranking member, or the first of several.
  void settle(Group& group, const std::vector<size_t>& members, std::vector<Diagnostic>& warnings) const {
    size_t chosen = members.front();
    for (size_t i : members) {
      if (slots_[i].rank > slots_[chosen].rank) chosen = i;
    }
    const Slot& decides = slots_[chosen];
    group.precision = decides.settings.precision;
    group.wide = decides.wide;
    group.scheme = decides.settings.scheme;
    group.observer = decides.settings.observer;
    if (decides.rank == kDefault) return;
    for (size_t i : members) {
      const Settings& other = slots_[i].settings;
      if (slots_[i].rank == kDefault || (other.scheme == group.scheme && other.observer == group.observer))
        continue;
      warnings.push_back(
          {fmt::format("shares a range with {}, for which other settings are requested; those of {} apply",
                       nameOf(*slots_[i].form.value), nameOf(*decides.form.value)),
           "", "", nameOf(*decides.form.value)});
      return;
    }
  }

  static std::string nameOf(const ir::Value& value) { return value.name.empty() ? "a constant" : value.name; }

  static void findWidened(const Annotation& annotation, Group& group) {
    if (group.forms.size() != 1 || group.forms[0].made || group.wide || group.precision != Precision::Int16x8)
      return;
    const auto made = annotation.producedIn.find(group.forms[0].value);
    if (made != annotation.producedIn.end() && annotation.groups[made->second].precision == Precision::Int8) {
      group.widened = made->second;
    }
  }

  static std::optional<double> prequantizedScaleOf(const Group& group) {
    if (group.precision != Precision::Int16x8) return std::nullopt;
    double scale = 0;
    for (const Form& form : group.forms) {
      const ir::Node* node = form.value->producer();
      if (const auto prequantized = ir::dynCast<aten::DequantizePerTensor>(node);
          prequantized && !form.made) {
        const bool narrow = prequantized.input()->dtype() == DType::Int8;
        if (!narrow && (prequantized.input()->dtype() != DType::Int16 || prequantized.zeroPoint() != 0))
          return std::nullopt;
        const double own = narrow ? prequantized.scale() * 0x1p-7 : prequantized.scale();
        if (group.wide && scale != 0 && own != scale) return std::nullopt;
        scale = std::max(scale, own);
      } else if (!form.made || !node || roleOf(*node) != Role::Shared) {
        return std::nullopt;
      }
    }
    // With extreme scales, products of float32 scales would be 0 or infinite.
    return scale > 0x1p-60 && scale < 0x1p60 ? std::optional(scale) : std::nullopt;
  }

  const Assignment& assignment_;
  const Options& options_;
  const Reads& apart_;
  Sets sets_;
  std::vector<Slot> slots_;
  std::unordered_map<const ir::Value*, size_t> made_;
  std::unordered_map<const ir::Value*, bool> fusedIntoClamp_;
  std::map<std::tuple<const ir::Value*, Precision, bool>, size_t> readForms_;
  std::map<std::pair<const ir::Node*, size_t>, size_t> reads_;
};

}  // namespace

std::optional<size_t> Annotation::groupOf(const ir::Value* value) const {
  if (const auto made = producedIn.find(value); made != producedIn.end()) return made->second;
  for (size_t g = 0; g < groups.size(); ++g) {
    for (const Form& form : groups[g].forms) {
      if (form.value == value) return g;
    }
  }
  return std::nullopt;
}

std::optional<size_t> Annotation::groupOfOperand(const ir::Node& node, size_t operand) const {
  const auto it = readIn.find({&node, operand});
  return it == readIn.end() ? std::nullopt : std::optional(it->second);
}

bool isClamp(const ir::Node& node) {
  return aten::factsOf(node).quantize == QuantizeRule::Clamp;
}

bool isRoundingFunction(const ir::Node& node) {
  return aten::factsOf(node).quantize == QuantizeRule::Rounding;
}

bool isTruncation(const ir::Node& node) {
  return aten::factsOf(node).quantize == QuantizeRule::Conversion && roleOf(node) == Role::Compare;
}

namespace {

/// Operators whose result elements are functions of one operand element, of any type.
bool mapsElements(const ir::Node& node) {
  return aten::factsOf(node).quantize == QuantizeRule::Function || isRoundingFunction(node);
}

}  // namespace

bool mayWiden(const Assignment& assignment, const ir::Node& node) {
  const auto entry = assignment.nodes.find(&node);
  return entry != assignment.nodes.end() && !entry->second.named && !entry->second.wide &&
         entry->second.settings.precision == Precision::Int8 && roleOf(node) != Role::Float;
}

bool isFunction(const ir::Node& node) {
  return !node.operands().empty() && node.operands()[0] && node.operands()[0]->dtype() == DType::Float32 &&
         mapsElements(node);
}

std::optional<double> scalingOf(const ir::Node& node) {
  double factor = 0;
  if (const auto multiply = ir::dynCast<aten::MulScalar>(&node)) {
    factor = ir::scalarReal(multiply.other());
  } else if (const auto divide = ir::dynCast<aten::DivScalar>(&node)) {
    factor = 1 / ir::scalarReal(divide.other());
  }
  return factor > 0 && std::isfinite(factor) ? std::optional(factor) : std::nullopt;
}

bool isProduct(const ir::Node& node) {
  return ir::isa<aten::Matmul>(&node) || ir::isa<aten::Bmm>(&node) || ir::isa<aten::Mm>(&node);
}

Role roleOf(const ir::Node& node) {
  if (node.is(aten::scanDef())) return Role::Shared;
  switch (aten::factsOf(node).quantize) {
    case QuantizeRule::Float:
      return Role::Float;
    case QuantizeRule::Own:
    case QuantizeRule::Function:
    case QuantizeRule::Rounding:
      return Role::Own;
    case QuantizeRule::Clamp:
    case QuantizeRule::Shared:
      return Role::Shared;
    case QuantizeRule::Compare:
      return Role::Compare;
    case QuantizeRule::Weighted:
      // These operators have no form with computed weights.
      return asWeighted(node) ? Role::Own : Role::Float;
    case QuantizeRule::Norm:
      // Weights have become separate operators (decompose::forNpu).
      return std::all_of(node.operands().begin() + 1, node.operands().end(),
                         [](const ir::Value* weight) { return !weight; })
                 ? Role::Own
                 : Role::Float;
    case QuantizeRule::Conversion:
      // Integers converted to float get a range; conversions between float types compute nothing.
      if (!isFloat(node.operands()[0]->dtype())) return Role::Own;
      return isFloat(node.result()->dtype()) ? Role::Float : Role::Compare;
  }
  return Role::Float;
}

int64_t WeightedOp::channelDim() const {
  const int64_t rank = node->result()->rank();
  if (ir::isa<aten::Linear>(node)) return rank - 1;
  return rank - (weight->rank() - 2) - 1;  // before the spatial dimensions, batched or not
}

int64_t WeightedOp::elementsPerChannel() const {
  int64_t count = 1;
  for (int64_t d = channelDim() + 1; d < node->result()->rank(); ++d) count *= node->result()->dim(d);
  return count;
}

std::optional<WeightedOp> asWeighted(const ir::Node& node) {
  WeightedOp weighted;
  if (const auto linear = ir::dynCast<aten::Linear>(&node)) {
    weighted = {linear.node(), linear.input(), linear.weight(), linear.bias(), 0};
  } else if (const auto conv = aten::asConvolution(&node)) {
    weighted = {conv->node, conv->input, conv->weight, conv->bias, conv->weightChannelAxis()};
  } else {
    return std::nullopt;
  }
  if (!weighted.weight->isConstant() || (weighted.bias && !weighted.bias->isConstant())) return std::nullopt;
  return weighted;
}

Annotation annotate(const ir::Graph& graph, const Assignment& assignment, const Options& options,
                    const Reads& apart) {
  return Annotator(graph, assignment, options, apart).finish();
}

}  // namespace carina::quantize
