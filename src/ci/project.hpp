// SPDX-License-Identifier: Apache-2.0
// carina.toml: the networks of a project, their targets, the data to evaluate them with, and their gates.
// docs/commands/ci.md describes the file.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "evaluate/evaluate.hpp"
#include "pipeline/gates.hpp"
#include "pipeline/pipeline.hpp"

namespace carina::ci {

/// One network on one target.
struct Job {
  std::string name;            // "digits8 ethos-u55-128"; unique
  std::string folder;          // "digits8-ethos-u55-128", for its results
  pipeline::Options build;     // model, target, ...
  evaluate::Options evaluate;  // data; empty: no evaluation
  pipeline::Gates gates;
};

struct Project {
  std::filesystem::path file;
  std::vector<Job> jobs;  // in the order of the file
};

/// Paths in the file are relative to its directory. Errors name the line: invalid TOML, an unknown key, a
/// value of the wrong type or out of range, two jobs of the same name, no network.
Result<Project> parseProject(std::string_view text, const std::filesystem::path& file);
Result<Project> readProject(const std::filesystem::path& file);

}  // namespace carina::ci
