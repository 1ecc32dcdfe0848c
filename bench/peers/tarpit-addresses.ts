/** Where the tarpits of the benchmark listen; `tarpits.ts` and its program agree on it here. */

export const KINDS = ['never greets', 'one octet a second', 'stalls after the dot', 'takes mail'] as const

/** One address like the last for each number, from 127.(10 + kind).0.1 on. */
export function addressOf(kind: number, number: number): string {
  return `127.${10 + kind}.${Math.floor(number / 200)}.${1 + (number % 200)}`
}
