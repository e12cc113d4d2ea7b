/* SPDX-License-Identifier: Apache-2.0
 * Compilation at load from C, for hosts and Linux: the NPU parts of a program that are TOSA graphs (written
 * by 'carina compile --deliver tosa' or by anybody else under the backend name TOSABackend) become commands
 * for the NPU that is there. What comes out is a program for the runtime (carina/carina.h) like any other.
 *
 *   carina_load_options options = {"ethos-u85-256", NULL, NULL, "/var/cache/app"};
 *   carina_compiled compiled;
 *   if (carina_compile_at_load(bytes, size, &options, &compiled) != 0) puts(compiled.message);
 *   else carina_program_load(&program, compiled.program, compiled.size);
 *   ...
 *   carina_compiled_release(&compiled);
 */
#ifndef CARINA_AT_LOAD_H
#define CARINA_AT_LOAD_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Each may be NULL. */
typedef struct carina_load_options {
  const char* target; /* NPU ("ethos-u55-128"); NULL: the one that the program names */
  const char* system_config;
  const char* memory_mode;
  const char* cache; /* folder of compiled parts, created when missing; NULL: nothing is kept */
} carina_load_options;

typedef struct carina_compiled {
  const void* program; /* aligned to 16; NULL after a failure */
  size_t size;
  size_t parts;      /* different TOSA graphs; 0: the program came compiled, and this is a copy */
  size_t from_cache; /* of those */
  char message[512]; /* after a failure: what failed, where, and what helps; else a warning, or empty */
} carina_compiled;

/* 0, or 1 after a failure. `program` is untrusted and borrowed for the call. `options` may be NULL. Threads
 * may call this at the same time, processes may share a cache. */
int carina_compile_at_load(const void* program, size_t size, const carina_load_options* options,
                           carina_compiled* compiled);
/* Ends what carina_compile_at_load has filled in, whether it failed or not. */
void carina_compiled_release(carina_compiled* compiled);

#ifdef __cplusplus
}
#endif

#endif
