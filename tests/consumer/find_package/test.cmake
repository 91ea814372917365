# Installs the consumer library into an empty prefix, then configures, builds and runs the project in this folder against
# it, as somebody else would. Given: BUILD, WORK, GENERATOR, CXX_FLAGS, LINK_FLAGS.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGN}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --component consumer --prefix ${WORK}/prefix)
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${WORK}/build -G ${GENERATOR} -DCMAKE_PREFIX_PATH=${WORK}/prefix
    "-DCMAKE_CXX_FLAGS=${CXX_FLAGS}" "-DCMAKE_EXE_LINKER_FLAGS=${LINK_FLAGS}")
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/build/service)
if(NOT output MATCHES "enable.auto.commit=true: refused")
  message(FATAL_ERROR "the service ran, and said: ${output}")
endif()

# The public headers need the standard library only.
file(GLOB_RECURSE headers ${WORK}/prefix/include/*.hpp)
list(LENGTH headers count)
if(count LESS 7)
  message(FATAL_ERROR "only ${count} headers were installed")
endif()
foreach(header IN LISTS headers)
  file(STRINGS ${header} includes REGEX "^#include")
  foreach(line IN LISTS includes)
    if(NOT line MATCHES "^#include (<[a-z_]+>|\"outbox/[a-z_]+\\.hpp\")$")
      message(FATAL_ERROR "${header} includes more than the standard library: ${line}")
    endif()
  endforeach()
endforeach()
