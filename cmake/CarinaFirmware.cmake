# The firmware kit that `carina firmware` links images from: share/carina/firmware beside bin/, in the build folder as after
# installation. Built when the cross compiler is there; without it the command says how to get it.
find_program(CARINA_ARM_GXX arm-none-eabi-g++)
set(CARINA_KIT "${PROJECT_BINARY_DIR}/share/carina/firmware")
if(CARINA_ARM_GXX)
  file(GLOB_RECURSE kit_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/firmware/*" "${PROJECT_SOURCE_DIR}/runtime/*"
    "${PROJECT_SOURCE_DIR}/src/aten/*.json")
  set(kit_stamps "")
  foreach(core IN ITEMS cortex-m33 cortex-m55)
    set(folder "${PROJECT_BINARY_DIR}/firmware/${core}")
    add_custom_command(OUTPUT "${folder}/stamp"
      COMMAND sh -c "\"$0\" \"$@\" >'${folder}.log'" "${CMAKE_COMMAND}" -G Ninja -S "${PROJECT_SOURCE_DIR}/firmware" -B "${folder}" -DCMAKE_BUILD_TYPE=Release
              "-DCMAKE_TOOLCHAIN_FILE=${PROJECT_SOURCE_DIR}/cmake/arm-none-eabi.cmake" "-DCARINA_CORE=${core}"
              "-DCARINA_KIT=${CARINA_KIT}" "-DCMAKE_CXX_COMPILER_LAUNCHER=${CARINA_CCACHE}"
      COMMAND "${CMAKE_COMMAND}" --build "${folder}" --parallel 2
      COMMAND "${CMAKE_COMMAND}" -E touch "${folder}/stamp"
      DEPENDS ${kit_sources} "${PROJECT_SOURCE_DIR}/cmake/arm-none-eabi.cmake"
      COMMENT "Firmware kit for ${core}" VERBATIM)
    list(APPEND kit_stamps "${folder}/stamp")
  endforeach()
  add_custom_target(firmware_kit ALL DEPENDS ${kit_stamps})
  install(DIRECTORY "${CARINA_KIT}/" DESTINATION share/carina/firmware)
else()
  message(STATUS "arm-none-eabi-g++ is missing: no firmware kit (scripts/deps.sh installs it)")
endif()
