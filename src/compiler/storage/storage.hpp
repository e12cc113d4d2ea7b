// SPDX-License-Identifier: Apache-2.0
// Where the values of an npu graph are stored: buffers, and for each value an affine access into one. VIEW
// and JOIN become addressing here; where that is impossible, copies are inserted first.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "compiler/dialect/npu_ir.hpp"
#include "npu/isa/operation.hpp"

namespace carina::compiler {

/// Elements of a value in a buffer, in bytes as if the buffer were row-major.
struct Access {
  int buffer = -1;
  int64_t offset = 0;
  Shape shape;
  ir::Ints strides;  // bytes, per dimension of shape
};

enum class BufferKind : uint8_t { FeatureMap, Input, Output, Constant };

/// Memory of one value, and of all values placed inside it.
struct Buffer {
  BufferKind kind = BufferKind::FeatureMap;
  const ir::Value* root = nullptr;
  DType dtype = DType::Int8;
  int64_t elementBytes = 1;
  Shape shape;  // planes, height, width, depth of the root
  npu::Layout layout = npu::Layout::NHWC;
  int64_t bytes = 0;  // with the padding of the layout

  int64_t planes() const { return shape[0]; }
  /// Depth as stored: bricks hold 16 channels.
  int64_t storedDepth() const;
  int64_t planeBytes() const { return shape[1] * shape[2] * storedDepth() * elementBytes; }
};

struct Storage {
  std::vector<Buffer> buffers;
  std::unordered_map<const ir::Value*, Access> accesses;

  const Access& access(const ir::Value* value) const { return accesses.at(value); }
  const Buffer& buffer(const ir::Value* value) const {
    return buffers[static_cast<size_t>(access(value).buffer)];
  }
};

/// Composes a view (offset and strides in bytes of the dense value) with `access`; nothing if there is no
/// affine access.
std::optional<Access> composeView(const Access& access, int64_t elementBytes, int64_t offset,
                                  const ir::Ints& strides, const Shape& shape);

/// Whether the VIEW shows all bytes of its input in the same order.
bool isReshape(const npu_ir::View& view);

/// Makes every VIEW, JOIN and graph output expressible by addressing, inserting copies where needed.
Status makeAddressable(ir::Graph& graph);

/// Which maps are stored as NHCWB16: none, those of whole bricks, or also those that bricks pad little.
enum class Bricks : uint8_t { None, Whole, Padded };

/// Buffers and accesses of a graph that has been through makeAddressable(); chooses layouts.
Result<Storage> assignStorage(const ir::Graph& graph, Bricks bricks);

/// The feature map of a rank-3 value, addresses relative to the start of its buffer; region and zero point
/// are left to the caller.
npu::FeatureMap featureMap(const Storage& storage, const ir::Value* value);

/// Element type in memory: Bool is int8, Int48 takes 64 bits.
npu::ElementType elementType(DType dtype);

}  // namespace carina::compiler
