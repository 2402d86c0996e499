# The Python module, made for Debian's own interpreter unless Python_EXECUTABLE names another. Sanitizers would have to
# be preloaded into the interpreter, so instrumented builds leave it out.
if(NOT Python_EXECUTABLE AND EXISTS /usr/bin/python3)
    set(Python_EXECUTABLE /usr/bin/python3 CACHE FILEPATH "Interpreter the Python module is made for")
endif()
find_package(Python COMPONENTS Interpreter Development.Module QUIET)
find_package(pybind11 QUIET)
set(found OFF)
if(pybind11_FOUND AND Python_FOUND AND NOT MARGINMERGE_SANITIZE)
    set(found ON)
endif()
optional_part(PYTHON ${found} "pybind11 and Python's headers ('scripts/setup python') and no sanitizer")
