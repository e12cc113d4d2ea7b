/* SPDX-License-Identifier: Apache-2.0 */
#include "c_client.h"

#include <stdlib.h>
#include <string.h>

#define MOST_POOLS 4
#define TRY(expression)                            \
  do {                                             \
    const carina_status status_ = (expression);    \
    if (status_.code != CARINA_OK) return status_; \
  } while (0)

static carina_bytes block(size_t size) {
  carina_bytes bytes = {NULL, size};
  bytes.data = aligned_alloc(16, (size + 31) / 16 * 16);
  return bytes;
}

static carina_status fill_and_run(carina_method* method, const void* input, size_t input_size, void* output,
                                  size_t output_size) {
  carina_tensor tensor;
  TRY(carina_method_set_input(method, 0, input, input_size));
  TRY(carina_method_execute(method));
  if (carina_method_output(method, 0, &tensor).code == CARINA_TYPE_MISMATCH) {
    carina_number number;
    TRY(carina_method_output_number(method, 0, &number));
    memcpy(output, &number, sizeof(number) < output_size ? sizeof(number) : output_size);
    return carina_method_input(method, 0, &tensor);
  }
  memcpy(output, tensor.data, tensor.bytes < output_size ? tensor.bytes : output_size);
  return carina_method_input(method, 0, &tensor);
}

/* The data of another file: "weight". */
static int find_weight(void* context, const char* name, size_t length, const void** bytes, size_t* size) {
  if (length != 6 || memcmp(name, "weight", 6) != 0) return 1;
  *bytes = context;
  *size = 4 * sizeof(float);
  return 0;
}

char events_from_c[16];
static size_t event_count;
static void keep_event(void* context, enum carina_event kind, uint32_t instruction, const char* name,
                       size_t length) {
  static const char kLetters[] = "kKdDxX";
  (void)context;
  (void)instruction;
  if (length != 0 && name != NULL && event_count + 1 < sizeof(events_from_c))
    events_from_c[event_count++] = kLetters[kind];
}

carina_status run_from_c(const void* bytes, size_t size, const char* name, const carina_device* device,
                         const void* input, size_t input_size, void* output, size_t output_size,
                         uint64_t* cycles) {
  carina_program program;
  carina_npu npu;
  carina_method method;
  carina_requirements needs;
  carina_bytes pools[MOST_POOLS] = {{NULL, 0}};
  uint32_t index = 0, i = 0;
  TRY(carina_program_load(&program, bytes, size));
  TRY(carina_program_find_method(&program, name, &index));
  if (device != NULL) TRY(carina_npu_open(&npu, device, NULL, NULL, 0));
  static _Alignas(16) float weight[4] = {2.0f, 3.0f, 4.0f, 5.0f};
  const carina_named_data others = {weight, find_weight};
  static const carina_profiler profiler = {NULL, keep_event};
  const carina_environment environment = {
      carina_all_kernels(), device != NULL ? &npu : NULL, 0, &others, &profiler, NULL};
  memset(events_from_c, 0, sizeof(events_from_c));
  event_count = 0;
  TRY(carina_method_require(&program, index, &environment, &needs));
  carina_memory memory = {block(needs.method_bytes), block(needs.temporary_bytes), pools, needs.pool_count};
  carina_status status = {CARINA_OK, 0, 0, NULL, NULL};
  for (i = 0; i < needs.pool_count && i < MOST_POOLS && status.code == CARINA_OK; ++i) {
    size_t pool = 0;
    status = carina_method_pool_bytes(&program, index, i, &pool);
    pools[i] = block(pool);
  }
  if (status.code == CARINA_OK) status = carina_method_load(&method, &program, index, &environment, &memory);
  if (status.code == CARINA_OK) status = fill_and_run(&method, input, input_size, output, output_size);
  if (device != NULL) *cycles = carina_npu_cycles(&npu);
  free(memory.method.data);
  free(memory.temporary.data);
  for (i = 0; i < MOST_POOLS; ++i) free(pools[i].data);
  return status;
}
