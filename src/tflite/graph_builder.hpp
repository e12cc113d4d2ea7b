// SPDX-License-Identifier: Apache-2.0
// A quantized network in a .tflite file as a graph of the tfl dialect.
#pragma once

#include <filesystem>
#include <memory>

#include "ir/graph.hpp"
#include "tflite/model.hpp"

namespace carina::tflite {

/// The main subgraph: values carry the file's names (made unique) and quantization, nodes the name of their
/// first result as location. Constants borrow the mapped file where aligned; packed int4 ones become int8.
/// Errors, all of them up to 20 and each with the operator's place: operators without a place in the dialect
/// (control flow, custom ones), open shapes, and what contradicts itself.
Result<ir::Graph> readNetwork(const std::filesystem::path& path);

/// The same of a model that is read; `owner` keeps its bytes alive.
Result<ir::Graph> buildGraph(const Model& model, const std::shared_ptr<const void>& owner);

}  // namespace carina::tflite
