/** Operators of a test appliance, and tokens with which they call its APIs. */
import { loadConfig } from '../../../src/config/load.js'
import { createToken } from '../../../src/accounts/operators/credentials.js'
import { createOperator, setRole } from '../../../src/accounts/operators/operators.js'
import { openAppliance } from '../../../src/appliance/appliance.js'
import { CONFIG_SCHEMA } from '../../../src/appliance/resources.js'
import type { RoleGrant } from '../../../src/http/roles.js'
import { FakeLog } from '../../../src/world/fake-log.js'
import { systemWorld } from '../../../src/world/world.js'
import type { Initialised } from '../program/process.js'

/** @returns a token of a new operator with these roles */
export async function tokenWith(
  { configFile, environment }: Pick<Initialised, 'configFile' | 'environment'>,
  [first, ...others]: readonly RoleGrant[],
): Promise<string> {
  if (!first) throw new Error('an operator has at least one role')
  const { config } = loadConfig({ schema: CONFIG_SCHEMA, file: configFile, env: environment })
  const world = { ...systemWorld(), log: new FakeLog() }
  await using appliance = await openAppliance({ config, world })
  const parts = { ...world, database: appliance.database, newId: appliance.newId }
  const email = `${appliance.newId()}@operators.example`
  const { operator } = await createOperator(parts, { email, grant: first }, 'sign_in')
  for (const grant of others) await setRole(parts, operator.id, grant)
  return (await createToken(parts, operator.id, { name: 'test' })).token
}
