# MARGINMERGE_SANITIZE=address,undefined or =thread instruments everything we build.
set(MARGINMERGE_SANITIZE "" CACHE STRING "Comma-separated sanitizers")
if(MARGINMERGE_SANITIZE)
    add_compile_options(-fsanitize=${MARGINMERGE_SANITIZE} -fno-omit-frame-pointer
                        -fno-sanitize-recover=all)
    add_link_options(-fsanitize=${MARGINMERGE_SANITIZE})
endif()
# For files of vector kernels: watching every register tile as a piece of the stack costs the address sanitizer
# minutes a file and shows nothing; what they read and write elsewhere is checked, through calls.
if(MARGINMERGE_SANITIZE MATCHES address)
    set(MARGINMERGE_TILE_FLAGS -fno-sanitize=undefined -fno-sanitize-address-use-after-scope)
    if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
        list(APPEND MARGINMERGE_TILE_FLAGS --param=asan-stack=0 --param=asan-instrumentation-with-call-threshold=0)
    else()
        list(APPEND MARGINMERGE_TILE_FLAGS -mllvm -asan-stack=0 -mllvm
            -asan-instrumentation-with-call-threshold=0)
    endif()
endif()
