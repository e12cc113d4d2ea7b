/* SPDX-License-Identifier: Apache-2.0
 * Compilation at load from C, for hosts and Linux: the NPU parts of a program that are TOSA graphs (written
 * by 'carina compile --deliver tosa' or by other tools under the backend name TOSABackend) are compiled to
 * commands for the NPU that is present. The result is an ordinary program for the runtime (carina/carina.h).
 *
 *   carina_load_options options = {"ethos-u85-256", NULL, NULL, "/var/cache/app"};
 *   carina_compiled compiled;
 *   if (carina_compile_at_load(bytes, size, &options, &compiled) != 0) puts(compiled.message);
 *   else carina_program_load(&program, compiled.program, compiled.size);
 *   ...
 *   carina_compiled_release(&compiled);
 *
 * Graphs that compute in floating point, which no Ethos-U supports, can run on this machine: with
 * `keep_floats` they are left as they are, and a backend of carina_environment computes them (oneDNN).
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
  const char* cache; /* folder of compiled parts, created if missing; NULL: no cache */
  int keep_floats;   /* 0: graphs that compute in floating point are rejected by name */
} carina_load_options;

typedef struct carina_compiled {
  const void* program; /* aligned to 16; NULL after a failure */
  size_t size;
  size_t parts;      /* distinct TOSA graphs; 0: the program was already compiled, and this is a copy */
  size_t from_cache; /* of those */
  size_t in_float;   /* delegates that were left as they are, see carina_load_options */
  char message[512]; /* after a failure: what failed, where, and the remedy; else a warning, or empty */
} carina_compiled;

/* Returns 0, or 1 after a failure. `program` is untrusted and borrowed for the call. `options` may be NULL.
 * Threads may call this concurrently; processes may share a cache. */
int carina_compile_at_load(const void* program, size_t size, const carina_load_options* options,
                           carina_compiled* compiled);
/* Releases what carina_compile_at_load has filled in, whether it failed or not. */
void carina_compiled_release(carina_compiled* compiled);

/* A backend that runs the delegates of a program that are TOSA graphs in floating point. The limits on work
 * and memory follow from the bytes of the program as for 'carina run'; `program` NULL: no limits. To be used
 * by one method at a time. Returns NULL if out of memory. */
carina_backend* carina_float_parts_open(const void* program, size_t size);
/* Details of the latest failure, which a status cannot hold; empty if there was none. */
const char* carina_float_parts_message(const carina_backend* parts);
void carina_float_parts_close(carina_backend* parts);

#ifdef __cplusplus
}
#endif

#endif
