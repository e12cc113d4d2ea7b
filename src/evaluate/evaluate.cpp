// SPDX-License-Identifier: Apache-2.0
#include "evaluate/evaluate.hpp"

#include <oneapi/tbb/parallel_pipeline.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <atomic>

#include "evaluate/engines.hpp"

namespace carina::evaluate {
namespace {

/// FNV-1a, 64 bits.
class Hash {
 public:
  void add(std::string_view bytes) {
    for (const char c : bytes) step(static_cast<unsigned char>(c));
    step(0xff);  // "ab", "c" is not "a", "bc"
  }
  std::string str() const { return fmt::format("{:016x}", value_); }

 private:
  void step(unsigned byte) { value_ = (value_ ^ byte) * 0x100000001b3ULL; }
  uint64_t value_ = 0xcbf29ce484222325ULL;
};

std::string fingerprintOf(const Options& options, const Engines& engines, const DataSet& data) {
  Hash hash;
  hash.add(engines.program());
  hash.add(data.listing());
  std::string text = fmt::format("{} {} {}", options.boxIou, options.badLayer, options.preprocessing.crop);
  for (const float value : options.preprocessing.mean) text += fmt::format(" m{}", value);
  for (const float value : options.preprocessing.std) text += fmt::format(" s{}", value);
  hash.add(text);
  return hash.str();
}

/// The engines to run: those requested, or all; float results in the data replace a float network.
Result<std::vector<Engine>> chosenEngines(const Options& options, const Engines& engines, bool references) {
  std::vector<Engine> available = engines.available();
  const bool ownFloat = std::find(available.begin(), available.end(), Engine::Float) != available.end();
  if (!ownFloat && references) available.insert(available.begin(), Engine::Float);
  if (options.engines.empty()) return available;
  std::vector<Engine> chosen;
  for (const Engine engine : kEngines) {
    if (std::find(options.engines.begin(), options.engines.end(), engine) == options.engines.end()) continue;
    if (std::find(available.begin(), available.end(), engine) == available.end()) {
      return fail(Code::OptionDoesNotApply, "{} cannot run here", engineName(engine))
          .at("--engines")
          .withRemedy(
              "a program has npu, and float where the data has out0, ...; a quantized network has no float; "
              "only an aten network has a simulation");
    }
    chosen.push_back(engine);
  }
  return chosen;
}

class Evaluator {
 public:
  Evaluator(const Options& options, const Engines& engines, const DataSet& data, const RecordsHeader& header)
      : options_(options), engines_(engines), data_(data), header_(header) {
    const auto& available = engines.available();
    ownFloat_ = std::find(available.begin(), available.end(), Engine::Float) != available.end();
  }

  Result<SampleRecord> record(size_t index) const {
    CARINA_TRY(const DataSample sample, data_.sample(index));
    auto result = judgeSample(index, sample);
    if (!result) return std::move(result).error().inFile(options_.data.string()).at(sample.name);
    return result;
  }

 private:
  Result<SampleRecord> judgeSample(size_t index, const DataSample& sample) const {
    CARINA_TRY(EngineOutputs outputs, engines_.run(sample.inputs, header_.engines));
    auto& reference = outputs.outputs[static_cast<size_t>(Engine::Float)];
    const bool wantsFloat =
        std::find(header_.engines.begin(), header_.engines.end(), Engine::Float) != header_.engines.end();
    if (!ownFloat_ && wantsFloat) {
      if (sample.references.empty()) return fail(Code::InputMismatch, "has no reference outputs");
      reference = sample.references;
    }
    const Tensor* label = sample.label ? &*sample.label : nullptr;
    if (label == nullptr && header_.task != Task::Compare && header_.task != Task::Boxes)
      return fail(Code::InputMismatch, "has no label");
    SampleRecord record;
    record.index = index;
    record.name = sample.name;
    record.npuDiffersFromTosa = outputs.npuDiffersFromTosa;
    record.engines.resize(kEngines.size());
    for (const Engine engine : header_.engines) {
      const auto& found = outputs.outputs[static_cast<size_t>(engine)];
      if (!found || found->empty()) continue;
      const Tensor* floats = reference && !reference->empty() ? &reference->front() : nullptr;
      CARINA_TRY(EngineRecord one, judge(header_.task, found->front(), label, floats, options_.boxIou));
      if (engine != Engine::Float && reference && isFloat(found->front().dtype()))
        addEnergies(one, *found, *reference);
      record.engines[static_cast<size_t>(engine)] = std::move(one);
    }
    CARINA_RETURN_IF_ERROR(explainFlip(record, sample));
    return record;
  }

  Status explainFlip(SampleRecord& record, const DataSample& sample) const {
    const auto& reference = record.engines[static_cast<size_t>(Engine::Float)];
    if (!reference || reference->prediction < 0) return {};
    record.flipped = std::any_of(record.engines.begin(), record.engines.end(), [&](const auto& one) {
      return one && one->prediction != reference->prediction;
    });
    if (!record.flipped) return {};
    CARINA_TRY(record.firstBadLayer, engines_.firstBelow(sample.inputs, options_.badLayer));
    return {};
  }

  const Options& options_;
  const Engines& engines_;
  const DataSet& data_;
  const RecordsHeader& header_;
  bool ownFloat_ = false;
};

/// Passed from stage to stage.
struct Passing {
  size_t index = 0;
  std::optional<Result<SampleRecord>> record;
};

/// Judges samples [first, last) on all cores and passes them to `sink` in order.
Status runAll(const Evaluator& evaluator, size_t first, size_t last, const RecordSink& sink) {
  namespace tbb = oneapi::tbb;
  size_t next = first;
  std::atomic<bool> stop = false;
  Status status;
  const auto tokens = 2 * static_cast<size_t>(tbb::this_task_arena::max_concurrency());
  tbb::parallel_pipeline(
      tokens,
      tbb::make_filter<void, Passing>(tbb::filter_mode::serial_in_order, [&](tbb::flow_control& control) {
        if (stop || next == last) {
          control.stop();
          return Passing{};
        }
        return Passing{next++, std::nullopt};
      }) & tbb::make_filter<Passing, Passing>(tbb::filter_mode::parallel, [&](Passing passing) {
        if (!stop) passing.record = evaluator.record(passing.index);
        return passing;
      }) & tbb::make_filter<Passing, void>(tbb::filter_mode::serial_in_order, [&](const Passing& passing) {
        if (!status.ok() || !passing.record) return;
        status = passing.record->ok() ? sink(**passing.record) : Status(passing.record->error());
        if (!status.ok()) stop = true;
      }));
  return status;
}

}  // namespace

void Evaluation::takeMeasured() {
  for (const EngineSummary& engine : summary.engines()) {
    if (engine.engine != Engine::Npu) continue;
    measured.top1 = engine.top1;
    measured.sqnr = engine.worstSqnr;
  }
}

Result<Evaluation> evaluate(const Options& options) {
  Evaluation result;
  CARINA_TRY(const Engines engines, Engines::open(options.build, result.warnings));
  CARINA_TRY(const DataSet data,
             DataSet::open(options.data, engines.inputs(), options.preprocessing, engines.forms()));
  CARINA_TRY(const DataSample example, data.sample(0));
  RecordsHeader& header = result.header;
  CARINA_TRY(header.engines, chosenEngines(options, engines, !example.references.empty()));
  result.measured = engines.measured();
  header.subject = result.measured.subject;
  header.data = options.data.string();
  header.samples = options.most > 0 ? std::min(options.most, data.size()) : data.size();
  header.shard = options.shard;
  header.shards = options.shards;
  header.npuCycles = result.measured.cycles.value_or(0);
  header.badLayer = options.badLayer;
  header.fingerprint = fingerprintOf(options, engines, data);
  if (options.task) {
    header.task = *options.task;
  } else {
    CARINA_TRY(const EngineOutputs outputs, engines.run(example.inputs, {Engine::Npu}));
    const auto& first = outputs.outputs[static_cast<size_t>(Engine::Npu)];
    if (!first || first->empty())
      return fail(Code::InputMismatch, "the program has no outputs").inFile(options.build.model.string());
    auto task = taskOf(example.label ? &*example.label : nullptr, first->front().shape());
    if (!task) return std::move(task).error().inFile(options.data.string());
    header.task = *task;
  }
  result.summary = Summary(header.task, header.engines);
  const size_t first = header.first(), last = header.last();
  size_t done = 0;
  const RecordSink count = [&](const SampleRecord& record) {
    result.summary.add(record);
    if (options.record) options.record(record);
    ++done;
    if (options.progress) options.progress(done, last - first);
    return Status();
  };
  std::optional<RecordsWriter> writer;
  if (!options.records.empty()) {
    CARINA_TRY(writer, RecordsWriter::open(options.records, header, count));
  }
  const Evaluator evaluator(options, engines, data, header);
  const RecordSink keep = [&](const SampleRecord& record) {
    if (writer) {
      if (Status written = writer->add(record); !written.ok()) return written;
    }
    return count(record);
  };
  CARINA_RETURN_IF_ERROR(runAll(evaluator, first + done, last, keep));
  if (writer) CARINA_RETURN_IF_ERROR(writer->finish());
  result.takeMeasured();
  return result;
}

Result<Evaluation> merge(const std::vector<std::filesystem::path>& files) {
  std::vector<std::pair<RecordsHeader, std::filesystem::path>> shards;
  for (const std::filesystem::path& file : files) {
    CARINA_TRY(RecordsHeader header, readRecordsHeader(file));
    shards.emplace_back(std::move(header), file);
  }
  if (shards.empty()) return fail(Code::InputMismatch, "there is nothing to merge");
  std::sort(shards.begin(), shards.end(),
            [](const auto& a, const auto& b) { return a.first.shard < b.first.shard; });
  for (size_t i = 0; i < shards.size(); ++i) {
    const RecordsHeader& header = shards[i].first;
    const std::string file = shards[i].second.string();
    if (!header.sameEvaluation(shards.front().first)) {
      return fail(Code::InputMismatch, "belongs to another evaluation than {}",
                  shards.front().second.string())
          .inFile(file)
          .withRemedy("merge shards of one program, one data set and the same options");
    }
    if (header.shard < i)
      return fail(Code::InputMismatch, "is shard {}/{}, as is {}", header.shard + 1, header.shards,
                  shards[i - 1].second.string())
          .inFile(file);
    if (header.shard > i) return fail(Code::InputMismatch, "shard {}/{} is missing", i + 1, header.shards);
  }
  if (shards.size() != shards.front().first.shards)
    return fail(Code::InputMismatch, "shard {}/{} is missing", shards.size() + 1,
                shards.front().first.shards);
  Evaluation result;
  result.header = shards.front().first;
  result.header.shard = 0;
  result.header.shards = 1;
  result.summary = Summary(result.header.task, result.header.engines);
  for (const auto& [header, file] : shards) {
    CARINA_RETURN_IF_ERROR(readRecords(file, [&](const SampleRecord& record) {
      result.summary.add(record);
      return Status();
    }));
  }
  result.measured.subject = result.header.subject;
  if (result.header.npuCycles > 0) result.measured.cycles = result.header.npuCycles;
  result.takeMeasured();
  return result;
}

}  // namespace carina::evaluate
