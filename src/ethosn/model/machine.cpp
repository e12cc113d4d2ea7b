// SPDX-License-Identifier: Apache-2.0
// The control unit: executes the four lists, counts, and maintains the clocks by which hazards are found.
#include "ethosn/model/machine.hpp"

#include <random>

namespace carina::ethosn::model {

Machine::Machine(const CommandStream& stream, const Target& target, const RunOptions& options,
                 Buffers buffers, WorkBudget& work)
    : stream_(stream),
      target_(target),
      variant_(*target.variant),
      options_(options),
      buffers_(std::move(buffers)),
      sram_(target.variant->banks(), target.bankBytes()),
      work_(work) {
  if (options.hazards)
    sramAccesses_ = AccessMap(static_cast<size_t>(target.bankBytes() / 16 * target.variant->banks()));
  result_.stats.agents.resize(stream.agents.size());
  for (size_t q = 0; q < kQueues; ++q) offsets_[q] = commandOffsets(stream, static_cast<Queue>(q));
}

Status Machine::run() {
  std::mt19937_64 random(options_.order);
  size_t next = 0;
  const auto unfinished = [&](size_t q) { return position_[q] < stream_.queues[q].size(); };
  for (;;) {
    std::array<size_t, kQueues> order = {next, (next + 1) % kQueues, (next + 2) % kQueues,
                                         (next + 3) % kQueues};
    if (options_.order != 0) std::shuffle(order.begin(), order.end(), random);
    bool moved = false, left = false;
    for (const size_t q : order) {
      if (!unfinished(q)) continue;
      left = true;
      auto progress = step(static_cast<Queue>(q));
      if (!progress) return placed(std::move(progress).error(), static_cast<Queue>(q));
      if (*progress == Progress::Blocked) continue;
      moved = true;
      next = (q + 1) % kQueues;
      break;
    }
    if (!left) break;
    if (!moved) return blocked();
  }
  if (!outputs_.empty()) {
    return fail(Code::NpuFault, "{} MCE stripes produce results that no PLE stripe consumes", outputs_.size())
        .at("end of the lists");
  }
  return {};
}

RunResult Machine::result() {
  result_.outputs = buffers_.outputs();
  result_.assumptions.assign(assumptions_.begin(), assumptions_.end());
  result_.stats.counters = counters_;
  result_.stats.cycles = time_.end();
  result_.stats.sramBytes = sram_.highest() * sram_.banks();
  return std::move(result_);
}

Result<Machine::Progress> Machine::step(Queue queue) {
  const auto q = static_cast<size_t>(queue);
  const Command& command = stream_.queues[q][position_[q]];
  queue_ = queue;
  CARINA_TRY(const Progress progress, std::holds_alternative<WaitForCounter>(command)
                                          ? wait(queue, std::get<WaitForCounter>(command))
                                          : execute(queue, command));
  if (progress == Progress::Done) ++position_[q];
  return progress;
}

Result<Machine::Progress> Machine::wait(Queue queue, const WaitForCounter& wait) {
  if (counters_[wait.counter] < wait.value) return Progress::Blocked;
  if (wait.value == 0) return Progress::Done;
  const auto counter = static_cast<Counter>(wait.counter);
  if (queue == Queue::Ple && counter == Counter::MceStripe && wait.value > consumedStripes_) {
    find(fmt::format("the PLE waits for MCE stripe {}, which ends only when the PLE has consumed its results",
                     wait.value));
  }
  clocks_[static_cast<size_t>(queue)].join(ends_[wait.counter][wait.value - 1]);
  time_.wait(queue, counter, wait.value);
  return Progress::Done;
}

Result<Machine::Progress> Machine::execute(Queue queue, const Command& command) {
  CARINA_RETURN_IF_ERROR(spend(kCommandSteps));
  const CommandType type = commandType(command);
  switch (type) {
    case CommandType::LoadIfmStripe:
    case CommandType::LoadWeightStripe:
    case CommandType::LoadPleCodeIntoSram:
    case CommandType::StoreOfmStripe:
      counter_ = type == CommandType::StoreOfmStripe ? Counter::DmaWrite : Counter::DmaRead;
      CARINA_RETURN_IF_ERROR(transfer(std::get<DmaCommand>(command)));
      time_.transfer(
          queue, type == CommandType::LoadPleCodeIntoSram
                     ? static_cast<uint64_t>(kPleKernelMaxBytes)
                     : static_cast<uint64_t>(dma_bytes::kValue.in(std::get<DmaCommand>(command).totalBytes)));
      break;
    case CommandType::ProgramMceStripe: {
      const auto& program = std::get<ProgramMceStripe>(command);
      mce_ = {true, program.agent, std::get<MceScheduler>(stream_.agents[program.agent].data), program};
      return Progress::Done;
    }
    case CommandType::ConfigMceif:
      counter_ = Counter::Mceif;
      CARINA_RETURN_IF_ERROR(configMceif(std::get<ConfigMceif>(command)));
      time_.instant(queue, counter_);
      break;
    case CommandType::StartMceStripe:
      counter_ = Counter::MceStripe;
      CARINA_RETURN_IF_ERROR(startMce(std::get<StartMceStripe>(command)));
      break;
    case CommandType::LoadPleCodeIntoPleSram:
      counter_ = Counter::PleCodeLoaded;
      CARINA_RETURN_IF_ERROR(loadPleCode(std::get<LoadPleCodeIntoPleSram>(command)));
      time_.instant(queue, counter_);
      break;
    case CommandType::StartPleStripe: {
      counter_ = Counter::PleStripe;
      CARINA_TRY(const Progress progress, startPle(std::get<StartPleStripe>(command)));
      if (progress == Progress::Blocked) return progress;
      break;
    }
    case CommandType::WaitForCounter:
      CARINA_UNREACHABLE("waits are dealt with in step");
  }
  finish(counter_, queue);
  return Progress::Done;
}

void Machine::finish(Counter counter, Queue queue) {
  const auto c = static_cast<size_t>(counter);
  Clock end = clocks_[static_cast<size_t>(queue)];
  end.done[c] = ++counters_[c];
  ends_[c].push_back(end);
  // A configuration takes effect with its command.
  if (counter == Counter::Mceif) clocks_[static_cast<size_t>(queue)] = end;
}

Status Machine::configMceif(const ConfigMceif& command) {
  mceifConfig_ = std::get<MceScheduler>(stream_.agents[command.agent].data).pleMceifConfig;
  return {};
}

Status Machine::loadPleCode(const LoadPleCodeIntoPleSram& command) {
  const auto& agent = std::get<PleScheduler>(stream_.agents[command.agent].data);
  CARINA_RETURN_IF_ERROR(sram_.checkRange(agent.kernelSramAddress, kPleKernelMaxBytes));
  touchSram(agent.kernelSramAddress, kPleKernelMaxBytes, (1u << variant_.engines) - 1, false);
  loadedKernel_ = agent.pleKernel;
  return {};
}

Error Machine::blocked() const {
  std::string text = "the lists wait for each other forever:";
  for (size_t q = 0; q < kQueues; ++q) {
    if (position_[q] == stream_.queues[q].size()) continue;
    const Command& command = stream_.queues[q][position_[q]];
    text += fmt::format(" {} at command {} (offset {:#x})", queueName(static_cast<Queue>(q)), position_[q],
                        offsets_[q][position_[q]]);
    if (const auto* wait = std::get_if<WaitForCounter>(&command)) {
      text += fmt::format(" for {} {}, which is at {};", counterName(static_cast<Counter>(wait->counter)),
                          wait->value, counters_[wait->counter]);
    } else {
      text += " for results of the MCE;";
    }
  }
  text.pop_back();
  return fail(Code::NpuFault, "{}", text);
}

size_t Machine::offsetOf(Queue queue, size_t command) const {
  return offsets_[static_cast<size_t>(queue)][command];
}

Error Machine::placed(Error error, Queue queue) const {
  const size_t command = position_[static_cast<size_t>(queue)];
  return std::move(error).at(Finding{queue, command, offsetOf(queue, command), ""}.str());
}

Status Machine::spend(double steps) {
  return work_.require(steps, "the model of an Ethos-N");
}

void Machine::find(std::string message) {
  if (result_.findings.size() >= kMaxFindings) return;
  const size_t command = position_[static_cast<size_t>(queue_)];
  result_.findings.push_back({queue_, command, offsetOf(queue_, command), std::move(message)});
}

void Machine::touchSram(int64_t address, int64_t bytes, uint32_t banks, bool write) {
  if (sramAccesses_.empty()) return;
  const Clock& clock = clocks_[static_cast<size_t>(queue_)];
  const auto step = static_cast<size_t>(variant_.banks());
  const int64_t first = address / 16, last = (address + bytes + 15) / 16;
  for (int32_t bank = 0; bank < variant_.banks(); ++bank) {
    if ((banks >> bank & 1) == 0) continue;
    report(sramAccesses_.touch(static_cast<size_t>(first) * step + static_cast<size_t>(bank),
                               static_cast<size_t>(last - first), step, access(), write, clock),
           fmt::format("SRAM {:#x}", address), write);
  }
}

void Machine::touchTile(const Tile& tile, int64_t y0, int64_t y1, int64_t x0, int64_t x1, int64_t c,
                        bool write) {
  if (sramAccesses_.empty()) return;
  const Clock& clock = clocks_[static_cast<size_t>(queue_)];
  const int64_t banks = variant_.banks();
  for (int64_t y = y0 / 4 * 4; y < y1; y += 4) {
    for (int64_t x = x0 / 4 * 4; x < x1; x += 4) {
      const int64_t address = tile.at(y, x);
      for (int64_t first = 0; first < c; first += banks) {
        const int64_t patch = address + first / banks * 64;
        const auto conflict =
            sramAccesses_.touch(static_cast<size_t>(patch / 16 * banks),
                                static_cast<size_t>(std::min(banks, c - first)), 1, access(), write, clock);
        if (conflict) report(conflict, fmt::format("SRAM {:#x}", patch), write);
      }
    }
  }
}

void Machine::touchDram(const Buffers::View& view, int64_t offset, int64_t bytes, bool write) {
  if (view.accesses == nullptr || bytes <= 0) return;
  const size_t begin = view.offset + static_cast<size_t>(offset), end = begin + static_cast<size_t>(bytes);
  const auto conflict =
      view.accesses->touch(begin / kDramCell, (end + kDramCell - 1) / kDramCell - begin / kDramCell, 1,
                           access(), write, clocks_[static_cast<size_t>(queue_)]);
  if (conflict) report(conflict, fmt::format("byte {:#x} of its buffer", offset), write);
}

void Machine::report(const std::optional<Conflict>& conflict, std::string_view where, bool write) {
  if (!conflict) return;
  const std::string message =
      fmt::format("{} {}, {} {} {} may still {}", write ? "writes" : "reads", where,
                  write && !conflict->withWrite ? "which" : "that", counterName(conflict->with.counter),
                  conflict->with.ordinal, conflict->withWrite ? "write" : "read");
  // One finding per command is enough.
  if (!result_.findings.empty()) {
    const Finding& last = result_.findings.back();
    if (last.queue == queue_ && last.command == position_[static_cast<size_t>(queue_)]) return;
  }
  find(message);
}

}  // namespace carina::ethosn::model
