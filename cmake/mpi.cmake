# Many machines: built when an MPI is there; 'scripts/setup cluster' installs OpenMPI. A race or leak found inside MPI
# would not be ours, so instrumented builds leave it out.
set(MPI_CXX_SKIP_MPICXX ON)
find_package(MPI QUIET COMPONENTS CXX)
set(found OFF)
if(MPI_CXX_FOUND AND NOT MARGINMERGE_SANITIZE)
    set(found ON)
endif()
option(MARGINMERGE_MPI "Build the MPI module" ${found})
if(NOT MARGINMERGE_MPI)
    message(STATUS "MPI: off; 'scripts/setup cluster' installs what it needs")
endif()
