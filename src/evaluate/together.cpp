// SPDX-License-Identifier: Apache-2.0
#include "evaluate/together.hpp"

#include <sstream>

namespace carina::evaluate {
namespace {

/// Merges the records of all parts, in order.
Result<Evaluation> wholeOf(const Evaluation& own, std::span<const std::string> parts,
                           const std::filesystem::path& records) {
  Evaluation whole = own;
  whole.header.shard = 0;
  whole.header.shards = 1;
  whole.summary = Summary(whole.header.task, whole.header.engines);
  std::optional<RecordsWriter> writer;
  if (!records.empty()) {
    // A file left by a single-process evaluation is the beginning of the same data.
    CARINA_TRY(writer,
               RecordsWriter::open(records, whole.header, [](const SampleRecord&) { return Status(); }));
  }
  const size_t written = writer ? writer->resumed() : 0;
  size_t done = 0;
  for (const std::string& part : parts) {
    std::istringstream lines(part);
    for (std::string line; std::getline(lines, line);) {
      CARINA_TRY(const SampleRecord record, parseRecordLine(line));
      whole.summary.add(record);
      if (done++ >= written && writer) CARINA_RETURN_IF_ERROR(writer->add(record));
    }
  }
  if (writer) CARINA_RETURN_IF_ERROR(writer->finish());
  whole.takeMeasured();
  return whole;
}

}  // namespace

Result<std::unique_ptr<Evaluation>> evaluateTogether(const Options& options, const Ranks& ranks) {
  std::unique_ptr<Evaluation> none;
  std::error_code ignored;
  const bool complete = ranks.any(ranks.first() && !options.records.empty() &&
                                  std::filesystem::exists(options.records, ignored));
  if (ranks.size() == 1 || complete) {
    if (!ranks.first()) return none;
    CARINA_TRY(Evaluation alone, evaluate(options));
    return std::make_unique<Evaluation>(std::move(alone));
  }
  Options part = options;
  part.shard = ranks.rank();
  part.shards = ranks.size();
  if (!ranks.first()) part.progress = nullptr;
  if (!options.records.empty()) part.records += fmt::format(".{}-of-{}", ranks.rank() + 1, ranks.size());
  std::string lines;
  part.record = [&](const SampleRecord& record) { lines += recordLine(record); };
  const bool refused = options.shards > 1;
  auto own = refused ? Result<Evaluation>(
                           fail(Code::OptionDoesNotApply, "the processes divide the data among themselves")
                               .at("--shard")
                               .withRemedy("leave it out, or start one process for each shard"))
                     : evaluate(part);
  // If several fail, the first one reports why.
  const int last = static_cast<int>(ranks.size());
  const int failed = last - ranks.largest(own.ok() ? 0 : last - static_cast<int>(ranks.rank()));
  if (failed < last) {
    if (failed == static_cast<int>(ranks.rank())) return std::move(own).error();
    return none;
  }
  const std::vector<std::string> parts = ranks.gather(lines);
  auto whole = ranks.first() ? wholeOf(*own, parts, options.records) : std::move(own);
  if (ranks.any(ranks.first() && whole.ok()) && !options.records.empty())
    std::filesystem::remove(part.records, ignored);
  if (!ranks.first()) return none;
  if (!whole) return std::move(whole).error();
  return std::make_unique<Evaluation>(std::move(*whole));
}

}  // namespace carina::evaluate
