// SPDX-License-Identifier: Apache-2.0
#include "tosa_io/tosa_reader.hpp"

#include "base/damaged.hpp"
#include "base/file.hpp"
#include "tosa_1_x_generated.h"
#include "tosa_io/wire_graph.hpp"

namespace carina::tosa_io {

Result<ir::Graph> readTosa(const std::filesystem::path& path) {
  CARINA_TRY(const std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  auto graph = readTosa(file->bytes(), file);
  if (!graph.ok()) return std::move(graph).error().inFile(path.string()).withRemedy(kDamagedRemedy);
  return graph;
}

Result<ir::Graph> readTosa(ByteSpan bytes, std::shared_ptr<const void> owner) {
  // FlatBuffers offsets are signed 32-bit values.
  const size_t size = std::min<size_t>(bytes.size(), FLATBUFFERS_MAX_BUFFER_SIZE - 1);
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(bytes.data()), size);
  if (size < 8 || !flatbuffers::BufferHasIdentifier(bytes.data(), "TOSA")) {
    return fail(Code::WrongKind, "not a TOSA flatbuffer: the identifier TOSA is missing")
        .withRemedy("give a .tosa file: 'carina compile NETWORK --target TARGET -o GRAPH.tosa' writes one");
  }
  if (!verifier.VerifyBuffer<wire::VersionedFile>("TOSA")) {
    return fail(Code::Damaged, "the file is damaged: it has no readable version")
        .withRemedy("copy or export the file again");
  }
  const wire::Version& version = *flatbuffers::GetRoot<wire::VersionedFile>(bytes.data())->version();
  const int major = version.major(), minor = version.minor();
  const bool isVersion1 = major == 1 && (minor == 0 || minor == 1), is080 = major == 0 && minor == 80;
  if (!isVersion1 && !is080) {
    return fail(Code::UnknownVersion, "TOSA version {}.{}.{} is not supported", major, minor, version.patch())
        .withRemedy("write the file as TOSA 1.0");
  }
  CARINA_TRY(WireFile file, isVersion1 ? readVersion1(bytes) : readVersion080(bytes));
  file.owner = std::move(owner);
  return buildGraph(file);
}

}  // namespace carina::tosa_io
