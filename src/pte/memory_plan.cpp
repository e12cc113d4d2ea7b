// SPDX-License-Identifier: Apache-2.0
#include "pte/memory_plan.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include "packing/packing.hpp"

namespace carina::pte {

namespace {

/// Values that share their bytes, as a forest: views and their bases.
class Groups {
 public:
  explicit Groups(size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), 0); }
  int32_t find(int32_t value) {
    while (parent_[static_cast<size_t>(value)] != value) value = parent_[static_cast<size_t>(value)];
    return value;
  }
  void join(int32_t a, int32_t b) {
    parent_[static_cast<size_t>(std::max(find(a), find(b)))] = std::min(find(a), find(b));
  }

 private:
  std::vector<int32_t> parent_;
};

/// Attempts to find a dense packing.
constexpr int kAttempts = 200;

class Planner {
 public:
  Planner(Method& method, const std::map<int32_t, int32_t>& aliases, const MemoryPlanOptions& options,
          std::span<const int64_t> born)
      : method_(method),
        aliases_(aliases),
        options_(options),
        creationIndices_(born),
        groups_(method.values.size()) {}

  Status run() {
    for (const auto& [view, base] : aliases_) groups_.join(view, base);
    collect();
    joinViews();
    extendLifetimes();
    return place();
  }

 private:
  /// Only tensors take part.
  void touch(int32_t value, int32_t at) {
    if (std::holds_alternative<Tensor>(method_.values[static_cast<size_t>(value)])) {
      const auto [entry, added] = spans_.try_emplace(value, LiveRange{0, at, at});
      entry->second.first = std::min(entry->second.first, at);
      entry->second.last = std::max(entry->second.last, at);
    } else if (const auto* list = std::get_if<TensorList>(&method_.values[static_cast<size_t>(value)])) {
      for (int32_t item : list->items) touch(item, at);
    } else if (const auto* optional =
                   std::get_if<OptionalTensorList>(&method_.values[static_cast<size_t>(value)])) {
      for (int32_t item : optional->items) {
        if (item >= 0) touch(item, at);
      }
    }
  }

  void collect() {
    int32_t at = 0;
    for (int32_t input : method_.inputs) touch(input, at);
    for (const Chain& chain : method_.chains) {
      const int32_t first = at + 1;
      for (const Instruction& instruction : chain.instructions) {
        ++at;
        if (const auto* kernel = std::get_if<KernelCall>(&instruction)) {
          for (int32_t argument : kernel->arguments) touch(argument, at);
        } else if (const auto* call = std::get_if<DelegateCall>(&instruction)) {
          for (int32_t argument : call->arguments) touch(argument, at);
        } else if (const auto* move = std::get_if<MoveCall>(&instruction)) {
          touch(move->from, at);
          touch(move->to, at);
          moves_.push_back(*move);
        } else if (const auto* jump = std::get_if<JumpFalseCall>(&instruction)) {
          touch(jump->condition, at);
          if (first + jump->destination <= at)
            loops_.push_back({0, first + static_cast<int32_t>(jump->destination), at});
        }
      }
    }
    for (int32_t output : method_.outputs) touch(output, at + 1);
  }

  /// Values that share bytes have a common lifetime, and the creation time of the oldest.
  void joinViews() {
    std::map<int32_t, LiveRange> joined;  // by group
    for (const auto& [value, span] : spans_) {
      LiveRange& whole = joined.try_emplace(groups_.find(value), span).first->second;
      whole.first = std::min(whole.first, span.first);
      whole.last = std::max(whole.last, span.last);
    }
    for (auto& [value, span] : spans_) span = joined.at(groups_.find(value));
    for (size_t value = 0; value < creationIndices_.size(); ++value) {
      int64_t& oldest =
          groupBorn_.try_emplace(groups_.find(static_cast<int32_t>(value)), creationIndices_[value])
              .first->second;
      oldest = std::min(oldest, creationIndices_[value]);
    }
  }

  /// Whether the value does not survive from one iteration of the loop to the next. Instructions are numbered
  /// from 1 here.
  bool isLocal(int32_t value, const LiveRange& loop) {
    const auto born = groupBorn_.find(groups_.find(value));
    return born != groupBorn_.end() && born->second + 1 >= loop.first && born->second + 1 <= loop.last;
  }

  /// A value that is live at one point of a loop is live throughout it; a moved value shares the bytes of its
  /// source.
  void extendLifetimes() {
    bool changed = true;
    const auto extend = [&](LiveRange& span, int32_t first, int32_t last) {
      if (span.first <= first && span.last >= last) return;
      span.first = std::min(span.first, first);
      span.last = std::max(span.last, last);
      changed = true;
    };
    while (changed) {
      changed = false;
      for (const LiveRange& loop : loops_) {
        for (auto& [value, span] : spans_) {
          if (span.last >= loop.first && span.first <= loop.last && !isLocal(value, loop))
            extend(span, loop.first, loop.last);
        }
      }
      for (const MoveCall& move : moves_) {
        const auto from = spans_.find(move.from);
        const auto to = spans_.find(move.to);
        if (from != spans_.end() && to != spans_.end())
          extend(from->second, from->second.first, to->second.last);
      }
    }
  }

  Status place() {
    std::set<int32_t> unplanned;
    for (int32_t input : method_.inputs) {
      if (!options_.planInputs) unplanned.insert(input);
    }
    for (int32_t output : method_.outputs) {
      if (!options_.planOutputs) unplanned.insert(output);
    }
    std::map<int32_t, Allocation> elsewhere;  // by group
    for (size_t i = 0; i < method_.values.size(); ++i) {
      const auto* tensor = std::get_if<Tensor>(&method_.values[i]);
      if (tensor && tensor->allocation && tensor->allocation->memoryId != options_.memoryId)
        elsewhere.emplace(groups_.find(static_cast<int32_t>(i)), *tensor->allocation);
    }
    std::map<int32_t, LiveRange> blocks;  // by group
    for (const auto& [value, span] : spans_) {
      Tensor& tensor = std::get<Tensor>(method_.values[static_cast<size_t>(value)]);
      if (const auto other = elsewhere.find(groups_.find(value)); other != elsewhere.end()) {
        tensor.allocation = other->second;
        continue;
      }
      if (unplanned.contains(value) || (tensor.dataIndex != 0 && !tensor.allocation) ||
          (tensor.extra && tensor.extra->external))
        continue;
      const auto bytes = tensorBytes(tensor);
      if (!bytes)
        return fail(Code::InvalidProgram, "method {}: value {} ({}) has no size", method_.name, value,
                    tensor.str());
      auto [entry, added] = blocks.try_emplace(groups_.find(value), LiveRange{*bytes, span.first, span.last});
      entry->second.bytes = std::max(entry->second.bytes, *bytes);
      entry->second.first = std::min(entry->second.first, span.first);
      entry->second.last = std::max(entry->second.last, span.last);
      planned_.push_back(value);
    }
    std::vector<LiveRange> ranges;
    std::map<int32_t, size_t> index;
    for (const auto& [group, range] : blocks) {
      index[group] = ranges.size();
      ranges.push_back(range);
    }
    const Packing packing = pack(ranges, 0, kAttempts, options_.alignment);
    for (int32_t value : planned_) {
      std::get<Tensor>(method_.values[static_cast<size_t>(value)]).allocation = Allocation{
          options_.memoryId, static_cast<uint64_t>(packing.addresses[index.at(groups_.find(value))])};
    }
    if (method_.pools.size() <= options_.memoryId) method_.pools.resize(options_.memoryId + size_t{1}, 0);
    method_.pools[options_.memoryId] = packing.bytes;
    return {};
  }

  Method& method_;
  const std::map<int32_t, int32_t>& aliases_;
  const MemoryPlanOptions& options_;
  std::span<const int64_t> creationIndices_;
  Groups groups_;
  std::map<int32_t, int64_t> groupBorn_;
  std::map<int32_t, LiveRange> spans_;
  std::vector<LiveRange> loops_;
  std::vector<MoveCall> moves_;
  std::vector<int32_t> planned_;
};

}  // namespace

Status planMethodMemory(Method& method, const std::map<int32_t, int32_t>& aliases,
                        const MemoryPlanOptions& options, std::span<const int64_t> born) {
  return Planner(method, aliases, options, born).run();
}

}  // namespace carina::pte
