/* SPDX-License-Identifier: Apache-2.0 */
#include "at_load_client.h"

int compile_from_c(const void* program, size_t size, const char* target, const char* cache,
                   carina_compiled* compiled) {
  carina_load_options options = {0};
  options.target = target;
  options.cache = cache;
  return carina_compile_at_load(program, size, target != NULL || cache != NULL ? &options : NULL, compiled);
}
