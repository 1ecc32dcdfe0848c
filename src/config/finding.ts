/** Findings about a configuration that loads: faults, which `serve` refuses, and warnings. */

export interface Finding {
  /** `serve` refuses to start on a `fault`. */
  readonly severity: 'fault' | 'warning'
  /** Dotted key. */
  readonly path: string
  readonly what: string
  /** What the operator should do. */
  readonly mend: string
  /** Marks a warning that breaks part of the service, which `doctor` counts as a failure. */
  readonly outage?: true
  /** Line of the key, or of its section if the key is missing; absent if neither is in the file. */
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
