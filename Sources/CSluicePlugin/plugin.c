#include "sluice_plugin.h"
