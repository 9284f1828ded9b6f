# The compiler floor, against Debian's shared LLVM and MLIR 22.
find_program(FP4_LLVM_CONFIG NAMES llvm-config-22)
if(NOT FP4_LLVM_CONFIG)
  message(FATAL_ERROR "fp4 must have LLVM and MLIR 22, but there is no llvm-config-22.\n"
    "note: utils/setup.sh installs them, -DFP4_LLVM_CONFIG=FILE names another place, and "
    "-DFP4_ENABLE_COMPILER=OFF builds the simulator and the runtime without them.")
endif()
execute_process(COMMAND ${FP4_LLVM_CONFIG} --prefix
  OUTPUT_VARIABLE FP4_LLVM_PREFIX OUTPUT_STRIP_TRAILING_WHITESPACE)
execute_process(COMMAND ${FP4_LLVM_CONFIG} --version
  OUTPUT_VARIABLE FP4_LLVM_VERSION OUTPUT_STRIP_TRAILING_WHITESPACE)
if(FP4_LLVM_VERSION VERSION_LESS 22.1)
  message(FATAL_ERROR "fp4 must have LLVM and MLIR 22.1 or later, but ${FP4_LLVM_CONFIG} is of "
    "${FP4_LLVM_VERSION}\nnote: utils/setup.sh installs 22, and -DFP4_LLVM_CONFIG=FILE names it")
endif()
list(PREPEND CMAKE_PREFIX_PATH ${FP4_LLVM_PREFIX})
set(MLIR_LINK_MLIR_DYLIB ON)
set(LLVM_EXTERNAL_LIT ${FP4_LLVM_PREFIX}/bin/lit CACHE STRING "")
find_package(MLIR 22.1 REQUIRED CONFIG)
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)
if(CMAKE_CROSSCOMPILING) # the sources that mlir-tblgen writes are those of every host
  execute_process(COMMAND ${FP4_LLVM_CONFIG} --bindir
    OUTPUT_VARIABLE _llvm_tools OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(MLIR_TABLEGEN_EXE ${_llvm_tools}/mlir-tblgen)
  set(MLIR_TABLEGEN_TARGET ${MLIR_TABLEGEN_EXE})
endif()
set(LLVM_RUNTIME_OUTPUT_INTDIR ${CMAKE_BINARY_DIR}/bin)
set(LLVM_LIBRARY_OUTPUT_INTDIR ${CMAKE_BINARY_DIR}/lib)
set(MLIR_BINARY_DIR ${CMAKE_BINARY_DIR})
include(HandleLLVMOptions)
if(FP4_SANITIZE)
  # Debian's libraries have no assertions, and LLVM's headers have other classes with them: the
  # statistics of a pass would not be what libMLIR constructs.
  add_compile_options(-DNDEBUG)
endif()
# Installed tools find libMLIR where it was linked; the loader does not look there by itself.
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)
include_directories(SYSTEM ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
include_directories(${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include)
separate_arguments(_llvm_definitions NATIVE_COMMAND "${LLVM_DEFINITIONS}")
list(FILTER _llvm_definitions EXCLUDE REGEX "_GLIBCXX_USE_CXX11_ABI") # HandleLLVMOptions adds it
add_definitions(${_llvm_definitions})

# Passes spend their time in libMLIR and libLLVM. More optimization of ours changes no time that can
# be measured, and takes an eighth of the time of the build.
set(FP4_COMPILER_LEVEL $<$<CONFIG:Release>:-O1>)
if(FP4_QUICK)
  set(FP4_COMPILER_LEVEL -O0)
endif()

# One precompiled header for every MLIR translation unit: header parsing dominates compile time. With
# FP4_UNITY our dialects are in it too. Without, a change of a dialect compiles only the sources that
# include it.
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/fp4_compiler_pch.cpp CONTENT "") # a new run keeps its time
add_library(fp4_compiler_pch OBJECT ${CMAKE_BINARY_DIR}/fp4_compiler_pch.cpp)
# Code generation flags as add_mlir_dialect_library gives them to its targets, or clang refuses it.
llvm_update_compile_flags(fp4_compiler_pch)
target_compile_options(fp4_compiler_pch PRIVATE ${FP4_COMPILER_LEVEL})
target_precompile_headers(fp4_compiler_pch PRIVATE ${PROJECT_SOURCE_DIR}/cmake/fp4_pch.h)
if(FP4_UNITY)
  target_precompile_headers(fp4_compiler_pch PRIVATE ${PROJECT_SOURCE_DIR}/cmake/fp4_dialect_pch.h)
  add_dependencies(fp4_compiler_pch FP4DialectIncGen FP4PipeIncGen)
endif()

# fp4_reuse_compiler_headers(NAME): a program that is no library of the compiler has its precompiled
# header too, and parses MLIR's headers once less for each source. Code generation flags as there.
function(fp4_reuse_compiler_headers name)
  target_compile_options(${name} PRIVATE -fPIC -fno-exceptions -funwind-tables
                                         ${FP4_COMPILER_LEVEL})
  target_precompile_headers(${name} REUSE_FROM fp4_compiler_pch)
endfunction()

# fp4_add_mlir_library(NAME SOURCES... [DEPENDS tablegen targets] [MLIR MLIRxxx...] [LINK libs...])
# One target per directory (add_mlir_dialect_library's rule). MLIR libraries go through
# mlir_target_link_libraries so that they become libMLIR.so and never static archives.
function(fp4_add_mlir_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;MLIR;LINK" ${ARGN})
  add_mlir_dialect_library(${name} ${ARG_SOURCES}
    EXCLUDE_FROM_LIBMLIR DISABLE_INSTALL DEPENDS ${ARG_DEPENDS})
  foreach(_t ${name} obj.${name})
    if(TARGET ${_t})
      target_compile_options(${_t} PRIVATE ${FP4_CXX_FLAGS} -Wno-sign-compare ${FP4_COMPILER_LEVEL})
      target_precompile_headers(${_t} REUSE_FROM fp4_compiler_pch)
      fp4_unity(${_t})
    endif()
  endforeach()
  mlir_target_link_libraries(${name} PUBLIC MLIRIR ${ARG_MLIR})
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
  target_include_directories(${name} INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  set_property(GLOBAL APPEND PROPERTY FP4_INSTALL_TARGETS ${name})
endfunction()

# LLVM and MLIR as archives, with the code generators of the GPU and of the host: libfp4.so of the
# wheels has inside what it uses of them. llvm-config, which may be that of another host, calls the
# latter native only at home.
set(_host native)
if(CMAKE_CROSSCOMPILING)
  string(TOLOWER ${CMAKE_SYSTEM_PROCESSOR} _host)
endif()
execute_process(OUTPUT_VARIABLE FP4_LLVM_ARCHIVES OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET
  COMMAND ${FP4_LLVM_CONFIG} --link-static --libfiles nvptx ${_host} passes frontendopenmp orcjit)
separate_arguments(FP4_LLVM_ARCHIVES)
list(TRANSFORM FP4_LLVM_ARCHIVES REPLACE "^.*/" "${LLVM_LIBRARY_DIR}/")
file(GLOB FP4_MLIR_ARCHIVES ${LLVM_LIBRARY_DIR}/libMLIR*.a)
list(FILTER FP4_MLIR_ARCHIVES EXCLUDE REGEX "Test|CAPI")
find_library(FP4_ZLIB_ARCHIVE libz.a)
find_library(FP4_ZSTD_ARCHIVE libzstd.a)
set(FP4_STATIC_LLVM OFF)
if(FP4_LLVM_ARCHIVES AND FP4_MLIR_ARCHIVES AND FP4_ZLIB_ARCHIVE AND FP4_ZSTD_ARCHIVE)
  set(FP4_STATIC_LLVM ON)
endif()

# fp4_link_static_llvm(TARGET): our libraries and those archives. Targets of CMake would bring
# libMLIR.so; lld takes objects from archives in any order.
function(fp4_link_static_llvm target)
  get_property(_libraries GLOBAL PROPERTY FP4_INSTALL_TARGETS)
  foreach(_library ${_libraries})
    get_target_property(_type ${_library} TYPE)
    if(_type STREQUAL "STATIC_LIBRARY")
      add_dependencies(${target} ${_library})
      target_link_libraries(${target} PRIVATE $<TARGET_FILE:${_library}>)
    endif()
  endforeach()
  target_link_libraries(${target} PRIVATE ${FP4_MLIR_ARCHIVES} ${FP4_LLVM_ARCHIVES}
    ${FP4_ZLIB_ARCHIVE} ${FP4_ZSTD_ARCHIVE})
  target_link_options(${target} PRIVATE LINKER:--gc-sections)
endfunction()

foreach(_dir include/fp4/Dialect/Fp4 include/fp4/Dialect/Pipe include/fp4/Conversion
             include/fp4/Conversion/Fp4ToGPU include/fp4/Conversion/Fp4ToPipe
             include/fp4/Conversion/HostToRuntime include/fp4/Plans
             include/fp4/Conversion/LinalgToFp4 include/fp4/Conversion/PipeToNVVM
             include/fp4/Conversion/StablehloToFp4 include/fp4/Conversion/TosaToFp4
             include/fp4/Target include/fp4/Pipelines
             lib/Dialect/Fp4/IR lib/Dialect/Pipe/IR lib/Dialect/Utils
             lib/Dialect/Fp4/Transforms lib/Dialect/Pipe/Transforms lib/Dialect/Pipe/Schedule
             lib/KernelArithmetic lib/Plans lib/Conversion/Fp4ToPipe lib/Conversion/Fp4ToGPU
             lib/Conversion/PipeToNVVM lib/Conversion/HostToRuntime lib/Conversion/Ingress
             lib/Conversion/TosaToFp4 lib/Conversion/LinalgToFp4 lib/Conversion/StablehloToFp4
             lib/Target lib/Pipelines
             lib/Compiler lib/Tuning lib/CAPI/Compiler lib/CAPI/Dialects lib/Plugin tools/fp4-opt
             tools/fp4-lsp-server tools/fp4-reduce tools/fp4-runner)
  if(EXISTS ${PROJECT_SOURCE_DIR}/${_dir}/CMakeLists.txt)
    add_subdirectory(${_dir})
  endif()
endforeach()
if(FP4_ENABLE_TESTS)
  foreach(_dir unittests/Compiler unittests/Tuning unittests/CAPI validation/fuzz/mlir test)
    if(EXISTS ${PROJECT_SOURCE_DIR}/${_dir}/CMakeLists.txt)
      add_subdirectory(${_dir})
    endif()
  endforeach()
endif()
