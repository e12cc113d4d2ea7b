// SPDX-License-Identifier: Apache-2.0
// Samples with labels, read one at a time: data that does not fit in memory can be evaluated.
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

/// How data that hold what the network takes become the inputs of a program.
struct InputForms {
  struct Input {
    std::optional<Shape> network;  // as the network takes it, where the program takes another shape or pixels
    bool codes = false;            // quantized codes: pictures are numbers first
  };
  std::vector<Input> inputs;  // may be fewer than there are inputs
  /// Of arrays in0, ... that hold one sample; empty: arrays are what is taken.
  std::function<Result<NamedTensors>(NamedTensors)> take;
};

/// What it may be:
/// - an .npz file, or a folder of them (shards, in the order of their names): in0, in1, ... with a leading
///   sample axis, optionally `labels` and reference outputs out0, out1, ... Stored members of large shards
///   stay in the file; the last shards used are kept open.
/// - a folder with one folder per class of pictures, .npy arrays or raw files (.bin, .raw: the bytes of the
///   input). The class is the rank of its folder's name, or the name where all names are numbers.
/// - a folder of such files with labels.txt, one "FILE LABEL" per line.
class DataSet {
 public:
  /// `inputs`: of the network or program. Errors: nothing there, mixed kinds, arrays that do not fit, with
  /// their file.
  static Result<DataSet> open(const std::filesystem::path& path, std::span<const pipeline::Port> inputs,
                              const Preprocessing& preprocessing, const InputForms& forms = {});
  ~DataSet();
  DataSet(DataSet&&) noexcept;
  DataSet& operator=(DataSet&&) noexcept;

  size_t size() const;
  /// Several threads may ask at the same time.
  Result<DataSample> sample(size_t index) const;
  /// Names, sizes and numbers of samples of all files, for the identity of an evaluation.
  const std::string& listing() const;

 private:
  struct Source;
  struct Shards;
  struct Files;
  explicit DataSet(std::unique_ptr<Source> source);
  std::unique_ptr<Source> source_;
};

}  // namespace carina::evaluate
