/** What is found of a configuration that reads well: what `serve` would refuse, and what will hurt. Holds no logic beyond making one. */

export interface Finding {
  /** `fault`: `serve` refuses it. */
  readonly severity: 'fault' | 'warning'
  /** The key that it is about, dotted. */
  readonly path: string
  readonly what: string
  /** What to do. */
  readonly mend: string
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
