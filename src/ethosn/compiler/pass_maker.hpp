// SPDX-License-Identifier: Apache-2.0
// Operations to passes, one after the other (passes.cpp, passes_shapes.cpp).
#pragma once

#include "ethosn/compiler/plan.hpp"

namespace carina::ethosn::compiler {

inline int32_t lowest(bool isSigned) {
  return isSigned ? -128 : 0;
}

inline int32_t highest(bool isSigned) {
  return isSigned ? 127 : 255;
}

/// Scales and weights of an operation, in the form of an MCE layer.
std::vector<OfmScale> scalesOf(const NetworkOperation& operation, const Quantization& input, int32_t outputs);
std::vector<int16_t> weightsLessZeroPoint(const NetworkOperation& operation);

class PassMaker {
 public:
  PassMaker(const Network& network, const Target& target) : network_(network), target_(target) {}

  Result<PassList> make();

 private:
  Status add(const NetworkOperation& operation);
  Status convolution(const NetworkOperation& operation);
  Status fullyConnected(const NetworkOperation& operation);
  Status identity(const NetworkOperation& operation);
  Status pooling(const NetworkOperation& operation);
  void slidingMaximum(const NetworkOperation& operation);
  Status binary(const NetworkOperation& operation);
  Status curve(const NetworkOperation& operation);
  void concatenation(const NetworkOperation& operation);
  void split(const NetworkOperation& operation);
  FeatureMap inBricks(const FeatureMap& map, const std::string& name);
  void select(const NetworkOperation& operation, const FeatureMap& from, const std::vector<int32_t>& channels,
              const FeatureMap& to);
  Status transpose(const NetworkOperation& operation);
  FeatureMap channelsToTheEnd(const FeatureMap& map, const std::string& name);
  void channelsToTheFront(const FeatureMap& map, const FeatureMap& to, const std::string& name);
  void rowsForColumns(const NetworkOperation& operation, const FeatureMap& map, const FeatureMap& to);
  void transposeConvolution(const NetworkOperation& operation);
  void depthToSpace(const NetworkOperation& operation);
  void resize(const NetworkOperation& operation);
  void shareUses(const NetworkOperation& operation);
  void relu(const NetworkOperation& operation);

  const TensorInfo& info(int32_t tensor) const { return network_.tensors[static_cast<size_t>(tensor)]; }
  FeatureMap& map(int32_t tensor) { return maps_[static_cast<size_t>(tensor)]; }
  Layout layoutOf(const FeatureMap& map) const {
    return list_.storages[static_cast<size_t>(map.storage)].layout;
  }

  int32_t addStorage(Storage::Kind kind, Layout layout, int32_t h, int32_t w, int32_t c,
                     const std::string& name);
  FeatureMap wholeMap(int32_t storage, const TensorInfo& info) const;
  FeatureMap newMap(int32_t tensor, const std::string& name);
  FeatureMap between(const FeatureMap& like, int32_t h, int32_t w, int32_t c, const std::string& name);
  FeatureMap channelsLast(const FeatureMap& map, const std::string& name);

  Pass identityPass(const NetworkOperation& operation, const FeatureMap& in, const Quantization& from,
                    const Quantization& to, bool toSigned);
  /// Sets input, output and PLE kernel of a pass whose MCE covers all of a new feature map.
  void overMap(Pass& pass, const NetworkOperation& operation, const FeatureMap& in);
  FeatureMap interleaved(const NetworkOperation& operation, const FeatureMap& in);
  Pass* fusible(const FeatureMap& in, int32_t tensor);
  void behind(const NetworkOperation& operation, const PleKernel& kernel, const FeatureMap& out,
              const std::array<PleScale, 2>& scales);
  void copy(const FeatureMap& from, const FeatureMap& to, const std::string& name);
  Pass upsampled(const NetworkOperation& operation, const FeatureMap& in, LayerWeights layer,
                 Resampling resampling);

  const Network& network_;
  const Target& target_;
  PassList list_;
  std::vector<FeatureMap> maps_;
  std::vector<int32_t> uses_;
  std::vector<bool> asRows_;  // must be in NHWC
};

}  // namespace carina::ethosn::compiler
