carina_test(npu_model_programs_test LABEL conformance
  SOURCES model/programs.cpp model/programs_test.cpp model/delegates_test.cpp
  DEPS carina::npu_model carina::test_support nlohmann_json::nlohmann_json)
carina_test(npu_model_differential_test LABEL unit
  SOURCES model/differential_test.cpp reference/reference.cpp
  DEPS carina::npu_model carina::test_support)
carina_test(npu_model_test LABEL unit
  SOURCES model/small_program.cpp model/checker_test.cpp model/device_test.cpp model/dma_test.cpp model/memory_test.cpp model/operations_test.cpp model/planted_bugs_test.cpp model/tables_and_extents_test.cpp timing/shared_ports_test.cpp timing/timing_test.cpp
  DEPS carina::npu_model carina::test_support)
