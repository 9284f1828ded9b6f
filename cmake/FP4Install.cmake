# `cmake --install`: headers, libraries with find_package(FP4), tools and the plugin.
include(CMakePackageConfigHelpers)
set(_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/FP4)
get_property(_libraries GLOBAL PROPERTY FP4_INSTALL_TARGETS)
get_property(_tools GLOBAL PROPERTY FP4_INSTALL_TOOLS)

install(TARGETS ${_libraries} EXPORT FP4Targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT FP4Targets NAMESPACE FP4:: DESTINATION ${_package_dir})
if(_tools)
  install(TARGETS ${_tools} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
if(TARGET FP4Plugin)
  install(FILES $<TARGET_FILE:FP4Plugin> DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()

# Files that mlir-tblgen wrote lie in the build tree, in the same folders as the .td files.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ ${PROJECT_BINARY_DIR}/include/
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" PATTERN "*.def" PATTERN "*.td" PATTERN "*.inc"
  PATTERN "CMakeFiles" EXCLUDE)

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/FP4Config.cmake.in
  ${PROJECT_BINARY_DIR}/FP4Config.cmake INSTALL_DESTINATION ${_package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/FP4ConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/FP4Config.cmake ${PROJECT_BINARY_DIR}/FP4ConfigVersion.cmake
  DESTINATION ${_package_dir})

# Files that pyproject.toml puts into a wheel, beside the modules of python/fp4.
foreach(_library FP4C FP4CRuntime)
  if(TARGET ${_library})
    install(TARGETS ${_library} LIBRARY DESTINATION fp4/lib COMPONENT python EXCLUDE_FROM_ALL)
  endif()
endforeach()
# Files of three wheels (packages/): of the runtime, the simulator and the compiler.
install(TARGETS FP4CRuntime LIBRARY DESTINATION fp4/lib COMPONENT python-runtime EXCLUDE_FROM_ALL)
if(TARGET FP4CPortable)
  install(TARGETS FP4CPortable LIBRARY DESTINATION fp4/lib COMPONENT python-compiler
    EXCLUDE_FROM_ALL)
elseif(TARGET FP4C)
  install(TARGETS FP4C LIBRARY DESTINATION fp4/lib COMPONENT python-compiler EXCLUDE_FROM_ALL)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/python/fp4 DESTINATION . COMPONENT python-runtime
  EXCLUDE_FROM_ALL FILES_MATCHING PATTERN "*.py" PATTERN "*.pyi" PATTERN "py.typed"
  PATTERN "sim" EXCLUDE PATTERN "__pycache__" EXCLUDE)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/python/fp4/sim DESTINATION fp4 COMPONENT python-sim
  EXCLUDE_FROM_ALL FILES_MATCHING PATTERN "*.py" PATTERN "__pycache__" EXCLUDE)
