/* SPDX-License-Identifier: MIT
 *
 * cli/version.c - `duebox version`: what this binary is and what it stands on.
 */
#include <curl/curl.h>
#include <duebox/plugin.h>
#include <jansson.h>
#include <libsmartcols.h>
#include <sysexits.h>

#include "cli/cli.h"

int run_version(struct cli *cli, const struct args *args) {
  const char *smartcols = NULL;
  scols_get_library_version(&smartcols);
  json_t *object = json_pack("{s:s, s:o, s:s, s:s, s:s, s:s}", "version", DUEBOX_VERSION, "plugin_abi",
                             json_sprintf("%u.%u", DUEBOX_ABI_MAJOR, DUEBOX_ABI_MINOR), "compiler", __VERSION__,
                             "jansson", jansson_version_str(), "libcurl", curl_version_info(CURLVERSION_NOW)->version,
                             "libsmartcols", smartcols ? smartcols : "");
  static const struct column columns[] = {
      {"version", "duebox", CELL_TEXT, false},    {"plugin_abi", "plugin ABI", CELL_TEXT, false},
      {"compiler", "compiler", CELL_TEXT, false}, {"jansson", "jansson", CELL_TEXT, false},
      {"libcurl", "libcurl", CELL_TEXT, false},   {"libsmartcols", "libsmartcols", CELL_TEXT, false}};
  output_record(&cli->output, columns, ARRAY_LEN(columns), object);
  return EX_OK;
}
