# Warnings live in one interface target so that every target asks for the same ones.
option(MARGINMERGE_WERROR "Treat warnings as errors" OFF)
add_library(marginmerge_warnings INTERFACE)
target_compile_options(marginmerge_warnings INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wconversion
    -Wno-sign-conversion $<$<BOOL:${MARGINMERGE_WERROR}>:-Werror>)
