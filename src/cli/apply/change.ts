/** One change of a plan, and how states are compared. */
import { isDeepStrictEqual } from 'node:util'

export type Fields = Readonly<Record<string, unknown>>

export interface Difference {
  readonly before: unknown
  readonly after: unknown
}

export interface PlannedChange {
  readonly act: 'create' | 'change' | 'delete'
  /** E.g. `list`. */
  readonly what: string
  readonly name: string
  /** Name of its workspace. */
  readonly workspace?: string
  readonly fields: Readonly<Record<string, Difference>>
  apply(): Promise<void>
}

/** Fields of `wanted` that `current` has otherwise; all of them without `current`. */
export function differences(wanted: Fields, current: Fields | undefined): Record<string, Difference> {
  return Object.fromEntries(
    Object.entries(wanted)
      .filter(([name, after]) => !current || !isDeepStrictEqual(plain(current[name] ?? null), plain(after)))
      .map(([name, after]) => [name, { before: current?.[name] ?? null, after }]),
  )
}

/** Without prototypes, which parsers of TOML leave out. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value))
}

export function afterOf(fields: Readonly<Record<string, Difference>>): Fields {
  return Object.fromEntries(Object.entries(fields).map(([name, { after }]) => [name, after]))
}
