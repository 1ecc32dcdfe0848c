/** Numbers and counted things in English. */

/** @param n picks the form: “1 message”, “2 messages” */
export const count = (n: number, one: string, other: string): string =>
  `${n.toLocaleString('en')} ${n === 1 ? one : other}`
