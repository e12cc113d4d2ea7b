// SPDX-License-Identifier: Apache-2.0
// Samples with labels, read one at a time: the data need not fit in memory.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/tensor.hpp"
#include "evaluate/images.hpp"
#include "pipeline/batch.hpp"

namespace carina::evaluate {

struct DataSample {
  std::string name;  // "7/img_12.png", "shard_03.npz[17]"
  std::vector<Tensor> inputs;
  std::optional<Tensor> label;     // integers, or boxes
  std::vector<Tensor> references;  // out0, out1, ... of the data; empty: none
};

/// How data in the form of the network's inputs becomes the inputs of a program.
struct InputForms {
  struct Input {
    std::optional<Shape> network;  // as the network expects it, if the program takes another shape or pixels
    bool codes = false;            // quantized codes: images are read as real values first
  };
  std::vector<Input> inputs;  // may be shorter than the list of inputs
  /// For arrays in0, ... that hold one sample; empty: arrays are used unchanged.
  std::function<Result<NamedTensors>(NamedTensors)> take;
};

/// Accepts:
/// - an .npz file, or a directory of them (shards, in name order): in0, in1, ... with a leading sample axis,
///   optionally `labels` and reference outputs out0, out1, ... Stored members of large shards stay in the
///   file; the last shards used are kept open.
/// - a directory with one subdirectory per class that contains images, .npy arrays or raw files (.bin, .raw:
///   the bytes of the input). The class is the rank of the subdirectory's name, or the name itself if all
///   names are numbers.
/// - a directory of such files with labels.txt, one "FILE LABEL" per line.
class DataSet {
 public:
  /// `inputs`: of the network or program. Errors, with their file: no data, mixed kinds, arrays that do not
  /// match.
  static Result<DataSet> open(const std::filesystem::path& path, std::span<const pipeline::Port> inputs,
                              const Preprocessing& preprocessing, const InputForms& forms = {});
  ~DataSet();
  DataSet(DataSet&&) noexcept;
  DataSet& operator=(DataSet&&) noexcept;

  size_t size() const;
  /// May be called from several threads at the same time.
  Result<DataSample> sample(size_t index) const;
  /// Names, sizes and sample counts of all files, for the identity of an evaluation.
  const std::string& listing() const;

 private:
  struct Source;
  struct Shards;
  struct Files;
  explicit DataSet(std::unique_ptr<Source> source);
  std::unique_ptr<Source> source_;
};

}  // namespace carina::evaluate
