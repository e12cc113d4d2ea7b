// SPDX-License-Identifier: Apache-2.0
// A profile as a page for a browser: a single self-contained file that needs neither network nor server.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.hpp"
#include "pipeline/timed_profile.hpp"

namespace carina::report {

/// Reports of other commands that the page shows in addition to the profile; empty: none.
struct PageAttachments {
  std::filesystem::path sweep;    // JSON of carina sweep: other targets
  std::filesystem::path against;  // JSON of carina profile: an earlier build
};

/// The page. Errors: an attachment that cannot be read, or is JSON of another kind.
Result<std::string> profilePage(const pipeline::TimedProfile& timed, const PageAttachments& attachments);

}  // namespace carina::report
