// SPDX-License-Identifier: Apache-2.0
#include "ethosn_measured.hpp"

namespace carina::app {

bool isForEthosN(const pipeline::Options& options) {
  return ethosn::isEthosNName(options.target) || pipeline::isEthosNProgram(options.model);
}

Result<EthosNMeasured> measureEthosN(const pipeline::Options& options) {
  EthosNMeasured out;
  if (pipeline::isEthosNProgram(options.model)) {
    CARINA_TRY(out.profile, pipeline::profileEthosNProgram(options.model, options));
    out.measured.subject = options.model.filename().string();
  } else {
    CARINA_TRY(const pipeline::Build build, pipeline::build(options));
    CARINA_TRY(out.profile, pipeline::profileEthosN(build));
    CARINA_TRY(const std::string program, pte::writeProgram(build.program));
    out.measured = pipeline::measuredOf(build, static_cast<int64_t>(program.size()));
  }
  out.measured.cycles = static_cast<int64_t>(out.profile.cycles());
  return out;
}

}  // namespace carina::app
