# `cpack -G DEB` in a build tree: a Debian package of what `cmake --install` installs, whose
# dependencies are those of its programs (dpkg-shlibdeps).
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME fp4)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "compiler and simulator for 4-bit block-scaled GPU kernels")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "An MLIR dialect, its compiler, a runtime for NVIDIA GPUs and a PTX simulator.\n\
The simulator executes CUDA programs without a GPU, and finds races,\n\
missing fences and deadlocks.")
if(NOT FP4_ENABLE_COMPILER)
  set(CPACK_PACKAGE_NAME fp4-runtime)
  set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "runtime and simulator for 4-bit block-scaled GPU kernels")
endif()
set(CPACK_PACKAGE_VENDOR "fp4 contributors")
set(CPACK_PACKAGE_CONTACT "The fp4 contributors <fp4@localhost>")
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE gzip)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

set(_doc ${CMAKE_INSTALL_DATAROOTDIR}/doc/${CPACK_PACKAGE_NAME})
file(READ ${PROJECT_SOURCE_DIR}/NOTICE _notice)
file(READ ${PROJECT_SOURCE_DIR}/LICENSE _license)
string(REGEX REPLACE "^.*(---- LLVM Exceptions)" "\\1" _exceptions "${_license}")
set(_files ${PROJECT_BINARY_DIR}/packages)
file(WRITE ${_files}/copyright "${_notice}
The Apache License 2.0 is /usr/share/common-licenses/Apache-2.0, and the GPL of libstdc++ is
/usr/share/common-licenses/GPL-3.

${_exceptions}")
file(WRITE ${_files}/changelog "${CPACK_PACKAGE_NAME} (${PROJECT_VERSION}-1) unstable; urgency=medium\n
  * fp4 ${PROJECT_VERSION}: the changes are in changelog.gz.\n
 -- ${CPACK_PACKAGE_CONTACT}  Thu, 01 Jan 2026 00:00:00 +0000\n")
file(WRITE ${_files}/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${_files}/triggers)
install(FILES ${_files}/copyright DESTINATION ${_doc})
# pack(FILE NAME): a compressed copy of a list of changes.
function(pack file name)
  file(ARCHIVE_CREATE OUTPUT ${_files}/${name} PATHS ${file} FORMAT raw COMPRESSION GZip
    COMPRESSION_LEVEL 9)
  install(FILES ${_files}/${name} DESTINATION ${_doc})
endfunction()
pack(${PROJECT_SOURCE_DIR}/CHANGELOG.md changelog.gz)
pack(${_files}/changelog changelog.Debian.gz)
install(FILES ${PROJECT_SOURCE_DIR}/packages/debian/lintian-overrides
  DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/lintian/overrides RENAME ${CPACK_PACKAGE_NAME})
include(CPack)
