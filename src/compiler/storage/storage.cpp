// SPDX-License-Identifier: Apache-2.0
// Storage of npu values: views and joins as addressing, and the choice of layouts (storage.hpp).
#include "compiler/storage/storage.hpp"

#include <algorithm>
#include <set>

#include "compiler/storage/strided_copy.hpp"

namespace carina::compiler {
namespace {

using npu_ir::Piece;

ir::Ints denseByteStrides(const Shape& shape, int64_t elementBytes) {
  ir::Ints strides = rowMajorStrides(shape);
  for (int64_t& stride : strides) stride *= elementBytes;
  return strides;
}

/// Strides for `to` that visit the same elements in the same order as `from` with `strides`; nothing if there
/// are none.
std::optional<ir::Ints> reshapeStrides(Shape from, ir::Ints strides, const Shape& to) {
  mergeDimensions(from, {&strides});
  ir::Ints result(to.size(), 1);
  size_t group = from.size();
  int64_t left = 1, stride = 0;  // rest of the merged dimension being split, innermost first
  for (size_t d = to.size(); d-- > 0;) {
    if (to[d] == 1) continue;
    if (left == 1) {
      if (group == 0) return std::nullopt;
      --group;
      left = from[group];
      stride = strides[group];
    }
    if (left % to[d] != 0) return std::nullopt;
    result[d] = stride;
    stride *= to[d];
    left /= to[d];
  }
  return result;
}

bool isView(const ir::Value* value) {
  return ir::isa<npu_ir::View>(value->producer());
}
bool isJoin(const ir::Value* value) {
  return ir::isa<npu_ir::Join>(value->producer());
}

/// The start of a chain of reshapes.
ir::Value* reshapeRoot(ir::Value* value) {
  while (auto view = ir::producerAs<npu_ir::View>(value)) {
    if (!isReshape(view)) break;
    value = view.input();
  }
  return value;
}

/// Reshapes cost nothing: views of a reshape become views of the value behind it, and a reshape back to the
/// original shape is replaced by that value.
void foldReshapes(ir::Graph& graph) {
  for (ir::Node* node : graph.nodes()) {
    const auto view = ir::dynCast<npu_ir::View>(node);
    if (!view) continue;
    ir::Value* root = reshapeRoot(view.input());
    if (root != view.input()) node->setOperand(0, root);
    if (isReshape(view) && root->type == node->result()->type && !node->result()->isGraphOutput()) {
      graph.replaceAllUses(node->result(), root);
    }
  }
  graph.eraseDeadNodes();
}

/// The only piece that a VIEW of a JOIN sees, if that piece is dense in the join. `byOffset`: all pieces in
/// the order of their offsets.
const Piece* pieceBehind(const npu_ir::View& view, const std::vector<Piece>& byOffset) {
  const ir::Value* seen = view->result();
  int64_t low = view.offset(), high = low;
  for (size_t d = 0; d < seen->shape().size(); ++d) {
    const int64_t span = view.strides()[d] * (seen->shape()[d] - 1);
    (span < 0 ? low : high) += span;
  }
  const auto behind =
      std::upper_bound(byOffset.begin(), byOffset.end(), low,
                       [](int64_t offset, const Piece& piece) { return offset < piece.offset; });
  if (behind == byOffset.begin()) return nullptr;
  const Piece& piece = *std::prev(behind);
  Shape shape = piece.value->shape();
  ir::Ints strides = piece.strides;
  mergeDimensions(shape, {&strides});
  const bool dense = shape.empty() || (shape.size() == 1 && (strides[0] == 1 || shape[0] == 1));
  if (!dense || high >= piece.offset + piece.value->numElements()) return nullptr;
  return dtypeSize(seen->dtype()) == dtypeSize(piece.value->dtype()) ? &piece : nullptr;
}

/// Joins that are only viewed piece by piece, never as a whole: lets the views read the pieces, so that
/// pieces without views need not be kept.
void readPieces(ir::Graph& graph) {
  bool changed = false;
  for (ir::Node* node : graph.nodes()) {
    if (!ir::isa<npu_ir::Join>(node) || node->result()->isGraphOutput()) continue;
    std::vector<Piece> byOffset = npu_ir::pieces(node);
    std::stable_sort(byOffset.begin(), byOffset.end(),
                     [](const Piece& a, const Piece& b) { return a.offset < b.offset; });
    std::vector<std::pair<ir::Node*, const Piece*>> reads;
    for (const ir::Use& use : node->result()->uses()) {
      const auto view = ir::dynCast<npu_ir::View>(use.node);
      const Piece* piece = view ? pieceBehind(view, byOffset) : nullptr;
      if (!piece) break;
      reads.emplace_back(use.node, piece);
    }
    if (reads.empty() || reads.size() != node->result()->uses().size()) continue;
    for (const auto& [read, piece] : reads) {
      const auto view = ir::cast<npu_ir::View>(read);
      auto builder = ir::Builder::beforeNode(read);
      ir::Value* old = read->result();
      ir::Value* value = npu_ir::createView(builder, piece->value, old->dtype(), old->shape(),
                                            view.offset() - piece->offset, view.strides());
      value->quantization = old->quantization;
      std::swap(value->name, old->name);
      graph.replaceAllUses(old, value);
    }
    changed = true;
  }
  if (!changed) return;
  graph.eraseDeadNodes();
  foldReshapes(graph);
}

/// Number of uses as a piece of a join: 0, 1, or 2 for more.
int joinUses(const ir::Value* value) {
  int count = 0;
  for (const ir::Use& use : value->uses()) {
    if (ir::isa<npu_ir::Join>(use.node) && ++count == 2) break;
  }
  return count;
}

/// Whether a value, or a reshape of it, is an output of the graph.
bool isOutput(const ir::Value* value) {
  if (value->isGraphOutput()) return true;
  for (const ir::Use& use : value->uses()) {
    const auto view = ir::dynCast<npu_ir::View>(use.node);
    if (view && isReshape(view) && isOutput(view->result())) return true;
  }
  return false;
}

/// Replaces a JOIN by one with other pieces.
void replacePieces(ir::Node* join, const std::vector<Piece>& pieces) {
  auto builder = ir::Builder::beforeNode(join);
  ir::Value* old = join->result();
  ir::Value* value = npu_ir::createJoin(builder, pieces, old->type);
  value->quantization = old->quantization;
  std::swap(value->name, old->name);
  join->graph().replaceAllUses(old, value);
  join->graph().erase(join);
}

/// Pieces that copy `piece` from a buffer of its own into the join.
std::vector<Piece> copied(ir::Builder& builder, const Piece& piece) {
  return emitCopies(builder, {piece.value, piece.value->shape(), 0, rowMajorStrides(piece.value->shape()),
                              piece.offset, piece.strides});
}

/// Whether the producer can write its result through the piece's strides.
bool canWriteInto(const Piece& piece) {
  const ir::Node* producer = piece.value->producer();
  if (!producer || isView(piece.value)) return false;
  if (piece.value->rank() == 0) return true;
  if (isJoin(piece.value)) return true;
  return piece.strides.back() == 1 || piece.value->shape().back() == 1;
}

/// Makes all pieces results of operations (or joins) that are written in place, each in one join only; others
/// are copied.
void makePiecesDirect(ir::Graph& graph) {
  for (ir::Node* node : graph.nodes()) {
    if (!ir::isa<npu_ir::Join>(node)) continue;
    auto builder = ir::Builder::beforeNode(node);
    std::vector<Piece> result;
    std::set<const ir::Value*> placed;
    bool changed = false;
    for (const Piece& piece : npu_ir::pieces(node)) {
      Piece direct = piece;
      ir::Value* root = reshapeRoot(piece.value);
      if (root != piece.value && dtypeSize(root->dtype()) == dtypeSize(piece.value->dtype())) {
        if (auto strides = reshapeStrides(piece.value->shape(), piece.strides, root->shape())) {
          direct = {root, piece.offset, *strides};
        }
      }
      const int uses = joinUses(direct.value) + (direct.value == piece.value ? 0 : 1);
      if (canWriteInto(direct) && uses == 1 && !placed.contains(direct.value) && !isOutput(direct.value)) {
        placed.insert(direct.value);
        changed |= direct.value != piece.value;
        result.push_back(std::move(direct));
      } else {
        for (Piece& copy : copied(builder, piece)) result.push_back(std::move(copy));
        changed = true;
      }
    }
    if (changed) replacePieces(node, result);
  }
}

/// Makes graph outputs dense values of their own.
void makeOutputsDense(ir::Graph& graph) {
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    ir::Value* value = graph.outputs()[i];
    const ir::Value* root = reshapeRoot(value);
    if (root->producer() && !isView(root)) continue;
    ir::Builder builder(graph, nullptr, value->producer() ? value->producer()->location() : nullptr);
    const ir::Ints strides = rowMajorStrides(value->shape());
    const auto pieces = emitCopies(builder, {value, value->shape(), 0, strides, 0, strides});
    ir::Value* copy = npu_ir::createJoin(builder, pieces, value->type);
    copy->quantization = value->quantization;
    graph.setOutput(i, copy);
  }
}

/// Accesses of all values; `failed` receives the first VIEW or JOIN found that addressing cannot express.
struct Accesses {
  std::vector<Buffer> buffers;
  std::unordered_map<const ir::Value*, Access> map;
  const ir::Node* failed = nullptr;
  ir::Value* strided = nullptr;           // a result whose channels would not be contiguous
  std::pair<ir::Node*, size_t> reader{};  // an operation that would read such channels, and its operand
};

/// Whether channels (or the elements of a row) are contiguous, as operations and transfers require.
bool contiguous(const Access& access, const ir::Value* value) {
  return access.shape.empty() || access.shape.back() == 1 ||
         access.strides.back() == dtypeSize(value->dtype());
}

/// Whether all elements are contiguous.
bool isDense(const Access& access, const ir::Value* value) {
  const ir::Ints dense = denseByteStrides(access.shape, dtypeSize(value->dtype()));
  for (size_t d = 0; d < dense.size(); ++d) {
    if (access.shape[d] != 1 && access.strides[d] != dense[d]) return false;
  }
  return true;
}

ir::Value* behindViews(ir::Value* value) {
  while (isView(value)) value = value->producer()->operand(0);
  return value;
}

/// Number of operands that an operation reads from memory element by element.
size_t memoryOperands(const ir::Node* node) {
  if (!npu_ir::hasOutputStage(node)) return node->operands().size();
  const bool two =
      ir::isa<npu_ir::Elementwise>(node) || ir::isa<npu_ir::MatMul>(node) || ir::isa<npu_ir::CodedConv>(node);
  return two ? 2 : 1;
}

int addBuffer(Accesses& accesses, const ir::Value* value, BufferKind kind) {
  Buffer buffer;
  buffer.kind = kind;
  buffer.root = value;
  buffer.dtype = value->dtype();
  buffer.elementBytes = dtypeSize(value->dtype());
  buffer.shape = {1, 1, 1, 1};
  const int64_t rank = value->rank();
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t fromEnd = rank - 1 - d;
    if (fromEnd < 3) {
      buffer.shape[static_cast<size_t>(3 - fromEnd)] = value->dim(d);
    } else {
      buffer.shape[0] *= value->dim(d);
    }
  }
  buffer.bytes = value->numElements() * buffer.elementBytes;
  const int index = static_cast<int>(accesses.buffers.size());
  accesses.map[value] = {index, 0, value->shape(), denseByteStrides(value->shape(), buffer.elementBytes)};
  accesses.buffers.push_back(std::move(buffer));
  return index;
}

Accesses computeAccesses(const ir::Graph& graph) {
  Accesses accesses;
  accesses.map.reserve(graph.inputs().size() + graph.constants().size() + graph.numNodes());
  for (const ir::Value* input : graph.inputs()) addBuffer(accesses, input, BufferKind::Input);
  for (const auto& constant : graph.constants()) addBuffer(accesses, constant.get(), BufferKind::Constant);
  // Backwards: a join is placed before its pieces.
  for (const ir::Node* node = graph.lastNode(); node; node = node->previous()) {
    if (ir::isa<npu_ir::View>(node)) continue;
    const ir::Value* value = node->result();
    if (!accesses.map.contains(value)) {
      addBuffer(accesses, value, isOutput(value) ? BufferKind::Output : BufferKind::FeatureMap);
    }
    if (!ir::isa<npu_ir::Join>(node)) continue;
    const Access whole = accesses.map.at(value);
    for (const Piece& piece : npu_ir::pieces(node)) {
      const int64_t bytes = dtypeSize(piece.value->dtype());
      ir::Ints strides = piece.strides;
      for (int64_t& stride : strides) stride *= bytes;
      auto access =
          composeView(whole, dtypeSize(value->dtype()), piece.offset * bytes, strides, piece.value->shape());
      if (!access) {
        accesses.failed = node;
        return accesses;
      }
      accesses.map[piece.value] = *access;
    }
  }
  for (const ir::Node* node : graph.nodes()) {
    const auto view = ir::dynCast<npu_ir::View>(node);
    if (!view) continue;
    const int64_t bytes = dtypeSize(view->result()->dtype());
    ir::Ints strides = view.strides();
    for (int64_t& stride : strides) stride *= bytes;
    auto access = composeView(accesses.map.at(view.input()), dtypeSize(view.input()->dtype()),
                              view.offset() * bytes, strides, view->result()->shape());
    if (!access) {
      accesses.failed = node;
      return accesses;
    }
    accesses.map[view->result()] = *access;
  }
  for (ir::Node* node : graph.nodes()) {
    if (ir::isa<npu_ir::View>(node) || ir::isa<npu_ir::Join>(node)) continue;
    if (!contiguous(accesses.map.at(node->result()), node->result())) {
      accesses.strided = node->result();
      return accesses;
    }
    for (size_t i = 0; i < memoryOperands(node); ++i) {
      const ir::Value* operand = node->operand(i);
      if (operand && !contiguous(accesses.map.at(operand), operand)) {
        accesses.reader = {node, i};
        return accesses;
      }
    }
  }
  return accesses;
}

/// Replaces an operand of a node by a dense copy.
void makeDense(ir::Node* node, size_t operand) {
  ir::Value* value = node->operand(operand);
  auto builder = ir::Builder::beforeNode(node);
  const ir::Ints strides = rowMajorStrides(value->shape());
  const auto pieces = emitCopies(builder, {value, value->shape(), 0, strides, 0, strides});
  ir::Value* dense = npu_ir::createJoin(builder, pieces, value->type);
  for (size_t flat = 0; flat < node->operands().size(); ++flat) {
    if (node->operands()[flat] == value) node->setOperand(flat, dense);
  }
}

/// The join that `value` is a piece of, or null.
ir::Node* joinOf(const ir::Value* value) {
  for (const ir::Use& use : value->uses()) {
    if (ir::isa<npu_ir::Join>(use.node)) return use.node;
  }
  return nullptr;
}

/// The piece that makes the channels of `value` non-contiguous: the value in its join, or a join around that
/// in the next one. A copy of anything further inside would not help.
ir::Value* nonContiguousPiece(ir::Value* value) {
  while (ir::Node* join = joinOf(value)) {
    const auto pieces = npu_ir::pieces(join);
    const auto torn = [&](const Piece& piece) {
      return piece.value == value && value->rank() > 0 && value->shape().back() != 1 &&
             piece.strides.back() != 1;
    };
    if (std::any_of(pieces.begin(), pieces.end(), torn) || !joinOf(join->result())) break;
    value = join->result();
  }
  return value;
}

/// Gives `value`, a piece of some join, a buffer of its own: the join gets copies of it.
Status separate(ir::Value* value) {
  ir::Node* join = joinOf(value);
  if (!join) return fail(Code::NoIntegerForm, "a view of {} cannot be addressed", ir::typeText(value->type));
  auto builder = ir::Builder::beforeNode(join);
  std::vector<Piece> pieces;
  for (const Piece& piece : npu_ir::pieces(join)) {
    if (piece.value != value) {
      pieces.push_back(piece);
      continue;
    }
    for (Piece& copy : copied(builder, piece)) pieces.push_back(std::move(copy));
  }
  replacePieces(join, pieces);
  return {};
}

struct BrickPlace {
  int64_t plane = 0, y = 0, x = 0, c = 0, yStep = 1;
};

/// Position and step of a rank-3 access in bricks of its buffer; nothing if only NHWC can express it.
std::optional<BrickPlace> brickPlace(const Buffer& buffer, const Access& access) {
  const int64_t e = buffer.elementBytes, H = buffer.shape[1], W = buffer.shape[2], C = buffer.shape[3];
  const int64_t strideX = C * e, strideY = W * strideX, plane = H * strideY;
  BrickPlace place;
  if (access.offset % e != 0 || access.shape.size() != 3) return std::nullopt;
  place.plane = access.offset / plane;
  place.y = access.offset % plane / strideY;
  place.x = access.offset % strideY / strideX;
  place.c = access.offset % strideX / e;
  const auto [h, w, c] = std::array<int64_t, 3>{access.shape[0], access.shape[1], access.shape[2]};
  if (place.c % 16 != 0 || place.c + c > C || (c > 1 && access.strides[2] != e)) return std::nullopt;
  if (place.x + w > W || (w > 1 && access.strides[1] != strideX)) return std::nullopt;
  if (h > 1) {
    if (access.strides[0] <= 0 || access.strides[0] % strideY != 0) return std::nullopt;
    place.yStep = access.strides[0] / strideY;
  }
  if (place.y + (h - 1) * place.yStep >= H) return std::nullopt;
  return place;
}

/// Bricks pay off for maps whose depth they pad little.
bool wantsBricks(const Buffer& buffer, Bricks bricks) {
  const int64_t depth = buffer.shape[3], padded = roundUp(depth, 16);
  return bricks == Bricks::Whole ? padded == depth : depth >= 12 && padded * 4 <= depth * 5;
}

}  // namespace

int64_t Buffer::storedDepth() const {
  return layout == npu::Layout::NHCWB16 ? roundUp(shape[3], 16) : shape[3];
}

npu::ElementType elementType(DType dtype) {
  switch (dtype) {
    case DType::Bool:
    case DType::Int4:
    case DType::Int8:
      return npu::ElementType::Int8;
    case DType::UInt8:
      return npu::ElementType::UInt8;
    case DType::Int16:
      return npu::ElementType::Int16;
    case DType::UInt16:
      return npu::ElementType::UInt16;
    case DType::Int32:
      return npu::ElementType::Int32;
    case DType::UInt32:
      return npu::ElementType::UInt32;
    case DType::Int48:
    case DType::Int64:
      return npu::ElementType::Int64;
    default:
      CARINA_UNREACHABLE("feature maps hold integers");
  }
}

std::optional<Access> composeView(const Access& access, int64_t elementBytes, int64_t offset,
                                  const ir::Ints& strides, const Shape& shape) {
  // Dimensions of the value down to single bytes, merged where dense and stored strides are both contiguous.
  Shape sizes = access.shape;
  ir::Ints stored = access.strides;
  sizes.push_back(elementBytes);
  stored.push_back(1);
  ir::Ints dense = rowMajorStrides(sizes);
  mergeDimensions(sizes, {&dense, &stored});
  ir::Ints low(sizes.size()), high(sizes.size());
  Access result{access.buffer, access.offset, shape, {}};
  for (size_t j = 0; j < sizes.size(); ++j) {
    low[j] = high[j] = offset / dense[j];
    offset %= dense[j];
    result.offset += low[j] * stored[j];
  }
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) {
      result.strides.push_back(0);
      continue;
    }
    size_t j = 0;
    while (j + 1 < sizes.size() &&
           (strides[d] == 0 || std::abs(strides[d]) < dense[j] || strides[d] % dense[j] != 0))
      ++j;
    if (strides[d] % dense[j] != 0) return std::nullopt;
    const int64_t step = strides[d] / dense[j];
    (step < 0 ? low[j] : high[j]) += step * (shape[d] - 1);
    if (low[j] < 0 || high[j] >= sizes[j]) return std::nullopt;
    result.strides.push_back(step * stored[j]);
  }
  return result;
}

bool isReshape(const npu_ir::View& view) {
  const ir::Value* output = view->result();
  return view.offset() == 0 && output->numBytes() == view.input()->numBytes() && [&] {
    Shape shape = output->shape();
    ir::Ints strides = view.strides();
    mergeDimensions(shape, {&strides});
    return shape.size() == 1 && (strides[0] == 1 || shape[0] == 1);
  }();
}

Status makeAddressable(ir::Graph& graph) {
  foldReshapes(graph);
  readPieces(graph);
  makeOutputsDense(graph);
  makePiecesDirect(graph);
  graph.eraseDeadNodes();
  for (int round = 0;; ++round) {
    CARINA_CHECK(round < 1 << 16, "addressing does not settle");
    const Accesses accesses = computeAccesses(graph);
    if (accesses.strided) {
      CARINA_RETURN_IF_ERROR(separate(nonContiguousPiece(accesses.strided)));
      graph.eraseDeadNodes();
      continue;
    }
    if (const auto [reader, operand] = accesses.reader; reader) {
      // If the value is not dense in its join, a copy would read the same channels: copy into the join
      // instead.
      ir::Value* root = behindViews(reader->operand(operand));
      if (joinOf(root) && !isDense(accesses.map.at(root), root)) {
        CARINA_RETURN_IF_ERROR(separate(root));
        graph.eraseDeadNodes();
      } else {
        makeDense(reader, operand);
      }
      continue;
    }
    if (!accesses.failed) return {};
    ir::Node* failed = const_cast<ir::Node*>(accesses.failed);
    if (ir::isa<npu_ir::Join>(failed)) {
      CARINA_RETURN_IF_ERROR(separate(failed->result()));
    } else if (isView(failed->operand(0))) {
      makeDense(failed, 0);
    } else {
      CARINA_RETURN_IF_ERROR(separate(failed->operand(0)));
    }
    graph.eraseDeadNodes();
  }
}

Result<Storage> assignStorage(const ir::Graph& graph, Bricks bricks) {
  Accesses accesses = computeAccesses(graph);
  if (accesses.failed) return fail(Code::NoIntegerForm, "{} cannot be addressed", accesses.failed->where());
  Storage storage{std::move(accesses.buffers), std::move(accesses.map)};
  if (bricks == Bricks::None) return storage;
  std::vector<bool> possible(storage.buffers.size());
  for (size_t b = 0; b < possible.size(); ++b) {
    possible[b] =
        storage.buffers[b].kind == BufferKind::FeatureMap && wantsBricks(storage.buffers[b], bricks);
  }
  const auto use = [&](const ir::Value* value) {
    const Access& access = storage.access(value);
    const size_t b = static_cast<size_t>(access.buffer);
    if (!possible[b]) return;
    const Buffer& buffer = storage.buffers[b];
    possible[b] = dtypeSize(value->dtype()) == buffer.elementBytes && brickPlace(buffer, access).has_value();
  };
  for (const ir::Node* node : graph.nodes()) {
    if (!npu_ir::hasOutputStage(node)) {
      // Rows moved by a DMA are in plain layout.
      if (!ir::isa<npu_ir::View>(node) && !ir::isa<npu_ir::Join>(node)) {
        for (const ir::Value* operand : node->operands())
          possible[static_cast<size_t>(storage.access(operand).buffer)] = false;
        possible[static_cast<size_t>(storage.access(node->result()).buffer)] = false;
      }
      continue;
    }
    for (size_t i = 0; i < memoryOperands(node); ++i) {
      if (const ir::Value* operand = node->operand(i)) use(operand);
    }
    use(node->result());
    // Weights that a matrix product reads from memory are rows of plain elements; coded ones are a stream.
    if (ir::isa<npu_ir::MatMul>(node) || ir::isa<npu_ir::CodedConv>(node))
      possible[static_cast<size_t>(storage.access(node->operand(1)).buffer)] = false;
  }
  for (size_t b = 0; b < possible.size(); ++b) {
    if (!possible[b]) continue;
    Buffer& buffer = storage.buffers[b];
    buffer.layout = npu::Layout::NHCWB16;
    buffer.bytes = buffer.planes() * buffer.planeBytes();
  }
  return storage;
}

npu::FeatureMap featureMap(const Storage& storage, const ir::Value* value) {
  const Access& access = storage.access(value);
  const Buffer& buffer = storage.buffer(value);
  CARINA_CHECK(access.shape.size() == 3, "a feature map has three dimensions");
  npu::FeatureMap map;
  map.height = static_cast<int32_t>(access.shape[0]);
  map.width = static_cast<int32_t>(access.shape[1]);
  map.depth = static_cast<int32_t>(access.shape[2]);
  map.height0 = map.height1 = map.height;
  map.width0 = map.width;
  map.type = elementType(value->dtype());
  map.layout = buffer.layout;
  const int64_t e = dtypeSize(value->dtype());
  if (map.layout == npu::Layout::NHWC) {
    CARINA_CHECK(access.shape[2] == 1 || access.strides[2] == e, "channels are not contiguous");
    map.base[0] = static_cast<uint64_t>(access.offset);
    // The strides of single rows and columns have no effect, but they are checked for alignment.
    map.strideX = map.width == 1 ? map.depth * e : access.strides[1];
    map.strideY = map.height == 1 ? map.width * map.strideX : access.strides[0];
    map.strideC = e;
    return map;
  }
  const auto place = brickPlace(buffer, access);
  CARINA_CHECK(place, "access does not fit the bricks of its buffer");
  const int64_t width = buffer.shape[2], row = width * buffer.storedDepth() * e;
  map.strideX = 16 * e;
  map.strideC = 16 * e * width;
  map.strideY = row * place->yStep;
  map.base[0] = static_cast<uint64_t>(place->plane * buffer.planeBytes() + place->y * row +
                                      place->c / 16 * map.strideC + place->x * 16 * e);
  return map;
}

}  // namespace carina::compiler
