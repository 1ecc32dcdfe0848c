/** Numbers and counted things in French. */
export const nombre = (n: number): string => n.toLocaleString('fr')

/** @param n picks the form: “1 message”, “2 messages” */
export const count = (n: number, one: string, other: string): string =>
  `${n.toLocaleString('fr')} ${n < 2 ? one : other}`
