/**
 * Fields of an object that are there at all: an optional field is left out where there is no value for it, rather than held as
 * undefined, since the two are not the same to who writes JSON or spreads objects. Pure.
 */

/** The same fields, those that may be undefined as optional ones. */
type Given<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>
}

/** `{ ...given({ name, note }) }` has no `note` where that is undefined. null is a value. */
export function given<T extends object>(fields: T): Given<T> {
  const found: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(fields)) if (value !== undefined) found[name] = value
  // What was left out is what the type says may be missing.
  return found as Given<T>
}
