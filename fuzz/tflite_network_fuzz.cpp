// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as a quantized network in a .tflite file: networks that lower give valid TOSA graphs,
// networks that are read in part are partitioned, and rewritten files can be read.
#include <cstdint>

#include "base/check.hpp"
#include "lower_tfl/lower.hpp"
#include "partition/partition.hpp"
#include "pipeline/tflite_network.hpp"
#include "target.hpp"
#include "tflite/rewriter.hpp"
#include "tosa/tosa.hpp"

namespace carina::tflite_network_fuzz {

namespace {

void placeParts(const tflite::Model& model) {
  pipeline::TfliteSource source;
  source.model = model;
  auto network = tflite::buildPartialNetwork(model, nullptr);
  if (!network.ok()) return;
  source.network = std::move(*network);
  partition::Options options;
  options.dialect = pipeline::tfliteDialect(source);
  options.whyOther = pipeline::tfliteRefusals(source);
  const auto parts = partition::partition(source.network.graph.clone(), options);
  if (!parts.ok()) return;
  for (const partition::Delegate& delegate : parts->delegates)
    CARINA_CHECK(tosa::verify(delegate.tosa).ok(), "a part is valid TOSA");
}

void writeAgain(ByteSpan file, const tflite::Model& model) {
  tflite::Rewrite rewrite;
  rewrite.source = file;
  for (size_t g = 0; g < model.subgraphs.size(); ++g) {
    const tflite::Subgraph& subgraph = model.subgraphs[g];
    // Every other subgraph is rewritten, the others are copied.
    if (g % 2 != 0) continue;
    tflite::RewrittenSubgraph& to = rewrite.subgraphs.emplace_back();
    to.index = g;
    for (size_t i = 0; i < subgraph.operators.size(); ++i) to.operators.push_back(tflite::KeptOperator{i});
    to.offsets.assign(subgraph.tensors.size(), tflite::kNotPlanned);
  }
  const auto bytes = tflite::rewriteModel(rewrite);
  if (!bytes.ok()) return;
  const auto again = tflite::readModel(asBytes(*bytes));
  CARINA_CHECK(again.ok(), "what is written can be read");
  CARINA_CHECK(again->subgraphs.size() == model.subgraphs.size(), "subgraphs stay");
  for (size_t g = 0; g < model.subgraphs.size(); ++g)
    CARINA_CHECK(again->subgraphs[g].operators.size() == model.subgraphs[g].operators.size(),
                 "operators stay");
}

}  // namespace

CARINA_FUZZ_TARGET(tflite_network) {
  const ByteSpan file(reinterpret_cast<const std::byte*>(data), size);
  const auto model = tflite::readModel(file);
  if (!model.ok()) return 0;
  writeAgain(file, *model);
  // Legal but large sizes would exceed the time limit of the fuzzer.
  int64_t elements = 0;
  for (const tflite::Subgraph& subgraph : model->subgraphs) {
    for (const tflite::Tensor& tensor : subgraph.tensors) {
      const auto count = checkedNumElements(tensor.shape);
      if (!count || *count > (1 << 20)) return 0;
      elements += *count;
    }
  }
  if (elements > (1 << 22)) return 0;
  placeParts(*model);
  const auto graph = tflite::buildGraph(*model, nullptr);
  if (!graph.ok()) return 0;
  const auto tosa = lower_tfl::lowerToTosa(*graph);
  if (tosa.ok()) CARINA_CHECK(tosa::verify(tosa->tosa).ok(), "what lowers is valid TOSA");
  return 0;
}

}  // namespace carina::tflite_network_fuzz
