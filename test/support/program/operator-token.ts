/** An operator with a role and a token, made in the database of an appliance under test. */
import { createToken } from '../../../src/accounts/operators/credentials.js'
import { createOperator } from '../../../src/accounts/operators/operators.js'
import { openAppliance } from '../../../src/appliance/appliance.js'
import { CONFIG_SCHEMA } from '../../../src/appliance/resources.js'
import { loadConfig } from '../../../src/config/load.js'
import { ALL_WORKSPACES, type Role } from '../../../src/http/roles.js'
import { systemWorld } from '../../../src/world/world.js'
import type { Installation } from './process.js'

let made = 0

export async function makeOperatorToken(
  { configFile, environment }: Installation,
  role: Role,
  workspaceId = ALL_WORKSPACES,
): Promise<string> {
  const { config } = loadConfig({ schema: CONFIG_SCHEMA, file: configFile, env: environment })
  await using appliance = await openAppliance({ config, world: systemWorld() })
  const parts = { ...appliance, ...appliance.world }
  const email = `${role}${++made}@operators.test`
  const grant = { workspaceId, role }
  const { operator } = await createOperator(parts, { email, grant }, 'sign_in')
  return (await createToken(parts, operator.id, { name: 'test' })).token
}
