// SPDX-License-Identifier: Apache-2.0
#include "pipeline/file_kind.hpp"

#include <string>
#include <utility>

#include "base/file.hpp"
#include "ethosn/stream/compiled_network.hpp"
#include "format/delegate_blob.hpp"

namespace carina::pipeline {

namespace {

/// Name of the first member of a zip archive: its length is at 26, the name at 30.
std::string_view firstMember(std::string_view zip) {
  constexpr size_t kLengthAt = 26, kNameAt = 30;
  if (zip.size() < kNameAt) return {};
  const auto byteAt = [&](size_t i) { return static_cast<size_t>(static_cast<uint8_t>(zip[i])); };
  return zip.substr(kNameAt, byteAt(kLengthAt) | byteAt(kLengthAt + 1) << 8);
}

}  // namespace

FileKind fileKind(ByteSpan bytes) {
  const std::string_view text = asText(bytes);
  if (text.starts_with(format::blob::kBegin)) return FileKind::DelegateBlob;
  if (text.starts_with("COP1") || text.starts_with("COP2")) return FileKind::Payload;
  if (ethosn::isCompiledNetwork(bytes)) return FileKind::EthosNNetwork;
  if (text.starts_with("PK\x03\x04"))
    return firstMember(text).ends_with(".npy") ? FileKind::Arrays : FileKind::Archive;
  if (text.starts_with("\x93NUMPY")) return FileKind::Array;
  if (text.starts_with("\x7f"
                       "ELF"))
    return FileKind::Firmware;
  // FlatBuffers have their identifier after the root offset.
  const std::string_view identifier = text.size() >= 8 ? text.substr(4, 4) : std::string_view();
  if (identifier == "ET12") return FileKind::Program;
  if (identifier == "BP08") return FileKind::Bundle;
  if (identifier == "FT01") return FileKind::TensorData;
  if (identifier == "TFL3") return FileKind::Tflite;
  if (identifier == "TOSA") return FileKind::Tosa;
  if (identifier == "ED00" || (text.size() >= 12 && text.substr(8, 4) == "ED00")) return FileKind::EtDump;
  return FileKind::Unknown;
}

FileKind fileKind(ByteSpan bytes, const std::filesystem::path& file) {
  const FileKind kind = fileKind(bytes);
  if (kind != FileKind::Unknown) return kind;
  constexpr std::pair<std::string_view, FileKind> kByName[] = {
      {".pte", FileKind::Program},        {".bpte", FileKind::Bundle}, {".ptd", FileKind::TensorData},
      {".tflite", FileKind::Tflite},      {".tosa", FileKind::Tosa},   {".pt2", FileKind::Archive},
      {".npz", FileKind::Arrays},         {".npy", FileKind::Array},   {".elf", FileKind::Firmware},
      {".axf", FileKind::Firmware},       {".etdp", FileKind::EtDump}, {".json", FileKind::Json},
      {".encn", FileKind::EthosNNetwork},
  };
  const std::string extension = file.extension().string();
  for (const auto& [name, known] : kByName) {
    if (extension == name) return known;
  }
  return FileKind::Unknown;
}

Result<FileKind> fileKindOf(const std::filesystem::path& file) {
  CARINA_TRY(const auto mapped, MappedFile::open(file, MappedFile::Reading::Little));
  return fileKind(mapped->bytes(), file);
}

const char* fileKindName(FileKind kind) {
  switch (kind) {
    case FileKind::Program:
      return "program (.pte)";
    case FileKind::Bundle:
      return "bundled program (.bpte)";
    case FileKind::TensorData:
      return "tensor data file (.ptd)";
    case FileKind::Tflite:
      return "TensorFlow Lite model";
    case FileKind::Tosa:
      return "TOSA graph";
    case FileKind::Archive:
      return "zip archive";
    case FileKind::Arrays:
      return "NumPy archive (.npz)";
    case FileKind::Array:
      return "NumPy array";
    case FileKind::DelegateBlob:
      return "delegate blob";
    case FileKind::Payload:
      return "driver payload";
    case FileKind::Firmware:
      return "firmware image (.elf)";
    case FileKind::EtDump:
      return "profile for ExecuTorch's tools (ETDump)";
    case FileKind::EthosNNetwork:
      return "compiled Ethos-N network (.encn)";
    case FileKind::Json:
      return "JSON file";
    case FileKind::Unknown:
      break;
  }
  return "file of unknown kind";
}

}  // namespace carina::pipeline
