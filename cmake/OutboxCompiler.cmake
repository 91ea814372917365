# Language level, warnings as errors, hardening in release builds, ccache and mold where they are installed.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

find_program(OUTBOX_CCACHE ccache)
if(OUTBOX_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${OUTBOX_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${OUTBOX_CCACHE})
endif()
find_program(OUTBOX_MOLD mold)
if(OUTBOX_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor
                    -Woverloaded-virtual -Wnull-dereference -Werror)
# g++ 12 reports these inside the standard library at -O2 and above; nothing of ours is silenced by them alone.
add_compile_options($<$<CXX_COMPILER_ID:GNU>:-Wno-restrict> $<$<CXX_COMPILER_ID:GNU>:-Wno-null-dereference>)
add_compile_options($<$<CONFIG:Release,RelWithDebInfo>:-D_FORTIFY_SOURCE=2>
                    $<$<CONFIG:Release,RelWithDebInfo>:-fstack-protector-strong>)
add_compile_definitions($<$<CONFIG:Debug>:_GLIBCXX_ASSERTIONS>)
# Addresses of foreign functions are resolved at the start and then read-only. tests/hardening checks all of this.
include(CheckPIESupported)
check_pie_supported()
add_link_options(-Wl,-z,relro,-z,now,-z,noexecstack)

# One of: empty, asan (address + undefined), tsan, coverage. Set by the presets.
set(OUTBOX_INSTRUMENT "" CACHE STRING "asan, tsan or coverage")
if(OUTBOX_INSTRUMENT STREQUAL "asan")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
elseif(OUTBOX_INSTRUMENT STREQUAL "tsan")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer -Wno-tsan)
  add_link_options(-fsanitize=thread)
elseif(OUTBOX_INSTRUMENT STREQUAL "coverage")
  add_compile_options(--coverage)
  add_link_options(--coverage)
elseif(NOT OUTBOX_INSTRUMENT STREQUAL "")
  message(FATAL_ERROR "OUTBOX_INSTRUMENT is '${OUTBOX_INSTRUMENT}': say asan, tsan or coverage, or leave it empty")
endif()
