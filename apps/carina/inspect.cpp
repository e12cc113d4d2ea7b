// SPDX-License-Identifier: Apache-2.0
// carina inspect: what is in a file.
#include <fmt/core.h>

#include <memory>

#include "commands.hpp"
#include "console.hpp"
#include "pipeline/inspect.hpp"

namespace carina::app {

void addInspect(CLI::App& app, Run& run) {
  auto file = std::make_shared<std::filesystem::path>();
  CLI::App* command = app.add_subcommand("inspect", "Show what is in a .pt2, .tosa, .pte, .bin or .npz file");
  command->add_option("FILE", *file, "File to look into")->required();
  command->callback([file, &run] {
    run = [file] {
      auto text = pipeline::inspectFile(*file);
      if (!text) return report(text.error());
      fmt::print("{}", *text);
      return 0;
    };
  });
}

}  // namespace carina::app
