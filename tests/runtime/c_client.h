/* SPDX-License-Identifier: Apache-2.0
 * A C program that uses the runtime: loads a program, queries its memory needs, allocates, runs. */
#ifndef CARINA_TESTS_C_CLIENT_H
#define CARINA_TESTS_C_CLIENT_H

#include "carina/carina.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The profiler's events of the latest run: k and K are the begin and end of a kernel, d and D of a delegate,
 * x and X of the whole method. */
extern char events_from_c[16];

/* Runs method `name` of a program with one input and one output, providing float "weight" {2, 3, 4, 5} as
 * data of another file. `device` may be NULL. An output that is a number is returned as a carina_number.
 * `output` receives at most `output_size` bytes, `cycles` the NPU's cycle count. */
carina_status run_from_c(const void* program, size_t program_size, const char* name,
                         const carina_device* device, const void* input, size_t input_size, void* output,
                         size_t output_size, uint64_t* cycles);

#ifdef __cplusplus
}
#endif

#endif
