# Warnings live in one interface target so that every target asks for the same ones.
# A group of files shares the names each of them keeps to itself, so shadowing is looked for where files compile alone.
option(MARGINMERGE_WERROR "Treat warnings as errors" OFF)
add_library(marginmerge_warnings INTERFACE)
target_compile_options(marginmerge_warnings INTERFACE
    -Wall -Wextra -Wpedantic $<$<NOT:$<BOOL:${CMAKE_UNITY_BUILD}>>:-Wshadow> -Wnon-virtual-dtor -Woverloaded-virtual
    -Wconversion -Wno-sign-conversion $<$<BOOL:${MARGINMERGE_WERROR}>:-Werror>)
