// SPDX-License-Identifier: Apache-2.0
#include "delivery/at_load.hpp"

#include <chrono>
#include <map>
#include <memory>

#include "base/file.hpp"
#include "delivery/build_identity.hpp"
#include "delivery/compile_cache.hpp"
#include "delivery/delegate.hpp"
#include "delivery/shared_weights.hpp"
#include "device/npu_host.hpp"
#include "device/tosa_backend.hpp"
#include "ir/graph.hpp"
#include "ir/invalid_node.hpp"
#include "npu/targets/recorded_memories.hpp"
#include "tosa_io/tosa_reader.hpp"
#include "tosa_io/tosa_writer.hpp"

namespace carina::delivery {
namespace {

/// Everything that a compiled part depends on, except the graph.
std::string settingsText(const npu::Machine& machine) {
  const pte::EthosUSettings settings = settingsOf(machine, false);
  return fmt::format("{}\n{}\n{}\n{}\n{}", buildIdentity(), settings.target, settings.systemConfig,
                     settings.memoryMode, settings.memories);
}

class Loader {
 public:
  explicit Loader(const LoadOptions& options) {
    wish_.target = options.target;
    wish_.systemConfig = options.systemConfig;
    wish_.memoryMode = options.memoryMode;
    wish_.configFile = options.configFile;
    if (options.cache) cache_.emplace(*options.cache);
    keepFloats_ = options.keepFloats;
  }

  /// Adds the constants that the calls of a delegate pass as arguments to its graph.
  Status complete(const pte::Program& program, pte::Method& method, size_t index) {
    pte::Delegate& delegate = method.delegates[index];
    const auto completed = [&]() -> Status {
      CARINA_TRY(ir::Graph graph, graphOf(delegate.blob));
      CARINA_TRY(const bool any, takeSharedConstants(program, method, index, graph));
      if (!any) return {};
      completed_ = true;
      CARINA_TRY(const std::string bytes, tosa_io::writeTosa(graph));
      const ByteSpan blob = asBytes(bytes);
      delegate.blob.assign(blob.begin(), blob.end());
      return {};
    };
    return ir::rejectInvalidNodes("", completed);
  }

  Status compile(pte::Delegate& delegate) {
    if (keepFloats_) {
      CARINA_TRY(const bool inFloat, computesInFloat(delegate.blob));
      done_.inFloat += inFloat;
      if (inFloat) return {};
    }
    const pte::EthosUSettings settings = pte::ethosUSettings(delegate.specs);
    if (settings.target.empty() && wish_.target.empty()) {
      return fail(Code::OtherNpu, "the part is a TOSA graph, but names no NPU to compile it for")
          .withRemedy("name one with --target");
    }
    CARINA_TRY(const npu::Machine machine, device::chooseMachine(settings, wish_));
    done_.target = std::string(machine.target->name);
    const std::string machineText = settingsText(machine);
    const std::string key = CompileCache::keyOf(delegate.blob, machineText);
    auto known = blobs_.find(key);
    if (known == blobs_.end()) {
      CARINA_TRY(pte::ByteVector blob, blobOf(delegate.blob, machine, key));
      known = blobs_.emplace(key, std::move(blob)).first;
    }
    delegate.id = pte::kEthosUBackend;
    delegate.inSegment = false;
    delegate.blob = known->second;
    delegate.specs = pte::ethosUCompileSpecs(settingsOf(machine, settings.quantizedIo));
    return {};
  }

  bool completed() const { return completed_; }
  AtLoad finish() && { return std::move(done_); }

 private:
  static Result<ir::Graph> graphOf(ByteSpan bytes) {
    const auto copy = std::make_shared<const pte::ByteVector>(bytes.begin(), bytes.end());
    return tosa_io::readTosa(*copy, copy);
  }

  static Result<bool> computesInFloat(ByteSpan bytes) {
    CARINA_TRY(const ir::Graph tosa, ir::rejectInvalidNodes("", [&] { return graphOf(bytes); }));
    return device::computesInFloat(tosa);
  }

  Result<pte::ByteVector> blobOf(ByteSpan graph, const npu::Machine& machine, const std::string& key) {
    ++done_.parts;
    if (cache_) {
      CompileCache::Found found = cache_->find(key);
      if (found.blob && pte::parseDelegateBlob(*found.blob)) {
        ++done_.fromCache;
        return std::move(*found.blob);
      }
      if (found.damaged || found.blob) {
        done_.warnings.push_back(
            {fmt::format("the compiled part {}... in the cache is damaged; it is compiled again",
                         key.substr(0, 12)),
             "", "", ""});
      }
    }
    const auto compiled = [&]() -> Result<compiler::CompiledProgram> {
      CARINA_TRY(const ir::Graph tosa, graphOf(graph));
      compiler::Options options;
      options.records = false;
      return compiler::compile(tosa, machine, options);
    };
    CARINA_TRY(const compiler::CompiledProgram part, ir::rejectInvalidNodes("", compiled));
    CARINA_TRY(const pte::DelegateBlob contents, delegateBlob(part));
    pte::ByteVector blob = pte::buildDelegateBlob(contents);
    store(key, blob);
    return blob;
  }

  /// A cache that cannot be written only costs time: warns once.
  void store(const std::string& key, ByteSpan blob) {
    if (!cache_) return;
    if (auto status = cache_->store(key, blob); !status.ok()) {
      Diagnostic warning = status.error().diagnostics().front();
      warning.message = "compiled NPU parts cannot be cached: " + warning.message;
      warning.remedy = "name another folder with --cache, or disable the cache with --no-cache";
      done_.warnings.push_back(std::move(warning));
      cache_.reset();
    }
  }

  device::RunOptions wish_;
  std::optional<CompileCache> cache_;
  bool keepFloats_ = false, completed_ = false;
  std::map<std::string, pte::ByteVector> blobs_;
  AtLoad done_;
};

}  // namespace

bool hasTosaParts(const pte::Program& program) {
  for (const pte::Method& method : program.methods) {
    for (const pte::Delegate& delegate : method.delegates) {
      if (delegate.id == kTosaBackend) return true;
    }
  }
  return false;
}

Result<AtLoad> compileTosaParts(pte::Program& program, const LoadOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  Loader loader(options);
  for (pte::Method& method : program.methods) {
    for (size_t i = 0; i < method.delegates.size(); ++i) {
      if (method.delegates[i].id != kTosaBackend) continue;
      Status status = loader.complete(program, method, i);
      if (status.ok()) status = loader.compile(method.delegates[i]);
      if (!status.ok())
        return std::move(status).error().at(fmt::format("method {}, NPU part {}", method.name, i));
    }
  }
  if (loader.completed()) dropUnusedConstants(program);
  AtLoad done = std::move(loader).finish();
  done.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return done;
}

}  // namespace carina::delivery
