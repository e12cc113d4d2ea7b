// SPDX-License-Identifier: Apache-2.0
// carina.toml: the networks of a project, the targets they run on, the data they are judged by and the limits
// that they keep. docs/commands/ci.md describes the file.
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
  std::string folder;          // "digits8-ethos-u55-128", of its results
  pipeline::Options build;     // model, target, ...
  evaluate::Options evaluate;  // data; empty: no evaluation
  pipeline::Gates gates;
};

struct Project {
  std::filesystem::path file;
  std::vector<Job> jobs;  // in the order of the file
};

/// Paths in the file are relative to its folder. Errors name the line: no TOML, an unknown key, a value of
/// another type or out of range, two jobs of one name, no network.
Result<Project> parseProject(std::string_view text, const std::filesystem::path& file);
Result<Project> readProject(const std::filesystem::path& file);

}  // namespace carina::ci
