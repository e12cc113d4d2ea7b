// SPDX-License-Identifier: Apache-2.0
#include "compiler/legalize/row_tiles.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "base/check.hpp"
#include "base/shape.hpp"
#include "tosa/infer.hpp"
#include "tosa/ops.hpp"

namespace carina::compiler {
namespace {

using Values = std::unordered_set<const ir::Value*>;
using Mapping = std::unordered_map<const ir::Value*, ir::Value*>;

/// The dimension that counts rows: the first one that is not 1; the rank if there is none.
size_t rowAxis(const Shape& shape) {
  return static_cast<size_t>(std::find_if(shape.begin(), shape.end(), [](int64_t d) { return d != 1; }) -
                             shape.begin());
}
int64_t rowsOf(const Shape& shape) {
  return shape[rowAxis(shape)];
}

/// Whether an operand is used row by row; otherwise, every row of the result needs all of it.
enum class Role : uint8_t { Rows, Whole };
using Roles = std::vector<Role>;  // per operand, in flat order

/// Pointwise: dimensions of size 1 broadcast; operands of another rank are parameters.
Roles pointwiseRoles(const ir::Node* node, size_t axis) {
  const Shape& shape = node->result()->shape();
  Roles roles;
  for (const ir::Value* operand : node->operands()) {
    const bool rows = operand->shape().size() == shape.size() && operand->shape()[axis] == shape[axis];
    roles.push_back(rows ? Role::Rows : Role::Whole);
  }
  return roles;
}

/// The first operand by rows, the others as a whole.
Roles firstByRows(const ir::Node* node) {
  Roles roles(node->operands().size(), Role::Whole);
  roles[0] = Role::Rows;
  return roles;
}

bool isPointwiseWindow(const ir::Node* node) {
  const bool depthwise = ir::isa<tosa::DepthwiseConv2d>(node);
  const Shape& weight = node->operand(1)->shape();
  const ir::Ints pad = node->attributeAs<ir::Ints>(0), stride = node->attributeAs<ir::Ints>(1);
  const bool single = depthwise ? weight[0] * weight[1] == 1 : weight[1] * weight[2] == 1;
  return single && stride == ir::Ints{1, 1} && pad == ir::Ints{0, 0, 0, 0};
}

std::optional<Roles> sliceRoles(const ir::Node* node, size_t axis) {
  const auto start = tosa::constantInts(node->operand(1)), size = tosa::constantInts(node->operand(2));
  const Shape& input = node->operand(0)->shape();
  if (!start || !size || rowAxis(input) != axis || (*start)[axis] != 0 || (*size)[axis] != input[axis])
    return std::nullopt;
  return firstByRows(node);
}

std::optional<Roles> transposeRoles(const ir::Node* node, size_t axis) {
  const auto& order = node->attributeAs<ir::Ints>(0);
  for (size_t d = 0; d <= axis; ++d) {
    if (order[d] != static_cast<int64_t>(d)) return std::nullopt;
  }
  return firstByRows(node);
}

/// The roles of a node's operands; nothing if it does not work row by row.
std::optional<Roles> rolesOf(const ir::Node* node) {
  if (!node->regions().empty() || node->results().size() != 1) return std::nullopt;
  const Shape& shape = node->result()->shape();
  const size_t axis = rowAxis(shape);
  // A vector has channels only, for each of which a RESCALE may have a scale of its own.
  if (axis + 1 >= shape.size() || shape[axis] == 0) return std::nullopt;
  const auto sameAxis = [&](const ir::Value* v) {
    return rowAxis(v->shape()) == axis && v->shape()[axis] == shape[axis];
  };
  switch (tosa::opId(node)) {
    case tosa::OpId::Conv2d:
    case tosa::OpId::DepthwiseConv2d:
      if (axis > 2 || !isPointwiseWindow(node)) return std::nullopt;
      return firstByRows(node);
    case tosa::OpId::Matmul: {
      if (axis > 1) return std::nullopt;
      Roles roles = firstByRows(node);
      if (axis == 0) roles[1] = Role::Rows;
      return roles;
    }
    case tosa::OpId::ReduceAll:
    case tosa::OpId::ReduceAny:
    case tosa::OpId::ReduceMax:
    case tosa::OpId::ReduceMin:
    case tosa::OpId::ReduceProduct:
    case tosa::OpId::ReduceSum:
      if (!sameAxis(node->operand(0))) return std::nullopt;
      return firstByRows(node);
    case tosa::OpId::Reshape:
      if (rowAxis(node->operand(0)->shape()) == node->operand(0)->shape().size()) return std::nullopt;
      return firstByRows(node);
    case tosa::OpId::Slice:
      return sliceRoles(node, axis);
    case tosa::OpId::Transpose:
      return transposeRoles(node, axis);
    case tosa::OpId::Concat:
      if (!std::all_of(node->operands().begin(), node->operands().end(), sameAxis)) return std::nullopt;
      if (node->attributeAs<int64_t>(0) <= static_cast<int64_t>(axis)) return std::nullopt;
      return Roles(node->operands().size(), Role::Rows);
    default:
      if (!node->def().has(ir::kPointwise)) return std::nullopt;
      return pointwiseRoles(node, axis);
  }
}

bool isInvariant(const ir::Node* node, const Values& invariant) {
  return !node->results().empty() && invariant.contains(node->result());
}

/// The greatest common divisor of `parts` (0: none yet) and the rows of everything that a node reads and
/// writes by rows.
int64_t partsWith(int64_t parts, const ir::Node* node, const Roles& roles) {
  parts = std::gcd(parts, rowsOf(node->result()->shape()));
  for (size_t i = 0; i < roles.size(); ++i) {
    if (roles[i] == Role::Rows) parts = std::gcd(parts, rowsOf(node->operands()[i]->shape()));
  }
  return parts;
}

/// A run while it grows.
class GrowingRun {
 public:
  explicit GrowingRun(const Values& invariant) : invariant_(&invariant) {}

  /// Adds the next node if it belongs to the run.
  bool add(const ir::Node* node) {
    if (isInvariant(node, *invariant_)) return append(node);
    const std::optional<Roles> roles = rolesOf(node);
    if (!roles) return false;
    for (size_t i = 0; i < roles->size(); ++i) {
      if ((*roles)[i] == Role::Whole && rows_.contains(node->operands()[i])) return false;
    }
    const int64_t parts = partsWith(parts_, node, *roles);
    if (parts < 2) return false;
    parts_ = parts;
    rows_.insert(node->result());
    return append(node);
  }
  const RowRun& run() const { return run_; }
  bool worthwhile() const { return rows_.size() > 1; }

 private:
  bool append(const ir::Node* node) {
    if (!run_.first) run_.first = node;
    run_.last = node;
    return true;
  }

  RowRun run_;
  int64_t parts_ = 0;
  Values rows_;
  const Values* invariant_;
};

/// Rows [begin, end) of a constant.
Tensor rowsOfConstant(const Tensor& tensor, int64_t begin, int64_t end) {
  Shape shape = tensor.shape();
  const size_t axis = rowAxis(shape);
  const int64_t row = tensor.numBytes() / shape[axis];
  shape[axis] = end - begin;
  Tensor part = Tensor::uninitialized(tensor.dtype(), shape);
  std::memcpy(part.mutableBytes().data(), tensor.bytes().data() + begin * row,
              static_cast<size_t>((end - begin) * row));
  return part;
}

ir::Node* cloneValid(const ir::Node& node, ir::Graph& target, Mapping& mapping) {
  const auto copy = ir::cloneNode(node, target, mapping);
  CARINA_CHECK(copy.ok(), "cloning a valid node failed");
  return *copy;
}

/// Copies one run into a graph, tile by tile.
class Tiler {
 public:
  Tiler(TiledGraph& target, Mapping& mapping, const Values& invariant, const RowTiles& tiles)
      : target_(target.graph), names_(target.pieces), mapping_(mapping), tiles_(tiles) {
    for (const ir::Node* node = tiles.first;; node = node->next()) {
      if (isInvariant(node, invariant)) {
        cloneValid(*node, target_, mapping);
      } else {
        nodes_.push_back(node);
        inside_.insert(node->result());
        parts_ = partsWith(parts_, node, *rolesOf(node));
      }
      if (node == tiles.last) break;
    }
  }

  void run() {
    const int64_t size = partsPerTile(parts_, tiles_.count);
    for (int64_t begin = 0; begin < parts_; begin += size) addTile(begin, std::min(parts_, begin + size));
    for (const ir::Node* node : nodes_) {
      const ir::Value* result = node->result();
      if (!isReadOutside(result)) continue;
      const ir::Builder builder(target_, nullptr, node->location());
      ir::Value* joined =
          tosa::Concat::create(builder, pieces_.at(result), static_cast<int64_t>(rowAxis(result->shape())));
      joined->name = result->name;
      joined->quantization = result->quantization;
      mapping_[result] = joined;
    }
  }

 private:
  bool isReadOutside(const ir::Value* value) const {
    return value->isGraphOutput() ||
           std::any_of(value->uses().begin(), value->uses().end(), [&](const ir::Use& use) {
             return use.node->results().empty() || !inside_.contains(use.node->result());
           });
  }

  /// Parts [begin, end) of all rows.
  void addTile(int64_t begin, int64_t end) {
    tile_.clear();
    for (const ir::Node* node : nodes_) {
      const Roles roles = *rolesOf(node);
      ir::NodeSpec spec;
      spec.def = &node->def();
      spec.location = node->location();
      size_t flat = 0;
      for (size_t i = 0; i < node->def().operands.size(); ++i) {
        auto& group = spec.operands.emplace_back();
        for (const ir::Value* operand : node->operandGroup(i)) {
          group.push_back(roles[flat] == Role::Rows ? rows(operand, begin, end, node) : mapping_.at(operand));
          ++flat;
        }
      }
      Shape shape = node->result()->shape();
      const size_t axis = rowAxis(shape);
      const int64_t ratio = shape[axis] / parts_;
      shape[axis] = (end - begin) * ratio;
      if (ir::isa<tosa::Reshape>(node)) spec.operands[1] = {target_.addConstant(tosa::shapeTensor(shape))};
      if (ir::isa<tosa::Slice>(node)) spec.operands[2] = {target_.addConstant(tosa::shapeTensor(shape))};
      for (size_t i = 0; i < node->def().attributes.size(); ++i)
        spec.attributes.push_back(node->attribute(i));
      // Not every type follows from the operands: that of a CAST does not.
      ir::Type& type = spec.types.emplace_back(node->result()->type);
      type.shape = shape;
      const auto created = target_.create(std::move(spec));
      CARINA_CHECK(created.ok(), "a tile of a valid node is valid");
      ir::Value* result = (*created)->result();
      CARINA_CHECK(result->shape() == shape, "a tile has the rows of its inputs");
      result->quantization = node->result()->quantization;
      nameAfter(*node->result(), begin * ratio, *result);
      tile_[node->result()] = result;
      pieces_[node->result()].push_back(result);
    }
  }

  void nameAfter(const ir::Value& whole, int64_t firstRow, ir::Value& piece) {
    if (whole.name.empty()) return;
    piece.name = fmt::format("{}.rows{}", whole.name, firstRow);
    const int64_t row = whole.numElements() / rowsOf(whole.shape());
    names_.push_back({piece.name, whole.name, firstRow * row});
  }

  /// The rows of an operand that parts [begin, end) need.
  ir::Value* rows(const ir::Value* operand, int64_t begin, int64_t end, const ir::Node* reader) {
    const auto known = tile_.find(operand);
    if (known != tile_.end()) return known->second;
    Shape start(operand->shape().size(), 0), size = operand->shape();
    const size_t axis = rowAxis(size);
    const int64_t ratio = size[axis] / parts_;
    start[axis] = begin * ratio;
    size[axis] = (end - begin) * ratio;
    ir::Value* part = nullptr;
    if (operand->isConstant()) {
      part = target_.addConstant(rowsOfConstant(operand->constant(), begin * ratio, end * ratio));
    } else {
      const ir::Builder builder(target_, nullptr, reader->location());
      part = tosa::Slice::create(builder, mapping_.at(operand), target_.addConstant(tosa::shapeTensor(start)),
                                 target_.addConstant(tosa::shapeTensor(size)));
    }
    part->quantization = operand->quantization;
    return tile_[operand] = part;
  }

  ir::Graph& target_;
  std::vector<RowPiece>& names_;
  Mapping& mapping_;
  const RowTiles& tiles_;
  int64_t parts_ = 0;
  std::vector<const ir::Node*> nodes_;  // those that work row by row
  Values inside_;
  Mapping tile_;                                                          // of the current tile
  std::unordered_map<const ir::Value*, std::vector<ir::Value*>> pieces_;  // of all tiles so far
};

void copyValue(ir::Graph& target, Mapping& mapping, const ir::Value* value) {
  if (!value || mapping.contains(value)) return;
  ir::Value* copy = value->isConstant() ? target.addConstant(value->constant(), value->name)
                                        : target.addInput(value->type, value->name);
  copy->quantization = value->quantization;
  mapping[value] = copy;
}

/// Copies the inputs and constants of a graph.
void copyEnds(ir::Graph& target, Mapping& mapping, const ir::Graph& source) {
  for (const ir::Value* input : source.inputs()) copyValue(target, mapping, input);
  for (const auto& constant : source.constants()) copyValue(target, mapping, constant.get());
}

/// Values that nodes compute from constants only.
Values invariantValues(const ir::Graph& tosa) {
  Values invariant;
  for (const ir::Node* node : tosa.nodes()) {
    if (!node->def().has(ir::kPure) || !node->regions().empty()) continue;
    const auto isConstant = [&](const ir::Value* v) { return v->isConstant() || invariant.contains(v); };
    if (!std::all_of(node->operands().begin(), node->operands().end(), isConstant)) continue;
    invariant.insert(node->results().begin(), node->results().end());
  }
  return invariant;
}

}  // namespace

int64_t partsPerTile(int64_t parts, int64_t count) {
  constexpr int64_t kManyParts = 8;
  const int64_t size = ceilDiv(parts, count);
  // An even number of rows fills the microblocks of two rows.
  return size > kManyParts ? roundUp(size, 2) : size;
}

ir::Graph withLongRuns(const ir::Graph& tosa) {
  constexpr size_t kMostMoved = 32;  // per run: values of what comes before it are alive all along
  const Values invariant = invariantValues(tosa);
  ir::Graph ordered(tosa.name);
  Mapping mapping;
  copyEnds(ordered, mapping, tosa);
  GrowingRun run(invariant);
  std::vector<const ir::Node*> members;
  Values inRun;
  size_t moved = 0;
  const auto finish = [&] {
    for (const ir::Node* node : members) cloneValid(*node, ordered, mapping);
    members.clear();
    inRun.clear();
    moved = 0;
    run = GrowingRun(invariant);
  };
  const auto join = [&](const ir::Node* node) {
    if (!run.add(node)) return false;
    members.push_back(node);
    inRun.insert(node->results().begin(), node->results().end());
    return true;
  };
  const auto isIndependent = [&](const ir::Node* node) {
    return node->def().has(ir::kPure) && node->regions().empty() &&
           std::none_of(node->operands().begin(), node->operands().end(),
                        [&](const ir::Value* v) { return inRun.contains(v); });
  };
  for (const ir::Node* node : tosa.nodes()) {
    if (join(node)) continue;
    if (!members.empty() && moved < kMostMoved && isIndependent(node)) {
      ++moved;
    } else {
      finish();
      if (join(node)) continue;
      run = GrowingRun(invariant);
    }
    cloneValid(*node, ordered, mapping);
  }
  finish();
  std::vector<ir::Value*> outputs;
  for (const ir::Value* output : tosa.outputs()) outputs.push_back(mapping.at(output));
  ordered.setOutputs(std::move(outputs));
  return ordered;
}

RowTiling::RowTiling(const ir::Graph& tosa) : tosa_(tosa), invariant_(invariantValues(tosa)) {}

std::vector<RowRun> RowTiling::runs() const {
  std::vector<RowRun> runs;
  GrowingRun run(invariant_);
  const auto finish = [&] {
    if (run.worthwhile()) runs.push_back(run.run());
    run = GrowingRun(invariant_);
  };
  for (const ir::Node* node : tosa_.nodes()) {
    if (run.add(node)) continue;
    finish();
    if (!run.add(node)) run = GrowingRun(invariant_);
  }
  finish();
  return runs;
}

int64_t RowTiling::parts(const ir::Node* first, const ir::Node* last) const {
  int64_t parts = 0;
  for (const ir::Node* node = first;; node = node->next()) {
    if (!isInvariant(node, invariant_)) parts = partsWith(parts, node, *rolesOf(node));
    if (node == last) return parts;
  }
}

TiledGraph RowTiling::tiled(std::span<const RowTiles> tiles) const {
  TiledGraph result{ir::Graph(tosa_.name), {}};
  ir::Graph& tiled = result.graph;
  Mapping mapping;
  copyEnds(tiled, mapping, tosa_);
  std::unordered_map<const ir::Node*, const RowTiles*> tilesFrom;
  for (const RowTiles& t : tiles) tilesFrom[t.first] = &t;
  for (const ir::Node* node = tosa_.firstNode(); node; node = node->next()) {
    const auto found = tilesFrom.find(node);
    if (found == tilesFrom.end()) {
      cloneValid(*node, tiled, mapping);
    } else {
      Tiler(result, mapping, invariant_, *found->second).run();
      node = found->second->last;
    }
  }
  std::vector<ir::Value*> outputs;
  for (const ir::Value* output : tosa_.outputs()) outputs.push_back(mapping.at(output));
  tiled.setOutputs(std::move(outputs));
  tiled.eraseUnusedConstants();
  return result;
}

ir::Graph RowTiling::extract(const ir::Node* first, const ir::Node* last,
                             std::vector<const ir::Node*>& copies) const {
  ir::Graph part(tosa_.name);
  Mapping mapping;
  const auto copyOperands = [&](const ir::Node* node, const auto& recurse) -> void {
    for (const ir::Value* operand : node->operands()) {
      if (invariant_.contains(operand) && !mapping.contains(operand)) {
        recurse(operand->producer(), recurse);
        cloneValid(*operand->producer(), part, mapping);
      }
      copyValue(part, mapping, operand);
    }
  };
  std::vector<const ir::Node*> nodes;
  for (const ir::Node* node = first;; node = node->next()) {
    nodes.push_back(node);
    copyOperands(node, copyOperands);
    copies.push_back(cloneValid(*node, part, mapping));
    if (node == last) break;
  }
  const std::unordered_set<const ir::Node*> members(nodes.begin(), nodes.end());
  std::vector<ir::Value*> outputs;
  for (const ir::Node* node : nodes) {
    for (const ir::Value* result : node->results()) {
      const bool outside = result->isGraphOutput() ||
                           std::any_of(result->uses().begin(), result->uses().end(),
                                       [&](const ir::Use& use) { return !members.contains(use.node); });
      if (outside) outputs.push_back(mapping.at(result));
    }
  }
  part.setOutputs(std::move(outputs));
  return part;
}

}  // namespace carina::compiler
