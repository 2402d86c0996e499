# MARGINMERGE_SANITIZE=address,undefined or =thread instruments everything we build.
set(MARGINMERGE_SANITIZE "" CACHE STRING "Comma-separated sanitizers")
if(MARGINMERGE_SANITIZE)
    add_compile_options(-fsanitize=${MARGINMERGE_SANITIZE} -fno-omit-frame-pointer
                        -fno-sanitize-recover=all)
    add_link_options(-fsanitize=${MARGINMERGE_SANITIZE})
endif()
