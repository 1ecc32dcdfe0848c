/** One check of `postroad doctor`: what was looked at, how it stands, and the mend. Holds no logic beyond making one. */

export interface Check {
  readonly status: 'ok' | 'warn' | 'fail'
  /** What was looked at, e.g. `dns.ptr`. */
  readonly name: string
  readonly what: string
  /** What to do; absent where all is well. */
  readonly mend?: string
}

export const ok = (name: string, what: string): Check => ({ status: 'ok', name, what })
export const warn = (name: string, what: string, mend: string): Check => ({
  status: 'warn',
  name,
  what,
  mend,
})
export const fail = (name: string, what: string, mend: string): Check => ({
  status: 'fail',
  name,
  what,
  mend,
})
