/** `postroad doctor`: checks this appliance from here, whether or not it runs, or a remote one, which then checks itself. */
import type { Command } from 'commander'
import type { Check } from '../appliance/doctor/check.js'
import { examine } from '../appliance/doctor/doctor.js'
import { isRunning } from '../appliance/doctor/public-url.js'
import type { DoctorReport } from '../appliance/system/doctor-routes.js'
import { chooseConfigFile } from '../config/environment.js'
import { hasRemote, withApi } from './api.js'
import { printResult, readConfig, type CliContext, type CommonOptions } from './context.js'
import { apiCommand } from './options.js'

const MARKS = { ok: 'ok  ', warn: 'WARN', fail: 'FAIL' } as const
const POLL_MS = 500

export function doctorCommand(program: Command, context: CliContext): void {
  apiCommand(
    program,
    'doctor',
    'check DNS, ports, routes, certificate, disk and database, and say how to fix them',
  ).action(async (options: CommonOptions) => {
    const report = options.json ? () => undefined : (check: Check) => context.print(inWords(check))
    const checks = await (hasRemote(context, options) ? examineRemote : examineHere)(context, options, report)
    printResult(context, options, checks, () => summary(checks))
    if (checks.some(({ status }) => status === 'fail')) context.fail()
  })
}

function examineHere(
  context: CliContext,
  options: CommonOptions,
  report: (check: Check) => void,
): Promise<readonly Check[]> {
  const { config } = readConfig(context, options)
  const file = chooseConfigFile(options.config, context.env)
  return examine({ config, file, world: context.world, isServing: isRunning(config.dataDir), report })
}

function examineRemote(
  context: CliContext,
  options: CommonOptions,
  report: (check: Check) => void,
): Promise<readonly Check[]> {
  return withApi(context, options, async ({ admin }) => {
    const { id } = await admin.send<DoctorReport>('POST', '/doctor')
    for (let reported = 0; ;) {
      const { checks, ended_at: endedAt } = await admin.get<DoctorReport>(`/doctor/${id}`)
      checks.slice(reported).forEach(report)
      if (endedAt !== null) return checks
      reported = checks.length
      await context.world.clock.sleep(POLL_MS)
    }
  })
}

function inWords({ status, name, what, fix }: Check): string {
  return [`${MARKS[status]}  ${name}: ${what}`, ...(fix === undefined ? [] : [`      ${fix}`])].join('\n')
}

function summary(checks: readonly Check[]): string {
  const count = (status: Check['status']) => checks.filter(check => check.status === status).length
  return `\n${checks.length} checks: ${count('fail')} failed, ${count('warn')} with warnings`
}
