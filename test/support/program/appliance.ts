/**
 * The whole server inside the test's process: real HTTP on the loopback, a real database, a clock that the test turns.
 *
 * Mail goes to the local inbox, so nothing is dialled, and no name is looked up but those of sending domains.
 */
import type { Test } from 'tap'
import { Settings } from '../../../src/config/settings.js'
import { CONFIG_SCHEMA } from '../../../src/appliance/resources.js'
import { openServer, type ServerAddresses } from '../../../src/server.js'
import { FakeClock } from '../../../src/world/time/fake-clock.js'
import { FakeDisk } from '../../../src/world/fake-disk.js'
import { fakeDns, type FakeZone } from '../../../src/world/dns/fake-dns.js'
import { FakeLog } from '../../../src/world/fake-log.js'
import { systemWorld } from '../../../src/world/world.js'
import { clientOf, type Client } from '../api/client.js'
import { initialise, type Initialised, type InstallOptions } from './process.js'

export interface TestAppliance extends Initialised, Client {
  readonly clock: FakeClock
  readonly log: FakeLog
  readonly disk: FakeDisk
  /** A key without limits; options as for `key create`. */
  makeKey(...options: string[]): Promise<string>
  readonly addresses: ServerAddresses
  /** Shuts down before the test ends. */
  stop(): Promise<void>
}

export interface ApplianceOptions extends InstallOptions {
  /** What DNS says; may be changed on the way. */
  readonly zone?: FakeZone
  /** See `World`. */
  readonly taskLimitMs?: number
}

export async function openTestAppliance(
  t: Test,
  { zone, taskLimitMs, ...options }: ApplianceOptions = {},
): Promise<TestAppliance> {
  const installation = await initialise(t, {
    ...options,
    env: { POSTROAD_MTA_CAPTURE: 'true', ...options.env },
  })
  const settings = new Settings({
    schema: CONFIG_SCHEMA,
    file: installation.configFile,
    env: installation.environment,
  })
  const clock = new FakeClock()
  const log = new FakeLog()
  const disk = new FakeDisk()
  const world = {
    ...systemWorld(),
    clock,
    log,
    disk,
    passwordCost: { ln: 4, r: 8, p: 1 },
    ...(taskLimitMs === undefined ? {} : { taskLimitMs }),
    ...(zone ? { openResolver: () => fakeDns(zone) } : {}),
  }
  const server = await openServer(settings.started.config, world, settings)
  t.teardown(() => server[Symbol.asyncDispose]())
  const [address] = server.addresses.http
  return {
    ...installation,
    ...clientOf(`http://127.0.0.1:${address?.port ?? 0}`),
    addresses: server.addresses,
    stop: async () => server[Symbol.asyncDispose](),
    clock,
    log,
    disk,
    async makeKey(...more) {
      const usual = ['--workspace', installation.workspaceId, '--name', 'test']
      const unlimited = ['--rate-limit', '0', '--email-rate-limit', '0']
      const { key } = await installation.json<{ key: string }>(
        'key',
        'create',
        ...usual,
        ...unlimited,
        ...more,
      )
      return key
    },
  }
}
