// SPDX-License-Identifier: Apache-2.0
// The command processor (command_processor.hpp).
#include "npu/model/command_processor.hpp"

#include "npu/isa/disassembler.hpp"
#include "npu/model/work.hpp"

namespace carina::npu::model {

CommandProcessor::CommandProcessor(const Machine& machine, const ModelOptions& options)
    : machine_(machine), options_(options), executor_(*machine.target, options) {}

void CommandProcessor::reset() {
  executor_.reset();
  state_.clear();
  words_.clear();
  index_ = 0;
  running_ = masked_ = false;
  fault_.reset();
  timeline_.reset();
  checker_.reset();
  stats_ = {};
}

void CommandProcessor::start(std::vector<uint32_t> words) {
  words_ = std::move(words);
  index_ = 0;
  running_ = true;
  work_ = 0;
  fault_.reset();
  stats_ = {};
  timeline_.reset();
  if (options_.timing) timeline_.emplace(machine_);
  checker_ = options_.check ? std::make_unique<Checker>(*machine_.target) : nullptr;
  if (checker_) {
    for (const InitializedRange& range : options_.initialized) {
      checker_->assumeInitialized(range.region, range.offset, range.length);
    }
  }
}

CommandProcessor::Step CommandProcessor::fail(FaultKind kind, std::string reason, uint32_t offset,
                                              uint8_t channel) {
  fault_ = Fault{kind, offset, std::move(reason), channel};
  running_ = false;
  return Step::Faulted;
}

std::optional<std::string> CommandProcessor::spend(const Operation& operation) {
  int64_t work = 0;
  if (const auto* kernel = std::get_if<KernelOperation>(&operation)) work = workOf(*kernel);
  if (const auto* dma = std::get_if<DmaOperation>(&operation)) work = workOf(*dma);
  if (work <= options_.maxRunWork - work_) {
    work_ += work;
    return std::nullopt;
  }
  return fmt::format(
      "{}: {:.3g} steps, and the model's limit for this run is {:.3g}, of which {:.3g} are spent",
      describe(operation), static_cast<double>(work), static_cast<double>(options_.maxRunWork),
      static_cast<double>(work_));
}

CommandProcessor::Step CommandProcessor::step(AddressMap& memory) {
  if (!running_) return fault_ ? Step::Faulted : Step::Stopped;
  if (index_ >= words_.size()) {  // assumption end-without-stop: like STOP, without a mask
    running_ = false;
    interruptMask_ = 0;
    return Step::Stopped;
  }
  const uint32_t offset = position();
  if (stats_.commands >= options_.maxCommands || work_ > options_.maxRunWork) {
    return fail(FaultKind::Limit, "more commands than the model's limit", offset);
  }
  ++stats_.commands;
  work_ += kCommandWork;
  Result<Command> read = readCommand(words_, index_, machine_.target->family);
  if (!read.ok()) return fail(FaultKind::Parse, read.error().message(), offset);
  const Command command = *read;
  index_ += command.words();
  if (!command.info->operation) {
    state_.apply(command);
    return Step::Continue;
  }

  std::vector<std::string_view> unset;
  Result<Operation> decoded = decodeOperation(state_, command, *machine_.target, checker_ ? &unset : nullptr);
  if (!decoded.ok()) return fail(FaultKind::Parse, decoded.error().message(), offset);
  const Operation& operation = *decoded;
  if (checker_) checker_->add(operation, offset, unset);
  if (auto reason = spend(operation)) return fail(FaultKind::Limit, std::move(*reason), offset);

  if (const auto* kernel = std::get_if<KernelOperation>(&operation)) {
    if (Outcome failed = executor_.execute(*kernel, memory))
      return fail(failed->kind, failed->reason, offset, failed->channel);
    ++stats_.kernelOperations;
    if (timeline_) {
      TimingContext context = TimingContext::fromRegions(machine_, *kernel);
      context.zeroWeights = executor_.latestZeroWeights();
      const ScheduledCost timing = timeline_->add(*kernel, context, offset);
      stats_.macs += timing.cost.macs;
      record(timing);
    }
    return Step::Continue;
  }
  if (timeline_) {
    if (const auto timing = timeline_->add(operation, offset)) record(*timing);
  }
  if (const auto* dma = std::get_if<DmaOperation>(&operation)) {
    if (Outcome failed = executor_.execute(*dma, memory))
      return fail(failed->kind, failed->reason, offset, failed->channel);
    ++stats_.dmaOperations;
    return Step::Continue;
  }
  if (const auto* stop = std::get_if<Stop>(&operation)) {
    running_ = false;
    interruptMask_ = stop->mask;
    return Step::Stopped;
  }
  if (const auto* irq = std::get_if<Irq>(&operation)) {
    interruptMask_ = irq->mask;
    return Step::Interrupt;
  }
  if (const auto* mask = std::get_if<PmuMask>(&operation)) {
    masked_ = !mask->count;
    return Step::Continue;
  }
  if (const auto* branch = std::get_if<Branch>(&operation)) {
    if (branch->ifResult && !executor_.resultFlag()) return Step::Continue;
    if (branch->target % 4 != 0 || branch->target / 4 >= words_.size()) {
      return fail(FaultKind::Branch,
                  fmt::format("branch to offset 0x{:x} outside the stream", branch->target), offset);
    }
    index_ = branch->target / 4;
    return Step::Continue;
  }
  return Step::Continue;  // waits: operations complete when they are issued
}

void CommandProcessor::record(const ScheduledCost& timing) {
  if (stats_.operations.size() < RunStats::kMaxRecorded) stats_.operations.push_back(timing);
}

RunStats CommandProcessor::statistics() const {
  RunStats stats = stats_;
  stats.work = work_;
  if (timeline_) {
    stats.cycles = timeline_->total();
    stats.pmu = timeline_->pmu();
  }
  return stats;
}

}  // namespace carina::npu::model
