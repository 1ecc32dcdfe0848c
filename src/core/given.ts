/** Omits undefined fields, because JSON writers and object spread treat a missing and an undefined field differently. Pure. */

/** `T` with fields that may be undefined made optional. */
type Given<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>
}

/** `{ ...given({ name, note }) }` has no `note` if that is undefined; null is kept. */
export function given<T extends object>(fields: T): Given<T> {
  const found: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(fields)) if (value !== undefined) found[name] = value
  // The omitted fields are exactly those that `Given` makes optional.
  return found as Given<T>
}
