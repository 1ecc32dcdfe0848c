/** Links as the mail of a test appliance would carry them, made with that appliance's own keys. */
import { openAppliance } from '../../../src/appliance/appliance.js'
import { loadConfig } from '../../../src/config/load.js'
import { openLinkKeys, type LinkKeys } from '../../../src/mail/links/link-keys.js'
import { CONFIG_SCHEMA } from '../../../src/appliance/resources.js'
import { systemWorld } from '../../../src/world/world.js'
import type { Installation } from './process.js'

/** What its links are made and read with. */
export async function linkKeysOf({ configFile, environment }: Installation): Promise<LinkKeys> {
  const { config } = loadConfig({ schema: CONFIG_SCHEMA, file: configFile, env: environment })
  await using appliance = await openAppliance({ config, world: systemWorld() })
  return openLinkKeys(appliance.linkSecrets)
}
