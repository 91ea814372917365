# outbox_library(NAME FOLDER [SOURCES file...] [LINK target...] [PRIVATE target...])
#
# Makes a folder of headers (and sources) a target. Its headers are included by their path from the top, such as
# "relay/core/planner.hpp", and can be found only through a link to that folder which the target alone brings along:
# what a target does not link, its sources cannot include. So the arrows of docs/architecture.md hold by construction.
function(outbox_library name folder)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;PRIVATE" ${ARGN})
  set(arrow ${PROJECT_BINARY_DIR}/arrows/${name})
  cmake_path(GET folder PARENT_PATH parent)
  file(MAKE_DIRECTORY ${arrow}/${parent})
  if(NOT EXISTS ${arrow}/${folder})
    file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${folder} ${arrow}/${folder} SYMBOLIC)
  endif()
  if(ARG_SOURCES)
    add_library(${name} STATIC ${ARG_SOURCES})
    target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${arrow}>)
    target_link_libraries(${name} PUBLIC ${ARG_LINK} PRIVATE ${ARG_PRIVATE})
  else()
    add_library(${name} INTERFACE)
    target_include_directories(${name} INTERFACE $<BUILD_INTERFACE:${arrow}>)
    target_link_libraries(${name} INTERFACE ${ARG_LINK})
  endif()
endfunction()

# outbox_run_often(TARGET...): what the simulation runs for thousands of seeds is optimised a little in debug builds too,
# which makes it several times as fast.
function(outbox_run_often)
  foreach(target ${ARGN})
    target_compile_options(${target} PRIVATE $<$<CONFIG:Debug>:-O1>)
  endforeach()
endfunction()
