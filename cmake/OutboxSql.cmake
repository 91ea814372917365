# outbox_embed_sql(TARGET FOLDER [file...]): generates one header and one source, sql/FOLDER.hpp and .cpp, from the *.sql
# files of sql/FOLDER and of the folders in it, or from the files named. Each file becomes a constant, so that SQL stands in SQL files and a missing
# file fails the build, not the daemon.
function(outbox_embed_sql target folder)
  set(files ${ARGN})
  if(NOT files)
    file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/sql/${folder}/*.sql ${PROJECT_SOURCE_DIR}/sql/${folder}/*/*.sql)
  endif()
  set(out ${PROJECT_BINARY_DIR}/generated/sql)
  add_custom_command(
    OUTPUT ${out}/${folder}.hpp ${out}/${folder}.cpp
    COMMAND ${CMAKE_COMMAND} -DFOLDER=${folder} -DOUT=${out} "-DFILES=${files}" -P ${PROJECT_SOURCE_DIR}/cmake/embed_sql.cmake
    DEPENDS ${files} ${PROJECT_SOURCE_DIR}/cmake/embed_sql.cmake
    COMMENT "Embedding sql/${folder}"
    VERBATIM)
  add_library(${target} STATIC ${out}/${folder}.cpp)
  target_include_directories(${target} PUBLIC ${PROJECT_BINARY_DIR}/generated)
  add_custom_target(${target}_generated DEPENDS ${out}/${folder}.hpp)
  add_dependencies(${target} ${target}_generated)
endfunction()
