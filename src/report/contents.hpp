// SPDX-License-Identifier: Apache-2.0
// The contents of a file as JSON (docs/schema/contents.json), corresponding to the text of `carina inspect`.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "pipeline/file_contents.hpp"

namespace carina::report {

std::string contentsJson(const pipeline::FileContents& contents);

/// Names, inputs, outputs, constants (up to eight elements with their values, larger ones with the checksum
/// shown in text form), nodes with operands and attributes by name.
nlohmann::ordered_json graphJson(const ir::Graph& graph);

/// Layout, constants, methods with values and instructions.
nlohmann::ordered_json programJson(const pipeline::ProgramContents& contents);
nlohmann::ordered_json blobJson(const pte::DelegateBlob& blob);
nlohmann::ordered_json tfliteJson(const tflite::Model& model);

/// For an Ethos-U: every command with its fields.
nlohmann::ordered_json streamJson(const pipeline::CommandStream& stream);
/// For an Ethos-N: buffers, agents, and the four command lists.
nlohmann::ordered_json networkJson(const pipeline::EthosNProgram& program);

}  // namespace carina::report
