# An installed copy is used with find_package(marginmerge) and marginmerge::marginmerge.
include(CMakePackageConfigHelpers)
install(TARGETS marginmerge EXPORT marginmerge_targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS marginmerge_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY include/marginmerge DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/marginmerge)
install(EXPORT marginmerge_targets NAMESPACE marginmerge:: DESTINATION ${config_dir})
configure_package_config_file(cmake/marginmerge-config.cmake.in
    ${PROJECT_BINARY_DIR}/marginmerge-config.cmake INSTALL_DESTINATION ${config_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/marginmerge-config-version.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/marginmerge-config.cmake
    ${PROJECT_BINARY_DIR}/marginmerge-config-version.cmake DESTINATION ${config_dir})
