/** Numbers and counted things in German. */
export const zahl = (n: number): string => n.toLocaleString('de')

/** @param n picks the form: “1 message”, “2 messages” */
export const count = (n: number, one: string, other: string): string =>
  `${n.toLocaleString('de')} ${n === 1 ? one : other}`
