// SPDX-License-Identifier: Apache-2.0
// Block search (block_search.hpp). Only blocks that change the number of blocks along some axis are
// considered: for each count, the smallest block that reaches it.
#include "compiler/schedule/block_search.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>
#include <vector>

#include "base/shape.hpp"
#include "npu/isa/blockconfig.hpp"

namespace carina::compiler {
namespace {

/// Block sizes along one axis, largest first: multiples of the granule, none above the limit.
std::vector<int32_t> candidates(int32_t size, int32_t granule, int32_t limit) {
  std::vector<int32_t> result;
  const int64_t most = std::min<int64_t>(roundUp(size, granule), limit / granule * granule);
  for (int64_t count = ceilDiv(size, std::max<int64_t>(most, granule));; ++count) {
    const auto block =
        static_cast<int32_t>(std::max<int64_t>(roundUp(ceilDiv(size, count), granule), granule));
    if (result.empty() || block < result.back()) {
      if (block <= std::max<int64_t>(most, granule)) result.push_back(block);
    }
    if (block == granule) break;
    // The next smaller block needs at least this many blocks. Long axes have many: a few dozen, then coarser
    // steps, so that the search still reaches the small blocks that large windows or few channels require.
    const int64_t next = result.size() < 24 ? block - granule : block * int64_t{3} / 4;
    count = std::max(count, ceilDiv(size, std::max<int64_t>(next, granule)) - 1);
  }
  if (result.empty() || result.back() != granule) result.push_back(granule);
  return result;
}

/// Depths below the full one are multiples of 16, so that depth slices and weight streams line up.
std::vector<int32_t> depthCandidates(int32_t depth, int32_t granule, int32_t limit) {
  std::vector<int32_t> result;
  const auto whole = static_cast<int32_t>(roundUp(depth, granule));
  if (whole <= limit) result.push_back(whole);
  const auto step = static_cast<int32_t>(roundUp(16, granule));
  for (const int32_t block : candidates(depth, step, limit)) {
    if (block < depth && (result.empty() || block < result.back())) result.push_back(block);
  }
  return result;
}

struct Best {
  npu::OperationCost cost;
  npu::KernelOperation op;
  bool found = false;
};

/// Fewer cycles; then less traffic, then fewer blocks.
bool better(const npu::OperationCost& a, const npu::OperationCost& b) {
  const auto key = [](const npu::OperationCost& cost) {
    return std::tuple(cost.total, cost.port[0] + cost.port[1], cost.blocks);
  };
  return key(a) < key(b);
}

/// Operations that are executed together block by block, all with the block of the first: a single one or a
/// U85 chain.
class Chain {
 public:
  Chain(std::span<npu::KernelOperation> operations, std::span<const npu::TimingContext> contexts)
      : followers_(operations.begin() + 1, operations.end()), contexts_(contexts) {}

  /// Cycles with this first operation.
  npu::OperationCost estimate(const npu::KernelOperation& head) {
    if (followers_.empty()) return npu::estimate(head, contexts_.front());
    all_.assign(1, head);
    for (npu::KernelOperation& follower : followers_) {
      follower.block = head.block;
      follower.microblock = head.microblock;
      all_.push_back(follower);
    }
    return npu::estimateChain(all_, contexts_);
  }

  bool allows(const npu::Target& target, const npu::BlockShape& microblock) const {
    return std::all_of(followers_.begin(), followers_.end(), [&](const npu::KernelOperation& follower) {
      return npu::microblockAllowed(target, follower, microblock);
    });
  }

 private:
  std::vector<npu::KernelOperation> followers_, all_;
  std::span<const npu::TimingContext> contexts_;
};

/// Calls visit(op) with the operation in every block to consider for its microblock. `lastResort`: if there
/// is none, with the smallest block that fits the on-chip buffers only once.
template <typename Visit>
void forEachBlock(npu::KernelOperation op, const npu::Target& target, bool lastResort, const Visit& visit) {
  const npu::BlockRules rules(target, op);
  npu::BlockShape granule = rules.granule();
  const npu::BlockShape limit = rules.limit();
  granule.c = std::max(granule.c, rules.microblock().c);  // both are powers of two
  const bool elementwise = op.kind == npu::OperationKind::Elementwise;
  const auto heights = candidates(op.ofm.height, granule.h, std::max(limit.h, granule.h));
  const auto widths = candidates(op.ofm.width, granule.w, std::max(limit.w, granule.w));
  // Existing streams are encoded for one block depth.
  const bool coded = op.weights && op.weights->weights[0].length > 0;
  const auto depths = coded ? std::vector<int32_t>{op.block.c}
                            : depthCandidates(op.ofm.depth, granule.c, std::max(limit.c, granule.c));
  bool found = false;
  for (const int32_t depth : depths) {
    for (const int32_t height : heights) {
      int taken = 0;
      for (const int32_t width : widths) {
        const npu::BlockShape block{height, width, depth};
        if (!rules.fits(block, elementwise ? 1 : target.architecture().blockBuffers)) continue;
        op.block = block;
        visit(op);
        found = true;
        // Narrower blocks only add fetches once a wide one fits.
        if (++taken >= 6) break;
      }
    }
  }
  if (found || !lastResort) return;
  // Large windows may leave space for only one block at a time.
  const npu::BlockShape smallest{granule.h, granule.w, std::min(depths.back(), std::max(granule.c, 16))};
  for (const npu::BlockShape& block : {smallest, granule}) {
    if (!rules.fits(block, 1)) continue;
    op.block = block;
    visit(op);
    return;
  }
}

void searchMicroblock(const npu::KernelOperation& op, Chain& chain, const npu::Target& target,
                      bool lastResort, const npu::WeightOrder* wanted, Best& best) {
  forEachBlock(op, target, lastResort, [&](const npu::KernelOperation& candidate) {
    if (wanted && npu::weightOrder(target, candidate) != *wanted) return;
    const npu::OperationCost cost = chain.estimate(candidate);
    if (!best.found || better(cost, best.cost)) best = {cost, candidate, true};
  });
}

Error noBlockFits(const npu::KernelOperation& op) {
  return fail(Code::HardwareLimit,
              "no block of {}-bit values fits the on-chip buffers: kernel {}x{}, stride {}x{}, dilation "
              "{}x{}",
              npu::elementBytes(op.ifm.type) * 8, op.kernel.height, op.kernel.width, op.kernel.strideY,
              op.kernel.strideX, op.kernel.dilationY, op.kernel.dilationX)
      .withRemedy("use a smaller kernel or stride");
}

/// How the weights of a convolution are laid out.
struct Order {
  npu::Traversal traversal = npu::Traversal::DepthFirst;
  bool sparse = false;
};

/// Traversals of the weights to consider. Part-kernel-first gains nothing with a 1x1 kernel: depth-first is
/// worth a try even if the depth rule prefers the other, but not vice versa.
std::vector<Order> ordersOf(const npu::KernelOperation& op) {
  std::vector<Order> orders{{op.weights ? op.weights->traversal : npu::Traversal::DepthFirst}};
  if (op.kind != npu::OperationKind::Conv || !op.weights) return orders;
  const bool oneByOne = op.kernel.height == 1 && op.kernel.width == 1;
  const auto other = orders[0].traversal == npu::Traversal::DepthFirst ? npu::Traversal::PartKernelFirst
                                                                       : npu::Traversal::DepthFirst;
  if (!oneByOne || other == npu::Traversal::DepthFirst) orders.push_back({other});
  if (op.weights->sparse) {
    for (size_t i = orders.size(); i-- > 0;) orders.push_back({orders[i].traversal, true});
  }
  return orders;
}

/// Encoded bytes of the zeros that pad groups of taps in part-kernel-first order: about 2 bits each.
int64_t paddingBytes(const npu::KernelOperation& op) {
  if (op.kind != npu::OperationKind::Conv || op.weights->traversal != npu::Traversal::PartKernelFirst)
    return 0;
  const int64_t group = npu::elementBytes(op.ifm.type) == 2 ? 2 : 4;
  int64_t zeros = 0;
  for (int32_t y = 0; y < op.kernel.height; y += 8) {
    for (int32_t x = 0; x < op.kernel.width; x += 8) {
      const int64_t taps = int64_t{std::min(op.kernel.height - y, 8)} * std::min(op.kernel.width - x, 8);
      zeros += roundUp(taps, group) - taps;
    }
  }
  return zeros * op.ifm.depth * op.ofm.depth / 4;
}

/// The best block for one order of the weights and one microblock.
struct Finalist {
  Best best;
  std::vector<npu::TimingContext> contexts;
};

/// Cycles summed over the settings of the cycle model that affect blocks: the calibrated one, and ends of
/// ranges that the measurements leave open.
npu::Cycles cyclesOverSettings(std::span<npu::KernelOperation> operations, const Finalist& finalist) {
  npu::Cycles sum = 0;
  for (const char* name :
       {"calibrated", "whole-bursts", "small-kernels", "resident-3", "depth-64", "depth-64-part"}) {
    std::vector<npu::TimingContext> contexts = finalist.contexts;
    for (npu::TimingContext& context : contexts) context.rules = npu::timing::findRules(name);
    sum += Chain(operations, contexts).estimate(finalist.best.op).total;
  }
  return sum;
}

bool isSparse(const npu::KernelOperation& op) {
  return op.weights && op.weights->sparse;
}

/// The fastest finalist, or one that is at most 1 % slower and depends less on what the measurements leave
/// open.
Best safest(std::span<npu::KernelOperation> operations, const std::vector<Finalist>& finalists) {
  const Finalist* fastest = nullptr;
  for (const Finalist& finalist : finalists) {
    if (!fastest || better(finalist.best.cost, fastest->best.cost)) fastest = &finalist;
  }
  if (!fastest) return {};
  // The uncertainties concern U85.
  if (!fastest->contexts.front().machine->target->architecture().choosesMicroblocks) return fastest->best;
  const Finalist* chosen = fastest;
  std::optional<npu::Cycles> least;
  for (const Finalist& finalist : finalists) {
    if (isSparse(finalist.best.op) != isSparse(fastest->best.op)) continue;
    if (&finalist == fastest || finalist.best.cost.total * 100 > fastest->best.cost.total * 101) continue;
    if (!least) least = cyclesOverSettings(operations, *fastest);
    const npu::Cycles cycles = cyclesOverSettings(operations, finalist);
    if (cycles >= *least) continue;
    least = cycles;
    chosen = &finalist;
  }
  return chosen->best;
}

/// Calls visit(first operation, contexts) for every order of the weights and every microblock that all
/// operations of the chain allow.
template <typename Visit>
void forEachForm(std::span<npu::KernelOperation> operations, std::span<const npu::TimingContext> contexts,
                 const std::vector<Order>& orders, const Visit& visit) {
  const npu::Target& target = *contexts.front().machine->target;
  const npu::KernelOperation& op = operations.front();
  for (const Order& order : orders) {
    npu::KernelOperation candidate = op;
    std::vector<npu::TimingContext> ordered(contexts.begin(), contexts.end());
    if (candidate.weights) {
      candidate.weights->traversal = order.traversal;
      candidate.weights->sparse = order.sparse;
      if (ordered.front().weightBytes >= 0) ordered.front().weightBytes += paddingBytes(candidate);
    }
    const Chain chain(operations, ordered);
    if (!target.architecture().choosesMicroblocks) {
      candidate.microblock = npu::microblocks(target).front();
      visit(candidate, ordered);
      continue;
    }
    for (const npu::BlockShape& microblock : npu::microblocks(target)) {
      candidate.microblock = microblock;
      if (npu::microblockAllowed(target, candidate, microblock) && chain.allows(target, microblock))
        visit(candidate, ordered);
    }
  }
}

Status search(std::span<npu::KernelOperation> operations, std::span<const npu::TimingContext> contexts,
              const std::vector<Order>& orders, const npu::WeightOrder* wanted = nullptr) {
  const npu::Target& target = *contexts.front().machine->target;
  npu::KernelOperation& op = operations.front();
  std::vector<Finalist> finalists;
  forEachForm(operations, contexts, orders,
              [&](const npu::KernelOperation& form, const std::vector<npu::TimingContext>& ordered) {
                Chain chain(operations, ordered);
                Finalist finalist{{}, ordered};
                searchMicroblock(form, chain, target, finalists.empty(), wanted, finalist.best);
                if (finalist.best.found) finalists.push_back(std::move(finalist));
              });
  const Best best = safest(operations, finalists);
  if (!best.found) return noBlockFits(op);
  op = best.op;
  for (npu::KernelOperation& follower : operations.subspan(1)) {
    follower.block = op.block;
    follower.microblock = op.microblock;
  }
  if (const auto layout = npu::BlockRules(target, op).shram(op.block)) {
    op.ifmBufferEnd = layout->ifmEnd;
    op.ifm2BufferStart = layout->ifm2Start;
    op.accumulatorStart = layout->accumulatorStart;
  }
  return {};
}

}  // namespace

Status checkBlock(npu::KernelOperation op, const npu::Target& target) {
  const auto fits = [&] {
    const npu::BlockRules rules(target, op);
    npu::BlockShape block = rules.granule();
    if (rules.fits(block, 1)) return true;
    block.c = std::max(block.c, rules.microblock().c);
    return rules.fits(block, 1);
  };
  for (const Order& order : ordersOf(op)) {
    if (op.weights) {
      op.weights->traversal = order.traversal;
      op.weights->sparse = order.sparse;
    }
    for (const npu::BlockShape& microblock : npu::microblocks(target)) {
      op.microblock = microblock;
      if (npu::microblockAllowed(target, op, microblock) && fits()) return {};
    }
  }
  return noBlockFits(op);
}

npu::Cycles leastEngineCycles(std::span<npu::KernelOperation> chain,
                              std::span<const npu::TimingContext> contexts) {
  const npu::Target& target = *contexts.front().machine->target;
  npu::Cycles least = std::numeric_limits<npu::Cycles>::max();
  forEachForm(chain, contexts, ordersOf(chain.front()),
              [&](const npu::KernelOperation& form, const std::vector<npu::TimingContext>& ordered) {
                Chain members(chain, ordered);
                forEachBlock(form, target, true, [&](const npu::KernelOperation& candidate) {
                  const npu::OperationCost cost = members.estimate(candidate);
                  // The model hides the fill of an elementwise operation behind the preceding operation.
                  const bool hides = candidate.kind == npu::OperationKind::Elementwise;
                  const npu::Cycles busy = std::max(cost.mac, cost.output) - (hides ? cost.fill : 0);
                  least = std::min(least, std::max<npu::Cycles>(busy, 0));
                });
              });
  return least == std::numeric_limits<npu::Cycles>::max() ? 0 : least;
}

Status chooseBlock(npu::KernelOperation& op, const npu::TimingContext& context) {
  return search({&op, 1}, {&context, 1}, {ordersOf(op).front()});
}

Status chooseBlockAndTraversal(npu::KernelOperation& op, const npu::TimingContext& context,
                               const npu::WeightOrder* wanted) {
  return search({&op, 1}, {&context, 1}, ordersOf(op), wanted);
}

Status chooseChainBlock(std::span<npu::KernelOperation> chain, std::span<const npu::TimingContext> contexts,
                        const npu::WeightOrder* wanted) {
  return search(chain, contexts, ordersOf(chain.front()), wanted);
}

}  // namespace carina::compiler
