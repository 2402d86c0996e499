# For what runs once a command or a request and not once a vector: the command line, the server, the lab, the jobs.
# Optimising it hard costs minutes of every build from nothing and shows in no measurement. What loops over numbers lies
# elsewhere: in kernels and algorithms, and where the server reads vectors.
add_library(marginmerge_cold INTERFACE)
target_compile_options(marginmerge_cold INTERFACE $<$<CONFIG:Release>:-O1>)
