# Programs and libraries that run on every Linux of x86-64 or aarch64 with glibc 2.28 or later,
# whatever it was that built them: wheels of them are manylinux_2_28 (docs/guides/python.md).
set(FP4_PORTABLE OFF)
set(_libc ${CMAKE_SYSROOT}/lib/${CMAKE_SYSTEM_PROCESSOR}-linux-gnu)
if(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|aarch64)$"
   AND NOT FP4_SANITIZE AND NOT FP4_FUZZ AND EXISTS ${_libc}/libpthread.so.0)
  set(FP4_PORTABLE ON)
  set(FP4_LIBC_PARTS ${_libc}/libpthread.so.0 ${_libc}/libdl.so.2)
  set(_target)
  if(CMAKE_SYSROOT)
    set(_target --target=${CMAKE_CXX_COMPILER_TARGET} --sysroot=${CMAKE_SYSROOT})
  endif()
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} ${_target} -print-file-name=libgcc.a
    OUTPUT_VARIABLE FP4_LIBGCC OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()

if(FP4_PORTABLE)
  # For libraries, and for programs.
  add_library(FP4GlibcFloor OBJECT ${PROJECT_SOURCE_DIR}/cmake/GlibcFloor.c)
  add_library(FP4GlibcFloorProgram OBJECT ${PROJECT_SOURCE_DIR}/cmake/GlibcFloor.c)
  target_compile_definitions(FP4GlibcFloorProgram PRIVATE FP4_GLIBC_FLOOR_PROGRAM)
endif()

# fp4_make_portable(TARGETS...): libstdc++ and zstd inside, old versions of what libc has.
function(fp4_make_portable)
  if(NOT FP4_PORTABLE)
    return()
  endif()
  foreach(_target ${ARGN})
    get_target_property(_type ${_target} TYPE)
    set(_floor FP4GlibcFloor)
    if(_type STREQUAL "EXECUTABLE")
      set(_floor FP4GlibcFloorProgram)
    endif()
    target_sources(${_target} PRIVATE $<TARGET_OBJECTS:${_floor}>)
    # Before 2.34 the two libraries were not part of libc. Conversions of _Float16 come from
    # libgcc.a, as those of libgcc_s.so.1 are of GCC 12; the unwinder stays a shared library.
    target_link_options(${_target} PRIVATE -static-libstdc++ LINKER:--exclude-libs,ALL)
    target_link_libraries(${_target} PRIVATE
      ${FP4_LIBGCC} ${FP4_LIBC_PARTS})
  endforeach()
endfunction()
