// SPDX-License-Identifier: Apache-2.0
// TOSA graphs of a few hundred bytes that ask the interpreter for years, or for more memory than there is.
#pragma once

#include <filesystem>

/// Writes NAME.tosa and NAME.npz, its inputs. False when one could not be made.
bool writeHostileGraphs(const std::filesystem::path& folder);
