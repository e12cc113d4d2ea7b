/* SPDX-License-Identifier: Apache-2.0
 * A C program that uses the runtime: loads, asks, allocates, runs. */
#ifndef CARINA_TESTS_C_CLIENT_H
#define CARINA_TESTS_C_CLIENT_H

#include "carina/carina.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Runs method `name` of a program with one input and one output, and float "weight" {2, 3, 4, 5} in another
 * file. `device` may be NULL. `output` gets at most `output_size` bytes; `cycles` what the NPU counted. */
carina_status run_from_c(const void* program, size_t program_size, const char* name,
                         const carina_device* device, const void* input, size_t input_size, void* output,
                         size_t output_size, uint64_t* cycles);

#ifdef __cplusplus
}
#endif

#endif
