# Helpers for the part of the project that must not depend on LLVM.

set(FP4_CXX_FLAGS -Wall -Wextra -Wno-unused-parameter)
if(FP4_WERROR)
  list(APPEND FP4_CXX_FLAGS -Werror)
endif()
if(FP4_SANITIZE)
  list(JOIN FP4_SANITIZE "," _fp4_sanitizers)
  # With assertions, those of LLVM's headers too. Traces need lines and no variables.
  add_compile_options(-fsanitize=${_fp4_sanitizers} -fno-omit-frame-pointer -UNDEBUG
                      -gline-tables-only)
  add_link_options(-fsanitize=${_fp4_sanitizers})
endif()
if(FP4_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  add_link_options(-fuse-ld=lld)
endif()

# fp4_add_library(NAME SOURCES a.cpp ... [DEPS lib ...]): a static library of the LLVM-free floors.
function(fp4_add_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  add_library(FP4::${name} ALIAS ${name})
  target_compile_options(${name} PRIVATE ${FP4_CXX_FLAGS})
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${name} PUBLIC ${ARG_DEPS})
  set_property(GLOBAL APPEND PROPERTY FP4_INSTALL_TARGETS ${name})
endfunction()

# fp4_add_unittest(NAME SOURCES a.cpp ... [DEPS lib ...]): a GoogleTest binary in build/unittests,
# run by utils/check.sh.
function(fp4_add_unittest name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_compile_options(${name} PRIVATE ${FP4_CXX_FLAGS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gtest GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE FP4_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/unittests)
  add_dependencies(fp4-unittests ${name})
endfunction()
