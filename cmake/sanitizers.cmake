# MARGINMERGE_SANITIZE=address,undefined or =thread instruments everything we build.
set(MARGINMERGE_SANITIZE "" CACHE STRING "Comma-separated sanitizers")
if(MARGINMERGE_SANITIZE)
    add_compile_options(-fsanitize=${MARGINMERGE_SANITIZE} -fno-omit-frame-pointer
                        -fno-sanitize-recover=all)
    add_link_options(-fsanitize=${MARGINMERGE_SANITIZE})
endif()
# Fuzz targets steer by coverage: one instrumented library serves them and the tests.
if(MARGINMERGE_BUILD_FUZZ)
    if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang)
        message(FATAL_ERROR "fuzz targets need clang: use the preset 'fuzz'")
    endif()
    add_compile_options(-fsanitize=fuzzer-no-link)
endif()
# For files of vector kernels: watching every register tile as a piece of the stack costs the address sanitizer
# minutes a file and shows nothing; what they read and write elsewhere is checked, through calls. Without
# optimisation they would crawl.
if(MARGINMERGE_SANITIZE)
    set(MARGINMERGE_TILE_FLAGS -O1)
endif()
if(MARGINMERGE_SANITIZE MATCHES address)
    list(APPEND MARGINMERGE_TILE_FLAGS -fno-sanitize=undefined -fno-sanitize-address-use-after-scope)
    if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
        list(APPEND MARGINMERGE_TILE_FLAGS --param=asan-stack=0 --param=asan-instrumentation-with-call-threshold=0)
    else()
        list(APPEND MARGINMERGE_TILE_FLAGS -mllvm -asan-stack=0 -mllvm
            -asan-instrumentation-with-call-threshold=0)
    endif()
endif()
