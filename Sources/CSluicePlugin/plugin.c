#include "sluice_kit.h"
#include "sluice_plugin.h"

/* Stands where the plugin says nothing. */
__attribute__((weak)) void *sluice_plugin_type(void) { return 0; }
