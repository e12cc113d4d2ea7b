// SPDX-License-Identifier: Apache-2.0
// A network of TensorFlow Lite around its NPU parts, with one plan for the arena.
#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "npu/isa/payload.hpp"
#include "pipeline/tflite_network.hpp"
#include "tflite/arena_plan.hpp"
#include "tflite/rewriter.hpp"

namespace carina::pipeline {
namespace {

/// Parts and tensors share the arena. A part's inputs and outputs lie where its commands expect them: a
/// tensor of two parts ties these together, or is copied in front of the second where that cannot be.
class ModelAssembler {
 public:
  explicit ModelAssembler(const Build& build)
      : build_(build),
        source_(*build.tflite->source),
        subgraph_(source_.model.subgraphs.front()),
        count_(static_cast<int32_t>(subgraph_.tensors.size())) {
    rewrite_.source = source_.file->bytes();
  }

  Result<std::string> run() {
    CARINA_RETURN_IF_ERROR(takeOperators());
    tieParts();
    placeAll();
    return tflite::rewriteModel(rewrite_);
  }

 private:
  /// A part's tensor and its place among the part's own memory.
  struct Io {
    int32_t tensor = 0;
    int64_t offset = 0, bytes = 0;
  };
  struct Part {
    const compiler::CompiledProgram* compiled = nullptr;
    size_t position = 0;  // in rewrite_.operators
    std::vector<Io> inputs, outputs;
    size_t group = 0;      // of parts that keep their distance
    int64_t distance = 0;  // of its memory from that of the group
  };
  struct Life {
    int32_t first = -1, last = -1;
  };

  Result<int32_t> tensorOf(const ir::Value& value) const {
    const auto known = tensors_.find(value.name);
    CARINA_CHECK(known != tensors_.end(), "values between parts are tensors of the file");
    return known->second;
  }

  Status takeOperators() {
    for (size_t i = 0; i < source_.network.names.size(); ++i) {
      if (!source_.network.names[i].empty())
        tensors_.emplace(source_.network.names[i], static_cast<int32_t>(i));
    }
    std::unordered_map<const ir::Location*, size_t> operators;
    for (size_t i = 0; i < source_.network.operators.size(); ++i)
      operators.emplace(source_.network.operators[i].get(), i);
    for (const ir::Node* node : build_.tflite->graph.nodes()) {
      if (node->is(partition::delegateCallDef())) {
        CARINA_RETURN_IF_ERROR(takePart(*node));
      } else {
        rewrite_.operators.push_back(tflite::KeptOperator{operators.at(node->location().get())});
      }
    }
    return {};
  }

  Status takePart(const ir::Node& call) {
    Part part;
    part.compiled = &build_.compiled[parts_.size()];
    const compiler::CompiledProgram& compiled = *part.compiled;
    CARINA_TRY(std::vector<uint8_t> payload, npu::buildPayload(*compiled.machine.target, compiled.commands));
    payloads_.push_back(std::make_unique<std::vector<uint8_t>>(std::move(payload)));
    for (size_t i = 0; i < compiled.inputs.size(); ++i) {
      CARINA_TRY(const int32_t tensor, tensorOf(*call.operands()[i]));
      part.inputs.push_back({tensor, compiled.inputs[i].offset, compiled.inputs[i].bytes});
    }
    for (size_t i = 0; i < compiled.outputs.size(); ++i) {
      CARINA_TRY(const int32_t tensor, tensorOf(*call.result(i)));
      // An input or constant that is an output as well is there without the NPU.
      const tflite::Tensor& described = subgraph_.tensors[static_cast<size_t>(tensor)];
      const auto& given = subgraph_.inputs;
      if (!described.data.empty() || std::count(given.begin(), given.end(), tensor) != 0 ||
          !made_.insert(tensor).second)
        continue;
      part.outputs.push_back({tensor, compiled.outputs[i].offset, compiled.outputs[i].bytes});
    }
    part.position = rewrite_.operators.size();
    part.group = parts_.size();
    rewrite_.operators.emplace_back(
        tflite::NpuOperator{{std::as_bytes(std::span(*payloads_.back())), compiled.constants, 0,
                             compiled.arenaBytes, compiled.cacheBytes},
                            {},
                            {}});
    parts_.push_back(std::move(part));
    return {};
  }

  // Lifetimes
  // -------------------------------------------------------------------------------------------------

  void live(int32_t tensor, int32_t step) {
    if (tensor < 0) return;
    const auto [known, isNew] = lives_.emplace(tensor, Life{step, step});
    known->second.first = std::min(known->second.first, step);
    known->second.last = std::max(known->second.last, step);
  }

  /// By the operators as they stand; copies are live between their two operators.
  void findLives() {
    lives_.clear();
    for (const int32_t input : subgraph_.inputs) live(input, -1);
    std::map<size_t, const Part*> partAt;
    for (const Part& part : parts_) partAt[part.position] = &part;
    for (size_t i = 0; i < rewrite_.operators.size(); ++i) {
      const auto step = static_cast<int32_t>(i);
      const tflite::RewrittenOperator& op = rewrite_.operators[i];
      if (const auto* kept = std::get_if<tflite::KeptOperator>(&op)) {
        const tflite::Operator& from = subgraph_.operators[kept->index];
        for (const int32_t input : from.inputs) live(input, step);
        for (const int32_t output : from.outputs) live(output, step);
      } else if (const auto* copy = std::get_if<tflite::CopyOperator>(&op)) {
        live(copy->from, step);
        live(copy->to, step);
      } else {
        for (const Io& io : partAt.at(i)->inputs) live(io.tensor, step);
        for (const Io& io : partAt.at(i)->outputs) live(io.tensor, step);
      }
    }
    for (const int32_t output : subgraph_.outputs)
      live(output, static_cast<int32_t>(rewrite_.operators.size()));
  }

  // Groups
  // ----------------------------------------------------------------------------------------------------

  /// The memory of a part while it runs (tensor -1), or one of its tensors as long as it is needed; offsets
  /// count from the group's first byte.
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
      const auto step = static_cast<int32_t>(part.position);
      pieces.push_back({{part.distance, part.compiled->arenaBytes, step, step}, -1, &part});
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

  /// Whether one piece of each group may lie so: apart, or a tensor where both parts expect it.
  static bool agree(const Piece& a, const Piece& b, int64_t distance) {
    if (a.tensor >= 0 && a.tensor == b.tensor) return a.at.offset == b.at.offset + distance;
    if (a.tensor >= 0 && b.tensor < 0 && has(*b.part, a.tensor)) return true;
    if (b.tensor >= 0 && a.tensor < 0 && has(*a.part, b.tensor)) return true;
    return tflite::fitTogether({a.at}, {b.at}, distance);
  }

  /// Joins the group of part p with that of an earlier part that has the input, too, so that the tensor lies
  /// where both expect it. Returns false when that cannot be.
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

  /// Reads `input` of part p from a copy of its own.
  void copyInput(size_t p, Io& input) {
    const auto to = count_ + static_cast<int32_t>(rewrite_.copies.size());
    const int32_t like =
        input.tensor < count_ ? input.tensor : rewrite_.copies[static_cast<size_t>(input.tensor - count_)];
    rewrite_.copies.push_back(like);
    const size_t at = parts_[p].position;
    rewrite_.operators.insert(rewrite_.operators.begin() + static_cast<std::ptrdiff_t>(at),
                              tflite::CopyOperator{input.tensor, to});
    for (Part& part : parts_) part.position += part.position >= at ? 1 : 0;
    input.tensor = to;
    findLives();
  }

  /// Whether a part leaves other things where an input was: it does not know who needs that later.
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
        const bool later = lives_.at(input.tensor).last > static_cast<int32_t>(parts_[p].position);
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
      const int32_t like = tensor < count_ ? tensor : rewrite_.copies[static_cast<size_t>(tensor - count_)];
      const tflite::Tensor& described = subgraph_.tensors[static_cast<size_t>(like)];
      if (inParts.count(tensor) != 0 || !tflite::liesInArena(described)) continue;
      bodies.push_back(
          tflite::ArenaBody{tflite::ArenaPiece{0, *tflite::tensorBytes(described), life.first, life.last}});
      alone.push_back(tensor);
    }
    const std::vector<int64_t> places = tflite::placeBodies(bodies);
    rewrite_.offsets.assign(subgraph_.tensors.size() + rewrite_.copies.size(), tflite::kNotPlanned);
    for (size_t i = 0; i < alone.size(); ++i) offset(alone[i]) = places[bodies.size() - alone.size() + i];
    for (const Part& part : parts_) {
      const int64_t base = places[bodyOfGroup.at(part.group)] + part.distance;
      auto& op = std::get<tflite::NpuOperator>(rewrite_.operators[part.position]);
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
  }
  int64_t& offset(int32_t tensor) { return rewrite_.offsets[static_cast<size_t>(tensor)]; }

  const Build& build_;
  const TfliteSource& source_;
  const tflite::Subgraph& subgraph_;
  int32_t count_;                                     // of the file's tensors
  std::unordered_map<std::string, int32_t> tensors_;  // by name of their value
  std::vector<std::unique_ptr<std::vector<uint8_t>>> payloads_;
  std::vector<Part> parts_;
  std::set<int32_t> made_;  // by parts
  std::map<int32_t, Life> lives_;
  tflite::Rewrite rewrite_;
};

}  // namespace

Result<std::string> rewrittenTflite(const Build& build) {
  return ModelAssembler(build).run();
}

}  // namespace carina::pipeline
