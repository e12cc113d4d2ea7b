/* SPDX-License-Identifier: Apache-2.0
 * A C program that uses the runtime: loads, asks, allocates, runs. */
#ifndef CARINA_TESTS_C_CLIENT_H
#define CARINA_TESTS_C_CLIENT_H

#include "carina/carina.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the profiler was told during the latest run: k and K a kernel's begin and end, d and D a delegate's, x
 * and X the whole. */
extern char events_from_c[16];

/* Runs method `name` of a program with one input and one output, and float "weight" {2, 3, 4, 5} in another
 * file. `device` may be NULL. An output that is a number comes as a carina_number. `output` gets at most
 * `output_size` bytes; `cycles` what the NPU counted. */
carina_status run_from_c(const void* program, size_t program_size, const char* name,
                         const carina_device* device, const void* input, size_t input_size, void* output,
                         size_t output_size, uint64_t* cycles);

#ifdef __cplusplus
}
#endif

#endif
