// SPDX-License-Identifier: Apache-2.0
// Record files: one line of JSON that describes the evaluation, one for each sample in order, and one that
// marks the file as complete. While being written, a file is called NAME.partial; an interrupted evaluation
// resumes after its last complete line.
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

/// Identifies an evaluation, and which of its samples a file holds.
struct RecordsHeader {
  std::string fingerprint;  // of program, data and options
  std::string subject;      // "digits8.pt2"
  std::string data;         // as given
  Task task = Task::Classify;
  std::vector<Engine> engines;
  size_t samples = 0;            // of the whole evaluation
  size_t shard = 0, shards = 1;  // this file holds shard 0 .. shards-1
  int64_t npuCycles = 0;         // of one inference
  double badLayer = 0;           // dB

  /// Samples [first, last) of a shard: shard sizes differ by at most one.
  size_t first() const { return part(shard); }
  size_t last() const { return part(shard + 1); }
  /// Whether both belong to the same evaluation.
  bool sameEvaluation(const RecordsHeader& other) const;

 private:
  size_t part(size_t index) const;
};

/// A record as a line of such a file, including the line break, and back.
std::string recordLine(const SampleRecord& record);
Result<SampleRecord> parseRecordLine(const std::string& line);

using RecordSink = std::function<Status(const SampleRecord&)>;

class RecordsWriter {
 public:
  /// Begins NAME.partial, or continues that of the same evaluation and shard: `sink` receives the records
  /// that it already holds. Errors: a file of another evaluation, or one that cannot be written.
  static Result<RecordsWriter> open(const std::filesystem::path& path, const RecordsHeader& header,
                                    const RecordSink& sink);
  ~RecordsWriter();
  RecordsWriter(RecordsWriter&&) noexcept;
  RecordsWriter& operator=(RecordsWriter&&) noexcept;

  size_t resumed() const { return resumed_; }
  bool complete() const { return complete_; }
  /// On return, the record is in the file.
  Status add(const SampleRecord& record);
  /// Makes the file durable and renames it to its final name.
  Status finish();

 private:
  RecordsWriter() = default;
  std::filesystem::path path_, partial_;
  std::FILE* file_ = nullptr;
  size_t resumed_ = 0;
  bool complete_ = false;
};

/// Reads a complete file: its header, then `sink` for every record in order. Errors, with file and line: an
/// incomplete file, missing or misordered records.
Result<RecordsHeader> readRecordsHeader(const std::filesystem::path& path);
Status readRecords(const std::filesystem::path& path, const RecordSink& sink);

}  // namespace carina::evaluate
