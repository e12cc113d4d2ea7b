// SPDX-License-Identifier: Apache-2.0
// The oneDNN functions that the kernels use, in a library that is loaded with the first call: it is 40 MB of
// code with relocations, which would slow down every start of the program, whether or not it computes in
// float.
#include <dlfcn.h>
#include <dnnl.h>

#define CARINA_TEXT_OF(number) #number
#define CARINA_TEXT(number) CARINA_TEXT_OF(number)

namespace {

/// The library's function of this name; null if there is none.
template <typename Function>
Function* there(const char* name) {
  // Never closed: its threads and caches may live as long as the program.
  static void* const library = dlopen("libdnnl.so." CARINA_TEXT(DNNL_VERSION_MAJOR), RTLD_NOW | RTLD_LOCAL);
  return library == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(library, name));
}

}  // namespace

/// Defines `name` as a call of the library's function; without the library it returns `otherwise`.
#define CARINA_ONEDNN(type, otherwise, name, parameters, arguments)                 \
  type name parameters {                                                            \
    static auto* const function = there<decltype(name)>(#name);                     \
    return function == nullptr ? static_cast<type>(otherwise) : function arguments; \
  }
#define CARINA_ONEDNN_STATUS(name, parameters, arguments) \
  CARINA_ONEDNN(dnnl_status_t, dnnl_runtime_error, name, parameters, arguments)

extern "C" {

CARINA_ONEDNN_STATUS(dnnl_dilated_convolution_forward_desc_init,
                     (dnnl_convolution_desc_t * convolution, dnnl_prop_kind_t kind, dnnl_alg_kind_t algorithm,
                      const dnnl_memory_desc_t* source, const dnnl_memory_desc_t* weights,
                      const dnnl_memory_desc_t* bias, const dnnl_memory_desc_t* destination,
                      const dnnl_dims_t strides, const dnnl_dims_t dilates, const dnnl_dims_t left,
                      const dnnl_dims_t right),
                     (convolution, kind, algorithm, source, weights, bias, destination, strides, dilates,
                      left, right))
CARINA_ONEDNN_STATUS(dnnl_engine_create, (dnnl_engine_t * engine, dnnl_engine_kind_t kind, size_t index),
                     (engine, kind, index))
CARINA_ONEDNN_STATUS(dnnl_engine_destroy, (dnnl_engine_t engine), (engine))
CARINA_ONEDNN_STATUS(dnnl_matmul_desc_init,
                     (dnnl_matmul_desc_t * product, const dnnl_memory_desc_t* source,
                      const dnnl_memory_desc_t* weights, const dnnl_memory_desc_t* bias,
                      const dnnl_memory_desc_t* destination),
                     (product, source, weights, bias, destination))
CARINA_ONEDNN_STATUS(dnnl_memory_create,
                     (dnnl_memory_t * memory, const dnnl_memory_desc_t* description, dnnl_engine_t engine,
                      void* handle),
                     (memory, description, engine, handle))
CARINA_ONEDNN(size_t, 0, dnnl_memory_desc_get_size, (const dnnl_memory_desc_t* description), (description))
CARINA_ONEDNN_STATUS(dnnl_memory_desc_init_by_tag,
                     (dnnl_memory_desc_t * description, int rank, const dnnl_dims_t dims,
                      dnnl_data_type_t type, dnnl_format_tag_t tag),
                     (description, rank, dims, type, tag))
CARINA_ONEDNN_STATUS(dnnl_memory_destroy, (dnnl_memory_t memory), (memory))
CARINA_ONEDNN_STATUS(dnnl_memory_set_data_handle_v2,
                     (dnnl_memory_t memory, void* handle, dnnl_stream_t stream), (memory, handle, stream))
CARINA_ONEDNN_STATUS(dnnl_primitive_attr_create, (dnnl_primitive_attr_t * attributes), (attributes))
CARINA_ONEDNN_STATUS(dnnl_primitive_attr_destroy, (dnnl_primitive_attr_t attributes), (attributes))
CARINA_ONEDNN_STATUS(dnnl_primitive_attr_set_scratchpad_mode,
                     (dnnl_primitive_attr_t attributes, dnnl_scratchpad_mode_t mode), (attributes, mode))
CARINA_ONEDNN_STATUS(dnnl_primitive_create,
                     (dnnl_primitive_t * primitive, const_dnnl_primitive_desc_t description),
                     (primitive, description))
CARINA_ONEDNN_STATUS(dnnl_primitive_desc_destroy, (dnnl_primitive_desc_t description), (description))
CARINA_ONEDNN_STATUS(dnnl_primitive_desc_iterator_create,
                     (dnnl_primitive_desc_iterator_t * iterator, const_dnnl_op_desc_t operation,
                      const_dnnl_primitive_attr_t attributes, dnnl_engine_t engine,
                      const_dnnl_primitive_desc_t hint),
                     (iterator, operation, attributes, engine, hint))
CARINA_ONEDNN_STATUS(dnnl_primitive_desc_iterator_destroy, (dnnl_primitive_desc_iterator_t iterator),
                     (iterator))
CARINA_ONEDNN(dnnl_primitive_desc_t, nullptr, dnnl_primitive_desc_iterator_fetch,
              (const_dnnl_primitive_desc_iterator_t iterator), (iterator))
CARINA_ONEDNN(const dnnl_memory_desc_t*, nullptr, dnnl_primitive_desc_query_md,
              (const_dnnl_primitive_desc_t description, dnnl_query_t what, int index),
              (description, what, index))
CARINA_ONEDNN_STATUS(dnnl_primitive_destroy, (dnnl_primitive_t primitive), (primitive))
CARINA_ONEDNN_STATUS(dnnl_primitive_execute,
                     (const_dnnl_primitive_t primitive, dnnl_stream_t stream, int count,
                      const dnnl_exec_arg_t* arguments),
                     (primitive, stream, count, arguments))
CARINA_ONEDNN_STATUS(dnnl_sgemm,
                     (char transposeA, char transposeB, dnnl_dim_t m, dnnl_dim_t n, dnnl_dim_t k, float alpha,
                      const float* a, dnnl_dim_t strideA, const float* b, dnnl_dim_t strideB, float beta,
                      float* c, dnnl_dim_t strideC),
                     (transposeA, transposeB, m, n, k, alpha, a, strideA, b, strideB, beta, c, strideC))
CARINA_ONEDNN_STATUS(dnnl_stream_create, (dnnl_stream_t * stream, dnnl_engine_t engine, unsigned flags),
                     (stream, engine, flags))
CARINA_ONEDNN_STATUS(dnnl_stream_destroy, (dnnl_stream_t stream), (stream))
CARINA_ONEDNN_STATUS(dnnl_stream_wait, (dnnl_stream_t stream), (stream))

}  // extern "C"
