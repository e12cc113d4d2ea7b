// SPDX-License-Identifier: Apache-2.0
// A TensorFlow Lite network around its NPU parts, with one arena plan.
#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "npu/isa/payload.hpp"
#include "pipeline/tflite_network.hpp"
#include "tfl/ops.hpp"
#include "tflite/arena_plan.hpp"
#include "tflite/control_flow.hpp"
#include "tflite/rewriter.hpp"

namespace carina::pipeline {
namespace {

/// Parts and tensors of all subgraphs share the arena. A part's inputs and outputs are placed where its
/// commands expect them: a tensor of two parts ties their positions together, or is copied before the second
/// if that is impossible. Tensors are numbered consecutively: those of the first subgraph, those of the next,
/// then copies.
class ModelAssembler {
 public:
  explicit ModelAssembler(const Build& build)
      : build_(build), source_(*build.tflite->source), order_(source_.model.subgraphs.size()) {
    rewrite_.source = source_.file->bytes();
    for (size_t g = 0; g < source_.network.subgraphs.size(); ++g) {
      const tflite::PartialSubgraph& subgraph = source_.network.subgraphs[g];
      order_[subgraph.index] = g;
      rewrite_.subgraphs.push_back({subgraph.index, {}, {}, {}});
      first_.push_back(count_);
      count_ += static_cast<int32_t>(fileOf(g).tensors.size());
    }
  }

  Result<std::string> run() {
    CARINA_RETURN_IF_ERROR(takeOperators());
    tieParts();
    placeAll();
    return tflite::rewriteModel(rewrite_);
  }

 private:
  /// A part's tensor and its offset in the part's own memory.
  struct Io {
    int32_t tensor = 0;
    int64_t offset = 0, bytes = 0;
  };
  /// Steps, inclusive. Step 0 is the start of an inference.
  struct Life {
    int32_t first = -1, last = -1;
  };
  struct Part {
    const compiler::CompiledProgram* compiled = nullptr;
    size_t subgraph = 0;  // in rewrite_.subgraphs
    size_t position = 0;  // among its operators
    std::vector<Io> inputs, outputs;
    Life life;
    size_t group = 0;      // of parts at fixed distances from each other
    int64_t distance = 0;  // of its memory from that of the group
  };

  const tflite::Subgraph& fileOf(size_t g) const {
    return source_.model.subgraphs[source_.network.subgraphs[g].index];
  }
  /// The tensor of the file that a tensor is, or is a copy of.
  int32_t originalOf(int32_t tensor) const {
    return tensor < count_ ? tensor : copies_[static_cast<size_t>(tensor - count_)];
  }
  size_t subgraphOf(int32_t tensor) const {
    return static_cast<size_t>(std::upper_bound(first_.begin(), first_.end(), originalOf(tensor)) -
                               first_.begin()) -
           1;
  }
  const tflite::Tensor& described(int32_t tensor) const {
    const size_t g = subgraphOf(tensor);
    return fileOf(g).tensors[static_cast<size_t>(originalOf(tensor) - first_[g])];
  }

  Status takeOperators() {
    std::unordered_map<const ir::Location*, size_t> operators;
    for (size_t g = 0; g < first_.size(); ++g) {
      const tflite::PartialSubgraph& subgraph = source_.network.subgraphs[g];
      for (size_t i = 0; i < subgraph.names.size(); ++i) {
        if (!subgraph.names[i].empty())
          tensors_.emplace(subgraph.names[i], first_[g] + static_cast<int32_t>(i));
      }
      for (size_t i = 0; i < subgraph.operators.size(); ++i)
        operators.emplace(subgraph.operators[i].get(), i);
      for (const size_t i : subgraph.folded)
        foldedMakers_[g].emplace(fileOf(g).operators[i].outputs.front(), i);
    }
    size_t g = 0;
    for (const ir::Node* node : build_.tflite->graph.nodes()) {
      if (ir::isa<tfl::Subgraph>(node)) {
        takeFolded(g, fileOf(g).outputs);
        ++g;
      }
      if (tflite::isSubgraphEnd(*node)) continue;
      if (node->is(partition::delegateCallDef())) {
        CARINA_RETURN_IF_ERROR(takePart(g, *node));
      } else {
        const size_t index = operators.at(node->location().get());
        takeFolded(g, fileOf(g).operators[index].inputs);
        rewrite_.subgraphs[g].operators.push_back(tflite::KeptOperator{index});
      }
    }
    takeFolded(g, fileOf(g).outputs);
    return {};
  }

  /// Operators whose results are constants of the graph are kept if an operator that stays, or an output,
  /// uses such a tensor.
  void takeFolded(size_t g, const std::vector<int32_t>& tensors) {
    std::map<int32_t, size_t>& makers = foldedMakers_[g];
    std::set<size_t> needed;
    std::vector<int32_t> open = tensors;
    while (!open.empty()) {
      const auto maker = makers.find(open.back());
      open.pop_back();
      if (maker == makers.end()) continue;
      const std::vector<int32_t>& inputs = fileOf(g).operators[maker->second].inputs;
      open.insert(open.end(), inputs.begin(), inputs.end());
      needed.insert(maker->second);
      makers.erase(maker);
    }
    for (const size_t index : needed) rewrite_.subgraphs[g].operators.push_back(tflite::KeptOperator{index});
  }

  Status takePart(size_t g, const ir::Node& call) {
    Part part;
    part.compiled = &build_.compiled[parts_.size()];
    const compiler::CompiledProgram& compiled = *part.compiled;
    CARINA_TRY(std::vector<uint8_t> payload, npu::buildPayload(*compiled.machine.target, compiled.commands));
    payloads_.push_back(std::make_unique<std::vector<uint8_t>>(std::move(payload)));
    for (size_t i = 0; i < compiled.inputs.size(); ++i)
      part.inputs.push_back(
          {tensors_.at(call.operands()[i]->name), compiled.inputs[i].offset, compiled.inputs[i].bytes});
    std::vector<int32_t> given;
    for (const int32_t input : fileOf(g).inputs) given.push_back(first_[g] + input);
    for (size_t i = 0; i < compiled.outputs.size(); ++i) {
      const int32_t tensor = tensors_.at(call.result(i)->name);
      // An input or constant that is also an output exists without the NPU.
      if (!described(tensor).data.empty() || std::count(given.begin(), given.end(), tensor) != 0 ||
          !made_.insert(tensor).second)
        continue;
      part.outputs.push_back({tensor, compiled.outputs[i].offset, compiled.outputs[i].bytes});
    }
    part.subgraph = g;
    part.position = rewrite_.subgraphs[g].operators.size();
    part.group = parts_.size();
    rewrite_.subgraphs[g].operators.emplace_back(
        tflite::NpuOperator{{std::as_bytes(std::span(*payloads_.back())), compiled.constants, 0,
                             compiled.arenaBytes, compiled.cacheBytes},
                            {},
                            {}});
    parts_.push_back(std::move(part));
    return {};
  }

  // Lifetimes
  // -------------------------------------------------------------------------------------------------

  void live(int32_t tensor, Life life) {
    const auto [known, isNew] = lives_.emplace(tensor, life);
    known->second.first = std::min(known->second.first, life.first);
    known->second.last = std::max(known->second.last, life.last);
  }
  void live(size_t g, const std::vector<int32_t>& tensors, Life life) {
    for (const int32_t tensor : tensors) {
      if (tensor >= 0) live(first_[g] + tensor, life);
    }
  }

  /// Steps are counted along one inference, with subgraphs where they first run. An operator that runs
  /// subgraphs lasts until they finish, and so do its inputs and outputs. Copies live between their two
  /// operators.
  void findLives() {
    lives_.clear();
    partAt_.clear();
    for (Part& part : parts_) partAt_[{part.subgraph, part.position}] = &part;
    std::vector<Life> runs(first_.size());
    std::vector<std::vector<size_t>> called(first_.size());
    step_ = -1;
    stepThrough(0, runs, called);
    lastToo(runs, called);
  }

  void stepThrough(size_t g, std::vector<Life>& runs, std::vector<std::vector<size_t>>& called) {
    runs[g].first = ++step_;
    live(g, fileOf(g).inputs, {step_, step_});
    const auto& operators = rewrite_.subgraphs[g].operators;
    for (size_t i = 0; i < operators.size(); ++i) {
      const int32_t step = ++step_;
      if (const auto* kept = std::get_if<tflite::KeptOperator>(&operators[i])) {
        const tflite::Operator& from = fileOf(g).operators[kept->index];
        if (const auto flow = tflite::controlFlowOf(from)) {
          for (const int64_t subgraph : flow->subgraphs) {
            const size_t inner = order_[static_cast<size_t>(subgraph)];
            called[g].push_back(inner);
            if (runs[inner].first < 0) {
              stepThrough(inner, runs, called);
            } else {
              runs[inner].last = ++step_;  // called again
            }
          }
        }
        live(g, from.inputs, {step, step_});
        live(g, from.outputs, {step, step_});
      } else if (const auto* copy = std::get_if<tflite::CopyOperator>(&operators[i])) {
        live(copy->from, {step, step});
        live(copy->to, {step, step});
      } else {
        Part& part = *partAt_.at({g, i});
        part.life = {step, step};
        for (const auto* list : {&part.inputs, &part.outputs}) {
          for (const Io& io : *list) live(io.tensor, part.life);
        }
      }
    }
    ++step_;
    live(g, fileOf(g).outputs, {step_, step_});
  }

  /// A subgraph that runs from several places keeps its memory from the first to the last.
  void lastToo(std::vector<Life>& runs, const std::vector<std::vector<size_t>>& called) {
    // Visit callers before callees: subgraphs are not recursive.
    std::vector<size_t> callers(first_.size());
    for (const auto& list : called) {
      for (const size_t inner : list) ++callers[inner];
    }
    std::vector<size_t> ready = {0};
    while (!ready.empty()) {
      const size_t g = ready.back();
      ready.pop_back();
      for (const size_t inner : called[g]) {
        runs[inner].last = std::max(runs[inner].last, runs[g].last);
        if (--callers[inner] == 0) ready.push_back(inner);
      }
    }
    for (auto& [tensor, life] : lives_) life.last = std::max(life.last, runs[subgraphOf(tensor)].last);
    for (Part& part : parts_) part.life.last = std::max(part.life.last, runs[part.subgraph].last);
  }

  // Groups
  // ----------------------------------------------------------------------------------------------------

  /// The memory of a part while it runs (tensor -1), or one of its tensors during its lifetime; offsets are
  /// relative to the group's first byte.
  struct Piece {
    tflite::ArenaPiece at;
    int32_t tensor = -1;
    const Part* part = nullptr;
  };

  std::vector<Piece> piecesOf(size_t group) const {
    std::vector<Piece> pieces;
    std::set<int32_t> tensors;
    for (const Part& part : parts_) {
      if (part.group != group) continue;
      pieces.push_back(
          {{part.distance, part.compiled->arenaBytes, part.life.first, part.life.last}, -1, &part});
      for (const auto* list : {&part.inputs, &part.outputs}) {
        for (const Io& io : *list) {
          if (!tensors.insert(io.tensor).second) continue;
          const Life life = lives_.at(io.tensor);
          pieces.push_back({{part.distance + io.offset, io.bytes, life.first, life.last}, io.tensor, &part});
        }
      }
    }
    return pieces;
  }

  static bool has(const Part& part, int32_t tensor) {
    const auto isIt = [&](const Io& io) { return io.tensor == tensor; };
    return std::any_of(part.inputs.begin(), part.inputs.end(), isIt) ||
           std::any_of(part.outputs.begin(), part.outputs.end(), isIt);
  }

  /// Whether two pieces, one of each group, are compatible at this distance: disjoint, or a tensor where both
  /// parts expect it.
  static bool agree(const Piece& a, const Piece& b, int64_t distance) {
    if (a.tensor >= 0 && a.tensor == b.tensor) return a.at.offset == b.at.offset + distance;
    if (a.tensor >= 0 && b.tensor < 0 && has(*b.part, a.tensor)) return true;
    if (b.tensor >= 0 && a.tensor < 0 && has(*a.part, b.tensor)) return true;
    return tflite::fitTogether({a.at}, {b.at}, distance);
  }

  /// Joins the group of part p with that of an earlier part that uses the input as well, so that the tensor
  /// is where both expect it. Returns false if that is impossible.
  bool tie(size_t p, const Io& input) {
    const auto other = std::find_if(parts_.begin(), parts_.begin() + static_cast<std::ptrdiff_t>(p),
                                    [&](const Part& part) { return has(part, input.tensor); });
    if (other == parts_.begin() + static_cast<std::ptrdiff_t>(p)) return true;
    const size_t from = parts_[p].group, to = other->group;
    int64_t offset = other->distance;
    for (const auto* list : {&other->inputs, &other->outputs}) {
      for (const Io& io : *list) offset += io.tensor == input.tensor ? io.offset : 0;
    }
    const int64_t distance = offset - parts_[p].distance - input.offset;
    if (from == to) return distance == 0;
    const std::vector<Piece> standing = piecesOf(to), joining = piecesOf(from);
    for (const Piece& a : standing) {
      for (const Piece& b : joining) {
        if (!agree(a, b, distance)) return false;
      }
    }
    for (Part& part : parts_) {
      if (part.group != from) continue;
      part.group = to;
      part.distance += distance;
    }
    return true;
  }

  /// Makes part p read a private copy of `input`.
  void copyInput(size_t p, Io& input) {
    const int32_t to = count_ + static_cast<int32_t>(copies_.size());
    copies_.push_back(originalOf(input.tensor));
    const size_t at = parts_[p].position;
    auto& operators = rewrite_.subgraphs[parts_[p].subgraph].operators;
    operators.insert(operators.begin() + static_cast<std::ptrdiff_t>(at),
                     tflite::CopyOperator{input.tensor, to});
    for (Part& part : parts_)
      part.position += part.subgraph == parts_[p].subgraph && part.position >= at ? 1 : 0;
    input.tensor = to;
    findLives();
  }

  /// Whether a part overwrites one of its inputs: it does not know later users.
  static bool overwrites(const compiler::CompiledProgram& part, const Io& input) {
    const auto meets = [&](int64_t begin, int64_t end) {
      return begin < input.offset + input.bytes && input.offset < end;
    };
    return std::any_of(part.operations.begin(), part.operations.end(),
                       [&](const compiler::OperationRecord& op) {
                         return op.ofmRegion == 1 &&
                                meets(static_cast<int64_t>(op.ofm.address),
                                      static_cast<int64_t>(op.ofm.address + op.ofm.length));
                       }) ||
           std::any_of(part.memory.begin(), part.memory.end(), [&](const compiler::MemoryRecord& record) {
             return record.area == npu::Area::Arena && record.what != "input" &&
                    meets(record.address, record.address + record.bytes);
           });
  }

  void tieParts() {
    findLives();
    for (size_t p = 0; p < parts_.size(); ++p) {
      for (Io& input : parts_[p].inputs) {
        const bool later = lives_.at(input.tensor).last > parts_[p].life.first;
        if ((later && overwrites(*parts_[p].compiled, input)) || !tie(p, input)) copyInput(p, input);
      }
    }
  }

  void placeAll() {
    std::vector<tflite::ArenaBody> bodies;
    std::map<size_t, size_t> bodyOfGroup;
    std::set<int32_t> inParts;
    for (const Part& part : parts_) {
      if (bodyOfGroup.emplace(part.group, bodies.size()).second) {
        tflite::ArenaBody& body = bodies.emplace_back();
        for (const Piece& piece : piecesOf(part.group)) body.push_back(piece.at);
      }
      for (const auto* list : {&part.inputs, &part.outputs}) {
        for (const Io& io : *list) inParts.insert(io.tensor);
      }
    }
    std::vector<int32_t> alone;
    for (const auto& [tensor, life] : lives_) {
      if (inParts.count(tensor) != 0 || !tflite::liesInArena(described(tensor))) continue;
      bodies.push_back(tflite::ArenaBody{
          tflite::ArenaPiece{0, *tflite::tensorBytes(described(tensor)), life.first, life.last}});
      alone.push_back(tensor);
    }
    const std::vector<int64_t> places = tflite::placeBodies(bodies);
    offsets_.assign(static_cast<size_t>(count_) + copies_.size(), tflite::kNotPlanned);
    for (size_t i = 0; i < alone.size(); ++i) offset(alone[i]) = places[bodies.size() - alone.size() + i];
    for (const Part& part : parts_) {
      const int64_t base = places[bodyOfGroup.at(part.group)] + part.distance;
      auto& op = std::get<tflite::NpuOperator>(rewrite_.subgraphs[part.subgraph].operators[part.position]);
      op.memory.scratchOffset = base;
      for (const Io& io : part.inputs) {
        op.inputs.push_back(io.tensor);
        offset(io.tensor) = base + io.offset;
      }
      for (const Io& io : part.outputs) {
        op.outputs.push_back(io.tensor);
        offset(io.tensor) = base + io.offset;
      }
    }
    numberBySubgraph();
  }
  int64_t& offset(int32_t tensor) { return offsets_[static_cast<size_t>(tensor)]; }

  /// Numbers tensors like the rewriter: those of a subgraph from 0, then its copies.
  void numberBySubgraph() {
    std::vector<int32_t> own(offsets_.size());
    for (size_t t = 0; t < offsets_.size(); ++t) {
      const auto tensor = static_cast<int32_t>(t);
      const size_t g = subgraphOf(tensor);
      tflite::RewrittenSubgraph& to = rewrite_.subgraphs[g];
      own[t] = static_cast<int32_t>(to.offsets.size());
      to.offsets.push_back(offsets_[t]);
      if (tensor >= count_) to.copies.push_back(originalOf(tensor) - first_[g]);
    }
    const auto number = [&](int32_t& tensor) { tensor = own[static_cast<size_t>(tensor)]; };
    for (tflite::RewrittenSubgraph& subgraph : rewrite_.subgraphs) {
      for (tflite::RewrittenOperator& op : subgraph.operators) {
        if (auto* npu = std::get_if<tflite::NpuOperator>(&op)) {
          for (auto* list : {&npu->inputs, &npu->outputs}) std::for_each(list->begin(), list->end(), number);
        } else if (auto* copy = std::get_if<tflite::CopyOperator>(&op)) {
          number(copy->from);
          number(copy->to);
        }
      }
    }
  }

  const Build& build_;
  const TfliteSource& source_;
  std::vector<size_t> order_;    // by subgraph of the file: its index among those that run
  std::vector<int32_t> first_;   // by subgraph that runs: its first tensor
  int32_t count_ = 0;            // of the file's tensors
  std::vector<int32_t> copies_;  // the tensors of the file that were copied
  std::unordered_map<std::string, int32_t> tensors_;  // by value name
  std::vector<std::unique_ptr<std::vector<uint8_t>>> payloads_;
  std::vector<Part> parts_;
  std::map<std::pair<size_t, size_t>, Part*> partAt_;         // by subgraph and position
  std::set<int32_t> made_;                                    // by parts
  std::map<size_t, std::map<int32_t, size_t>> foldedMakers_;  // by subgraph and tensor: operators not kept
  int32_t step_ = -1;
  std::map<int32_t, Life> lives_;
  std::vector<int64_t> offsets_;  // by tensor
  tflite::Rewrite rewrite_;
};

}  // namespace

Result<std::string> rewrittenTflite(const Build& build) {
  return ModelAssembler(build).run();
}

}  // namespace carina::pipeline
