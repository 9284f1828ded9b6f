# For pip: what `cmake --install` of another build tree puts into a wheel (pyproject.toml).
foreach(_target FP4C FP4CRuntime FP4Python)
  add_custom_target(${_target})
endforeach()
install(CODE "execute_process(COMMAND \"${CMAKE_COMMAND}\" --install \"${FP4_PREBUILT}\"
  --component python --prefix \"\${CMAKE_INSTALL_PREFIX}\" COMMAND_ERROR_IS_FATAL ANY)"
  COMPONENT python)
