# Helpers for the part of the project that must not depend on LLVM.

set(FP4_CXX_FLAGS -Wall -Wextra -Wno-unused-parameter)
if(FP4_WERROR)
  list(APPEND FP4_CXX_FLAGS -Werror)
endif()
# clang fuses multiply-adds for Arm hosts unless it is told not to: costs of plans, and so plans, would
# be others than on x86-64. Precompiled headers and their users must have the same flag.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  add_compile_options(-ffp-contract=off)
endif()
if(FP4_SANITIZE)
  list(JOIN FP4_SANITIZE "," _fp4_sanitizers)
  # The runtime is a shared library, which programs that are not instrumented can preload: they load
  # the plugin and the stand-ins for CUDA's libraries.
  set(_fp4_runtime ubsan_standalone)
  if("address" IN_LIST FP4_SANITIZE)
    set(_fp4_runtime asan)
  elseif("thread" IN_LIST FP4_SANITIZE)
    set(_fp4_runtime tsan)
  endif()
  execute_process(OUTPUT_VARIABLE FP4_SANITIZER_RUNTIME OUTPUT_STRIP_TRAILING_WHITESPACE
    COMMAND ${CMAKE_CXX_COMPILER}
            -print-file-name=libclang_rt.${_fp4_runtime}-${CMAKE_SYSTEM_PROCESSOR}.so)
  if(NOT EXISTS "${FP4_SANITIZER_RUNTIME}")
    message(FATAL_ERROR "the runtime of ${FP4_SANITIZE} is missing: install libclang-rt-22-dev")
  endif()
  get_filename_component(_fp4_runtime_folder ${FP4_SANITIZER_RUNTIME} DIRECTORY)
  # With assertions. Traces need lines and no variables.
  add_compile_options(-fsanitize=${_fp4_sanitizers} -fno-omit-frame-pointer -UNDEBUG
                      -gline-tables-only)
  set(FP4_SANITIZER_LINK -fsanitize=${_fp4_sanitizers} -shared-libsan
                         LINKER:-rpath,${_fp4_runtime_folder})
  add_link_options(${FP4_SANITIZER_LINK})
endif()
if(FP4_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  add_link_options(-fuse-ld=lld)
endif()

# fp4_unity(TARGET): with FP4_UNITY, headers are read once for each sixteen sources. A source whose names
# clash with those of its neighbours has the property SKIP_UNITY_BUILD_INCLUSION.
function(fp4_unity target)
  if(FP4_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 16)
  endif()
endfunction()

# fp4_sorts(FILES...): sources with std::stable_sort, for which GCC 12's library calls a function that
# the same library calls deprecated.
function(fp4_sorts)
  set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_OPTIONS -Wno-deprecated-declarations)
endfunction()

# fp4_alone(FILES...): sources that FP4_UNITY compiles by themselves.
function(fp4_alone)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# One precompiled header for the sources of all libraries of the LLVM-free floors, with FP4_UNITY.
function(fp4_precompile_runtime_headers)
  if(FP4_UNITY)
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/fp4_runtime_pch.cpp CONTENT "") # a new run keeps its time
    add_library(fp4_runtime_pch OBJECT ${CMAKE_BINARY_DIR}/fp4_runtime_pch.cpp)
    target_compile_options(fp4_runtime_pch PRIVATE ${FP4_CXX_FLAGS} ${FP4_IEEE_FLAGS})
    target_include_directories(fp4_runtime_pch PRIVATE ${PROJECT_SOURCE_DIR}/include)
    target_precompile_headers(fp4_runtime_pch PRIVATE ${PROJECT_SOURCE_DIR}/cmake/fp4_runtime_pch.h)
  endif()
endfunction()

# fp4_reuse_runtime_headers(TARGET): a library or a program that is none of fp4_add_library has their
# precompiled header too.
function(fp4_reuse_runtime_headers target)
  if(TARGET fp4_runtime_pch)
    target_compile_options(${target} PRIVATE -fPIC ${FP4_IEEE_FLAGS})
    target_precompile_headers(${target} REUSE_FROM fp4_runtime_pch)
  endif()
endfunction()

# Every formula is one order of IEEE operations on every host: no fused multiply-add may appear in it.
set(FP4_IEEE_FLAGS -ffp-contract=off)

# fp4_add_library(NAME SOURCES a.cpp ... [DEPS lib ...] [OWN_PCH]): a static library of the LLVM-free
# floors. OWN_PCH: its flags or its precompiled header are others.
function(fp4_add_library name)
  cmake_parse_arguments(ARG "OWN_PCH" "" "SOURCES;DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  add_library(FP4::${name} ALIAS ${name})
  fp4_unity(${name})
  target_compile_options(${name} PRIVATE ${FP4_CXX_FLAGS} ${FP4_IEEE_FLAGS})
  if(TARGET fp4_runtime_pch AND NOT ARG_OWN_PCH)
    target_precompile_headers(${name} REUSE_FROM fp4_runtime_pch)
  endif()
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${name} PUBLIC ${ARG_DEPS})
  target_link_options(${name} INTERFACE ${FP4_SANITIZER_LINK}) # what is installed needs the runtime
  set_property(GLOBAL APPEND PROPERTY FP4_INSTALL_TARGETS ${name})
endfunction()

# fp4_do_not_sanitize(NAMES...): programs and libraries that stand for what others compile.
function(fp4_do_not_sanitize)
  if(FP4_SANITIZE)
    foreach(_name ${ARGN})
      target_compile_options(${_name} PRIVATE -fno-sanitize=all)
      target_link_options(${_name} PRIVATE -fno-sanitize=all)
    endforeach()
  endif()
endfunction()

# Tests are not optimized: compiling them takes three times as long otherwise, and what they call is.
set(FP4_TEST_LEVEL $<$<CONFIG:Release>:-O0>)

# One precompiled header for all tests: those of GoogleTest and JSON are half of a test's source.
function(fp4_precompile_test_headers)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/fp4_test_pch.cpp CONTENT "") # a new run keeps its time
  add_library(fp4_test_pch OBJECT ${CMAKE_BINARY_DIR}/fp4_test_pch.cpp)
  target_compile_options(fp4_test_pch PRIVATE ${FP4_CXX_FLAGS} ${FP4_TEST_LEVEL})
  target_link_libraries(fp4_test_pch PRIVATE FP4Fmt nlohmann_json::nlohmann_json GTest::gmock)
  target_precompile_headers(fp4_test_pch PRIVATE ${PROJECT_SOURCE_DIR}/cmake/fp4_test_pch.h)
endfunction()

# fp4_add_unittest(NAME SOURCES a.cpp ... [DEPS lib ...] [OWN_PCH]): a GoogleTest binary in
# build/unittests, run by utils/check.sh. OWN_PCH: its precompiled header is another.
function(fp4_add_unittest name)
  cmake_parse_arguments(ARG "OWN_PCH" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  fp4_unity(${name})
  target_compile_options(${name} PRIVATE ${FP4_CXX_FLAGS} ${FP4_TEST_LEVEL})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} FP4Fmt nlohmann_json::nlohmann_json
                                        GTest::gtest GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE FP4_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  if(NOT ARG_OWN_PCH)
    target_compile_options(${name} PRIVATE -fPIC) # as the header's
    target_precompile_headers(${name} REUSE_FROM fp4_test_pch)
  endif()
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/unittests)
  add_dependencies(fp4-unittests ${name})
endfunction()
