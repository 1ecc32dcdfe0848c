/**
 * Runs the checks of `doctor` concurrently and stops them together when time is up.
 *
 * Results are reported as checks finish. On timeout, `signal` aborts pending network calls and unfinished checks are reported as cut off.
 * Never throws; a check that throws counts as failed.
 */
import { describeError } from '../../core/errors.js'
import type { Clock } from '../../world/time/clock.js'
import { fail, warn, type Check, type Task } from './check.js'

export interface ExaminationParts {
  readonly clock: Clock
  readonly limitMs: number
  /** Called once per check, in the order in which they finish. */
  readonly report: (check: Check) => void
  /** Ends it as if time were up. */
  readonly stopping?: AbortSignal | undefined
}

const CUT_OFF = Symbol('cut off')
/** Subjects named per check if many were cut off. */
const MAX_NAMED = 5

export class Examination {
  private readonly parts: ExaminationParts
  private readonly limit = new AbortController()
  private readonly cutOff: Promise<typeof CUT_OFF>
  private readonly results: Promise<readonly Check[]>[] = []
  private readonly unfinished: Task[] = []

  constructor(parts: ExaminationParts) {
    this.parts = parts
    // Unlike a timer, sleeping keeps the process alive until the result is printed.
    void parts.clock.sleep(parts.limitMs, this.signal).then(() => this.limit.abort())
    parts.stopping?.addEventListener('abort', () => this.limit.abort(), { once: true, signal: this.signal })
    this.cutOff = new Promise(resolve =>
      this.signal.addEventListener('abort', () => resolve(CUT_OFF), { once: true }),
    )
  }

  /** Aborts when time is up or all checks are done. */
  get signal(): AbortSignal {
    return this.limit.signal
  }

  /** Running checks may start others. */
  start(...tasks: readonly Task[]): void {
    this.results.push(...tasks.map(task => this.run(task)))
  }

  /** @returns every check, in the order in which they were started */
  async finish(): Promise<Check[]> {
    const checks: Check[] = []
    for (let index = 0; index < this.results.length; index++)
      checks.push(...((await this.results[index]) ?? []))
    this.limit.abort()
    const late = cutOffChecks(this.unfinished, this.parts.limitMs)
    late.forEach(this.parts.report)
    return [...checks, ...late]
  }

  private async run(task: Task): Promise<readonly Check[]> {
    const result = await Promise.race([settled(task), this.cutOff])
    if (result === CUT_OFF) {
      this.unfinished.push(task)
      return []
    }
    result.forEach(this.parts.report)
    return result
  }
}

async function settled(task: Task): Promise<readonly Check[]> {
  try {
    const result = await task.run()
    return 'status' in result ? [result] : result
  } catch (error) {
    return [
      fail(
        task.name,
        `the check failed: ${describeError(error)}`,
        'run doctor again; if it fails again, report it',
      ),
    ]
  }
}

/** One result per check name: a silent name server cuts off the check of every domain. */
function cutOffChecks(tasks: readonly Task[], limitMs: number): Check[] {
  return [...new Set(tasks.map(({ name }) => name))].map(name => {
    const all = tasks.filter(task => task.name === name)
    const subjects = all.flatMap(({ subject }) => subject ?? [])
    const named = subjects.slice(0, MAX_NAMED).join(', ')
    const rest = subjects.length > MAX_NAMED ? ` and ${subjects.length - MAX_NAMED} more` : ''
    const what = `${named === '' ? '' : `${named}${rest}: `}cut off after ${limitMs / 1_000} s without an answer`
    const make = all.some(({ ifCutOff }) => ifCutOff === 'fail') ? fail : warn
    return make(name, what, 'check dns.servers and the network, then run doctor again')
  })
}
