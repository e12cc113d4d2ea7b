/* SPDX-License-Identifier: Apache-2.0
 * A C client that compiles a program when it loads it. */
#ifndef CARINA_TESTS_AT_LOAD_CLIENT_H
#define CARINA_TESTS_AT_LOAD_CLIENT_H

#include "carina/at_load.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Calls carina_compile_at_load with `target` (or NULL) and `cache` (or NULL). */
int compile_from_c(const void* program, size_t size, const char* target, const char* cache,
                   carina_compiled* compiled);

/* Runs the first method of a program whose NPU parts are graphs in floating point, once, from input 0 to
 * output 0. Returns 0 on success; otherwise `message` (512 characters) says what failed. */
int run_floats_from_c(const void* program, size_t size, const void* input, size_t input_size, void* output,
                      size_t output_size, char* message);

#ifdef __cplusplus
}
#endif

#endif
