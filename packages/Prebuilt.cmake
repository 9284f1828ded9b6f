# A wheel of what a build tree has: `cmake --install` of one component (docs/guides/python.md).
set(FP4_PREBUILT "" CACHE PATH "The build tree whose files are packaged")
if(NOT EXISTS "${FP4_PREBUILT}/cmake_install.cmake")
  message(FATAL_ERROR "FP4_PREBUILT must name a build tree of fp4, but got '${FP4_PREBUILT}'\n"
    "note: packages/build_wheels.py --build DIR builds it first and passes its name")
endif()

# fp4_package(COMPONENT): the files of the component, under site-packages, and the licences.
function(fp4_package component)
  install(CODE "execute_process(COMMAND \"${CMAKE_COMMAND}\" --install \"${FP4_PREBUILT}\"
    --component ${component} --strip --prefix \"\${CMAKE_INSTALL_PREFIX}\"
    COMMAND_ERROR_IS_FATAL ANY)")
  install(FILES ${CMAKE_CURRENT_SOURCE_DIR}/../../LICENSE ${CMAKE_CURRENT_SOURCE_DIR}/../../NOTICE
    DESTINATION ${SKBUILD_METADATA_DIR}/licenses)
endfunction()
