/*
 * sluice_kit.h: between SluicePluginKit and the plugins that are made with it. A plugin in C has no use for it.
 */
#ifndef SLUICE_KIT_H
#define SLUICE_KIT_H

#ifdef __cplusplus
extern "C" {
#endif

/* Which type a plugin is: for the kit's sluice_plugin_entry. A plugin that does not define it has none: NULL. */
void *_Nullable sluice_plugin_type(void);

#ifdef __cplusplus
}
#endif

#endif
