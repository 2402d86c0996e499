# Many machines: the MPI module. A race or leak found inside MPI would not be ours, so instrumented builds leave it out.
# Where MPI's programs are installed without its headers CMake's own search stops with an error and is not tried again,
# so the headers are looked for first.
set(found OFF)
find_program(MARGINMERGE_MPICXX NAMES mpicxx mpic++)
set(no_headers 0)
if(MARGINMERGE_MPICXX)
    execute_process(COMMAND ${MARGINMERGE_MPICXX} -E -include mpi.h -x c++ /dev/null
        RESULT_VARIABLE no_headers OUTPUT_QUIET ERROR_QUIET)
endif()
if(no_headers EQUAL 0 AND NOT MARGINMERGE_SANITIZE)
    set(MPI_CXX_SKIP_MPICXX ON)
    find_package(MPI QUIET COMPONENTS CXX)
    if(MPI_CXX_FOUND)
        set(found ON)
    endif()
endif()
optional_part(MPI ${found} "an MPI with its headers ('scripts/setup cluster') and no sanitizer")
