/** Numbers and counted things in Spanish. */
export const numero = (n: number): string => n.toLocaleString('es')

/** @param n picks the form: “1 message”, “2 messages” */
export const count = (n: number, one: string, other: string): string =>
  `${n.toLocaleString('es')} ${n === 1 ? one : other}`
