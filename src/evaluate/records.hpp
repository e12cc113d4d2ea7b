// SPDX-License-Identifier: Apache-2.0
// Files of records: one line of JSON for what an evaluation is, one for each sample in order, one that says
// that it is complete. A file that is being written is called NAME.partial; an evaluation that was stopped
// goes on behind its last whole line.
#pragma once

#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "evaluate/metrics.hpp"

namespace carina::evaluate {

/// What an evaluation is, and which of its samples a file holds.
struct RecordsHeader {
  std::string fingerprint;  // of program, data and options
  std::string subject;      // "digits8.pt2"
  std::string data;         // as given
  Task task = Task::Classify;
  std::vector<Engine> engines;
  size_t samples = 0;            // of the whole
  size_t shard = 0, shards = 1;  // this file holds shard 0 .. shards-1
  int64_t npuCycles = 0;         // of one inference
  double badLayer = 0;           // dB

  /// Samples [first, last) of a shard: shards differ by one sample at most.
  size_t first() const { return part(shard); }
  size_t last() const { return part(shard + 1); }
  /// Whether both are of one evaluation.
  bool sameEvaluation(const RecordsHeader& other) const;

 private:
  size_t part(size_t index) const;
};

/// A record as a line of such a file, its end included, and back.
std::string recordLine(const SampleRecord& record);
Result<SampleRecord> parseRecordLine(const std::string& line);

using RecordSink = std::function<Status(const SampleRecord&)>;

class RecordsWriter {
 public:
  /// Begins NAME.partial, or continues one of the same evaluation and shard: `sink` gets the records that it
  /// holds. Errors: a file of another evaluation, or that cannot be written.
  static Result<RecordsWriter> open(const std::filesystem::path& path, const RecordsHeader& header,
                                    const RecordSink& sink);
  ~RecordsWriter();
  RecordsWriter(RecordsWriter&&) noexcept;
  RecordsWriter& operator=(RecordsWriter&&) noexcept;

  size_t resumed() const { return resumed_; }
  bool complete() const { return complete_; }
  /// The record is in the file when this returns.
  Status add(const SampleRecord& record);
  /// Makes the file durable and gives it its name.
  Status finish();

 private:
  RecordsWriter() = default;
  std::filesystem::path path_, partial_;
  std::FILE* file_ = nullptr;
  size_t resumed_ = 0;
  bool complete_ = false;
};

/// Reads a complete file: its header, then `sink` for every record in order. Errors, with file and line: a
/// file that is not complete, records that are missing or out of order.
Result<RecordsHeader> readRecordsHeader(const std::filesystem::path& path);
Status readRecords(const std::filesystem::path& path, const RecordSink& sink);

}  // namespace carina::evaluate
