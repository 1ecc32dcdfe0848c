/** Problems of a configuration that loads: faults, which `serve` refuses, and warnings. Holds no logic beyond making one. */

export interface Finding {
  /** `fault`: `serve` refuses it. */
  readonly severity: 'fault' | 'warning'
  /** The key that it is about, dotted. */
  readonly path: string
  readonly what: string
  /** What to do. */
  readonly mend: string
  /** Of a warning: part of the service does not work until it is fixed, so `doctor` counts it as a failure. */
  readonly outage?: true
  /** Where the key stands in the file, or the section that it is missing from; absent where neither does. */
  readonly line?: number
}

export const fault = (path: string, what: string, mend: string): Finding => ({
  severity: 'fault',
  path,
  what,
  mend,
})

export const warning = (path: string, what: string, mend: string): Finding => ({
  severity: 'warning',
  path,
  what,
  mend,
})

/** A warning that `doctor` counts as a failure. */
export const outage = (path: string, what: string, mend: string): Finding => ({
  ...warning(path, what, mend),
  outage: true,
})
