# Run by outbox_embed_sql(): writes OUT/FOLDER.hpp and OUT/FOLDER.cpp from FILES.
#   namespace outbox::sql::FOLDER { extern const std::string_view NAME; ... struct File {name, text, sha256}; std::span<const File> all(); }
# A file's name without .sql is the constant's name; a leading "0001_" becomes "m0001_". One of a folder in
# FOLDER: "sub/0001_x" is its name, sub_0001_x its constant. The namespace is FOLDER's first part; the folders of
# sql/queries share outbox::sql::queries, which has no `all`.
string(REGEX REPLACE "/.*" "" namespace ${FOLDER})
set(declarations "")
set(definitions "")
set(entries "")
set(count 0)
list(SORT FILES)
foreach(file IN LISTS FILES)
  get_filename_component(stem ${file} NAME_WE)
  if(file MATCHES "/sql/${FOLDER}/([a-z_0-9]+)/[^/]+$") # a folder in FOLDER: its name comes first
    set(stem ${CMAKE_MATCH_1}/${stem})
  endif()
  string(REPLACE "/" "_" symbol ${stem})
  if(symbol MATCHES "^[0-9]")
    set(symbol "m${symbol}")
  endif()
  file(READ ${file} text)
  string(LENGTH "${text}" length)
  file(SHA256 ${file} sha256)
  if(length GREATER 15000) # a string literal may be split, and compilers bound one piece
    set(pieces "")
    set(at 0)
    while(at LESS length)
      string(SUBSTRING "${text}" ${at} 15000 piece)
      string(APPEND pieces "R\"sql~(${piece})sql~\"\n")
      math(EXPR at "${at} + 15000")
    endwhile()
  else()
    set(pieces "R\"sql~(${text})sql~\"")
  endif()
  string(APPEND declarations "extern const std::string_view ${symbol};\n")
  string(APPEND definitions "const std::string_view ${symbol} = ${pieces};\n")
  string(APPEND entries "    {\"${stem}\", ${symbol}, \"${sha256}\"},\n")
  math(EXPR count "${count} + 1")
endforeach()
set(list_declaration "")
set(list_definition "")
if(NOT namespace STREQUAL "queries")
  set(list_declaration "struct File {
  std::string_view name;  ///< the file's name without .sql
  std::string_view text;
  std::string_view sha256;  ///< of the file's bytes, lower-case hex
};
/// Every file, ordered by name.
std::span<const File> all();
")
  set(list_definition "std::span<const File> all() {
  static const std::array<File, ${count}> files{{
${entries}  }};
  return files;
}
")
endif()
file(WRITE ${OUT}/${FOLDER}.hpp.new "// Generated from sql/${FOLDER} at build time.
#pragma once
#include <span>
#include <string_view>
namespace outbox::sql::${namespace} {
${declarations}
${list_declaration}}  // namespace outbox::sql::${namespace}
")
file(WRITE ${OUT}/${FOLDER}.cpp.new "#include \"sql/${FOLDER}.hpp\"

#include <array>
namespace outbox::sql::${namespace} {
${definitions}
${list_definition}}  // namespace outbox::sql::${namespace}
")
file(COPY_FILE ${OUT}/${FOLDER}.hpp.new ${OUT}/${FOLDER}.hpp ONLY_IF_DIFFERENT)
file(COPY_FILE ${OUT}/${FOLDER}.cpp.new ${OUT}/${FOLDER}.cpp ONLY_IF_DIFFERENT)
file(TOUCH ${OUT}/${FOLDER}.hpp ${OUT}/${FOLDER}.cpp)
