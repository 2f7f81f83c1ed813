# What the figures of tests/bench rest on: the histogram and the ledger of the C tools.
duebox_test(test_bench_book SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_bench_book.c ${CMAKE_SOURCE_DIR}/tests/bench/tools/book.c
  ${CMAKE_SOURCE_DIR}/tests/bench/tools/histogram.c LIBS duebox_build LABELS unit)
