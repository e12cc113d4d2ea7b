/* SPDX-License-Identifier: Apache-2.0 */
#include "at_load_client.h"

#include <stdlib.h>
#include <string.h>

int compile_from_c(const void* program, size_t size, const char* target, const char* cache,
                   carina_compiled* compiled) {
  carina_load_options options = {0};
  options.target = target;
  options.cache = cache;
  return carina_compile_at_load(program, size, target != NULL || cache != NULL ? &options : NULL, compiled);
}

enum { kPools = 2 };

static carina_bytes take(size_t size) {
  const size_t rounded = (size + 15) / 16 * 16 + 16;
  const carina_bytes bytes = {aligned_alloc(16, rounded), size};
  return bytes;
}

static carina_status load_and_run(const carina_compiled* compiled, carina_backend* parts, const void* input,
                                  size_t input_size, void* output, size_t output_size) {
  carina_environment environment = {carina_all_kernels(), NULL, 0, NULL, NULL, parts};
  carina_program program;
  carina_requirements needs;
  carina_bytes pools[kPools];
  carina_method method;
  carina_tensor result;
  carina_status status = carina_program_load(&program, compiled->program, compiled->size);
  if (status.code == CARINA_OK) status = carina_method_require(&program, 0, &environment, &needs);
  if (status.code != CARINA_OK) return status;
  for (uint32_t i = 0; i < needs.pool_count && i < kPools; ++i) {
    size_t bytes = 0;
    carina_method_pool_bytes(&program, 0, i, &bytes);
    pools[i] = take(bytes);
  }
  const carina_memory memory = {take(needs.method_bytes), take(needs.temporary_bytes), pools,
                                needs.pool_count};
  status = carina_method_load(&method, &program, 0, &environment, &memory);
  if (status.code == CARINA_OK) status = carina_method_set_input(&method, 0, input, input_size);
  if (status.code == CARINA_OK) status = carina_method_execute(&method);
  if (status.code == CARINA_OK) status = carina_method_output(&method, 0, &result);
  if (status.code == CARINA_OK && result.bytes == output_size) memcpy(output, result.data, output_size);
  for (uint32_t i = 0; i < needs.pool_count && i < kPools; ++i) free(pools[i].data);
  free(memory.method.data);
  free(memory.temporary.data);
  return status;
}

int run_floats_from_c(const void* program, size_t size, const void* input, size_t input_size, void* output,
                      size_t output_size, char* message) {
  carina_load_options options = {0};
  carina_compiled compiled;
  options.keep_floats = 1;
  if (carina_compile_at_load(program, size, &options, &compiled) != 0 || compiled.in_float != 1) {
    memcpy(message, compiled.message, sizeof(compiled.message));
    carina_compiled_release(&compiled);
    return 1;
  }
  carina_backend* parts = carina_float_parts_open(compiled.program, compiled.size);
  const carina_status status = load_and_run(&compiled, parts, input, input_size, output, output_size);
  carina_status_text(status, message, 512);
  if (status.code == CARINA_OK) strcpy(message, carina_float_parts_message(parts));
  carina_float_parts_close(parts);
  carina_compiled_release(&compiled);
  return status.code;
}
