// SPDX-License-Identifier: Apache-2.0
// What is in a file, as JSON (docs/schema/contents.json): what `carina inspect` shows as text.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "pipeline/file_contents.hpp"

namespace carina::report {

std::string contentsJson(const pipeline::FileContents& contents);

/// Names, inputs, outputs, constants (those of up to eight elements with their values, others with the
/// checksum that texts show), nodes with operands and attributes by name.
nlohmann::ordered_json graphJson(const ir::Graph& graph);

/// Layout, constants, methods with values and instructions.
nlohmann::ordered_json programJson(const pipeline::ProgramContents& contents);
nlohmann::ordered_json blobJson(const pte::DelegateBlob& blob);
nlohmann::ordered_json tfliteJson(const tflite::Model& model);

/// Of an Ethos-U: every command with its fields.
nlohmann::ordered_json streamJson(const pipeline::CommandStream& stream);
/// Of an Ethos-N: buffers, agents, and the four lists of commands.
nlohmann::ordered_json networkJson(const pipeline::EthosNProgram& program);

}  // namespace carina::report
