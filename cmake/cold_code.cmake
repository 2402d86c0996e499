# For what runs once a command or a request and not once a vector: the command line, the server, the lab, the jobs.
# Optimising it hard costs minutes of every build from nothing and shows in no measurement.
add_library(marginmerge_cold INTERFACE)
target_compile_options(marginmerge_cold INTERFACE $<$<CONFIG:Release>:-O1>)
