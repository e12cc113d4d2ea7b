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
 *
 * Graphs that compute in floating point, as no Ethos-U does, run on this machine where that is wanted: with
 * `keep_floats` they stay as they are, and a backend of carina_environment computes them (oneDNN).
 *
 *   environment.backend = carina_float_parts_open(compiled.program, compiled.size);
 *   ...
 *   carina_float_parts_close(environment.backend);
 */
#ifndef CARINA_AT_LOAD_H
#define CARINA_AT_LOAD_H

#include <stddef.h>

#include "carina/carina.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Each may be NULL. */
typedef struct carina_load_options {
  const char* target; /* NPU ("ethos-u55-128"); NULL: the one that the program names */
  const char* system_config;
  const char* memory_mode;
  const char* cache; /* folder of compiled parts, created when missing; NULL: nothing is kept */
  int keep_floats;   /* 0: graphs that compute in floating point are refused by name */
} carina_load_options;

typedef struct carina_compiled {
  const void* program; /* aligned to 16; NULL after a failure */
  size_t size;
  size_t parts;      /* different TOSA graphs; 0: the program came compiled, and this is a copy */
  size_t from_cache; /* of those */
  size_t in_float;   /* delegates that were kept, see carina_load_options */
  char message[512]; /* after a failure: what failed, where, and what helps; else a warning, or empty */
} carina_compiled;

/* 0, or 1 after a failure. `program` is untrusted and borrowed for the call. `options` may be NULL. Threads
 * may call this at the same time, processes may share a cache. */
int carina_compile_at_load(const void* program, size_t size, const carina_load_options* options,
                           carina_compiled* compiled);
/* Ends what carina_compile_at_load has filled in, whether it failed or not. */
void carina_compiled_release(carina_compiled* compiled);

/* Runs the delegates of a program that are TOSA graphs in floating point. What one may compute and hold
 * follows from the bytes of the program as for 'carina run'; `program` NULL: no limit. One method at a time
 * uses it. NULL: out of memory. */
carina_backend* carina_float_parts_open(const void* program, size_t size);
/* What is behind the latest failure, in more words than a status has; empty when there was none. */
const char* carina_float_parts_message(const carina_backend* parts);
void carina_float_parts_close(carina_backend* parts);

#ifdef __cplusplus
}
#endif

#endif
