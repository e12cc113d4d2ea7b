// SPDX-License-Identifier: Apache-2.0
// Strided copies (strided_copy.hpp).
#include "compiler/storage/strided_copy.hpp"

#include <algorithm>
#include <array>

#include "compiler/storage/storage.hpp"

namespace carina::compiler {
namespace {

constexpr int64_t kMaxAxis = 65536;

struct Loop {
  int64_t size = 1, source = 0, target = 0;
};

/// Emits one copy of height x width x depth; depth is contiguous on both sides.
void emitOne(ir::Builder& builder, const StridedCopy& copy, const std::array<Loop, 3>& hwc,
             int64_t sourceOffset, int64_t targetOffset, std::vector<npu_ir::Piece>& pieces) {
  const DType type = copy.value->dtype();
  const int64_t bytes = dtypeSize(type);
  const int64_t halves = bytes > 2 ? bytes / 2 : 1;
  const DType moved = bytes > 2 ? DType::Int16 : bytes == 2 ? DType::Int16 : DType::Int8;
  const Shape shape{hwc[0].size, hwc[1].size, hwc[2].size * halves};
  const ir::Ints source{hwc[0].source * halves, hwc[1].source * halves, 1};
  const ir::Ints target{hwc[0].target * halves, hwc[1].target * halves, 1};
  ir::Value* view = npu_ir::createView(builder, copy.value, moved, shape, sourceOffset * halves, source);
  ir::Value* moving = npu_ir::createCopy(builder, view, 0, {}, moved);
  pieces.push_back({moving, targetOffset * halves, target});
}

}  // namespace

void mergeDimensions(Shape& shape, std::vector<ir::Ints*> strides) {
  Shape merged;
  std::vector<ir::Ints> lists(strides.size());
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) continue;
    bool contiguous = !merged.empty();
    for (size_t s = 0; s < strides.size() && contiguous; ++s) {
      contiguous = lists[s].back() == (*strides[s])[d] * shape[d];
    }
    if (contiguous) {
      merged.back() *= shape[d];
      for (size_t s = 0; s < strides.size(); ++s) lists[s].back() = (*strides[s])[d];
    } else {
      merged.push_back(shape[d]);
      for (size_t s = 0; s < strides.size(); ++s) lists[s].push_back((*strides[s])[d]);
    }
  }
  if (merged.empty()) {
    merged.push_back(1);
    for (auto& list : lists) list.push_back(1);
  }
  shape = std::move(merged);
  for (size_t s = 0; s < strides.size(); ++s) *strides[s] = std::move(lists[s]);
}

namespace {

/// The same copy from the value behind a view, as far as addressing allows: contiguity is judged by memory,
/// not by the view.
StridedCopy throughViews(StridedCopy copy) {
  while (const auto view = ir::producerAs<npu_ir::View>(copy.value)) {
    const int64_t bytes = dtypeSize(copy.value->dtype());
    if (dtypeSize(view.input()->dtype()) != bytes) break;
    const Access access{0, view.offset(), copy.value->shape(), view.strides()};
    const auto source = composeView(access, 1, copy.sourceOffset, copy.sourceStrides, copy.shape);
    if (!source) break;
    copy.sourceOffset = source->offset;
    copy.sourceStrides = source->strides;
    copy.value = view.input();
  }
  return copy;
}

}  // namespace

std::vector<npu_ir::Piece> emitCopies(ir::Builder& builder, const StridedCopy& asked) {
  const StridedCopy copy = throughViews(asked);
  Shape shape = copy.shape;
  ir::Ints source = copy.sourceStrides, target = copy.targetStrides;
  mergeDimensions(shape, {&source, &target});
  std::vector<Loop> loops;
  for (size_t d = 0; d < shape.size(); ++d) loops.push_back({shape[d], source[d], target[d]});
  // The axis that is contiguous on both sides becomes the depth; without one, elements are moved one by one.
  Loop depth{1, 1, 1};
  for (size_t d = 0; d < loops.size(); ++d) {
    if (loops[d].source == 1 && loops[d].target == 1) {
      depth = loops[d];
      loops.erase(loops.begin() + static_cast<std::ptrdiff_t>(d));
      break;
    }
  }
  const int64_t halves = std::max<int64_t>(dtypeSize(copy.value->dtype()) / 2, 1);
  const int64_t depthLimit = kMaxAxis / halves;
  if (depth.size > depthLimit) {
    // Split the depth into equal parts if possible; these form one more loop.
    int64_t part = depthLimit;
    while (part > depthLimit / 2 && depth.size % part != 0) --part;
    if (depth.size % part == 0) {
      loops.push_back({depth.size / part, part, part});
      depth.size = part;
    }
  }
  std::sort(loops.begin(), loops.end(), [](const Loop& a, const Loop& b) { return a.size < b.size; });
  // The two longest loops are height and width of each operation.
  std::array<Loop, 2> inner{};
  for (size_t i = 0; i < 2 && !loops.empty(); ++i) {
    inner[1 - i] = loops.back();
    loops.pop_back();
  }
  std::vector<npu_ir::Piece> pieces;
  const auto cut = [](int64_t size, int64_t limit, auto&& body) {
    for (int64_t start = 0; start < size; start += limit) body(start, std::min(limit, size - start));
  };
  std::vector<int64_t> index(loops.size(), 0);
  while (true) {
    int64_t from = copy.sourceOffset, to = copy.targetOffset;
    for (size_t d = 0; d < loops.size(); ++d) {
      from += index[d] * loops[d].source;
      to += index[d] * loops[d].target;
    }
    cut(inner[0].size, kMaxAxis, [&](int64_t y, int64_t h) {
      cut(inner[1].size, kMaxAxis, [&](int64_t x, int64_t w) {
        cut(depth.size, depthLimit, [&](int64_t c, int64_t d) {
          const std::array<Loop, 3> hwc{Loop{h, inner[0].source, inner[0].target},
                                        Loop{w, inner[1].source, inner[1].target}, Loop{d, 1, 1}};
          emitOne(builder, copy, hwc, from + y * inner[0].source + x * inner[1].source + c,
                  to + y * inner[0].target + x * inner[1].target + c, pieces);
        });
      });
    });
    size_t d = loops.size();
    while (d > 0 && ++index[d - 1] == loops[d - 1].size) index[--d] = 0;
    if (d == 0) break;
  }
  return pieces;
}

}  // namespace carina::compiler
