// SPDX-License-Identifier: Apache-2.0
#include "evaluate/records.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "base/json.hpp"
#include "base/output_path.hpp"

namespace carina::evaluate {
namespace {

using Json = nlohmann::ordered_json;
using ReadJson = nlohmann::json;
namespace fs = std::filesystem;

constexpr const char* kSchema = "carina.records/1";
constexpr size_t kLongestLine = size_t{64} << 20;

fs::path partialOf(const fs::path& path) {
  return fs::path(path).concat(".partial");
}

std::string lineOf(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string headerLine(const RecordsHeader& header) {
  Json json = Json::object();
  json["schema"] = kSchema;
  json["fingerprint"] = header.fingerprint;
  json["subject"] = header.subject;
  json["data"] = header.data;
  json["task"] = static_cast<int>(header.task);
  json["engines"] = Json::array();
  for (const Engine engine : header.engines) json["engines"].push_back(static_cast<int>(engine));
  json["samples"] = header.samples;
  json["shard"] = header.shard;
  json["shards"] = header.shards;
  json["npu_cycles"] = header.npuCycles;
  json["bad_layer_db"] = header.badLayer;
  return lineOf(json);
}

/// Doubles are stored as the shortest text that reads back as the same bits. JSON has no infinities and NaN:
/// these are strings.
Json numberOf(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

double numberOf(const ReadJson& json) {
  if (json.is_number()) return json.get<double>();
  const auto text = json.get<std::string>();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  throw std::invalid_argument("is not a number");
}

/// Throws std::invalid_argument if the text is malformed.
ReadJson jsonOf(const std::string& line) {
  auto json = parseJson(line);
  if (!json) throw std::invalid_argument(json.error().str());
  return std::move(*json);
}

/// Throws std::exception if the text is malformed or not a header.
RecordsHeader parseHeader(const std::string& line) {
  const ReadJson json = jsonOf(line);
  if (json.at("schema").get<std::string>() != kSchema) throw std::invalid_argument("has another schema");
  RecordsHeader header;
  header.fingerprint = json.at("fingerprint").get<std::string>();
  header.subject = json.at("subject").get<std::string>();
  header.data = json.at("data").get<std::string>();
  const int task = json.at("task").get<int>();
  if (task < 0 || task > static_cast<int>(Task::Boxes)) throw std::invalid_argument("has an unknown task");
  header.task = static_cast<Task>(task);
  for (const ReadJson& entry : json.at("engines")) {
    const int engine = entry.get<int>();
    if (engine < 0 || engine >= static_cast<int>(kEngines.size()))
      throw std::invalid_argument("has an unknown engine");
    header.engines.push_back(static_cast<Engine>(engine));
  }
  header.samples = json.at("samples").get<size_t>();
  header.shard = json.at("shard").get<size_t>();
  header.shards = json.at("shards").get<size_t>();
  constexpr size_t kMost = size_t{1} << 40;
  if (header.samples > kMost || header.shards < 1 || header.shards > (size_t{1} << 20) ||
      header.shard >= header.shards)
    throw std::invalid_argument("has impossible numbers");
  header.npuCycles = json.at("npu_cycles").get<int64_t>();
  header.badLayer = json.at("bad_layer_db").get<double>();
  return header;
}

SampleRecord parseRecord(const ReadJson& json) {
  SampleRecord record;
  record.index = json.at("i").get<size_t>();
  record.name = json.at("name").get<std::string>();
  record.npuDiffersFromTosa = json.contains("differs");
  record.flipped = json.contains("bad_layer");
  if (record.flipped) record.firstBadLayer = json.at("bad_layer").get<std::string>();
  for (const ReadJson& entry : json.at("engines")) {
    auto& one = record.engines.emplace_back();
    if (entry.is_null()) continue;
    one.emplace();
    one->prediction = entry.at("p").get<int64_t>();
    one->counts = entry.at("n").get<std::vector<int64_t>>();
    if (entry.contains("loss")) one->loss = numberOf(entry.at("loss"));
    for (const ReadJson& energy : entry.at("e"))
      one->energies.push_back(
          {numberOf(energy.at(0)), numberOf(energy.at(1)), numberOf(energy.at(2)), numberOf(energy.at(3))});
  }
  if (record.engines.size() != kEngines.size()) throw std::invalid_argument("has another number of engines");
  return record;
}

/// The result of reading a file.
struct Scan {
  RecordsHeader header;
  size_t records = 0;
  bool complete = false;
  uint64_t goodBytes = 0;  // up to the end of the last complete line
};

Error noRecords(const char* why, const fs::path& path) {
  return fail(Code::Damaged, "is not a records file: {}", why)
      .inFile(path.string())
      .withRemedy("give a file that 'carina evaluate --records' wrote");
}

/// Reads as long as lines are complete and in order. A damaged or missing rest is not an error here.
Result<Scan> scan(const fs::path& path, const RecordSink& sink, bool headerOnly = false) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream)
    return fail(Code::CannotRead, "cannot be read: {}", std::strerror(errno))
        .inFile(path.string())
        .withRemedy("Check the path.");
  Scan result;
  std::string line;
  size_t number = 0;
  while (std::getline(stream, line)) {
    ++number;
    if (stream.eof()) break;  // without a line end it may be truncated
    if (line.size() > kLongestLine) break;
    try {
      if (number == 1) {
        result.header = parseHeader(line);
        if (headerOnly) return result;
      } else {
        if (result.complete) throw std::invalid_argument("follows the end");
        const ReadJson json = jsonOf(line);
        if (json.contains("end")) {
          if (json.at("end").get<size_t>() != result.records ||
              result.header.first() + result.records != result.header.last())
            throw std::invalid_argument("states another number of samples");
          result.complete = true;
        } else {
          const SampleRecord record = parseRecord(json);
          if (record.index != result.header.first() + result.records || record.index >= result.header.last())
            throw std::invalid_argument("is out of order");
          CARINA_RETURN_IF_ERROR(sink(record));
          ++result.records;
        }
      }
    } catch (const std::exception& error) {
      if (number == 1) return noRecords(error.what(), path);
      break;
    }
    result.goodBytes += line.size() + 1;
  }
  if (number == 0 || result.goodBytes == 0) return noRecords("it has no header", path);
  return result;
}

}  // namespace

std::string recordLine(const SampleRecord& record) {
  Json json = Json::object();
  json["i"] = record.index;
  json["name"] = record.name;
  if (record.npuDiffersFromTosa) json["differs"] = true;
  if (record.flipped) json["bad_layer"] = record.firstBadLayer;
  json["engines"] = Json::array();
  for (const auto& one : record.engines) {
    Json entry;  // null: this engine has no result
    if (one) {
      entry = Json::object();
      entry["p"] = one->prediction;
      entry["n"] = one->counts;
      if (one->loss != 0) entry["loss"] = numberOf(one->loss);
      entry["e"] = Json::array();
      for (const Energy& energy : one->energies) {
        entry["e"].push_back({numberOf(energy.reference), numberOf(energy.error), numberOf(energy.found),
                              numberOf(energy.product)});
      }
    }
    json["engines"].push_back(std::move(entry));
  }
  return lineOf(json);
}

Result<SampleRecord> parseRecordLine(const std::string& line) {
  try {
    return parseRecord(jsonOf(line));
  } catch (const std::exception& error) {
    return fail(Code::Damaged, "a record is damaged: {}", error.what());
  }
}

size_t RecordsHeader::part(size_t index) const {
  return samples / shards * index + std::min(index, samples % shards);
}

bool RecordsHeader::sameEvaluation(const RecordsHeader& other) const {
  return fingerprint == other.fingerprint && task == other.task && engines == other.engines &&
         samples == other.samples && shards == other.shards && npuCycles == other.npuCycles &&
         badLayer == other.badLayer;
}

RecordsWriter::~RecordsWriter() {
  if (file_ != nullptr) std::fclose(file_);
}

RecordsWriter::RecordsWriter(RecordsWriter&& other) noexcept {
  *this = std::move(other);
}

RecordsWriter& RecordsWriter::operator=(RecordsWriter&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(partial_, other.partial_);
  std::swap(file_, other.file_);
  std::swap(resumed_, other.resumed_);
  std::swap(complete_, other.complete_);
  return *this;
}

Result<RecordsWriter> RecordsWriter::open(const fs::path& path, const RecordsHeader& header,
                                          const RecordSink& sink) {
  RecordsWriter writer;
  writer.path_ = path;
  writer.partial_ = partialOf(path);
  std::error_code ignored;
  const bool finished = fs::exists(path, ignored);
  const fs::path& present = finished ? path : writer.partial_;
  uint64_t keep = 0;
  if (finished || fs::exists(present, ignored)) {
    // A file that was interrupted within its first line holds nothing to continue from.
    const auto nothing = [](const SampleRecord&) { return Status(); };
    auto there = scan(present, nothing, true);
    const bool begun = there.ok();
    if (!begun && finished) return std::move(there).error();
    if (begun && (!there->header.sameEvaluation(header) || there->header.shard != header.shard)) {
      return fail(Code::ResultsDiffer, "holds records of another evaluation")
          .inFile(present.string())
          .withRemedy("program, data, options or shard differ: name another file, or remove this one");
    }
    if (begun) {
      CARINA_TRY(const Scan all, scan(present, sink));
      if (finished && !all.complete)
        return fail(Code::Damaged, "is damaged after {} records", all.records)
            .inFile(path.string())
            .withRemedy("remove it and evaluate again");
      writer.resumed_ = all.records;
      writer.complete_ = finished;
      keep = all.goodBytes;
      // The end was written but the file was not renamed: the line is written again.
      if (all.complete && !finished) {
        const std::string end = lineOf(Json{{"end", all.records}});
        keep -= end.size();
      }
    }
  }
  if (writer.complete_) return writer;
  CARINA_RETURN_IF_ERROR(checkOutputPath(path));
  const int descriptor = ::open(writer.partial_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0 || ::ftruncate(descriptor, static_cast<off_t>(keep)) != 0 ||
      ::lseek(descriptor, static_cast<off_t>(keep), SEEK_SET) < 0) {
    const int error = errno;
    if (descriptor >= 0) ::close(descriptor);
    return fail(Code::CannotWrite, "cannot be written: {}", std::strerror(error))
        .inFile(writer.partial_.string());
  }
  writer.file_ = ::fdopen(descriptor, "wb");
  if (writer.file_ == nullptr)
    return fail(Code::CannotWrite, "cannot be written").inFile(writer.partial_.string());
  if (keep == 0) {
    const std::string line = headerLine(header);
    std::fwrite(line.data(), 1, line.size(), writer.file_);
    CARINA_RETURN_IF_ERROR(flush(writer.file_, writer.partial_.string()));
  }
  return writer;
}

Status RecordsWriter::add(const SampleRecord& record) {
  const std::string line = recordLine(record);
  std::fwrite(line.data(), 1, line.size(), file_);
  ++resumed_;
  return flush(file_, partial_.string());
}

Status RecordsWriter::finish() {
  if (complete_) return {};
  const std::string line = lineOf(Json{{"end", resumed_}});
  std::fwrite(line.data(), 1, line.size(), file_);
  CARINA_RETURN_IF_ERROR(flush(file_, partial_.string()));
  const bool synced = ::fsync(::fileno(file_)) == 0;
  const int syncError = errno;
  std::fclose(std::exchange(file_, nullptr));
  if (!synced)
    return fail(Code::CannotWrite, "cannot be written: {}", std::strerror(syncError))
        .inFile(partial_.string());
  std::error_code problem;
  fs::rename(partial_, path_, problem);
  if (problem)
    return fail(Code::CannotWrite, "cannot be written: {}", problem.message()).inFile(path_.string());
  complete_ = true;
  return {};
}

Result<RecordsHeader> readRecordsHeader(const fs::path& path) {
  CARINA_TRY(const Scan result, scan(
                                    path, [](const SampleRecord&) { return Status(); }, true));
  return result.header;
}

Status readRecords(const fs::path& path, const RecordSink& sink) {
  CARINA_TRY(const Scan result, scan(path, sink));
  if (result.complete) return {};
  return fail(Code::Damaged, "is not complete: {} of {} records", result.records,
              result.header.last() - result.header.first())
      .inFile(path.string())
      .withRemedy("run the same command again to continue where it stopped");
}

}  // namespace carina::evaluate
