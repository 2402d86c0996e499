# The Python module is built when pybind11 and Python's headers are there; 'scripts/setup python' installs them. It is
# made for Debian's own interpreter unless Python_EXECUTABLE names another. Sanitizers would have to be preloaded into
# the interpreter, so instrumented builds leave it out.
if(NOT Python_EXECUTABLE AND EXISTS /usr/bin/python3)
    set(Python_EXECUTABLE /usr/bin/python3 CACHE FILEPATH "Interpreter the Python module is made for")
endif()
find_package(Python COMPONENTS Interpreter Development.Module QUIET)
find_package(pybind11 QUIET)
set(found OFF)
if(pybind11_FOUND AND Python_FOUND AND NOT MARGINMERGE_SANITIZE)
    set(found ON)
endif()
option(MARGINMERGE_PYTHON "Build the Python module" ${found})
if(MARGINMERGE_PYTHON AND NOT pybind11_FOUND)
    message(FATAL_ERROR "MARGINMERGE_PYTHON needs pybind11 and Python headers; run scripts/setup python")
endif()
if(NOT MARGINMERGE_PYTHON)
    message(STATUS "Python module: off; 'scripts/setup python' installs what it needs")
endif()
