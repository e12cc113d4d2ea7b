// SPDX-License-Identifier: Apache-2.0
// File kinds, recognized by the first bytes.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/result.hpp"
#include "base/tensor.hpp"

namespace carina::pipeline {

enum class FileKind : uint8_t {
  Unknown,
  Program,     // .pte
  Bundle,      // .bpte
  TensorData,  // .ptd
  Tflite,
  Tosa,
  Archive,        // zip: .pt2
  Arrays,         // zip of arrays: .npz
  Array,          // .npy
  DelegateBlob,   // .bin
  Payload,        // driver payload, COP1 or COP2
  Firmware,       // .elf
  EtDump,         // profile for ExecuTorch's tools, .etdp
  EthosNNetwork,  // compiled for an Ethos-N78, .encn
  Json,           // recognized by name: reports, rules
};

FileKind fileKind(ByteSpan bytes);
/// By content; if that is inconclusive (a damaged file), by name, so that the matching reader reports what is
/// wrong.
FileKind fileKind(ByteSpan bytes, const std::filesystem::path& file);
/// The same for a file of which only the kind is needed. Errors are those of MappedFile::open.
Result<FileKind> fileKindOf(const std::filesystem::path& file);
const char* fileKindName(FileKind kind);  // "program (.pte)", ...

}  // namespace carina::pipeline
