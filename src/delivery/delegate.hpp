// SPDX-License-Identifier: Apache-2.0
// An NPU part as a delegate of a program.
#pragma once

#include "base/result.hpp"
#include "compiler/compiler.hpp"
#include "ir/graph.hpp"
#include "npu/targets/target.hpp"
#include "pte/delegate_blob.hpp"
#include "pte/program.hpp"

namespace carina::delivery {

/// What a program records about the machine that a part is for.
pte::EthosUSettings settingsOf(const npu::Machine& machine, bool integerIo);

/// The blob of a compiled part. Fails beyond 16 MiB of commands or 2 GiB of arena.
Result<pte::DelegateBlob> delegateBlob(const compiler::CompiledProgram& compiled);
/// The delegate of a compiled part. `integerIo`: the program has codes as inputs and outputs where the
/// network has real numbers. `constantsKey`: key of the program's named data that holds the part's constants;
/// empty: they are in the delegate.
Result<pte::Delegate> ethosUDelegate(const compiler::CompiledProgram& compiled, bool integerIo,
                                     const std::string& constantsKey = "");
/// The key for constants of several parts: 64 characters derived from their bytes.
std::string constantsKeyOf(ByteSpan constants);

/// The backend of parts that are delivered as TOSA graphs: the name of ExecuTorch's backend that writes such
/// parts.
inline constexpr std::string_view kTosaBackend = "TOSABackend";
/// The delegate of a part that is compiled where the program is loaded: its blob is the TOSA flatbuffer
/// alone, its arguments are the graph's inputs, then its outputs. `settings` name the intended machine.
Result<pte::Delegate> tosaDelegate(const ir::Graph& tosa, const pte::EthosUSettings& settings);

}  // namespace carina::delivery
