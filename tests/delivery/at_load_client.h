/* SPDX-License-Identifier: Apache-2.0
 * A C program that compiles a program where it loads it. */
#ifndef CARINA_TESTS_AT_LOAD_CLIENT_H
#define CARINA_TESTS_AT_LOAD_CLIENT_H

#include "carina/at_load.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As carina_compile_at_load for `target` (or NULL) with `cache` (or NULL). */
int compile_from_c(const void* program, size_t size, const char* target, const char* cache,
                   carina_compiled* compiled);

#ifdef __cplusplus
}
#endif

#endif
