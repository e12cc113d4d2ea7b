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

/// What a program notes of the machine that a part is for.
pte::EthosUSettings settingsOf(const npu::Machine& machine, bool integerIo);

/// The blob of a compiled part. Fails beyond 16 MiB of commands or 2 GiB of arena.
Result<pte::DelegateBlob> delegateBlob(const compiler::CompiledProgram& compiled);
/// The delegate of a compiled part. `integerIo`: the program takes codes where the network takes numbers.
/// `constantsKey`: of the named data of the program that are the part's constants; empty: they are in the
/// delegate.
Result<pte::Delegate> ethosUDelegate(const compiler::CompiledProgram& compiled, bool integerIo,
                                     const std::string& constantsKey = "");
/// The key for constants of several parts: 64 characters that their bytes decide.
std::string constantsKeyOf(ByteSpan constants);

/// Who a part belongs to that travels as a TOSA graph: the name of ExecuTorch's backend that writes such
/// parts.
inline constexpr std::string_view kTosaBackend = "TOSABackend";
/// The delegate of a part that is compiled where the program is loaded: the TOSA flatbuffer and nothing else
/// as blob, the graph's inputs, then its outputs, as arguments. `settings` name the machine that it is meant
/// for.
Result<pte::Delegate> tosaDelegate(const ir::Graph& tosa, const pte::EthosUSettings& settings);

}  // namespace carina::delivery
