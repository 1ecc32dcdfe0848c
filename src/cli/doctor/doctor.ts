/** `postroad doctor`: looks at everything that mail depends on, and says of each whether it is well, and else the mend. */
import type { Command } from 'commander'
import { openAppliance, openResolver } from '../../appliance/appliance.js'
import { chooseConfigFile } from '../../config/environment.js'
import { isAppliance } from '../../core/owner.js'
import { describeError } from '../../core/errors.js'
import { listAllDomains, type Domain } from '../../deliverability/domains/domain-store.js'
import { command, printResult, readConfig, type CliContext, type CommonOptions } from '../context.js'
import { checkPublicUrl, type PublicUrlCheck } from '../public-url.js'
import { acmeChecks } from './acme-check.js'
import { fail, ok, warn, type Check } from './check.js'
import { dnsChecks } from './dns-checks.js'
import { configChecks, diskCheck, portChecks, stateChecks } from './machine-checks.js'

const MARKS = { ok: 'ok  ', warn: 'WARN', fail: 'FAIL' } as const

export function doctorCommand(program: Command, context: CliContext): void {
  command(
    program,
    'doctor',
    'look at DNS, ports, certificate, disk, database: what is well, and what to do',
  ).action(async (options: CommonOptions) => {
    const checks = await examine(context, options)
    printResult(context, options, checks, () =>
      checks
        .map(({ status, name, what, mend }) =>
          [`${MARKS[status]}  ${name}: ${what}`, ...(mend === undefined ? [] : [`      ${mend}`])].join('\n'),
        )
        .join('\n'),
    )
    if (checks.some(({ status }) => status === 'fail')) context.fail()
  })
}

async function examine(context: CliContext, options: CommonOptions): Promise<Check[]> {
  const { config } = readConfig(context, options)
  const { world } = context
  const file = chooseConfigFile(options.config, context.env)
  const fetched = await checkPublicUrl(config, world)
  const checks = configChecks(config, file, world.clock.now()).filter(
    ({ name }) => fetched?.status !== 'works' || name !== 'public_url',
  )
  checks.push(...publicUrlChecks(fetched))
  checks.push(...(await acmeChecks(config, world.clock)))
  checks.push(await diskCheck(config, world))
  let domains: readonly Domain[] = []
  try {
    const appliance = await openAppliance({ config, world })
    try {
      checks.push(...(await stateChecks(appliance)))
      domains = (await listAllDomains(appliance.database.reader)).filter(({ owner }) => !isAppliance(owner))
    } finally {
      await appliance[Symbol.asyncDispose]()
    }
  } catch (error) {
    checks.push(fail('database', describeError(error), `look at ${config.databaseFile}`))
  }
  const resolver = openResolver(config, world)
  checks.push(...(await portChecks(config, world, resolver)))
  checks.push(...(await dnsChecks(config, resolver, domains)))
  return checks
}

/** Nothing while the server does not run: its own check says so. */
function publicUrlChecks(fetched: PublicUrlCheck | undefined): Check[] {
  const name = 'public_url'
  if (fetched === undefined) return []
  if (fetched.status === 'works') return [ok(name, fetched.what)]
  return [(fetched.status === 'dead' ? fail : warn)(name, fetched.what, fetched.mend)]
}
