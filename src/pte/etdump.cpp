// SPDX-License-Identifier: Apache-2.0
#include "pte/etdump.hpp"

#include "pte/schema.hpp"

namespace carina::pte {
namespace {

namespace etdump = fb::etdump;
using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

Offset<etdump::EventEntry> write(FlatBufferBuilder& builder, const ProfileEvent& event) {
  const auto name = builder.CreateString(event.name);
  Offset<flatbuffers::String> place;
  if (!event.delegatePlace.empty()) place = builder.CreateString(event.delegatePlace);
  const auto profile =
      etdump::CreateProfile(builder, name, 0, event.instruction, -1, place, 0, event.start, event.end);
  return etdump::CreateEventEntry(builder, profile);
}

Offset<etdump::RunEntry> write(FlatBufferBuilder& builder, const ProfiledRun& run) {
  std::vector<Offset<etdump::EventEntry>> events;
  for (const ProfileEvent& event : run.events) events.push_back(write(builder, event));
  const auto name = builder.CreateString(run.name);
  const auto list = builder.CreateVector(events);
  return etdump::CreateRunEntry(builder, name, run.bundledCase, 0, list);
}

}  // namespace

std::string writeEtDump(std::span<const ProfiledRun> runs) {
  FlatBufferBuilder builder;
  std::vector<Offset<etdump::RunEntry>> entries;
  for (const ProfiledRun& run : runs) entries.push_back(write(builder, run));
  const auto root = etdump::CreateDumpRoot(builder, 0, builder.CreateVector(entries));
  builder.FinishSizePrefixed(root, "ED00");
  return {reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize()};
}

}  // namespace carina::pte
