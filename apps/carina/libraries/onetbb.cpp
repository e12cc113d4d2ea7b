// SPDX-License-Identifier: Apache-2.0
// The oneTBB functions that its headers call for the loops and pipelines of this program.
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/parallel_pipeline.h>
#include <oneapi/tbb/task_arena.h>

#include "libraries/lazy.hpp"

namespace {

template <typename Function>
Function* inTbb(const char* name) {
  static void* const library = carina::app::loadLibrary(CARINA_TBB_LIBRARY);
  return carina::app::functionIn<Function>(library, name);
}

}  // namespace

/// Defines `name` as a call of the library's function with the mangled name `mangled`.
#define CARINA_TBB(type, name, mangled, parameters, arguments)                         \
  type name parameters {                                                               \
    static auto* const function = inTbb<type parameters>("_ZN3tbb6detail2r1" mangled); \
    return function arguments;                                                         \
  }

namespace tbb::detail::r1 {

CARINA_TBB(void*, allocate, "8allocateERPNS0_2d117small_object_poolEm",
           (d1::small_object_pool * &pool, std::size_t bytes), (pool, bytes))
CARINA_TBB(void*, allocate, "8allocateERPNS0_2d117small_object_poolEmRKNS2_14execution_dataE",
           (d1::small_object_pool * &pool, std::size_t bytes, const d1::execution_data& data),
           (pool, bytes, data))
CARINA_TBB(void, deallocate, "10deallocateERNS0_2d117small_object_poolEPvm",
           (d1::small_object_pool & pool, void* memory, std::size_t bytes), (pool, memory, bytes))
CARINA_TBB(void, deallocate, "10deallocateERNS0_2d117small_object_poolEPvmRKNS2_14execution_dataE",
           (d1::small_object_pool & pool, void* memory, std::size_t bytes, const d1::execution_data& data),
           (pool, memory, bytes, data))
CARINA_TBB(void*, allocate_memory, "15allocate_memoryEm", (std::size_t bytes), (bytes))
CARINA_TBB(void, deallocate_memory, "17deallocate_memoryEPv", (void* memory), (memory))

CARINA_TBB(void, initialize, "10initializeERNS0_2d118task_group_contextE", (d1::task_group_context & context),
           (context))
CARINA_TBB(void, destroy, "7destroyERNS0_2d118task_group_contextE", (d1::task_group_context & context),
           (context))
CARINA_TBB(bool, is_group_execution_cancelled, "28is_group_execution_cancelledERNS0_2d118task_group_contextE",
           (d1::task_group_context & context), (context))

CARINA_TBB(void, spawn, "5spawnERNS0_2d14taskERNS2_18task_group_contextE",
           (d1::task & task, d1::task_group_context& context), (task, context))
CARINA_TBB(void, spawn, "5spawnERNS0_2d14taskERNS2_18task_group_contextEt",
           (d1::task & task, d1::task_group_context& context, d1::slot_id slot), (task, context, slot))
CARINA_TBB(void, execute_and_wait,
           "16execute_and_waitERNS0_2d14taskERNS2_18task_group_contextERNS2_12wait_contextES6_",
           (d1::task & task, d1::task_group_context& ofTask, d1::wait_context& wait,
            d1::task_group_context& ofWait),
           (task, ofTask, wait, ofWait))
CARINA_TBB(void, notify_waiters, "14notify_waitersEm", (std::uintptr_t wait), (wait))
CARINA_TBB(d1::slot_id, execution_slot, "14execution_slotEPKNS0_2d114execution_dataE",
           (const d1::execution_data* data), (data))

CARINA_TBB(int, max_concurrency, "15max_concurrencyEPKNS0_2d115task_arena_baseE",
           (const d1::task_arena_base* arena), (arena))
CARINA_TBB(void, isolate_within_arena, "20isolate_within_arenaERNS0_2d113delegate_baseEl",
           (d1::delegate_base & body, std::intptr_t isolation), (body, isolation))

CARINA_TBB(void, parallel_pipeline, "17parallel_pipelineERNS0_2d118task_group_contextEmRKNS2_11filter_nodeE",
           (d1::task_group_context & context, std::size_t tokens, const d1::filter_node& first),
           (context, tokens, first))
CARINA_TBB(void, set_end_of_input, "16set_end_of_inputERNS0_2d111base_filterE", (d1::base_filter & filter),
           (filter))

}  // namespace tbb::detail::r1
