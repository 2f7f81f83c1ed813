# How everything is compiled: C17, warnings as errors, hidden symbols, hardening, one sanitizer set per build.
option(DUEBOX_TESTS "Build the tests" ON)
option(DUEBOX_COVERAGE "Instrument for gcov" OFF)
option(DUEBOX_FUZZ "Build the libFuzzer targets (needs clang)" OFF)
option(DUEBOX_WERROR "Treat warnings as errors" ON)
set(DUEBOX_SANITIZE "" CACHE STRING "Sanitizers, e.g. address,undefined or thread")

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON) # POSIX and GNU names
set(CMAKE_EXPORT_COMPILE_COMMANDS ON) # for clang-tidy
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
include(CheckPIESupported)
check_pie_supported(LANGUAGES C)

add_library(duebox_build INTERFACE)
target_compile_definitions(duebox_build INTERFACE _GNU_SOURCE)
target_compile_options(duebox_build INTERFACE
  -Wall -Wextra -Wshadow -Wpointer-arith -Wwrite-strings -Wstrict-prototypes -Wmissing-prototypes -Wvla
  # gcc reads the comments in uthash's macros, clang wants attributes
  $<$<C_COMPILER_ID:GNU>:-Wimplicit-fallthrough>
  -Wformat=2 -Wundef -Wno-unused-parameter -Wno-override-init
  $<$<BOOL:${DUEBOX_WERROR}>:-Werror> -fno-omit-frame-pointer -fno-common)
target_include_directories(duebox_build INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/include)

if(DUEBOX_SANITIZE)
  target_compile_options(duebox_build INTERFACE -fsanitize=${DUEBOX_SANITIZE} -fno-sanitize-recover=all -O1)
  target_link_options(duebox_build INTERFACE -fsanitize=${DUEBOX_SANITIZE})
else()
  target_compile_options(duebox_build INTERFACE
    -fstack-protector-strong -fstack-clash-protection -fcf-protection -ftrivial-auto-var-init=zero)
  target_compile_definitions(duebox_build INTERFACE
    $<$<NOT:$<CONFIG:Debug>>:_FORTIFY_SOURCE=2>)
  target_link_options(duebox_build INTERFACE -Wl,-z,relro,-z,now,-z,noexecstack)
endif()
if(DUEBOX_COVERAGE)
  target_compile_options(duebox_build INTERFACE --coverage)
  target_link_options(duebox_build INTERFACE --coverage)
endif()
if(DUEBOX_FUZZ)
  target_compile_options(duebox_build INTERFACE -fsanitize=fuzzer-no-link)
endif()
