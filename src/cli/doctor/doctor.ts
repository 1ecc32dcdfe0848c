/**
 * `postroad doctor`: checks everything that mail depends on, and says how to fix what is wrong.
 *
 * All checks run at the same time and end within `LIMIT_MS`; results are printed as checks finish. Changes nothing.
 */
import type { Command } from 'commander'
import { nameServers, openAppliance } from '../../appliance/appliance.js'
import type { Config } from '../../config/config.js'
import { chooseConfigFile } from '../../config/environment.js'
import { describeError } from '../../core/errors.js'
import { listDomainsOfAll } from '../../deliverability/domains/domain-store.js'
import { printResult, readConfig, type CliContext, type CommonOptions } from '../context.js'
import { command } from '../options.js'
import { checkPublicUrl, isRunning, type PublicUrlCheck } from '../config.js'
import { accessChecks, acmeChecks } from './access-check.js'
import { fail, ok, warn, type Check, type Task } from './check.js'
import { dnsTasks, domainTasks, findSenders, type DnsParts, type Senders } from './dns-checks.js'
import { Examination } from './examination.js'
import { configChecks, diskCheck, serverCheck, stateChecks } from './machine-checks.js'
import { portTasks } from './port-checks.js'

const LIMIT_MS = 10_000
/** For one answer; after two timeouts a name server counts as silent. */
const DNS_TIMEOUT_MS = 2_000
/** More than any appliance has. */
const ALL_DOMAINS = { limit: 1_000_000, offset: 0 }
const MARKS = { ok: 'ok  ', warn: 'WARN', fail: 'FAIL' } as const

export function doctorCommand(program: Command, context: CliContext): void {
  command(
    program,
    'doctor',
    'check DNS, ports, routes, certificate, disk and database, and say how to fix them',
  ).action(async (options: CommonOptions) => {
    const report = options.json ? () => undefined : (check: Check) => context.print(inWords(check))
    const checks = await examine(context, options, report)
    printResult(context, options, checks, () => summary(checks))
    if (checks.some(({ status }) => status === 'fail')) context.fail()
  })
}

function inWords({ status, name, what, mend }: Check): string {
  return [`${MARKS[status]}  ${name}: ${what}`, ...(mend === undefined ? [] : [`      ${mend}`])].join('\n')
}

function summary(checks: readonly Check[]): string {
  const count = (status: Check['status']) => checks.filter(check => check.status === status).length
  return `\n${checks.length} checks: ${count('fail')} failed, ${count('warn')} with warnings`
}

async function examine(
  context: CliContext,
  options: CommonOptions,
  report: (check: Check) => void,
): Promise<Check[]> {
  const { config } = readConfig(context, options)
  const { world } = context
  const examination = new Examination({ clock: world.clock, limitMs: LIMIT_MS, report })
  const { signal } = examination
  const timeoutMs = Math.min(config.dns.timeoutMs, DNS_TIMEOUT_MS)
  const resolver = world.openResolver(nameServers(config), timeoutMs, signal)
  const parts = { config, world, resolver }
  const isServing = isRunning(config.dataDir)
  const senders = findSenders(parts)
  examination.start(
    ...machineTasks(context, options, config),
    { name: 'server', run: async () => serverCheck(isServing) },
    { name: 'database', run: () => databaseChecks(parts, senders, examination) },
    ...portTasks({ ...parts, isServing, signal }),
    ...dnsTasks(parts, senders),
  )
  return examination.finish()
}

function machineTasks(context: CliContext, options: CommonOptions, config: Config): Task[] {
  const { world } = context
  const file = chooseConfigFile(options.config, context.env)
  const fetched = checkPublicUrl(config, world)
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
    { name: 'certificate', run: () => acmeChecks(config, world.clock) },
    { name: 'disk', run: () => diskCheck(config, world) },
  ]
}

/** Starts the checks of domains, which only the database knows. */
async function databaseChecks(
  parts: DnsParts & Pick<CliContext, 'world'>,
  senders: Senders,
  examination: Examination,
): Promise<Check[]> {
  const { config, world } = parts
  try {
    const appliance = await openAppliance({ config, world })
    try {
      const checks = await stateChecks(appliance)
      const { items } = await listDomainsOfAll(appliance.database.reader, {}, ALL_DOMAINS)
      examination.start(...domainTasks(parts, senders, items))
      return checks
    } finally {
      await appliance[Symbol.asyncDispose]()
    }
  } catch (error) {
    return [fail('database', describeError(error), `check ${config.databaseFile}`)]
  }
}

/** Nothing while the server does not run and the name is found: its own check says so. */
function publicUrlChecks(fetched: PublicUrlCheck | undefined): Check[] {
  const name = 'public_url'
  if (fetched === undefined) return []
  if (fetched.status === 'works') return [ok(name, fetched.what)]
  return [(fetched.status === 'dead' ? fail : warn)(name, fetched.what, fetched.mend)]
}
