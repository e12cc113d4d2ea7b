// SPDX-License-Identifier: Apache-2.0
#include "pipeline/language_program.hpp"

#include <algorithm>

#include "base/damaged.hpp"
#include "pte/method_builder.hpp"

namespace carina::pipeline {
namespace {

constexpr const char* kPrefill = "prefill";

/// The value returned by a method without inputs; nullopt if there is no such method.
Result<std::optional<int64_t>> constantOf(ByteSpan bytes, const pte::Program& program,
                                          const device::RunOptions& options, const char* name) {
  if (!program.findMethod(name)) return std::optional<int64_t>();
  device::RunOptions asking = options;
  asking.method = name;
  CARINA_TRY(const device::RunOutcome outcome, device::runProgram(bytes, {}, asking));
  if (outcome.outputs.size() != 1 || outcome.outputs[0].numElements() != 1 ||
      isFloat(outcome.outputs[0].dtype())) {
    return fail(Code::InputMismatch, "does not return an integer").at(name).withRemedy("give --context N");
  }
  return std::optional<int64_t>(outcome.outputs[0].integerAt(0));
}

/// The longest axis among a method's state variables: a bound on the tokens that a cache can hold. 0: none.
int64_t longestState(const pte::Method& method) {
  int64_t longest = 0;
  for (const pte::Value& value : method.values) {
    const auto* tensor = std::get_if<pte::Tensor>(&value);
    if (!tensor || !tensor->allocation || tensor->allocation->memoryId != pte::StatePool::kMemoryId) continue;
    for (const int32_t size : tensor->sizes) longest = std::max<int64_t>(longest, size);
  }
  return longest;
}

/// The context size that the program states; nullopt if it states none.
Result<std::optional<int64_t>> declaredContext(ByteSpan bytes, const pte::Program& program,
                                               const device::RunOptions& options) {
  for (const char* name : {"get_max_context_len", "get_max_seq_len"}) {
    CARINA_TRY(const auto context, constantOf(bytes, program, options, name));
    if (!context) continue;
    if (*context > 0) return context;
    return fail(Code::InputMismatch, "returns {}", *context).at(name).withRemedy("give --context N");
  }
  return std::optional<int64_t>();
}

/// `decode`: the method that takes one token.
Result<int64_t> contextOf(ByteSpan bytes, const pte::Program& program, const device::RunOptions& options,
                          const std::string& decode, int64_t given) {
  auto declared = declaredContext(bytes, program, options);
  if (given <= 0) {
    if (!declared) return std::move(declared).error();
    if (*declared) return **declared;
    return fail(Code::InputMismatch, "does not say how many tokens its state has room for")
        .withRemedy("give --context N, or compile it with --constant-method get_max_context_len=N");
  }
  constexpr const char* kRemedy = "give a smaller context, or compile a network with a larger one";
  if (declared && *declared && given > **declared) {
    return fail(Code::InputMismatch, "is {}, but the program says that its state has room for {}", given,
                **declared)
        .at("--context")
        .withRemedy(kRemedy);
  }
  if (const int64_t longest = longestState(*program.findMethod(decode)); longest > 0 && given > longest) {
    return fail(Code::InputMismatch, "is {}, but no buffer of the program's state has room for more than {}",
                given, longest)
        .at("--context")
        .withRemedy(kRemedy);
  }
  return given;
}

/// "decode", or the only method with inputs apart from "prefill".
Result<std::string> decoderOf(const pte::Program& program) {
  std::vector<std::string> names;
  for (const pte::Method& method : program.methods) {
    if (method.name == "decode") return method.name;
    if (!method.inputs.empty() && method.name != kPrefill) names.push_back(method.name);
  }
  if (names.size() == 1) return names[0];
  return fail(Code::InputMismatch, "has {} methods that take inputs, but none called 'decode'", names.size())
      .withRemedy("compile the network that takes one token at a time");
}

/// The values that are tensors. Fails if one does not exist.
Result<std::vector<const pte::Tensor*>> tensorsOf(const pte::Method& method,
                                                  const std::vector<int32_t>& ids) {
  std::vector<const pte::Tensor*> tensors;
  for (const int32_t id : ids) {
    if (id < 0 || static_cast<size_t>(id) >= method.values.size())
      return fail(Code::Damaged, "refers to value {}, but has only {}", id, method.values.size())
          .at(method.name)
          .withRemedy(kDamagedRemedy);
    if (const auto* tensor = std::get_if<pte::Tensor>(&method.values[static_cast<size_t>(id)]))
      tensors.push_back(tensor);
  }
  return tensors;
}

int64_t elementsOf(const pte::Tensor& tensor) {
  const int64_t size = pte::scalarTypeSize(tensor.type);
  return size == 0 ? 0 : pte::tensorBytes(tensor).value_or(0) / size;
}

bool hasType(const pte::Tensor& tensor, bool (*is)(DType)) {
  const auto dtype = pte::toDType(tensor.type);
  return dtype && is(*dtype);
}

/// How many tokens and positions the method takes per call; 0 if it takes anything else.
int64_t tokensOf(const std::vector<const pte::Tensor*>& inputs) {
  const bool integers =
      inputs.size() == 2 && hasType(*inputs[0], isInteger) && hasType(*inputs[1], isInteger);
  return integers && elementsOf(*inputs[0]) == elementsOf(*inputs[1]) ? elementsOf(*inputs[0]) : 0;
}

std::string textOf(const std::vector<const pte::Tensor*>& tensors) {
  std::string text;
  for (const pte::Tensor* tensor : tensors) text += (text.empty() ? "" : ", ") + tensor->str();
  return text.empty() ? "nothing" : text;
}

/// `many`: whether it may take more than one token per call.
Result<LanguageMethod> languageMethod(const pte::Program& program, const std::string& name, bool many,
                                      int64_t vocabulary) {
  const pte::Method& method = *program.findMethod(name);
  CARINA_TRY(const auto inputs, tensorsOf(method, method.inputs));
  const std::vector<int32_t> first(method.outputs.begin(),
                                   method.outputs.begin() + (method.outputs.empty() ? 0 : 1));
  CARINA_TRY(const auto outputs, tensorsOf(method, first));
  const LanguageMethod result{name, tokensOf(inputs)};
  if (many && result.tokens < 1) {
    return fail(Code::InputMismatch, "takes {}, not tokens and their positions", textOf(inputs))
        .at(name)
        .withRemedy("export a step of the model over N tokens: integers tokens [1, N] and positions [N]");
  }
  if (!many && result.tokens != 1) {
    return fail(Code::InputMismatch, "takes {}, not one token and its position", textOf(inputs))
        .at(name)
        .withRemedy(
            "export a step of the model: integers tokens [1, 1] and positions [1], the cache as state");
  }
  const int64_t count = outputs.empty() ? 0 : elementsOf(*outputs[0]);
  if (count == 0 || !hasType(*outputs[0], isFloat) ||
      (count != vocabulary && count != result.tokens * vocabulary)) {
    return fail(Code::InputMismatch, "the first output has {} numbers, but the tokenizer has {} tokens",
                count, vocabulary)
        .at(name)
        .withRemedy("give the tokenizer that the network was trained with, and compile with float outputs");
  }
  return result;
}

}  // namespace

Result<LanguageProgram> languageProgram(ByteSpan bytes, const pte::Program& program,
                                        const device::RunOptions& options, int64_t vocabulary,
                                        int64_t context) {
  LanguageProgram result;
  CARINA_TRY(const std::string decoder, decoderOf(program));
  CARINA_TRY(result.decode, languageMethod(program, decoder, false, vocabulary));
  if (program.findMethod(kPrefill)) {
    CARINA_TRY(result.prefill, languageMethod(program, kPrefill, true, vocabulary));
  }
  CARINA_TRY(result.context, contextOf(bytes, program, options, result.decode.name, context));
  return result;
}

Result<std::vector<int64_t>> promptTokens(const tokenizer::Tokenizer& tokenizer, const std::string& prompt,
                                          int64_t context) {
  CARINA_TRY(std::vector<int64_t> tokens, tokenizer.encode(prompt));
  const auto count = static_cast<int64_t>(tokens.size());
  if (count == 0)
    return fail(Code::InputMismatch, "is empty").at("--prompt").withRemedy("give the text to continue");
  if (count < context) return tokens;
  return fail(Code::InputMismatch, "has {} tokens, the context {}: no room for another one", count, context)
      .at("--prompt")
      .withRemedy("give a shorter prompt, or compile a network with a larger context");
}

}  // namespace carina::pipeline
