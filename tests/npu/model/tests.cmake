carina_test(npu_model_programs_test LABEL conformance
  SOURCES model/programs.cpp model/programs_test.cpp model/delegates_test.cpp
  DEPS carina::npu carina::test_support nlohmann_json::nlohmann_json)
carina_test(npu_model_differential_test LABEL unit
  SOURCES model/differential_test.cpp reference/reference.cpp
  DEPS carina::npu carina::test_support)
