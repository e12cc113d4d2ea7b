// SPDX-License-Identifier: Apache-2.0
// Compares everything that two graphs hold.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <unordered_map>

#include "ir/graph.hpp"

namespace carina::test {

/// The first difference between two graphs, for a message; empty if there is none. Real numbers are equal if
/// their bits are (NaN equals NaN), values if they have the same name, type and quantization and are defined
/// at the same place.
class GraphDifference {
 public:
  static std::string between(const ir::Graph& a, const ir::Graph& b) {
    GraphDifference difference;
    return difference.graphs(a, b);
  }

 private:
  std::string graphs(const ir::Graph& a, const ir::Graph& b) {
    if (a.name != b.name) return fmt::format("names '{}' and '{}'", a.name, b.name);
    if (a.inputs().size() != b.inputs().size()) return "numbers of inputs";
    if (a.constants().size() != b.constants().size()) return "numbers of constants";
    if (a.numNodes() != b.numNodes()) return "numbers of nodes";
    if (a.outputs().size() != b.outputs().size()) return "numbers of outputs";
    for (size_t i = 0; i < a.inputs().size(); ++i) {
      if (std::string text = define(a.inputs()[i], b.inputs()[i]); !text.empty()) return text;
    }
    for (size_t i = 0; i < a.constants().size(); ++i) {
      const ir::Value *x = a.constants()[i].get(), *y = b.constants()[i].get();
      if (std::string text = define(x, y); !text.empty()) return text;
      if (!(x->constant() == y->constant())) return "contents of constant " + x->name;
    }
    for (const ir::Node *x = a.firstNode(), *y = b.firstNode(); x; x = x->next(), y = y->next()) {
      if (std::string text = nodes(*x, *y); !text.empty())
        return fmt::format("{} {}: {}", x->opName(), x->where(), text);
    }
    for (size_t i = 0; i < a.outputs().size(); ++i) {
      if (same_.at(a.outputs()[i]) != b.outputs()[i]) return "outputs";
    }
    return "";
  }

  std::string define(const ir::Value* a, const ir::Value* b) {
    same_[a] = b;
    if (a->name != b->name) return fmt::format("names of values '{}' and '{}'", a->name, b->name);
    if (a->type != b->type) return "type of " + a->name;
    if (a->quantization != b->quantization) return "quantization of " + a->name;
    return "";
  }

  std::string nodes(const ir::Node& a, const ir::Node& b) {
    if (&a.def() != &b.def()) return "operator";
    for (size_t g = 0; g < a.def().operands.size(); ++g) {
      const auto x = a.operandGroup(g), y = b.operandGroup(g);
      if (x.size() != y.size()) return "numbers of operands";
      for (size_t i = 0; i < x.size(); ++i) {
        if (x[i] ? same_.at(x[i]) != y[i] : y[i] != nullptr) return "operands";
      }
    }
    for (size_t i = 0; i < a.def().attributes.size(); ++i) {
      if (!attributes(a.attribute(i), b.attribute(i)))
        return fmt::format("attribute {}", a.def().attributes[i].name);
    }
    if (a.results().size() != b.results().size()) return "numbers of results";
    for (size_t i = 0; i < a.results().size(); ++i) {
      if (std::string text = define(a.result(i), b.result(i)); !text.empty()) return text;
    }
    if (std::string text = locations(a.location(), b.location()); !text.empty()) return text;
    for (size_t i = 0; i < a.regions().size(); ++i) {
      if (!a.regions()[i] != !b.regions()[i]) return "regions";
      if (!a.regions()[i]) continue;
      if (std::string text = between(a.region(i), b.region(i)); !text.empty()) return "region: " + text;
    }
    return "";
  }

  static std::string locations(const ir::LocationRef& a, const ir::LocationRef& b) {
    if (!a != !b) return "location";
    if (!a) return "";
    const bool same = a->name == b->name && a->modulePath == b->modulePath && a->source == b->source;
    return same ? "" : "location";
  }

  static bool attributes(const ir::Attribute& a, const ir::Attribute& b) {
    const auto bits = [](double value) {
      uint64_t word = 0;
      std::memcpy(&word, &value, sizeof word);
      return word;
    };
    if (a.index() != b.index()) return false;
    if (const double* x = std::get_if<double>(&a)) return bits(*x) == bits(std::get<double>(b));
    if (const auto* x = std::get_if<ir::Reals>(&a)) {
      const auto& y = std::get<ir::Reals>(b);
      return std::equal(x->begin(), x->end(), y.begin(), y.end(),
                        [&](double p, double q) { return bits(p) == bits(q); });
    }
    return a == b;
  }

  std::unordered_map<const ir::Value*, const ir::Value*> same_;
};

}  // namespace carina::test
