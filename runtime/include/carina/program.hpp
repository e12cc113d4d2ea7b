// SPDX-License-Identifier: Apache-2.0
// A .pte program in memory, read in place. The bytes must not move or change during the lifetime of the
// Program and its methods.
#pragma once

#include "carina/flatbuffer.hpp"
#include "carina/value.hpp"

namespace carina::rt {

class Program {
 public:
  Program() = default;
  Program(const Program&) = delete;  // methods and tables point into it
  Program& operator=(const Program&) = delete;

  /// Checks container, header and segment table of `file` (untrusted). `file.data` is aligned to 16; trailing
  /// bytes are ignored. Methods are checked when they are loaded (Method::load) or by verify().
  static Status load(Bytes file, Program* program);

  uint32_t methodCount() const { return plans_.count; }
  /// Empty when `index` is out of range.
  Text methodName(uint32_t index) const;
  Status findMethod(const char* name, uint32_t* index) const;

  /// Bytes of segment `index`.
  Status segment(uint32_t index, Bytes* bytes) const;
  /// The blob stored under `key` in the program itself.
  Status namedData(Text key, Bytes* bytes) const;
  uint32_t namedDataCount() const { return named_.count; }

  /// Checks the structure of every method: finds the errors in the file that Method::load() would find.
  Status verify() const;

  /// Bytes of the file that the program uses: the flatbuffer and its segments.
  size_t size() const { return used_; }

 private:
  friend class Method;
  friend class PlanReader;
  FbTable plan(uint32_t index) const { return root_.tableAt(plans_, index); }
  /// Stored data `index` of tensors, from its start to the end of the segment or buffer that holds it.
  Status constant(uint32_t index, Bytes* bytes) const;
  Status mutableData(uint64_t index, Bytes* bytes) const;
  Status subsegment(const FbTable& table, uint64_t index, Bytes* bytes) const;

  Bytes file_;
  Walker walker_;
  FbTable root_;
  FbVector plans_;
  FbVector segments_;
  FbVector named_;
  FbVector inlineData_;
  uint64_t segmentBase_ = 0;
  size_t used_ = 0;
};

}  // namespace carina::rt
