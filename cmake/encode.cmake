# What the optional encoder needs. Missing packages switch it off with a note; the command line
# then says at run time what to install.
pkg_check_modules(ENCODE IMPORTED_TARGET QUIET
    poppler-cpp libpng libjpeg libwebp libtiff-4 libutf8proc libpcre2-8 sentencepiece)
if(ENCODE_FOUND)
    set(MARGINMERGE_ENCODE ON)
else()
    set(MARGINMERGE_ENCODE OFF)
    message(STATUS "Encoder: off; 'scripts/setup encode' installs what it needs")
endif()

# ONNX Runtime: a system copy first, then the folder scripts/fetch-encoder fills. Only the header is
# needed to build; the library is opened at run time.
set(MARGINMERGE_ONNXRUNTIME_DIR "" CACHE PATH "Folder with include/onnxruntime_cxx_api.h and lib/libonnxruntime.so")
if(MARGINMERGE_ENCODE)
    if(DEFINED ENV{MARGINMERGE_ENCODER_DIR})
        set(encoder_dir $ENV{MARGINMERGE_ENCODER_DIR})
    elseif(DEFINED ENV{XDG_CACHE_HOME})
        set(encoder_dir $ENV{XDG_CACHE_HOME}/marginmerge/encoder)
    else()
        set(encoder_dir $ENV{HOME}/.cache/marginmerge/encoder)
    endif()
    set(hints ${MARGINMERGE_ONNXRUNTIME_DIR})
    # Looked up anew at every configuration: fetching the runtime later must not need a fresh build folder.
    unset(MARGINMERGE_ONNXRUNTIME_INCLUDE CACHE)
    unset(MARGINMERGE_ONNXRUNTIME_LIBRARY CACHE)
    find_path(MARGINMERGE_ONNXRUNTIME_INCLUDE onnxruntime_cxx_api.h
        HINTS ${hints} PATHS ${encoder_dir}/onnxruntime PATH_SUFFIXES include include/onnxruntime
        include/onnxruntime/core/session)
    find_file(MARGINMERGE_ONNXRUNTIME_LIBRARY NAMES libonnxruntime.so.1 libonnxruntime.so
        HINTS ${hints} PATHS ${encoder_dir}/onnxruntime /usr/lib /usr/local/lib
        PATH_SUFFIXES lib lib64 ${CMAKE_LIBRARY_ARCHITECTURE})
    if(NOT MARGINMERGE_ONNXRUNTIME_LIBRARY)
        set(MARGINMERGE_ONNXRUNTIME_LIBRARY "")
    endif()
    if(MARGINMERGE_ONNXRUNTIME_INCLUDE)
        message(STATUS "Encoder: ONNX Runtime headers in ${MARGINMERGE_ONNXRUNTIME_INCLUDE}")
    else()
        message(STATUS "Encoder: no ONNX Runtime; run scripts/fetch-encoder and configure again")
    endif()
endif()
