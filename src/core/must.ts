/** A value that has to be there: that it is missing is a fault of the program. @throws Error */
export function must<T>(value: T, what: string): NonNullable<T> {
  if (value === undefined || value === null) throw new Error(`${what} is missing`)
  return value
}
