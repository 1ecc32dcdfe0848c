/** One check of `postroad doctor`: what was checked, the result, and how to fix it. Holds no logic beyond making one. */

export interface Check {
  readonly status: 'ok' | 'warn' | 'fail'
  /** E.g. `dns.ptr`. */
  readonly name: string
  readonly what: string
  /** How to fix it; absent if there is nothing to fix. */
  readonly fix?: string
}

/** A check before it has run; several of one name are reported together if time runs out. */
export interface Task {
  readonly name: string
  /** The domain or route it checks, unless its name says so. */
  readonly subject?: string
  /** How a check that was cut off counts; `warn` if not given. */
  readonly ifCutOff?: 'warn' | 'fail'
  run(): Promise<Check | readonly Check[]>
}

export const ok = (name: string, what: string): Check => ({ status: 'ok', name, what })
export const warn = (name: string, what: string, fix: string): Check => ({
  status: 'warn',
  name,
  what,
  fix,
})
export const fail = (name: string, what: string, fix: string): Check => ({
  status: 'fail',
  name,
  what,
  fix,
})
