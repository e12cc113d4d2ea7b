// SPDX-License-Identifier: Apache-2.0
// Runs the program as scripts do: exit status, stdout, stderr, files in a temporary folder.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "support/contents.hpp"
#include "support/fixtures.hpp"
#include "support/temp_dir.hpp"

namespace carina::test {

/// A file of models/.
inline std::string model(const std::string& file) {
  return modelFile(file).string();
}
inline std::string odd(const std::string& file) {
  return (dataDir() / "odd" / file).string();
}

class Cli : public testing::Test {
 protected:
  struct Outcome {
    int status;
    std::string out, err;
  };

  Outcome run(const std::string& arguments) const {
    return shell(std::string(CARINA_BINARY) + " " + arguments);
  }

  Outcome shell(const std::string& command) const {
    const int state = std::system((command + " >" + path("stdout") + " 2>" + path("stderr")).c_str());
    return {WIFEXITED(state) ? WEXITSTATUS(state) : -1, contentsOf(path("stdout")),
            contentsOf(path("stderr"))};
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  void writeText(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
  }

  /// Compiles `file` and expects status 1, one clear message, and nothing written.
  void expectRefused(const std::string& file, const std::string& options, const std::string& message) const {
    const Outcome result = run("compile " + file + " -o " + path("out.pte") + " " + options);
    EXPECT_EQ(result.status, 1) << result.err;
    EXPECT_THAT(result.err, testing::HasSubstr("carina: error[E"));
    EXPECT_THAT(result.err, testing::HasSubstr(message));
    EXPECT_THAT(result.out, testing::IsEmpty());
    EXPECT_FALSE(std::filesystem::exists(path("out.pte")));
  }

  std::string calibrate(const std::string& network) const {
    return " --calibrate " + model(network + ".npz");
  }

  TempDir folder_;
};

}  // namespace carina::test
