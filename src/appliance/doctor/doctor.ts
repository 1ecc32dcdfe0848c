/**
 * The examination behind `postroad doctor` and `POST /doctor`: checks everything that mail depends on, and says how to fix what is wrong.
 *
 * All checks run at the same time and end within `LIMIT_MS`; results are reported as checks finish. Changes nothing.
 */
import type { Config } from '../../config/config.js'
import { describeError } from '../../core/errors.js'
import { OLDER_SCHEMA, SchemaError } from '../../db/migrate.js'
import { listDomainsOfAll } from '../../deliverability/domains/domain-store.js'
import type { World } from '../../world/world.js'
import { nameServers, openAppliance, type Appliance } from '../appliance.js'
import { accessChecks } from './access-check.js'
import { acmeChecks } from './acme-check.js'
import { fail, ok, warn, type Check, type Task } from './check.js'
import { dnsTasks, domainTasks, findSenders } from './dns-checks.js'
import { Examination } from './examination.js'
import {
  configChecks,
  diskCheck,
  schemaCheck,
  serverCheck,
  stateChecks,
  upgradeCheck,
} from './machine-checks.js'
import { portTasks } from './port-checks.js'
import { checkPublicUrl, type PublicUrlCheck } from './public-url.js'

export interface ExamineRequest {
  readonly config: Config
  /** The configuration file. */
  readonly file: string
  readonly world: World
  /** Whether the server is running. */
  readonly isServing: boolean
  /** Opened for the examination and closed after it if absent. */
  readonly appliance?: Appliance
  /** Called once per check, in the order in which they finish. */
  readonly report: (check: Check) => void
  /** Cuts the examination short. */
  readonly stopping?: AbortSignal
}

const LIMIT_MS = 10_000
/** For one answer; after two timeouts a name server counts as silent. */
const DNS_TIMEOUT_MS = 2_000
/** More than any appliance has. */
const ALL_DOMAINS = { limit: 1_000_000, offset: 0 }

/** @returns every check, in the order in which they were started */
export async function examine(request: ExamineRequest): Promise<Check[]> {
  const { config, world, isServing, report, stopping } = request
  const examination = new Examination({ clock: world.clock, limitMs: LIMIT_MS, report, stopping })
  const { signal } = examination
  const timeoutMs = Math.min(config.dns.timeoutMs, DNS_TIMEOUT_MS)
  const resolver = world.openResolver(nameServers(config), timeoutMs, signal)
  const parts = { config, world, resolver }
  const senders = findSenders(parts)
  const domainsOf = async ({ database }: Appliance) => {
    const { items } = await listDomainsOfAll(database.reader, {}, ALL_DOMAINS)
    examination.start(...domainTasks(parts, senders, items))
  }
  examination.start(
    ...machineTasks(request),
    { name: 'server', run: async () => serverCheck(isServing) },
    { name: 'database', run: () => databaseChecks(request, domainsOf) },
    ...portTasks({ ...parts, isServing, signal }),
    ...dnsTasks(parts, senders),
  )
  return examination.finish()
}

function machineTasks({ config, file, world, isServing }: ExamineRequest): Task[] {
  const fetched = checkPublicUrl(config, world, isServing)
  const addresses = world.machine.addresses()
  return [
    {
      name: 'config',
      run: async () => {
        const checks = configChecks({ config, file, now: world.clock.now(), addresses })
        // A fetch that works settles what the configuration alone leaves open.
        return checks.every(({ name }) => name !== 'public_url') || (await fetched)?.status !== 'works'
          ? checks
          : checks.filter(({ name }) => name !== 'public_url')
      },
    },
    { name: 'access', run: () => accessChecks(config, file, world.machine) },
    { name: 'public_url', run: async () => publicUrlChecks(await fetched) },
    { name: 'disk', run: () => diskCheck(config, world) },
  ]
}

/** @param startDomains starts the checks of domains, which only the database knows */
async function databaseChecks(
  { config, world, isServing, appliance: open }: ExamineRequest,
  startDomains: (appliance: Appliance) => Promise<void>,
): Promise<Check[]> {
  try {
    const appliance = open ?? (await openAppliance({ config, world }))
    try {
      const schema = await schemaCheck(appliance)
      // The others read its tables.
      if (schema.status === 'fail') return [schema]
      const checks = [schema, ...(await stateChecks(appliance)), ...(await acmeChecks(appliance))]
      await startDomains(appliance)
      return checks
    } finally {
      if (!open) await appliance[Symbol.asyncDispose]()
    }
  } catch (error) {
    if (error instanceof SchemaError) {
      const upgrade = error.what === OLDER_SCHEMA ? upgradeCheck(config, isServing) : undefined
      return [upgrade ?? fail('schema', error.what, error.fix)]
    }
    return [fail('database', describeError(error), `check ${config.databaseFile ?? 'database.url'}`)]
  }
}

/** Nothing while the server does not run and the name is found: its own check says so. */
function publicUrlChecks(fetched: PublicUrlCheck | undefined): Check[] {
  const name = 'public_url'
  if (fetched === undefined) return []
  if (fetched.status === 'works') return [ok(name, fetched.what)]
  return [(fetched.status === 'dead' ? fail : warn)(name, fetched.what, fetched.fix)]
}
