/* SPDX-License-Identifier: Apache-2.0
 * C interface of the runtime. The calls and their rules are those of the C++ classes (carina/runtime.hpp):
 *
 *   carina_program program;   carina_program_load(&program, bytes, size);
 *   carina_npu npu;           carina_npu_open(&npu, &device, NULL, NULL, 0);
 *   carina_environment environment = {carina_all_kernels(), &npu, 0, NULL};
 *   carina_requirements needs; carina_method_require(&program, 0, &environment, &needs);
 *   carina_method method;     carina_method_load(&method, &program, 0, &environment, &memory);
 *   carina_method_set_input(&method, 0, input, size); carina_method_execute(&method);
 *   carina_method_output(&method, 0, &tensor);
 *
 * Nothing allocates. Objects live in the caller's storage, must not move while in use, and need no cleanup.
 * Programs are untrusted: every call that can fail returns a status. */
#ifndef CARINA_CARINA_H
#define CARINA_CARINA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Codes have the order of carina::rt::Code. */
enum carina_code {
  CARINA_OK = 0,
  CARINA_NOT_A_PROGRAM,
  CARINA_TRUNCATED,
  CARINA_MISALIGNED,
  CARINA_CORRUPT,
  CARINA_UNSUPPORTED,
  CARINA_NOT_FOUND,
  CARINA_MISSING_KERNEL,
  CARINA_MISSING_BACKEND,
  CARINA_OUT_OF_MEMORY,
  CARINA_INVALID_ARGUMENT,
  CARINA_TYPE_MISMATCH,
  CARINA_SHAPE_MISMATCH,
  CARINA_INVALID_STATE,
  CARINA_INSTRUCTION_LIMIT,
  CARINA_CORRUPT_DELEGATE,
  CARINA_WRONG_TARGET,
  CARINA_DEVICE_FAULT,
  CARINA_DEVICE_TIMEOUT,
  CARINA_MAP_FAILED
};

typedef struct carina_status {
  uint8_t code;        /* enum carina_code */
  uint8_t name_length; /* of `name`, which is not zero-terminated */
  uint32_t where;      /* byte offset or index; 0xffffffff: not applicable */
  const char* what;
  const char* name;
} carina_status;

/* One line, zero-terminated, cut to `size` bytes; returns its length. */
size_t carina_status_text(carina_status status, char* text, size_t size);

/* Opaque storage for objects. */
typedef struct carina_program {
  uint64_t storage[32];
} carina_program;
typedef struct carina_npu {
  uint64_t storage[112];
} carina_npu;
typedef struct carina_method {
  uint64_t storage[48];
} carina_method;

/* --- programs
 * ------------------------------------------------------------------------------------------------- */

/* `bytes` are aligned to 16 and must not change during the lifetime of the program and its methods. */
carina_status carina_program_load(carina_program* program, const void* bytes, size_t size);
uint32_t carina_program_method_count(const carina_program* program);
carina_status carina_program_find_method(const carina_program* program, const char* name, uint32_t* index);

/* --- the NPU
 * -------------------------------------------------------------------------------------------------- */

enum carina_access { CARINA_READ, CARINA_WRITE, CARINA_READ_WRITE };

/* The NPU as the driver sees it. `context` is passed to every function. */
typedef struct carina_device {
  void* context;
  uint32_t (*read32)(void* context, uint32_t offset);
  void (*write32)(void* context, uint32_t offset, uint32_t value);
  /* Makes memory reachable and returns its bus address; zero if that is impossible. NULL: bus addresses are
   * the CPU's. */
  int (*map)(void* context, const void* host, size_t bytes, enum carina_access access, uint64_t* bus_address);
  void (*unmap)(void* context, const void* host, size_t bytes); /* may be NULL */
  /* Returns non-zero when the NPU's interrupt is or was raised, zero after `milliseconds` (0xffffffff:
   * never). */
  int (*wait)(void* context, uint32_t milliseconds);
  void (*clean)(void* context, const void* data, size_t bytes); /* caches; both may be NULL */
  void (*invalidate)(void* context, void* data, size_t bytes);
} carina_device;

/* Checks that the commands of a job stay within its memory before the NPU receives them; for untrusted
 * programs. About 6 KiB of code, linked only if this is called. */
typedef void (*carina_validator)(void);
carina_validator carina_stream_validator(void);

typedef struct carina_npu_options {
  uint8_t secure, privileged;
  uint32_t timeout_milliseconds; /* of one job; 0xffffffff: none */
  uint8_t has_attributes;        /* whether the next two are set; else those of Shared_Sram */
  uint8_t queue, region[8];      /* QCONFIG, REGIONCFG: 0..3 */
  carina_validator validator;    /* carina_stream_validator(), or NULL: commands are not checked */
} carina_npu_options;

/* `options` may be NULL: secure, privileged, a minute per job. `fast_scratch` (aligned to 16, may be NULL) is
 * the on-chip memory of Dedicated_Sram programs. The device's functions and context must outlive the NPU. */
carina_status carina_npu_open(carina_npu* npu, const carina_device* device, const carina_npu_options* options,
                              void* fast_scratch, size_t fast_scratch_bytes);
uint64_t carina_npu_cycles(const carina_npu* npu); /* of all jobs */
uint32_t carina_npu_jobs(const carina_npu* npu);

/* --- methods
 * -------------------------------------------------------------------------------------------------- */

/* CPU kernels: a table of carina::rt::Kernel. carina_all_kernels() has every kernel of the library; a C++
 * source with only those of one program ("carina firmware --keep") keeps the others out of the image. */
typedef struct carina_kernels {
  const void* table;
  size_t count;
} carina_kernels;
carina_kernels carina_all_kernels(void);

/* Data that programs keep in other files. `find` receives a name of `length` characters, not zero-terminated.
 * It sets bytes and size and returns 0, or a nonzero value if there is no such data. Bytes are aligned to 16
 * and must outlive the method. */
typedef struct carina_named_data {
  void* context;
  int (*find)(void* context, const char* name, size_t length, const void** bytes, size_t* size);
} carina_named_data;

/* Events of a running method. `instruction` is its index, `name` (`length` characters, not zero-terminated)
 * the operator, delegate or method. */
enum carina_event {
  CARINA_KERNEL_BEGIN,
  CARINA_KERNEL_END,
  CARINA_DELEGATE_BEGIN,
  CARINA_DELEGATE_END,
  CARINA_EXECUTE_BEGIN,
  CARINA_EXECUTE_END
};
typedef struct carina_profiler {
  void* context;
  void (*event)(void* context, enum carina_event kind, uint32_t instruction, const char* name, size_t length);
} carina_profiler;

/* Another way to run delegates, from a library for hosts (carina_float_parts_open() in carina/at_load.h). */
typedef struct carina_backend carina_backend;

typedef struct carina_environment {
  carina_kernels kernels;
  carina_npu* npu;                   /* NULL: programs with delegates for an Ethos-U are refused */
  uint32_t max_instructions;         /* of one execution; 0: ten million */
  const carina_named_data* external; /* NULL: programs with data in other files are refused */
  const carina_profiler* profiler;   /* NULL: no events; else must outlive the method */
  carina_backend* backend;           /* in addition to the NPU; NULL: none; else must outlive the method */
} carina_environment;

typedef struct carina_requirements {
  size_t method_bytes;    /* aligned to 8 */
  size_t temporary_bytes; /* aligned to 16 */
  uint32_t pool_count;    /* aligned to 16; see carina_method_pool_bytes() */
} carina_requirements;

typedef struct carina_bytes {
  uint8_t* data;
  size_t size;
} carina_bytes;

typedef struct carina_memory {
  carina_bytes method, temporary;
  carina_bytes* pools;
  uint32_t pool_count;
} carina_memory;

typedef struct carina_tensor {
  void* data; /* NULL until bound, for inputs and outputs without planned memory */
  size_t bytes;
  const int32_t* sizes;     /* `rank` entries, in logical order */
  const uint8_t* dim_order; /* from outermost to innermost in memory */
  int8_t type; /* ExecuTorch's number: 0 uint8, 1 int8, 2 int16, 3 int32, 4 int64, 6 float, 11 bool */
  uint8_t rank;
} carina_tensor;

carina_status carina_method_require(const carina_program* program, uint32_t index,
                                    const carina_environment* environment, carina_requirements* needs);
carina_status carina_method_pool_bytes(const carina_program* program, uint32_t index, uint32_t pool,
                                       size_t* bytes);
carina_status carina_method_load(carina_method* method, const carina_program* program, uint32_t index,
                                 const carina_environment* environment, const carina_memory* memory);

uint32_t carina_method_input_count(const carina_method* method);
uint32_t carina_method_output_count(const carina_method* method);
carina_status carina_method_input(const carina_method* method, uint32_t index, carina_tensor* tensor);
carina_status carina_method_output(const carina_method* method, uint32_t index, carina_tensor* tensor);
/* An input or output that is a number, not a tensor. */
enum carina_number_kind { CARINA_INTEGER, CARINA_REAL, CARINA_BOOLEAN };
typedef struct carina_number {
  enum carina_number_kind kind;
  int64_t integer; /* 0 or 1 for a boolean */
  double real;
} carina_number;
carina_status carina_method_output_number(const carina_method* method, uint32_t index, carina_number* number);
/* Copies to planned memory; an input without planned memory uses the bytes in place. */
carina_status carina_method_set_input(carina_method* method, uint32_t index, const void* bytes, size_t size);
carina_status carina_method_bind_output(carina_method* method, uint32_t index, void* bytes, size_t size);
carina_status carina_method_execute(carina_method* method);

#ifdef __cplusplus
}
#endif

#endif
