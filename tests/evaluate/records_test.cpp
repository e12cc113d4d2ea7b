// SPDX-License-Identifier: Apache-2.0
#include "evaluate/records.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "support/contents.hpp"
#include "support/require.hpp"
#include "support/temp_dir.hpp"

namespace carina::evaluate {
namespace {

using testing::HasSubstr;

class Records : public testing::Test {
 protected:
  static RecordsHeader header() {
    RecordsHeader result;
    result.fingerprint = "0123456789abcdef";
    result.subject = "net.pt2";
    result.data = "data";
    result.engines = {Engine::Float, Engine::Npu};
    result.samples = 10;
    result.npuCycles = 77;
    result.badLayer = 20;
    return result;
  }

  static SampleRecord record(size_t index) {
    SampleRecord result;
    result.index = index;
    result.name = "sample \"x\" " + std::to_string(index);
    result.engines.resize(kEngines.size());
    EngineRecord one;
    one.prediction = static_cast<int64_t>(index % 3);
    one.counts = {1, 0, 1};
    one.loss = 0.1 * static_cast<double>(index);
    one.energies = {{1.0 / 3, std::nextafter(0.1, 1), 5e-324, std::numeric_limits<double>::infinity()}};
    result.engines[static_cast<size_t>(Engine::Npu)] = one;
    result.flipped = index == 4;
    if (result.flipped) result.firstBadLayer = "conv2d_3";
    return result;
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string contents(const std::string& name) const { return test::contentsOf(path(name)); }

  /// Writes records from the current end of the file up to `end`.
  Status write(const std::string& name, const RecordsHeader& head, size_t end, bool finish) {
    seen_.clear();
    auto writer = RecordsWriter::open(path(name), head, [&](const SampleRecord& one) {
      seen_.push_back(one.index);
      return Status();
    });
    if (!writer) return std::move(writer).error();
    for (size_t i = head.first() + seen_.size(); i < end; ++i) CARINA_RETURN_IF_ERROR(writer->add(record(i)));
    return finish ? writer->finish() : Status();
  }

  test::TempDir folder_;
  std::vector<size_t> seen_;
};

TEST_F(Records, ReadBackBitForBit) {
  ASSERT_TRUE(write("r", header(), 10, true).ok());
  size_t index = 0;
  require(readRecords(path("r"), [&](const SampleRecord& one) {
    const SampleRecord wanted = record(index++);
    EXPECT_EQ(one.index, wanted.index);
    EXPECT_EQ(one.name, wanted.name);
    EXPECT_EQ(one.flipped, wanted.flipped);
    EXPECT_EQ(one.firstBadLayer, wanted.firstBadLayer);
    for (size_t e = 0; e < kEngines.size(); ++e) EXPECT_EQ(one.engines[e], wanted.engines[e]);
    return Status();
  }));
  EXPECT_EQ(index, 10u);
  EXPECT_TRUE(readRecordsHeader(path("r"))->sameEvaluation(header()));
}

TEST_F(Records, ResumesToTheSameFileFromAnyPoint) {
  ASSERT_TRUE(write("whole", header(), 10, true).ok());
  const std::string whole = contents("whole");
  for (size_t size = 0; size < whole.size(); size += 7) {
    std::ofstream(path("cut.partial"), std::ios::binary) << whole.substr(0, size);
    const Status status = write("cut", header(), 10, true);
    ASSERT_TRUE(status.ok()) << size << ": " << status.error().str();
    ASSERT_EQ(contents("cut"), whole) << "cut at " << size;
    std::filesystem::remove(path("cut"));
  }
  EXPECT_FALSE(std::filesystem::exists(path("cut.partial")));
}

TEST_F(Records, OtherEvaluationsAreNotContinued) {
  ASSERT_TRUE(write("r", header(), 5, false).ok());
  RecordsHeader other = header();
  other.fingerprint = "fedcba9876543210";
  const std::string before = contents("r.partial");
  EXPECT_THAT(errorOf(write("r", other, 10, true)), HasSubstr("another evaluation"));
  EXPECT_EQ(contents("r.partial"), before);
}

TEST_F(Records, IncompleteFilesAreReported) {
  ASSERT_TRUE(write("r", header(), 5, false).ok());
  EXPECT_THAT(errorOf(readRecords(path("r.partial"), [](const SampleRecord&) { return Status(); })),
              HasSubstr("is not complete: 5 of 10 records"));
  std::ofstream(path("text")) << "hello\n";
  EXPECT_FALSE(readRecordsHeader(path("text")).ok());
  std::ofstream(path("empty")) << "";
  EXPECT_FALSE(readRecordsHeader(path("empty")).ok());
}

TEST_F(Records, ShardsCoverAllSamplesOnce) {
  for (const size_t samples : {size_t{0}, size_t{1}, size_t{7}, size_t{600}}) {
    for (const size_t shards : {size_t{1}, size_t{3}, size_t{8}}) {
      size_t next = 0;
      for (size_t shard = 0; shard < shards; ++shard) {
        RecordsHeader head = header();
        head.samples = samples;
        head.shard = shard;
        head.shards = shards;
        EXPECT_EQ(head.first(), next);
        next = head.last();
      }
      EXPECT_EQ(next, samples);
    }
  }
}

}  // namespace
}  // namespace carina::evaluate
